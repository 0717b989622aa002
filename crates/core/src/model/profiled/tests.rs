//! Jobs that come one by one, and ranges of nodes, by hand.

use std::num::NonZeroU32;

use super::*;
use crate::job::{ApplicationId, Terms};
use crate::profile::Origin;
use crate::units::Instant;

/// On 1, 2, 4 and 8 nodes: 800 s of work on 100 W each.
fn profile(nodes: &[u32]) -> Profile {
    let row = |nodes: &u32| Row {
        configuration: Configuration { nodes: *nodes, cores: 1, cap: Watts::from_watts(100) },
        time: Span::from_secs(800 / nodes),
        power: Watts::from_watts(100 * nodes),
        origin: Origin::Measured,
    };
    Profile { application: "A".to_owned(), rows: nodes.iter().map(row).collect() }
}

fn job(application: u32, range: Option<&str>) -> Job {
    let nodes = range.map(|text| text.parse().unwrap());
    Job {
        application: NonZeroU32::new(application).map(ApplicationId),
        terms: Terms { nodes, ..Terms::default() },
        ..Job::new(7, Instant::ZERO, 4, Span::from_secs(1))
    }
}

fn model(profiles: &[Profile], jobs: &[Job]) -> Result<Profiled, ProfiledError> {
    let machine = Machine::of_processors(8).unwrap();
    Profiled::new(&machine, profiles, jobs, Beliefs::default())
}

#[test]
fn jobs_are_checked_at_the_door() {
    let profiles = [profile(&[1, 2, 4, 8]), profile(&[16])];
    let wrong = |job: Job| model(&profiles, &[job]).unwrap_err();
    assert!(model(&profiles, &[job(1, None), job(1, Some("3-5"))]).is_ok());
    assert_eq!(wrong(job(0, None)), ProfiledError::NoApplication { job: 7 });
    let unknown = ProfiledError::Unknown { job: 7, application: 3, profiles: 2 };
    assert_eq!(wrong(job(3, None)), unknown);
    assert_eq!(wrong(job(2, None)), ProfiledError::Empty("A".to_owned()), "a larger machine's");
    let range = "5-7".parse().unwrap();
    assert_eq!(wrong(job(1, Some("5-7"))), ProfiledError::Range { job: 7, application: 1, range });
    assert_eq!(model(&[], &[]).unwrap_err(), ProfiledError::None);
}

/// Of 1, 2, 4 and 8 nodes a job that can run on 2 to 5 is offered 2 and 4.
#[test]
fn a_range_leaves_what_is_in_it() {
    let id = JobId(0);
    let (free, bound) = (job(1, None), job(1, Some("2-5")));
    let model = model(&[profile(&[1, 2, 4, 8])], &[free, bound]).unwrap();
    let nodes = |job: &Job| {
        let mut nodes: Vec<u32> = model.menu(id, job).iter().map(|point| point.nodes).collect();
        nodes.sort_unstable();
        nodes
    };
    assert_eq!((nodes(&free), nodes(&bound)), (vec![1, 2, 4, 8], vec![2, 4]));
    assert_eq!(model.footprint(id, &bound).nodes, 2);
    assert_eq!(model.thriftiest(id, &bound).point.nodes, 2);
    let fastest = |job: &Job, power| {
        let way = model.fastest(id, job, 8, Watts::from_watts(power));
        way.map(|way| way.point.nodes)
    };
    assert_eq!((fastest(&free, 800), fastest(&bound, 800)), (Some(8), Some(4)));
    assert_eq!((fastest(&free, 100), fastest(&bound, 100)), (Some(1), None));
    let eight = model.fastest(id, &free, 8, Watts::from_watts(800)).unwrap().point;
    assert!(model.offers(id, &free, &eight) && !model.offers(id, &bound, &eight));
    let larger = Job { nodes: 8, ..bound };
    assert_eq!(model.nominal(id, &larger).nodes, 4, "the largest it can have");
}
