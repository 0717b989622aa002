//! A budget as it is written, and what that means on a machine.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::Budget;
use super::error::BudgetError;
use super::file::{Limits, TimeBase};
use super::limit::{Allowance, parse_rules};
use crate::calendar::{Rules, RunDates, Timetable, looks_like_rules};
use crate::machine::Machine;
use crate::units::Watts;

/// A budget as it is written on the command line: `6500W`, `4.2MW`, `80%` of the machine's maximum, `none`,
/// rules (`weekdays 14:00-18:00: 80%, else 100%`), or the path of a file of `time,budget` rows or of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BudgetSpec {
    /// The same at all times.
    Constant(Allowance),
    /// Limits by the calendar.
    Rules(Rules<Allowance>),
    /// Limits that change, in a file.
    File(PathBuf),
}

impl FromStr for BudgetSpec {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        match text.parse() {
            Ok(allowance) => Ok(BudgetSpec::Constant(allowance)),
            Err(_) if text.ends_with(".csv") || is_readable(text) => {
                Ok(BudgetSpec::File(text.into()))
            }
            Err(_) if looks_like_rules(text) => Ok(BudgetSpec::Rules(parse_rules(text)?)),
            Err(why) if text.trim_start().starts_with(|sign: char| sign.is_ascii_digit()) => {
                Err(BudgetError::Quantity { text: text.to_owned(), why })
            }
            Err(_) => Err(BudgetError::Unknown(text.to_owned())),
        }
    }
}

/// In one form: rules whichever way they were written.
impl fmt::Display for BudgetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BudgetSpec::Constant(allowance) => allowance.fmt(f),
            BudgetSpec::Rules(rules) => rules.fmt(f),
            BudgetSpec::File(path) => path.display().fmt(f),
        }
    }
}

impl BudgetSpec {
    /// What the text means on this machine, for a run of which no dates are known.
    pub fn resolve(&self, machine: &Machine) -> Result<Budget, BudgetError> {
        self.resolve_on(machine, &RunDates::unknown())
    }

    /// What may be a mistake in it, a sentence for each thing.
    pub fn doubts(&self) -> Vec<String> {
        match self {
            BudgetSpec::Rules(rules) => rules.doubts().collect(),
            BudgetSpec::Constant(_) | BudgetSpec::File(_) => Vec::new(),
        }
    }

    /// What the text means on this machine, on these dates. Limits by the calendar are looked up for twice as
    /// long as the log and a year more; after that the lowest of them holds, so that nobody waits for a
    /// limit that would not last.
    pub fn resolve_on(&self, machine: &Machine, dates: &RunDates) -> Result<Budget, BudgetError> {
        let timetable = match self {
            BudgetSpec::Constant(allowance) => Timetable::Always(allowance.on(machine)?),
            BudgetSpec::Rules(rules) => Timetable::Rules(rules.try_map(|limit| limit.on(machine))?),
            BudgetSpec::File(path) => {
                let zone = dates.calendar.as_ref().map(|calendar| calendar.zone());
                match Limits::read(path, machine, &TimeBase::Log(zone))? {
                    Limits::After(steps) => {
                        return Ok(Budget::from_steps(steps)?.with_feeds(feeds(machine, dates)?));
                    }
                    Limits::Timed(timetable) => timetable,
                }
            }
        };
        let lowest = timetable.values().min().copied().unwrap_or(Watts::UNLIMITED);
        let budget = Budget::from_steps(dates.steps(&timetable, &lowest)?)?;
        Ok(budget.with_feeds(feeds(machine, dates)?))
    }
}

/// What each feed of a machine may carry on these dates.
fn feeds(machine: &Machine, dates: &RunDates) -> Result<Vec<Budget>, BudgetError> {
    let feeds = machine.feeds.iter().flat_map(|feeds| feeds.all());
    let budgets = feeds.map(|feed| {
        let lowest = feed.limit.values().min().copied().unwrap_or(Watts::UNLIMITED);
        Budget::from_steps(dates.steps(&feed.limit, &lowest)?)
    });
    budgets.collect()
}

/// Whether there is something of this name that can be read: a file, a pipe, but no folder.
fn is_readable(path: &str) -> bool {
    Path::new(path).exists() && !Path::new(path).is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Instant, Span};

    fn machine() -> Machine {
        Machine { base_power: Watts::from_watts(50), ..Machine::of_processors(10).unwrap() }
    }

    #[test]
    fn a_share_is_of_the_maximum_and_rounds_down() {
        // 10 nodes of 100 W and 50 W of base: 1050 W at most.
        let budget = |text: &str| {
            text.parse::<BudgetSpec>().unwrap().resolve(&machine()).map(|b| b.at(Instant::ZERO))
        };
        assert_eq!(budget("80%").unwrap(), Watts::from_watts(840));
        assert_eq!(budget("33.3333%").unwrap(), Watts::from_milliwatts(349_999));
        assert_eq!(budget("0.5kW").unwrap(), Watts::from_watts(500));
        assert!(matches!(budget("0%"), Err(BudgetError::NothingLeft { .. })));
        assert!(matches!(budget("50W"), Err(BudgetError::NothingLeft { .. })));
    }

    #[test]
    fn text_that_is_no_budget_says_what_is() {
        let error = |text: &str| text.parse::<BudgetSpec>().unwrap_err().to_string();
        assert!(error("lots").contains("write watts (6500W, 4.2MW)"), "{}", error("lots"));
        assert!(error("80").contains("did you mean 80%, 80W or 80kW? valid units: mW, W, kW"));
        assert!(error("15KW").starts_with("budget '15KW': '15KW' has no known unit of power; did"));
        assert!(error("1,5kW").contains("'1,5' is not a number; did you mean 1.5?"));
        assert!(error("12,5%").contains("'12,5' is not a number; did you mean 12.5?"));
        assert!(error("-80%").contains("write watts"), "{}", error("-80%"));
        assert!(error("weekdays: 80%").contains("add ', else 100%'"), "{}", error("weekdays: 80%"));
    }

    /// Central Europe, where the last Sunday of March 2026 has 23 hours.
    fn dates(days: u32) -> RunDates {
        let calendar = "2026-03-27 00:00 Europe/Berlin".parse().unwrap();
        RunDates::of_log(Ok(calendar), Instant::from_secs(days * 86_400))
    }

    #[test]
    fn rules_become_steps_of_civil_time() {
        let spec: BudgetSpec = "weekends 06:00-18:00: 50%, else none".parse().unwrap();
        assert_eq!(spec.to_string(), "weekends 06:00-18:00: 50%, else none");
        let budget = spec.resolve_on(&machine(), &dates(7)).unwrap();
        let hours = |hours: u32| Instant::from_secs(hours * 3600);
        // Saturday from 30 to 42. Sunday's clock is set at 02:00: its 06:00 is an hour earlier.
        let half = Watts::from_watts(525);
        let expected = [(30, half), (42, Watts::UNLIMITED), (53, half), (65, Watts::UNLIMITED)];
        let expected = expected.map(|(at, limit)| (hours(at), limit));
        assert_eq!(budget.at(Instant::ZERO), Watts::UNLIMITED);
        assert_eq!(budget.changes_after(Instant::ZERO)[..4], expected);
        // Two weeks and a year are looked up; then the lowest limit stays.
        let until = Instant::from_secs((14 + 366) * 86_400);
        let last = *budget.changes_after(Instant::ZERO).last().unwrap();
        assert_eq!(last, (until, half));
        assert_eq!(budget.largest_for(Instant::ZERO, Span::from_secs(8 * 86_400)), half);
    }

    #[test]
    fn rules_need_dates() {
        let spec: BudgetSpec = "weekdays: 50%, else none".parse().unwrap();
        let error = spec.resolve(&machine()).unwrap_err().to_string();
        assert!(error.contains("--start '2026-01-01 00:00 Europe/Berlin'"), "{error}");
    }
}
