//! `busbar profile show`: one application, in a table and over its caps.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use super::{Database, counted, written};
use crate::cli::print;
use crate::profile::measured::Spread;
use crate::profile::{Configuration, Origin, Profile, Row, Store};
use crate::report::{Facts, Point, Side, columns, plot};

/// Show the run time and power of an application
///
/// The table has the best rows: those that no other row equals or beats in both time and power. The plots show time
/// and power over caps, on the largest number of nodes and cores unless you name others.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// The application
    #[arg(value_name = "APP")]
    application: String,

    /// Show every row
    #[arg(long)]
    all: bool,

    /// Plot this number of nodes [default: the largest]
    #[arg(long, value_name = "N")]
    nodes: Option<u32>,

    /// Plot this number of cores per node [default: the largest]
    #[arg(long, value_name = "N")]
    cores: Option<u32>,

    /// Print one JSON object, with every row
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    database: Database,
}

/// An application in JSON.
#[derive(Serialize)]
struct Answer<'a> {
    number: u32,
    application: &'a str,
    rows: Vec<AnswerRow>,
}

#[derive(Serialize)]
struct AnswerRow {
    nodes: u32,
    cores: u32,
    cap_w: f64,
    time_s: f64,
    power_w: f64,
    origin: &'static str,
    best: bool,
    /// Where it was run several times.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<Runs>,
}

/// Several runs of one configuration.
#[derive(Serialize)]
struct Runs {
    count: usize,
    shortest_s: f64,
    longest_s: f64,
}

/// How far apart the runs of configurations are, of those that were run several times.
type Spreads = BTreeMap<Configuration, Spread>;

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let store = Store::open(&arguments.database.profiles)?;
    let (number, profile) = store.numbered(&arguments.application)?;
    let spreads = store.spreads(&arguments.application)?;
    match arguments.json {
        true => print(&in_json(number, &profile, &spreads)?),
        false => {
            let curve = curve(&profile, arguments.nodes, arguments.cores)?;
            print(&describe(number, &profile, &spreads, &curve, arguments.all))
        }
    }
}

/// Prints an application after some runs on one node, with a model.
#[cfg(feature = "agent")]
pub(super) fn print_runs(
    (profile, model): &(Profile, String),
    number: NonZeroU32,
    spreads: &Spreads,
    cores: u32,
    json: bool,
) -> anyhow::Result<()> {
    if json {
        return print(&in_json(number, profile, spreads)?);
    }
    let curve = curve(profile, Some(1), Some(cores))?;
    print(&(describe(number, profile, spreads, &curve, true) + model))
}

fn in_json(number: NonZeroU32, profile: &Profile, spreads: &Spreads) -> anyhow::Result<String> {
    let best = profile.best();
    let rows = profile.rows.iter().map(|row| AnswerRow {
        nodes: row.configuration.nodes,
        cores: row.configuration.cores,
        cap_w: row.configuration.cap.as_f64(),
        time_s: row.time.secs_f64(),
        power_w: row.power.as_f64(),
        origin: row.origin.name(),
        best: best.contains(row),
        runs: spreads.get(&row.configuration).map(|spread| Runs {
            count: spread.runs,
            shortest_s: spread.shortest.secs_f64(),
            longest_s: spread.longest.secs_f64(),
        }),
    });
    let answer =
        Answer { number: number.get(), application: &profile.application, rows: rows.collect() };
    Ok(serde_json::to_string_pretty(&answer)? + "\n")
}

/// The rows of one number of nodes and cores, which differ in their caps alone.
fn curve(profile: &Profile, nodes: Option<u32>, cores: Option<u32>) -> anyhow::Result<Vec<&Row>> {
    let on_nodes = pick(profile.rows.iter(), nodes, "nodes", |row| row.configuration.nodes)?;
    pick(on_nodes.into_iter(), cores, "cores", |row| row.configuration.cores)
}

/// The rows with this number of nodes or cores, or with the largest.
pub(super) fn pick<'a, T>(
    rows: impl Iterator<Item = &'a T>,
    asked: Option<u32>,
    what: &str,
    count: impl Fn(&T) -> u32,
) -> anyhow::Result<Vec<&'a T>> {
    let rows: Vec<&T> = rows.collect();
    let mut counts: Vec<u32> = rows.iter().map(|row| count(row)).collect();
    counts.sort_unstable();
    counts.dedup();
    let wanted = asked.or(counts.last().copied()).unwrap_or_default();
    if !counts.contains(&wanted) {
        let counts: Vec<String> = counts.iter().map(u32::to_string).collect();
        let there = if counts.len() == 1 { "all are" } else { "there are rows" };
        bail!("no row is on {wanted} {what}; {there} on {}", counts.join(", "));
    }
    Ok(rows.into_iter().filter(|row| count(row) == wanted).collect())
}

fn describe(
    number: NonZeroU32,
    profile: &Profile,
    spreads: &Spreads,
    curve: &[&Row],
    all: bool,
) -> String {
    let best = profile.best();
    let mut facts = Facts::default();
    let of = |origin: Origin| profile.rows.iter().filter(|row| row.origin == origin).count();
    facts.add("application", format!("{} (number {number})", profile.application));
    let counted_origins = Origin::ALL.into_iter().filter_map(|origin| match (origin, of(origin)) {
        (Origin::Emulated | Origin::Bound, 0) => None,
        (origin, count) => Some(format!("{count} {}", origin.name())),
    });
    facts.add("rows", counted_origins.collect::<Vec<_>>().join(", "));
    let widest = spreads.values().max_by(|a, b| a.percent().total_cmp(&b.percent()));
    if let Some(widest) = widest {
        let runs: usize = spreads.values().map(|spread| spread.runs).sum();
        let of = counted(spreads.len(), "row");
        let percent = widest.percent();
        facts.add("runs", format!("{runs} of {of}, whose times differ by up to {percent:.1} %"));
    }
    facts.add("nodes", span(profile, |configuration| configuration.nodes));
    facts.add("cores", span(profile, |configuration| configuration.cores) + " in a node");
    facts.add("caps", span(profile, |configuration| configuration.cap) + " a socket");
    let mut text = facts.text();
    text.push('\n');
    if all {
        text += &table(&profile.rows, spreads);
    } else {
        text += &format!(
            "the best {} of {}, unbeaten in time and power together (--all shows all)\n",
            best.len(),
            counted(profile.rows.len(), "row")
        );
        text += &table(&best, spreads);
    }
    text.push('\n');
    text += &plots(curve);
    text
}

/// From the least to the most of something there is.
fn span<T: Ord + std::fmt::Display>(profile: &Profile, what: fn(&Configuration) -> T) -> String {
    let values = || profile.rows.iter().map(|row| what(&row.configuration));
    values()
        .min()
        .zip(values().max())
        .map_or(String::new(), |(least, most)| written(&(least..=most)))
}

/// Time and power over caps.
fn plots(curve: &[&Row]) -> String {
    let Some(first) = curve.first() else {
        return String::new();
    };
    let shape = format!(
        "on {} × {}",
        counted(first.configuration.nodes as usize, "node"),
        counted(first.configuration.cores as usize, "core")
    );
    if curve.len() == 1 {
        let cap = first.configuration.cap;
        return format!("{shape} there is one cap, {cap}: nothing to plot\n");
    }
    let line = |value: fn(&Row) -> f64| -> Vec<Point> {
        let point = |row: &&Row| Point {
            x: row.configuration.cap.as_f64(),
            y: value(row),
            mark: if row.origin.was_run() { '●' } else { '○' },
        };
        curve.iter().map(point).collect()
    };
    let caps = "cap of a socket (W)";
    let has = |origin| curve.iter().any(|row| row.origin == origin);
    let run = match (has(Origin::Emulated), has(Origin::Bound)) {
        (false, false) => "measured",
        (true, false) => "measured or emulated",
        (false, true) => "measured, or a bound of the power",
        (true, true) => "measured or emulated, or a bound of the power",
    };
    format!(
        "{shape} (● {run}, ○ predicted)\n{}\n{}",
        plot("time (s)", caps, &[line(|row| row.time.secs_f64())]),
        plot("power (W)", caps, &[line(|row| row.power.as_f64())])
    )
}

fn table(rows: &[Row], spreads: &Spreads) -> String {
    let column = |value: fn(&Row) -> u64| decimals(rows.iter().map(value).collect());
    let caps = column(|row| row.configuration.cap.milliwatts());
    let times = column(|row| row.time.millis());
    let powers = column(|row| row.power.milliwatts());
    let is_repeated = rows.iter().any(|row| spreads.contains_key(&row.configuration));
    let cells: Vec<Vec<String>> = rows
        .iter()
        .zip(caps.into_iter().zip(times).zip(powers))
        .map(|(row, ((cap, time), power))| {
            let nodes = row.configuration.nodes.to_string();
            let cores = row.configuration.cores.to_string();
            let mut cells = vec![nodes, cores, cap, time, power, row.origin.name().to_owned()];
            if is_repeated {
                let spread = spreads.get(&row.configuration);
                cells.push(spread.map_or("1".to_owned(), |spread| spread.runs.to_string()));
                cells.push(
                    spread.map_or(String::new(), |spread| format!("{:.1}", spread.percent())),
                );
            }
            cells
        })
        .collect();
    let mut headings = vec![
        ("nodes", Side::Right),
        ("cores", Side::Right),
        ("cap (W)", Side::Right),
        ("time (s)", Side::Right),
        ("power (W)", Side::Right),
        ("origin", Side::Left),
    ];
    if is_repeated {
        headings.extend([("runs", Side::Right), ("differ by (%)", Side::Right)]);
    }
    columns(&headings, &cells)
}

/// Thousandths as decimal numbers, all with as many decimals as one of them needs.
pub(super) fn decimals(thousandths: Vec<u64>) -> Vec<String> {
    let are_multiples_of = |unit: u64| thousandths.iter().all(|value| value.is_multiple_of(unit));
    // The point goes with its last decimal.
    let cuts = [(1000, 4), (100, 2), (10, 1)];
    let cut = cuts.iter().find(|(unit, _)| are_multiples_of(*unit)).map_or(0, |(_, cut)| *cut);
    let written = |value: &u64| {
        let mut text = format!("{}.{:03}", value / 1000, value % 1000);
        text.truncate(text.len() - cut);
        text
    };
    thousandths.iter().map(written).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_the_decimals_it_needs() {
        assert_eq!(decimals(vec![51_000, 115_000]), ["51", "115"]);
        assert_eq!(decimals(vec![62_500, 1_000]), ["62.5", "1.0"]);
        assert_eq!(decimals(vec![62_510, 1]), ["62.510", "0.001"]);
        assert_eq!(decimals(vec![10]), ["0.01"]);
    }
}
