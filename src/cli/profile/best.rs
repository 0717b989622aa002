//! `busbar profile best`: which cap is best for an application, by time, by energy, and by both.

use std::cmp::Ordering;

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use super::show::{decimals, pick};
use super::{Database, counted};
use crate::cli::print;
use crate::profile::measured::{OtherCaps, Setting, Spread, Summed};
use crate::profile::{Origin, Profile, Row, Store};
use crate::report::{Facts, Point, Side, columns, plot};
use crate::units::Watts;

/// Show the best cap for an application by time, by energy, and by energy × time
///
/// It compares all settings on one number of nodes and cores. If memory or GPUs have separate caps, a setting is a
/// cap for each part, and the table has the settings that no other equals or beats in both time and power.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar profile best SP-MZ
  busbar profile best SP-MZ --nodes 8 --cores 12 --under 700W
  busbar profile best bfs --under 150W --all")]
pub(in crate::cli) struct Arguments {
    /// The application
    #[arg(value_name = "APP")]
    application: String,

    /// Only settings with at most this power of all nodes together
    #[arg(long, value_name = "POWER")]
    under: Option<Watts>,

    /// Number of nodes [default: the largest]
    #[arg(long, value_name = "N")]
    nodes: Option<u32>,

    /// Cores per node [default: the largest]
    #[arg(long, value_name = "N")]
    cores: Option<u32>,

    /// Show every setting
    #[arg(long)]
    all: bool,

    /// Print one JSON object, with every setting
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    database: Database,
}

/// The goal to minimise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    Time,
    Energy,
    Both,
}

impl Goal {
    const ALL: [Goal; 3] = [Goal::Time, Goal::Energy, Goal::Both];

    fn name(self) -> &'static str {
        match self {
            Goal::Time => "time",
            Goal::Energy => "energy",
            Goal::Both => "energy × time",
        }
    }

    /// Its mark in a plot.
    fn mark(self) -> char {
        match self {
            Goal::Time => '●',
            Goal::Energy => '○',
            Goal::Both => '◆',
        }
    }

    fn of(self, setting: &Summed) -> f64 {
        let (seconds, joules) = (setting.time.secs_f64(), joules(setting));
        match self {
            Goal::Time => seconds,
            Goal::Energy => joules,
            Goal::Both => joules * seconds,
        }
    }

    /// The best of some settings; of several the one that draws least.
    fn best(self, settings: &[Summed]) -> Option<&Summed> {
        let order = |one: &&Summed, other: &&Summed| -> Ordering {
            let rest = |setting: &Summed| (setting.power, setting.setting);
            self.of(one).total_cmp(&self.of(other)).then_with(|| rest(one).cmp(&rest(other)))
        };
        settings.iter().min_by(order)
    }
}

fn joules(setting: &Summed) -> f64 {
    setting.power.over(setting.time).as_f64()
}

/// The answer for programs.
#[derive(Serialize)]
struct Answer<'a> {
    application: &'a str,
    nodes: u32,
    cores: u32,
    under_w: Option<f64>,
    settings: Vec<AnswerRow>,
}

#[derive(Serialize)]
struct AnswerRow {
    cap_w: f64,
    memory_cap_w: Option<f64>,
    gpu_cap_w: Option<f64>,
    caps_together_w: f64,
    time_s: f64,
    power_w: f64,
    energy_j: f64,
    energy_time_js: f64,
    origin: &'static str,
    runs: usize,
    best_in: Vec<&'static str>,
}

/// The settings that are compared, and the best of them.
struct Comparison<'a> {
    application: &'a str,
    under: Option<Watts>,
    /// By their caps.
    settings: Vec<Summed>,
    /// In the order of [`Goal::ALL`].
    best: [Setting; 3],
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let store = Store::open(&arguments.database.profiles)?;
    let profile = store.profile(&arguments.application)?;
    let comparison = compare(&store, &profile, arguments)?;
    match arguments.json {
        true => print(&(serde_json::to_string_pretty(&comparison.answer())? + "\n")),
        false => print(&comparison.describe(arguments.all)),
    }
}

fn compare<'a>(
    store: &Store,
    profile: &'a Profile,
    arguments: &Arguments,
) -> anyhow::Result<Comparison<'a>> {
    let application = &profile.application;
    let mut settings = store.settings(application)?;
    if settings.is_empty() {
        let spreads = store.spreads(application)?;
        settings =
            profile.rows.iter().map(|row| alone(row, spreads.get(&row.configuration))).collect();
    }
    let nodes = |setting: &Summed| setting.setting.configuration.nodes;
    let cores = |setting: &Summed| setting.setting.configuration.cores;
    let on_nodes = pick(settings.iter(), arguments.nodes, "nodes", nodes)?;
    let on_cores = pick(on_nodes.into_iter(), arguments.cores, "cores", cores)?;
    let fits = |setting: &&Summed| arguments.under.is_none_or(|most| setting.power <= most);
    let settings: Vec<Summed> = on_cores.iter().copied().filter(fits).copied().collect();
    let [Some(time), Some(energy), Some(both)] = Goal::ALL.map(|goal| goal.best(&settings)) else {
        let least = on_cores.iter().min_by_key(|setting| setting.power);
        let (under, least) = (arguments.under.unwrap_or_default(), least.map(|least| least.power));
        bail!(
            "{application} draws more than {under} in each of {} (--under); the lowest is {}",
            counted(on_cores.len(), "setting"),
            least.unwrap_or_default()
        );
    };
    let best = [time.setting, energy.setting, both.setting];
    Ok(Comparison { application, under: arguments.under, settings, best })
}

/// A row as a setting in which nothing but processors has a cap.
fn alone(row: &Row, spread: Option<&Spread>) -> Summed {
    let once = Spread { runs: 1, shortest: row.time, longest: row.time };
    Summed {
        setting: Setting { configuration: row.configuration, others: OtherCaps::default() },
        time: row.time,
        power: row.power,
        origin: row.origin,
        spread: spread.copied().unwrap_or(once),
    }
}

impl Comparison<'_> {
    fn best_in(&self, setting: &Summed) -> Vec<&'static str> {
        let goals = Goal::ALL.into_iter().zip(self.best);
        goals.filter(|(_, best)| *best == setting.setting).map(|(goal, _)| goal.name()).collect()
    }

    fn answer(&self) -> Answer<'_> {
        let row = |setting: &Summed| {
            let OtherCaps { memory, gpu } = setting.setting.others;
            AnswerRow {
                cap_w: setting.setting.configuration.cap.as_f64(),
                memory_cap_w: memory.map(Watts::as_f64),
                gpu_cap_w: gpu.map(Watts::as_f64),
                caps_together_w: setting.setting.whole().cap.as_f64(),
                time_s: setting.time.secs_f64(),
                power_w: setting.power.as_f64(),
                energy_j: joules(setting),
                energy_time_js: Goal::Both.of(setting),
                origin: setting.origin.name(),
                runs: setting.spread.runs,
                best_in: self.best_in(setting),
            }
        };
        let first = self.settings.first().map(|first| first.setting.configuration);
        Answer {
            application: self.application,
            nodes: first.map_or(0, |first| first.nodes),
            cores: first.map_or(0, |first| first.cores),
            under_w: self.under.map(Watts::as_f64),
            settings: self.settings.iter().map(row).collect(),
        }
    }

    /// Whether several settings can have the same caps together.
    fn has_parts(&self) -> bool {
        self.settings.iter().any(|setting| setting.setting.others.are_set())
    }

    /// The settings to show: all if only processors have caps, else the unbeaten ones and the best.
    fn shown(&self, all: bool) -> Vec<Summed> {
        let is_unbeaten = |setting: &&Summed| {
            let beats = |other: &Summed| {
                let no_worse = other.time <= setting.time && other.power <= setting.power;
                let better = other.time < setting.time || other.power < setting.power;
                let is_first = other.setting < setting.setting;
                no_worse && (better || is_first)
            };
            !self.settings.iter().any(beats)
        };
        let keeps = |setting: &&Summed| {
            all || !self.has_parts() || self.best.contains(&setting.setting) || is_unbeaten(setting)
        };
        let mut shown: Vec<Summed> = self.settings.iter().filter(keeps).copied().collect();
        shown.sort_by_key(|setting| (setting.setting.whole(), setting.setting));
        shown
    }

    fn describe(&self, all: bool) -> String {
        let shown = self.shown(all);
        let mut facts = Facts::default();
        facts.add("application", self.application);
        if let Some(first) = self.settings.first() {
            let on = first.setting.configuration;
            let [nodes, cores] = [(on.nodes, "node"), (on.cores, "core")]
                .map(|(count, what)| counted(count as usize, what));
            let under = match self.under {
                None => String::new(),
                Some(most) => format!(" that draw at most {most}"),
            };
            let settings = counted(self.settings.len(), "setting");
            facts.add("compared", format!("{settings}{under}, on {nodes} × {cores}"));
        }
        let bound = self.settings.iter().filter(|setting| setting.origin == Origin::Bound).count();
        if bound > 0 {
            facts.add(
                "bound",
                format!(
                    "power was not measured for {}: the caps stand in as an upper bound",
                    counted(bound, "setting")
                ),
            );
        }
        for (goal, best) in Goal::ALL.into_iter().zip(self.best) {
            let name = if goal == Goal::Both { "both" } else { goal.name() };
            facts.add(name, format!("least {} {}", goal.name(), written(&best)));
        }
        let note = match shown.len() < self.settings.len() {
            true => format!(
                "the {} settings that no other beats in both time and power, and the best (--all shows all)\n",
                shown.len()
            ),
            false => String::new(),
        };
        let plot = match self.has_parts() {
            true => relative_plot(&self.shown(false), "power drawn (W)", |setting| setting.power),
            false => relative_plot(&shown, "cap of a socket (W)", |setting| {
                setting.setting.configuration.cap
            }),
        };
        format!("{}\n{note}{}\n{plot}", facts.text(), self.table(&shown))
    }

    fn table(&self, shown: &[Summed]) -> String {
        let numbers = |value: fn(&Summed) -> u64| decimals(shown.iter().map(value).collect());
        let optional = |cap: fn(&Summed) -> Option<Watts>| -> Option<Vec<String>> {
            let text = |setting| cap(setting).map_or(String::new(), watts_alone);
            let column: Vec<String> = shown.iter().map(text).collect();
            column.iter().any(|text| !text.is_empty()).then_some(column)
        };
        let mut table: Vec<(&str, Side, Vec<String>)> = Vec::new();
        let caps = numbers(|setting| setting.setting.configuration.cap.milliwatts());
        table.push(("cap (W)", Side::Right, caps));
        let memory = optional(|setting| setting.setting.others.memory);
        table.extend(memory.map(|column| ("memory (W)", Side::Right, column)));
        let gpu = optional(|setting| setting.setting.others.gpu);
        table.extend(gpu.map(|column| ("GPU (W)", Side::Right, column)));
        if self.has_parts() {
            let sums = numbers(|setting| setting.setting.whole().cap.milliwatts());
            table.push(("together (W)", Side::Right, sums));
        }
        table.push(("time (s)", Side::Right, numbers(|setting| setting.time.millis())));
        if shown.iter().any(|setting| setting.spread.runs > 1) {
            let runs = shown.iter().map(|setting| setting.spread.runs.to_string());
            table.push(("runs", Side::Right, runs.collect()));
            let spread = |setting: &Summed| format!("{:.1}", setting.spread.percent());
            table.push(("differ by (%)", Side::Right, shown.iter().map(spread).collect()));
        }
        table.push(("power (W)", Side::Right, numbers(|setting| setting.power.milliwatts())));
        let energy = |setting: &Summed| format!("{:.2}", joules(setting) / 1e3);
        table.push(("energy (kJ)", Side::Right, shown.iter().map(energy).collect()));
        let both = |setting: &Summed| format!("{:.1}", Goal::Both.of(setting) / 1e3);
        table.push(("energy × time (kJ s)", Side::Right, shown.iter().map(both).collect()));
        let best = |setting: &Summed| self.best_in(setting).join(", ");
        table.push(("best in", Side::Left, shown.iter().map(best).collect()));
        let headings: Vec<(&str, Side)> =
            table.iter().map(|(heading, side, _)| (*heading, *side)).collect();
        let row = |place: usize| table.iter().map(|(.., column)| column[place].clone()).collect();
        columns(&headings, &(0..shown.len()).map(row).collect::<Vec<Vec<String>>>())
    }
}

/// `85W a socket`, or each part.
fn written(setting: &Setting) -> String {
    let OtherCaps { memory, gpu } = setting.others;
    let mut parts = vec![format!("at {} a socket", setting.configuration.cap)];
    parts.extend(memory.map(|cap| format!("{cap} for its memory")));
    parts.extend(gpu.map(|cap| format!("{cap} for its GPUs")));
    parts.join(", ")
}

/// Watts without their unit.
fn watts_alone(cap: Watts) -> String {
    cap.to_string().trim_end_matches('W').to_owned()
}

/// Time, energy and both, each as a multiple of its best: over the caps or, where several settings have the same
/// caps together, over the power drawn.
fn relative_plot(shown: &[Summed], right: &str, place: fn(&Summed) -> Watts) -> String {
    // A line has one point at a place, the fastest.
    let mut line: Vec<&Summed> = shown.iter().collect();
    line.sort_by_key(|setting| (place(setting), setting.time));
    line.dedup_by_key(|setting| place(setting));
    if line.len() < 2 {
        return String::new();
    }
    let points = |goal: Goal| -> Vec<Point> {
        let least = shown.iter().map(|setting| goal.of(setting)).fold(f64::INFINITY, f64::min);
        let point = |setting: &&Summed| Point {
            x: place(setting).as_f64(),
            y: goal.of(setting) / least,
            mark: goal.mark(),
        };
        line.iter().map(point).collect()
    };
    let legend = Goal::ALL.map(|goal| format!("{} {}", goal.mark(), goal.name())).join(", ");
    plot(&format!("multiple of the minimum: {legend}"), right, &Goal::ALL.map(points))
}
