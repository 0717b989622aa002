//! The map of a plan: which machine and limit give the most work for the watts and for the money.

use std::fmt::Write as _;
use std::io::{self, Write};

use anyhow::bail;
use clap::Args;

use crate::experiment::plan::Question;
use crate::experiment::plan::cost::NodePrice;
use crate::experiment::plan::map::{Map, MapPlace, places};
use crate::experiment::{CheckedExperiment, Experiment};
use crate::profile::Profile;
use crate::report::{HeatMap, Side, columns, heat_map, human_power};
use crate::tariff::Currency;

use crate::cli::keeping;

/// The options about prices of nodes and the map.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Arguments {
    /// Price of a node, with its share of racks, network and storage: 9000EUR
    ///
    /// With --price, the recommendation is the machine with the most work for the money.
    #[arg(
        long,
        value_name = "AMOUNT",
        requires = "price",
        help_heading = "Prices, carbon and cooling"
    )]
    node_price: Option<Amount>,

    /// Years until a node is replaced
    #[arg(long, value_name = "YEARS", default_value_t = 5.0, value_parser = parse_years, help_heading = "Prices, carbon and cooling")]
    lifetime: f64,

    /// Also show the throughput for each number of nodes and each budget, with a full queue
    ///
    /// This map takes the most runs. --node-price and --plots show it, too.
    #[arg(long, help_heading = "Results")]
    map: bool,
}

/// Money: a number and a currency.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Amount {
    number: f64,
    currency: Currency,
}

impl std::str::FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "'{text}' is not an amount of money; write a number and a currency, such as 9000EUR"
            )
        };
        let at = text.find(|letter: char| letter.is_ascii_alphabetic()).ok_or_else(wrong)?;
        let (number, word) = text.split_at(at);
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        let currency = Currency::of(word.trim()).ok_or_else(wrong)?;
        match number.is_finite() && number >= 0.0 {
            true => Ok(Amount { number, currency }),
            false => Err(wrong()),
        }
    }
}

fn parse_years(text: &str) -> Result<f64, String> {
    let years = text.trim_end_matches(" years").trim_end_matches('y').parse::<f64>().ok();
    years
        .filter(|years| (0.1..=100.0).contains(years))
        .ok_or_else(|| format!("'{text}' is not a number of years from 0.1 to 100"))
}

impl Arguments {
    /// Whether the map is wanted.
    pub(super) fn is_wanted(&self) -> bool {
        self.map || self.has_price()
    }

    /// Whether nodes have a price.
    pub(super) fn has_price(&self) -> bool {
        self.node_price.is_some()
    }

    /// The price of a node, if given.
    fn node(&self) -> Option<NodePrice> {
        self.node_price.map(|amount| NodePrice { price: amount.number, years: self.lifetime })
    }

    /// Makes the map.
    pub(super) fn draw(
        &self,
        question: &Question,
        jobs: &Experiment,
        known: &CheckedExperiment<'_>,
        profiles: &[Profile],
        keeping: &keeping::Arguments,
    ) -> anyhow::Result<Map> {
        if let (Some(amount), Some(currency)) = (self.node_price, known.currency())
            && amount.currency != currency
        {
            bail!(
                "--node-price is in {}, and --price in {currency}; write both in one currency",
                amount.currency
            );
        }
        let demand = known.demand(0);
        let mut found: Vec<MapPlace> = Vec::new();
        for limit in question.map_limits() {
            let Some(experiment) = question.at_once(limit, jobs) else { continue };
            let checked = CheckedExperiment::new(&experiment, profiles)?;
            let results = keeping.run(&checked, false, &|_| ())?;
            found.extend(places(&experiment, limit, &results, &demand, self.node()));
        }
        Ok(Map::of(found, &demand))
    }
}

/// The caption of the map.
pub(super) const TITLE: &str =
    "Throughput with a full queue, as the number of nodes at full speed that do the same work";

/// The headings and the rows of the map as a table.
pub(super) fn table(map: &Map) -> (Vec<String>, Vec<Vec<String>>) {
    let (nodes, limits) = map.axes();
    let headings = std::iter::once("nodes".to_owned());
    let headings = headings.chain(limits.iter().map(|limit| human_power(*limit)));
    let cell = |nodes: u32, limit: f64| match map.find(nodes, limit) {
        Some(at) => match map.places[at].work_nodes {
            Some(work) => format!("{work:.1} {:<3}", marks(map, at)),
            None => format!("- {:<3}", marks(map, at)),
        },
        None => "-    ".to_owned(),
    };
    let row = |nodes: &u32| {
        let cells = limits.iter().map(|limit| cell(*nodes, *limit));
        std::iter::once(nodes.to_string()).chain(cells).collect()
    };
    (headings.collect(), nodes.iter().map(row).collect())
}

/// The map as a table, with what is best in words.
pub(super) fn text(map: &Map, currency: Option<Currency>) -> String {
    let (headings, rows) = table(map);
    let headings: Vec<(&str, Side)> =
        headings.iter().map(|name| (name.as_str(), Side::Right)).collect();
    let mut text = columns(&headings, &rows);
    text.push('\n');
    for sentence in sentences(map, currency) {
        let _ = writeln!(text, "{sentence}");
    }
    text
}

/// The marks of a place: whether it is recommended, and what it is best at under any limit.
fn marks(map: &Map, at: usize) -> String {
    let is = |best: Option<usize>| best == Some(at);
    let best = [
        (is(map.recommended), RECOMMENDED),
        (is(map.best_per_cost), BEST_FOR_MONEY),
        (is(map.best_per_watt), BEST_FOR_WATTS),
    ];
    let marks: String = best.into_iter().filter(|(is, _)| *is).map(|(_, mark)| mark).collect();
    match marks.is_empty() && map.lacks_jobs(at) {
        true => LACKS_JOBS.to_owned(),
        false => marks,
    }
}

/// The machine that is recommended, here and on the curve.
pub(super) const RECOMMENDED: &str = "◆";
const BEST_FOR_MONEY: &str = "★";
const BEST_FOR_WATTS: &str = "▲";
const LACKS_JOBS: &str = "○";

/// What the marks say, and whether the recommended machine suits the log.
pub(super) fn sentences(map: &Map, currency: Option<Currency>) -> Vec<String> {
    let mut said = Vec::new();
    let place = |at: usize| {
        let MapPlace { nodes, budget_w, work_nodes, .. } = map.places[at];
        format!(
            "{nodes} nodes under {} do the work of {:.1}",
            human_power(budget_w),
            work_nodes.unwrap_or_default()
        )
    };
    // What is said of the recommended machine stands at the end of it all.
    let elsewhere = |best: Option<usize>| best.filter(|at| map.recommended != Some(*at));
    if let Some((at, currency)) = elsewhere(map.best_per_cost).zip(currency) {
        let cost = map.places[at].cost_per_year.unwrap_or_default();
        said.push(format!(
            "{BEST_FOR_MONEY} most work for the money under any of these budgets: {}, at {cost:.0} {currency} a year.",
            place(at)
        ));
    }
    if let Some(at) = elsewhere(map.best_per_watt) {
        said.push(format!(
            "{BEST_FOR_WATTS} most work for each watt of the budget: {}.",
            place(at)
        ));
    }
    if (0..map.places.len()).any(|at| map.lacks_jobs(at)) {
        said.push(format!(
            "{LACKS_JOBS} some jobs do not run here but run elsewhere on the map: they need more nodes, or more power."
        ));
    }
    if let Some(offered) = map.offered_nodes {
        let load = map.recommended.and_then(|at| map.places[at].load);
        let share = load.map(|load| {
            let behind = if load > 1.0 { ": it would fall behind" } else { "" };
            format!(", {:.0} % of what the recommended machine can do{behind}", 100.0 * load)
        });
        said.push(format!(
            "The log keeps {offered:.1} nodes busy on average{}.",
            share.unwrap_or_default()
        ));
    }
    said
}

/// Writes the map as a table for programs.
pub(super) fn write_csv(out: &mut dyn Write, map: &Map) -> io::Result<()> {
    writeln!(
        out,
        "nodes,budget_w,work_nodes,undone,mean_power_w,load,cost_per_year,best_per_watt,best_per_cost,recommended"
    )?;
    for (at, place) in map.places.iter().enumerate() {
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let MapPlace { nodes, budget_w, work_nodes, undone, mean_power_w, load, cost_per_year } =
            *place;
        let numbers =
            [work_nodes, Some(undone), mean_power_w, load, cost_per_year].map(number).join(",");
        let (watt, cost) = (map.best_per_watt == Some(at), map.best_per_cost == Some(at));
        let chosen = map.recommended == Some(at);
        writeln!(out, "{nodes},{budget_w},{numbers},{watt},{cost},{chosen}")?;
    }
    Ok(())
}

/// The map as a picture.
pub(super) fn picture(map: &Map) -> String {
    let (nodes, limits) = map.axes();
    let value = |nodes: u32, limit: f64| map.places[map.find(nodes, limit)?].work_nodes;
    let mark = |nodes: u32, limit: f64| {
        map.find(nodes, limit).map(|at| marks(map, at)).unwrap_or_default()
    };
    heat_map(&HeatMap {
        title: "Throughput, in nodes at full speed",
        across: "budget",
        up: "nodes",
        columns: &limits.iter().map(|limit| human_power(*limit)).collect::<Vec<_>>(),
        rows: &nodes.iter().map(u32::to_string).collect::<Vec<_>>(),
        values: nodes
            .iter()
            .map(|nodes| limits.iter().map(|limit| value(*nodes, *limit)).collect())
            .collect(),
        marks: nodes
            .iter()
            .map(|nodes| limits.iter().map(|limit| mark(*nodes, *limit)).collect())
            .collect(),
        key: "◆ recommended   ★ most for the money   ▲ most for each watt   ○ unfinished jobs",
    })
}
