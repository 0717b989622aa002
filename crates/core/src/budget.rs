//! The power budget: one limit, or limits that change at known times.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use crate::machine::Machine;
use crate::rows::{Form, TableError};
use crate::units::{Instant, QuantityError, Share, Span, Watts, parse_decimal};

mod ahead;
mod energy;

use ahead::Ahead;
pub use energy::EnergyBudget;

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
}

impl PartialEq for Budget {
    fn eq(&self, other: &Self) -> bool {
        self.steps == other.steps
    }
}

impl Eq for Budget {}

impl Hash for Budget {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.steps.hash(state);
    }
}

/// The limits alone: what is derived from them says nothing more.
impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("steps", &self.steps).finish()
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
        Budget { steps: steps.into(), ahead: Arc::default() }
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
    pub fn lowest(&self, from: Instant, until: Instant) -> Watts {
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
    pub fn first_below(&self, limit: Watts, from: Instant, until: Instant) -> Option<Instant> {
        let now = self.next_step(from) - 1;
        if self.steps[now].1 < limit {
            return Some(from).filter(|from| *from < until);
        }
        let below = self.ahead().first_below(now + 1, limit)?;
        Some(self.steps[below].0).filter(|at| *at < until)
    }

    /// The first instant from `from` to before `until` from which the limit is not below this one
    /// for so long, or until then.
    pub fn first_stretch(
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
    pub fn largest_for(&self, instant: Instant, time: Span) -> Watts {
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
        Budget::of(self.steps.iter().map(|&(at, limit)| (at, lower(limit))).collect())
    }

    /// Whether there is a limit at any time.
    pub fn is_limited(&self) -> bool {
        self.steps.iter().any(|step| step.1 != Watts::UNLIMITED)
    }
}

/// A budget as it is written on the command line: `6500W`, `4.2MW`, `80%` of the machine's
/// maximum, `none`, or the path of a CSV file of `time,budget` rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BudgetSpec {
    /// The same at all times.
    Constant(Allowance),
    /// Limits that change, in a file.
    File(PathBuf),
}

/// One limit as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A limit in watts.
    Power(Watts),
    /// As a share of the machine's maximum power.
    Share(Share),
}

/// Why a budget could not be used.
#[derive(Debug, thiserror::Error)]
pub enum BudgetError {
    /// The text is none of the forms a budget may have.
    #[error(
        "budget '{0}': write watts (6500W, 4.2MW), a share of the machine's maximum (80%), \
         the path of a .csv file with time,budget rows, or none"
    )]
    Unknown(String),
    /// The number or its unit is wrong.
    #[error("budget '{text}': {why}")]
    Quantity {
        /// What was written.
        text: String,
        /// What is wrong with it.
        why: QuantityError,
    },
    /// The budget leaves nothing for jobs.
    #[error(
        "a budget of {budget} leaves nothing for jobs: the machine draws {base} at all times; \
         give more, or say in the machine file what it draws ('base', 'idle')"
    )]
    NothingLeft {
        /// The limit asked for.
        budget: Watts,
        /// What the machine draws without any job.
        base: Watts,
    },
    /// There are no limits in the list.
    #[error("the budget has no limits; give at least one")]
    Empty,
    /// Times are not increasing.
    #[error("budget times must increase, but {after} follows {before}")]
    NotIncreasing {
        /// The earlier row's time.
        before: Instant,
        /// The later row's time.
        after: Instant,
    },
    /// The file cannot be read, or a row of it is wrong.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The file has no rows.
    #[error("{} has no time,budget rows; give at least one", path.display())]
    NoRows {
        /// The file.
        path: PathBuf,
    },
}

impl FromStr for Limit {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let text = text.trim();
        match text.ends_with('%') {
            true => Ok(Limit::Share(text.parse()?)),
            false => Ok(Limit::Power(text.parse()?)),
        }
    }
}

impl Limit {
    /// The limit in watts on this machine; a share rounds down, so it is never exceeded.
    pub fn on(self, machine: &Machine) -> Result<Watts, BudgetError> {
        let budget = match self {
            Limit::Power(power) => power,
            Limit::Share(share) => share.of(machine.most_at_meter()).min(Watts::LARGEST),
        };
        let budget = machine.within(budget);
        if budget <= machine.floor() {
            return Err(BudgetError::NothingLeft { budget, base: machine.floor() });
        }
        Ok(budget)
    }
}

/// A limit as it is written, or `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// The machine may draw what it likes.
    Unlimited,
    /// It may draw so much.
    Limited(Limit),
}

impl FromStr for Allowance {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        match text.trim() {
            "none" => Ok(Allowance::Unlimited),
            limit => limit.parse().map(Allowance::Limited),
        }
    }
}

impl fmt::Display for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allowance::Unlimited => f.write_str("none"),
            Allowance::Limited(Limit::Power(power)) => power.fmt(f),
            Allowance::Limited(Limit::Share(share)) => share.fmt(f),
        }
    }
}

impl Allowance {
    /// How much that is on this machine.
    pub fn on(self, machine: &Machine) -> Result<Watts, BudgetError> {
        match self {
            Allowance::Unlimited => Ok(Watts::UNLIMITED),
            Allowance::Limited(limit) => limit.on(machine),
        }
    }
}

impl FromStr for BudgetSpec {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        match text.parse() {
            Ok(allowance) => Ok(BudgetSpec::Constant(allowance)),
            Err(_) if text.ends_with(".csv") || is_readable(text) => {
                Ok(BudgetSpec::File(text.into()))
            }
            Err(QuantityError::NotANumber(_)) => Err(BudgetError::Unknown(text.to_owned())),
            Err(why) => Err(BudgetError::Quantity { text: text.to_owned(), why }),
        }
    }
}

impl fmt::Display for BudgetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BudgetSpec::Constant(allowance) => allowance.fmt(f),
            BudgetSpec::File(path) => path.display().fmt(f),
        }
    }
}

impl BudgetSpec {
    /// What the text means on this machine.
    pub fn resolve(&self, machine: &Machine) -> Result<Budget, BudgetError> {
        match self {
            BudgetSpec::Constant(Allowance::Unlimited) => Ok(Budget::unlimited()),
            BudgetSpec::Constant(allowance) => Ok(Budget::constant(allowance.on(machine)?)),
            BudgetSpec::File(path) => parse_csv(&LIMITS.read(path)?, path, machine),
        }
    }
}

/// Whether there is something of this name that can be read: a file, a pipe, but no folder.
fn is_readable(path: &str) -> bool {
    Path::new(path).exists() && !Path::new(path).is_dir()
}

/// Tables of limits.
pub const LIMITS: Form =
    Form { what: "the budget file", columns: &["time", "budget"], form: "write time,budget" };

/// Reads `time,budget` rows: seconds since the start of the log, and a limit.
fn parse_csv(text: &str, path: &Path, machine: &Machine) -> Result<Budget, BudgetError> {
    let mut steps: Vec<(Instant, Watts)> = Vec::new();
    for cells in LIMITS.rows(text, path) {
        let cells = cells?;
        let [time, limit] = cells.all();
        let wrong = |field, why: String| BudgetError::Table(cells.unreadable(field, why));
        let millis = parse_decimal(time, 1000)
            .map_err(|error| wrong("time", format!("{error}; write seconds, such as 3600")))?;
        let instant = Instant::from_millis(millis);
        if let Some(&(before, _)) = steps.last().filter(|step| step.0 >= instant) {
            return Err(wrong("time", format!("{instant} does not come after {before}")));
        }
        let limit = limit
            .parse::<Allowance>()
            .map_err(|error| wrong("budget", error.to_string()))?
            .on(machine)
            .map_err(|error| wrong("budget", error.to_string()))?;
        steps.push((instant, limit));
    }
    if steps.is_empty() {
        return Err(BudgetError::NoRows { path: path.to_owned() });
    }
    Budget::from_steps(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn text_that_is_no_budget_says_what_is() {
        let error = |text: &str| text.parse::<BudgetSpec>().unwrap_err().to_string();
        assert!(error("lots").contains("write watts (6500W, 4.2MW)"), "{}", error("lots"));
        assert!(error("80").contains("valid units: mW, W, kW"), "{}", error("80"));
        assert!(error("-80%").contains("write watts"), "{}", error("-80%"));
    }

    #[test]
    fn rows_change_the_limit_and_wrong_rows_are_named() {
        let read = |text: &str| parse_csv(text, Path::new("feed.csv"), &machine());
        let budget = read("time,budget\n0,100%\n# night\n3600,500W\n").unwrap();
        assert_eq!(budget.at(Instant::from_secs(3599)), Watts::from_watts(1050));
        assert_eq!(budget.at(Instant::from_secs(3600)), Watts::from_watts(500));
        assert_eq!(budget.changes_after(Instant::ZERO).len(), 1);
        // An hour from the start is just as long as the higher limit holds.
        let longest =
            |from, time| budget.largest_for(Instant::from_secs(from), Span::from_secs(time));
        assert_eq!(longest(0, 3600), Watts::from_watts(1050));
        assert_eq!(longest(0, 3601), Watts::from_watts(500));
        assert_eq!(longest(1, 3600), Watts::from_watts(500));
        assert_eq!(longest(1, 0), Watts::from_watts(1050));
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            error("0,1kW\n0,1kW"),
            "feed.csv, line 2, field 'time': 0 s does not come after 0 s; write time,budget"
        );
        assert!(error("0,1kW\nx,1kW").starts_with("feed.csv, line 2, field 'time'"));
        assert!(error("0 1kW").starts_with("feed.csv, line 1, field 'budget': '0 1kW'"));
        assert!(error("0,12").contains("valid units"));
        let open = read("0,60%\n3600,none\n").unwrap();
        assert_eq!(open.at(Instant::from_secs(3600)), Watts::UNLIMITED);
        assert!(error("").contains("feed.csv has no time,budget rows"));
    }
}
