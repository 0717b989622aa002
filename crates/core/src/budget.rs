//! The power budget: one limit, or limits that change at known times.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use crate::calendar::Windows;
use crate::units::{Instant, Share, Span, Watts};

mod ahead;
mod along;
mod energy;
mod error;
mod file;
mod limit;
mod spec;
mod window;

use ahead::Ahead;
pub use energy::EnergyBudget;
pub use error::BudgetError;
pub use file::{Limits, TimeBase};
pub use limit::{Allowance, Limit, parse_rules};
pub use spec::BudgetSpec;
pub use window::WindowSpec;

/// How much power the machine may draw, as a function of time.
///
/// The limits are known in advance, as a tariff or a maintenance window is: policies and the
/// ledger look ahead, so a job is not started that would still be running when it no longer fits.
///
/// A copy is cheap: it shares the limits.
#[derive(Clone)]
pub struct Budget {
    /// Strictly increasing in time; the first starts at the beginning of the clock.
    steps: Arc<[(Instant, Watts)]>,
    /// Made when somebody first looks ahead.
    ahead: Arc<OnceLock<Ahead>>,
    /// What each feed of the machine may carry, where it has feeds.
    feeds: Option<Arc<[Budget]>>,
}

impl PartialEq for Budget {
    fn eq(&self, other: &Self) -> bool {
        self.steps == other.steps && self.feeds == other.feeds
    }
}

impl Eq for Budget {}

impl Hash for Budget {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.steps.hash(state);
        if let Some(feeds) = &self.feeds {
            feeds.hash(state);
        }
    }
}

/// The limits alone: what is derived from them says nothing more.
impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Budget");
        shown.field("steps", &self.steps);
        if let Some(feeds) = &self.feeds {
            shown.field("feeds", feeds);
        }
        shown.finish()
    }
}

impl Budget {
    /// No limit at all.
    pub fn unlimited() -> Self {
        Budget::constant(Watts::UNLIMITED)
    }

    /// One limit for all time.
    pub fn constant(limit: Watts) -> Self {
        Budget::of(vec![(Instant::ZERO, limit)])
    }

    /// Limits that hold from the given times on; the first also holds before its time.
    pub fn from_steps(steps: Vec<(Instant, Watts)>) -> Result<Self, BudgetError> {
        if steps.is_empty() {
            return Err(BudgetError::Empty);
        }
        if let Some(pair) = steps.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(BudgetError::NotIncreasing { before: pair[0].0, after: pair[1].0 });
        }
        let mut steps = steps;
        steps[0].0 = Instant::ZERO;
        Ok(Budget::of(steps))
    }

    fn of(steps: Vec<(Instant, Watts)>) -> Self {
        Budget { steps: steps.into(), ahead: Arc::default(), feeds: None }
    }

    fn ahead(&self) -> &Ahead {
        self.ahead.get_or_init(|| Ahead::of(&self.steps))
    }

    /// The first step that takes effect after `instant`.
    fn next_step(&self, instant: Instant) -> usize {
        self.steps.partition_point(|step| step.0 <= instant)
    }

    /// The first step that takes effect at `instant` or later.
    fn step_from(&self, instant: Instant) -> usize {
        self.steps.partition_point(|step| step.0 < instant)
    }

    /// The limit at an instant.
    pub fn at(&self, instant: Instant) -> Watts {
        self.steps[self.next_step(instant) - 1].1
    }

    /// The limits that take effect after `instant`, in order.
    pub fn changes_after(&self, instant: Instant) -> &[(Instant, Watts)] {
        &self.steps[self.next_step(instant)..]
    }

    /// The lowest limit in force at any time from an instant to before another; the one at `from`
    /// always counts.
    pub(crate) fn lowest(&self, from: Instant, until: Instant) -> Watts {
        let next = self.next_step(from);
        let limit = self.steps[next - 1].1;
        match self.steps.get(next) {
            Some(step) if step.0 < until => {
                let to_come = self.ahead().lowest(next, self.step_from(until));
                to_come.map_or(limit, |lowest| lowest.min(limit))
            }
            _ => limit,
        }
    }

    /// The first instant from `from` to before `until` at which the limit is below this one.
    pub(crate) fn first_below(
        &self,
        limit: Watts,
        from: Instant,
        until: Instant,
    ) -> Option<Instant> {
        let now = self.next_step(from) - 1;
        if self.steps[now].1 < limit {
            return Some(from).filter(|from| *from < until);
        }
        let below = self.ahead().first_below(now + 1, limit)?;
        Some(self.steps[below].0).filter(|at| *at < until)
    }

    /// The first instant from `from` to before `until` from which the limit is not below this one
    /// for so long, or until then.
    pub(crate) fn first_stretch(
        &self,
        limit: Watts,
        time: Span,
        from: Instant,
        until: Instant,
    ) -> Option<Instant> {
        if from >= until {
            return None;
        }
        let Some(below) = self.first_below(limit, from, until) else { return Some(from) };
        if below > from && from + time <= below {
            return Some(from);
        }
        // Whatever lasts long enough begins with a step, and so does what holds at the end.
        let (next, end) = (self.next_step(from), self.step_from(until));
        let whole = self.ahead().first_for(next, limit, time).filter(|step| *step < end);
        let last = self.ahead().last_below(end, limit).map(|below| below + 1);
        let last = last.filter(|step| *step < end);
        let first = whole.into_iter().chain(last).min();
        first.map(|step| self.steps[step].0)
    }

    /// The most that may be drawn for so long without a break, from some instant on that is not
    /// before `instant`.
    pub(crate) fn largest_for(&self, instant: Instant, time: Span) -> Watts {
        let now = self.lowest(instant, instant + time);
        match self.next_step(instant) {
            next if next == self.steps.len() => now,
            // It is best to begin with a limit: later there is only more to come.
            next => self.ahead().highest_for(next, time).map_or(now, |then| then.max(now)),
        }
    }

    /// The same limits, each lower by a share of it; what is kept back is rounded down.
    pub fn lowered(&self, by: Share) -> Self {
        let lower = |limit: Watts| match limit {
            Watts::UNLIMITED => limit,
            limit => limit.saturating_sub(by.of(limit)),
        };
        let lowered =
            Budget::of(self.steps.iter().map(|&(at, limit)| (at, lower(limit))).collect());
        let feeds = self.feeds.iter().flat_map(|feeds| feeds.iter());
        let feeds: Vec<Budget> = feeds.map(|feed| feed.lowered(by)).collect();
        lowered.with_feeds(feeds)
    }

    /// The same, with what each feed of the machine may carry; none if it has no feeds.
    pub fn with_feeds(self, feeds: Vec<Budget>) -> Self {
        let feeds = (!feeds.is_empty()).then(|| feeds.into());
        Budget { feeds, ..self }
    }

    /// What each feed of the machine may carry, in the order of [`Feeds::all`](crate::machine::Feeds::all).
    pub fn feeds(&self) -> Option<&Arc<[Budget]>> {
        self.feeds.as_ref()
    }

    /// When the limit is below its highest.
    pub fn cuts(&self) -> Windows {
        let highest = self.steps.iter().map(|step| step.1).max();
        let steps: Vec<(Instant, bool)> =
            self.steps.iter().map(|&(at, limit)| (at, Some(limit) != highest)).collect();
        Windows::where_true(&steps)
    }

    /// Whether there is a limit at any time.
    pub fn is_limited(&self) -> bool {
        self.steps.iter().any(|step| step.1 != Watts::UNLIMITED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lowered_budget_is_lower_at_every_time() {
        let steps = vec![
            (Instant::ZERO, Watts::from_watts(100)),
            (Instant::from_secs(5), Watts::from_milliwatts(7)),
            (Instant::from_secs(9), Watts::UNLIMITED),
        ];
        let budget = Budget::from_steps(steps).unwrap().lowered(Share::percent(15));
        let limits = [0, 5, 9].map(|second| budget.at(Instant::from_secs(second)));
        assert_eq!(limits, [Watts::from_watts(85), Watts::from_milliwatts(6), Watts::UNLIMITED]);
    }
}
