//! The same questions about later and later times.
//!
//! A scan of the free power asks about many short periods in a row, in which the limit rarely changes. So the limit
//! in force is kept, and the tree is searched only at changes.

use super::Budget;
use crate::units::{Instant, Span, Watts};

/// A budget as it is seen by somebody who goes along it: no question may be about an earlier time than the last one.
pub(crate) struct Along<'a> {
    budget: &'a Budget,
    /// The limit in force.
    limit: Watts,
    /// When the next one comes into force.
    until: Instant,
}

impl Budget {
    /// To ask about later and later times, from an instant on.
    pub(crate) fn along(&self, from: Instant) -> Along<'_> {
        let mut along = Along { budget: self, limit: Watts::ZERO, until: Instant::ZERO };
        along.go_to(from);
        along
    }
}

impl Along<'_> {
    #[inline]
    fn go_to(&mut self, at: Instant) {
        if at >= self.until {
            let next = self.budget.next_step(at);
            self.limit = self.budget.steps[next - 1].1;
            self.until = self.budget.steps.get(next).map_or(Instant::NEVER, |step| step.0);
        }
    }

    /// The same as [`Budget::first_below`].
    #[inline]
    pub(crate) fn first_below(
        &mut self,
        limit: Watts,
        from: Instant,
        until: Instant,
    ) -> Option<Instant> {
        self.go_to(from);
        match until <= self.until {
            true => Some(from).filter(|from| self.limit < limit && *from < until),
            false => self.budget.first_below(limit, from, until),
        }
    }

    /// The same as [`Budget::first_stretch`].
    #[inline]
    pub(crate) fn first_stretch(
        &mut self,
        limit: Watts,
        time: Span,
        from: Instant,
        until: Instant,
    ) -> Option<Instant> {
        self.go_to(from);
        match until <= self.until {
            true => Some(from).filter(|from| self.limit >= limit && *from < until),
            false => self.budget.first_stretch(limit, time, from, until),
        }
    }
}
