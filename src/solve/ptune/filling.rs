//! Power poured along hulls, the steepest stretches first, while processors are added.
//!
//! Every processor holds its least power. What is left feeds stretches of hulls in one order over
//! all of them: by slope, then by the place of the processor. The stretches that are fed are the
//! first ones in that order, and the last of them may be fed in part. When a processor is added,
//! less is left and there are more stretches to feed; so the last one fed moves forward in the order
//! and never back. A heap with one entry for each processor, its last stretch that is fed, therefore
//! gives up each stretch at most once.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::units::Watts;
use crate::variation::{Curve, Ips, curve::Segment};

/// The last stretch of a processor's hull that is fed. The greatest of all is the one to give way.
#[derive(Clone, Copy, Debug)]
struct Last {
    slope: f64,
    place: u32,
    segment: u32,
}

impl Last {
    fn new(place: u32, segment: usize, hull: &[Segment]) -> Self {
        Last { slope: hull[segment].slope, place, segment: segment as u32 }
    }

    /// How many stretches of a processor's hull come before this one in the order.
    fn before(&self, place: u32, hull: &[Segment]) -> usize {
        if place == self.place {
            return self.segment as usize;
        }
        let is_earlier = place < self.place;
        let comes_first = |segment: &Segment| {
            segment.slope > self.slope || (segment.slope == self.slope && is_earlier)
        };
        hull.partition_point(comes_first)
    }
}

impl Ord for Last {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_slope = other.slope.total_cmp(&self.slope);
        by_slope.then(self.place.cmp(&other.place)).then(self.segment.cmp(&other.segment))
    }
}

impl PartialOrd for Last {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Last {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Last {}

/// Power divided among the processors that were added so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Division {
    /// How fast they are, on their curves.
    pub(super) ips: Ips,
    /// How fast they would be on their hulls, rounded up.
    pub(super) bound: Ips,
    /// The last stretch that is fed, and the power at which its processor then stands; none if
    /// everybody stands at the least.
    last: Option<(Last, Watts)>,
}

impl Division {
    /// The cap of a processor.
    pub(super) fn cap(&self, place: u32, curve: &Curve) -> Watts {
        match self.last {
            Some((last, cap)) if last.place == place => cap,
            Some((last, _)) => match last.before(place, curve.hull()) {
                0 => curve.least(),
                fed => curve.hull()[fed - 1].to.power,
            },
            None => curve.least(),
        }
    }
}

/// Processors, and what they are fed.
#[derive(Debug, Default)]
pub(super) struct Filling {
    fed: BinaryHeap<Last>,
    budget: u64,
    /// The least power of all processors, in milliwatts, and how fast they are on it.
    least_power: u64,
    least_ips: u64,
    /// The power of all stretches that are fed, the last one whole, and the speed they bring.
    fed_power: u64,
    fed_ips: u64,
}

impl Filling {
    /// Forgets the processors there were.
    pub(super) fn begin(&mut self, budget: Watts) {
        self.fed.clear();
        self.budget = budget.milliwatts();
        (self.least_power, self.least_ips) = (0, 0);
        (self.fed_power, self.fed_ips) = (0, 0);
    }

    /// What is left for stretches.
    fn room(&self) -> u64 {
        self.budget - self.least_power
    }

    /// Adds a processor, unless there is less power left than its least.
    pub(super) fn add(&mut self, place: u32, curve: &Curve) -> bool {
        let hull = curve.hull();
        let least = curve.least().milliwatts();
        // Where power is short already, stretches after the last one fed have no hope.
        let is_short = self.fed_power >= self.room();
        let hopeful = match self.fed.peek() {
            Some(last) if is_short => last.before(place, hull),
            _ => hull.len(),
        };
        if self.least_power.saturating_add(least) > self.budget {
            return false;
        }
        self.least_power += least;
        self.least_ips += curve.slowest().ips();
        if let Some(segment) = hopeful.checked_sub(1) {
            let end = hull[segment].to;
            self.fed_power += end.power.milliwatts() - least;
            self.fed_ips += end.ips.ips() - curve.slowest().ips();
            self.fed.push(Last::new(place, segment, hull));
        }
        true
    }

    /// Takes power from the last stretches until no more is held than there is. `curve` gives the
    /// processor of a place.
    pub(super) fn settle<'c>(&mut self, curve: impl Fn(usize) -> &'c Curve) -> Division {
        let room = self.room();
        while let Some(mut last) = self.fed.peek_mut() {
            let hull = curve(last.place as usize).hull();
            let segment = &hull[last.segment as usize];
            let without = self.fed_power - segment.power().milliwatts();
            if without < room {
                break;
            }
            self.fed_power = without;
            self.fed_ips -= segment.gain().ips();
            match last.segment.checked_sub(1) {
                Some(before) => *last = Last::new(last.place, before as usize, hull),
                None => drop(std::collections::binary_heap::PeekMut::pop(last)),
            }
        }
        let whole = self.least_ips + self.fed_ips;
        let Some(last) = self.fed.peek() else {
            return Division { ips: Ips::from_ips(whole), bound: Ips::from_ips(whole), last: None };
        };
        let curve = curve(last.place as usize);
        let segment = &curve.hull()[last.segment as usize];
        let missing = self.fed_power.saturating_sub(room);
        let cap = segment.to.power - Watts::from_milliwatts(missing);
        let (gain, power) = (segment.gain().ips(), segment.power().milliwatts());
        // A part of the gain, so it fits; rounded down, so that what stays is rounded up.
        let lost = u128::from(gain) * u128::from(missing) / u128::from(power);
        Division {
            ips: Ips::from_ips(whole - segment.to.ips.ips() + curve.at(cap).ips()),
            bound: Ips::from_ips(whole - lost as u64),
            last: Some((*last, cap)),
        }
    }
}
