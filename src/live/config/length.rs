//! Lengths of time as people write them: `100ms`, `30s`, `5min`, `2h`, `30 days`.

use std::fmt;
use std::str::FromStr;

use crate::units::{QuantityError, Span, parse_decimal};

/// A length of time that is written with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Length(pub Span);

/// The names of each unit, the usual one first, and its milliseconds; longer ones first.
const UNITS: [(&[&str], u64); 5] = [
    (&["d", "day", "days"], 24 * 3_600_000),
    (&["h", "hour", "hours"], 3_600_000),
    (&["min", "minute", "minutes"], 60_000),
    (&["s", "second", "seconds"], 1000),
    (&["ms"], 1),
];

/// Why text is no length of time.
#[derive(Debug, thiserror::Error)]
pub enum LengthError {
    /// The unit is not known, or there is none.
    #[error("'{0}' has no known unit; write a length of time such as 500ms, 30s, 5min, 2h or 30d")]
    Unit(String),
    /// The number is none.
    #[error(transparent)]
    Number(#[from] QuantityError),
}

impl FromStr for Length {
    type Err = LengthError;

    fn from_str(text: &str) -> Result<Self, LengthError> {
        let text = text.trim();
        let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let known = UNITS.iter().find(|(names, _)| names.contains(&unit));
        let &(_, millis) = known.ok_or_else(|| LengthError::Unit(text.to_owned()))?;
        Ok(Length(Span::from_millis(parse_decimal(number.trim(), millis)?)))
    }
}

/// In the longest unit of which it is a whole number.
impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |(_, size): &&(&[&str], u64)| self.0.millis().is_multiple_of(*size);
        match UNITS.iter().find(whole).filter(|_| self.0 != Span::ZERO) {
            Some((names, size)) => write!(f, "{}{}", self.0.millis() / size, names[0]),
            None => f.write_str("0s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_with_their_unit_and_written_in_the_longest() {
        for (text, millis, shown) in [
            ("500ms", 500, "500ms"),
            ("1000 ms", 1000, "1s"),
            ("90s", 90_000, "90s"),
            ("1.5min", 90_000, "90s"),
            ("2 hours", 7_200_000, "2h"),
            ("30 days", 2_592_000_000, "30d"),
            ("0s", 0, "0s"),
        ] {
            let length: Length = text.parse().unwrap();
            assert_eq!((length.0.millis(), length.to_string().as_str()), (millis, shown));
            assert_eq!(shown.parse::<Length>().unwrap(), length);
        }
        let error = |text: &str| text.parse::<Length>().unwrap_err().to_string();
        for text in ["30", "30m", "", "s30", "5 min 3 s", "1M", "3e2s"] {
            assert!(error(text).contains("such as 500ms, 30s, 5min"), "{}", error(text));
        }
        for text in ["-1s", "s", "1.2.3s", "0.5ms", "99999999999999999999d"] {
            assert!(matches!(text.parse::<Length>(), Err(LengthError::Number(_))), "{text}");
        }
    }
}
