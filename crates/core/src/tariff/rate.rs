//! The price or the carbon intensity of a kilowatt hour, as an exact number.

use std::fmt;
use std::str::FromStr;

use crate::units::meant_number;

/// Microjoules in a kilowatt hour.
const MICROJOULES_PER_KWH: i128 = 3_600_000_000_000;

/// The quantity that is counted per kilowatt hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Money, in a currency.
    Money(Currency),
    /// Grams of carbon dioxide, or what is as bad.
    Carbon,
}

/// A currency by its three letters, in upper case: `EUR`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// The currency that a word names, if it may be one.
    pub fn of(word: &str) -> Option<Self> {
        let letters: [u8; 3] = word.as_bytes().try_into().ok()?;
        let is_word = letters.iter().all(u8::is_ascii_alphabetic);
        is_word.then(|| Currency(letters.map(|letter| letter.to_ascii_uppercase())))
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|letter| write!(f, "{}", char::from(*letter)))
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// So much of something for each kilowatt hour. Prices may be below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    /// The counted quantity.
    pub of: Measure,
    /// Billionths of it for each kilowatt hour.
    pub nanos_per_kwh: i64,
}

/// An amount of money or of carbon dioxide that grows as energy is drawn. It is exact, and rounded only when it is
/// looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    /// Billionths of the unit for each kilowatt hour, times microjoules.
    sum: i128,
}

impl Amount {
    /// Adds so much energy, in microjoules, at a rate.
    #[inline]
    pub(crate) fn add(&mut self, rate: Rate, microjoules: u128) {
        let energy = i128::try_from(microjoules).unwrap_or(i128::MAX);
        let more = energy.saturating_mul(i128::from(rate.nanos_per_kwh));
        self.sum = self.sum.saturating_add(more);
    }

    /// Millionths of the unit, rounded up.
    pub(crate) fn micros(self) -> i128 {
        let per_micro = MICROJOULES_PER_KWH * 1000;
        self.sum.div_euclid(per_micro) + i128::from(self.sum.rem_euclid(per_micro) > 0)
    }
}

impl std::ops::Sub for Amount {
    type Output = Amount;

    fn sub(self, rhs: Amount) -> Amount {
        Amount { sum: self.sum.saturating_sub(rhs.sum) }
    }
}

/// Why a text is no rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// The number is wrong.
    #[error(
        "'{0}' is not a number{hint} write digits with at most one decimal point, such as 0.32",
        hint = meant_number(.0)
    )]
    NotANumber(String),
    /// It is too large.
    #[error("'{0}' is too large")]
    TooLarge(String),
    /// The unit is missing or unknown.
    #[error(
        "'{0}' has no known unit; write a price (0.32EUR/kWh, 85EUR/MWh) or grams of CO2 (450g/kWh)"
    )]
    Unit(String),
}

/// The largest rate: a million for each kilowatt hour.
const LARGEST: i64 = 1_000_000 * 1_000_000_000;

/// Reads a decimal number as so many `unit`ths. What is finer is rounded to the nearest.
pub(super) fn parse_signed(number: &str, unit: i64) -> Result<i64, RateError> {
    let wrong = || RateError::NotANumber(number.to_owned());
    let (sign, digits) = match number.strip_prefix(['-', '\u{2212}']) {
        Some(digits) => (-1, digits),
        None => (1, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if digits.len() == digits.matches('.').count() || !is_number(whole) || !is_number(fraction) {
        return Err(wrong());
    }
    let too_large = || RateError::TooLarge(number.to_owned());
    let whole: i128 = format!("0{whole}").parse().map_err(|_| too_large())?;
    // As many decimals as can make a difference, and one more to round by.
    let kept = &fraction[..fraction.len().min(18)];
    let (part, of) =
        (format!("0{kept}").parse::<i128>().map_err(|_| wrong())?, 10i128.pow(kept.len() as u32));
    let unit = i128::from(unit);
    let rounded = (2 * part * unit + of) / (2 * of);
    let value = whole.checked_mul(unit).and_then(|whole| whole.checked_add(rounded));
    let value = value.and_then(|value| i64::try_from(value).ok()).ok_or_else(too_large)?;
    match value <= LARGEST {
        true => Ok(sign * value),
        false => Err(too_large()),
    }
}

/// What is counted and how many billionths for each kilowatt hour one of it is, by a unit such as `EUR/MWh`,
/// `g/kWh`, `eur_per_mwh` or `g_co2e_per_kwh`. Words before it do not matter.
pub(super) fn unit(text: &str) -> Option<(Measure, i64)> {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !["", "per", "co2", "co2e", "co2eq", "eq"].contains(word))
        .collect();
    let [.., of, energy] = words[..] else { return None };
    let per_kwh = match energy {
        "kwh" => 1_000_000_000,
        "mwh" => 1_000_000,
        _ => return None,
    };
    match of {
        "g" | "gco2" | "gco2e" | "gco2eq" => Some((Measure::Carbon, per_kwh)),
        "kg" | "kgco2" | "kgco2e" | "kgco2eq" => Some((Measure::Carbon, 1000 * per_kwh)),
        "t" => Some((Measure::Carbon, 1_000_000 * per_kwh)),
        of => Currency::of(of).map(|currency| (Measure::Money(currency), per_kwh)),
    }
}

/// Reads `0.32EUR/kWh`, `85 EUR/MWh`, `450g/kWh`.
impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let text = text.trim();
        let end = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
        let (number, written) = (text[..end].trim(), &text[end..]);
        if number.is_empty() {
            return Err(RateError::NotANumber(text.to_owned()));
        }
        let (of, per_kwh) = unit(written).ok_or_else(|| RateError::Unit(text.to_owned()))?;
        Ok(Rate { of, nanos_per_kwh: parse_signed(number, per_kwh)? })
    }
}

/// In the form that [`Rate::from_str`] reads, for each kilowatt hour.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.nanos_per_kwh < 0 { "-" } else { "" };
        let nanos = self.nanos_per_kwh.unsigned_abs();
        write!(f, "{sign}{}", nanos / 1_000_000_000)?;
        if !nanos.is_multiple_of(1_000_000_000) {
            let decimals = format!("{:09}", nanos % 1_000_000_000);
            write!(f, ".{}", decimals.trim_end_matches('0'))?;
        }
        match self.of {
            Measure::Money(currency) => write!(f, "{currency}/kWh"),
            Measure::Carbon => f.write_str("g/kWh"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_exactly_and_written_per_kilowatt_hour() {
        for (text, shown) in [
            ("0.32EUR/kWh", "0.32EUR/kWh"),
            ("85 EUR/MWh", "0.085EUR/kWh"),
            ("-12.5 usd/MWh", "-0.0125USD/kWh"),
            ("450g/kWh", "450g/kWh"),
            ("450kg/MWh", "450g/kWh"),
            ("0.45 kg/kWh", "450g/kWh"),
            ("0.45 t/MWh", "450g/kWh"),
            ("450 gCO2e/kWh", "450g/kWh"),
            ("0.0000000015EUR/kWh", "0.000000002EUR/kWh"),
        ] {
            let rate: Rate = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(rate.to_string(), shown, "{text}");
            assert_eq!(shown.parse(), Ok(rate));
        }
        assert!(matches!("0.32".parse::<Rate>(), Err(RateError::Unit(_))));
        assert!(matches!("0.32EUR".parse::<Rate>(), Err(RateError::Unit(_))));
        assert!(matches!("EUR/kWh".parse::<Rate>(), Err(RateError::NotANumber(_))));
        assert!(matches!("1.2.3EUR/kWh".parse::<Rate>(), Err(RateError::NotANumber(_))));
        assert!(matches!("1e9EUR/kWh".parse::<Rate>(), Err(RateError::Unit(_))));
        assert!(matches!("99999999EUR/kWh".parse::<Rate>(), Err(RateError::TooLarge(_))));
        assert_eq!(parse_signed("297.65999999999997", 1_000_000), Ok(297_660_000));
    }

    #[test]
    fn amounts_are_exact() {
        let rate: Rate = "0.30EUR/kWh".parse().unwrap();
        let mut amount = Amount::default();
        // A kilowatt hour in three parts that are no whole number of anything.
        for _ in 0..3 {
            amount.add(rate, 1_200_000_000_000);
        }
        assert_eq!(amount.micros(), 300_000);
        amount.add(rate, 1);
        assert_eq!(amount.micros(), 300_001, "rounded up");
    }
}
