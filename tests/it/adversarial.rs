//! Policies that mean harm, or nothing at all: the ledger stays intact and the run ends with a
//! clear report. (In these builds the ledger adds itself up after every event.)

use busbar::budget::Budget;
use busbar::ledger::Violation;
use busbar::machine::Machine;
use busbar::metrics::{BSLD_THRESHOLD, RunContext, Summary};
use busbar::model::elastic::Kind;
use busbar::model::pass::Application;
use busbar::model::{Elastic, NodeCaps, OperatingPoint};
use busbar::policy::{Decision, DropReason, Easy, Policy, View};
use busbar::report::summary_facts;
use busbar::sim::{Outage, Outages, Run, Simulation, State};
use busbar::units::{Instant, JobId, NodeId, Span, Watts};
use busbar::workload::Workload;
use busbar::workload::demo::demo;

use crate::agreement::{rigid, workload};

struct Rule<F>(F);

impl<F: FnMut(&View<'_>, &mut Vec<Decision>)> Policy for Rule<F> {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        (self.0)(view, decisions);
    }
}

fn rule<F: FnMut(&View<'_>, &mut Vec<Decision>)>(rule: F) -> Rule<F> {
    Rule(rule)
}

/// The same, of one that says that it changes jobs while they run.
struct Adjusting<F>(F);

impl<F: FnMut(&View<'_>, &mut Vec<Decision>)> Policy for Adjusting<F> {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        (self.0)(view, decisions);
    }

    fn adjusts(&self) -> bool {
        true
    }
}

fn adjusting<F: FnMut(&View<'_>, &mut Vec<Decision>)>(rule: F) -> Adjusting<F> {
    Adjusting(rule)
}

const LIMIT: Watts = Watts::from_watts(20_000);

/// Jobs of the demo that ask for at most 200 nodes, which is what the limit can feed.
const FITTING: u64 = 1962;

#[test]
fn so_many_jobs_fit_the_limit() {
    assert_eq!(demo().jobs().iter().filter(|job| job.nodes <= 200).count() as u64, FITTING);
}

/// Runs the demo under a budget and checks what must hold whatever the policy does.
fn run(policy: &mut dyn Policy) -> (Run, Summary) {
    let (machine, workload) = (Machine::of_processors(256).unwrap(), demo());
    let budget = Budget::constant(LIMIT);
    let run = Simulation::new(&machine, &workload).budget(budget.clone()).run(policy);
    let subject = RunContext {
        policy: "adversary",
        machine: &machine,
        workload: &workload,
        budget: &budget,
        bsld_threshold: BSLD_THRESHOLD,
        has_gears: true,
        has_reference: true,
        freedoms: None,
        world: None,
        windows: None,
    };
    let summary = Summary::of(&subject, &run);
    let accounted = summary.completed
        + summary.killed
        + summary.rejected
        + summary.dropped
        + summary.unfinished;
    assert_eq!(accounted, summary.jobs, "every job is accounted for");
    assert!(run.peak <= LIMIT, "{} drawn under {LIMIT}", run.peak);
    (run, summary)
}

#[test]
fn doing_nothing_leaves_everybody_waiting() {
    let (_, summary) = run(&mut rule(|_, _| {}));
    assert_eq!((summary.unfinished, summary.completed), (FITTING, 0));
    assert_eq!((summary.mean_wait_s, summary.mean_bsld), (None, None));
    assert!(summary_facts(&summary).text().contains("1962 never started"));
}

#[test]
fn rejecting_all_drops_everybody() {
    let (_, summary) = run(&mut rule(|view, decisions| {
        decisions.extend(
            view.queue.iter().map(|job| Decision::Drop { job, reason: DropReason::Unsaid }),
        );
    }));
    assert_eq!((summary.dropped, summary.violations), (FITTING, 0));
    assert!(summary_facts(&summary).text().contains("1962 dropped by the policy"));
}

#[test]
fn starting_everything_twice_is_refused_once_each() {
    let mut easy = Easy::default();
    let (run, summary) = run(&mut rule(|view, decisions| {
        easy.decide(view, decisions);
        decisions.extend(decisions.clone());
    }));
    assert_eq!(summary.completed + summary.rejected, 2000);
    assert_eq!(summary.violations, summary.completed);
    assert!(matches!(run.first_violations[0].1, Violation::AlreadyRunning { .. }));
    assert!(summary_facts(&summary).text().contains("decisions refused"));
}

#[test]
fn starting_everything_at_once_cannot_overdraw() {
    let (run, summary) = run(&mut rule(|view, decisions| {
        let starts = view.queue.iter().map(|job| Decision::Start { job, point: view.nominal(job) });
        decisions.extend(starts);
    }));
    assert_eq!(summary.completed + summary.rejected, 2000);
    let kinds = |kind: fn(&Violation) -> bool| run.first_violations.iter().any(|v| kind(&v.1));
    assert!(kinds(|v| matches!(v, Violation::Nodes { .. } | Violation::Power { .. })));
}

#[test]
fn points_that_are_not_on_the_menu_are_refused() {
    let cheaper = |view: &View<'_>, job: JobId| OperatingPoint {
        power: Watts::from_milliwatts(1),
        nodes: 1,
        ..view.nominal(job)
    };
    let (run, summary) = run(&mut rule(|view, decisions| {
        let starts =
            view.queue.iter().map(|job| Decision::Start { job, point: cheaper(view, job) });
        decisions.extend(starts);
    }));
    assert!(run.violations > 0);
    assert!(run.first_violations.iter().all(|v| matches!(v.1, Violation::NotOnMenu { .. })));
    // A serial job at one milliwatt is not what it asked for either.
    assert_eq!(summary.completed, 0);
}

#[test]
fn jobs_that_do_not_exist_are_refused() {
    let (run, _) = run(&mut rule(|view, decisions| {
        let point = view.nominal(JobId(0));
        for job in [JobId(u32::MAX), JobId(1_000_000), JobId(1999)] {
            decisions.push(Decision::Start { job, point });
            decisions.push(Decision::Drop { job, reason: DropReason::Unsaid });
        }
    }));
    assert!(matches!(run.first_violations[0].1, Violation::NotWaiting { .. }));
}

#[test]
fn asking_to_be_woken_for_ever_comes_to_an_end() {
    let (run, summary) = run(&mut rule(|view, decisions| {
        decisions.push(Decision::WakeAt(view.now));
        decisions.push(Decision::WakeAt(view.now + Span::from_millis(1)));
    }));
    assert_eq!(summary.unfinished, FITTING);
    assert!(matches!(run.first_violations[0].1, Violation::WakeInThePast { .. }));
}

#[test]
fn a_failing_node_sends_its_job_back_to_its_place() {
    // Four nodes. The first job, on all of them, loses node 2 after 5 s; the node is back at 20 s
    // and the job runs from the beginning. The second, on one node, uses the time between.
    let jobs = [rigid(0, 4, 30, 30), rigid(1, 1, 10, 10)];
    let (machine, workload) = (Machine::of_processors(4).unwrap(), workload(&jobs));
    let second = Instant::from_secs;
    let outage = Outage { node: NodeId(2), down: second(5), up: second(20) };
    let run = Simulation::new(&machine, &workload)
        .outages(Outages::new(vec![outage]))
        .run(&mut Easy::default());
    let record = &run.records[0];
    assert_eq!((record.start, record.end, record.restarts), (second(20), second(50), 1));
    let record = &run.records[1];
    assert_eq!((record.start, record.end, record.restarts), (second(5), second(15), 0));
    assert!(run.records.iter().all(|record| record.state == State::Completed));
}

#[test]
fn a_node_that_never_comes_back_leaves_jobs_waiting() {
    let jobs = [rigid(10, 2, 30, 30)];
    let (machine, workload) = (Machine::of_processors(2).unwrap(), workload(&jobs));
    let outage = Outage { node: NodeId(0), down: Instant::ZERO, up: Instant::NEVER };
    let run = Simulation::new(&machine, &workload)
        .outages(Outages::new(vec![outage]))
        .run(&mut Easy::default());
    assert_eq!((run.unfinished, run.records[0].state), (1, State::Waiting));
}

#[test]
fn an_empty_workload_is_a_run_of_nothing() {
    let machine = Machine::of_processors(2).unwrap();
    let workload = Workload::new("empty", []);
    let run = Simulation::new(&machine, &workload).run(&mut Easy::default());
    assert_eq!((run.records.len(), run.turns), (0, 0));
}

/// Four elastic jobs that ask for 2 nodes each, on 8 nodes that draw 88 W or 116 W and may draw all
/// of it together.
fn run_elastic(policy: &mut dyn Policy) -> Run {
    let watts = Watts::from_watts;
    let machine = Machine { node_power: watts(116), ..Machine::of_processors(8).unwrap() };
    let jobs: Vec<_> = (0..4).map(|place| rigid(place, 2, 4600, 4600)).collect();
    let workload = workload(&jobs);
    let feed = NodeCaps::new(watts(56), vec![watts(32), watts(60)], watts(60)).unwrap();
    let kind = Kind { application: Application::JACOBI2D, parallelism: 2.0, variation: 0.0 };
    let model = Elastic::of_kinds(&machine, feed, &[kind; 4], workload.jobs());
    let limit = watts(8 * 116);
    let run = Simulation::new(&machine, &workload)
        .model(&model)
        .budget(Budget::constant(limit))
        .run(policy);
    assert!(run.records.iter().all(|record| record.state == State::Completed));
    assert!(run.peak <= limit && run.peak_held <= limit);
    run
}

fn start_all(view: &View<'_>, decisions: &mut Vec<Decision>) {
    let starts = view.queue.iter().map(|job| Decision::Start { job, point: view.nominal(job) });
    decisions.extend(starts);
}

/// A change of a job to the first point of its menu that is wanted.
fn change(view: &View<'_>, job: JobId, wanted: fn(&OperatingPoint) -> bool) -> Decision {
    let point = *view.menu(job).iter().find(|point| wanted(point)).unwrap();
    Decision::Change { job, point, pause: Span::ZERO, left: point.time }
}

fn running(view: &View<'_>) -> Vec<JobId> {
    view.ledger.running().iter().map(|holding| holding.job).collect()
}

#[test]
fn changes_that_were_not_announced_are_refused() {
    let run = run_elastic(&mut rule(|view, decisions| {
        let lower =
            running(view).into_iter().map(|job| change(view, job, |point| point.nodes == 1));
        decisions.extend(lower);
        start_all(view, decisions);
    }));
    assert!(run.violations > 0 && run.changes.is_empty());
    let is_typed = |v: &Violation| matches!(v, Violation::Unannounced { .. });
    assert!(run.first_violations.iter().all(|(_, violation)| is_typed(violation)));
    assert!(run.records.iter().all(|record| record.nodes == 2));
}

#[test]
fn changes_that_cannot_be_are_refused() {
    let is_half = |point: &OperatingPoint| point.nodes == 1;
    let is_double = |point: &OperatingPoint| point.nodes == 4;
    let run = run_elastic(&mut adjusting(|view, decisions| {
        // Waiting jobs, jobs nobody has heard of, and points that do not exist.
        decisions.extend(view.queue.iter().map(|job| change(view, job, is_half)));
        let Decision::Change { point, pause, left, .. } = change(view, JobId(0), is_half) else {
            return;
        };
        decisions.push(Decision::Change { job: JobId(u32::MAX), point, pause, left });
        let free_of_charge = OperatingPoint { power: Watts::ZERO, ..point };
        for job in running(view) {
            decisions.push(Decision::Change { job, point: free_of_charge, pause, left });
        }
        start_all(view, decisions);
        // More before anybody has less: there is room for nobody once all four run.
        if running(view).len() == 4 {
            return;
        }
        decisions
            .extend((0..view.jobs.len() as u32).map(|job| change(view, JobId(job), is_double)));
    }));
    let kinds = |kind: fn(&Violation) -> bool| run.first_violations.iter().any(|v| kind(&v.1));
    assert!(kinds(|v| matches!(v, Violation::HoldsNothing { .. })));
    assert!(kinds(|v| matches!(v, Violation::NotOnMenu { .. })));
    assert!(kinds(|v| matches!(v, Violation::Nodes { .. } | Violation::Power { .. })));
}

/// Every second all caps go down or up again. At 116 W a job takes 4600 s, at 88 W 5000 s: at every
/// other second of each it takes 2/(1/4600 + 1/5000) s = 4791.67 s.
#[test]
fn changing_every_job_every_second_comes_to_an_end() {
    let second = Span::from_secs(1);
    let mut turn = 0;
    let run = run_elastic(&mut adjusting(|view, decisions| {
        turn += 1;
        for job in running(view) {
            let is_high = |point: &OperatingPoint| point.nodes == 2 && point.cap > WATTS_100;
            let is_low = |point: &OperatingPoint| point.nodes == 2 && point.cap < WATTS_100;
            decisions.push(change(view, job, if turn % 2 == 0 { is_high } else { is_low }));
        }
        start_all(view, decisions);
        decisions.push(Decision::WakeAt(view.now + second));
    }));
    assert_eq!(run.violations, 0, "{:?}", run.first_violations);
    assert!(run.changes.len() > 4 * 4700, "{}", run.changes.len());
    for (job, record) in run.records.iter().enumerate() {
        let seconds = record.end.since(record.start).secs_f64();
        assert!((seconds - 4791.67).abs() < 2.0, "#{job}: {seconds} s");
        let mut done = 0.0;
        let (mut since, mut whole) = (record.start, 4600.0);
        for change in run.changes.iter().filter(|change| change.job.index() == job) {
            done += change.at.since(since).secs_f64() / whole;
            since = change.at;
            whole = if change.cap > WATTS_100 { 4600.0 } else { 5000.0 };
        }
        done += record.end.since(since).secs_f64() / whole;
        assert!((done - 1.0).abs() < 0.002 / 4600.0, "#{job} did {done} of its work");
        let total = run.total(JobId(job as u32)).node_millis;
        assert_eq!(total, 2 * u128::from(record.end.since(record.start).millis()));
    }
}

const WATTS_100: Watts = Watts::from_watts(100);
