//! Elastic jobs by hand.

use super::*;
use crate::units::{Instant, Watts};

fn machine(nodes: u32) -> Machine {
    Machine::of_processors(nodes).unwrap()
}

fn job(nodes: u32, seconds: u32) -> Job {
    Job::new(1, Instant::ZERO, nodes, Span::from_secs(seconds))
}

fn testbed() -> NodeCaps {
    let caps = [30, 32, 34, 39, 45, 55].map(Watts::from_watts);
    NodeCaps::new(Watts::from_watts(56), caps.to_vec(), Watts::from_watts(60)).unwrap()
}

fn model(nodes: u32, kind: Kind, jobs: &[Job]) -> Elastic {
    Elastic::of_kinds(&machine(nodes), testbed(), &vec![kind; jobs.len()], jobs)
}

const KIND: Kind = Kind { application: Application::JACOBI2D, parallelism: 2.0, variation: 0.0 };

/// At the nodes it asks for and a cap that costs nothing, a job takes what its user says and
/// draws its cap and the base on each node. With a parallelism of twice the nodes and no
/// variation it is twice as fast on twice the nodes. Under 32 W Jacobi2D takes 1 / (1 − 0.08)
/// times as long.
#[test]
fn points_by_hand() {
    let jobs = [job(8, 920)];
    let model = model(38, KIND, &jobs);
    let nominal = model.nominal(JobId(0), &jobs[0]);
    assert_eq!((nominal.nodes, nominal.time), (8, Span::from_secs(920)));
    assert_eq!(nominal.cap, Watts::from_watts(111));
    assert_eq!(nominal.power, Watts::from_watts(888));
    let menu = model.menu(JobId(0), &jobs[0]);
    let at = |nodes: u32, watts: u32| {
        let cap = Watts::from_watts(watts + 56);
        *menu.iter().find(|point| point.nodes == nodes && point.cap == cap).unwrap()
    };
    assert_eq!(at(16, 55).time, Span::from_secs(460));
    assert_eq!(at(4, 45).time, Span::from_secs(1840));
    assert_eq!(at(8, 32).time, Span::from_secs(1000));
    assert_eq!(menu.len(), 36);
    let all = |nodes: u32| menu.iter().filter(move |point| point.nodes == nodes).count();
    assert_eq!([4, 6, 8, 10, 12, 16].map(all), [6; 6]);
    for point in menu.iter() {
        assert!(model.offers(JobId(0), &jobs[0], point));
        let run_time = Span::from_secs(92);
        let outcome = model.outcome(JobId(0), &jobs[0], run_time, point);
        assert_eq!(outcome.power, point.power);
        // A tenth of the time asked for, at every point.
        assert!(outcome.run_time.millis().abs_diff(point.time.millis() / 10) <= 1);
    }
    let other = OperatingPoint { time: Span::from_secs(1), ..nominal };
    assert!(!model.offers(JobId(0), &jobs[0], &other));
}

/// More nodes or a higher cap never take longer.
#[test]
fn more_is_never_slower() {
    for application in Application::ALL {
        for parallelism in PARALLELISMS {
            for variation in VARIATIONS {
                let jobs = [job(10, 1000)];
                let model = model(38, Kind { application, parallelism, variation }, &jobs);
                let menu = model.menu(JobId(0), &jobs[0]);
                for one in menu.iter() {
                    for other in menu.iter() {
                        let is_more = one.nodes <= other.nodes && one.cap <= other.cap;
                        assert!(!is_more || one.time >= other.time, "{one:?} {other:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn nobody_runs_on_more_nodes_than_there_are() {
    let counts = |asked, most| counts(NonZeroU32::new(asked).unwrap(), most, None);
    assert_eq!(counts(30, 38), [15, 23, 30, 38]);
    assert_eq!(counts(1, 38), [1, 2]);
    assert_eq!(counts(60, 38), [30]);
    assert_eq!(counts(100, 38), [100]);
    let jobs = [job(60, 100), job(100, 100)];
    let model = model(38, KIND, &jobs);
    assert_eq!(model.nominal(JobId(0), &jobs[0]).nodes, 30);
    assert_eq!(model.footprint(JobId(1), &jobs[1]).nodes, 100);
}

/// Four nodes are asked for, so 2, 3, 4, 5, 6 and 8 may be had.
#[test]
fn a_range_leaves_what_is_in_it() {
    let counts =
        |range: &str, most| counts(NonZeroU32::new(4).unwrap(), most, Some(range.parse().unwrap()));
    assert_eq!(counts("3-5", 38), [3, 4, 5]);
    assert_eq!(counts("4", 38), [4], "just so many");
    assert_eq!(counts("1-12", 38), [1, 2, 3, 4, 5, 6, 8, 12], "its ends count");
    assert_eq!(counts("1-12", 7), [1, 2, 3, 4, 5, 6, 7], "as far as there are nodes");
    assert_eq!(counts("10-12", 38), [10, 12]);
    assert_eq!(counts("10-12", 7), [10], "more than there are");
}

/// A job that nobody drew a kind for is believed to take twice as long on half of its nodes, and
/// as long on twice as many; and to be as slow under a cap as LeanMD, unless it names another.
#[test]
fn the_unknown_are_taken_for_the_worst() {
    let named = |number| Job {
        application: NonZeroU32::new(number).map(crate::job::ApplicationId),
        ..job(8, 920)
    };
    let jobs = [named(0), named(5), named(6)];
    let mut model = model(38, KIND, &[]);
    let before: Vec<Menu> =
        (0..).map(JobId).zip(&jobs).map(|(id, job)| model.menu(id, job)).collect();
    for place in [2, 0, 1] {
        model.learn(JobId(place), &jobs[place as usize]);
    }
    let at = |job: usize, nodes: u32, watts: u32| {
        let menu = model.menu(JobId(job as u32), &jobs[job]);
        assert_eq!(menu[..], before[job][..], "learned or not");
        let cap = Watts::from_watts(watts + 56);
        menu.iter().find(|point| point.nodes == nodes && point.cap == cap).unwrap().time
    };
    assert_eq!(at(0, 8, 55), Span::from_secs(920));
    assert_eq!(at(0, 4, 55), Span::from_secs(1840));
    assert_eq!(at(0, 16, 55), Span::from_secs(920));
    assert_eq!(at(1, 8, 32), Span::from_secs(1000), "Jacobi2D: 920 / 0.92");
    assert!(at(0, 8, 32) > at(1, 8, 32));
    assert_eq!(at(2, 8, 32), at(0, 8, 32), "there is no sixth");
}

#[test]
fn as_asked_means_as_asked() {
    let jobs = [job(8, 920), job(60, 100)];
    let model = model(38, KIND, &jobs).as_asked();
    let menu = model.menu(JobId(0), &jobs[0]);
    assert!(menu.iter().all(|point| point.nodes == 8));
    assert_eq!(menu.len(), 6);
    assert_eq!(model.footprint(JobId(1), &jobs[1]).nodes, 60, "more than there are");
}

#[test]
fn moving_takes_time_only_if_nodes_change() {
    let jobs = [job(8, 920)];
    let model = model(38, KIND, &jobs);
    assert_eq!(model.moving_time(JobId(0), &jobs[0], 8, 8), Span::ZERO);
    // 72.73 s and 8 × 0.01904 s to boot; half of 4096 MB over 2 × 4 links of 425 MB/s.
    let expected = 72.73 + 8.0 * 0.01904 + 2048.0 / (8.0 * 425.0);
    let time = model.moving_time(JobId(0), &jobs[0], 8, 16).secs_f64();
    assert!((time - expected).abs() < 0.002, "{time} {expected}");
    assert!(model.moving_time(JobId(0), &jobs[0], 16, 8) < Span::from_secs(1), "no boot");
}
