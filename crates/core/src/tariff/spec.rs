//! Prices, carbon intensities and temperatures as they are written, and what that means for a run.

use std::fmt;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};

use super::rate::{Measure, Rate, RateError};
use super::series::{self, Series, SeriesValue, Timed};
use super::{Curve, TariffError};
use crate::calendar::{Calendar, Rules, RunDates, Timetable, looks_like_rules};
use crate::units::{Celsius, Instant};

/// A value over time as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeriesSpec<V> {
    /// The same at all times: `0.32EUR/kWh`.
    Constant(V),
    /// By the calendar: `weekdays 07:00-20:00: 0.32EUR/kWh, else 0.24EUR/kWh`.
    Rules(Rules<V>),
    /// In a file: `prices.csv`, `prices.csv:DE`, `prices.csv:DE repeat`.
    File {
        /// The file.
        path: PathBuf,
        /// The column, if it is named.
        column: Option<String>,
        /// Whether it is used again and again.
        repeats: bool,
    },
}

/// A price or a carbon intensity as it is written.
pub type RateSpec = SeriesSpec<Rate>;

/// What a rate has to be of.
#[derive(Clone, Copy)]
struct Wanted {
    what: &'static str,
    example: &'static str,
    is_it: fn(Measure) -> bool,
}

const PRICE: Wanted =
    Wanted { what: "price", example: "0.32EUR/kWh", is_it: |of| matches!(of, Measure::Money(_)) };

const CARBON: Wanted =
    Wanted { what: "carbon intensity", example: "450g/kWh", is_it: |of| of == Measure::Carbon };

/// Reads a price.
pub fn parse_price(text: &str) -> Result<RateSpec, TariffError> {
    PRICE.parse(text)
}

/// Reads a carbon intensity.
pub fn parse_carbon(text: &str) -> Result<RateSpec, TariffError> {
    CARBON.parse(text)
}

/// Reads temperatures.
pub fn parse_outdoor(text: &str) -> Result<SeriesSpec<Celsius>, TariffError> {
    let (text, example) = (text.trim(), "21.5C");
    if let Ok(celsius) = text.parse::<Celsius>() {
        return Ok(SeriesSpec::Constant(celsius));
    }
    if let Some(file) = file(text) {
        return Ok(file);
    }
    if looks_like_rules(text) {
        return Ok(SeriesSpec::Rules(Rules::parse(text, example, str::parse::<Celsius>)?));
    }
    let what = "outdoor temperature";
    Err(TariffError::Unknown { text: text.to_owned(), what, example, why: String::new() })
}

impl Wanted {
    fn parse(self, text: &str) -> Result<RateSpec, TariffError> {
        let text = text.trim();
        let why = match text.parse::<Rate>() {
            Ok(rate) => return self.checked(rate, text).map(RateSpec::Constant),
            Err(why) => why,
        };
        if let Some(file) = file(text) {
            return Ok(file);
        }
        if looks_like_rules(text) {
            let rules = Rules::parse(text, self.example, str::parse::<Rate>)?;
            let mut values = rules.values();
            let first = values.next().copied();
            for &other in rules.values() {
                self.checked(other, text)?;
                if let Some(one) = first.filter(|first| first.of != other.of) {
                    return Err(TariffError::Mixed { one, other });
                }
            }
            drop(values);
            return Ok(RateSpec::Rules(rules));
        }
        let why = match why {
            RateError::NotANumber(_) if !text.starts_with(|c: char| c.is_ascii_digit()) => {
                String::new()
            }
            why => format!(": {why}"),
        };
        let (what, example) = (self.what, self.example);
        Err(TariffError::Unknown { text: text.to_owned(), what, example, why })
    }

    fn checked(self, rate: Rate, text: &str) -> Result<Rate, TariffError> {
        let (what, example) = (self.what, self.example);
        let other = || TariffError::OtherMeasure { what, text: text.to_owned(), example };
        (self.is_it)(rate.of).then_some(rate).ok_or_else(other)
    }
}

/// A file, its column, and whether it is used again and again.
fn file<V>(text: &str) -> Option<SeriesSpec<V>> {
    let (named, repeats) = match text.strip_suffix(" repeat") {
        Some(named) => (named.trim_end(), true),
        None => (text, false),
    };
    let is_file = |path: &str| Path::new(path).is_file() || path.ends_with(".csv");
    let (path, column) = match named.rsplit_once(':') {
        Some((path, column)) if !is_file(named) && is_file(path) => (path, Some(column.trim())),
        _ => (named, None),
    };
    let column = column.map(str::to_owned);
    is_file(path).then(|| SeriesSpec::File { path: path.into(), column, repeats })
}

/// In one form.
impl<V: fmt::Display> fmt::Display for SeriesSpec<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SeriesSpec::Constant(value) => value.fmt(f),
            SeriesSpec::Rules(rules) => rules.fmt(f),
            SeriesSpec::File { path, column, repeats } => {
                write!(f, "{}", path.display())?;
                if let Some(column) = column {
                    write!(f, ":{column}")?;
                }
                f.write_str(if *repeats { " repeat" } else { "" })
            }
        }
    }
}

impl<V> SeriesSpec<V> {
    /// The same seen from anywhere: a file by its whole path.
    pub fn absolute(self) -> Self {
        match self {
            SeriesSpec::File { path, column, repeats } => {
                let path = std::path::absolute(&path).unwrap_or(path);
                SeriesSpec::File { path, column, repeats }
            }
            other => other,
        }
    }
}

impl<V: SeriesValue + PartialEq + fmt::Display> SeriesSpec<V> {
    /// What the text means on these dates, for a log whose jobs are submitted from `begin` to `end`.
    pub fn resolve(
        &self,
        dates: &RunDates,
        begin: Instant,
        end: Instant,
    ) -> Result<Curve<V>, TariffError> {
        match self {
            SeriesSpec::Constant(value) => Ok(Curve::constant(*value)),
            SeriesSpec::Rules(rules) => {
                let value = *rules
                    .values()
                    .next()
                    .ok_or(crate::calendar::RulesError::Empty(String::new()))?;
                let steps = dates.steps(&Timetable::Rules(rules.clone()), &value)?;
                Ok(Curve { steps, until: dates.until })
            }
            SeriesSpec::File { path, column, repeats } => {
                let zone = dates.calendar.as_ref().map(Calendar::zone);
                let curve = match series::read(path, column.as_deref(), zone)? {
                    Timed::After(series) => Curve { steps: series.steps, until: series.end },
                    Timed::Dated(series) => {
                        let calendar = dates.calendar.as_ref().map_err(Clone::clone)?;
                        return self.of_dates(
                            series,
                            *repeats,
                            calendar,
                            dates.until,
                            (begin, end),
                        );
                    }
                };
                match repeats {
                    true => Ok(repeated(&curve, dates.until)),
                    false => self.covered(curve, begin, end),
                }
            }
        }
    }

    fn of_dates(
        &self,
        series: Series<Timestamp, V>,
        repeats: bool,
        calendar: &Calendar,
        until: Instant,
        (begin, end): (Instant, Instant),
    ) -> Result<Curve<V>, TariffError> {
        let (first, start) = (series.steps[0].0, calendar.time(Instant::ZERO));
        if repeats {
            let length = series.end.duration_since(first).as_millis().max(1);
            // As often before as it takes to be there at the start.
            let before = start.duration_since(first).as_millis().div_euclid(length);
            let moved =
                SignedDuration::from_millis(i64::try_from(before * length).unwrap_or(i64::MAX));
            let shift = |at: Timestamp| at.checked_add(moved).unwrap_or(at);
            let steps: Vec<_> = series.steps.iter().map(|step| (shift(step.0), step.1)).collect();
            let end = shift(series.end);
            let past = steps.partition_point(|step| step.0 <= start).saturating_sub(1);
            // What is over at the start comes again at the end.
            let again = SignedDuration::from_millis(i64::try_from(length).unwrap_or(i64::MAX));
            let later = steps[..=past]
                .iter()
                .map(|step| (step.0.checked_add(again).unwrap_or(end), step.1));
            let all = steps[past..].iter().copied().chain(later);
            let mut steps: Vec<(Instant, V)> =
                all.map(|(at, value)| (calendar.instant(at), value)).collect();
            steps.dedup_by_key(|step| step.0);
            let end = Instant::from_millis(u64::try_from(length).unwrap_or(u64::MAX));
            steps.retain(|step| step.0 < end);
            return Ok(repeated(&Curve { steps, until: end }, until));
        }
        let covers = first <= calendar.time(begin) && calendar.time(end) < series.end;
        if !covers {
            let shown = |at: Timestamp| calendar.shown_time(at);
            return Err(TariffError::NotCovered {
                series: format!("{} to {}", shown(first), shown(series.end)),
                log: format!("{} to {}", calendar.shown(begin), calendar.shown(end)),
                text: self.to_string(),
            });
        }
        let past = series.steps.partition_point(|step| step.0 <= start).saturating_sub(1);
        let steps = series.steps[past..].iter().map(|&(at, value)| (calendar.instant(at), value));
        Ok(Curve { steps: steps.collect(), until: calendar.instant(series.end) })
    }

    fn covered(
        &self,
        curve: Curve<V>,
        begin: Instant,
        end: Instant,
    ) -> Result<Curve<V>, TariffError> {
        let first = curve.steps[0].0;
        match first <= begin && end < curve.until {
            true => Ok(curve),
            false => Err(TariffError::NotCovered {
                series: format!("{first} to {}", curve.until),
                log: format!("{begin} to {end}"),
                text: self.to_string(),
            }),
        }
    }
}

/// A curve from the start on, again and again.
fn repeated<V: Copy>(curve: &Curve<V>, until: Instant) -> Curve<V> {
    let length = curve.until.millis().max(1);
    let mut steps = Vec::new();
    let mut begin = 0u64;
    while begin < until.millis() {
        // The first step holds from the start on.
        let moved = curve.steps.iter().enumerate().map(|(place, step)| {
            let at = if place == 0 { 0 } else { step.0.millis() };
            (Instant::from_millis(begin + at), step.1)
        });
        steps.extend(moved);
        begin = begin.saturating_add(length);
    }
    Curve { steps, until: until.max(Instant::from_millis(1)) }
}
