//! Stories worked out by hand.

use busbar::ledger::Ledger;
use busbar::model::elastic::Kind;
use busbar::model::{Model, OperatingPoint};
use busbar::policy::{Changes, Decision, Parm, Policy, View};
use busbar::queue::{Queue, SizeClasses};
use busbar::sim::Change;

use super::*;

fn watts(watts: u32) -> Watts {
    Watts::from_watts(watts)
}

fn second(seconds: u32) -> Instant {
    Instant::from_secs(seconds)
}

/// Jobs of one kind: submitted when, nodes, seconds. Processors under one of these caps, nodes
/// that draw 56 W besides.
fn run(
    nodes: u32,
    caps: &[u32],
    budget: Budget,
    spec: ParmSpec,
    kind: Kind,
    jobs: &[(u32, u32, u32)],
) -> Run {
    let machine = Machine { node_power: watts(116), ..Machine::of_processors(nodes).unwrap() };
    let caps = caps.iter().map(|cap| watts(*cap)).collect();
    let feed = NodeCaps::new(watts(56), caps, watts(60)).unwrap();
    let jobs = jobs.iter().zip(1..).map(|(&(submit, nodes, seconds), number)| {
        let time = Span::from_secs(seconds);
        (Job::new(number, second(submit), nodes, time), time)
    });
    let workload = Workload::new("story", jobs);
    let kinds = vec![kind; workload.jobs().len()];
    let model = Elastic::of_kinds(&machine, feed, &kinds, workload.jobs());
    let mut policy = Watched::new(spec, &machine, &budget);
    let simulation = Simulation::new(&machine, &workload).model(&model).budget(budget.clone());
    let run = simulation.run(&mut policy);
    let journal = &policy.journal;
    Replay { machine: &machine, workload: &workload, budget: &budget, model: &model, journal }
        .check(&run);
    assert!(run.records.iter().all(|record| record.state == State::Completed));
    run
}

/// Ends are rounded up to a millisecond where nodes or caps are not those asked for.
fn assert_end(run: &Run, job: u32, millis: u64) {
    let end = run.records[job as usize].end.millis();
    assert!((millis..=millis + 1).contains(&end), "#{job} ends at {end}, not {millis}");
}

/// Parallelism of twice the nodes asked for, 4, with a variation of one: on n ≤ 8 nodes a job takes
/// (15/n + 1)/16 of its serial time: 8.5/16 on 2, 4.75/16 on 4, 2.875/16 on 8.
const SUBLINEAR: Kind =
    Kind { application: Application::JACOBI2D, parallelism: 2.0, variation: 1.0 };

/// Two jobs share 8 nodes half and half: 4 and 4 have speed-ups of 2 · 8.5/4.75 = 3.58 together, 3
/// and 5 have 8.5/6 + 8.5/4 = 3.54, 2 and 6 have 1 + 8.5/3.5 = 3.43, and all 8 for one have 2.96.
/// The second ends at 95 s. The first has then done 95 s of 950 s; on 8 nodes the other 90 % take
/// 0.9 · 575 s. First it has to move: 4 nodes boot in 72.73 s + 4 · 0.01904 s, and half of 2048 MB
/// cross 2 · 4^(2/3) links of 425 MB/s in 0.478 s; together 73.285 s, and twice that.
#[test]
fn a_job_expands_when_its_neighbour_ends() {
    let spec = spec(Flexibility::Malleable, 0.0, 0);
    let jobs = [(0, 4, 950), (0, 4, 95)];
    let run = run(8, &[60], Budget::unlimited(), spec, SUBLINEAR, &jobs);
    assert_end(&run, 1, 95_000);
    assert_end(&run, 0, 95_000 + 146_570 + 517_500);
    let pause = Span::from_millis(146_570);
    let change = Change {
        at: second(95),
        job: JobId(0),
        nodes: 8,
        cap: watts(116),
        power: watts(928),
        pause,
    };
    assert_eq!(run.changes, [change]);
    let rest = u128::from(run.records[0].end.millis() - 95_000);
    assert_eq!(run.total(JobId(0)).node_millis, 4 * 95_000 + 8 * rest);
}

/// The same, but nodes are kept: the first goes on for its 950 s.
#[test]
fn a_moldable_job_keeps_its_nodes() {
    let spec = spec(Flexibility::Moldable, 0.0, 0);
    let run = run(8, &[60], Budget::unlimited(), spec, SUBLINEAR, &[(0, 4, 950), (0, 4, 95)]);
    assert_eq!(run.records[0].end, second(950));
    assert!(run.changes.is_empty());
}

/// 720 W: one job of 4 nodes at 116 W, or two at 88 W, where Jacobi2D takes 1/0.92 as long. Two at
/// a speed-up of 1 are worth more than one at 1/0.92. The first has done a tenth when the second
/// comes, and half of itself while the second runs its 500 s; the other 40 % of 920 s are 368 s.
#[test]
fn a_job_is_capped_when_another_arrives() {
    let spec = spec(Flexibility::None, 0.0, 0);
    let budget = Budget::constant(watts(720));
    let run = run(8, &[32, 60], budget, spec, SUBLINEAR, &[(0, 4, 920), (92, 4, 460)]);
    assert_eq!(run.records[1].start, second(92));
    assert_end(&run, 1, 592_000);
    assert_end(&run, 0, 960_000);
    let pause = Span::ZERO;
    let change = |at, node_watts| Change {
        at,
        job: JobId(0),
        nodes: 4,
        cap: watts(node_watts),
        power: watts(4 * node_watts),
        pause,
    };
    let at = run.records[1].end;
    assert_eq!(run.changes, [change(second(92), 88), change(at, 116)]);
    // 92 s and 368 s at 464 W, 500 s at 352 W.
    let joules = run.total(JobId(0)).energy.as_f64();
    assert!((joules - (460.0 * 464.0 + 500.0 * 352.0)).abs() < 1.0, "{joules}");
}

/// A first job has all 8 nodes until 500 s, or until 543.5 s at its slowest; from 545 s to 5000 s
/// there are 100 W. Another comes at 100 s and takes 2000 s, for which there is no power before
/// 5000 s. To slow the first one down would help nobody.
#[test]
fn who_ends_before_a_limit_falls_is_left_alone() {
    let spec = spec(Flexibility::None, 0.0, 0);
    let steps =
        vec![(second(0), watts(1000)), (second(545), watts(100)), (second(5000), watts(1000))];
    let budget = Budget::from_steps(steps).unwrap();
    let run = run(8, &[32, 60], budget, spec, SUBLINEAR, &[(0, 8, 500), (100, 8, 2000)]);
    assert_eq!((run.records[0].end, run.records[1].start), (second(500), second(5000)));
    assert_eq!(run.excursions.time, Span::ZERO);
    assert!(run.changes.is_empty());
}

/// Four jobs on 2 nodes each; three end after 922 · 8.5/4.75 = 1649.9 s, the fourth after 1700 s. To
/// move takes about 148 s: it would end later for it, and stays where it is. One that has 2358 s to
/// go gains by it.
#[test]
fn nobody_moves_who_would_end_later_for_it() {
    let spec = spec(Flexibility::Malleable, 0.0, 0);
    let moves = |seconds: u32| {
        let jobs = [(0, 4, seconds), (0, 4, 922), (0, 4, 922), (0, 4, 922)];
        let run = run(8, &[60], Budget::constant(watts(1000)), spec, SUBLINEAR, &jobs);
        (run.changes.len(), run.records[0].end)
    };
    assert_eq!(moves(950), (0, Instant::from_millis(1_700_001)), "rounded up");
    let (changes, end) = moves(2240);
    assert_eq!(changes, 1);
    assert!(end < second(4008), "{end}");
}

/// A job draws 464 W on 4 nodes when the limit falls to 300 W, which nobody had foreseen. Under the
/// lowest cap it draws 352 W: less, though still too much. It has done 92 s of 920 s; the rest
/// takes 900 s there. The one that comes at the same time has to wait.
#[test]
fn a_limit_that_nobody_foresaw() {
    let machine = Machine { node_power: watts(116), ..Machine::of_processors(8).unwrap() };
    let feed = NodeCaps::new(watts(56), vec![watts(32), watts(60)], watts(60)).unwrap();
    let job = |number, submit| Job::new(number, second(submit), 4, Span::from_secs(920));
    let jobs = [job(1, 0), job(2, 92)];
    let model = Elastic::of_kinds(&machine, feed, &[SUBLINEAR; 2], &jobs);
    let mut policy = Parm::with(spec(Flexibility::None, 0.0, 0));
    let mut decide = |ledger: &Ledger, job: JobId| {
        let footprint = model.footprint(job, &jobs[job.index()]);
        let mut queue = Queue::new(SizeClasses::of_sizes([footprint.nodes]), jobs.len());
        queue.insert(job, &footprint);
        let (now, arrived) = (ledger.now(), &[job]);
        let changes = Changes { arrived, machine: true, ..Changes::default() };
        let view = View {
            now,
            jobs: &jobs,
            queue: &queue,
            ledger,
            model: &model,
            changes,
            waited: None,
            eligible: &[],
        };
        let mut decisions = Vec::new();
        policy.decide(&view, &mut decisions);
        decisions
    };
    let foreseen = Ledger::new(&machine, Budget::constant(watts(1000)));
    let nominal = model.nominal(JobId(0), &jobs[0]);
    assert_eq!(decide(&foreseen, JobId(0)), [Decision::Start { job: JobId(0), point: nominal }]);

    // This ledger is told that the job is to be gone by then.
    let steps = vec![(second(0), watts(1000)), (second(92), watts(300))];
    let mut ledger = Ledger::new(&machine, Budget::from_steps(steps).unwrap());
    let short = OperatingPoint { time: Span::from_secs(92), ..nominal };
    ledger.start(JobId(0), &short).unwrap();
    ledger.advance(second(92));
    let decisions = decide(&ledger, JobId(1));
    let [Decision::Change { job: JobId(0), point, pause, left }] = decisions[..] else {
        panic!("{decisions:?}");
    };
    assert_eq!((point.nodes, point.power, pause), (4, watts(352), Span::ZERO));
    assert!((900_000..=900_001).contains(&left.millis()), "{left}");
    ledger.change(JobId(0), &point, left).unwrap();
    assert_eq!((ledger.power(), ledger.check()), (watts(352), Ok(())));
}
