//! When a job could start, and on which nodes, if nobody else does: as things are, or once others have ended.
//!
//! Running jobs are taken off their nodes in the order of their expected ends. The job is not tried after each: it is tried
//! after all those that end in one step of time. Steps are measured from the first end, rounded up to half a minute. The first
//! is half a minute, and each is twice as long as the one before.

use super::floor::{Ask, Floor};
use super::nodes::NodeSet;
use super::select::Free;
use super::slots::floor;
use crate::ledger::SeatNodes;
use crate::machine::NodeSize;
use crate::priority::Scheduler;
use crate::units::{Instant, Span};

/// The first step of time.
const STEP: Span = Span::from_secs(30);

/// No more jobs than this are taken off their nodes before the next step is looked at.
const MOST_ENDS: u32 = 200;

/// When a job could start, and where.
pub(super) struct Start {
    pub(super) at: Instant,
    pub(super) nodes: SeatNodes,
}

/// What is free while jobs end one after the other.
struct Later<'a> {
    floor: &'a Floor,
    ask: &'a Ask,
    left: Vec<NodeSize>,
    /// Nodes that the job may have with enough for it.
    enough: NodeSet,
}

impl Later<'_> {
    fn give(&mut self, nodes: &SeatNodes, each: &NodeSize, usable: &NodeSet) {
        for node in nodes {
            let left = &mut self.left[node.0 as usize];
            *left = left.with(each);
            let has_enough = match self.ask.is_alone {
                true => left == self.floor.size(node.0),
                false => left.has(&self.ask.each),
            };
            if has_enough && usable.has(node.0) {
                self.enough.insert(node.0);
            }
        }
    }
}

/// When a job could start on some of these nodes; with `now_only`, nothing unless that is now.
pub(super) fn start(
    floor_now: &Floor,
    rules: &Scheduler,
    ask: &Ask,
    usable: &NodeSet,
    now: Instant,
    now_only: bool,
) -> Option<Start> {
    let mut enough = usable.clone();
    floor_now.keep_enough(ask, &mut enough);
    let free = Free { floor: floor_now, left: floor_now.left(), prefers_busy: false };
    if let Some(nodes) = free.choose(rules, ask, &enough) {
        return Some(Start { at: now, nodes });
    }
    if now_only {
        return None;
    }
    let mut later = Later { floor: floor_now, ask, left: floor_now.left().to_vec(), enough };
    let mut running = floor_now.running().peekable();
    let (mut step, mut from) = (STEP, None);
    let mut goes_on = true;
    while goes_on {
        let (mut last, mut ends) = (None, 0);
        let mut is_tried = true;
        goes_on = false;
        while let Some((end, tenant)) = running.next() {
            if !tenant.nodes.iter().any(|node| usable.has(node.0)) {
                continue;
            }
            let from = *from.get_or_insert_with(|| floor(end, STEP) + STEP);
            last = Some(end);
            later.give(&tenant.nodes, &tenant.each, usable);
            let Some((next, _)) = running.peek() else { break };
            if *next > from + step {
                goes_on = true;
                break;
            }
            if ends > MOST_ENDS {
                (goes_on, is_tried) = (true, false);
                break;
            }
            ends += 1;
        }
        let last = last?;
        if !is_tried {
            continue;
        }
        let next = running.peek().map(|next| next.0);
        let from = from.unwrap_or(last);
        loop {
            step = match rules.bf_window_linear {
                Span::ZERO => step + step,
                more => step + more,
            };
            if next.is_none_or(|next| next <= from + step) {
                break;
            }
        }
        let prefers_busy = rules.bf_busy_nodes;
        let free = Free { floor: floor_now, left: &later.left, prefers_busy };
        if let Some(nodes) = free.choose(rules, ask, &later.enough) {
            let at = if last <= now { guess(last, now, rules) } else { last };
            return Some(Start { at, nodes });
        }
    }
    None
}

/// When a job will end that should have ended.
fn guess(end: Instant, now: Instant, rules: &Scheduler) -> Instant {
    (end + rules.kill_wait).max(now + Span::from_secs(1))
}
