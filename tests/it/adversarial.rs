//! Policies that mean harm, or nothing at all: the ledger stays intact and the run ends with a
//! clear report. (In these builds the ledger adds itself up after every event.)

use busbar::budget::Budget;
use busbar::ledger::Violation;
use busbar::machine::Machine;
use busbar::metrics::{BSLD_THRESHOLD, Subject, Summary};
use busbar::model::OperatingPoint;
use busbar::policy::{Decision, Easy, Policy, View};
use busbar::report::summary_table;
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
    let subject = Subject {
        policy: "adversary",
        machine: &machine,
        workload: &workload,
        budget: &budget,
        bsld_threshold: BSLD_THRESHOLD,
        has_gears: true,
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
    assert!(summary_table(&summary).contains("1962 never started"));
}

#[test]
fn rejecting_all_drops_everybody() {
    let (_, summary) = run(&mut rule(|view, decisions| {
        decisions.extend(view.queue.iter().map(|job| Decision::Drop { job }));
    }));
    assert_eq!((summary.dropped, summary.violations), (FITTING, 0));
    assert!(summary_table(&summary).contains("1962 dropped by the policy"));
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
    assert!(summary_table(&summary).contains("decisions refused"));
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
            decisions.push(Decision::Drop { job });
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
