//! The greedy as the paper has it, on the curves as they were measured, for comparison.
//!
//! It begins with as many processors as can run without a cap, and adds one at a time. For each,
//! power is stolen in portions of `delta` from whoever loses least by it, until the new one has its
//! least power; then portions move from whoever loses least to whoever gains most, as long as the
//! job gets faster. Power that nobody holds is used before any is stolen, and what is left at the
//! end goes to whoever gains most. Where a curve is not concave a portion may bring little although
//! two would bring much, so this can end below equal parts.
//!
//! Losses and gains stand in two heaps. An entry is stale once its processor has changed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Grant, TuneError};
use crate::units::Watts;
use crate::variation::{Curve, Ips};

/// The portion in which the paper's figures move, as far as they show.
pub const DELTA: Watts = Watts::from_watts(1);

/// The result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plain {
    /// The processors the job gets, from the most efficient on.
    pub grants: Vec<Grant>,
    /// How fast it is on them.
    pub ips: Ips,
}

/// A change of a processor's power: what it gains or loses, its place, and how often the processor
/// had changed before.
type Offer = (u64, Reverse<usize>, u32);

struct Greedy<'c> {
    curves: Vec<&'c Curve>,
    delta: u64,
    /// Power that no processor holds.
    free: u64,
    /// The power of each processor that runs, and how often it changed.
    held: Vec<(u64, u32)>,
    /// How fast they are together.
    total: u64,
    gains: BinaryHeap<Offer>,
    losses: BinaryHeap<(Reverse<u64>, Reverse<usize>, u32)>,
}

impl Greedy<'_> {
    fn ips(&self, place: usize, power: u64) -> u64 {
        self.curves[place].at(Watts::from_milliwatts(power)).ips()
    }

    /// What a processor would take next: a portion, or what it lacks to its most.
    fn portion(&self, place: usize) -> u64 {
        self.delta.min(self.curves[place].most().milliwatts() - self.held[place].0)
    }

    /// Sets the power of a processor, and puts its new offers into the heaps.
    fn set(&mut self, place: usize, power: u64) {
        let (before, changes) = self.held[place];
        let changes = changes.wrapping_add(1);
        self.held[place] = (power, changes);
        let now = self.ips(place, power);
        self.total = self.total - self.ips(place, before) + now;
        let portion = self.portion(place);
        if portion > 0 {
            let gain = self.ips(place, power + portion) - now;
            self.gains.push((gain, Reverse(place), changes));
        }
        let less = power.saturating_sub(self.delta);
        if less >= self.curves[place].least().milliwatts() {
            self.losses.push((Reverse(now - self.ips(place, less)), Reverse(place), changes));
        }
    }

    /// The processor that gains most, and its gain.
    fn receiver(&mut self) -> Option<(usize, u64)> {
        while let Some((gain, Reverse(place), changes)) = self.gains.peek().copied() {
            if self.held[place].1 == changes {
                return Some((place, gain));
            }
            self.gains.pop();
        }
        None
    }

    /// The processor that loses least, and its loss.
    fn donor(&mut self) -> Option<(usize, u64)> {
        while let Some((Reverse(loss), Reverse(place), changes)) = self.losses.peek().copied() {
            if self.held[place].1 == changes {
                return Some((place, loss));
            }
            self.losses.pop();
        }
        None
    }

    fn steal(&mut self, donor: usize) {
        self.free += self.delta;
        self.set(donor, self.held[donor].0 - self.delta);
    }

    fn give(&mut self, receiver: usize, power: u64) {
        self.free -= power;
        self.set(receiver, self.held[receiver].0 + power);
    }

    /// Starts the next processor on free power.
    fn start(&mut self, power: u64) {
        self.free -= power;
        self.held.push((0, 0));
        self.set(self.held.len() - 1, power);
    }

    /// Adds the next processor with its least power; false if there is not so much to be had.
    fn add(&mut self) -> bool {
        let place = self.held.len();
        let least = self.curves[place].least().milliwatts();
        while self.free < least {
            let Some((donor, _)) = self.donor() else { return false };
            self.steal(donor);
        }
        self.start(least);
        true
    }

    /// Moves portions while the job gets faster.
    fn shift(&mut self) {
        // Every move makes the job faster, so this ends; on odd curves, not soon enough.
        let mut moves = 1000 * self.held.len();
        while let Some((receiver, gain)) = self.receiver()
            && gain > 0
            && moves > 0
        {
            moves -= 1;
            let portion = self.portion(receiver);
            if self.free < portion {
                match self.donor() {
                    Some((donor, loss)) if loss < gain && donor != receiver => self.steal(donor),
                    _ => break,
                }
            }
            // Stealing a whole portion leaves enough.
            self.give(receiver, portion);
        }
        // Less than a portion is left for anybody.
        if let Some((receiver, gain)) = self.receiver()
            && gain > 0
            && self.free > 0
        {
            self.give(receiver, self.free.min(self.portion(receiver)));
        }
    }
}

/// As many of the candidates as make the job fastest, by the paper's greedy.
pub fn tune(candidates: &[&Curve], budget: Watts, delta: Watts) -> Result<Plain, TuneError> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|candidate| candidates[*candidate].most());
    let first = *order.first().ok_or(TuneError::Nobody)?;
    let mut greedy = Greedy {
        curves: order.iter().map(|candidate| candidates[*candidate]).collect(),
        delta: delta.milliwatts().max(1),
        free: budget.milliwatts(),
        held: Vec::new(),
        total: 0,
        gains: BinaryHeap::new(),
        losses: BinaryHeap::new(),
    };
    // As many as can run without a cap.
    for place in 0..order.len() {
        let most = greedy.curves[place].most().milliwatts();
        if most > greedy.free {
            break;
        }
        greedy.start(most);
    }
    let caps = |greedy: &Greedy<'_>| greedy.held.iter().map(|held| held.0).collect::<Vec<u64>>();
    let mut best = (greedy.total, caps(&greedy));
    while greedy.held.len() < order.len() && greedy.add() {
        greedy.shift();
        if greedy.total > best.0 {
            best = (greedy.total, caps(&greedy));
        }
    }
    if best.1.is_empty() {
        let needed = candidates[first].least();
        return Err(TuneError::TooLittle { budget, processors: 1, needed });
    }
    let grant = |(candidate, cap): (&usize, u64)| Grant {
        candidate: *candidate,
        cap: Watts::from_milliwatts(cap),
    };
    let grants = order.iter().zip(best.1).map(grant).collect();
    Ok(Plain { grants, ips: Ips::from_ips(best.0) })
}
