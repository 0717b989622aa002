//! `busbar plan`: how many nodes for these watts, and how many watts for these nodes.

use std::ops::Range;

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use crate::budget::Limit;
use crate::cli::compare::{equipment, said};
use crate::cli::{keeping, print, tables};
use crate::experiment::assumptions::assumptions;
use crate::experiment::curve::Curve;
use crate::experiment::plan::{Question, curve};
use crate::experiment::{Experiment, Feed, Load, Place, Ready};
use crate::machine::MachineError;
use crate::policy::PolicySpec;
use crate::report::{Point, Side, columns, human_power, human_time, plot, time_unit};
use crate::workload::parse_places;

/// Plan a machine: how many nodes for these watts, how many watts for these nodes
///
/// The same jobs under the same watts on more and more nodes, and on the machine as it is under more and
/// more watts: two curves, where they bend, and a recommendation. Without arguments: the built-in
/// workload under 60 % of what its machine draws at most.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar plan
  busbar plan --budget 1.2MW --workload log.swf.gz --machine cluster.toml
  busbar plan --policy parm --budget 50%
  busbar plan --workload 'lublin(jobs=5000, load=0.9)' --seeds 10 --json")]
pub(super) struct Arguments {
    /// What there is to draw: watts (6500W, 4.2MW) or a share of the machine's maximum
    #[arg(short, long, value_name = "B", default_value = "60%", allow_hyphen_values = true)]
    budget: Limit,

    /// A log (.swf, .swf.gz), 'lublin(jobs=10000, load=0.85)', 'rmap(trace=random)', or demo
    #[arg(short, long, value_name = "SRC", default_value = "demo")]
    workload: String,

    /// The policy; one that lets nodes run at less than full power, or more of them gain nothing
    #[arg(short, long, value_name = "P", default_value = "pb-guided")]
    policy: PolicySpec,

    /// A number of processors, cab (64 nodes of two sockets), or a .toml machine file [default: what
    /// the workload comes from]
    #[arg(short, long, value_name = "M", allow_hyphen_values = true)]
    machine: Option<String>,

    /// How often what is random is drawn: seeds 1 to N
    #[arg(long, value_name = "N", default_value_t = Experiment::USUAL_SEEDS,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: u64,

    #[command(flatten)]
    tables: tables::Arguments,

    /// Only these jobs, by their place in submit order: 20000..25000, 5000.., ..100
    #[arg(long, value_name = "A..B", value_parser = parse_places)]
    jobs: Option<Range<usize>>,

    #[command(flatten)]
    keeping: keeping::Arguments,

    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
}

/// The answer for scripts.
#[derive(Serialize)]
struct Answer<'a> {
    workload: &'a str,
    policy: String,
    machine: &'a str,
    machine_nodes: u32,
    budget_w: f64,
    fed_nodes: u32,
    /// The mean turnaround in seconds over the number of nodes.
    by_nodes: &'a Curve,
    /// The same over the budget in watts.
    by_budget: &'a Curve,
    recommendation: &'a str,
    assumptions: &'a [String],
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut jobs = arguments.experiment()?;
    let profiles = tables::of_experiment(&mut jobs)?;
    let known = Ready::new(&jobs, &profiles)?;
    let machine = known.machine(0, 0).clone();
    if machine.variation.is_some() {
        return Err(MachineError::Measured.into());
    }
    let limit =
        arguments.budget.on(&machine).map_err(|why| Place::Option("--budget").error(why))?;
    let question = Question { machine, limit };

    let by_nodes = question.by_nodes(&jobs);
    let ready = Ready::new(&by_nodes, &profiles)?;
    let results = arguments.keeping.run(&ready, false)?;
    let (nodes, reason) = curve(&results, |cell| f64::from(by_nodes.nodes[cell.size].value));
    if nodes.points.is_empty() {
        bail!("{} cannot run: {}", arguments.policy, reason.unwrap_or_default());
    }
    let by_budget = question.by_budget(&jobs);
    let limits = question.limits();
    let ready = Ready::new(&by_budget, &profiles)?;
    let results = arguments.keeping.run(&ready, false)?;
    let (budgets, too_little) = curve(&results, |cell| limits[cell.budget].as_f64());

    let recommendation = question.recommendation(&nodes);
    let mut assumed = assumptions(&known);
    assumed.push(
        "a node without a job draws nothing beside the base power of the machine, and more nodes do \
         not raise that; jobs are the same however many nodes there are"
            .to_owned(),
    );
    if arguments.json {
        let answer = Answer {
            workload: &arguments.workload,
            policy: arguments.policy.to_string(),
            machine: &question.machine.name,
            machine_nodes: question.machine.nodes,
            budget_w: limit.as_f64(),
            fed_nodes: question.fed(),
            by_nodes: &nodes,
            by_budget: &budgets,
            recommendation: &recommendation,
            assumptions: &assumed,
        };
        return print(&(serde_json::to_string_pretty(&answer)? + "\n"));
    }
    let mut text = String::new();
    let mut line = |name: &str, value: &str| text += &format!("{name:>12}  {value}\n");
    line("workload", &arguments.workload);
    line("policy", &arguments.policy.to_string());
    line("machine", &question.machine.name);
    let fed = question.fed();
    let power = human_power(limit.as_f64());
    line("budget", &format!("{power}, which feeds {fed} nodes at full power"));
    text += "\nThe same watts, more nodes\n\n";
    text += &describe(&nodes, "nodes", &|nodes| {
        (format!("{nodes:.0}"), format!("{:.2}", nodes / f64::from(fed)), "of those fed")
    });
    text += &format!("\nThe same {} nodes, more watts\n\n", question.machine.nodes);
    let most = question.machine.max_power().as_f64();
    text += &describe(&budgets, "kW", &|watts| {
        (human_power(watts), format!("{:.0} %", 100.0 * watts / most), "of the most")
    });
    if let Some(reason) = too_little {
        text += &format!("\nleft out where it cannot run: {reason}\n");
    }
    text += &format!("\n{recommendation}\n");
    for assumption in assumed {
        text += &format!("assumed: {assumption}\n");
    }
    print(&text)
}

impl Arguments {
    /// What both curves have in common.
    fn experiment(&self) -> anyhow::Result<Experiment> {
        let load = self.workload.parse::<Load>();
        let load = load.map_err(|why| Place::Option("--workload").error(why))?;
        Ok(Experiment {
            policies: vec![self.policy],
            budgets: vec![said("--budget", Feed::Unlimited)],
            workloads: vec![said("--workload", load)],
            seeds: (1..=self.seeds).collect(),
            machine: match &self.machine {
                Some(text) => Some(said("--machine", equipment(text)?)),
                None => None,
            },
            profiles: self.tables.given().map(str::to_owned),
            jobs: self.jobs.clone(),
            ..Experiment::default()
        })
    }
}

/// A curve as a plot and as a table. `show` writes the quantity of a point, its share of a whole, and
/// what that is a share of.
fn describe(
    curve: &Curve,
    quantity: &str,
    show: &dyn Fn(f64) -> (String, String, &'static str),
) -> String {
    let figures = || curve.points.iter().filter_map(|point| point.figure);
    let largest = figures().map(|figure| figure.mean).fold(0.0, f64::max);
    let (unit, size) = time_unit(largest);
    let scale = if quantity == "kW" { 1000.0 } else { 1.0 };
    let mark = |place: usize| match place {
        place if curve.recommended() == Some(place) => '◆',
        place if curve.is_comparable(place) => '●',
        _ => '○',
    };
    let points = curve.points.iter().enumerate().filter_map(|(place, point)| {
        let y = point.figure?.mean / size;
        Some(Point { x: point.at / scale, y, mark: mark(place) })
    });
    let mut text = plot(&format!("mean turnaround ({unit})"), quantity, &[points.collect()]);
    text.push('\n');
    let share = show(0.0).2;
    let headings = [
        ("", Side::Left),
        (if quantity == "kW" { "budget" } else { quantity }, Side::Right),
        (share, Side::Right),
        ("turnaround", Side::Right),
        ("jobs undone", Side::Right),
        ("", Side::Left),
    ];
    let row = |(place, point): (usize, &crate::experiment::curve::CurvePoint)| {
        let (amount, share, _) = show(point.at);
        let turnaround = point.figure.map_or("-".to_owned(), |figure| human_time(figure.mean));
        let notes = [(curve.knee, "knee"), (curve.enough, "enough")];
        let notes = notes.iter().filter(|(at, _)| *at == Some(place)).map(|(_, note)| *note);
        let notes: Vec<&str> = notes.collect();
        let undone = format!("{:.0}", point.undone);
        vec![mark(place).to_string(), amount, share, turnaround, undone, notes.join(", ")]
    };
    let rows: Vec<Vec<String>> = curve.points.iter().enumerate().map(row).collect();
    text + &columns(&headings, &rows)
}
