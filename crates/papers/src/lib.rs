//! The papers' experiments run again: what was published, and beside it what Busbar measures.
//!
//! One file per paper. Published numbers are data there and nothing is fitted to them. `sample` is
//! what many draws amount to.

use std::fmt::Write;

use serde::ser::{SerializeMap, Serializer};

use busbar_core::parallel;

pub mod papers;
pub mod parm;
pub mod pb_guided;
pub mod ptune;
pub mod rmap;
mod sample;
pub mod share;
pub mod utility;

/// One number of a paper, and ours.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Finding {
    /// Which experiment: a table or a section of the paper.
    pub experiment: &'static str,
    /// On which workload.
    pub workload: String,
    /// What was measured.
    pub metric: String,
    /// What the paper says, where it does.
    pub published: Option<f64>,
    /// What we get.
    pub measured: Option<f64>,
    /// The unit of both; empty for plain numbers.
    pub unit: &'static str,
    /// How our number varies, where it is the mean of many draws.
    #[serde(flatten, serialize_with = "both_or_null")]
    pub variation: Option<Variation>,
}

/// The keys of a variation, which every finding has.
fn both_or_null<S: Serializer>(
    variation: &Option<Variation>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(2))?;
    map.serialize_entry("deviation", &variation.map(|variation| variation.deviation))?;
    map.serialize_entry("agreeing", &variation.and_then(|variation| variation.agreeing))?;
    map.end()
}

/// How a number varies over repeated draws.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Variation {
    /// The standard deviation, in the unit of the number.
    pub deviation: f64,
    /// How many of the draws agree with the paper, in per cent: they have the same sign, or are
    /// within the published limit. None where the paper says nothing of the kind.
    pub agreeing: Option<f64>,
}

/// The results of repeating a paper's experiments.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Reproduction {
    /// The numbers, in the order of the paper.
    pub findings: Vec<Finding>,
    /// What a reader has to know about them.
    pub notes: Vec<String>,
}

/// The findings as tables, one for each experiment, and the notes. What stands beside a measured number is `published`, or a
/// `goal`.
pub fn describe(reproduction: &Reproduction, beside: &str) -> String {
    let mut text = String::new();
    let mut rest = &reproduction.findings[..];
    while let Some(first) = rest.first() {
        let same = rest.iter().take_while(|finding| finding.experiment == first.experiment).count();
        let (table, after) = rest.split_at(same);
        describe_experiment(&mut text, first.experiment, table, beside);
        rest = after;
    }
    for note in &reproduction.notes {
        text += &format!("note: {note}\n");
    }
    text
}

fn describe_experiment(text: &mut String, experiment: &str, table: &[Finding], beside: &str) {
    let width = |column: fn(&Finding) -> &str, title: &str| {
        let widest = table.iter().map(|finding| column(finding).chars().count()).max();
        widest.unwrap_or(0).max(title.len())
    };
    let workloads = width(|finding| &finding.workload, "workload");
    let metrics = width(|finding| &finding.metric, "metric");
    let has_variation = table.iter().any(|finding| finding.variation.is_some());
    let titles = if has_variation { "         ±   agree" } else { "" };
    // Writing to a string does not fail.
    let _ = writeln!(text, "{experiment}");
    let _ = writeln!(
        text,
        "  {:<workloads$}  {:<metrics$}  {:>10}  {:>10}{titles}",
        "workload", "metric", beside, "measured"
    );
    let mut before = "";
    for finding in table {
        let workload = if finding.workload == before { "" } else { &finding.workload };
        let variation = match finding.variation {
            None if has_variation => format!("{:18}", ""),
            None => String::new(),
            Some(Variation { deviation, agreeing }) => {
                let agreeing = agreeing.map_or("-".to_owned(), |share| format!("{share:.0} %"));
                format!("{:>10}{agreeing:>8}", number(Some(deviation), finding.unit))
            }
        };
        let row = format!(
            "  {workload:<workloads$}  {:<metrics$}  {:>10}  {:>10}{variation}  {}",
            finding.metric,
            number(finding.published, finding.unit),
            number(finding.measured, finding.unit),
            finding.unit
        );
        let _ = writeln!(text, "{}", row.trim_end());
        before = &finding.workload;
    }
    text.push('\n');
}

/// A number with the decimals that say something in its unit.
fn number(number: Option<f64>, unit: &str) -> String {
    match (number, unit) {
        (None, _) => "-".to_owned(),
        (Some(value), "s" | "jobs" | "nodes" | "moves") => format!("{value:.0}"),
        (Some(value), "%" | "min") => format!("{value:.1}"),
        (Some(value), "×") => format!("{value:.2}"),
        (Some(value), "GHz") => format!("{value:.2}"),
        (Some(value), _) if value < 10.0 => format!("{value:.3}"),
        (Some(value), _) => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_published_is_a_dash() {
        let finding = |workload: &str, metric: &str, published, measured, unit| Finding {
            experiment: "Table I",
            workload: workload.to_owned(),
            metric: metric.to_owned(),
            published,
            measured: Some(measured),
            unit,
            variation: None,
        };
        let findings = vec![
            finding("one", "wait", Some(7107.0), 6999.6, "s"),
            finding("one", "β", None, 0.25, ""),
            finding("two", "wait", Some(1.0), 2.0, "s"),
        ];
        let text =
            describe(&Reproduction { findings, notes: vec!["so it is".to_owned()] }, "published");
        assert_eq!(
            text,
            "Table I\n  \
             workload  metric   published    measured\n  \
             one       wait          7107        7000  s\n            \
                       β                -       0.250\n  \
             two       wait             1           2  s\n\n\
             note: so it is\n"
        );
    }
    #[test]
    fn what_varies_says_by_how_much() {
        let finding = |metric: &str, variation| Finding {
            experiment: "Table I",
            workload: "one".to_owned(),
            metric: metric.to_owned(),
            published: Some(31.2),
            measured: Some(-1.5),
            unit: "%",
            variation,
        };
        let varies = |deviation, agreeing| Some(Variation { deviation, agreeing });
        let findings = vec![
            finding("gain", varies(4.0, Some(25.0))),
            finding("share", varies(11.0, None)),
            finding("once", None),
        ];
        assert_eq!(
            serde_json::to_value(&findings[0]).unwrap()["agreeing"],
            serde_json::json!(25.0)
        );
        let once = serde_json::to_value(&findings[2]).unwrap();
        assert_eq!(once.get("agreeing"), Some(&serde_json::Value::Null), "the key is there");
        let text = describe(&Reproduction { findings, notes: Vec::new() }, "goal");
        assert_eq!(
            text,
            "Table I\n  \
             workload  metric        goal    measured         ±   agree\n  \
             one       gain          31.2        -1.5       4.0    25 %  %\n            \
                       share         31.2        -1.5      11.0       -  %\n            \
                       once          31.2        -1.5                    %\n\n"
        );
    }
}
