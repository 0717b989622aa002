//! The results of an experiment for other programs: one JSON object, or one row for each run.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::experiment::assumptions::assumptions;
use crate::experiment::gains::{self, Gain, Gains};
use crate::experiment::ranking::Ranking;
use crate::experiment::{CellOutcome, CheckedExperiment, Figure, Tried};
use crate::freedom::{Freedom, Freedoms};
use crate::report::{Cells, Table};

/// All results as one object: the rankings, each run, and what they rest on.
pub(crate) fn answer(
    checked: &CheckedExperiment<'_>,
    rankings: &[Ranking],
    tried: &[Tried],
) -> Value {
    let experiment = checked.experiment;
    let rankings = rankings.iter().map(|ranking| ranking_of(checked, ranking)).collect();
    let runs = tried.iter().map(|tried| Value::Object(run(checked, tried))).collect();
    let mut answer = Map::new();
    answer.insert("title".to_owned(), experiment.title.clone().into());
    answer.insert("rank_by".to_owned(), experiment.rank_by.name().into());
    answer.insert("rankings".to_owned(), Value::Array(rankings));
    answer.insert("runs".to_owned(), Value::Array(runs));
    answer.insert("assumptions".to_owned(), assumptions(checked).into());
    answer.insert("notes".to_owned(), checked.notes().into());
    Value::Object(answer)
}

fn ranking_of(checked: &CheckedExperiment<'_>, ranking: &Ranking) -> Value {
    let experiment = checked.experiment;
    let cell = ranking.cell;
    let row = |(place, row): (usize, &crate::experiment::ranking::Row)| {
        let mut object = Map::new();
        object.insert("rank".to_owned(), (place + 1).into());
        object.insert("policy".to_owned(), experiment.policies[row.policy].to_string().into());
        object.insert("runs".to_owned(), row.runs.into());
        object.insert("jobs".to_owned(), json(&row.jobs));
        object.insert("undone".to_owned(), json(&row.undone));
        object.insert("killed_by_belief".to_owned(), json(&row.killed_by_belief));
        object.insert("over_budget".to_owned(), json(&row.over_budget));
        let freedoms = checked.freedoms(row.policy).iter().map(Freedom::name);
        object.insert("freedoms".to_owned(), freedoms.collect::<Vec<_>>().into());
        for (figure, value) in Figure::ALL.into_iter().zip(&row.figures) {
            // Not everybody has a price.
            if value.is_none() && matches!(figure, Figure::Cost | Figure::Carbon) {
                continue;
            }
            let value = match value {
                Some((spread, is_best)) => serde_json::json!({
                    "mean": spread.mean, "deviation": spread.deviation, "best": is_best
                }),
                None => Value::Null,
            };
            object.insert(figure.name().to_owned(), value);
        }
        Value::Object(object)
    };
    let cannot = ranking.cannot.iter().map(|(policy, reason)| {
        serde_json::json!({ "policy": experiment.policies[*policy].to_string(), "reason": reason })
    });
    let limit = checked.limit(cell.workload, cell.budget);
    serde_json::json!({
        "workload": experiment.workload_name(cell.workload),
        "machine": checked.machine(cell.workload, cell.size).name,
        "nodes": checked.machine(cell.workload, cell.size).nodes,
        "budget": experiment.budget_name(cell.budget),
        "budget_w": limit.map(|limit| limit.as_f64()),
        "rows": ranking.rows.iter().enumerate().map(row).collect::<Vec<_>>(),
        "cannot_run": cannot.collect::<Vec<_>>(),
    })
}

/// What freedoms and knowledge buy, as one object.
pub(crate) fn gains(checked: &CheckedExperiment<'_>, gains: &Gains) -> Value {
    let experiment = checked.experiment;
    let value = |value: Option<gains::Value>| match value {
        Some(value) => serde_json::json!({ "figure": value.figure, "undone": value.undone }),
        None => Value::Null,
    };
    let row = |gain: &Gain| {
        serde_json::json!({
            "policy": experiment.policies[gain.policy].to_string(),
            "by_freedom": gain.course().into_iter().map(value).collect::<Vec<_>>(),
            "by_belief": gain.by_belief.into_iter().map(value).collect::<Vec<_>>(),
        })
    };
    serde_json::json!({
        "workload": experiment.workload_name(gains.workload),
        "budget": experiment.budget_name(gains.budget),
        "figure": experiment.rank_by.name(),
        "allowed": gains.steps.iter().map(Freedoms::to_string).collect::<Vec<_>>(),
        "beliefs": gains::BELIEFS.map(|believe| believe.to_string()),
        "rows": gains.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

/// Numbers that serialise cannot fail; should one not be a number, it is nothing.
fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

/// What every run has, before its figures.
const FIRST: [&str; 6] = ["workload", "budget", "nodes", "policy", "seed", "reason"];

/// One run, with its figures if it has any.
fn run(checked: &CheckedExperiment<'_>, tried: &Tried) -> Map<String, Value> {
    let experiment = checked.experiment;
    let cell = tried.cell;
    let mut run = match &tried.outcome {
        CellOutcome::Ran(finished) => match json(finished.summary()) {
            Value::Object(summary) => summary,
            _ => Map::new(),
        },
        CellOutcome::CannotRun(_) => Map::new(),
    };
    let reason = match &tried.outcome {
        CellOutcome::Ran(_) => Value::Null,
        CellOutcome::CannotRun(reason) => reason.clone().into(),
    };
    let first: [Value; FIRST.len()] = [
        experiment.workload_name(cell.workload).into(),
        experiment.budget_name(cell.budget).into(),
        checked.machine(cell.workload, cell.size).nodes.into(),
        experiment.policies[cell.policy].to_string().into(),
        cell.seed.into(),
        reason,
    ];
    run.extend(FIRST.map(str::to_owned).into_iter().zip(first));
    let is_profiled = experiment.is_profiled(cell.workload);
    let profiles = is_profiled.then(|| experiment.profiles_name().to_owned());
    run.insert("profiles".to_owned(), profiles.into());
    // A table has no columns within columns.
    if let Some(Value::Object(window)) = run.remove("window") {
        run.extend(window.into_iter().map(|(key, value)| (format!("window_{key}"), value)));
    }
    run
}

/// All runs, and the names of their columns: what every run has, and then all figures of the summary in the order of
/// the alphabet.
fn rows(
    checked: &CheckedExperiment<'_>,
    tried: &[Tried],
) -> (Vec<String>, Vec<Map<String, Value>>) {
    let runs: Vec<Map<String, Value>> =
        tried.iter().map(|tried| flat(run(checked, tried))).collect();
    let mut others: Vec<&String> = runs.iter().flat_map(Map::keys).collect();
    others.retain(|key| !FIRST.contains(&key.as_str()));
    others.sort();
    others.dedup();
    let first = FIRST.into_iter().map(str::to_owned);
    (first.chain(others.into_iter().cloned()).collect(), runs)
}

/// A run whose values within values have names of their own: a table has no columns within columns.
fn flat(run: Map<String, Value>) -> Map<String, Value> {
    let mut flat = Map::new();
    for (key, value) in run {
        match value {
            Value::Object(within) => {
                flat.extend(
                    within.into_iter().map(|(name, value)| (format!("{key}_{name}"), value)),
                );
            }
            value => _ = flat.insert(key, value),
        }
    }
    flat
}

/// Writes a row for each run: what it was, why it could not run if it could not, and its figures.
pub(crate) fn write_csv(
    out: &mut dyn Write,
    checked: &CheckedExperiment<'_>,
    tried: &[Tried],
) -> io::Result<()> {
    let (keys, runs) = rows(checked, tried);
    writeln!(out, "{}", keys.join(","))?;
    for run in &runs {
        let fields: Vec<String> = keys.iter().map(|key| field(run.get(key))).collect();
        writeln!(out, "{}", fields.join(","))?;
    }
    Ok(())
}

/// The same rows, column by column.
pub(crate) fn table(checked: &CheckedExperiment<'_>, tried: &[Tried]) -> Table<'static> {
    let (keys, runs) = rows(checked, tried);
    let column = |key: String| {
        let cells: Vec<Option<&Value>> =
            runs.iter().map(|run| run.get(&key).filter(|value| !value.is_null())).collect();
        let cells = cells_of(&cells);
        (key.into(), cells)
    };
    Table { columns: keys.into_iter().map(column).collect() }
}

/// Cells of the narrowest kind that takes all of them; what is a list or an object is written as JSON.
fn cells_of(cells: &[Option<&Value>]) -> Cells<'static> {
    let all = |is: fn(&Value) -> bool| cells.iter().flatten().all(|value| is(value));
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let none = cells.iter().flatten().next().is_none();
    if none || all(|value| value.is_string()) {
        return Cells::Word(cells.iter().map(|cell| cell.map(text).map(Cow::from)).collect());
    }
    if all(Value::is_u64) {
        return Cells::Whole(cells.iter().map(|cell| cell.and_then(Value::as_u64)).collect());
    }
    if all(Value::is_number) {
        return Cells::Number(cells.iter().map(|cell| cell.and_then(Value::as_f64)).collect());
    }
    if all(Value::is_boolean) {
        return Cells::Truth(cells.iter().map(|cell| cell.and_then(Value::as_bool)).collect());
    }
    Cells::Word(cells.iter().map(|cell| cell.map(text).map(Cow::from)).collect())
}

/// A field of a CSV file; in quotes if it needs them, and empty if there is nothing to say.
fn field(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => return String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A column is of the kind of all its cells, and what is not there stays empty.
    #[test]
    fn columns_are_of_one_kind() {
        let kind = |values: &[Value]| {
            let cells: Vec<_> = values.iter().map(|v| Some(v).filter(|v| !v.is_null())).collect();
            cells_of(&cells)
        };
        let json = |text: &str| serde_json::from_str::<Vec<Value>>(text).unwrap();
        assert_eq!(kind(&json("[1, null, 2]")), Cells::Whole(vec![Some(1), None, Some(2)]));
        assert_eq!(kind(&json("[1, 2.5]")), Cells::Number(vec![Some(1.0), Some(2.5)]));
        assert_eq!(kind(&json("[true, null]")), Cells::Truth(vec![Some(true), None]));
        assert_eq!(kind(&json("[null]")), Cells::Word(vec![None]));
        let words = vec![Some("a".into()), Some("[1]".into())];
        assert_eq!(kind(&json("[\"a\", [1]]")), Cells::Word(words));
    }

    #[test]
    fn tables_have_no_columns_within_columns() {
        let run = serde_json::json!({"a": 1, "b": {"x_j": 2, "y_j": 3}, "c": [4, 5]});
        let Value::Object(run) = run else { unreachable!() };
        let flat = flat(run);
        let fields: Vec<String> =
            flat.iter().map(|(key, of)| format!("{key} {}", field(Some(of)))).collect();
        assert_eq!(fields, ["a 1", "b_x_j 2", "b_y_j 3", "c \"[4,5]\""]);
    }

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let text = |text: &str| field(Some(&Value::from(text)));
        assert_eq!(text("easy"), "easy");
        assert_eq!(text("a(b=1, c=2)"), "\"a(b=1, c=2)\"");
        assert_eq!(text("say \"x\""), "\"say \"\"x\"\"\"");
        assert_eq!(field(Some(&Value::Null)), "");
        assert_eq!(field(Some(&Value::from(0.1))), "0.1");
    }
}
