//! `busbar plan`: how many nodes for these watts, and how many watts for these nodes.

use std::io::{self, Write};
use std::ops::Range;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use crate::budget::{Allowance, BudgetSpec, Limit};
use crate::calendar::{Calendar, looks_like_rules};
use crate::cli::compare::equipment;
use crate::cli::{keeping, load, print, rules, tables, tariff};
use crate::experiment::assumptions::assumptions;
use crate::experiment::curve::Curve;
use crate::experiment::plan::advice::{Grounds, Recommended};
use crate::experiment::plan::map::Map;
use crate::experiment::plan::{Question, curve, power_costs};
use crate::experiment::{CheckedExperiment, Experiment, Named, Place};
use crate::machine::MachineError;
use crate::policy::PolicySpec;
use crate::report::{
    Facts, Point, Side, Versioned, columns, human_power, human_time, make_folder, plot, time_unit,
    write_whole,
};
use crate::tariff::{Currency, SeriesSpec};
use crate::workload::parse_places;

mod kinds;
mod map;
mod page;

/// Plan a machine: how many nodes for these watts, how many watts for these nodes
///
/// It simulates the same jobs with more nodes under the same watts, and with more watts on the same nodes. It prints
/// both curves, their knees, and a recommendation. Without arguments, it plans for the built-in workload under 60 %
/// of its machine's maximum power.
///
/// On a machine with several kinds of nodes, it tries fewer and more nodes of one kind after the other, and says how
/// many of each to take.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar plan
  busbar plan log.swf.gz --budget 1.2MW --machine cluster.toml
  busbar plan --policy parm --budget 50%
  busbar plan --node-price 9000EUR --price 0.25EUR/kWh --out plan/
  busbar plan --price 'weekdays 07:00-20:00: 0.32EUR/kWh, else 0.24EUR/kWh' --start '2026-01-01 00:00 Europe/Berlin'
  busbar plan --workload 'lublin(jobs=5000, load=0.9)' --seeds 10 --json")]
pub(super) struct Arguments {
    /// A log (.swf, .swf.gz), accounting records of a batch system, or anything else that --workload takes
    ///
    /// Records are the output of sacct with -P or --json, or files of PBS or LSF. The format is recognised from the
    /// content.
    #[arg(value_name = "FILE", conflicts_with = "workload")]
    file: Option<String>,

    /// Power budget: watts (6500W, 4.2MW), or a share of the machine's maximum (80%)
    #[arg(short, long, value_name = "B", default_value = "60%", value_parser = parse_limit,
          allow_hyphen_values = true)]
    budget: Limit,

    /// A log, records of a batch system, a generator, or demo [default: demo]
    ///
    /// Generators are 'lublin(jobs=10000, load=0.85)' and 'rmap(trace=random)'.
    #[arg(short, long, value_name = "SRC")]
    workload: Option<String>,

    /// Scheduling policy; more nodes help only if the policy can run them below full power
    #[arg(short, long, value_name = "P", default_value = "pb-guided")]
    policy: PolicySpec,

    /// A number of processors, a .toml machine file, or cab (64 nodes of two sockets) [default: from the workload's
    /// header]
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

    /// Only jobs of this partition of the log, or of several, separated by commas
    ///
    /// If the machine file has partitions, only this one is simulated.
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = "Workload")]
    partition: Vec<String>,

    /// Only these jobs, by position in submit order: 20000..25000, 5000.., ..100
    #[arg(long, value_name = "A..B", value_parser = parse_places, help_heading = "Workload")]
    jobs: Option<Range<usize>>,

    /// Date and time zone at which the workload starts, such as '2026-01-01 00:00 Europe/Berlin' [default: from a
    /// log's header]
    ///
    /// Prices by the calendar need it.
    #[arg(long, value_name = "WHEN", help_heading = "Workload")]
    start: Option<Calendar>,

    #[command(flatten)]
    tariff: tariff::Arguments,

    #[command(flatten)]
    map: map::Arguments,

    #[command(flatten)]
    keeping: keeping::Arguments,

    /// Print one JSON object
    #[arg(long, help_heading = "Results")]
    json: bool,

    /// Write a report, both curves and the map into this folder
    ///
    /// The files are report.html, plan.json, nodes.csv, budgets.csv and map.csv.
    #[arg(short, long, value_name = "DIR", help_heading = "Results")]
    out: Option<PathBuf>,

    /// Write the map into this folder, as map.svg
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    plots: Option<PathBuf>,
}

fn parse_limit(text: &str) -> anyhow::Result<Limit> {
    if looks_like_rules(text) {
        bail!(
            "a plan needs one limit, and these rules change it by the calendar; plan for the lowest limit, and \
            try the rules with 'busbar compare --nodes'"
        );
    }
    match text.parse()? {
        Allowance::Limited(limit) => Ok(limit),
        Allowance::Unlimited => bail!(
            "a plan needs a limit; write watts (6500W, 4.2MW) or a share of the machine's maximum (80%)"
        ),
    }
}

/// The answer as JSON.
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
    /// The throughput of machines of several sizes under several limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<&'a Map>,
    /// The machine that is recommended, if one is.
    recommended: Option<&'a Recommended>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<String>,
    recommendation: &'a str,
    assumptions: &'a [String],
    /// Likely mistakes in the input.
    notes: &'a [String],
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut jobs = arguments.experiment()?;
    let profiles = tables::of_experiment(&mut jobs)?;
    let known = CheckedExperiment::new(&jobs, &profiles)?;
    if known.machine(0, 0).kinds.is_some() {
        return kinds::run(arguments, &jobs, &known, &profiles);
    }
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
    let on_nodes = CheckedExperiment::new(&by_nodes, &profiles)?;
    let results = arguments.keeping.run(&on_nodes, arguments.out.is_some(), &|_| ())?;
    let (nodes, reason) = curve(&results, |cell| f64::from(by_nodes.nodes[cell.size].value));
    if nodes.points.is_empty() {
        bail!("{} cannot run: {}", arguments.policy, reason.unwrap_or_default());
    }
    let by_budget = question.by_budget(&jobs);
    let limits = question.limits();
    let checked = CheckedExperiment::new(&by_budget, &profiles)?;
    let tried = arguments.keeping.run(&checked, false, &|_| ())?;
    let (budgets, too_little) = curve(&tried, |cell| limits[cell.budget].as_f64());

    let mut map = match arguments.map.is_wanted() || arguments.plots.is_some() {
        false => None,
        true => {
            Some(arguments.map.draw(&question, &jobs, &known, &profiles, &arguments.keeping)?)
        }
    };
    let currency = known.currency();
    let advice = question.advice(&Grounds {
        demand: &known.demand(0),
        curve: &nodes,
        priced: map.as_ref().filter(|_| arguments.map.has_price()),
        power_costs: &power_costs(&by_nodes, &results, &nodes),
        currency,
    });
    let recommended = advice.taken();
    if let Some(map) = &mut map {
        map.recommended = recommended.and_then(|machine| map.find(machine.nodes, machine.budget_w));
    }
    // Both have the same workload and policy.
    let mut assumed = assumptions(&known);
    assumed.push(
        "the base power of the machine and the jobs do not change with the number of nodes"
            .to_owned(),
    );
    let notes = notes(&known, &question);
    let answer = Answer {
        workload: &jobs.workloads[0].value.text,
        policy: arguments.policy.to_string(),
        machine: &question.machine.name,
        machine_nodes: question.machine.nodes,
        budget_w: limit.as_f64(),
        fed_nodes: question.fed(),
        by_nodes: &nodes,
        by_budget: &budgets,
        map: map.as_ref(),
        recommended,
        currency: currency.map(|currency| currency.to_string()),
        recommendation: advice.sentence(),
        assumptions: &assumed,
        notes: &notes,
    };
    let json = serde_json::to_string_pretty(&Versioned::new(&answer))? + "\n";
    let report = Report { arguments, question: &question, answer: &answer, too_little, currency };
    if let Some(folder) = &arguments.out {
        let page = report.page(&on_nodes, &results);
        write_whole(&folder.join("report.html"), &|out| out.write_all(page.as_bytes()))?;
        write_whole(&folder.join("plan.json"), &|out| out.write_all(json.as_bytes()))?;
        let (by_nodes, by_budget) = (report.by_nodes(), report.by_budget());
        write_whole(&folder.join("nodes.csv"), &|out| by_nodes.write(out, "nodes"))?;
        write_whole(&folder.join("budgets.csv"), &|out| by_budget.write(out, "budget_w"))?;
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
    print(&report.text())
}

/// The answer as text.
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
    /// The turnaround over the nodes, with the machine that is recommended.
    fn by_nodes(&self) -> Shown<'_> {
        let fed = f64::from(self.answer.fed_nodes);
        Shown {
            curve: self.answer.by_nodes,
            quantity: Quantity::Nodes { fed },
            chosen: self.answer.recommended.map(|machine| machine.place),
        }
    }

    /// The turnaround over the budget, with the least that is enough.
    fn by_budget(&self) -> Shown<'_> {
        let most = self.question.machine.max_power().as_f64();
        let curve = self.answer.by_budget;
        Shown { curve, quantity: Quantity::Power { most }, chosen: curve.recommended() }
    }

    fn text(&self) -> String {
        let Report { arguments, answer, too_little, currency, .. } = self;
        let mut facts = Facts::default();
        facts.add("workload", answer.workload);
        facts.add("policy", &answer.policy);
        facts.add("machine", answer.machine);
        let (fed, power) = (answer.fed_nodes, human_power(answer.budget_w));
        facts.add("budget", format_args!("{power}, which supplies {fed} nodes at full power"));
        let mut text = facts.text();
        text += "\nThe same watts, more nodes\n\n";
        text += &self.by_nodes().text();
        text += &format!("\nThe same {} nodes, more watts\n\n", answer.machine_nodes);
        text += &self.by_budget().text();
        if let Some(reason) = too_little {
            text += &format!("\nleft out where it cannot run: {reason}\n");
        }
        if let Some(map) = answer.map {
            text += &format!("\n{}\n\n{}", map::TITLE, map::text(map, *currency));
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

/// Likely mistakes in the input, one sentence each.
fn notes(known: &CheckedExperiment<'_>, question: &Question) -> Vec<String> {
    let demand = known.demand(0);
    let larger = demand.larger_machine(&question.machine);
    let days = demand.span.secs_f64() / 86_400.0;
    let short = (days < SHORT_DAYS).then(|| {
        format!("the log is {days:.1} days long; a plan for years should rest on weeks at least")
    });
    let price = known.experiment.tariff.price.as_ref();
    let changes = price.is_some_and(|price| !matches!(price, SeriesSpec::Constant(_)));
    let seasons = (changes && days < YEAR_DAYS).then(|| {
        "the price changes with time, and a year's energy is that of these jobs times their part of a year: prices of \
         other days and seasons are not in it"
            .to_owned()
    });
    let remarks = known.remarks(0).iter().cloned();
    remarks.chain(larger).chain(short).chain(seasons).collect()
}

/// A shorter log, in days, says little about a machine's lifetime.
const SHORT_DAYS: f64 = 7.0;

/// A log of this many days covers all seasons.
const YEAR_DAYS: f64 = 365.0;

impl Arguments {
    /// The experiment that both curves share.
    fn experiment(&self) -> anyhow::Result<Experiment> {
        let load = load::named_load(self.file.as_deref(), self.workload.as_deref())?;
        if self.tariff.window.is_some() {
            bail!("--window: a plan does not report time windows; 'busbar compare --window' does");
        }
        if self.tariff.carbon.is_some() {
            bail!("--carbon: a plan does not report emissions; 'busbar compare --carbon' does");
        }
        let mut experiment = Experiment {
            policies: vec![self.policy.clone()],
            budgets: vec![Named::by_option("--budget", BudgetSpec::Constant(Allowance::Unlimited))],
            workloads: vec![load],
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
            start: self.start.clone(),
            ..Experiment::default()
        };
        self.rules.apply_to(&mut experiment)?;
        experiment.tariff = self.tariff.tariff(&experiment.tariff);
        Ok(experiment)
    }
}

/// The quantity that changes along a curve.
#[derive(Clone, Copy)]
enum Quantity {
    /// Numbers of nodes; so many are fed at full power.
    Nodes { fed: f64 },
    /// Budgets in watts; the machine draws this at most.
    Power { most: f64 },
}

impl Quantity {
    /// The headings of an amount and of its share of a whole.
    fn headings(self) -> [&'static str; 2] {
        match self {
            Quantity::Nodes { .. } => ["nodes", "of those fed"],
            Quantity::Power { .. } => ["budget", "of the most"],
        }
    }

    /// An amount, and its share of that whole.
    fn show(self, amount: f64) -> [String; 2] {
        match self {
            Quantity::Nodes { fed } => [format!("{amount:.0}"), format!("{:.2}", amount / fed)],
            Quantity::Power { most } => {
                [human_power(amount), format!("{:.0} %", 100.0 * amount / most)]
            }
        }
    }

    /// The unit beside an axis, and how large it is.
    fn axis(self) -> (&'static str, f64) {
        match self {
            Quantity::Nodes { .. } => ("nodes", 1.0),
            Quantity::Power { .. } => ("kW", 1000.0),
        }
    }
}

/// A curve as it is shown.
struct Shown<'a> {
    curve: &'a Curve,
    quantity: Quantity,
    /// The place that is chosen, if one is.
    chosen: Option<usize>,
}

impl Shown<'_> {
    fn mark(&self, place: usize) -> &'static str {
        match place {
            place if self.chosen == Some(place) => map::RECOMMENDED,
            place if self.curve.is_comparable(place) => "●",
            _ => "○",
        }
    }

    /// The headings and the rows of its table; each row begins with a mark.
    fn table(&self) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let curve = self.curve;
        let [amount, share] = self.quantity.headings();
        let row = |place: usize| {
            let point = &curve.points[place];
            let turnaround = point.figure.map_or("-".to_owned(), |figure| human_time(figure.mean));
            let notes = [(curve.knee, "knee"), (curve.enough, "enough")];
            let notes = notes.iter().filter(|(at, _)| *at == Some(place)).map(|(_, note)| *note);
            let notes: Vec<&str> = notes.collect();
            let [amount, share] = self.quantity.show(point.at);
            let undone = format!("{:.0}", point.undone);
            vec![self.mark(place).to_owned(), amount, share, turnaround, undone, notes.join(", ")]
        };
        let headings = vec!["", amount, share, "turnaround", "unfinished jobs", ""];
        (headings, (0..curve.points.len()).map(row).collect())
    }

    /// The unit of the turnaround, and how many seconds it has.
    fn unit(&self) -> (&'static str, f64) {
        let figures = self.curve.points.iter().filter_map(|point| point.figure);
        time_unit(figures.map(|figure| figure.mean).fold(0.0, f64::max))
    }

    /// A plot, and the table.
    fn text(&self) -> String {
        let ((unit, size), (name, scale)) = (self.unit(), self.quantity.axis());
        let points = self.curve.points.iter().enumerate().filter_map(|(place, point)| {
            let y = point.figure?.mean / size;
            let mark = self.mark(place).chars().next()?;
            Some(Point { x: point.at / scale, y, mark })
        });
        let mut text = plot(&format!("mean turnaround ({unit})"), name, &[points.collect()]);
        text.push('\n');
        let (headings, rows) = self.table();
        let side = |place: usize| if place == 0 || place == 5 { Side::Left } else { Side::Right };
        let headings: Vec<(&str, Side)> =
            headings.into_iter().enumerate().map(|(place, name)| (name, side(place))).collect();
        text + &columns(&headings, &rows)
    }

    /// Writes a row for each point, with nothing where no job ran.
    fn write(&self, out: &mut dyn Write, quantity: &str) -> io::Result<()> {
        writeln!(out, "{quantity},mean_turnaround_s,deviation_s,undone,knee,enough,recommended")?;
        for (place, point) in self.curve.points.iter().enumerate() {
            let number =
                |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
            let mean = number(point.figure.map(|figure| figure.mean));
            let deviation = number(point.figure.and_then(|figure| figure.deviation));
            let is = |at: Option<usize>| at == Some(place);
            let (knee, enough) = (is(self.curve.knee), is(self.curve.enough));
            let (chosen, at, undone) = (is(self.chosen), point.at, point.undone);
            writeln!(out, "{at},{mean},{deviation},{undone},{knee},{enough},{chosen}")?;
        }
        Ok(())
    }
}
