//! Claims and what becomes of them, by hand.

use super::*;
use crate::model::{Caps, NodeCap};
use crate::units::NodeId;

fn point(nodes: u32, watts: u32, seconds: u32) -> OperatingPoint {
    OperatingPoint {
        nodes,
        cores: 1,
        cap: Watts::from_watts(100),
        time: Span::from_secs(seconds),
        power: Watts::from_watts(watts),
    }
}

fn ledger(budget: Budget) -> Ledger {
    Ledger::with_placement(&Machine::of_processors(10).unwrap(), budget)
}

#[test]
fn a_claim_that_does_not_fit_changes_nothing() {
    let mut ledger = ledger(Budget::constant(Watts::from_watts(500)));
    ledger.start(JobId(0), &point(4, 400, 10)).unwrap();
    let refused = [
        (JobId(0), point(1, 10, 1), Violation::AlreadyRunning { job: JobId(0) }),
        (JobId(1), point(7, 10, 1), Violation::Nodes { job: JobId(1), asked: 7, free: 6 }),
        (
            JobId(1),
            point(1, 101, 1),
            Violation::Power {
                job: JobId(1),
                asked: Watts::from_watts(101),
                free: Watts::from_watts(100),
                at: Instant::ZERO,
            },
        ),
    ];
    for (job, point, violation) in refused {
        assert_eq!(ledger.start(job, &point), Err(violation));
        assert_eq!((ledger.free_nodes(), ledger.power()), (6, Watts::from_watts(400)));
    }
    assert_eq!(ledger.release(JobId(1)), Err(Violation::HoldsNothing { job: JobId(1) }));
    ledger.start(JobId(1), &point(6, 100, 1)).unwrap();
    assert_eq!(ledger.check(), Ok(()));
    assert_eq!(ledger.peak(), Watts::from_watts(500));
}

#[test]
fn what_is_released_is_what_was_held() {
    let mut ledger = ledger(Budget::unlimited());
    ledger.advance(Instant::from_secs(100));
    ledger.start(JobId(3), &point(2, 200, 20)).unwrap();
    ledger.advance(Instant::from_secs(110));
    let holding = ledger.release(JobId(3)).unwrap();
    assert_eq!(holding.until, Instant::from_secs(120));
    assert_eq!(ledger.power(), Watts::ZERO);
}

#[test]
fn a_limit_that_will_fall_is_kept_in_advance() {
    let steps = vec![
        (Instant::ZERO, Watts::from_watts(500)),
        (Instant::from_secs(10), Watts::from_watts(300)),
    ];
    let mut ledger = ledger(Budget::from_steps(steps).unwrap());
    ledger.start(JobId(0), &point(2, 200, 20)).unwrap();
    assert!(matches!(
        ledger.start(JobId(1), &point(2, 200, 11)),
        Err(Violation::Power { at, .. }) if at == Instant::from_secs(10)
    ));
    ledger.start(JobId(1), &point(2, 200, 10)).unwrap();
    assert_eq!(ledger.check(), Ok(()));
}

/// 500 W for jobs of 200 and 250 W. One may grow by the 50 W that are free, and no further; both
/// may shrink, even under a limit that has fallen below what they hold.
#[test]
fn running_jobs_change_within_what_is_free() {
    let steps = vec![
        (Instant::ZERO, Watts::from_watts(500)),
        (Instant::from_secs(10), Watts::from_watts(300)),
    ];
    let mut ledger = ledger(Budget::from_steps(steps).unwrap());
    ledger.start(JobId(0), &point(4, 200, 5)).unwrap();
    ledger.start(JobId(1), &point(3, 250, 5)).unwrap();
    let (change, left) = (point(5, 251, 5), Span::from_secs(5));
    let refused = ledger.change(JobId(0), &change, left);
    let (asked, free) = (Watts::from_watts(251), Watts::from_watts(250));
    let violation = Violation::Power { job: JobId(0), asked, free, at: Instant::ZERO };
    assert_eq!(refused, Err(violation));
    let refused = ledger.change(JobId(0), &point(8, 10, 5), left);
    assert_eq!(refused, Err(Violation::Nodes { job: JobId(0), asked: 8, free: 7 }));
    assert_eq!((ledger.free_nodes(), ledger.power()), (3, Watts::from_watts(450)));
    let before = ledger.change(JobId(0), &point(7, 250, 5), left).unwrap();
    assert_eq!((before.nodes, before.power), (4, Watts::from_watts(200)));
    assert_eq!((ledger.free_nodes(), ledger.power()), (0, Watts::from_watts(500)));
    assert_eq!(ledger.check(), Ok(()));
    // For longer than 500 W are there.
    let longer = ledger.change(JobId(1), &point(3, 251, 5), Span::from_secs(11));
    assert!(matches!(longer, Err(Violation::Power { .. })), "{longer:?}");
    ledger.advance(Instant::from_secs(10));
    ledger.change(JobId(0), &point(7, 240, 5), left).unwrap();
    assert_eq!(ledger.power(), Watts::from_watts(490), "less is never refused");
    ledger.change(JobId(1), &point(1, 60, 5), left).unwrap();
    assert_eq!(ledger.free_nodes(), 2);
    assert_eq!(ledger.check(), Ok(()));
    let nothing = Violation::HoldsNothing { job: JobId(2) };
    assert_eq!(ledger.change(JobId(2), &point(1, 1, 1), left), Err(nothing));
}

#[test]
fn nodes_fail_and_come_back() {
    let mut ledger = ledger(Budget::unlimited());
    ledger.start(JobId(0), &point(3, 300, 20)).unwrap();
    assert_eq!(ledger.holder(NodeId(2)), Some(JobId(0)));
    assert!(!ledger.take_down(NodeId(2)), "a held node stays until its job is released");
    ledger.release(JobId(0)).unwrap();
    assert!(ledger.take_down(NodeId(2)));
    assert!(!ledger.take_down(NodeId(2)));
    assert_eq!((ledger.free_nodes(), ledger.nodes_in_service()), (9, 9));
    ledger.start(JobId(0), &point(9, 900, 20)).unwrap();
    assert_eq!(ledger.check(), Ok(()));
    assert!(ledger.bring_up(NodeId(2)));
    assert!(!ledger.bring_up(NodeId(2)));
    assert!(!ledger.take_down(NodeId(77)), "there is no such node");
    assert_eq!(ledger.check(), Ok(()));
}

fn caps(caps: &[(u32, u32)]) -> Caps {
    let capped = |&(node, watts): &_| NodeCap { node: NodeId(node), cap: Watts::from_watts(watts) };
    Caps::new(caps.iter().map(capped).collect()).unwrap()
}

/// Two nodes under 60 and 80 W, then under 90 and 50 W; nobody else gets them meanwhile.
#[test]
fn nodes_are_claimed_by_name() {
    let mut ledger = ledger(Budget::constant(Watts::from_watts(200)));
    let named = caps(&[(3, 60), (7, 80)]);
    ledger.start_on(JobId(0), &point(2, 140, 10), &named).unwrap();
    assert_eq!(ledger.check(), Ok(()));
    assert_eq!((ledger.holder(NodeId(7)), ledger.is_free(NodeId(7))), (Some(JobId(0)), false));
    let taken = ledger.start_on(JobId(1), &point(2, 40, 10), &caps(&[(4, 20), (7, 20)]));
    assert_eq!(taken, Err(Violation::NodeTaken { job: JobId(1), node: NodeId(7) }));
    let unknown = ledger.start_on(JobId(1), &point(1, 40, 10), &caps(&[(10, 40)]));
    assert_eq!(unknown, Err(Violation::NodeTaken { job: JobId(1), node: NodeId(10) }));
    let lie = ledger.start_on(JobId(1), &point(1, 40, 10), &caps(&[(4, 20), (5, 20)]));
    assert_eq!(lie, Err(Violation::NotOffered { job: JobId(1) }));
    let much = ledger.start_on(JobId(1), &point(1, 61, 10), &caps(&[(4, 61)]));
    assert!(matches!(much, Err(Violation::Power { .. })), "{much:?}");
    assert!(ledger.is_free(NodeId(4)) && !ledger.holds(JobId(1)));

    let left = Span::from_secs(10);
    let other = ledger.recap(JobId(0), &point(2, 140, 10), &caps(&[(3, 60), (8, 80)]), left);
    assert_eq!(other, Err(Violation::OtherNodes { job: JobId(0) }));
    let much = ledger.recap(JobId(0), &point(2, 201, 10), &caps(&[(3, 101), (7, 100)]), left);
    assert!(matches!(much, Err(Violation::Power { .. })), "{much:?}");
    assert_eq!(ledger.caps(JobId(0)), Some(&named), "what is refused changes nothing");
    let new = caps(&[(3, 90), (7, 50)]);
    ledger.recap(JobId(0), &point(2, 140, 10), &new, left).unwrap();
    assert_eq!((ledger.caps(JobId(0)), ledger.power()), (Some(&new), Watts::from_watts(140)));
    let nothing = ledger.recap(JobId(1), &point(2, 140, 10), &new, left);
    assert_eq!(nothing, Err(Violation::HoldsNothing { job: JobId(1) }));
    assert_eq!(ledger.check(), Ok(()));
    ledger.release(JobId(0)).unwrap();
    assert!(ledger.is_free(NodeId(3)) && ledger.caps(JobId(0)).is_none());
    ledger.start(JobId(2), &point(10, 100, 10)).unwrap();
    assert_eq!(ledger.check(), Ok(()));
}

#[test]
fn nodes_that_nobody_keeps_track_of_have_no_names() {
    let machine = Machine::of_processors(10).unwrap();
    let mut ledger = Ledger::new(&machine, Budget::unlimited());
    let refused = ledger.start_on(JobId(0), &point(1, 60, 10), &caps(&[(3, 60)]));
    assert_eq!(refused, Err(Violation::NodesUnannounced { job: JobId(0) }));
    assert!(!ledger.holds(JobId(0)) && !ledger.is_free(NodeId(3)));
}
