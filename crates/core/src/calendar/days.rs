//! Dates as rules name them: single days and ranges, of one year or of every year.

use std::fmt;

use jiff::civil::Date;

use super::time_of_day::Window;

/// Days from a date to another, both of them included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Days {
    /// Once: `2026-12-24..2026-12-26`.
    Once(Date, Date),
    /// Every year, by month and day: `12-24..12-26`. The last may come before the first: `12-24..01-02`.
    Yearly((i8, i8), (i8, i8)),
}

impl Days {
    /// Reads a day or a range of days.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let is_yearly = |text: &str| text.matches('-').count() == 1;
        match (is_yearly(first), is_yearly(last)) {
            (true, true) => Ok(Days::Yearly(day_of_year(first)?, day_of_year(last)?)),
            (false, false) => {
                let (first, last) = (date(first)?, date(last)?);
                match first <= last {
                    true => Ok(Days::Once(first, last)),
                    false => Err(format!("'{text}' ends before it begins")),
                }
            }
            _ => Err(format!(
                "'{text}' has a year at one end; write it at both (2026-12-24..2026-12-26) or at none \
                 (12-24..12-26)"
            )),
        }
    }

    /// Whether a day is one of them.
    pub(super) fn has(&self, date: Date) -> bool {
        match *self {
            Days::Once(first, last) => first <= date && date <= last,
            Days::Yearly(first, last) => {
                let day = (date.month(), date.day());
                match first <= last {
                    true => first <= day && day <= last,
                    false => first <= day || day <= last,
                }
            }
        }
    }
}

impl fmt::Display for Days {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Days::Once(first, last) if first == last => write!(f, "{first}"),
            Days::Once(first, last) => write!(f, "{first}..{last}"),
            Days::Yearly(first, last) if first == last => {
                write!(f, "{:02}-{:02}", first.0, first.1)
            }
            Days::Yearly(first, last) => {
                write!(f, "{:02}-{:02}..{:02}-{:02}", first.0, first.1, last.0, last.1)
            }
        }
    }
}

/// The part of the day that somebody may mean who writes `14-18`, `9h-12h` or `14.00-18.30`.
pub(super) fn as_hours(text: &str) -> Option<String> {
    let (from, to) = text.split_once('-')?;
    let clock = |text: &str| {
        let (hour, minute) = text.split_once('.').unwrap_or((text.trim_end_matches('h'), "00"));
        let is_hour = (1..=2).contains(&hour.len()) && hour.bytes().all(|b| b.is_ascii_digit());
        let hour = hour.parse::<u8>().ok().filter(|hour| is_hour && *hour <= 24)?;
        (minute.len() == 2).then(|| format!("{hour:02}:{minute}"))
    };
    let window = format!("{}-{}", clock(from)?, clock(to)?);
    Window::parse(&window).is_ok().then_some(window)
}

fn wrong(text: &str) -> String {
    let hours = as_hours(text).map_or(String::new(), |hours| format!("; for hours write {hours}"));
    format!("'{text}' is not a date; write 2026-12-24, or 12-24 for every year{hours}")
}

fn date(text: &str) -> Result<Date, String> {
    let is_plain = text.len() == 10 && text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    text.parse().ok().filter(|_| is_plain).ok_or_else(|| wrong(text))
}

/// A month and a day of it, as it is in a leap year.
fn day_of_year(text: &str) -> Result<(i8, i8), String> {
    let (month, day) = text.split_once('-').ok_or_else(|| wrong(text))?;
    let number = |text: &str| {
        let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<i8>().ok().filter(|_| is_number)
    };
    let date = number(month).zip(number(day));
    let date = date.and_then(|(month, day)| Date::new(2000, month, day).ok());
    date.map(|date| (date.month(), date.day())).ok_or_else(|| wrong(text))
}
