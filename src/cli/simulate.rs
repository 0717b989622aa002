//! `busbar simulate`: one workload, one machine, one policy.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::slice;
use std::time::Instant as Clock;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::cli::{energy, load, print, rules, tables, warn};
use crate::experiment::{Feed, file};
use crate::machine::Machine;
use crate::metrics::Summary;
use crate::model::Heterogeneous;
use crate::policy::PolicySpec;
use crate::report::digest::Digest;
use crate::report::{
    Format, human_time, make_folder, summary_table, write_folder, write_pictures, write_tasks,
    write_whole,
};
use crate::scenario::{Scenario, Simulated};
use crate::sim::{Events, Outages, Run};
use crate::stage::{self, Demand, Ground, Rules, Stage, machine_of};
use crate::units::{Share, Span};
use crate::workload::Source;
use crate::workload::swf::Intake;
use crate::world::Repertoire;

/// Simulate a workload on a machine under a policy
///
/// Without arguments: the built-in workload under EASY backfilling.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar simulate
  busbar simulate --workload KTH-SP2-1996-2.1-cln.swf.gz --policy conservative
  busbar simulate --workload 'lublin(jobs=100000, load=0.85)' --machine 1024 --budget 80%
  busbar simulate --policy 'pb-guided(beta=known)' --budget 80% --enlarge 20%
  busbar simulate --policy 'utility(environment=queued)' --energy 1.11GJ
  busbar simulate --workload log.swf --jobs 20000..25000 --json --out results/")]
pub(super) struct Arguments {
    #[command(flatten)]
    load: load::Arguments,

    #[command(flatten)]
    tables: tables::Arguments,

    #[command(flatten)]
    rules: rules::Arguments,

    /// Priority weights and tolerated slowdowns of single jobs: a .csv file of
    /// job,weight,slowdown rows
    #[arg(long, value_name = "FILE")]
    terms: Option<PathBuf>,

    /// A number of processors, cab (64 nodes of two sockets), catalyst (600 processors that are not
    /// alike), a .toml machine file, or a .csv file of curves [default: what the log's header says]
    #[arg(short, long, value_name = "M", allow_hyphen_values = true)]
    machine: Option<String>,

    /// fcfs, easy, conservative, easy-power, pb-guided(lower=60%, upper=90%, beta=unknown),
    /// rmap-traditional, rmap-naive, rmap-adaptive(slowdown=10%, guard=15%),
    /// parm(flex=malleable, alpha=0), ppartition(queues=4/64), uniform(cap=min), or
    /// utility(heuristic=max-upe, environment=polled, filter=on); docs/reference/policies.md lists their
    /// parameters
    #[arg(short, long, value_name = "P", default_value = "easy")]
    policy: PolicySpec,

    /// Watts (6500W, 4.2MW), a share of the machine's maximum (80%), a .csv file of time,budget
    /// rows, or none
    #[arg(short, long, value_name = "B", default_value = "none", allow_hyphen_values = true)]
    budget: Feed,

    /// So many more nodes of the same kind under the same watts: 20%. A budget given as a share
    /// is a share of the machine without them
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    enlarge: Option<Share>,

    #[command(flatten)]
    energy: energy::Arguments,

    /// Nodes that fail: a .csv file of node,down,up rows
    #[arg(long, value_name = "FILE")]
    outages: Option<PathBuf>,

    /// When the policy is asked: once per instant, or after each event
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    events: When,

    /// End jobs at the time they asked for; without this an estimate below the run time counts
    /// as equal to it
    #[arg(long)]
    enforce_limits: bool,

    /// Threshold of the bounded slowdown, in seconds or with its unit (10min)
    #[arg(long, value_name = "S", default_value = "600", value_parser = file::parse_threshold,
          allow_hyphen_values = true)]
    bsld_threshold: Span,

    /// One JSON object on standard output
    #[arg(long)]
    json: bool,

    /// Write report.html, jobs.csv, power.csv, schedule.swf and summary.json into this folder,
    /// changes.csv if jobs changed while they ran, caps.csv if processors have caps of their own, and
    /// tasks.csv if tasks have utilities
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// In which form --out writes tables
    #[arg(long, value_name = "F", value_enum, default_value_t, requires = "out")]
    format: TableFormat,

    /// Write the pictures of the report into this folder, as SVG files
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum When {
    #[default]
    Instant,
    Each,
}

/// The forms of tables, as they are typed.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum TableFormat {
    #[default]
    Csv,
    Parquet,
    Both,
}

impl TableFormat {
    /// The form, if this program knows it: one that was built without the feature `parquet` does not know all.
    fn known(self) -> anyhow::Result<Format> {
        match self {
            TableFormat::Csv => Ok(Format::Csv),
            #[cfg(feature = "parquet")]
            TableFormat::Parquet => Ok(Format::Parquet),
            #[cfg(feature = "parquet")]
            TableFormat::Both => Ok(Format::Both),
            #[cfg(not(feature = "parquet"))]
            _ => bail!(
                "--format: this program was built without Parquet; build it with 'cargo build --release --features \
                 parquet', or write csv"
            ),
        }
    }
}

/// What the answer has beside the summary: where the jobs came from and how long it all took.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    intake: Option<&'a Intake>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plain_bsld: Option<f64>,
    /// The profiles of the applications that jobs run.
    #[serde(skip_serializing_if = "Option::is_none")]
    profiles: Option<String>,
    estimates_raised: usize,
    /// What is more likely a mistake than a plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// What nobody says of the machine and its jobs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    assumed: Vec<String>,
    simulate_s: f64,
    wall_s: f64,
    jobs_per_s: f64,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let began = Clock::now();
    let policy = &arguments.policy;
    let format = arguments.format.known()?;
    let source =
        arguments.load.source(if arguments.energy.were_given() { "essc" } else { "demo" })?;
    let named = match &arguments.machine {
        Some(text) => Some(Machine::from_text(text)?),
        None => source.needs_applications().then(Machine::cab),
    };
    let profiles = match arguments.tables.were_given() || source.needs_applications() {
        true => arguments.tables.load()?,
        false => Vec::new(),
    };
    let usual = tables::usual_times(&profiles);
    let loaded = arguments.load.load(&source, named.as_ref(), Some(&usual), true)?;
    let energy = arguments.energy.budget(policy, &loaded)?;
    let load::Loaded { mut workload, intake, site, .. } = loaded;
    if let Some(path) = &arguments.terms {
        workload.set_terms_from(path)?;
    }
    let seed = arguments.load.seed.unwrap_or(1);
    let is_raised = !arguments.enforce_limits;
    // Tasks that are mapped to machines come with the machines, and with how they run there.
    let mapped = site.as_ref().and_then(|site| policy.on_site(site));
    let site = site.filter(|_| mapped.is_some());
    let (mut stage, common) = match site {
        Some(site) => {
            arguments.refuse_what_a_site_says()?;
            if site.tables.dominated() > 0 && matches!(source, Source::Tasks(_)) {
                let left_out = site.tables.dominated();
                warn(&format!(
                    "{left_out} entries of the tables were left out: another P-state is as fast \
                     and draws no more"
                ));
            }
            let machine = Heterogeneous::machine(&site.tables);
            (Stage { site: Some(site), ..Stage::new(machine, workload, is_raised) }, None)
        }
        None => {
            let said = match named {
                Some(machine) => machine,
                None => machine_of(&workload)?,
            };
            said.remarks.iter().for_each(|remark| warn(remark));
            let repertoire = Repertoire::of(&profiles);
            let names = repertoire.names(&said);
            let rules = arguments.rules.rules(&names)?;
            let machine = repertoire.filled_in(&said)?;
            let common = Common { said, repertoire, rules };
            (Stage::new(machine, workload, is_raised), Some(common))
        }
    };
    let budget = arguments.budget.resolve(&stage.machine)?;
    if let Some(share) = arguments.enlarge {
        let machine = stage.machine.enlarged(share)?;
        stage = stage.on(machine);
    }
    if !policy.wants().is_empty() && !budget.is_limited() && energy.is_none() {
        warn(&format!("without --budget there is no power for {policy} to share out"));
    }
    let outages = match &arguments.outages {
        Some(path) => Outages::from_file(path, stage.machine.nodes)?,
        None => Outages::default(),
    };

    let (ground, belief);
    let scenario = match (&common, &mapped) {
        (None, None) => bail!("there is nothing that says how jobs run"),
        (None, Some(model)) => stage.on_site(*policy, budget, model.as_ref()),
        (Some(Common { repertoire, rules, .. }), _) => {
            ground = Ground::new(&stage.machine, &stage.workload, repertoire, rules, seed)?;
            belief = ground
                .belief(policy, &stage.machine, stage.workload.jobs())
                .with_context(|| format!("{policy} cannot run"))?;
            stage.on_ground(*policy, budget, &ground, belief.as_ref())
        }
    };
    let scenario = Scenario {
        energy: energy.as_ref().map(|chosen| chosen.budget),
        outages,
        events: match arguments.events {
            When::Instant => Events::Instant,
            When::Each => Events::Each,
        },
        bsld_threshold: arguments.bsld_threshold,
        keep_power: arguments.out.is_some() || arguments.plots.is_some(),
        ..scenario
    };
    for folder in [&arguments.out, &arguments.plots].into_iter().flatten() {
        // Now rather than after a long run.
        make_folder(folder)?;
    }
    let guarded = scenario.budget.lowered(scenario.guard);
    if let Some(why) = stage::leaves_nothing(&guarded, &stage.machine) {
        bail!("{why}; give more, fewer nodes (--enlarge) or a smaller --guard");
    }
    let mut notes = notes(&stage, &scenario);
    let mut assumed = Vec::new();
    if let Some(Common { said, repertoire, rules }) = &common {
        notes.extend(rules.names_nobody(stage.workload.jobs()));
        assumed = stage::assumed(said, repertoire, rules);
    }
    let started = Clock::now();
    let Simulated { run, plain_bsld } = with_progress_bar(&scenario);
    let simulate_s = started.elapsed().as_secs_f64();
    let summary = scenario.summary(&run);

    if arguments.out.is_some() || arguments.plots.is_some() {
        let policy = arguments.policy.to_string();
        let subject = scenario.subject(&policy);
        let asked = match &arguments.budget {
            Feed::Unlimited => String::new(),
            Feed::Limited(budget) => budget.to_string(),
        };
        let digest = Digest { budget: asked, ..Digest::of(&subject, &run, &summary) };
        if let Some(folder) = &arguments.out {
            write_folder(folder, &subject, &run, &digest, format)?;
            if let (Some(site), Some(budget)) = (&stage.site, scenario.energy) {
                let tasks = &stage.workload;
                let content = |out: &mut dyn Write| write_tasks(out, tasks, site, &budget, &run);
                write_whole(&folder.join("tasks.csv"), &content)?;
            }
        }
        if let Some(folder) = &arguments.plots {
            write_pictures(folder, slice::from_ref(&digest), &[])?;
        }
    }
    let answer = Answer {
        summary: &summary,
        intake: intake.as_ref(),
        plain_bsld,
        profiles: (!profiles.is_empty()).then(|| arguments.tables.name().to_owned()),
        estimates_raised: stage.estimates_raised,
        notes,
        assumed,
        simulate_s,
        wall_s: began.elapsed().as_secs_f64(),
        jobs_per_s: stage.workload.jobs().len() as f64 / simulate_s.max(1e-9),
    };
    if arguments.json {
        print(&(serde_json::to_string_pretty(&answer)? + "\n"))
    } else {
        let assumed = energy.as_ref().is_some_and(|chosen| chosen.is_assumed);
        print(&describe(arguments, &answer, &run, assumed))
    }
}

/// What the world that all policies share is made from.
struct Common {
    /// The machine as somebody described it.
    said: Machine,
    repertoire: Repertoire,
    rules: Rules,
}

impl Arguments {
    /// Where tasks come with their machines, there is nothing else to say of these.
    fn refuse_what_a_site_says(&self) -> anyhow::Result<()> {
        if self.machine.is_some() || self.enlarge.is_some() {
            bail!("--machine and --enlarge have no use here: the tasks come with their machines")
        }
        if self.rules.were_given() || self.tables.were_given() {
            warn(
                "--allow, --guard, --applications, --profiles and --believe have no effect here: the tasks come \
                 with tables of how they run",
            );
        }
        Ok(())
    }
}

/// What is more likely a mistake than a plan, a sentence for each thing.
fn notes(stage: &Stage, scenario: &Scenario<'_>) -> Vec<String> {
    let demand = Demand::of(&stage.workload, &stage.machine);
    let mut notes: Vec<String> = demand.larger_machine(&stage.plain_machine).into_iter().collect();
    // Where the tables of a site say how tasks run, the workload does not say what they need.
    let is_known = scenario.world.is_some();
    let is_met = demand.is_always_met(&stage.machine, &scenario.budget);
    if is_known && scenario.outages.is_empty() && is_met {
        notes.push(demand.never_waits(""));
    }
    notes
}

/// Runs the scenario with a progress bar, if a person is watching.
fn with_progress_bar(scenario: &Scenario<'_>) -> Simulated {
    if !std::io::stderr().is_terminal() {
        return scenario.simulate(&mut |_| {});
    }
    let bar = ProgressBar::new(scenario.workload.jobs().len() as u64);
    // The template is a constant; if it were wrong, the plain bar would do.
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} jobs, {eta} left") {
        bar.set_style(style);
    }
    let simulated = scenario.simulate(&mut |over| bar.set_position(over as u64));
    bar.finish_and_clear();
    simulated
}

fn describe(
    arguments: &Arguments,
    answer: &Answer<'_>,
    run: &Run,
    energy_is_assumed: bool,
) -> String {
    // What is assumed of nodes is said below, all of it.
    let is_said = answer.assumed.is_empty() && answer.summary.power_is_assumed;
    let summary = Summary { power_is_assumed: is_said, ..answer.summary.clone() };
    let mut text = summary_table(&summary);
    if energy_is_assumed {
        let assumed = "1.11 GJ a day for each hundred machines, as in the paper; see --energy";
        text += &format!("{:>12}  {assumed}\n", "assumed");
    }
    if let Some(bsld) = answer.plain_bsld {
        text += &format!(
            "{:>12}  mean slowdown {bsld:.2} under plain EASY without a limit: bsld_lower\n",
            "reference"
        );
    }
    for assumed in &answer.assumed {
        text += &format!("{:>12}  {assumed}\n", "assumed");
    }
    if let Some(profiles) = &answer.profiles {
        text += &format!("{:>12}  {profiles}\n", "profiles");
    }
    if let Some(intake) = answer.intake {
        for line in intake.lines() {
            text += &format!("{:>12}  {line}\n", "log");
        }
    }
    for note in &answer.notes {
        text += &format!("{:>12}  {note}\n", "note");
    }
    if answer.estimates_raised > 0 {
        text += &format!(
            "{:>12}  {} raised to the run time (--enforce-limits kills instead)\n",
            "estimates", answer.estimates_raised
        );
    }
    text += &format!(
        "{:>12}  simulated in {}, {:.0} jobs/s\n",
        "speed",
        if answer.simulate_s < 1.0 {
            format!("{:.1} ms", answer.simulate_s * 1000.0)
        } else {
            human_time(answer.simulate_s)
        },
        answer.jobs_per_s
    );
    for (at, violation) in &run.first_violations {
        text += &format!("{:>12}  at {at}: {violation}\n", "refused");
    }
    for folder in [&arguments.out, &arguments.plots].into_iter().flatten() {
        text += &format!("{:>12}  {}\n", "written to", folder.display());
    }
    text
}
