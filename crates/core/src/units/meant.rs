//! Suggestions for quantities that cannot be read.

use super::{Share, parse_decimal};

/// Marks that stand between digits, beside the decimal point: of thousands, or a decimal comma.
pub(super) fn is_mark(sign: char) -> bool {
    matches!(sign, ',' | '_' | '\'' | '\u{2019}') || sign.is_whitespace()
}

/// `; did you mean 1.5?`, or just a semicolon if nothing is like what was written.
fn question(readings: &[String]) -> String {
    match readings {
        [] => ";".to_owned(),
        [one] => format!("; did you mean {one}?"),
        [others @ .., last] => format!("; did you mean {} or {last}?", others.join(", ")),
    }
}

/// The numbers without marks that this may stand for. A comma may be a decimal one; before three digits it may as well
/// mark thousands.
fn numbers(number: &str) -> Vec<String> {
    let parts: Vec<&str> = number.split(is_mark).collect();
    let is_number = |text: &str| {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        [whole, fraction]
            .iter()
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let has_thousands =
        parts[1..].iter().all(|part| part.split('.').next().map(str::len) == Some(3));
    let joined = Some(parts.concat()).filter(|_| parts.len() == 1 || has_thousands);
    let decimal = match parts[..] {
        [whole, fraction] if number.contains(',') => Some(format!("{whole}.{fraction}")),
        _ => None,
    };
    decimal.into_iter().chain(joined).filter(|text| is_number(text)).collect()
}

/// What a text may mean that is no number.
pub(crate) fn number(text: &str) -> String {
    question(&numbers(text))
}

/// What a number with a unit may mean: units that differ in their capitals alone. A bare number may have any unit, of
/// which `usual` are those that people leave out.
pub(super) fn quantity(text: &str, known: &[&str], usual: &[&str]) -> String {
    let (number, unit) = super::split_unit(text);
    let units: Vec<&&str> = match unit {
        "" => usual.iter().collect(),
        unit => known.iter().filter(|known| known.eq_ignore_ascii_case(unit)).collect(),
    };
    let readings = numbers(number)
        .into_iter()
        .flat_map(|number| units.iter().map(move |unit| format!("{number}{unit}")));
    question(&readings.collect::<Vec<_>>())
}

/// The share that a bare number may stand for: `20` is 20%, and `0.8` is 80%.
fn shares(text: &str) -> Vec<String> {
    let share = |number: String| match parse_decimal(&number, Share::WHOLE.millionths()) {
        Ok(part) if 0 < part && part < Share::WHOLE.millionths() => {
            Share::from_millionths(part).to_string()
        }
        _ => format!("{number}%"),
    };
    numbers(text).into_iter().map(share).collect()
}

/// What a text may mean that is no share.
pub(super) fn share(text: &str) -> String {
    question(&shares(text))
}

/// What a bare number may mean as a limit of power.
pub(super) fn limit(text: &str) -> String {
    let powers = numbers(text)
        .into_iter()
        .flat_map(|number| ["W", "kW"].map(|unit| format!("{number}{unit}")));
    question(&shares(text).into_iter().chain(powers).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{QuantityError, Watts};

    #[test]
    fn units_differ_in_capitals_or_were_left_out() {
        let power = |text: &str| text.parse::<Watts>().unwrap_err().to_string();
        for (text, meant) in [
            (
                "15KW",
                "'15KW' has no known unit of power; did you mean 15kW? valid units: mW, W, kW",
            ),
            ("15 Kw", "did you mean 15kW?"),
            ("1.2mw", "did you mean 1.2MW or 1.2mW?"),
            ("1,2mw", "did you mean 1.2MW or 1.2mW?"),
            ("80", "'80' has no known unit of power; did you mean 80W or 80kW?"),
            ("1,5kW", "'1,5' is not a number; did you mean 1.5? write digits"),
            ("1,500kW", "did you mean 1.500 or 1500?"),
            ("80X", "'80X' has no known unit of power; valid units"),
        ] {
            assert!(power(text).contains(meant), "{}", power(text));
        }
        let limit = |text: &str| QuantityError::BareLimit(text.to_owned()).to_string();
        assert!(limit("80").starts_with("'80' has no unit; did you mean 80%, 80W or 80kW? valid"));
        assert!(limit("0.8").contains("did you mean 80%, 0.8W or 0.8kW?"), "{}", limit("0.8"));
        let share = |text: &str| QuantityError::NotAShare(text.to_owned()).to_string();
        assert!(share("20").contains("'20' is not a share; did you mean 20%? write"));
        assert!(share("0.125").contains("did you mean 12.5%?"));
        assert!(share("half").contains("'half' is not a share; write"));
    }

    #[test]
    fn a_comma_is_a_decimal_one_or_marks_thousands() {
        for (text, meant) in [
            ("1,5", "; did you mean 1.5?"),
            ("1,500", "; did you mean 1.500 or 1500?"),
            ("1,500.5", "; did you mean 1500.5?"),
            ("1,200,000", "; did you mean 1200000?"),
            ("1_000", "; did you mean 1000?"),
            ("1 200", "; did you mean 1200?"),
            ("1,", ";"),
            (",5", ";"),
            ("1,2,3", ";"),
            ("1.2.3", ";"),
            ("-4", ";"),
            ("lots", ";"),
            ("", ";"),
        ] {
            assert_eq!(number(text), meant, "{text}");
        }
    }
}
