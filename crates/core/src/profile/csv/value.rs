//! What is written in a field: numbers above zero, names, origins.

use crate::profile::{LONGEST, Origin, is_name};
use crate::rows::Number;
use crate::units::{Span, Watts};

const WATTS: &str = "watts, such as 115";

/// A number of nodes or cores.
pub(super) fn count(text: &str) -> Result<u32, String> {
    let wanted = "a whole number";
    let number = above_zero(text, wanted)?;
    if !number.is_whole() {
        return Err(format!("'{text}' is not whole; write {wanted}"));
    }
    let count = number.nearest(0).and_then(|count| u32::try_from(count).ok());
    count.ok_or_else(|| too_large(text, u32::MAX))
}

/// A cap in watts, rounded to the nearest milliwatt: it names a setting.
pub(super) fn cap(text: &str) -> Result<Watts, String> {
    watts(text, above_zero(text, WATTS)?.nearest(3))
}

/// Watts that are drawn, rounded up to the next milliwatt: never less than they are.
pub(super) fn power(text: &str) -> Result<Watts, String> {
    watts(text, above_zero(text, WATTS)?.up(3))
}

fn watts(text: &str, milliwatts: Option<u64>) -> Result<Watts, String> {
    let power = milliwatts.map(|least| Watts::from_milliwatts(least.max(1)));
    let power = power.filter(|power| *power <= Watts::LARGEST);
    power.ok_or_else(|| too_large(text, Watts::LARGEST))
}

/// Seconds, rounded to the nearest millisecond.
pub(super) fn time(text: &str) -> Result<Span, String> {
    let millis = above_zero(text, "seconds, such as 415.3")?.nearest(3);
    let time = millis.map(|millis| Span::from_millis(millis.max(1)));
    time.filter(|time| *time <= LONGEST).ok_or_else(|| too_large(text, LONGEST))
}

/// Milliseconds, rounded to the nearest.
pub(super) fn time_in_millis(text: &str) -> Result<Span, String> {
    let millis = above_zero(text, "milliseconds, such as 2438.7")?.nearest(0);
    let time = millis.map(|millis| Span::from_millis(millis.max(1)));
    time.filter(|time| *time <= LONGEST).ok_or_else(|| too_large(text, LONGEST))
}

/// Joules that were taken, in microjoules, rounded up.
pub(super) fn energy(text: &str) -> Result<u64, String> {
    let microjoules = above_zero(text, "joules, such as 19025.5")?.up(6);
    microjoules.ok_or_else(|| too_large(text, "18000000000000 J"))
}

/// What so much energy is over a time, rounded up to the next milliwatt.
pub(super) fn mean_power(microjoules: u64, time: Span) -> Watts {
    // A microjoule in a millisecond is a milliwatt.
    let milliwatts = microjoules.div_ceil(time.millis().max(1)).max(1);
    Watts::from_milliwatts(milliwatts).min(Watts::LARGEST)
}

/// The name of an application.
pub(super) fn name(text: &str) -> Result<&str, String> {
    let name = text.trim();
    match (name.is_empty(), is_name(name)) {
        (true, _) => Err("the name is missing; every row needs its application".to_owned()),
        (_, true) => Ok(name),
        (_, false) => Err(format!("{name:?} has control characters; remove them")),
    }
}

/// The origin of the values.
pub(super) fn origin(text: &str) -> Result<Origin, String> {
    let named = Origin::named(&text.to_ascii_lowercase());
    named.ok_or_else(|| {
        format!("'{text}' is not an origin; write measured, emulated, bound or predicted")
    })
}

/// Reads a number above zero.
fn above_zero<'a>(text: &'a str, wanted: &str) -> Result<Number<'a>, String> {
    let is_negative = || text.strip_prefix('-').is_some_and(|rest| Number::read(rest).is_some());
    match Number::read(text) {
        Some(number) if !number.is_zero() => Ok(number),
        None if text.is_empty() => Err(format!("the value is missing; write {wanted}")),
        None if !is_negative() => Err(format!("'{text}' is not a plain number; write {wanted}")),
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
    fn numbers_are_above_zero_and_rounded_at_a_thousandth() {
        assert_eq!(count("8"), Ok(8));
        assert_eq!(count("8.0"), Ok(8), "as spreadsheets write whole numbers");
        assert_eq!(count("1.2e1"), Ok(12));
        assert_eq!(power("42.5"), Ok(Watts::from_milliwatts(42_500)));
        assert_eq!(time("0.001"), Ok(Span::from_millis(1)));
        assert_eq!(time("1e3"), Ok(Span::from_secs(1000)));
        // Times and caps to the nearest thousandth, powers up; none becomes nothing.
        assert_eq!(time("1.00049"), Ok(Span::from_millis(1000)));
        assert_eq!(time("1.0005"), Ok(Span::from_millis(1001)));
        assert_eq!(cap("64.99999999"), Ok(Watts::from_watts(65)));
        assert_eq!(cap("65.0000001"), Ok(Watts::from_watts(65)));
        assert_eq!(power("65.0000001"), Ok(Watts::from_milliwatts(65_001)));
        assert_eq!(time("1e-9"), Ok(Span::from_millis(1)));
        for wrong in ["0", "-1", "0.000", "1.5", "x", "", "15e-1", "4294967296", "1e99"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
        assert!(count("1.5").unwrap_err().starts_with("'1.5' is not whole"));
        assert!(time("0e5").unwrap_err().starts_with("'0e5' is not above zero"));
        assert!(time("-3").unwrap_err().starts_with("'-3' is not above zero"));
        assert!(time("--3").unwrap_err().starts_with("'--3' is not a plain number"));
        assert!(time("1000000000001").unwrap_err().contains("at most 1000000000000 s"));
        assert!(power("1000000000001").unwrap_err().contains("at most 1000000000000W"));
        assert!(power("1e400").unwrap_err().contains("at most 1000000000000W"));
        assert!(power("NaN").unwrap_err().contains("write watts"));
        assert_eq!(power("297.65999999999997"), Ok(Watts::from_milliwatts(297_660)));
        assert_eq!(time_in_millis("2438.734"), Ok(Span::from_millis(2439)));
    }

    #[test]
    fn energy_over_time_is_power() {
        // 19 025 J in 254.53 s are 74.7456… W.
        let energy = energy("19025").unwrap();
        assert_eq!(mean_power(energy, Span::from_millis(254_530)), Watts::from_milliwatts(74_746));
        assert_eq!(mean_power(1, Span::from_secs(1)), Watts::from_milliwatts(1));
        assert_eq!(mean_power(u64::MAX, Span::from_millis(1)), Watts::LARGEST);
        assert!(super::energy("1e30").unwrap_err().contains("too large"));
    }

    #[test]
    fn names_and_origins_are_plain() {
        assert_eq!(name(" SP-MZ "), Ok("SP-MZ"));
        assert!(name("  ").unwrap_err().contains("the name is missing"));
        assert!(name("a\tb").unwrap_err().contains(r#""a\tb" has control"#));
        assert_eq!(origin("Predicted"), Ok(Origin::Predicted));
        assert!(
            origin("guessed").unwrap_err().contains("write measured, emulated, bound or predicted")
        );
    }
}
