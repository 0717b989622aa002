//! The papers' experiments in a small form, as `busbar reproduce --json` prints them.

use busbar::reproduce::{Finding, Reproduction, parm, pb_guided, ptune, rmap, utility};
use busbar::workload::essc::Essc;
use serde_json::{Map, Value, json};

use super::hold;

/// A number with twelve significant digits: sums may differ beyond that from one platform to another.
fn rounded(number: f64) -> Value {
    let number: f64 = format!("{number:.11e}").parse().unwrap();
    if number == number.trunc() && number.abs() < 1e12 {
        json!(number as i64)
    } else {
        json!(number)
    }
}

/// The same without times that were measured with a clock, every number rounded, and an interval as a list
/// of its mean and half its width.
fn neutral(value: Value) -> Value {
    match value {
        Value::Number(number) => rounded(number.as_f64().unwrap()),
        Value::Array(values) => values.into_iter().map(neutral).collect(),
        Value::Object(map) => {
            if map.len() == 2
                && let (Some(mean), Some(half)) = (map.get("mean"), map.get("half_width"))
            {
                return json!([neutral(mean.clone()), neutral(half.clone())]);
            }
            let is_kept = |key: &str| !["event_mean_us", "event_worst_us"].contains(&key);
            let kept = map.into_iter().filter(|(key, _)| is_kept(key));
            Value::Object(kept.map(|(key, value)| (key, neutral(value))).collect())
        }
        other => other,
    }
}

/// A JSON object with every element of its lists on a line of its own.
fn text(map: &Map<String, Value>) -> String {
    let fields = map.iter().map(|(key, value)| match value {
        Value::Array(values) => {
            let lines: Vec<String> = values.iter().map(|value| format!("    {value}")).collect();
            format!("  {}: [\n{}\n  ]", json!(key), lines.join(",\n"))
        }
        other => format!("  {}: {other}", json!(key)),
    });
    format!("{{\n{}\n}}\n", fields.collect::<Vec<_>>().join(",\n"))
}

/// The findings without what repeats: whenever experiment, workload or unit change a line says so, and the
/// lines after it are lists of metric, measured, deviation, agreeing and published, without nulls at the
/// end.
fn rows(findings: &[Finding]) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut before = None;
    for finding in findings {
        let Finding { experiment, workload, metric, published, measured, unit, .. } = finding;
        let about = (*experiment, workload, *unit);
        if before != Some(about) {
            rows.push(json!({"experiment": experiment, "workload": workload, "unit": unit}));
            before = Some(about);
        }
        let deviation = finding.variation.map(|variation| variation.deviation);
        let agreeing = finding.variation.and_then(|variation| variation.agreeing);
        let mut row = vec![
            json!(metric),
            json!(measured),
            json!(deviation),
            json!(agreeing),
            json!(published),
        ];
        while row.last().is_some_and(Value::is_null) {
            row.pop();
        }
        rows.push(Value::Array(row));
    }
    rows
}

fn hold_reproduction(paper: &str, reproduction: &Reproduction, more: Value) {
    let mut all = more.as_object().cloned().unwrap_or_default();
    all.insert("paper".to_owned(), json!(paper));
    all.insert("findings".to_owned(), Value::Array(rows(&reproduction.findings)));
    all.insert("notes".to_owned(), json!(reproduction.notes));
    let Value::Object(all) = neutral(Value::Object(all)) else { unreachable!("it is an object") };
    hold(&format!("reproduce/{paper}.json"), &text(&all));
}

#[test]
fn pb_guided_is_reproduced_as_before() {
    let options = pb_guided::Options { seed: 1, ..pb_guided::Options::default() };
    let reproduction = pb_guided::reproduce(&options, &mut |_| {}).unwrap();
    hold_reproduction("pb-guided", &reproduction, json!({}));
}

#[test]
fn rmap_is_reproduced_as_before() {
    let options = rmap::Options { seeds: 1, first_seed: 1 };
    let reproduction = rmap::reproduce(&options, &|_, _| {}).unwrap();
    hold_reproduction("rmap", &reproduction, json!({}));
}

#[test]
fn parm_is_reproduced_as_before() {
    let options = parm::Options { jobs: 30, seeds: 2, ..parm::Options::default() };
    let reproduction = parm::reproduce(&options, &|_, _| {}).unwrap();
    hold_reproduction("parm", &reproduction, json!({}));
}

#[test]
fn ptune_is_reproduced_as_before() {
    let options = ptune::Options { seeds: 1, first_seed: 1 };
    let reproduction = ptune::reproduce(&options, &|_, _| {}).unwrap();
    hold_reproduction("ptune", &reproduction, json!({}));
}

/// On days of three hours with ten machines. The findings are the statements' parts in another form, so they
/// are not written twice.
#[test]
fn utility_is_reproduced_as_before() {
    let mut essc = Essc { tasks: 1600, hours: 3, warm_up: 1, ..Essc::default() };
    essc.machines.machines = 10;
    let options = utility::Options { trials: 2, first_seed: 1, essc };
    let report = utility::reproduce(&options, &|_, _| {}, &|| 0).unwrap();
    let parts = report.statements.iter().flat_map(|statement| &statement.parts);
    let parts = parts.map(|part| (part.what.clone(), part.unit, Some(part.difference.mean)));
    let findings = report.findings().into_iter();
    let findings = findings.map(|finding| (finding.metric, finding.unit, finding.measured));
    assert!(parts.eq(findings));
    let nothing = Reproduction { findings: Vec::new(), notes: Vec::new() };
    hold_reproduction("utility", &nothing, serde_json::to_value(&report).unwrap());
}
