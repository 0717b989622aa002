//! When the main loop and the backfill pass run.
//!
//! Slurm looks once a second whether something is to be done. The main loop is due for the whole queue once in each
//! `sched_interval`, and to its usual depth once jobs were submitted and `batch_sched_delay` is over since it was due last. A backfill
//! pass is due `bf_interval` after the last one, if anything about jobs has changed since: one arrived, started, ended, or was
//! passed over by the main loop.

use super::slots::{ceil, floor};
use crate::priority::Scheduler;
use crate::units::{Instant, Span};

const SECOND: Span = Span::from_secs(1);

/// When passes were due last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    /// When the main loop was due for the whole queue.
    whole: Instant,
    /// When it was due at all.
    batch: Instant,
    /// Since when it has been wanted.
    wanted: Option<Instant>,
    /// When there was a backfill pass.
    backfill: Instant,
    /// When something about jobs changed.
    update: Instant,
}

/// What is due of the main loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A loop over the whole queue.
    Whole,
    /// One to the usual depth.
    Batch,
}

impl Clock {
    pub(super) fn new(now: Instant) -> Self {
        let now = floor(now, SECOND);
        Clock { whole: now, batch: now, wanted: None, backfill: now, update: now }
    }

    /// Something about jobs changes.
    pub(super) fn note_update(&mut self, now: Instant) {
        self.update = now;
    }

    /// The main loop is wanted.
    pub(super) fn want(&mut self, now: Instant) {
        self.wanted.get_or_insert(now);
    }

    /// When the main loop is due next for the whole queue.
    pub(super) fn next_whole(&self, rules: &Scheduler) -> Instant {
        self.whole + rules.sched_interval
    }

    /// When it is due next because it is wanted.
    pub(super) fn next_batch(&self, rules: &Scheduler) -> Option<Instant> {
        Some(ceil(self.wanted?, SECOND).max(self.batch + rules.batch_sched_delay))
    }

    /// When a backfill pass is due next, if nothing more happens than that the main loop passes over somebody, or not.
    pub(super) fn next_backfill(&self, rules: &Scheduler, passes_over: bool) -> Option<Instant> {
        let update = match self.update >= self.backfill {
            true => self.update,
            false if passes_over => self.next_whole(rules),
            false => return None,
        };
        Some(ceil(update, SECOND).max(self.backfill + rules.bf_interval))
    }

    /// What is due of the main loop.
    pub(super) fn due(&self, now: Instant, rules: &Scheduler) -> Option<Due> {
        if self.next_whole(rules) <= now {
            return Some(Due::Whole);
        }
        self.next_batch(rules).filter(|next| *next <= now).map(|_| Due::Batch)
    }

    /// The main loop runs that is due.
    pub(super) fn run(&mut self, now: Instant, due: Due) {
        (self.batch, self.wanted) = (now, None);
        if due == Due::Whole {
            self.whole = now;
        }
    }

    /// Whether a backfill pass is due.
    pub(super) fn is_backfill_due(&self, now: Instant, rules: &Scheduler) -> bool {
        self.next_backfill(rules, false).is_some_and(|next| next <= now)
    }

    /// There is a backfill pass.
    pub(super) fn run_backfill(&mut self, now: Instant) {
        self.backfill = now;
    }

    /// All passes were run that were due before `now`, and came to nothing.
    pub(super) fn catch_up(&mut self, now: Instant, rules: &Scheduler, passes_over: bool) {
        loop {
            let whole = self.next_whole(rules);
            let batch = self.next_batch(rules).unwrap_or(Instant::NEVER);
            let backfill = self.next_backfill(rules, false).unwrap_or(Instant::NEVER);
            let first = whole.min(batch).min(backfill);
            if first >= now {
                return;
            }
            if first == whole.min(batch) {
                self.run(first, if first == whole { Due::Whole } else { Due::Batch });
                if passes_over {
                    self.update = first;
                } else if backfill == Instant::NEVER {
                    self.skip(now, rules);
                }
            } else {
                self.run_backfill(first);
            }
        }
    }

    /// The same if there are only loops over the whole queue, and these change nothing.
    fn skip(&mut self, now: Instant, rules: &Scheduler) {
        let interval = rules.sched_interval.millis();
        let past = now.since(self.whole).millis().saturating_sub(1) / interval * interval;
        if past > 0 && self.wanted.is_none() {
            self.run(self.whole + Span::from_millis(past), Due::Whole);
        }
    }
}
