//! What is written in a field: exact numbers above zero, names, origins.

use crate::profile::{LONGEST, Origin, is_name};
use crate::units::{QuantityError, Span, Watts, parse_decimal};

/// A number of nodes or cores.
pub(super) fn count(text: &str) -> Result<u32, String> {
    let count = above_zero(text, 1, "a whole number")?;
    u32::try_from(count).map_err(|_| too_large(text, u32::MAX))
}

/// Watts, to the milliwatt.
pub(super) fn power(text: &str) -> Result<Watts, String> {
    let milliwatts = above_zero(text, 1000, "watts with at most three decimals, such as 115")?;
    let power = Watts::from_milliwatts(milliwatts);
    if power > Watts::LARGEST { Err(too_large(text, Watts::LARGEST)) } else { Ok(power) }
}

/// Seconds, to the millisecond.
pub(super) fn time(text: &str) -> Result<Span, String> {
    let millis = above_zero(text, 1000, "seconds with at most three decimals, such as 415.3")?;
    let time = Span::from_millis(millis);
    if time > LONGEST { Err(too_large(text, LONGEST)) } else { Ok(time) }
}

/// What an application is called.
pub(super) fn name(text: &str) -> Result<&str, String> {
    let name = text.trim();
    match (name.is_empty(), is_name(name)) {
        (true, _) => Err("there is no name; every row needs its application".to_owned()),
        (_, true) => Ok(name),
        (_, false) => Err(format!("{name:?} has control characters; take them out")),
    }
}

/// Who says so.
pub(super) fn origin(text: &str) -> Result<Origin, String> {
    let mut origins = [Origin::Measured, Origin::Predicted].into_iter();
    let named = origins.find(|origin| origin.name().eq_ignore_ascii_case(text));
    named.ok_or_else(|| format!("'{text}' is no origin; write measured or predicted"))
}

/// Reads a number above zero as so many `unit`ths, exactly.
fn above_zero(text: &str, unit: u64, wanted: &str) -> Result<u64, String> {
    let is_negative =
        || text.strip_prefix('-').is_some_and(|rest| parse_decimal(rest, unit).is_ok());
    match parse_decimal(text, unit) {
        Ok(value) if value > 0 => Ok(value),
        Err(_) if text.is_empty() => Err(format!("there is no value; write {wanted}")),
        Err(QuantityError::NotANumber(_)) if !is_negative() => {
            Err(format!("'{text}' is not a plain number; write {wanted}"))
        }
        Err(why) if !is_negative() => Err(format!("{why}; write {wanted}")),
        _ => Err(format!("'{text}' is not above zero; write {wanted}")),
    }
}

fn too_large(text: &str, most: impl std::fmt::Display) -> String {
    format!("'{text}' is too large; at most {most}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_and_above_zero() {
        assert_eq!(count("8"), Ok(8));
        assert_eq!(count("8.0"), Ok(8), "as spreadsheets write whole numbers");
        assert_eq!(power("42.5"), Ok(Watts::from_milliwatts(42_500)));
        assert_eq!(time("0.001"), Ok(Span::from_millis(1)));
        for wrong in ["0", "-1", "0.000", "1.5", "x", "", "1e3", "4294967296"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
        assert!(time("-3").unwrap_err().starts_with("'-3' is not above zero"));
        assert!(time("--3").unwrap_err().starts_with("'--3' is not a plain number"));
        assert!(time("1.0005").unwrap_err().contains("at most three decimals"));
        assert!(time("1000000000001").unwrap_err().contains("at most 1000000000000 s"));
        assert!(power("1000000000001").unwrap_err().contains("at most 1000000000000W"));
        assert!(power("NaN").unwrap_err().contains("write watts"));
    }

    #[test]
    fn names_and_origins_are_plain() {
        assert_eq!(name(" SP-MZ "), Ok("SP-MZ"));
        assert!(name("  ").unwrap_err().contains("no name"));
        assert!(name("a\tb").unwrap_err().contains(r#""a\tb" has control"#));
        assert_eq!(origin("Predicted"), Ok(Origin::Predicted));
        assert!(origin("guessed").unwrap_err().contains("write measured or predicted"));
    }
}
