//! A run that is split in two: what runs at an instant is handed to a simulation that begins there.

use busbar::budget::Budget;
use busbar::job::Job;
use busbar::ledger::Violation;
use busbar::machine::Machine;
use busbar::model::{Model, Rigid, Work};
use busbar::policy::{Adopted, Easy, PolicySpec, Setting};
use busbar::sim::{Record, Run, Simulation, State, Underway};
use busbar::units::{Instant, JobId, NodeId, Span, Watts};
use busbar::workload::Workload;
use proptest::prelude::*;

use crate::agreement::cases;

const SECOND: fn(u32) -> Instant = Instant::from_secs;

/// Gap to the one before, nodes, requested time and run time in seconds.
type Asked = (u32, u32, u32, u32);

fn workload(jobs: &[Asked]) -> Workload {
    let mut submit = 0;
    let jobs = jobs.iter().zip(0..).map(|(&(gap, nodes, requested, run), number)| {
        submit += gap;
        let job = Job::new(number, SECOND(submit), nodes, Span::from_secs(requested));
        (job, Span::from_secs(run))
    });
    Workload::new("whole", jobs)
}

/// A job that has run as asked for since it started.
fn underway(machine: &Machine, id: u32, job: &Job, start: Instant) -> Underway {
    let (id, point) = (JobId(id), Rigid::on(machine).nominal(JobId(id), job));
    Underway {
        running: Adopted { job: id, point, caps: None, work: Work::ALL, since: start, moved: None },
        nodes: None,
        until: start + point.time,
        start,
    }
}

/// The rest of a run from an instant on: the records of all jobs that have not ended by then, in order.
fn rest(
    machine: &Machine,
    budget: &Budget,
    policy: &str,
    whole: &Workload,
    run: &Run,
    at: Instant,
) -> Run {
    let is_left = |record: &Record| record.end > at && !matches!(record.state, State::Rejected(_));
    let left = (0..).map(JobId).zip(whole.jobs()).zip(&run.records);
    let left: Vec<_> = left.filter(|(_, record)| is_left(record)).collect();
    let jobs = left.iter().map(|((id, job), _)| (**job, whole.run_time(*id)));
    let workload = Workload::new("rest", jobs);
    let running = (0..).zip(&left).filter(|(_, (_, record))| record.start <= at);
    let running = running.map(|(id, ((_, job), record))| underway(machine, id, job, record.start));
    let policy: PolicySpec = policy.parse().unwrap();
    Simulation::new(machine, &workload)
        .budget(budget.clone())
        .begin_at(at)
        .already_running(running.collect())
        .run(policy.build(&Setting::default()).as_mut())
}

/// Jobs on ten nodes, limits in watts, and an instant.
fn stories() -> impl Strategy<Value = (Vec<Asked>, Vec<(u32, u32)>, u32)> {
    let gap = prop_oneof![Just(0u32), 1u32..40];
    let job = (gap, 1u32..=10, 0u32..120, 0u32..120);
    let constant = (500u32..1100).prop_map(|watts| vec![(0, watts)]);
    let dips = (600u32..1100, 1u32..200, 300u32..600, 1u32..200)
        .prop_map(|(high, at, low, length)| vec![(0, high), (at, low), (at + length, high)]);
    (prop::collection::vec(job, 1..=20), prop_oneof![constant, dips], 0u32..600)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// Whoever is left starts and ends as he does in the whole run.
    #[test]
    fn a_run_that_is_split_goes_on(
        policy in prop::sample::select(vec!["fcfs", "easy"]),
        (jobs, limits, at) in stories(),
    ) {
        let (machine, whole, at) = (Machine::of_processors(10).unwrap(), workload(&jobs), SECOND(at));
        let limits = limits.iter().map(|(at, watts)| (SECOND(*at), Watts::from_watts(*watts)));
        let budget = Budget::from_steps(limits.collect()).unwrap();
        let spec: PolicySpec = policy.parse().unwrap();
        let run = Simulation::new(&machine, &whole)
            .budget(budget.clone())
            .run(spec.build(&Setting::default()).as_mut());
        prop_assert_eq!((run.violations, run.unfinished), (0, 0));
        let rest = rest(&machine, &budget, policy, &whole, &run, at);
        prop_assert_eq!((rest.violations, rest.unfinished), (0, 0), "{:?}", rest.first_violations);
        let key = |record: &Record| (record.start, record.end, record.state, record.power);
        let is_left = |record: &&Record| {
            record.end > at && !matches!(record.state, State::Rejected(_))
        };
        let expected: Vec<_> = run.records.iter().filter(is_left).map(key).collect();
        prop_assert_eq!(rest.records.iter().map(key).collect::<Vec<_>>(), expected);
    }
}

/// Three jobs on ten nodes at 100 s. The first runs since 20 s and takes 120 s. The second should have
/// been done at 90 s; it is expected until 110 s. The third waits for both since 50 s.
#[test]
fn a_forecast_by_hand() {
    let machine = Machine::of_processors(10).unwrap();
    let jobs = workload(&[(0, 4, 200, 120), (10, 4, 80, 80), (40, 6, 60, 30)]);
    let mut running = vec![
        underway(&machine, 0, &jobs.jobs()[0], SECOND(20)),
        underway(&machine, 1, &jobs.jobs()[1], SECOND(10)),
    ];
    running[1].until = SECOND(110);
    running[1].nodes = Some([2, 5, 6, 9].map(NodeId).to_vec());
    let simulation = Simulation::new(&machine, &jobs).begin_at(SECOND(100));
    let run = simulation.already_running(running.clone()).run(&mut Easy::default());
    let times = |run: &Run| {
        let time = |record: &Record| (record.start.millis() / 1000, record.end.millis() / 1000);
        run.records.iter().map(time).collect::<Vec<_>>()
    };
    assert_eq!(times(&run), [(20, 140), (10, 110), (110, 140)]);
    assert_eq!((run.begin, run.violations), (SECOND(100), 0));
    // From 100 s on: 4 nodes for 40 s, 4 for 10 s and 6 for 30 s, at 100 W each.
    assert_eq!(run.energy.as_f64(), 100.0 * (4.0 * 40.0 + 4.0 * 10.0 + 6.0 * 30.0));

    // A node that there is not: the job waits, and so do those behind it.
    running[1].nodes = Some([2, 5, 6, 10].map(NodeId).to_vec());
    let simulation = Simulation::new(&machine, &jobs).begin_at(SECOND(100));
    let run = simulation.already_running(running).run(&mut Easy::default());
    let taken = Violation::NodeTaken { job: JobId(1), node: NodeId(10) };
    assert_eq!(run.first_violations, [(SECOND(100), taken)]);
    assert_eq!(times(&run), [(20, 140), (100, 180), (140, 170)]);
}
