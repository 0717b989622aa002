//! Time limits as users type them: `90s`, `30m`, `1.5h`, `1h30m`, and the forms of sbatch.

use crate::units::{Span, parse_length};

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Reads a time limit: with units, or in a form of sbatch: minutes, `MM:SS`, `HH:MM:SS`, `D-HH`,
/// `D-HH:MM`, `D-HH:MM:SS`.
pub(super) fn parse(text: &str) -> Result<Span, String> {
    let millis = match text.ends_with(|last: char| last.is_ascii_alphabetic()) {
        true => parse_length(text).ok().map(Span::millis),
        false => as_sbatch(text),
    };
    match millis {
        Some(0) => Err(format!("'{text}' is zero; a time limit must be longer")),
        Some(millis) => Ok(Span::from_millis(millis)),
        None => Err(format!(
            "'{text}' is not a time; write 90s, 30m, 2h or 1d, a number of minutes, HH:MM:SS, \
             or D-HH:MM"
        )),
    }
}

/// Reads fields separated by colons, optionally after days and a dash. Without days, a single field
/// is minutes, and two are minutes and seconds; with days the first field is hours.
fn as_sbatch(text: &str) -> Option<u64> {
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (Some(days), clock),
        None => (None, text),
    };
    let fields: Vec<&str> = clock.split(':').collect();
    let units: &[u64] = match (days, fields.len()) {
        (Some(_), 1..=3) => &[HOUR, MINUTE, SECOND],
        (None, 1..=2) => &[MINUTE, SECOND],
        (None, 3) => &[HOUR, MINUTE, SECOND],
        _ => return None,
    };
    let first = days.map(|days| (days, DAY));
    let rest = fields.into_iter().zip(units.iter().copied());
    first.into_iter().chain(rest).try_fold(0u64, |total, (field, unit)| {
        let is_number = !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = is_number.then(|| field.parse().ok()).flatten()?;
        total.checked_add(number.checked_mul(unit)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_all_their_forms() {
        for (text, seconds) in [
            ("90s", 90),
            ("30m", 30 * 60),
            ("5 m", 5 * 60),
            ("2h", 2 * 3600),
            ("1d", 86_400),
            ("1.5h", 5400),
            ("1h30m", 5400),
            ("1d2h3m4s", 86_400 + 2 * 3600 + 3 * 60 + 4),
            ("90", 90 * 60),
            ("10:30", 10 * 60 + 30),
            ("01:02:03", 3600 + 2 * 60 + 3),
            ("100:00:00", 360_000),
            ("2-0", 2 * 86_400),
            ("1-12", 86_400 + 12 * 3600),
            ("1-02:30", 86_400 + 2 * 3600 + 30 * 60),
            ("0-00:00:01", 1),
        ] {
            assert_eq!(parse(text), Ok(Span::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse("0.5s"), Ok(Span::from_millis(500)));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "s",
            "x",
            "5x",
            "-5",
            "-5m",
            "1:2:3:4",
            "1-",
            "-",
            "1-2-3",
            "1h30",
            "0",
            "0s",
            "00:00:00",
            "1e3s",
            "1.5",
            "+5",
            "99999999999999999999s",
            "213503982335-0",
            "∞",
            "5µs",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
