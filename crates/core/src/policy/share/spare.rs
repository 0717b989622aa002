//! Watts that are left to be shared out, over time: while limits are to come, whoever ends before a limit falls may have what is
//! there until then.

use smallvec::SmallVec;

use crate::policy::View;
use crate::units::{Instant, Watts};

/// More stretches of time are not told apart: then some that follow each other count as one, with the lowest of their limits.
const MOST_STRETCHES: usize = 64;

/// What is left in each stretch of time, from now on.
#[derive(Clone, Debug)]
pub(super) struct Spare {
    /// When each begins, and its milliwatts; below zero where more is held than the limit allows.
    stretches: SmallVec<[(Instant, i64); 1]>,
}

impl Spare {
    /// What jobs may hold in all, as far as somebody holds watts until then.
    pub(super) fn of_limits(view: &View<'_>, until: Instant) -> Self {
        let for_jobs = |limit: Watts| view.ledger.for_jobs(limit).milliwatts() as i64;
        let to_come = view.ledger.limits_to_come();
        let to_come = &to_come[..to_come.partition_point(|change| change.0 < until)];
        let mut stretches = SmallVec::new();
        stretches.push((view.now, for_jobs(view.ledger.limit())));
        for together in to_come.chunks(to_come.len().div_ceil(MOST_STRETCHES).max(1)) {
            let lowest = together.iter().map(|change| change.1).min();
            stretches.extend(lowest.map(|lowest| (together[0].0, for_jobs(lowest))));
        }
        Spare { stretches }
    }

    /// Whether limits are to come.
    #[inline]
    pub(super) fn changes(&self) -> bool {
        self.stretches.len() > 1
    }

    /// The stretches in which somebody holds watts until then. What should have ended holds them now.
    fn held_until(&mut self, until: Instant) -> impl Iterator<Item = &mut i64> {
        let held = self.stretches.iter_mut().enumerate();
        let held = held.take_while(move |(place, (from, _))| *place == 0 || *from < until);
        held.map(|(_, (_, left))| left)
    }

    /// Somebody holds so much until then.
    #[inline]
    pub(super) fn take(&mut self, until: Instant, power: Watts) {
        self.held_until(until).for_each(|left| *left -= power.milliwatts() as i64);
    }

    /// Somebody takes so much until then, if it is there; says whether it is.
    #[inline]
    pub(super) fn take_if_there(&mut self, until: Instant, power: Watts) -> bool {
        let needed = power.milliwatts() as i64;
        let is_there = self.held_until(until).all(|left| (*left).max(0) >= needed);
        if is_there {
            self.take(until, power);
        }
        is_there
    }

    /// Whether nobody can get so much now.
    #[inline]
    pub(super) fn is_below(&self, power: Watts) -> bool {
        self.stretches[0].1.max(0) < power.milliwatts() as i64
    }

    /// Whether all that is taken is there.
    pub(super) fn suffices(&self) -> bool {
        self.stretches.iter().all(|(_, left)| *left >= 0)
    }
}
