use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::availability::{Availability, Below, Claim};
use crate::budget::BudgetSpec;
use crate::machine::check_text;
use crate::model::NodeCap;
use crate::units::Span;

const SECOND: fn(u32) -> Instant = Instant::from_secs;
const WATTS: fn(u32) -> Watts = Watts::from_watts;

/// Twelve nodes of 100 W, 20 W idle: racks of four, the first two in a row.
fn machine(row: &str, racks: [&str; 3]) -> Machine {
    let rack = |(place, limit): (usize, &str)| {
        let (first, last) = (4 * place, 4 * place + 3);
        let parent = if place < 2 { "parent = 'row'\n" } else { "" };
        format!(
            "[[feed]]\nname = 'rack{place}'\nlimit = '{limit}'\n{parent}nodes = '{first}-{last}'\n"
        )
    };
    let racks: String = racks.into_iter().enumerate().map(rack).collect();
    let text = format!(
        "nodes = 12\n[power]\nnode = '100W'\nidle = '20W'\n[[feed]]\nname = 'row'\nlimit = '{row}'\n{racks}"
    );
    check_text(&text, "m", Path::new("")).unwrap().choose(&[]).unwrap()
}

/// The ledger of a machine, whose row has another limit from the second 100 on.
fn ledger(machine: &Machine, budget: &str, row_later: Option<u32>) -> Ledger {
    let budget = budget.parse::<BudgetSpec>().unwrap().resolve(machine).unwrap();
    let mut feeds: Vec<Budget> = budget.feeds().unwrap().to_vec();
    if let Some(later) = row_later {
        let now = feeds[0].at(Instant::ZERO);
        feeds[0] =
            Budget::from_steps(vec![(Instant::ZERO, now), (SECOND(100), WATTS(later))]).unwrap();
    }
    Ledger::new(machine, budget.with_feeds(feeds))
}

fn point(nodes: u32, each: u32, seconds: u32) -> OperatingPoint {
    let (power, time) = (WATTS(each) * nodes, Span::from_secs(seconds));
    OperatingPoint { nodes, cores: 1, cap: WATTS(each), time, power }
}

fn nodes(ledger: &Ledger, job: u32) -> Vec<u32> {
    ledger.nodes_of(JobId(job)).iter().map(|node| node.0).collect()
}

/// Below the row, 600 W: 160 W of them idle, so that five nodes more can be busy, and three in the first rack.
#[test]
fn jobs_go_where_feeds_have_room() {
    let machine = machine("600W", ["320W", "none", "100%"]);
    let mut ledger = ledger(&machine, "none", None);
    ledger.start(JobId(0), &point(4, 80, 50)).unwrap();
    assert_eq!(nodes(&ledger, 0), [0, 1, 2, 4], "three of the first rack");
    ledger.start(JobId(1), &point(3, 80, 50)).unwrap();
    assert_eq!(nodes(&ledger, 1), [5, 8, 9], "the row has room for one more");
    let refused = ledger.start(JobId(2), &point(3, 80, 50)).unwrap_err();
    let text =
        "#2 was to get 240W, but feed 'row' has no room for its part of that: 40W are free there";
    assert_eq!(refused.to_string(), text);
    ledger.start(JobId(2), &point(3, 40, 50)).unwrap();
    assert_eq!(nodes(&ledger, 2), [6, 10, 11], "what draws less still goes below the row");
    assert_eq!(ledger.check(), Ok(()));
    ledger.release(JobId(0)).unwrap();
    ledger.start(JobId(3), &point(3, 80, 50)).unwrap();
    assert_eq!(nodes(&ledger, 3), [0, 1, 2]);
    assert_eq!(ledger.check(), Ok(()));
}

#[test]
fn limits_to_come_count_until_the_job_ends() {
    let machine = machine("600W", ["none", "none", "100%"]);
    let mut ledger = ledger(&machine, "none", Some(360));
    // From 100 s on, 200 W for jobs below the row.
    ledger.start(JobId(0), &point(2, 80, 100)).unwrap();
    ledger.start(JobId(1), &point(1, 80, 300)).unwrap();
    ledger.start(JobId(2), &point(4, 80, 300)).unwrap();
    assert_eq!(
        nodes(&ledger, 2),
        [3, 8, 9, 10],
        "one may stay below the row, as the first job ends"
    );
    let refused = ledger.start(JobId(3), &point(2, 80, 300)).unwrap_err();
    assert!(
        matches!(refused, Violation::Feed { ref feed, free, .. } if feed == "row" && free == WATTS(40)),
        "{refused}"
    );
    ledger.start(JobId(3), &point(2, 80, 90)).unwrap();
    assert_eq!(nodes(&ledger, 3), [4, 11]);
    assert_eq!(ledger.check(), Ok(()));
}

#[test]
fn what_feeds_never_carry_does_not_fit_alone() {
    let machine = machine("600W", ["320W", "none", "240W"]);
    let ledger = ledger(&machine, "none", Some(360));
    // Two busy nodes in the last rack; below the row five now, and two from 100 s on.
    assert!(ledger.fits_alone(JobId(0), &point(7, 80, 50)));
    assert!(!ledger.fits_alone(JobId(0), &point(8, 80, 50)));
    assert_eq!(ledger.feeds_alone(JobId(0), &point(8, 80, 50)), Err(Some(0)));
    assert!(ledger.fits_alone(JobId(0), &point(12, 33, 50)));
    assert!(!ledger.fits_alone(JobId(0), &point(5, 80, 101)), "not for so long");
    assert!(ledger.fits_alone(JobId(0), &point(4, 80, 101)));
}

#[test]
fn named_nodes_and_changes_are_held_against_feeds() {
    let machine = machine("600W", ["320W", "none", "100%"]);
    let mut ledger = ledger(&machine, "none", None);
    let caps = |nodes: &[u32]| {
        let cap = |node: &u32| NodeCap { node: crate::units::NodeId(*node), cap: WATTS(80) };
        Caps::new(nodes.iter().map(cap).collect()).unwrap()
    };
    let refused = ledger.start_on(JobId(0), &point(4, 80, 50), &caps(&[0, 1, 2, 3])).unwrap_err();
    assert!(matches!(refused, Violation::Feed { feed, .. } if feed == "rack0"));
    ledger.start_on(JobId(0), &point(4, 80, 50), &caps(&[0, 1, 2, 8])).unwrap();
    ledger.start(JobId(1), &point(2, 40, 50)).unwrap();
    assert_eq!(nodes(&ledger, 1), [4, 5], "the first rack is full");
    let second = Span::from_secs(50);
    ledger.change(JobId(1), &point(2, 80, 50), second).unwrap();
    let refused = ledger.change(JobId(1), &point(2, 101, 50), second).unwrap_err();
    assert!(
        matches!(refused, Violation::Feed { feed, .. } if feed == "row"),
        "440 W, and 240 are held"
    );
    assert!(ledger.change(JobId(1), &point(3, 10, 50), second).is_err(), "jobs do not grow");
    ledger.change(JobId(1), &point(1, 40, 50), second).unwrap();
    assert_eq!(ledger.check(), Ok(()));
}

/// A tree of feeds as steps of limits: by feed, what jobs may hold below it.
fn plain_room(ledger: &Ledger, feed: usize, at: Instant, placed: &[(Holding, Vec<u32>)]) -> i64 {
    let (limit, base) = ledger.limit_of(feed).unwrap();
    let tree = ledger.feeds().unwrap();
    let below = |node: u32| {
        let zone = tree.zone_of(NodeId(node)).unwrap();
        tree.above(zone).any(|above| above == feed)
    };
    let held = placed.iter().filter(|(holding, _)| holding.until > at).map(|(holding, nodes)| {
        let count = nodes.iter().filter(|node| below(**node)).count() as i64;
        each(holding.power, holding.nodes).milliwatts() as i64 * count
    });
    (limit.at(at).saturating_sub(base)).milliwatts() as i64 - held.sum::<i64>()
}

proptest! {
    /// No feed is ever over any limit, now or to come; who is refused could not have been placed in any way; and what is
    /// looked ahead for agrees with the ledger.
    #[test]
    fn feeds_are_never_overdrawn(
        row in 160u32..700,
        later in 160u32..700,
        racks in [80u32..420, 80u32..420, 80u32..420],
        jobs in prop::collection::vec((1u32..7, 1u32..90, 1u32..200, 0u32..3), 1..20),
    ) {
        let racks = racks.map(|limit| format!("{limit}W"));
        let machine = machine(&format!("{row}W"), [&racks[0], &racks[1], &racks[2]]);
        let mut ledger = ledger(&machine, "none", Some(later));
        let mut placed: Vec<(Holding, Vec<u32>)> = Vec::new();
        let mut number = 0;
        for (count, watts, seconds, wait) in jobs {
            let now = ledger.now() + Span::from_secs(10 * wait);
            ledger.advance(now);
            let over = |(holding, _): &(Holding, Vec<u32>)| holding.until <= now;
            for (holding, _) in placed.extract_if(.., |each| over(each)) {
                ledger.release(holding.job).unwrap();
            }
            let (job, point) = (JobId(number), point(count, watts, seconds));
            number += 1;
            let claim = Claim::of(&point);
            let below = Below::of(&ledger).unwrap();
            let free = Availability::of(&ledger);
            let (admits, first) = (below.admits(now, &claim), below.earliest(&free, now, &claim));
            prop_assert_eq!(first == Some(now), admits && free.fits(now, &claim));
            let until = now + point.time;
            let tree = ledger.feeds().unwrap().clone();
            match ledger.start(job, &point) {
                Ok(()) => {
                    prop_assert!(admits);
                    let holding = *ledger.held_by(job).unwrap();
                    placed.push((holding, nodes(&ledger, number - 1)));
                    for feed in 0..tree.all().len() {
                        for at in [now, SECOND(100)].into_iter().chain(placed.iter().map(|(holding, _)| holding.until)) {
                            if at >= now {
                                // What fell below what is held already is not the ledger's doing.
                                prop_assert!(plain_room(&ledger, feed, at, &placed) >= 0, "{} at {}", tree.name(feed), at);
                            }
                        }
                    }
                }
                Err(_) if free.fits(now, &claim) => {
                    prop_assert!(!admits);
                    let times = [now, SECOND(100)].into_iter().filter(|at| *at == now || *at > now && *at < until);
                    let times: Vec<Instant> = times.chain(placed.iter().map(|(held, _)| held.until).filter(|at| *at < until)).collect();
                    let room: Vec<i64> = (0..tree.all().len()).map(|feed| {
                        times.iter().map(|at| plain_room(&ledger, feed, *at, &placed)).min().unwrap()
                    }).collect();
                    let free = ledger.free_by_zone();
                    let watts = i64::from(watts) * 1000;
                    // All ways to put so many nodes into the three racks.
                    let ways = (0..=free[0]).flat_map(|a| (0..=free[1]).map(move |b| (a, b)));
                    for (a, b) in ways.filter(|(a, b)| a + b <= count && count - a - b <= free[2]) {
                        let c = count - a - b;
                        let fits = |name: &str, nodes: u32| {
                            let feed = (0..4).find(|feed| tree.name(*feed) == name).unwrap();
                            watts * i64::from(nodes) <= room[feed]
                        };
                        let all = fits("rack0", a) && fits("rack1", b) && fits("rack2", c) && fits("row", a + b);
                        prop_assert!(!all, "{} {} {} would fit", a, b, c);
                    }
                }
                Err(_) => (),
            }
            prop_assert_eq!(ledger.check(), Ok(()));
        }
    }
}
