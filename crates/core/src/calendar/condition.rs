//! When something holds, as people say it: `weekdays 14:00-18:00 nov..feb`.
//!
//! A condition is words in any order, and all of them must hold: days of the week, times of day, months and
//! dates. A part of the day that passes midnight belongs to the day on which it began: `fri 22:00-06:00` is
//! also Saturday morning, and not Friday morning.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, DateTime, Time};

use super::cycle::{Cycle, DAYS, MONTHS, is_like};
use super::days::{Days, as_hours};
use super::time_of_day::Window;
use crate::spelling::hint;

/// When something holds, by a clock and a calendar on the wall.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Condition {
    weekdays: Option<Cycle<7>>,
    /// Parts of the day, any of which is enough; none if it is the whole day.
    times: Vec<Window>,
    months: Option<Cycle<12>>,
    /// Days, any of which is enough; none if it is every day.
    dates: Vec<Days>,
}

/// Why a condition cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// There is no word in it.
    #[error("it names no time; {VALID}")]
    Empty,
    /// A word is of no kind.
    #[error("'{0}' is not a time{hint} {VALID}", hint = hint(.0, NAMES))]
    Unknown(String),
    /// A word is wrong.
    #[error("{0}")]
    Word(String),
    /// There are two words of a kind.
    #[error(
        "'{second}' names {kind} a second time, and both must hold; join them with '+', as in {example}"
    )]
    Twice {
        /// The second of them.
        second: String,
        /// The kind of time that it names.
        kind: &'static str,
        /// How they are joined.
        example: &'static str,
    },
}

/// Words that may be misspelled beyond recognition as days or months.
const NAMES: [&str; 4] = ["weekdays", "weekends", "weekday", "weekend"];

/// What words there are.
const VALID: &str = "write days (weekdays, weekends, mon..thu, sat+sun), times (14:00-18:00), months \
                     (nov..feb) or dates (2026-12-24..2026-12-26, 12-24 for every year)";

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let mut condition = Condition::default();
        for word in text.split_whitespace() {
            condition.take(word)?;
        }
        match condition == Condition::default() {
            true => Err(ConditionError::Empty),
            false => Ok(condition),
        }
    }
}

impl Condition {
    fn take(&mut self, word: &str) -> Result<(), ConditionError> {
        let twice =
            |kind, example| ConditionError::Twice { second: word.to_owned(), kind, example };
        let lower = word.to_lowercase();
        let begins_with_digit = lower.starts_with(|c: char| c.is_ascii_digit());
        if begins_with_digit && lower.contains(':') {
            if !self.times.is_empty() {
                return Err(twice("times", "07:00-09:00+17:00-20:00"));
            }
            self.times = all(&lower, Window::parse)?;
        } else if begins_with_digit && lower.contains('-') {
            if !self.dates.is_empty() {
                return Err(twice("dates", "12-24..12-26+12-31"));
            }
            self.dates = all(&lower, Days::parse)?;
        } else if let Some(days) = weekdays(&lower)? {
            if self.weekdays.replace(days).is_some() {
                return Err(twice("days", "mon+wed"));
            }
        } else if is_like(&lower, &MONTHS) {
            let months = Cycle::parse(&lower, &MONTHS).map_err(ConditionError::Word)?;
            if self.months.replace(months).is_some() {
                return Err(twice("months", "jan+jul"));
            }
        } else {
            return Err(ConditionError::Unknown(word.to_owned()));
        }
        Ok(())
    }

    /// What may be a mistake in it: a day of the year among days of the week looks like hours without minutes, as in
    /// `weekdays 8-12`.
    pub(super) fn doubt(&self) -> Option<String> {
        let [day @ Days::Yearly(first, last)] = self.dates[..] else { return None };
        let is_one = first == last && self.weekdays.is_some() && self.times.is_empty();
        let hours = as_hours(&day.to_string()).filter(|_| is_one)?;
        Some(format!("'{self}' holds on one day of the year, {day}; for hours write {hours}"))
    }

    /// Whether it holds at a time on the wall.
    pub(crate) fn holds(&self, now: DateTime) -> bool {
        match &self.times[..] {
            [] => self.holds_on(now.date()),
            times => {
                times.iter().filter_map(|window| window.began(now)).any(|day| self.holds_on(day))
            }
        }
    }

    fn holds_on(&self, date: Date) -> bool {
        let weekday = date.weekday().to_monday_zero_offset() as usize;
        let month = date.month() as usize - 1;
        self.weekdays.is_none_or(|days| days.has(weekday))
            && self.months.is_none_or(|months| months.has(month))
            && (self.dates.is_empty() || self.dates.iter().any(|days| days.has(date)))
    }

    /// The times of day, beside midnight, at which it may begin or cease to hold.
    pub(super) fn faces(&self) -> impl Iterator<Item = Time> + '_ {
        self.times.iter().flat_map(|window| [window.from, window.to])
    }

    /// Whether it names days of one year alone, which come once.
    pub(super) fn comes_once(&self) -> bool {
        self.dates.iter().any(|days| matches!(days, Days::Once(..)))
    }
}

/// The days of the week that a word names, if it names any.
fn weekdays(word: &str) -> Result<Option<Cycle<7>>, ConditionError> {
    match word {
        "weekday" | "weekdays" => Ok(Some(Cycle::of(0..5))),
        "weekend" | "weekends" => Ok(Some(Cycle::of(5..7))),
        word if is_like(word, &DAYS) => {
            Cycle::parse(word, &DAYS).map(Some).map_err(ConditionError::Word)
        }
        _ => Ok(None),
    }
}

/// Parts with `+` between them, in order, each once.
fn all<T: Ord>(
    word: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, ConditionError> {
    let parts = word.split('+').map(read).collect::<Result<Vec<T>, _>>();
    let mut parts = parts.map_err(ConditionError::Word)?;
    parts.sort_unstable();
    parts.dedup();
    Ok(parts)
}

/// In one form, whichever way it was written: days, times, months, dates.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        if let Some(days) = self.weekdays {
            match days {
                days if days == Cycle::of(0..5) => f.write_str("weekdays")?,
                days if days == Cycle::of(5..7) => f.write_str("weekends")?,
                days => days.write(f, &DAYS)?,
            }
            separator = " ";
        }
        for (place, window) in self.times.iter().enumerate() {
            write!(f, "{}{window}", if place == 0 { separator } else { "+" })?;
            separator = " ";
        }
        if let Some(months) = self.months {
            f.write_str(separator)?;
            months.write(f, &MONTHS)?;
            separator = " ";
        }
        for (place, days) in self.dates.iter().enumerate() {
            write!(f, "{}{days}", if place == 0 { separator } else { "+" })?;
        }
        Ok(())
    }
}
