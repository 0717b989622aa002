//! Every figure of every summary, rounded: for those who want to see all of it.

use std::fmt::Write;

use serde_json::Value;

use crate::report::cases::Case;
use crate::report::markup::escaped;
use crate::report::{human_energy, human_mass, human_power, human_time};

/// A table of every key of the summaries of a case.
pub(super) fn all_figures(case: &Case<'_>) -> String {
    let summaries = case.summaries();
    let order = case.order();
    let mut keys: Vec<String> = Vec::new();
    let mut columns: Vec<Vec<(String, String)>> = Vec::new();
    for &place in &order {
        let mut column = Vec::new();
        flatten("", &serde_json::to_value(summaries[place]).unwrap_or_default(), &mut column);
        for (key, _) in &column {
            if key != "policy" && !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        columns.push(column);
    }
    if keys.is_empty() {
        return String::new();
    }
    let mut rows = String::new();
    for key in &keys {
        let _ = write!(rows, "<tr><th scope=\"row\"><code>{}</code></th>", escaped(key));
        for column in &columns {
            let found = column.iter().find(|(other, _)| other == key);
            let text = found.map_or("–", |(_, text)| text.as_str());
            let _ = write!(rows, "<td>{}</td>", escaped(text));
        }
        rows += "</tr>\n";
    }
    let headings = order.iter().fold(String::new(), |mut headings, &place| {
        let policy = escaped(&summaries[place].policy);
        let _ = write!(headings, "<th scope=\"col\">{policy}</th>");
        headings
    });
    let seed = match case.seeds.iter().any(|seeds| seeds.len() > 1) {
        true => " of the first seed",
        false => "",
    };
    format!(
        "<details><summary>All figures{seed}</summary>\n\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"All figures\"><table \
         class=\"keys\">\n<thead><tr><th scope=\"col\">Key</th>{headings}</tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n</details>\n"
    )
}

/// The values within a value, each with the names on the way to it.
fn flatten(key: &str, value: &Value, found: &mut Vec<(String, String)>) {
    let within = |name: &str| match key {
        "" => name.to_owned(),
        _ => format!("{key}.{name}"),
    };
    match value {
        Value::Object(object) => {
            object.iter().for_each(|(name, value)| flatten(&within(name), value, found));
        }
        Value::Array(values) => {
            (1..).zip(values).for_each(|(place, value): (usize, _)| {
                flatten(&within(&place.to_string()), value, found);
            });
        }
        Value::Null => found.push((key.to_owned(), "–".to_owned())),
        Value::String(text) => found.push((key.to_owned(), text.clone())),
        Value::Bool(yes) => {
            found.push((key.to_owned(), if *yes { "yes" } else { "no" }.to_owned()))
        }
        Value::Number(number) => {
            let text = number.as_f64().map_or_else(|| number.to_string(), |n| written(key, n));
            found.push((key.to_owned(), text));
        }
    }
}

/// A number with the unit that the end of its key names.
fn written(key: &str, number: f64) -> String {
    match key.rsplit('_').next() {
        Some("s") => human_time(number),
        Some("w") => human_power(number),
        Some("j") => human_energy(number),
        Some("kg") => human_mass(number),
        _ if number.fract() == 0.0 => format!("{number:.0}"),
        _ if number.abs() >= 100.0 => format!("{number:.1}"),
        _ => format!("{number:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_and_have_their_unit() {
        let value = serde_json::json!({
            "energy_j": 30_812_345_678.9, "mean_wait_s": 5_123.456_789, "jobs": 2000, "budget_w": null,
            "utilisation": 0.123_456_789, "window": { "peak_power_w": 15_360.0 }, "parts": [true, 1234.56],
        });
        let mut found = Vec::new();
        flatten("", &value, &mut found);
        let text = |key: &str| found.iter().find(|(other, _)| other == key).unwrap().1.as_str();
        assert_eq!(text("energy_j"), "30.81 GJ");
        assert_eq!(text("mean_wait_s"), "85.4 min");
        assert_eq!((text("jobs"), text("budget_w"), text("utilisation")), ("2000", "–", "0.123"));
        assert_eq!(
            (text("window.peak_power_w"), text("parts.1"), text("parts.2")),
            ("15.36 kW", "yes", "1234.6")
        );
    }
}
