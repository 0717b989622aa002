//! Statistics about cycles, and when regular tasks are due.

use std::time::Duration;

use crate::engine::Latest;
use crate::wire::{CycleTimes, CyclesWithin};
use busbar_core::units::{Instant, Span};

/// The bounds by which the durations of cycles are counted, in microseconds.
const BOUNDS: [u64; 9] = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000];

/// The pause between two searches for old jobs.
const BETWEEN_PRUNINGS: Span = Span::from_secs(60);

/// The pause between two checks of the daemon's files.
const BETWEEN_LOOKS: Span = Span::from_secs(1);

/// The pause between two times at which the engine is told why jobs wait.
const BETWEEN_EXPLANATIONS: Span = Span::from_secs(5);

pub(super) struct Pace {
    since: i64,
    cycles: Latest,
    /// The time of all cycles together, in microseconds.
    sum: u64,
    /// How many cycles took at most as long as the bound at the same place.
    at_most: [u64; BOUNDS.len()],
    next_pruning: Instant,
    next_look: Instant,
    next_explanation: Instant,
}

impl Pace {
    /// Statistics of a daemon that started at this time by the wall clock.
    pub(super) fn new(since: i64) -> Self {
        Pace {
            since,
            cycles: Latest::default(),
            sum: 0,
            at_most: [0; BOUNDS.len()],
            next_pruning: Instant::ZERO,
            next_look: Instant::ZERO,
            next_explanation: Instant::ZERO,
        }
    }

    pub(super) fn note(&mut self, took: Duration) {
        self.cycles.note(took);
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.sum = self.sum.saturating_add(took);
        for (count, bound) in self.at_most.iter_mut().zip(BOUNDS) {
            *count += u64::from(took <= bound);
        }
    }

    pub(super) fn cycle_times(&self) -> CycleTimes {
        let within = |(time, cycles): (u64, u64)| CyclesWithin { time, cycles };
        let at_most = BOUNDS.into_iter().zip(self.at_most).map(within).collect();
        CycleTimes { sum: self.sum, at_most }
    }

    pub(super) fn since(&self) -> i64 {
        self.since
    }

    pub(super) fn cycles(&self) -> &Latest {
        &self.cycles
    }

    pub(super) fn is_time_to_prune(&mut self, now: Instant) -> bool {
        let is_time = now >= self.next_pruning;
        if is_time {
            self.next_pruning = now + BETWEEN_PRUNINGS;
        }
        is_time
    }

    pub(super) fn is_time_to_look(&mut self, now: Instant) -> bool {
        let is_time = now >= self.next_look;
        if is_time {
            self.next_look = now + BETWEEN_LOOKS;
        }
        is_time
    }

    pub(super) fn is_time_to_explain(&mut self, now: Instant) -> bool {
        let is_time = now >= self.next_explanation;
        if is_time {
            self.next_explanation = now + BETWEEN_EXPLANATIONS;
        }
        is_time
    }

    /// Makes the next search for old jobs due at once.
    pub(super) fn prune_again(&mut self) {
        self.next_pruning = Instant::ZERO;
    }
}
