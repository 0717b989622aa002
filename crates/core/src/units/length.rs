//! Lengths of time as people write them: `500ms`, `90s`, `30m`, `5 min`, `1.5h`, `1h30m`, `30 days`.

use std::fmt;
use std::str::FromStr;

use crate::units::{QuantityError, Span, parse_decimal};

/// The names of each unit, the usual one first, and its microseconds; longer ones first.
const UNITS: [(&[&str], u64); 5] = [
    (&["d", "day", "days"], 24 * 3_600_000_000),
    (&["h", "hour", "hours"], 3_600_000_000),
    (&["min", "m", "minute", "minutes"], 60_000_000),
    (&["s", "second", "seconds"], 1_000_000),
    (&["ms"], 1000),
];

/// Why text is no length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LengthError {
    /// The unit is not known, or there is none.
    #[error("'{0}' has no known unit; write a length of time such as 500ms, 30s, 5min, 2h or 30d")]
    Unit(String),
    /// The number is none.
    #[error(transparent)]
    Number(#[from] QuantityError),
}

/// Reads numbers with units, one after another, to the microsecond.
pub fn parse_micros(text: &str) -> Result<u64, LengthError> {
    let text = text.trim();
    let unknown = || LengthError::Unit(text.to_owned());
    let mut rest = text;
    let mut total = 0u64;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(unknown)?;
        let (number, after) = rest.split_at(unit_at);
        let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let known = UNITS.iter().find(|(names, _)| names.contains(&unit));
        let &(_, micros) = known.ok_or_else(unknown)?;
        let part = parse_decimal(number.trim(), micros)?;
        let too_large = || QuantityError::TooLarge(text.to_owned());
        total = total.checked_add(part).ok_or_else(too_large)?;
        rest = after.trim_start();
    }
    match text.is_empty() {
        true => Err(unknown()),
        false => Ok(total),
    }
}

/// Reads numbers with units, one after another. A fraction of a millisecond is refused.
pub fn parse_length(text: &str) -> Result<Span, LengthError> {
    let micros = parse_micros(text)?;
    match micros % 1000 {
        0 => Ok(Span::from_millis(micros / 1000)),
        _ => Err(QuantityError::TooFine(text.trim().to_owned()).into()),
    }
}

/// A length of time that is written with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Length(pub Span);

impl FromStr for Length {
    type Err = LengthError;

    fn from_str(text: &str) -> Result<Self, LengthError> {
        parse_length(text).map(Length)
    }
}

/// In the longest unit of which it is a whole number.
impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = UNITS.map(|(names, micros)| (names[0], micros / 1000));
        let whole = |(_, millis): &(&str, u64)| self.0.millis().is_multiple_of(*millis);
        match units.into_iter().find(whole).filter(|_| self.0 != Span::ZERO) {
            Some((name, millis)) => write!(f, "{}{name}", self.0.millis() / millis),
            None => f.write_str("0s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_with_their_units() {
        for (text, millis) in [
            ("500ms", 500),
            ("0.5s", 500),
            ("90s", 90_000),
            ("30m", 1_800_000),
            ("30min", 1_800_000),
            ("5 minutes", 300_000),
            ("1.5h", 5_400_000),
            ("1h30m", 5_400_000),
            ("1h 30 min", 5_400_000),
            ("1d2h3m4s", 93_784_000),
            ("30 days", 2_592_000_000),
            ("0s", 0),
        ] {
            assert_eq!(parse_length(text), Ok(Span::from_millis(millis)), "{text}");
        }
        assert_eq!(parse_micros("0.25ms"), Ok(250));
    }

    #[test]
    fn what_is_no_length_says_what_is() {
        let error = |text: &str| parse_length(text).unwrap_err().to_string();
        for text in ["", "30", "1h30", "1M", "5x", "3e2s"] {
            assert!(error(text).contains("such as 500ms, 30s, 5min"), "{text}: {}", error(text));
        }
        for text in ["s", "s30", "-1s", "1.2.3s", "0.5ms", "99999999999999999999d", "1h-5m", "5µs"]
        {
            assert!(matches!(parse_length(text), Err(LengthError::Number(_))), "{text}");
        }
    }

    #[test]
    fn lengths_are_read_with_their_unit_and_written_in_the_longest() {
        for (text, millis, shown) in [
            ("500ms", 500, "500ms"),
            ("1000 ms", 1000, "1s"),
            ("90s", 90_000, "90s"),
            ("1.5min", 90_000, "90s"),
            ("30m", 1_800_000, "30min"),
            ("1h30m", 5_400_000, "90min"),
            ("2 hours", 7_200_000, "2h"),
            ("30 days", 2_592_000_000, "30d"),
            ("0s", 0, "0s"),
        ] {
            let length: Length = text.parse().unwrap();
            assert_eq!((length.0.millis(), length.to_string().as_str()), (millis, shown));
            assert_eq!(shown.parse::<Length>().unwrap(), length);
        }
        let error = |text: &str| text.parse::<Length>().unwrap_err().to_string();
        for text in ["30", "", "1M", "3e2s"] {
            assert!(error(text).contains("such as 500ms, 30s, 5min"), "{}", error(text));
        }
        for text in ["-1s", "s", "s30", "1.2.3s", "0.5ms", "99999999999999999999d"] {
            assert!(matches!(text.parse::<Length>(), Err(LengthError::Number(_))), "{text}");
        }
    }
}
