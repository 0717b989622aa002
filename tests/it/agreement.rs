//! The fast policies agree with the plain ones, start for start.

use busbar::budget::Budget;
use busbar::job::Job;
use busbar::machine::Machine;
use busbar::policy::{BuildContext, ConservativeSpec, Easy, Fcfs, PolicySpec};
use busbar::sim::{Events, Excursions, Run, Simulation, State};
use busbar::units::{Instant, Span, Watts};
use busbar::workload::Workload;
use proptest::prelude::*;

use crate::plain::{Plain, PlainJob, PlainMachine, Rule, Starts, Way};

const SECOND: u64 = 1000;

/// A job with one way, in seconds; it draws nothing.
pub(crate) fn rigid(submit: u64, nodes: u32, requested: u64, run_time: u64) -> PlainJob {
    // One that asks for no time at all is believed to stay for a millisecond.
    let time_ms = (requested * SECOND).max(1);
    let way = Way::rigid(nodes, time_ms, run_time * SECOND, 0);
    let requested_ms = requested * SECOND;
    PlainJob {
        submit_ms: submit * SECOND,
        asked: nodes,
        nodes,
        requested_ms,
        weight_thousandths: 1000,
        tolerance_millionths: None,
        ways: vec![way],
    }
}

/// The same job on nodes that draw so many watts each.
fn drawing(watts: u32, mut job: PlainJob) -> PlainJob {
    job.ways[0].milliwatts = u64::from(job.nodes * watts) * 1000;
    job
}

/// The jobs at their nominal way.
pub(crate) fn workload(jobs: &[PlainJob]) -> Workload {
    Workload::new(
        "test",
        jobs.iter().zip(1..).map(|(job, number)| {
            let nominal = job.ways[0];
            // A millisecond is what a job gets that asks for no time at all.
            let requested = match nominal.time_ms {
                1 => Span::ZERO,
                time_ms => Span::from_millis(time_ms),
            };
            let asked = Job::new(number, Instant::from_millis(job.submit_ms), job.nodes, requested);
            (asked, Span::from_millis(nominal.run_ms))
        }),
    )
}

pub(crate) fn machine(plain: &PlainMachine, watts: u32) -> Machine {
    Machine { node_power: Watts::from_watts(watts), ..Machine::of_processors(plain.nodes).unwrap() }
}

pub(crate) fn budget(plain: &PlainMachine) -> Budget {
    let steps = plain.budget.iter();
    Budget::from_steps(
        steps
            .map(|(at, limit)| (Instant::from_millis(*at), Watts::from_milliwatts(*limit)))
            .collect(),
    )
    .unwrap()
}

fn run(
    plain: &PlainMachine,
    watts: u32,
    jobs: &[PlainJob],
    policy: PolicySpec,
    events: Events,
) -> Run {
    let (machine, workload) = (machine(plain, watts), workload(jobs));
    Simulation::new(&machine, &workload)
        .budget(budget(plain))
        .events(events)
        .keep_power(true)
        .run(policy.build(&BuildContext::default()).as_mut())
}

/// Nodes and watts in use stay within bounds at every instant, by the records alone.
pub(crate) fn assert_within_bounds(plain: &PlainMachine, run: &Run) {
    let ran = || run.records.iter().filter(|record| record.state.has_run());
    for at in ran().map(|record| record.start) {
        let now = ran().filter(|record| record.start <= at && at < record.end);
        let nodes: u32 = now.map(|record| record.nodes).sum();
        assert!(nodes <= plain.nodes, "{nodes} nodes at {at}");
    }
    for sample in &run.power {
        assert!(sample.power <= sample.limit, "{sample:?}");
    }
    assert_eq!(run.excursions, Excursions::default());
    // What is held within an instant alone, as by a job of no length, is drawn for no time.
    let shown = run.power.iter().map(|sample| sample.power).max();
    assert!(shown.is_none_or(|shown| run.peak == shown), "{shown:?}, not {}", run.peak);
    assert!(run.peak <= run.peak_held);
}

/// On a machine whose nodes draw so many watts each, which the jobs know already.
fn assert_agreement(plain: &PlainMachine, watts: u32, jobs: &[PlainJob]) {
    for (policy, rule) in [
        (PolicySpec::of(Fcfs), Rule::Fcfs),
        (PolicySpec::easy(), Rule::Easy),
        (PolicySpec::of(ConservativeSpec), Rule::Conservative),
    ] {
        for (events, each) in [(Events::Instant, false), (Events::Each, true)] {
            let expected = Plain::starts(plain, jobs, rule, each);
            let run = run(plain, watts, jobs, policy.clone(), events);
            let starts: Starts = run
                .records
                .iter()
                .map(|record| record.state.has_run().then(|| (record.start.millis(), 0)))
                .collect();
            assert_eq!(starts, expected, "{policy}, {events:?}");
            assert_eq!(run.violations, 0, "{policy}, {events:?}: {:?}", run.first_violations);
            assert_within_bounds(plain, &run);
        }
    }
}

/// Jobs that collide: few instants, few sizes, estimates that are right, too long, too short (then
/// the job is killed), or zero.
pub(crate) fn jobs(most: usize, largest: u32, watts: u32) -> impl Strategy<Value = Vec<PlainJob>> {
    let slack = prop_oneof![Just(0i64), Just(1), 2i64..30, -20i64..0];
    let job = (0u64..12, 1..=largest, 0u64..20, slack);
    prop::collection::vec(job, 1..most).prop_map(move |jobs| {
        let mut submit = 0;
        jobs.into_iter()
            .map(|(gap, nodes, run_time, slack)| {
                submit += gap.saturating_sub(6);
                let requested = run_time.saturating_add_signed(slack);
                drawing(watts, rigid(submit, nodes, requested, run_time))
            })
            .collect()
    })
}

/// Budgets that do not bind, bind, or change.
pub(crate) fn budgets(nodes: u32, watts: u32) -> impl Strategy<Value = Vec<(u64, u64)>> {
    let all = u64::from(nodes * watts);
    let limit = (all / 4..=all + 50).prop_map(|watts| watts * 1000);
    prop_oneof![
        Just(vec![(0, all * 1000)]),
        limit.clone().prop_map(|limit| vec![(0, limit)]),
        prop::collection::vec((1u64..40, limit), 1..4).prop_map(|steps| {
            let mut at = 0;
            steps
                .into_iter()
                .enumerate()
                .map(|(index, (gap, limit))| {
                    at += if index == 0 { 0 } else { gap * SECOND };
                    (at, limit)
                })
                .collect()
        }),
    ]
}

/// Budgets that change more often than jobs come and go.
fn restless(nodes: u32, watts: u32) -> impl Strategy<Value = Vec<(u64, u64)>> {
    let all = u64::from(nodes * watts);
    prop::collection::vec((1u64..8, all / 4..=all + 50), 4..60).prop_map(|steps| {
        let mut at = 0;
        let step = |(gap, watts): (u64, u64)| {
            at += gap * SECOND;
            (at - gap * SECOND, watts * 1000)
        };
        steps.into_iter().map(step).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn many_limits_to_come(jobs in jobs(40, 11, 7), budget in restless(10, 7)) {
        assert_agreement(&PlainMachine { nodes: 10, budget }, 7, &jobs);
    }

    #[test]
    fn small_workloads(jobs in jobs(24, 11, 7), budget in budgets(10, 7)) {
        assert_agreement(&PlainMachine { nodes: 10, budget }, 7, &jobs);
    }

    #[test]
    fn deeper_queues(jobs in jobs(80, 40, 3), budget in budgets(33, 3)) {
        assert_agreement(&PlainMachine { nodes: 33, budget }, 3, &jobs);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases() / 50 + 1, ..ProptestConfig::default() })]

    /// Long enough for the tree of the queue's index.
    #[test]
    fn long_queues(jobs in jobs(400, 40, 3), budget in budgets(33, 3)) {
        assert_agreement(&PlainMachine { nodes: 33, budget }, 3, &jobs);
    }
}

/// Hundreds of workloads for each test by default; `PROPTEST_CASES` asks for more.
pub(crate) fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

/// A limit that is enforced ends the job on time; one that was raised does not.
#[test]
fn limits_kill_unless_they_were_raised() {
    let jobs = [rigid(0, 1, 10, 25)];
    let mut workload = workload(&jobs);
    let machine = Machine::of_processors(4).unwrap();
    let end = |workload: &Workload| {
        let run = Simulation::new(&machine, workload).run(&mut Easy::default());
        (run.records[0].state, run.records[0].end)
    };
    assert_eq!(end(&workload), (State::Killed, Instant::from_secs(10)));
    assert_eq!(workload.raise_estimates(), 1);
    assert_eq!(end(&workload), (State::Completed, Instant::from_secs(25)));
}
