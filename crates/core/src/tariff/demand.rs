//! The price of the highest 15-minute average of each month.

use std::fmt;
use std::str::FromStr;

use super::rate::{Currency, parse_signed};
use crate::calendar::{NoCalendar, RunDates};
use crate::units::{Instant, Span, Watts};

/// A charge for the highest quarter of an hour of each month: `12EUR/kW`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DemandCharge {
    /// Its currency.
    pub(crate) currency: Currency,
    /// Millionths of it for each kilowatt.
    micros_per_kw: u64,
}

/// How long power is averaged.
const QUARTER: Span = Span::from_secs(900);

impl FromStr for DemandCharge {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("'{text}' is not a demand charge; write for example 12EUR/kW, for each month")
        };
        let (amount, unit) = text.trim().split_once('/').ok_or_else(wrong)?;
        let end = amount.find(|c: char| c.is_alphabetic()).ok_or_else(wrong)?;
        let currency = Currency::of(amount[end..].trim()).ok_or_else(wrong)?;
        let per_kw = match unit.trim() {
            "kW" => 1_000_000,
            "MW" => 1000,
            _ => return Err(wrong()),
        };
        let micros = parse_signed(amount[..end].trim(), per_kw).map_err(|why| why.to_string())?;
        let micros_per_kw = u64::try_from(micros).map_err(|_| wrong())?;
        Ok(DemandCharge { currency, micros_per_kw })
    }
}

impl fmt::Display for DemandCharge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.micros_per_kw / 1_000_000)?;
        if !self.micros_per_kw.is_multiple_of(1_000_000) {
            let decimals = format!("{:06}", self.micros_per_kw % 1_000_000);
            write!(f, ".{}", decimals.trim_end_matches('0'))?;
        }
        write!(f, "{}/kW", self.currency)
    }
}

impl DemandCharge {
    /// What highest quarters of these powers, one for each month, cost together: millionths of the currency, rounded
    /// up.
    pub fn micros(&self, highest: u128) -> u128 {
        // Milliwatts in a kilowatt.
        highest.saturating_mul(u128::from(self.micros_per_kw)).div_ceil(1_000_000)
    }
}

/// When the months of a run begin, and when its quarters of an hour do. Quarters begin with the hours of UTC, which are
/// those of all zones whose clocks differ from it by whole quarters of an hour.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Months {
    /// The first instants of all months after the start, in order.
    begins: Vec<Instant>,
    /// How long before the start a quarter of an hour began, in milliseconds.
    phase: u64,
}

impl Months {
    /// The months of a run.
    pub(crate) fn of(dates: &RunDates) -> Result<Self, NoCalendar> {
        let calendar = dates.calendar.as_ref().map_err(Clone::clone)?;
        let end = calendar.time(dates.until);
        let first = calendar.wall(Instant::ZERO).date().first_of_month();
        let mut begins = Vec::new();
        for month in first.series(jiff::Span::new().months(1)).skip(1) {
            let Ok(begin) =
                calendar.zone().to_timestamp(month.to_datetime(jiff::civil::Time::midnight()))
            else {
                break;
            };
            if begin > end {
                break;
            }
            begins.push(calendar.instant(begin));
        }
        let start = calendar.time(Instant::ZERO).as_millisecond();
        let phase = start.rem_euclid(QUARTER.millis() as i64) as u64;
        Ok(Months { begins, phase })
    }

    /// When the quarter of an hour ends that holds an instant.
    fn quarter_end(&self, now: Instant) -> Instant {
        let quarter = QUARTER.millis();
        let since = (now.millis() % quarter + self.phase) % quarter;
        now + Span::from_millis(quarter - since)
    }
}

/// The highest quarters of an hour so far. It is small, so that a copy can be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peaks {
    now: Instant,
    quarter_ends: Instant,
    /// Microjoules in this quarter.
    energy: u128,
    /// The highest quarter of this month, in milliwatts.
    highest: u64,
    /// The highest quarter of all.
    highest_of_all: u64,
    /// The sum of the highest quarters of the months before.
    before: u128,
    /// How many months there were, this one included.
    months: u32,
    /// The place of the next month.
    next: usize,
}

impl Peaks {
    /// Nothing was drawn yet.
    pub(crate) fn begin(months: &Months, now: Instant) -> Self {
        Peaks {
            now,
            quarter_ends: months.quarter_end(now),
            energy: 0,
            highest: 0,
            highest_of_all: 0,
            before: 0,
            months: 1,
            next: months.begins.partition_point(|begin| *begin <= now),
        }
    }

    /// So much was drawn until now.
    pub(crate) fn advance(&mut self, months: &Months, until: Instant, power: Watts) {
        while self.quarter_ends <= until {
            self.draw(self.quarter_ends, power);
            self.close();
            // A quarter is of the month in which it begins.
            while months.begins.get(self.next).is_some_and(|begin| *begin <= self.now) {
                self.before += u128::from(self.highest);
                self.highest = 0;
                self.months += 1;
                self.next += 1;
            }
            // Many quarters alike: all but the last change nothing.
            self.quarter_ends = self.now + QUARTER;
            let next_month = months.begins.get(self.next).copied().unwrap_or(Instant::NEVER);
            let whole = until.min(next_month).since(self.now).millis() / QUARTER.millis();
            if whole > 2 {
                self.raise(power.milliwatts());
                let skipped = Span::from_millis((whole - 1) * QUARTER.millis());
                self.now = self.now + skipped;
                self.quarter_ends = self.now + QUARTER;
            }
        }
        self.draw(until, power);
    }

    fn draw(&mut self, until: Instant, power: Watts) {
        let time = until.since(self.now).millis();
        self.energy += u128::from(power.milliwatts()) * u128::from(time);
        self.now = until.max(self.now);
    }

    fn raise(&mut self, mean: u64) {
        self.highest = self.highest.max(mean);
        self.highest_of_all = self.highest_of_all.max(mean);
    }

    /// Ends a quarter: its mean power, rounded up, may be the highest.
    fn close(&mut self) {
        let mean = std::mem::take(&mut self.energy).div_ceil(u128::from(QUARTER.millis()));
        self.raise(u64::try_from(mean).unwrap_or(u64::MAX));
    }

    /// The sum of the highest quarters of all months in milliwatts, with the one that has begun, which counts as if
    /// nothing more were drawn in it.
    pub(crate) fn total(mut self) -> u128 {
        self.close();
        self.before + u128::from(self.highest)
    }

    /// The highest quarter of all.
    pub(crate) fn highest(mut self) -> Watts {
        self.close();
        Watts::from_milliwatts(self.highest_of_all)
    }

    /// How many months there were, the first and the last included.
    pub(crate) fn months(&self) -> u32 {
        self.months
    }
}
