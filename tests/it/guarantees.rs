//! What `share` promises to a site, on random workloads in the world that all policies share.

use busbar::budget::Budget;
use busbar::freedom::Freedoms;
use busbar::job::Job;
use busbar::machine::Machine;
use busbar::policy::{Believe, PolicySpec};
use busbar::prepared::{Rules, SharedWorld};
use busbar::scenario::Scenario;
use busbar::sim::{Run, State};
use busbar::units::{Instant, Share, Span};
use busbar::workload::Workload;
use busbar::world::Repertoire;
use proptest::prelude::*;

/// What users of random jobs ask for: seconds since the job before, nodes, a time in seconds, and the part of it that
/// the job takes.
type Asked = Vec<(u32, u32, u32, f64)>;

fn asked(most_seconds: u32) -> impl Strategy<Value = Asked> {
    prop::collection::vec((0u32..2000, 1u32..9, 60..most_seconds, 0.01f64..=1.0), 1..60)
}

fn jobs(asked: &Asked) -> Vec<(Job, Span)> {
    let mut submit = 0;
    let of = |(number, &(gap, nodes, requested, part)): (u64, &(u32, u32, u32, f64))| {
        submit += 1000 * u64::from(gap);
        let run = Span::from_secs(((f64::from(requested) * part) as u32).max(1));
        (Job::new(number, Instant::from_millis(submit), nodes, Span::from_secs(requested)), run)
    };
    (1..).zip(asked).map(of).collect()
}

/// The most nodes that are busy at once if every job runs from its submission on.
fn most_busy(jobs: &[(Job, Span)]) -> u32 {
    let busy_at = |now: Instant| {
        let runs = jobs.iter().filter(|(job, run)| job.submit <= now && now <= job.submit + *run);
        runs.map(|(job, _)| job.nodes).sum()
    };
    jobs.iter().map(|(job, _)| busy_at(job.submit)).max().unwrap_or(0)
}

/// The default of `share`, with everything that may be done to jobs by default.
fn share(jobs: Vec<(Job, Span)>, nodes: u32, percent: u32, believe: Believe, seed: u64) -> Run {
    let machine = Machine::of_processors(nodes).unwrap().filled_in(seed);
    let workload = Workload::new("random", jobs);
    let rules = Rules { allow: Freedoms::USUAL, believe: Some(believe), ..Rules::default() };
    let shared = SharedWorld::new(&machine, &workload, &Repertoire::BuiltIn, &rules, seed).unwrap();
    let policy: PolicySpec = "share".parse().unwrap();
    let belief = shared.belief(&policy, &machine, workload.jobs()).unwrap();
    let scenario = Scenario {
        budget: Budget::constant(Share::percent(percent).of(machine.max_power())),
        world: Some(shared.world()),
        keep_power: true,
        ..Scenario::new(&machine, &workload, policy, belief.as_ref())
    };
    scenario.run().run
}

proptest! {
    /// The machine has all the nodes that are busy at once as users ask for them, and power for all of its nodes. Whatever is
    /// believed of jobs that may be changed, nobody waits for more than ten minutes.
    #[test]
    fn where_everything_fits_nobody_has_to_wait(asked in asked(5000), seed in 1u64..1000) {
        let jobs = jobs(&asked);
        let run = share(jobs.clone(), most_busy(&jobs), 100, Believe::Published, seed);
        prop_assert_eq!(run.violations, 0);
        for ((job, _), record) in jobs.iter().zip(&run.records) {
            let wait = record.start.since(job.submit);
            prop_assert!(wait <= Span::from_secs(600), "job {} waited for {wait:?}", job.number);
        }
    }

    /// However much comes: everybody who fits into the limit has run in the end, nobody was killed, and the limit was kept at every
    /// instant, as long as what is believed holds.
    #[test]
    fn nobody_is_left_out_or_killed_and_the_limit_is_kept(
        asked in asked(50_000), nodes in 8u32..32, percent in 60u32..=100, seed in 1u64..1000,
    ) {
        let run = share(jobs(&asked), nodes, percent, Believe::Exact, seed);
        prop_assert_eq!((run.violations, run.excursions.time, run.unfinished), (0, Span::ZERO, 0));
        for record in &run.records {
            prop_assert_eq!(record.state, State::Completed);
        }
        for sample in &run.power {
            prop_assert!(sample.power <= sample.limit, "at {:?}", sample.at);
        }
    }
}
