use super::*;
use std::path::PathBuf;

use busbar_core::budget::BudgetSpec;
use busbar_core::machine::Machine;
use busbar_core::model::pass::Application;
use busbar_core::model::{Caps, Elastic, Menu, NodeCaps, OperatingPoint, Outcome, Rigid, Rung};
use busbar_core::policy::{Decision, Easy, Parm, ParmSpec, Policy, View};
use busbar_core::sim::{Simulation, State as SimState};
use busbar_core::units::Watts;
use busbar_core::workload::Workload;
use busbar_workloads::demo::demo;

const AT: fn(u32) -> Instant = Instant::from_secs;

fn allotment(point: &OperatingPoint) -> Allotment {
    Allotment {
        nodes: (0..point.nodes).map(|node| (node, point.cap)).collect(),
        cores: point.cores,
        cap: point.cap,
        time: point.time,
        power: point.power,
        speed: 1_000_000,
        part: None,
    }
}

fn attempt(job: u64) -> Attempt {
    Attempt { job, number: 1 }
}

fn launch(job: u64, allotment: Allotment) -> Launch {
    Launch {
        attempt: attempt(job),
        command: vec!["true".to_owned()],
        folder: PathBuf::from("/"),
        environment: Vec::new(),
        output: PathBuf::from("/dev/null"),
        errors: PathBuf::from("/dev/null"),
        owner: None,
        allotment,
        handle: None,
        is_free: false,
    }
}

/// A model in which a job takes longer the lower its cap, and, where its nodes have names, longer the
/// higher their numbers.
struct Slowing;

impl Slowing {
    fn point(watts: u32) -> OperatingPoint {
        let (cap, time) = (Watts::from_watts(watts), Span::from_secs(9_000));
        OperatingPoint { nodes: 1, cores: 1, cap, time, power: cap }
    }
}

impl Model for Slowing {
    fn nominal(&self, _id: JobId, _job: &Job) -> OperatingPoint {
        Slowing::point(100)
    }

    fn menu(&self, id: JobId, job: &Job) -> Menu {
        Menu::new(self.nominal(id, job), [Slowing::point(50), Slowing::point(25)])
    }

    fn outcome(&self, _id: JobId, _job: &Job, run_time: Span, point: &OperatingPoint) -> Outcome {
        let millis = run_time.millis() * 100_000 / point.cap.milliwatts();
        Outcome { run_time: Span::from_millis(millis), power: point.power }
    }

    fn outcome_on(
        &self,
        _id: JobId,
        _job: &Job,
        run_time: Span,
        point: &OperatingPoint,
        caps: &Caps,
    ) -> Outcome {
        let times: u64 = caps.nodes().map(|node| u64::from(node.0) + 1).sum();
        Outcome { run_time: Span::from_millis(run_time.millis() * times), power: point.power }
    }

    fn rungs(&self) -> &[Rung] {
        &[]
    }
}

/// Jobs 1, 2, … of this many seconds each.
fn engine(naming: Naming, seconds: &[u32]) -> Replay {
    let real = |(number, seconds): (u64, &u32)| {
        let run_time = Span::from_secs(*seconds);
        let job = Job::new(number, Instant::ZERO, 1, run_time);
        (number, Real { id: JobId(number as u32 - 1), job, run_time })
    };
    Replay::new(Arc::new(Slowing), naming, (1..).zip(seconds).map(real))
}

/// 100 s of work. At full power until 40 s; then 60 s of work at half the speed are 120 s, after 10 s of
/// moving: until 170 s. It stands still from 100 s to 300 s: until 370 s.
#[test]
fn a_job_by_hand() {
    let driver = engine(Naming::Counted, &[100]);
    let mut engine: Box<dyn Immediate> = Box::new(driver.clone());
    assert_eq!(driver.next_end(), None);
    engine.start(&launch(1, allotment(&Slowing::point(100)))).unwrap();
    assert_eq!(driver.next_end(), Some(AT(100)));
    driver.advance(AT(40));
    engine.set(attempt(1), &allotment(&Slowing::point(50)), Span::from_secs(10)).unwrap();
    assert_eq!(driver.next_end(), Some(AT(170)));
    driver.advance(AT(100));
    engine.signal(attempt(1), Signal::Suspend).unwrap();
    assert_eq!(driver.next_end(), None);
    driver.advance(AT(300));
    engine.signal(attempt(1), Signal::Resume).unwrap();
    assert_eq!(driver.next_end(), Some(AT(370)));
    driver.advance(Instant::from_millis(369_999));
    assert_eq!(engine.ended(), []);
    driver.advance(AT(370));
    assert_eq!(engine.ended(), [(attempt(1), End::Exited(0))]);
    assert_eq!(engine.ended(), [], "it is told once");
    assert_eq!(
        engine.find(attempt(1)).unwrap(),
        Found::Ended { end: End::Exited(0), ago: Span::ZERO }
    );
    engine.forget(attempt(1));
    assert_eq!(engine.find(attempt(1)).unwrap(), Found::NeverStarted);
}

/// Jobs 1 to 3 take 30 s, 20 s and 30 s.
#[test]
fn ends_come_in_order() {
    let driver = engine(Naming::Counted, &[30, 20, 30, 99]);
    let mut engine = driver.clone();
    for job in [4, 3, 2, 1] {
        engine.start(&launch(job, allotment(&Slowing::point(100)))).unwrap();
    }
    driver.advance(AT(10));
    engine.signal(attempt(4), Signal::Terminate).unwrap();
    driver.advance(AT(40));
    let ended: Vec<u64> = engine.ended().iter().map(|(attempt, _)| attempt.job).collect();
    assert_eq!(ended, [4, 2, 1, 3]);
    assert_eq!(
        engine.find(attempt(4)).unwrap(),
        Found::Ended { end: End::Signalled(15), ago: Span::from_secs(30) }
    );
}

/// 10 s of work on the second and third node: five times as long.
#[test]
fn named_nodes_count_where_they_do() {
    let mut on = allotment(&Slowing::point(100));
    on.nodes = vec![(1, on.cap), (2, on.cap)];
    for (naming, end) in [(Naming::Counted, 10), (Naming::Named, 50)] {
        let mut engine = engine(naming, &[10]);
        engine.start(&launch(1, on.clone())).unwrap();
        assert_eq!(engine.next_end(), Some(AT(end)));
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut engine = engine(Naming::Counted, &[10]);
    let one = launch(1, allotment(&Slowing::point(100)));
    let unknown = launch(7, one.allotment.clone());
    assert!(matches!(engine.start(&unknown), Err(EngineError::Unknown { .. })));
    assert!(matches!(
        engine.set(attempt(1), &one.allotment, Span::ZERO),
        Err(EngineError::Unknown { .. })
    ));
    engine.start(&one).unwrap();
    assert!(matches!(engine.start(&one), Err(EngineError::Again { .. })));
    engine.signal(attempt(1), Signal::Kill).unwrap();
    assert!(matches!(engine.signal(attempt(1), Signal::Kill), Err(EngineError::Unknown { .. })));
}

/// A policy, and what it decides when.
struct Journal<'a> {
    inner: &'a mut dyn Policy,
    decisions: Vec<(Instant, Decision)>,
}

impl Policy for Journal<'_> {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        self.inner.decide(view, decisions);
        self.decisions.extend(decisions.iter().map(|decision| (view.now, decision.clone())));
    }

    fn adjusts(&self) -> bool {
        self.inner.adjusts()
    }
}

/// What a policy decided in a simulation, done again with the engine: every job ends at the instant at
/// which it did. How many changes there were.
fn replayed(
    machine: &Machine,
    workload: &Workload,
    model: Arc<dyn Model>,
    policy: &mut dyn Policy,
) -> usize {
    let budget = "60%".parse::<BudgetSpec>().unwrap().resolve(machine).unwrap();
    let mut journal = Journal { inner: policy, decisions: Vec::new() };
    let simulation = Simulation::new(machine, workload).budget(budget).model(&*model);
    let run = simulation.run(&mut journal);
    assert_eq!(run.violations, 0);

    let real = |(id, job): (u32, &Job)| {
        (
            u64::from(id) + 1,
            Real { id: JobId(id), job: *job, run_time: workload.run_times()[id as usize] },
        )
    };
    let jobs = (0..).zip(workload.jobs()).map(real);
    let mut engine = Replay::new(Arc::clone(&model), Naming::Counted, jobs);
    let mut ended: Vec<(Instant, u64)> = Vec::new();
    let mut changes = 0;
    let mut decisions = journal.decisions.into_iter().peekable();
    loop {
        let decided = decisions.peek().map(|(at, _)| *at);
        let Some(now) = decided.into_iter().chain(engine.next_end()).min() else { break };
        engine.advance(now);
        ended.extend(engine.ended().iter().map(|(attempt, _)| (now, attempt.job)));
        while let Some((_, decision)) = decisions.next_if(|(at, _)| *at == now) {
            match decision {
                Decision::Start { job, point } => {
                    engine.start(&launch(u64::from(job.0) + 1, allotment(&point))).unwrap();
                }
                Decision::Change { job, point, pause, .. } => {
                    changes += 1;
                    let attempt = attempt(u64::from(job.0) + 1);
                    engine.set(attempt, &allotment(&point), pause).unwrap();
                }
                _ => {}
            }
        }
        // Who starts with nothing to do ends at once.
        engine.advance(now);
    }
    let mut expected: Vec<(Instant, u64)> = (1..)
        .zip(&run.records)
        .filter(|(_, record)| record.state == SimState::Completed)
        .map(|(number, record)| (record.end, number))
        .collect();
    expected.sort_unstable();
    assert!(expected.len() > 20);
    assert_eq!(ended, expected);
    changes
}

#[test]
fn jobs_end_as_in_the_simulation() {
    let mut workload = demo();
    workload.slice(0..60);
    let machine = Machine::of_processors(256).unwrap();
    let rigid = Arc::new(Rigid::on(&machine));
    assert_eq!(replayed(&machine, &workload, rigid, &mut Easy::default()), 0);

    let feed = NodeCaps::of(&machine, 4);
    let mix = [Application::LEAN_MD, Application::JACOBI2D];
    let elastic = Arc::new(Elastic::new(&machine, feed, &mix, workload.jobs(), 7));
    let changes = replayed(&machine, &workload, elastic, &mut Parm::with(ParmSpec::default()));
    assert!(changes > 20, "jobs change while they run: {changes}");
}
