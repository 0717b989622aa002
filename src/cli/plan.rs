//! `busbar plan`: how many nodes for these watts, and how many watts for these nodes.

use std::io::{self, Write};
use std::ops::Range;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use crate::budget::{Allowance, BudgetSpec, Limit};
use crate::calendar::looks_like_rules;
use crate::cli::compare::equipment;
use crate::cli::{keeping, print, rules, tables, tariff};
use crate::experiment::assumptions::assumptions;
use crate::experiment::curve::Curve;
use crate::experiment::plan::map::Map;
use crate::experiment::plan::{Question, curve};
use crate::experiment::{CheckedExperiment, Experiment, Load, Named, Place};
use crate::machine::MachineError;
use crate::policy::PolicySpec;
use crate::report::{
    Facts, Point, Side, Versioned, columns, human_power, human_time, make_folder, plot, time_unit,
    write_whole,
};
use crate::tariff::Currency;
use crate::workload::parse_places;

mod map;

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
  busbar plan --node-price 9000EUR --price 0.25EUR/kWh --plots plan/
  busbar plan --workload 'lublin(jobs=5000, load=0.9)' --seeds 10 --json")]
pub(super) struct Arguments {
    /// What there is to draw: watts (6500W, 4.2MW) or a share of the machine's maximum
    #[arg(short, long, value_name = "B", default_value = "60%", value_parser = parse_limit,
          allow_hyphen_values = true)]
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

    /// Repeat with seeds 1 to N, and report means
    #[arg(long, value_name = "N", default_value_t = Experiment::USUAL_SEEDS,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: u64,

    #[command(flatten)]
    rules: rules::Arguments,

    #[command(flatten)]
    tables: tables::Arguments,

    /// Only jobs of this partition of the log, or of several with commas between them; of a machine file with
    /// partitions, that part is the machine
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    partition: Vec<String>,

    /// Only these jobs, by their place in submit order: 20000..25000, 5000.., ..100
    #[arg(long, value_name = "A..B", value_parser = parse_places)]
    jobs: Option<Range<usize>>,

    #[command(flatten)]
    tariff: tariff::Arguments,

    #[command(flatten)]
    map: map::Arguments,

    #[command(flatten)]
    keeping: keeping::Arguments,

    /// One JSON object on standard output
    #[arg(long)]
    json: bool,

    /// Write plan.json, nodes.csv, budgets.csv and map.csv into this folder: the answer, both curves and the map
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Write the map as a picture into this folder, map.svg
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
}

fn parse_limit(text: &str) -> anyhow::Result<Limit> {
    if looks_like_rules(text) {
        bail!(
            "a plan is about one limit, and these change by the calendar; plan for the lowest of them (80%), and \
             try the rules with 'busbar compare --nodes'"
        );
    }
    match text.parse()? {
        Allowance::Limited(limit) => Ok(limit),
        Allowance::Unlimited => bail!(
            "a plan is about a limit, and without one any number of nodes is fed; write watts \
             (6500W, 4.2MW) or a share of the machine's maximum (80%)"
        ),
    }
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
    /// What machines of several sizes can do under several limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<&'a Map>,
    recommendation: &'a str,
    assumptions: &'a [String],
    /// What is more likely a mistake than a plan.
    notes: &'a [String],
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut jobs = arguments.experiment()?;
    let profiles = tables::of_experiment(&mut jobs)?;
    let known = CheckedExperiment::new(&jobs, &profiles)?;
    let machine = known.machine(0, 0).clone();
    if machine.variation.is_some() {
        return Err(MachineError::Measured.into());
    }
    let limit =
        arguments.budget.on(&machine).map_err(|why| Place::Option("--budget").error(why))?;
    let question = Question { machine, limit };
    for folder in [&arguments.out, &arguments.plots].into_iter().flatten() {
        // Now rather than after a long run.
        make_folder(folder)?;
    }

    let by_nodes = question.by_nodes(&jobs);
    let checked = CheckedExperiment::new(&by_nodes, &profiles)?;
    let results = arguments.keeping.run(&checked, false, &|_| ())?;
    let (nodes, reason) = curve(&results, |cell| f64::from(by_nodes.nodes[cell.size].value));
    if nodes.points.is_empty() {
        bail!("{} cannot run: {}", arguments.policy, reason.unwrap_or_default());
    }
    let by_budget = question.by_budget(&jobs);
    let limits = question.limits();
    let checked = CheckedExperiment::new(&by_budget, &profiles)?;
    let results = arguments.keeping.run(&checked, false, &|_| ())?;
    let (budgets, too_little) = curve(&results, |cell| limits[cell.budget].as_f64());

    let map = match arguments.map.is_wanted() || arguments.plots.is_some() {
        false => None,
        true => {
            Some(arguments.map.draw(&question, &jobs, &known, &profiles, &arguments.keeping)?)
        }
    };
    let recommendation = question.recommendation(&nodes);
    // Both have the same workload and policy.
    let mut assumed = assumptions(&known);
    assumed.push(
        "more nodes do not raise the base power of the machine, and jobs are the same however many nodes there \
         are"
        .to_owned(),
    );
    let notes = notes(&known, &question, &nodes);
    let answer = Answer {
        workload: &arguments.workload,
        policy: arguments.policy.to_string(),
        machine: &question.machine.name,
        machine_nodes: question.machine.nodes,
        budget_w: limit.as_f64(),
        fed_nodes: question.fed(),
        by_nodes: &nodes,
        by_budget: &budgets,
        map: map.as_ref(),
        recommendation: &recommendation,
        assumptions: &assumed,
        notes: &notes,
    };
    let json = serde_json::to_string_pretty(&Versioned::new(&answer))? + "\n";
    if let Some(folder) = &arguments.out {
        write_whole(&folder.join("plan.json"), &|out| out.write_all(json.as_bytes()))?;
        write_whole(&folder.join("nodes.csv"), &|out| write_curve(out, "nodes", &nodes))?;
        write_whole(&folder.join("budgets.csv"), &|out| write_curve(out, "budget_w", &budgets))?;
        if let Some(map) = &map {
            write_whole(&folder.join("map.csv"), &|out| map::write_csv(out, map))?;
        }
    }
    if let (Some(folder), Some(map)) = (&arguments.plots, &map) {
        let picture = map::picture(map);
        write_whole(&folder.join("map.svg"), &|out| out.write_all(picture.as_bytes()))?;
    }
    if arguments.json {
        return print(&json);
    }
    let currency = known.currency();
    let report = Report { arguments, question: &question, answer: &answer, too_little, currency };
    print(&report.text())
}

/// The answer for people.
struct Report<'a> {
    arguments: &'a Arguments,
    question: &'a Question,
    answer: &'a Answer<'a>,
    /// Why the policy cannot run with the least of the budgets, if it cannot.
    too_little: Option<String>,
    /// The currency of costs, if anything has a price.
    currency: Option<Currency>,
}

impl Report<'_> {
    fn text(&self) -> String {
        let Report { arguments, question, answer, too_little, currency } = self;
        let mut facts = Facts::default();
        facts.add("workload", answer.workload);
        facts.add("policy", &answer.policy);
        facts.add("machine", answer.machine);
        let (fed, power) = (answer.fed_nodes, human_power(answer.budget_w));
        facts.add("budget", format_args!("{power}, which feeds {fed} nodes at full power"));
        let mut text = facts.text();
        text += "\nThe same watts, more nodes\n\n";
        text += &describe(answer.by_nodes, "nodes", &|nodes| {
            (format!("{nodes:.0}"), format!("{:.2}", nodes / f64::from(fed)), "of those fed")
        });
        text += &format!("\nThe same {} nodes, more watts\n\n", answer.machine_nodes);
        let most = question.machine.max_power().as_f64();
        text += &describe(answer.by_budget, "kW", &|watts| {
            (human_power(watts), format!("{:.0} %", 100.0 * watts / most), "of the most")
        });
        if let Some(reason) = too_little {
            text += &format!("\nleft out where it cannot run: {reason}\n");
        }
        if let Some(map) = answer.map {
            text += "\nWhat the machine can do if jobs wait at all times: the work of so many nodes at full speed\n\n";
            text += &map::text(map, *currency);
        }
        text += &format!("\n{}\n", answer.recommendation);
        let notes = answer.notes.iter().map(|note| format!("note: {note}\n"));
        let assumed = answer.assumptions.iter().map(|each| format!("assumed: {each}\n"));
        text.extend(notes.chain(assumed));
        for folder in [&arguments.out, &arguments.plots].into_iter().flatten() {
            text += &format!("written to {}\n", folder.display());
        }
        text
    }
}

/// What is more likely a mistake than a plan, a sentence for each thing.
fn notes(known: &CheckedExperiment<'_>, question: &Question, by_nodes: &Curve) -> Vec<String> {
    let demand = known.demand(0);
    let larger = demand.larger_machine(&question.machine);
    let (fed, most) = (question.fed(), demand.nodes);
    let chosen = by_nodes.recommended().map(|place| by_nodes.points[place].at);
    let unused = chosen.filter(|nodes| *nodes > most as f64 && u64::from(fed) < most).map(|nodes| {
        format!(
            "{nodes} nodes are more than the jobs could ever use at once, which is {most}: the log cannot tell \
             what more of them gain"
        )
    });
    let days = demand.span.secs_f64() / 86_400.0;
    let short = (days < SHORT_DAYS).then(|| {
        format!("the log is {days:.1} days long; a plan for years should rest on weeks at least")
    });
    let flat = (u64::from(fed) >= most).then(|| {
        format!(
            "the budget feeds {fed} nodes at full power, and the jobs could use {most} at once at the \
             most: no job ever has to wait, and what is recommended rests on nothing"
        )
    });
    larger.into_iter().chain(flat).chain(unused).chain(short).collect()
}

/// Below so many days a log says little about a machine's life.
const SHORT_DAYS: f64 = 7.0;

/// Writes a curve: a row for each point, with nothing where no job ran.
fn write_curve(out: &mut dyn Write, quantity: &str, curve: &Curve) -> io::Result<()> {
    writeln!(out, "{quantity},mean_turnaround_s,deviation_s,undone,knee,enough,recommended")?;
    for (place, point) in curve.points.iter().enumerate() {
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let mean = number(point.figure.map(|figure| figure.mean));
        let deviation = number(point.figure.and_then(|figure| figure.deviation));
        let is = |at: Option<usize>| at == Some(place);
        let (knee, enough, chosen) = (is(curve.knee), is(curve.enough), is(curve.recommended()));
        let (at, undone) = (point.at, point.undone);
        writeln!(out, "{at},{mean},{deviation},{undone},{knee},{enough},{chosen}")?;
    }
    Ok(())
}

impl Arguments {
    /// What both curves have in common.
    fn experiment(&self) -> anyhow::Result<Experiment> {
        let load = self.workload.parse::<Load>();
        let load = load.map_err(|why| Place::Option("--workload").error(why))?;
        let mut experiment = Experiment {
            policies: vec![self.policy],
            budgets: vec![Named::by_option("--budget", BudgetSpec::Constant(Allowance::Unlimited))],
            workloads: vec![Named::by_option("--workload", load)],
            seeds: (1..=self.seeds).collect(),
            machine: match &self.machine {
                Some(text) => {
                    let machine = equipment(text, &self.partition)?;
                    Some(Named::by_option("--machine", machine))
                }
                None => None,
            },
            profiles: self.tables.given().map(str::to_owned),
            partitions: self.partition.clone(),
            jobs: self.jobs.clone(),
            ..Experiment::default()
        };
        self.rules.apply_to(&mut experiment);
        experiment.tariff = self.tariff.tariff(&experiment.tariff);
        Ok(experiment)
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
