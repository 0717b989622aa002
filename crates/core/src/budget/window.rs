//! Parts of a run's time as they are asked for.

use std::fmt;
use std::str::FromStr;

use super::Budget;
use crate::calendar::{Condition, ConditionError, NoCalendar, RunDates, Windows};

/// Parts of a run's time as they are written: `weekdays 14:00-18:00 nov..feb`, or `cuts`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WindowSpec {
    /// Whenever the limit is below its highest.
    Cuts,
    /// By the calendar.
    When(Condition),
}

impl FromStr for WindowSpec {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        match text.trim() {
            "cuts" => Ok(WindowSpec::Cuts),
            text => text.parse().map(WindowSpec::When),
        }
    }
}

impl fmt::Display for WindowSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WindowSpec::Cuts => f.write_str("cuts"),
            WindowSpec::When(condition) => condition.fmt(f),
        }
    }
}

impl WindowSpec {
    /// The parts of a run under a budget, on these dates.
    pub fn resolve(&self, budget: &Budget, dates: &RunDates) -> Result<Windows, NoCalendar> {
        let windows = match self {
            WindowSpec::Cuts => budget.cuts(),
            WindowSpec::When(condition) => Windows::of(condition, dates)?,
        };
        Ok(windows.called(self.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Instant, Watts};

    #[test]
    fn cuts_are_below_the_highest_limit() {
        let at = Instant::from_secs;
        let steps = [(0, 100), (10, 60), (20, 80), (30, 100), (40, 50)];
        let steps = steps.map(|(second, watts)| (at(second), Watts::from_watts(watts)));
        let budget = Budget::from_steps(steps.to_vec()).unwrap();
        let windows = WindowSpec::Cuts.resolve(&budget, &RunDates::unknown()).unwrap();
        let inside: Vec<u32> = (0..60).filter(|second| windows.has(at(*second))).collect();
        assert_eq!(inside, (10..30).chain(40..60).collect::<Vec<_>>());
        let mut place = 0;
        assert_eq!(windows.state(&mut place, at(5)), (false, at(10)));
        assert_eq!(windows.state(&mut place, at(10)), (true, at(30)));
        assert_eq!(windows.state(&mut place, at(30)), (false, at(40)));
        assert_eq!(windows.state(&mut place, at(99)), (true, Instant::NEVER));
        assert!(Budget::unlimited().cuts() == Windows::default());
        assert!(
            "weekdays"
                .parse::<WindowSpec>()
                .unwrap()
                .resolve(&budget, &RunDates::unknown())
                .is_err()
        );
    }
}
