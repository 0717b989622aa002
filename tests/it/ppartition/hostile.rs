//! Nodes and caps that cannot be had: each is refused with its reason, and the ledger is as it was.

use busbar::dispatch::{Applied, Dispatch, Nodes};
use busbar::ledger::{Holding, Ledger, Violation};
use busbar::model::{Caps, Model, NodeCap};
use busbar::policy::{Decision, Policy, View};
use busbar::units::JobId;

use super::*;

/// One who decides what he is told, and says what he says.
struct Told {
    decisions: Vec<Decision>,
    adjusts: bool,
    names_nodes: bool,
}

impl Policy for Told {
    fn decide(&mut self, _view: &View<'_>, decisions: &mut Vec<Decision>) {
        decisions.append(&mut self.decisions);
    }

    fn adjusts(&self) -> bool {
        self.adjusts
    }

    fn names_nodes(&self) -> bool {
        self.names_nodes
    }
}

/// All that a ledger says of four jobs on four nodes.
#[derive(Clone, Debug, PartialEq)]
struct Books {
    sums: (u32, Watts, Watts),
    running: Vec<Holding>,
    caps: Vec<Option<Caps>>,
    holders: Vec<Option<JobId>>,
    free: Vec<bool>,
}

fn books(ledger: &Ledger) -> Books {
    assert_eq!(ledger.check(), Ok(()));
    Books {
        sums: (ledger.free_nodes(), ledger.held(), ledger.free_power()),
        running: ledger.running().iter().copied().collect(),
        caps: (0..4).map(|job| ledger.caps(JobId(job)).cloned()).collect(),
        holders: (0..4).map(|node| ledger.holder(NodeId(node))).collect(),
        free: (0..4).map(|node| ledger.is_free(NodeId(node))).collect(),
    }
}

fn caps(caps: &[(u32, u32)]) -> Caps {
    let capped = caps
        .iter()
        .map(|&(node, watts)| NodeCap { node: NodeId(node), cap: Watts::from_watts(watts) });
    Caps::new(capped.collect()).unwrap()
}

fn start(job: u32, on: &[(u32, u32)]) -> Decision {
    Decision::StartOn { job: JobId(job), caps: caps(on) }
}

fn recap(job: u32, on: &[(u32, u32)]) -> Decision {
    Decision::Recap { job: JobId(job), caps: caps(on), left: Span::from_secs(100) }
}

/// Four processors of 50 W to 100 W under a budget of 300 W, and three jobs of two nodes each; the
/// first runs on nodes 1 and 3 under 60 W and 70 W. Then these decisions are taken.
fn attempt(
    decisions: Vec<Decision>,
    adjusts: bool,
    names_nodes: bool,
) -> Vec<Result<Applied, Violation>> {
    let curves = vec![vec![vec![(50_000, 100), (100_000, 150)]; 4]];
    let (machine, workload) = (machine(&curves, 0), workload(&[(0, 2, 100, 100, 1); 3]));
    let model = Varied::on(&machine, workload.jobs(), 1);
    let budget = Budget::constant(Watts::from_watts(300));
    let jobs = workload.jobs();
    let mut dispatch = Dispatch::new(&machine, budget, Nodes::Named, &model, jobs);
    for (id, job) in (0..).map(JobId).zip(jobs) {
        dispatch.arrive(&model, id, job).unwrap();
    }
    let first = vec![start(0, &[(1, 60), (3, 70)])];
    let mut good = Told { decisions: first, adjusts: true, names_nodes: true };
    dispatch.decide(&mut good, &model, jobs, |applied, _| {
        assert!(applied.is_ok(), "{applied:?}");
    });
    let before = books(dispatch.ledger());
    let mut outcomes = Vec::new();
    let mut bad = Told { decisions, adjusts, names_nodes };
    dispatch.decide(&mut bad, &model, jobs, |applied, _| outcomes.push(applied));
    let (after, waiting) = (books(dispatch.ledger()), dispatch.queue().len());
    if outcomes.iter().all(Result::is_err) {
        assert_eq!((after, waiting), (before, 2), "what is refused changes nothing");
    }
    outcomes
}

fn refusals(decisions: Vec<Decision>) -> Vec<Violation> {
    attempt(decisions, true, true).into_iter().map(|outcome| outcome.unwrap_err()).collect()
}

#[test]
fn nodes_that_cannot_be_had_are_refused() {
    let (job, none) = (JobId(1), Caps::new(vec![]));
    let taken = |node| Violation::NodeTaken { job, node: NodeId(node) };
    let refused = refusals(vec![
        start(1, &[(0, 60), (1, 60)]),
        start(1, &[(1, 60), (3, 60)]),
        start(1, &[(0, 60), (4, 60)]),
        start(1, &[(u32::MAX, 60)]),
        start(1, &[(0, 50), (1, 50), (2, 50)]),
    ]);
    let unknown = Violation::NotOffered { job };
    let too_many = Violation::Nodes { job, asked: 3, free: 2 };
    assert_eq!(refused, [taken(1), taken(1), unknown.clone(), unknown, too_many]);
    let twice = NodeCap { node: NodeId(0), cap: Watts::from_watts(60) };
    assert_eq!((Caps::new(vec![twice, twice]), none), (None, None), "that cannot even be said");
}

#[test]
fn caps_that_cannot_be_set_are_refused() {
    let job = JobId(1);
    let just_below = Caps::one(NodeId(0), Watts::from_milliwatts(49_999));
    let start_under = |caps| Decision::StartOn { job, caps };
    let recap_under = |job, caps| Decision::Recap { job, caps, left: Span::ZERO };
    let absurd = |milliwatts| Caps::one(NodeId(0), Watts::from_milliwatts(milliwatts));
    let refused = refusals(vec![
        start_under(just_below),
        start_under(absurd(0)),
        start_under(absurd(u64::MAX)),
        recap(0, &[(1, 60), (3, 49)]),
        recap_under(JobId(0), absurd(u64::MAX)),
    ]);
    assert!(refused.iter().all(|violation| matches!(violation, Violation::NotOffered { .. })));
    // 300 W less 130 W.
    let refused = refusals(vec![start(1, &[(0, 100), (2, 71)]), recap(0, &[(1, 200), (3, 101)])]);
    let is_power = |violation: &Violation| matches!(violation, Violation::Power { .. });
    assert!(refused.iter().all(is_power), "{refused:?}");
}

#[test]
fn new_caps_are_for_the_same_nodes_of_a_job_that_runs() {
    let (other, holds_nothing) =
        (Violation::OtherNodes { job: JobId(0) }, |job| Violation::HoldsNothing { job });
    let refused = refusals(vec![
        recap(0, &[(1, 60)]),
        recap(0, &[(1, 60), (2, 70)]),
        recap(0, &[(1, 50), (2, 50), (3, 50)]),
        recap(1, &[(0, 60), (2, 60)]),
        recap(1, &[(1, 60), (3, 60)]),
    ]);
    let waits = holds_nothing(JobId(1));
    assert_eq!(refused, [other.clone(), other.clone(), other, waits.clone(), waits]);
}

#[test]
fn jobs_that_do_not_wait_or_do_not_exist_are_refused() {
    let nobody = JobId(u32::MAX);
    let refused = refusals(vec![
        start(0, &[(0, 60), (2, 60)]),
        start(3, &[(0, 60)]),
        start(u32::MAX, &[(0, 60)]),
        recap(u32::MAX, &[(0, 60)]),
    ]);
    let expected = [
        Violation::AlreadyRunning { job: JobId(0) },
        Violation::NotWaiting { job: JobId(3) },
        Violation::NotWaiting { job: nobody },
        Violation::HoldsNothing { job: nobody },
    ];
    assert_eq!(refused, expected);
}

#[test]
fn what_was_not_announced_is_refused() {
    let good = || vec![start(1, &[(0, 60), (2, 60)]), recap(0, &[(1, 50), (3, 50)])];
    let [a, b] = [JobId(1), JobId(0)];
    let refused = |adjusts, names| {
        let outcomes = attempt(good(), adjusts, names);
        outcomes.into_iter().filter_map(Result::err).collect::<Vec<_>>()
    };
    assert_eq!(refused(true, true), []);
    assert_eq!(refused(false, true), [Violation::Unannounced { job: b }]);
    let unnamed = |job| Violation::NodesUnannounced { job };
    assert_eq!(refused(true, false), [unnamed(a), unnamed(b)]);
    assert_eq!(refused(false, false), [unnamed(a), Violation::Unannounced { job: b }]);
}

/// Good decisions between bad ones are carried out all the same, in order: 20 W are given up, then
/// 190 W are there for another job, and what is then left is 0.
#[test]
fn good_decisions_between_bad_ones_are_carried_out() {
    let outcomes = attempt(
        vec![
            start(1, &[(0, 100), (2, 90)]),
            recap(0, &[(1, 60), (3, 50)]),
            start(1, &[(0, 100), (2, 90)]),
            recap(0, &[(1, 61), (3, 50)]),
            recap(0, &[(1, 50), (3, 60)]),
        ],
        true,
        true,
    );
    let is_ok: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    assert_eq!(is_ok, [false, true, true, false, true]);
}

/// A job that goes on at a point of its menu has no caps of its own any more: 200 W on its two nodes,
/// whichever. Caps can be set again only on nodes that were named.
#[test]
fn a_point_of_the_menu_takes_the_place_of_caps() {
    let curves = vec![vec![vec![(50_000, 100), (100_000, 150)]; 4]];
    let (machine, workload) = (machine(&curves, 0), workload(&[(0, 2, 100, 100, 1)]));
    let model = Varied::on(&machine, workload.jobs(), 1);
    let (job, asked) = (JobId(0), &workload.jobs()[0]);
    let mut ledger = Ledger::with_placement(&machine, Budget::unlimited());
    let named = caps(&[(1, 60), (3, 70)]);
    ledger.start_on(job, &model.on(job, asked, &named).unwrap(), &named).unwrap();
    let point = model.nominal(job, asked);
    ledger.change(job, &point, point.time).unwrap();
    assert_eq!((ledger.held(), ledger.check()), (Watts::from_watts(200), Ok(())));
    assert_eq!(ledger.caps(job), None);
    let point = model.on(job, asked, &named).unwrap();
    let refused = ledger.recap(job, &point, &named, point.time);
    assert_eq!(refused, Err(Violation::OtherNodes { job }));
    assert_eq!(ledger.holder(NodeId(3)), Some(job));
}
