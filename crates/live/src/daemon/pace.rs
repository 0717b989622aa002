//! Statistics about cycles, and when regular tasks are due.

use std::time::Duration;

use crate::latest::Latest;
use busbar_core::units::{Instant, Span};

/// The pause between two searches for old jobs.
const BETWEEN_PRUNINGS: Span = Span::from_secs(60);

/// The pause between two checks of the daemon's files.
const BETWEEN_LOOKS: Span = Span::from_secs(1);

pub(super) struct Pace {
    since: i64,
    cycles: Latest,
    next_pruning: Instant,
    next_look: Instant,
}

impl Pace {
    /// Statistics of a daemon that started at this time by the wall clock.
    pub(super) fn new(since: i64) -> Self {
        let cycles = Latest::default();
        Pace { since, cycles, next_pruning: Instant::ZERO, next_look: Instant::ZERO }
    }

    pub(super) fn note(&mut self, took: Duration) {
        self.cycles.note(took);
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

    /// Makes the next search for old jobs due at once.
    pub(super) fn prune_again(&mut self) {
        self.next_pruning = Instant::ZERO;
    }
}
