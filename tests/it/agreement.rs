//! The fast policies agree with the plain ones, start for start.

use busbar::budget::Budget;
use busbar::job::Job;
use busbar::machine::Machine;
use busbar::policy::PolicySpec;
use busbar::sim::{Events, Run, Simulation, State};
use busbar::units::{Instant, Span, Watts};
use busbar::workload::Workload;
use proptest::prelude::*;

use crate::plain::{Plain, PlainJob, PlainMachine, Rule};

pub(crate) fn workload(jobs: &[PlainJob]) -> Workload {
    Workload::new(
        "test",
        jobs.iter().zip(1..).map(|(job, number)| {
            let asked = Job {
                number,
                submit: Instant::from_secs(job.submit as u32),
                requested: Span::from_secs(job.requested as u32),
                nodes: job.nodes,
                user: None,
                application: None,
            };
            (asked, Span::from_secs(job.run_time as u32))
        }),
    )
}

fn machine(plain: &PlainMachine) -> Machine {
    Machine {
        node_power: Watts::from_watts(plain.watts_per_node),
        ..Machine::of_processors(plain.nodes).unwrap()
    }
}

fn budget(plain: &PlainMachine) -> Budget {
    let steps = plain.budget.iter();
    Budget::from_steps(
        steps
            .map(|(at, watts)| (Instant::from_secs(*at as u32), Watts::from_watts(*watts)))
            .collect(),
    )
    .unwrap()
}

fn run(plain: &PlainMachine, jobs: &[PlainJob], policy: PolicySpec, events: Events) -> Run {
    let (machine, workload) = (machine(plain), workload(jobs));
    Simulation::new(&machine, &workload)
        .budget(budget(plain))
        .events(events)
        .keep_power(true)
        .run(policy.build().as_mut())
}

/// Nodes and watts in use stay within bounds at every instant, by the records alone.
fn assert_within_bounds(plain: &PlainMachine, run: &Run) {
    let ran = || run.records.iter().filter(|record| record.state.has_run());
    for at in ran().map(|record| record.start) {
        let now = ran().filter(|record| record.start <= at && at < record.end);
        let nodes: u32 = now.map(|record| record.nodes).sum();
        assert!(nodes <= plain.nodes, "{nodes} nodes at {at}");
    }
    for sample in &run.power {
        assert!(sample.power <= sample.limit, "{sample:?}");
    }
    assert_eq!(run.over_budget, Span::ZERO);
}

fn assert_agreement(plain: &PlainMachine, jobs: &[PlainJob]) {
    for (policy, rule) in [
        (PolicySpec::Fcfs, Rule::Fcfs),
        (PolicySpec::Easy, Rule::Easy),
        (PolicySpec::Conservative, Rule::Conservative),
    ] {
        for (events, each) in [(Events::Instant, false), (Events::Each, true)] {
            let expected = Plain::starts(plain, jobs, rule, each);
            let run = run(plain, jobs, policy, events);
            let starts: Vec<Option<u64>> = run
                .records
                .iter()
                .map(|record| record.state.has_run().then(|| record.start.millis() / 1000))
                .collect();
            assert_eq!(starts, expected, "{policy}, {events:?}");
            assert_eq!(run.violations, 0, "{policy}, {events:?}: {:?}", run.first_violations);
            assert_within_bounds(plain, &run);
        }
    }
}

/// Jobs that collide: few instants, few sizes, estimates that are right, too long, too short (then
/// the job is killed), or zero.
fn jobs(most: usize, largest: u32) -> impl Strategy<Value = Vec<PlainJob>> {
    let slack = prop_oneof![Just(0i64), Just(1), 2i64..30, -20i64..0];
    let job = (0u64..12, 1..=largest, 0u64..20, slack);
    prop::collection::vec(job, 1..most).prop_map(|jobs| {
        let mut submit = 0;
        jobs.into_iter()
            .map(|(gap, nodes, run_time, slack)| {
                submit += gap.saturating_sub(6);
                let requested = run_time.saturating_add_signed(slack);
                PlainJob { submit, nodes, requested, run_time }
            })
            .collect()
    })
}

/// Budgets that do not bind, bind, or change.
fn budgets(nodes: u32, watts: u32) -> impl Strategy<Value = Vec<(u64, u32)>> {
    let limit = (nodes * watts / 4)..=(nodes * watts + 50);
    prop_oneof![
        Just(vec![(0, nodes * watts)]),
        limit.clone().prop_map(|limit| vec![(0, limit)]),
        prop::collection::vec((1u64..40, limit), 1..4).prop_map(|steps| {
            let mut at = 0;
            steps
                .into_iter()
                .enumerate()
                .map(|(index, (gap, limit))| {
                    at += if index == 0 { 0 } else { gap };
                    (at, limit)
                })
                .collect()
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn small_workloads(jobs in jobs(24, 11), budget in budgets(10, 7)) {
        assert_agreement(&PlainMachine { nodes: 10, watts_per_node: 7, budget }, &jobs);
    }

    #[test]
    fn deeper_queues(jobs in jobs(80, 40), budget in budgets(33, 3)) {
        assert_agreement(&PlainMachine { nodes: 33, watts_per_node: 3, budget }, &jobs);
    }
}

/// Thousands of workloads by default; `PROPTEST_CASES` asks for more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(1500)
}

/// A limit that is enforced ends the job on time; one that was raised does not.
#[test]
fn limits_kill_unless_they_were_raised() {
    let jobs = [PlainJob { submit: 0, nodes: 1, requested: 10, run_time: 25 }];
    let mut workload = workload(&jobs);
    let machine = Machine::of_processors(4).unwrap();
    let end = |workload: &Workload| {
        let run = Simulation::new(&machine, workload).run(PolicySpec::Easy.build().as_mut());
        (run.records[0].state, run.records[0].end)
    };
    assert_eq!(end(&workload), (State::Killed, Instant::from_secs(10)));
    assert_eq!(workload.raise_estimates(), 1);
    assert_eq!(end(&workload), (State::Completed, Instant::from_secs(25)));
}
