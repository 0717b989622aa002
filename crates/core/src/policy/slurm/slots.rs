//! The map of a backfill pass: which nodes nobody has been promised, in slots of time.
//!
//! A promise takes whole nodes, from the slot in which it begins up to the one in which it ends, both rounded down to the
//! resolution of the map, and for one step of it at least.

use super::nodes::NodeSet;
use crate::units::{Instant, Span};

/// A stretch of time in which the same nodes are promised to nobody.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) begin: Instant,
    pub(super) end: Instant,
    pub(super) nodes: NodeSet,
}

/// All slots, in order.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    resolution: Span,
}

impl Slots {
    /// Nothing is promised of these nodes.
    pub(super) fn new(now: Instant, window: Span, resolution: Span, nodes: NodeSet) -> Self {
        let (begin, end) = (floor(now, resolution), floor(now + window, resolution));
        Slots { slots: vec![Slot { begin, end, nodes }], resolution }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Slot> {
        self.slots.iter()
    }

    /// The end of the map.
    pub(super) fn end(&self) -> Instant {
        self.slots.last().map_or(Instant::NEVER, |last| last.end)
    }

    /// Rounds a time down to the resolution.
    pub(super) fn floor(&self, at: Instant) -> Instant {
        floor(at, self.resolution)
    }

    /// Whether some of these nodes are promised between two times.
    pub(super) fn overlaps(&self, nodes: &NodeSet, start: Instant, end: Instant) -> bool {
        let meets = |slot: &&Slot| slot.end > start && slot.begin < end;
        self.slots.iter().filter(meets).any(|slot| !nodes.is_within(&slot.nodes))
    }

    /// Promises nodes between two times, which are rounded. What begins after the end of the map is not in it.
    pub(super) fn promise(&mut self, nodes: &NodeSet, start: Instant, end: Instant) {
        let start = start.max(self.slots[0].begin);
        let end = end.max(start + self.resolution);
        // The last slot that ends by the beginning may be joined with what follows.
        let Some(place) = self.slots.iter().position(|slot| slot.end >= start) else { return };
        let before = place.saturating_sub(1);
        if self.slots[place].end > start {
            self.split(place, start);
        }
        let mut at = place + 1;
        let mut after = None;
        while at < self.slots.len() {
            if end < self.slots[at].end {
                self.split(at, end);
            }
            self.slots[at].nodes.leave_out(nodes);
            if self.slots[at].end == end {
                after = (at + 1 < self.slots.len()).then_some(at + 1);
                break;
            }
            at += 1;
        }
        self.join(before, after);
    }

    /// Makes two slots of one.
    fn split(&mut self, place: usize, at: Instant) {
        let later = Slot { begin: at, ..self.slots[place].clone() };
        self.slots[place].end = at;
        self.slots.insert(place + 1, later);
    }

    /// Makes one slot of the first two neighbours that are alike, if there are any before this place.
    fn join(&mut self, from: usize, before: Option<usize>) {
        let last = before.unwrap_or(self.slots.len());
        for place in from..last {
            if place + 1 >= self.slots.len() {
                return;
            }
            if self.slots[place].nodes == self.slots[place + 1].nodes {
                self.slots[place].end = self.slots[place + 1].end;
                self.slots.remove(place + 1);
                return;
            }
        }
    }
}

/// Rounds a time down.
pub(super) fn floor(at: Instant, step: Span) -> Instant {
    Instant::from_millis(at.millis() - at.millis() % step.millis().max(1))
}

/// Rounds a time up.
pub(super) fn ceil(at: Instant, step: Span) -> Instant {
    let step = step.millis().max(1);
    Instant::from_millis(at.millis().div_ceil(step).saturating_mul(step))
}
