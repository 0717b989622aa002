//! Time, power and energy as exact integers, and the identities of jobs and nodes.
//!
//! Time is counted in milliseconds, power in milliwatts and energy in microjoules (which is
//! milliwatts × milliseconds), so sums never drift and the same input gives the same bytes. Models
//! work in `f64` and round *up* at the border ([`Watts::from_f64_rounded_up`],
//! [`Span::from_secs_f64_rounded_up`]): what is promised is never less than what is drawn or taken.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

mod energy;
#[doc(hidden)]
pub mod json;
mod length;
pub(crate) mod limit;
mod meant;
mod share;
mod temperature;

pub use energy::Joules;
#[doc(hidden)]
pub use length::{Length, LengthError, parse_length, parse_micros};
pub(crate) use meant::number as meant_number;
pub use share::Share;
pub use temperature::Celsius;

/// A job's index in its workload, in submit order. It is also the job's place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobId(pub u32);

impl JobId {
    /// The index into the workload's jobs.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A node of the machine, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// A point in time, in milliseconds since the start of the workload's clock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Instant(u64);

/// A length of time, in milliseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Span(u64);

impl Instant {
    /// The start of the clock.
    pub const ZERO: Instant = Instant(0);
    /// Later than anything that happens: 'never'.
    pub const NEVER: Instant = Instant(u64::MAX);
    /// The last instant there is: what has no end that anybody knows of ends here.
    pub const LAST: Instant = Instant(u64::MAX - 1);

    /// The instant `ms` milliseconds after the start of the clock.
    #[inline]
    pub const fn from_millis(ms: u64) -> Self {
        Instant(ms)
    }

    /// The instant `s` seconds after the start of the clock.
    #[inline]
    pub const fn from_secs(s: u32) -> Self {
        Instant(s as u64 * 1000)
    }

    /// Milliseconds since the start of the clock.
    #[inline]
    pub const fn millis(self) -> u64 {
        self.0
    }

    /// Seconds since the start of the clock, for display.
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// The time from `earlier` to this instant; zero if `earlier` is not earlier.
    #[inline]
    pub fn since(self, earlier: Instant) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// Longer than anything that happens.
    pub const FOREVER: Span = Span(u64::MAX);

    /// A span of `ms` milliseconds.
    #[inline]
    pub const fn from_millis(ms: u64) -> Self {
        Span(ms)
    }

    /// A span of `s` seconds.
    #[inline]
    pub const fn from_secs(s: u32) -> Self {
        Span(s as u64 * 1000)
    }

    /// This span without another; nothing if that is longer.
    #[inline]
    pub const fn saturating_sub(self, rhs: Span) -> Span {
        Span(self.0.saturating_sub(rhs.0))
    }

    /// A model's seconds, rounded up to the next millisecond; `None` if they are negative, not a
    /// number or so many that a millisecond is lost in rounding (285 000 years).
    pub fn from_secs_f64_rounded_up(seconds: f64) -> Option<Self> {
        const LONGEST_MILLIS: f64 = 9_007_199_254_740_992.0;
        let millis = (seconds * 1000.0).ceil();
        (0.0..=LONGEST_MILLIS).contains(&millis).then_some(Span(millis as u64))
    }

    /// The span in milliseconds.
    #[inline]
    pub const fn millis(self) -> u64 {
        self.0
    }

    /// The span in seconds, for display and for models.
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}

// Time saturates: an instant past the end of the clock is `NEVER`, and no log, however absurd its
// figures, can wrap it around.
impl Add<Span> for Instant {
    type Output = Instant;
    #[inline]
    fn add(self, rhs: Span) -> Instant {
        Instant(self.0.saturating_add(rhs.0))
    }
}

impl Add for Span {
    type Output = Span;
    #[inline]
    fn add(self, rhs: Span) -> Span {
        Span(self.0.saturating_add(rhs.0))
    }
}

impl Sum for Span {
    fn sum<I: Iterator<Item = Span>>(iter: I) -> Span {
        iter.fold(Span::ZERO, Add::add)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Instant::NEVER {
            return f.write_str("never");
        }
        Span(self.0).fmt(f)
    }
}

/// Seconds, with as many decimals as are not zero.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 1000 {
            0 => write!(f, "{} s", self.0 / 1000),
            ms => write!(f, "{}.{} s", self.0 / 1000, format!("{ms:03}").trim_end_matches('0')),
        }
    }
}

/// Electrical power, in milliwatts.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Watts(u64);

impl Watts {
    /// No power.
    pub const ZERO: Watts = Watts(0);
    /// More than any feed: the budget of a machine without one. It is finite so that what is
    /// held can be taken from it and given back exactly.
    pub const UNLIMITED: Watts = Watts(1 << 62);

    /// The limit; `None` if it is [unlimited](Self::UNLIMITED).
    pub fn limited(self) -> Option<Watts> {
        (self != Watts::UNLIMITED).then_some(self)
    }
    /// The largest power a user may name, a terawatt: sums of it stay far from overflow.
    pub const LARGEST: Watts = Watts(1_000_000_000_000_000);

    /// Power in milliwatts.
    #[inline]
    pub const fn from_milliwatts(mw: u64) -> Self {
        Watts(mw)
    }

    /// Power in whole watts.
    #[inline]
    pub const fn from_watts(w: u32) -> Self {
        Watts(w as u64 * 1000)
    }

    /// A model's watts, rounded up to the next milliwatt; `None` if they are negative, not a
    /// number or beyond [`Watts::LARGEST`].
    pub fn from_f64_rounded_up(watts: f64) -> Option<Self> {
        let milliwatts = (watts * 1000.0).ceil();
        (0.0..=Watts::LARGEST.0 as f64).contains(&milliwatts).then_some(Watts(milliwatts as u64))
    }

    /// Power in milliwatts.
    #[inline]
    pub const fn milliwatts(self) -> u64 {
        self.0
    }

    /// Watts, for display and for models.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// The difference, or zero where `rhs` is larger.
    #[inline]
    pub const fn saturating_sub(self, rhs: Watts) -> Watts {
        Watts(self.0.saturating_sub(rhs.0))
    }

    /// The sum, or the largest number there is where it does not fit.
    #[inline]
    pub const fn saturating_add(self, rhs: Watts) -> Watts {
        Watts(self.0.saturating_add(rhs.0))
    }

    /// The product, unless it overflows.
    #[inline]
    pub const fn checked_mul(self, factor: u32) -> Option<Watts> {
        match self.0.checked_mul(factor as u64) {
            Some(mw) => Some(Watts(mw)),
            None => None,
        }
    }

    /// The energy of drawing this power for `span`.
    #[inline]
    pub fn over(self, span: Span) -> Joules {
        Joules(self.0 as u128 * span.0 as u128)
    }
}

impl Add for Watts {
    type Output = Watts;
    #[inline]
    fn add(self, rhs: Watts) -> Watts {
        Watts(self.0 + rhs.0)
    }
}

impl Sub for Watts {
    type Output = Watts;
    #[inline]
    fn sub(self, rhs: Watts) -> Watts {
        Watts(self.0 - rhs.0)
    }
}

impl AddAssign for Watts {
    #[inline]
    fn add_assign(&mut self, rhs: Watts) {
        *self = *self + rhs;
    }
}

impl SubAssign for Watts {
    #[inline]
    fn sub_assign(&mut self, rhs: Watts) {
        *self = *self - rhs;
    }
}

impl Mul<u32> for Watts {
    type Output = Watts;
    #[inline]
    fn mul(self, rhs: u32) -> Watts {
        Watts(self.0 * u64::from(rhs))
    }
}

impl Sum for Watts {
    fn sum<I: Iterator<Item = Watts>>(iter: I) -> Watts {
        iter.fold(Watts::ZERO, Add::add)
    }
}

/// Watts with their unit, exact to the milliwatt, in the form [`Watts::from_str`] reads.
impl fmt::Display for Watts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 1000 {
            0 => write!(f, "{}W", self.0 / 1000),
            mw => write!(f, "{}.{}W", self.0 / 1000, format!("{mw:03}").trim_end_matches('0')),
        }
    }
}

/// Why a quantity could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text is not a plain non-negative decimal number.
    #[error(
        "'{0}' is not a number{hint} write digits with at most one decimal point, such as 4.2",
        hint = meant::number(.0)
    )]
    NotANumber(String),
    /// The number is finer than the unit can hold.
    #[error("'{0}' has more decimals than are kept")]
    TooFine(String),
    /// The number is beyond the largest value.
    #[error("'{0}' is too large")]
    TooLarge(String),
    /// The text is not a percentage.
    #[error(
        "'{0}' is not a share{hint} write a percentage, such as 60%",
        hint = meant::share(.0)
    )]
    NotAShare(String),
    /// The unit of energy is missing or unknown.
    #[error(
        "'{text}' has no known unit of energy{hint} valid units: {valid}",
        hint = meant::quantity(.text, &ENERGY_UNITS, &["MJ", "GJ"]), valid = listed(&ENERGY_UNITS)
    )]
    UnknownEnergyUnit {
        /// The text as written.
        text: String,
    },
    /// The unit is missing or unknown.
    #[error(
        "'{text}' has no known unit of power{hint} valid units: {valid}",
        hint = meant::quantity(.text, &POWER_UNITS, &["W", "kW"]), valid = listed(&POWER_UNITS)
    )]
    UnknownUnit {
        /// The text as written.
        text: String,
    },
    /// A limit of power has neither a unit nor the sign of a share.
    #[error(
        "'{0}' has no unit{hint} valid units: {valid}, or % of the machine's maximum",
        hint = meant::limit(.0), valid = listed(&POWER_UNITS)
    )]
    BareLimit(String),
}

/// Units of power and of energy, from the largest on: what differs in its capitals alone more likely means the larger.
const POWER_UNITS: [&str; 5] = ["GW", "MW", "kW", "W", "mW"];
const ENERGY_UNITS: [&str; 5] = ["TJ", "GJ", "MJ", "kJ", "J"];

/// Units from the smallest on.
fn listed(units: &[&str]) -> String {
    units.iter().rev().copied().collect::<Vec<_>>().join(", ")
}

/// Splits `4.2MW` into the number and the unit. Marks between digits are left to the reader of the number.
pub(crate) fn split_unit(text: &str) -> (&str, &str) {
    let is_of_number = |sign: char| sign.is_ascii_digit() || sign == '.' || meant::is_mark(sign);
    let end = text.find(|sign: char| !is_of_number(sign)).unwrap_or(text.len());
    (text[..end].trim(), text[end..].trim())
}

/// Reads a plain decimal number as a whole number of `unit`ths, exactly, without going through a
/// float.
pub fn parse_decimal(number: &str, unit: u64) -> Result<u64, QuantityError> {
    let not_a_number = || QuantityError::NotANumber(number.to_owned());
    let too_large = || QuantityError::TooLarge(number.to_owned());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
        return Err(not_a_number());
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| too_large())? };
    let mut value = whole.checked_mul(unit).ok_or_else(too_large)?;
    let mut place = unit;
    for digit in fraction.bytes().map(|b| u64::from(b - b'0')) {
        if digit != 0 && !place.is_multiple_of(10) {
            return Err(QuantityError::TooFine(number.to_owned()));
        }
        place /= 10;
        value = value.checked_add(digit * place).ok_or_else(too_large)?;
    }
    Ok(value)
}

/// Reads `6500W`, `4.2 MW`, `115W`. The unit is required: a bare number could mean anything.
impl FromStr for Watts {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let text = text.trim();
        let (number, unit) = split_unit(text);
        let milliwatts_per_unit = match unit {
            "mW" => 1,
            "W" => 1_000,
            "kW" => 1_000_000,
            "MW" => 1_000_000_000,
            "GW" => 1_000_000_000_000,
            _ if number.is_empty() => return Err(QuantityError::NotANumber(text.to_owned())),
            _ => return Err(QuantityError::UnknownUnit { text: text.to_owned() }),
        };
        let power = Watts(parse_decimal(number, milliwatts_per_unit)?);
        if power > Watts::LARGEST {
            return Err(QuantityError::TooLarge(number.to_owned()));
        }
        Ok(power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_reads_exactly_and_prints_what_it_reads() {
        for (text, milliwatts) in [
            ("6500W", 6_500_000),
            ("4.2MW", 4_200_000_000),
            ("4.2 MW", 4_200_000_000),
            ("0.001W", 1),
            (".5kW", 500_000),
            ("115W", 115_000),
            ("1mW", 1),
            ("1TW", 0),
            ("1000GW", 1_000_000_000_000_000),
        ] {
            match text.parse::<Watts>() {
                Ok(power) => {
                    assert_eq!(power.milliwatts(), milliwatts, "{text}");
                    assert_eq!(power.to_string().parse::<Watts>(), Ok(power), "{text}");
                }
                Err(error) => assert_eq!((text, milliwatts), ("1TW", 0), "{error}"),
            }
        }
    }

    #[test]
    fn power_refuses_what_it_cannot_hold() {
        let parse = |text: &str| text.parse::<Watts>();
        assert!(matches!(parse("80"), Err(QuantityError::UnknownUnit { .. })));
        assert!(matches!(parse("80X"), Err(QuantityError::UnknownUnit { .. })));
        assert!(matches!(parse("-5W"), Err(QuantityError::NotANumber(_))));
        assert!(matches!(parse("NaNW"), Err(QuantityError::NotANumber(_))));
        assert!(matches!(parse("W"), Err(QuantityError::NotANumber(_))));
        assert!(matches!(parse("1.2.3W"), Err(QuantityError::NotANumber(_))));
        assert!(matches!(parse("1.5mW"), Err(QuantityError::TooFine(_))));
        assert!(matches!(parse("1001GW"), Err(QuantityError::TooLarge(_))));
        assert!(matches!(parse("99999999999999999999W"), Err(QuantityError::TooLarge(_))));
    }

    #[test]
    fn models_round_power_up() {
        assert_eq!(Watts::from_f64_rounded_up(1.0001), Some(Watts::from_milliwatts(1001)));
        assert_eq!(Watts::from_f64_rounded_up(1.0), Some(Watts::from_milliwatts(1000)));
        assert_eq!(Watts::from_f64_rounded_up(f64::NAN), None);
        assert_eq!(Watts::from_f64_rounded_up(-1.0), None);
        assert_eq!(Watts::from_f64_rounded_up(1e30), None);
    }

    #[test]
    fn models_round_time_up() {
        assert_eq!(Span::from_secs_f64_rounded_up(1.0001), Some(Span::from_millis(1001)));
        assert_eq!(Span::from_secs_f64_rounded_up(2.0), Some(Span::from_secs(2)));
        assert_eq!(Span::from_secs_f64_rounded_up(0.0), Some(Span::ZERO));
        assert_eq!(Span::from_secs_f64_rounded_up(f64::NAN), None);
        assert_eq!(Span::from_secs_f64_rounded_up(-1.0), None);
        assert_eq!(Span::from_secs_f64_rounded_up(1e30), None);
    }

    #[test]
    fn time_saturates_instead_of_wrapping() {
        assert_eq!(Instant::from_secs(1) + Span::FOREVER, Instant::NEVER);
        assert_eq!(Instant::ZERO.since(Instant::from_secs(5)), Span::ZERO);
        assert_eq!(Span::from_millis(1500).to_string(), "1.5 s");
    }

    #[test]
    fn energy_is_power_times_time() {
        // 2 W for 3 s is 6 J.
        let energy = Watts::from_watts(2).over(Span::from_secs(3));
        assert_eq!(energy, Joules::from_microjoules(6_000_000));
        assert_eq!(energy.as_f64(), 6.0);
    }
}
