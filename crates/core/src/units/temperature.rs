//! Temperatures, exact to a thousandth of a degree.

use std::fmt;
use std::str::FromStr;

/// A temperature in thousandths of a degree Celsius.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Celsius(i32);

impl Celsius {
    const LOWEST: i32 = -273_150;
    const HIGHEST: i32 = 1_000_000;

    /// This many thousandths of a degree; nothing below absolute zero, or above a thousand degrees.
    pub fn from_thousandths(thousandths: i64) -> Option<Self> {
        let in_range = |value: &i32| (Celsius::LOWEST..=Celsius::HIGHEST).contains(value);
        i32::try_from(thousandths).ok().filter(in_range).map(Celsius)
    }

    /// Thousandths of a degree.
    pub fn thousandths(self) -> i64 {
        i64::from(self.0)
    }

    /// Reads degrees without their unit; what is finer than a thousandth is rounded to the nearest.
    pub fn from_number(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("'{text}' is not a temperature in degrees Celsius; write for example 21.5");
        let degrees: f64 = text.trim().replace('\u{2212}', "-").parse().map_err(|_| wrong())?;
        let thousandths = (degrees * 1000.0).round();
        let is_whole = thousandths.abs() <= f64::from(Celsius::HIGHEST);
        let found = is_whole.then(|| Celsius::from_thousandths(thousandths as i64)).flatten();
        found.ok_or_else(wrong)
    }
}

/// Reads `21.5C` and `-3 °C`. The unit is required: a bare number could be in another one.
impl FromStr for Celsius {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim().strip_suffix(['C', 'c']);
        let number = number
            .ok_or_else(|| format!("'{text}' is not a temperature; write for example 21.5C"))?;
        Celsius::from_number(number.trim_end_matches(['°', ' ']))
    }
}

impl fmt::Display for Celsius {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, value) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        write!(f, "{sign}{}", value / 1000)?;
        if !value.is_multiple_of(1000) {
            write!(f, ".{}", format!("{:03}", value % 1000).trim_end_matches('0'))?;
        }
        f.write_str("C")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperatures_round_trip() {
        for (text, shown) in [
            ("21.5C", "21.5C"),
            ("-3 °C", "-3C"),
            ("-0.25C", "-0.25C"),
            ("0c", "0C"),
            ("\u{2212}7C", "-7C"),
        ] {
            let found: Celsius = text.parse().unwrap();
            assert_eq!(found.to_string(), shown);
            assert_eq!(shown.parse(), Ok(found));
        }
        for text in ["21.5", "70F", "warm", "-300C", "1e9C", "nanC", "C"] {
            assert!(
                text.parse::<Celsius>().unwrap_err().contains("write for example 21.5"),
                "{text}"
            );
        }
    }
}
