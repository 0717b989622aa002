//! `busbar tune`: chooses the processors of a job, and a cap for each.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::cli::{curves, print};
use crate::report::{Facts, Side, columns};
use crate::solve::ptune::{Chosen, Even, Grant, Tuner, plain};
use crate::units::Watts;
use crate::variation::{Curve, Ips, Processors};

/// Choose processors and their caps for one job, to make it fastest within its power
///
/// The candidates are the processors that help the job most: the most efficient ones if power is short, the fastest
/// ones if not. The job gets the number of them that makes it fastest, which may be less than --processors.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar tune --power 3300W --processors 64
  busbar tune --machine curves.csv --app CoMD --processors 64 --power 3300W --json
  busbar tune --machine curves.csv --power 3300W --greedy plain --delta 1W")]
pub(super) struct Arguments {
    /// Curves in a .csv file; docs/reference/variation.md describes it [default: the synthetic catalyst with seed 1]
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,

    /// The application [default: the first]
    #[arg(long, value_name = "APP")]
    app: Option<String>,

    /// Maximum number of processors of the job [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    processors: Option<u32>,

    /// Power of the job: 3300W, 3.3kW
    #[arg(long, value_name = "POWER")]
    power: Watts,

    /// How to divide the power
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Greedy::Hull)]
    greedy: Greedy,

    /// Step of the plain greedy algorithm [default: 1W]
    #[arg(long, value_name = "POWER")]
    delta: Option<Watts>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Greedy {
    /// By concave hulls: optimal for concave curves, and never slower than equal parts
    Hull,
    /// As in the paper: the processors with the lowest uncapped power, step by step on the measured curves
    Plain,
}

/// The answer as JSON. Powers are in watts, speeds in billions of instructions per second.
#[derive(Serialize)]
struct Answer<'a> {
    application: &'a str,
    offered: usize,
    power_w: f64,
    used_w: f64,
    gips: f64,
    bound_gips: f64,
    equal_parts: Option<EqualParts>,
    is_equal_parts: bool,
    processors: Vec<Capped<'a>>,
}

#[derive(Serialize)]
struct EqualParts {
    processors: usize,
    cap_w: f64,
    gips: f64,
}

#[derive(Serialize)]
struct Capped<'a> {
    processor: &'a str,
    cap_w: f64,
    gips: f64,
}

/// A job that was tuned.
struct Tuned<'a> {
    processors: &'a Processors,
    application: &'a str,
    /// The curve of each processor.
    curves: &'a [Curve],
    power: Watts,
    /// How many processors the job may have.
    count: usize,
    how: Greedy,
    chosen: Chosen,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if arguments.delta.is_some() && arguments.greedy != Greedy::Plain {
        bail!("--delta needs --greedy plain");
    }
    let (processors, source) = curves::load(arguments.machine.as_deref())?;
    let tuned = tune(arguments, &processors)?;
    match arguments.json {
        true => print(&(serde_json::to_string_pretty(&tuned.answer())? + "\n")),
        false => print(&tuned.describe(&source)),
    }
}

fn tune<'a>(arguments: &Arguments, processors: &'a Processors) -> anyhow::Result<Tuned<'a>> {
    let application = match &arguments.app {
        Some(name) => processors.application(name)?,
        None => {
            processors.applications().first().context("the file of curves has no application")?
        }
    };
    let curves: Vec<&Curve> = application.curves.iter().collect();
    let count = arguments.processors.map_or(curves.len(), |asked| asked as usize);
    if count > curves.len() {
        let there = curves.len();
        bail!("--processors {count}: the machine has only {there}");
    }
    let power = arguments.power;
    let mut tuner = Tuner::new();
    let mut chosen = tuner.choose(&curves, count, power).context("--power")?;
    if arguments.greedy == Greedy::Plain {
        let delta = arguments.delta.unwrap_or(plain::DELTA);
        if delta == Watts::ZERO {
            bail!("--delta 0W moves nothing; write a step, such as 1W");
        }
        let mut offered = application.by_draw();
        offered.truncate(count);
        let curves: Vec<&Curve> = offered.iter().map(|place| curves[*place]).collect();
        let greedy = plain::tune(&curves, power, delta).context("--power")?;
        let grant = |grant: Grant| Grant { candidate: offered[grant.candidate], cap: grant.cap };
        chosen = Chosen {
            grants: greedy.grants.into_iter().map(grant).collect(),
            ips: greedy.ips,
            uniform: Even::of(curves.len(), power, |place| curves[place]),
            is_uniform: false,
            bound: chosen.bound,
            offered,
        };
    }
    let (name, curves) = (&application.name, &application.curves);
    let how = arguments.greedy;
    Ok(Tuned { processors, application: name, curves, power, count, how, chosen })
}

/// Processors in the table at most.
const MOST_ROWS: usize = 20;

impl Tuned<'_> {
    fn used(&self) -> Watts {
        self.chosen.grants.iter().map(|grant| grant.cap).sum()
    }

    fn name(&self, grant: &Grant) -> &str {
        &self.processors.names()[grant.candidate]
    }

    fn answer(&self) -> Answer<'_> {
        let capped = |grant: &Grant| Capped {
            processor: &self.processors.names()[grant.candidate],
            cap_w: grant.cap.as_f64(),
            gips: self.curves[grant.candidate].at(grant.cap).billions(),
        };
        Answer {
            application: self.application,
            offered: self.chosen.offered.len(),
            power_w: self.power.as_f64(),
            used_w: self.used().as_f64(),
            gips: self.chosen.ips.billions(),
            bound_gips: self.chosen.bound.billions(),
            equal_parts: self.chosen.uniform.map(|even| EqualParts {
                processors: even.processors,
                cap_w: even.cap.as_f64(),
                gips: even.ips.billions(),
            }),
            is_equal_parts: self.chosen.is_uniform,
            processors: self.chosen.grants.iter().map(capped).collect(),
        }
    }

    /// By how much another choice could be faster at most, rounded up, so that only a proven optimum is called the
    /// best.
    fn bound(&self) -> String {
        let Chosen { ips, bound, .. } = self.chosen;
        let claim = match self.count {
            1 => "no choice of one processor, under any cap, is faster".to_owned(),
            count => format!("no choice of up to {count} processors, under any caps, is faster"),
        };
        if bound <= ips {
            return format!("{bound}, reached: {claim}");
        }
        let more = 100.0 * (bound.ips() - ips.ips()) as f64 / ips.ips() as f64;
        format!("{bound}, at most {:.4} % more: {claim}", (more * 1e4).ceil() / 1e4)
    }

    fn describe(&self, source: &str) -> String {
        let mut facts = Facts::default();
        let more = |than: Ips, ips: Ips| 100.0 * (ips.billions() / than.billions() - 1.0);
        let (runs, offered) = (self.chosen.grants.len(), self.chosen.offered.len());
        let there = self.processors.names().len();
        facts.add("machine", source.to_owned());
        facts.add("application", self.application.to_owned());
        let which = match self.how {
            Greedy::Hull if offered == there => "",
            Greedy::Hull => ", the most useful within the power",
            Greedy::Plain => ", those with the lowest uncapped power first",
        };
        facts.add("on offer", format!("{offered} of {there} processors{which}"));
        facts.add("runs on", format!("{runs} of them; {} remain free", offered - runs));
        facts.add("power", format!("{} of {}", self.used(), self.power));
        facts.add("speed", self.chosen.ips.to_string());
        if let Some(even) = self.chosen.uniform {
            let change = more(even.ips, self.chosen.ips);
            let how = if change < 0.0 { "slower" } else { "faster" };
            let comparison = if self.chosen.is_uniform {
                "kept, as nothing better was found".to_owned()
            } else {
                format!("{}, the job is {:.2} % {how}", even.ips, change.abs())
            };
            let (count, cap) = (even.processors, even.cap);
            facts.add("equal parts", format!("{count} processors at {cap}: {comparison}"));
        }
        facts.add("bound", self.bound());
        let mut text = facts.text();
        text.push('\n');
        let headings = [
            ("processor", Side::Left),
            ("cap", Side::Right),
            ("without a cap", Side::Right),
            ("speed", Side::Right),
        ];
        let rows = self.chosen.grants.iter().take(MOST_ROWS).map(|grant| {
            let curve = &self.curves[grant.candidate];
            vec![
                self.name(grant).to_owned(),
                grant.cap.to_string(),
                curve.most().to_string(),
                curve.at(grant.cap).to_string(),
            ]
        });
        text += &columns(&headings, &rows.collect::<Vec<_>>());
        if runs > MOST_ROWS {
            text += &format!("  and {} more; --json lists all\n", runs - MOST_ROWS);
        }
        text
    }
}
