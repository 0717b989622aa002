//! Durations as the configuration writes them: `100ms`, `30s`, `5min`, `2h`, `30 days`.

use std::fmt;
use std::str::FromStr;

use busbar_core::units::{LengthError, Span, TIME_UNITS, parse_length};

/// A duration that is written with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Length(pub Span);

impl FromStr for Length {
    type Err = LengthError;

    fn from_str(text: &str) -> Result<Self, LengthError> {
        parse_length(text).map(Length)
    }
}

/// In the largest unit that gives a whole number.
impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = TIME_UNITS.map(|(names, micros)| (names[0], micros / 1000));
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
