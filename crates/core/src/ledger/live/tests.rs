//! Books that follow the real world, by hand and against a plain list.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::machine::Machine;
use crate::model::{NodeCap, OperatingPoint};
use crate::units::Span;

fn watts(watts: u32) -> Watts {
    Watts::from_watts(watts)
}

fn point(nodes: u32, power: u32, seconds: u32) -> OperatingPoint {
    let (cap, time) = (watts(100), Span::from_secs(seconds));
    OperatingPoint { nodes, cores: 1, cap, time, power: watts(power) }
}

/// Ten nodes.
fn ledger(limit: u32) -> Ledger {
    let machine = Machine::of_processors(10).unwrap();
    Ledger::with_placement(&machine, Budget::constant(watts(limit)))
}

fn ids(nodes: &[u32]) -> Vec<NodeId> {
    nodes.iter().copied().map(NodeId).collect()
}

const SECOND: fn(u32) -> Instant = Instant::from_secs;

/// 500 W, and from 10 s on 300 W; then 400 W, and from 30 s on 100 W.
#[test]
fn another_budget_is_in_force_at_once() {
    let steps = |first, at, second| {
        Budget::from_steps(vec![(Instant::ZERO, watts(first)), (SECOND(at), watts(second))])
    };
    let mut ledger = ledger(1);
    ledger.set_budget(steps(500, 10, 300).unwrap());
    assert_eq!(ledger.limit(), watts(500));
    assert_eq!(ledger.limits_to_come(), [(SECOND(10), watts(300))]);
    ledger.start(JobId(0), &point(4, 290, 20)).unwrap();
    ledger.advance(SECOND(10));
    assert_eq!(ledger.limit(), watts(300));
    ledger.set_budget(steps(400, 30, 100).unwrap());
    assert_eq!((ledger.limit(), ledger.free_power()), (watts(400), watts(110)));
    let late = ledger.start(JobId(1), &point(1, 101, 21));
    assert!(matches!(late, Err(Violation::Power { at, .. }) if at == SECOND(30)), "{late:?}");
    ledger.set_budget(Budget::constant(watts(200)));
    assert_eq!((ledger.free_power(), ledger.limits_to_come().len()), (Watts::ZERO, 0));
    assert_eq!(ledger.power(), watts(290), "what is held stays held");
    assert_eq!(ledger.check(), Ok(()));
}

/// Jobs 0 and 1 were given nodes 0 to 2, and job 2 node 3; then job 0 is found on node 2 and on one that was out of service.
#[test]
fn jobs_are_found_on_other_nodes() {
    let mut ledger = ledger(1000);
    ledger.take_down(NodeId(9));
    for (job, nodes) in [(0, 2), (1, 1), (2, 1)] {
        ledger.start(JobId(job), &point(nodes, 50, 20)).unwrap();
    }
    let taken = ledger.relocate(&[(JobId(0), ids(&[2, 9]))]);
    assert_eq!(taken, Err(Violation::NodeTaken { job: JobId(0), node: NodeId(2) }));
    let fewer = ledger.relocate(&[(JobId(0), ids(&[9])), (JobId(1), ids(&[0]))]);
    assert_eq!(fewer, Err(Violation::OtherNodes { job: JobId(0) }));
    let twice = ledger.relocate(&[(JobId(0), ids(&[2, 9])), (JobId(1), ids(&[9]))]);
    assert_eq!(twice, Err(Violation::NodeTaken { job: JobId(1), node: NodeId(9) }));
    let none = ledger.relocate(&[(JobId(1), ids(&[10]))]);
    assert_eq!(none, Err(Violation::NodeTaken { job: JobId(1), node: NodeId(10) }));
    assert_eq!(ledger.nodes_of(JobId(0)), ids(&[0, 1]), "what is refused changes nothing");
    let (power, free) = (ledger.power(), ledger.free_nodes());
    ledger.relocate(&[(JobId(0), ids(&[2, 9])), (JobId(1), ids(&[0]))]).unwrap();
    assert_eq!(ledger.nodes_of(JobId(0)), ids(&[2, 9]));
    assert_eq!(ledger.nodes_of(JobId(1)), ids(&[0]));
    assert!(ledger.is_free(NodeId(1)));
    assert_eq!((ledger.power(), ledger.free_nodes()), (power, free + 1));
    assert_eq!(ledger.check(), Ok(()));
    ledger.release(JobId(0)).unwrap();
    assert!(ledger.is_free(NodeId(9)) && ledger.is_free(NodeId(2)));
    assert_eq!(ledger.check(), Ok(()));
}

#[test]
fn what_runs_already_is_taken_over_beyond_the_limit() {
    let mut ledger = ledger(100);
    ledger.advance(SECOND(50));
    let nodes = ids(&[1, 4, 5]);
    ledger.restore(JobId(7), FoundOn::These(&nodes), watts(300), SECOND(60)).unwrap();
    assert_eq!((ledger.power(), ledger.free_power()), (watts(300), Watts::ZERO));
    assert_eq!((ledger.free_nodes(), ledger.nodes_of(JobId(7))), (7, nodes.clone()));
    assert_eq!(ledger.running().iter().next().unwrap().until, SECOND(60));

    let caps = [(0, 60), (2, 70)].map(|(node, w)| NodeCap { node: NodeId(node), cap: watts(w) });
    let caps = Caps::new(caps.to_vec()).unwrap();
    ledger.restore(JobId(2), FoundOn::Capped(&caps), watts(130), SECOND(55)).unwrap();
    assert_eq!(ledger.caps(JobId(2)), Some(&caps));
    assert_eq!(ledger.nodes_of(JobId(2)), ids(&[0, 2]));
    ledger.restore(JobId(3), FoundOn::Any(2), watts(1), SECOND(55)).unwrap();
    assert_eq!(ledger.nodes_of(JobId(3)), ids(&[3, 6]), "the free ones with the lowest numbers");
    assert_eq!(ledger.check(), Ok(()));

    let held = (ledger.power(), ledger.free_nodes());
    let on = |nodes: &[u32]| ids(nodes);
    let taken = |node| Err(Violation::NodeTaken { job: JobId(9), node: NodeId(node) });
    let mut restore =
        |nodes: &[u32]| ledger.restore(JobId(9), FoundOn::These(&on(nodes)), watts(1), SECOND(55));
    assert_eq!(restore(&[7, 4]), taken(4), "held");
    assert_eq!(restore(&[7, 10]), taken(10), "no such node");
    assert_eq!(restore(&[7, 7]), taken(7), "twice");
    assert_eq!(restore(&[8, 7]), taken(7), "not in order");
    assert_eq!(restore(&[]), Err(Violation::HoldsNothing { job: JobId(9) }));
    let many = ledger.restore(JobId(9), FoundOn::Any(4), watts(1), SECOND(55));
    assert_eq!(many, Err(Violation::Nodes { job: JobId(9), asked: 4, free: 3 }));
    let again = ledger.restore(JobId(7), FoundOn::Any(1), watts(1), SECOND(55));
    assert_eq!(again, Err(Violation::AlreadyRunning { job: JobId(7) }));
    assert_eq!((ledger.power(), ledger.free_nodes()), held, "what is refused changes nothing");
    assert_eq!(ledger.check(), Ok(()));
    assert_eq!(ledger.release(JobId(7)).unwrap().nodes, 3);
    assert_eq!(ledger.check(), Ok(()));
}

#[test]
fn where_nodes_are_only_counted_names_are_only_counted() {
    let machine = Machine::of_processors(10).unwrap();
    let mut ledger = Ledger::new(&machine, Budget::unlimited());
    ledger.restore(JobId(0), FoundOn::These(&ids(&[3, 4])), watts(9), SECOND(5)).unwrap();
    assert_eq!((ledger.free_nodes(), ledger.nodes_of(JobId(0))), (8, Vec::new()));
    let beyond = ledger.restore(JobId(1), FoundOn::These(&ids(&[3, 10])), watts(9), SECOND(5));
    assert_eq!(beyond, Err(Violation::NodeTaken { job: JobId(1), node: NodeId(10) }));
    assert_eq!(ledger.check(), Ok(()));
}

#[test]
fn a_job_that_is_late_is_expected_later() {
    let mut ledger = ledger(500);
    ledger.start(JobId(0), &point(4, 400, 10)).unwrap();
    ledger.advance(SECOND(20));
    ledger.extend(JobId(0), SECOND(30)).unwrap();
    assert_eq!(ledger.running().iter().next().unwrap().until, SECOND(30));
    ledger.extend(JobId(0), SECOND(25)).unwrap();
    assert_eq!(ledger.running().iter().next().unwrap().until, SECOND(30), "later, not sooner");
    assert_eq!((ledger.power(), ledger.nodes_of(JobId(0))), (watts(400), ids(&[0, 1, 2, 3])));
    assert_eq!(ledger.check(), Ok(()));
    let nothing = Violation::HoldsNothing { job: JobId(1) };
    assert_eq!(ledger.extend(JobId(1), SECOND(30)), Err(nothing));
    ledger.extend(JobId(0), Instant::NEVER).unwrap();
    assert!(ledger.holds(JobId(0)), "'never' would mean that it holds nothing");
    assert_eq!(ledger.check(), Ok(()));
}

/// 500 W for a job of 400 W. While it is suspended another takes 200 W, so it cannot go on before that
/// one has ended.
#[test]
fn a_suspended_job_keeps_its_nodes_and_gives_up_its_power() {
    let mut ledger = ledger(500);
    let (job, other) = (JobId(0), JobId(1));
    ledger.start(job, &point(4, 400, 10)).unwrap();
    ledger.suspend(job).unwrap();
    assert_eq!((ledger.power(), ledger.free_nodes()), (Watts::ZERO, 6));
    assert_eq!((ledger.suspended(job), ledger.suspended(other)), (Some(watts(400)), None));
    assert_eq!(ledger.nodes_of(job), ids(&[0, 1, 2, 3]));
    assert_eq!(ledger.running().iter().next().unwrap().until, Instant::LAST);
    assert_eq!(ledger.check(), Ok(()));

    let suspended = Violation::Suspended { job };
    assert_eq!(ledger.suspend(job), Err(suspended.clone()));
    let change = ledger.change(job, &point(4, 10, 10), Span::from_secs(1));
    assert_eq!(change, Err(suspended), "not even for less");
    ledger.extend(job, SECOND(30)).unwrap();
    assert_eq!(ledger.running().iter().next().unwrap().until, Instant::LAST);
    assert_eq!(ledger.check(), Ok(()));

    ledger.start(other, &point(6, 200, 10)).unwrap();
    let (asked, free, at) = (watts(400), watts(300), Instant::ZERO);
    let refused = ledger.resume(job, SECOND(30));
    assert_eq!(refused, Err(Violation::Power { job, asked, free, at }));
    assert_eq!((ledger.power(), ledger.suspended(job)), (watts(200), Some(asked)));
    assert_eq!(ledger.check(), Ok(()));
    ledger.release(other).unwrap();
    ledger.resume(job, SECOND(30)).unwrap();
    assert_eq!((ledger.power(), ledger.suspended(job)), (watts(400), None));
    assert_eq!(ledger.running().iter().next().unwrap().until, SECOND(30));
    assert_eq!(ledger.resume(job, SECOND(30)), Err(Violation::NotSuspended { job }));
    assert_eq!(ledger.suspend(other), Err(Violation::HoldsNothing { job: other }));
    ledger.suspend(job).unwrap();
    assert_eq!(ledger.release(job).unwrap().power, Watts::ZERO);
    assert_eq!((ledger.suspended(job), ledger.has_suspended()), (None, false));
    assert_eq!(ledger.check(), Ok(()));
}

/// A job as a plain list has it.
#[derive(Clone, Debug, PartialEq)]
struct Plain {
    nodes: u32,
    power: Watts,
    until: Instant,
    suspended: Option<Watts>,
}

/// What happens: which kind, to which job, how many nodes, how much power, when, and which nodes.
type Step = (u8, u32, u32, u32, u32, Vec<u32>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let nodes = prop::collection::vec(0u32..11, 1..4);
    prop::collection::vec((0u8..9, 0u32..6, 1u32..6, 0u32..300, 0u32..40, nodes), 0..60)
}

proptest! {
    /// Whatever happens in whatever order, the books add up, and they say what a plain list says.
    #[test]
    fn the_books_agree_with_a_plain_list(steps in steps()) {
        let mut ledger = ledger(600);
        let (mut plain, mut limit, mut now) = (BTreeMap::<JobId, Plain>::new(), watts(600), 0);
        for (kind, job, nodes, power, seconds, mut named) in steps {
            let (job, mw, until) = (JobId(job), watts(power), SECOND(now + seconds));
            let held = plain.get(&job).cloned();
            let free_nodes = 10 - plain.values().map(|held| held.nodes).sum::<u32>();
            let others = plain.iter().filter(|(other, _)| **other != job);
            let drawn: Watts = others.map(|(_, held)| held.power).sum();
            // Who draws nothing takes nothing from anybody, however short power is.
            let fits = |power: Watts| power == Watts::ZERO || drawn + power <= limit;
            let new = Plain { nodes, power: mw, until, suspended: None };
            let outcome = match kind {
                0 => {
                    let expected = held.is_none() && nodes <= free_nodes && fits(mw);
                    (ledger.start(job, &point(nodes, power, seconds)), expected, Some(new))
                }
                1 => {
                    named.sort_unstable();
                    named.dedup();
                    let nodes = named.len() as u32;
                    let named = ids(&named);
                    let free = named.iter().all(|node| ledger.is_free(*node));
                    let done = ledger.restore(job, FoundOn::These(&named), mw, until);
                    if done.is_ok() {
                        prop_assert_eq!(ledger.nodes_of(job), named);
                    }
                    (done, held.is_none() && free, Some(Plain { nodes, ..new }))
                }
                2 => {
                    let later = held.clone().map(|held| Plain { until: held.until.max(until), ..held });
                    (ledger.extend(job, until), held.is_some(), later)
                }
                3 => {
                    let good = held.as_ref().is_some_and(|held| held.suspended.is_none());
                    let still = held.map(|held| {
                        let (until, power) = (Instant::LAST, Watts::ZERO);
                        Plain { until, power, suspended: Some(held.power), ..held }
                    });
                    (ledger.suspend(job), good, still)
                }
                4 => {
                    let had = held.as_ref().and_then(|held| held.suspended);
                    let on = held.zip(had).map(|(held, power)| {
                        Plain { until, power, suspended: None, ..held }
                    });
                    (ledger.resume(job, until), had.is_some_and(fits), on)
                }
                5 => {
                    let good = held.is_some_and(|held| {
                        let less = nodes <= held.nodes && mw <= held.power;
                        let fits = nodes <= free_nodes + held.nodes && fits(mw);
                        held.suspended.is_none() && (less || fits)
                    });
                    let change = point(nodes, power, 1);
                    let done = ledger.change(job, &change, Span::from_secs(seconds)).map(|_| ());
                    (done, good, Some(new))
                }
                6 => (ledger.release(job).map(|_| ()), held.is_some(), None),
                7 => {
                    limit = watts(power * 4);
                    ledger.set_budget(Budget::constant(limit));
                    (Ok(()), true, held)
                }
                _ => {
                    now += seconds;
                    ledger.advance(SECOND(now));
                    (Ok(()), true, held)
                }
            };
            let (done, expected, after) = outcome;
            prop_assert_eq!(done.is_ok(), expected, "{:?} {:?}", done, plain);
            if expected {
                match after {
                    Some(after) => plain.insert(job, after),
                    None => plain.remove(&job),
                };
            }
            prop_assert_eq!(ledger.check(), Ok(()));
            let drawn: Watts = plain.values().map(|held| held.power).sum();
            prop_assert_eq!((ledger.held(), ledger.limit()), (drawn, limit));
            let mut books: Vec<_> = ledger.running().iter().map(|holding| {
                let Holding { job, nodes, power, until } = *holding;
                (job, Plain { nodes, power, until, suspended: ledger.suspended(job) })
            }).collect();
            books.sort_by_key(|(job, _)| *job);
            prop_assert_eq!(books, plain.clone().into_iter().collect::<Vec<_>>());
            for (job, held) in &plain {
                let nodes = ledger.nodes_of(*job);
                prop_assert!(nodes.is_sorted() && nodes.len() as u32 == held.nodes);
                prop_assert!(nodes.iter().all(|node| ledger.holder(*node) == Some(*job)));
            }
        }
    }
}
