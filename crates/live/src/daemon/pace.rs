//! Statistics about cycles, and when regular tasks are due.

use std::collections::VecDeque;
use std::time::Duration;

use busbar_core::units::{Instant, Span};

/// The number of latest cycles whose duration is kept.
const REMEMBERED: usize = 1000;

/// The pause between two searches for old jobs.
const BETWEEN_PRUNINGS: Span = Span::from_secs(60);

/// The pause between two checks of the daemon's files.
const BETWEEN_LOOKS: Span = Span::from_secs(1);

pub(super) struct Pace {
    since: i64,
    cycles: u64,
    /// In microseconds.
    latest: VecDeque<u64>,
    next_pruning: Instant,
    next_look: Instant,
}

impl Pace {
    /// Statistics of a daemon that started at this time by the wall clock.
    pub(super) fn new(since: i64) -> Self {
        let latest = VecDeque::new();
        Pace { since, cycles: 0, latest, next_pruning: Instant::ZERO, next_look: Instant::ZERO }
    }

    pub(super) fn note(&mut self, took: Duration) {
        self.cycles += 1;
        if self.latest.len() == REMEMBERED {
            self.latest.pop_front();
        }
        self.latest.push_back(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    pub(super) fn since(&self) -> i64 {
        self.since
    }

    pub(super) fn cycles(&self) -> u64 {
        self.cycles
    }

    /// The longest of the latest cycles, in microseconds.
    pub(super) fn longest(&self) -> u64 {
        self.latest.iter().copied().max().unwrap_or(0)
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

    /// Makes the next search for old jobs due at once.
    pub(super) fn prune_again(&mut self) {
        self.next_pruning = Instant::ZERO;
    }
}
