//! `busbar simulate`: one workload, one machine, one policy.

use std::io::Write;
use std::path::PathBuf;
use std::slice;
use std::sync::LazyLock;
use std::time::Instant as Clock;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::budget::{Allowance, Budget, BudgetSpec};
use crate::calendar::Calendar;
use crate::cli::{energy, host, load, print, rules, tables, tariff, warn, wrong_kind};
use crate::experiment::file;
use crate::heterogeneity::Site;
use crate::job::Job;
use crate::machine::Machine;
use crate::metrics::{RunContext, Summary};
use crate::model::{Heterogeneous, Model};
use crate::policy::{OrderSpec, OrderedBy, PolicySpec};
use crate::prepared::{
    self, Demand, PreparedWorkload, Rules, SharedWorld, limits_nothing, machine_of,
};
use crate::profile::Profile;
use crate::report::digest::{Digest, MOST_JOBS};
use crate::report::{
    Format, Versioned, human_time, make_folder, none_ran, summary_facts, write_folder,
    write_pictures, write_tasks, write_whole,
};
use crate::reproduce::papers;
use crate::scenario::{Scenario, Simulated};
use crate::sim::{Events, Outages, Run};
use crate::tariff::TariffSpec;
use crate::units::{Instant, Share, Span};
use crate::workload::swf::Intake;
use crate::workload::{Source, Workload, terms};
use crate::world::Repertoire;

/// Simulate a workload on a machine under a policy
///
/// Without arguments, it simulates the built-in workload under EASY backfilling.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar simulate
  busbar simulate KTH-SP2-1996-2.1-cln.swf.gz --policy conservative
  busbar simulate --workload 'lublin(jobs=100000, load=0.85)' --machine 1024 --budget 80%
  busbar simulate --policy 'pb-guided(beta=known)' --budget 80% --enlarge 20%
  busbar simulate --start '2026-11-02 00:00 Europe/Berlin' --budget 'weekdays 14:00-18:00: 60%, else 100%'
  busbar simulate --policy 'utility(environment=queued)' --energy 1.11GJ
  busbar simulate log.swf --jobs 20000..25000 --json --out results/")]
pub(super) struct Arguments {
    #[command(flatten)]
    load: load::Arguments,

    /// Priority weights and accepted slowdowns of single jobs: a .csv file of job,weight,slowdown rows
    #[arg(long, value_name = "FILE", help_heading = "Workload")]
    terms: Option<PathBuf>,

    /// A number of processors, a .toml machine file, a .csv file of curves, cab, or catalyst [default: from the log's
    /// header]
    ///
    /// cab has 64 nodes of two sockets; catalyst has 600 processors with manufacturing variation.
    #[arg(short, long, value_name = "M", allow_hyphen_values = true)]
    machine: Option<String>,

    /// Scheduling policy, such as fcfs, easy, pb-guided, parm or share; --help lists all
    ///
    /// fcfs, easy, conservative, slurm, easy-power, pb-guided(lower=60%, upper=90%, beta=unknown), rmap-traditional,
    /// rmap-naive, rmap-adaptive(slowdown=10%, guard=15%), parm(flex=malleable, alpha=0), ppartition(queues=4/64),
    /// uniform(cap=min), utility(heuristic=max-upe, environment=polled, filter=on), share, or 'external(./mine)' for
    /// a program in any language. docs/reference/policies.md lists their parameters.
    #[arg(short, long, value_name = "P", default_value = "easy")]
    policy: PolicySpec,

    /// Power budget: watts (6500W, 4.2MW), a share of the machine's maximum (80%), rules, a file, or none
    ///
    /// Rules are by the calendar, such as 'weekdays 14:00-18:00 nov..feb: 80%, else 100%'. A file has rules, or
    /// time,budget rows (.csv).
    #[arg(short, long, value_name = "B", default_value = "none", allow_hyphen_values = true)]
    budget: BudgetSpec,

    /// Add nodes without raising the budget: 20%
    ///
    /// A budget given as a share is a share of the machine without the added nodes.
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    enlarge: Option<Share>,

    #[command(flatten)]
    rules: rules::Arguments,

    #[command(flatten)]
    tables: tables::Arguments,

    #[command(flatten)]
    energy: energy::Arguments,

    /// How jobs run: in the world that all policies share, or by the model of the policy's paper
    #[arg(long, value_name = "W", value_enum, default_value_t, help_heading = "Simulation")]
    world: WhichWorld,

    /// Node failures: a .csv file of node,down,up rows
    #[arg(long, value_name = "FILE", help_heading = "Simulation")]
    outages: Option<PathBuf>,

    /// When the policy decides: once per instant, or after each event
    #[arg(long, value_name = "WHEN", value_enum, default_value_t, help_heading = "Simulation")]
    events: When,

    /// End jobs at their requested time limit
    ///
    /// Without this option, a time limit below the run time is raised to the run time.
    #[arg(long, help_heading = "Simulation")]
    enforce_limits: bool,

    #[command(flatten)]
    tariff: tariff::Arguments,

    /// Threshold of the bounded slowdown, in seconds or with a unit (10min)
    #[arg(long, value_name = "S", default_value = "600", value_parser = file::parse_threshold,
          allow_hyphen_values = true, help_heading = "Results")]
    bsld_threshold: Span,

    /// Print one JSON object
    #[arg(long, help_heading = "Results")]
    json: bool,

    /// Write a report, tables and the schedule into this folder
    ///
    /// The files are report.html, jobs.csv, power.csv, schedule.swf and summary.json; changes.csv if jobs changed
    /// while they ran, caps.csv if processors have separate caps, and tasks.csv if tasks have utilities.
    #[arg(short, long, value_name = "DIR", help_heading = "Results")]
    out: Option<PathBuf>,

    /// Format of the tables that --out writes
    #[arg(
        long,
        value_name = "F",
        value_enum,
        default_value_t,
        requires = "out",
        help_heading = "Results"
    )]
    format: TableFormat,

    /// Write the report's charts into this folder, as SVG files
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    plots: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum When {
    #[default]
    Instant,
    Each,
}

/// The worlds, by their names on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum WhichWorld {
    #[default]
    Common,
    Paper,
}

/// The formats of tables, by their names on the command line.
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

/// The JSON answer: the summary, where the jobs came from, and how long the simulation took.
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
    profiles: Option<&'a str>,
    estimates_raised: usize,
    /// The dates at which it begins and ends, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    begin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<String>,
    /// The first decisions that were refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<String>,
    /// Likely mistakes in the input.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
    /// Assumptions about the machine and its jobs.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    assumed: &'a [String],
    simulate_s: f64,
    wall_s: f64,
    jobs_per_s: f64,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let done = Done::new(arguments, false)?;
    match arguments.json {
        true => print(&done.json()?)?,
        false => print(&done.describe(arguments))?,
    }
    match done.none_ran() {
        Some(why) => bail!("{why}"),
        None => Ok(()),
    }
}

/// A finished simulation, with everything that its tables and texts need.
pub(super) struct Done {
    input: Input,
    policy: PolicySpec,
    bsld_threshold: Span,
    profiles: Option<String>,
    run: Run,
    summary: Summary,
    plain_bsld: Option<f64>,
    notes: Vec<String>,
    assumed: Vec<String>,
    simulate_s: f64,
    wall_s: f64,
}

impl Done {
    /// Simulates, and writes the files. The power drawn over time is kept if files need it, or if `keep_power` says
    /// so.
    pub(super) fn new(arguments: &Arguments, keep_power: bool) -> anyhow::Result<Self> {
        let began = Clock::now();
        let format = arguments.format.known()?;
        let input = arguments.read()?;
        let scenario =
            arguments.completed(input.scenario(arguments.policy.clone()), input.energy.as_ref())?;
        let scenario = Scenario { keep_power: scenario.keep_power || keep_power, ..scenario };
        for folder in [&arguments.out, &arguments.plots].into_iter().flatten() {
            // Now rather than after a long run.
            make_folder(folder)?;
        }
        let prepared = &input.prepared;
        let mut notes = arguments.budget.doubts();
        notes.extend(self::notes(prepared, &scenario));
        notes.extend(prepared.workload.remarks().iter().cloned());
        if let Some(priorities) = &scenario.priorities {
            notes.extend(priorities.names_nobody(prepared.workload.jobs()));
            let is_used = |order: OrderSpec| order.by == OrderedBy::Multifactor;
            let is_limited = scenario.limits.as_ref().is_some_and(|limits| limits.have_effect());
            if !is_limited && !arguments.policy.order().is_some_and(is_used) {
                notes.push(format!(
                    "--site has no effect on {}; add order=multifactor, as in 'easy(order=multifactor)'",
                    arguments.policy
                ));
            }
        }
        let mut assumed = Vec::new();
        if let Behaviour::Common { described, repertoire, rules, .. } = &input.behaviour {
            notes.extend(rules.names_nobody(prepared.workload.jobs()));
            assumed = prepared::assumed(described, repertoire, rules);
            assumed.extend(prepared::measured_power(prepared));
        }
        assumed.extend(prepared.workload.about_partitions());
        let started = Clock::now();
        let Simulated { mut run, plain_bsld } = with_progress_bar(&scenario);
        let simulate_s = started.elapsed().as_secs_f64();
        if let Some(stopped) = run.stopped.take() {
            bail!("{}: {stopped}", arguments.policy);
        }
        let summary = scenario.summary(&run);
        arguments.write_files(prepared, &scenario, &run, &summary, format)?;
        notes.extend(summary.unknown_tariff());
        notes.extend(summary.unknown_outdoor());
        let has_profiles = !input.profiles.is_empty();
        Ok(Done {
            policy: arguments.policy.clone(),
            bsld_threshold: arguments.bsld_threshold,
            profiles: has_profiles.then(|| arguments.tables.name().to_owned()),
            run,
            summary,
            plain_bsld,
            notes,
            assumed,
            simulate_s,
            wall_s: began.elapsed().as_secs_f64(),
            input,
        })
    }

    /// Why no job ran, if none did. The answer is printed anyway.
    pub(super) fn none_ran(&self) -> Option<String> {
        none_ran(&self.summary)
    }

    pub(super) fn calendar(&self) -> Option<&Calendar> {
        self.input.prepared.workload.calendar().ok()
    }

    fn answer(&self) -> Answer<'_> {
        let date = |instant| self.calendar().map(|calendar| calendar.zoned(instant));
        let workload = &self.input.prepared.workload;
        let refused = self.run.first_violations.iter();
        Answer {
            begin: date(self.run.begin),
            end: date(self.run.end),
            summary: &self.summary,
            intake: self.input.intake.as_ref(),
            plain_bsld: self.plain_bsld,
            profiles: self.profiles.as_deref(),
            estimates_raised: self.input.prepared.estimates_raised,
            refused: refused.map(|(at, violation)| format!("at {at}: {violation}")).collect(),
            notes: &self.notes,
            assumed: &self.assumed,
            simulate_s: self.simulate_s,
            wall_s: self.wall_s,
            jobs_per_s: workload.jobs().len() as f64 / self.simulate_s.max(1e-9),
        }
    }

    /// The answer as JSON.
    pub(super) fn json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(&Versioned::new(self.answer()))? + "\n")
    }

    /// The answer as text.
    pub(super) fn describe(&self, arguments: &Arguments) -> String {
        let energy_is_assumed = self.input.energy.as_ref().is_some_and(|chosen| chosen.is_assumed);
        describe(arguments, &self.answer(), &self.run, energy_is_assumed, self.calendar())
    }

    /// The run, and what tables of it are about.
    pub(super) fn with_run<T>(&self, act: impl FnOnce(&RunContext<'_>, &Run) -> T) -> T {
        let scenario = self.input.scenario(self.policy.clone());
        let scenario = Scenario { bsld_threshold: self.bsld_threshold, ..scenario };
        act(&scenario.context(&self.policy.to_string()), &self.run)
    }
}

/// The input of a simulation.
struct Input {
    prepared: PreparedWorkload,
    behaviour: Behaviour,
    budget: Budget,
    energy: Option<energy::Chosen>,
    intake: Option<Intake>,
    profiles: Vec<Profile>,
}

/// The model of how jobs run.
enum Behaviour {
    /// One model, which the policy knows exactly: the tables of the tasks, or the model of the policy's paper.
    Own(Box<dyn Model>),
    /// The world that all policies share.
    Common {
        /// The machine as its file or its user describes it, before assumptions are added.
        described: Box<Machine>,
        repertoire: Repertoire,
        rules: Rules,
        shared: Box<SharedWorld>,
        /// The policy's belief.
        belief: Box<dyn Model>,
    },
}

/// What is said of how jobs run, before their machine has its final size.
enum How {
    Mapped(Box<dyn Model>),
    Paper,
    Common { described: Box<Machine>, repertoire: Repertoire, rules: Rules },
}

impl Input {
    /// The policy on the workload, before anything else that was asked for.
    fn scenario(&self, policy: PolicySpec) -> Scenario<'_> {
        let (prepared, budget) = (&self.prepared, self.budget.clone());
        match &self.behaviour {
            Behaviour::Own(model) => prepared.in_own_world(policy, budget, model.as_ref()),
            Behaviour::Common { shared, belief, .. } => {
                prepared.in_shared_world(policy, budget, shared, belief.as_ref())
            }
        }
    }
}

impl Arguments {
    /// Reads the workload, the machine and the budget.
    fn read(&self) -> anyhow::Result<Input> {
        let default = if self.energy.were_given() { "essc" } else { "demo" };
        let source = self.load.source(default)?;
        let named = match &self.machine {
            Some(text) => Some(wrong_kind::machine(text, &self.load.partition)?),
            None => source.needs_applications().then(Machine::cab),
        };
        let profiles = match self.tables.were_given() || source.needs_applications() {
            true => self.tables.load()?,
            false => Vec::new(),
        };
        let usual = tables::usual_times(&profiles);
        let loaded = self.load.load(&source, named.as_ref(), Some(&usual), true)?;
        let energy = self.energy.budget(&self.policy, &loaded)?;
        let load::Loaded { mut workload, intake, site, .. } = loaded;
        if let Some(path) = &self.terms {
            terms::read_into(&mut workload, path)?;
        }
        // Tasks that are mapped to machines come with the machines, and with how they run there.
        let mapped = site.and_then(|site| self.policy.on_site(&site).map(|model| (site, model)));
        let (mut prepared, how) = match mapped {
            Some((site, model)) => (self.on_site(site, workload, &source)?, How::Mapped(model)),
            None if self.world == WhichWorld::Paper => {
                (self.in_world_of_paper(named, workload)?, How::Paper)
            }
            None => self.in_common_world(named, workload, &profiles)?,
        };
        let dates = prepared.workload.dates();
        let budget = self.budget.resolve_on(&prepared.machine, &dates)?;
        if let Some(share) = self.enlarge {
            let machine = prepared.machine.enlarged(share)?;
            prepared = prepared.on(machine);
        }
        if !self.policy.wants().is_empty() && !budget.is_limited() && energy.is_none() {
            warn(&format!("{} has no power to share out without --budget", self.policy));
        }
        let behaviour = match how {
            How::Mapped(model) => Behaviour::Own(model),
            How::Paper => {
                let PreparedWorkload { machine, workload, .. } = &prepared;
                let seed = self.load.seed.unwrap_or(1);
                let model = papers::model(&self.policy, machine, workload.jobs(), seed);
                Behaviour::Own(model.with_context(|| {
                    let name = self.policy.name();
                    format!(
                        "--world paper: jobs of the paper of {name} come with tables, and no other job can run there; \
                         leave --world out, or repeat the experiments with 'busbar reproduce'"
                    )
                })?)
            }
            How::Common { described, repertoire, rules } => {
                let (policy, seed) = (&self.policy, self.load.seed.unwrap_or(1));
                let PreparedWorkload { machine, workload, .. } = &prepared;
                let shared = SharedWorld::new(machine, workload, &repertoire, &rules, seed)?;
                let shared = Box::new(shared);
                let belief = shared
                    .belief(policy, machine, workload.jobs())
                    .with_context(|| format!("{policy} cannot run"))?;
                Behaviour::Common { described, repertoire, rules, shared, belief }
            }
        };
        Ok(Input { prepared, behaviour, budget, energy, intake, profiles })
    }

    /// Tasks on the machines they come with.
    fn on_site(
        &self,
        site: Site,
        workload: Workload,
        source: &Source,
    ) -> anyhow::Result<PreparedWorkload> {
        self.refuse_what_a_site_says()?;
        let left_out = site.tables.dominated();
        if left_out > 0 && matches!(source, Source::Tasks(_)) {
            warn(&format!(
                "{left_out} entries of the tables were left out: another P-state is as fast and \
                 draws no more"
            ));
        }
        let machine = Heterogeneous::machine(&site.tables);
        let prepared = PreparedWorkload::new(machine, workload, !self.enforce_limits);
        Ok(PreparedWorkload { site: Some(site), ..prepared })
    }

    /// Jobs on a machine without assumptions, because the model of a paper is complete.
    fn in_world_of_paper(
        &self,
        named: Option<Machine>,
        workload: Workload,
    ) -> anyhow::Result<PreparedWorkload> {
        if self.rules.were_given() || self.tables.were_given() {
            bail!(
                "--allow, --believe, --guard, --applications, --switch-off and --profiles are about the common world; \
                 leave them out, or leave out --world paper"
            );
        }
        let machine = match named {
            Some(machine) => machine,
            None => machine_of(&workload)?,
        };
        let machine = machine.of_one_kind().context("--world paper")?;
        if machine.feeds.is_some() {
            bail!(
                "--world paper has no feeds; leave it out, or leave [[feed]] out of the machine file"
            );
        }
        machine.remarks.iter().for_each(|remark| warn(remark));
        Ok(PreparedWorkload::new(machine, workload, !self.enforce_limits))
    }

    /// Jobs on a machine whose missing values are assumed.
    fn in_common_world(
        &self,
        named: Option<Machine>,
        workload: Workload,
        profiles: &[Profile],
    ) -> anyhow::Result<(PreparedWorkload, How)> {
        let described = match named {
            Some(machine) => machine,
            None => machine_of(&workload)?,
        };
        described.remarks.iter().for_each(|remark| warn(remark));
        let repertoire = Repertoire::of(profiles);
        let rules = self.rules.rules(&repertoire.names(&described))?;
        let machine = repertoire.filled_in(&described)?;
        let prepared = PreparedWorkload::new(machine, workload, !self.enforce_limits);
        Ok((prepared, How::Common { described: Box::new(described), repertoire, rules }))
    }

    /// A scenario with the remaining options.
    fn completed<'a>(
        &self,
        scenario: Scenario<'a>,
        energy: Option<&energy::Chosen>,
    ) -> anyhow::Result<Scenario<'a>> {
        let guarded = scenario.budget.lowered(scenario.guard);
        if let Some(why) = prepared::leaves_nothing(&guarded, scenario.machine) {
            bail!("{why}; give more, fewer nodes (--enlarge) or a smaller --guard");
        }
        let workload = scenario.workload;
        let dates = workload.dates();
        let submitted = |job: Option<&Job>| job.map_or(Instant::ZERO, |job| job.submit);
        let [first, last] = [workload.jobs().first(), workload.jobs().last()].map(submitted);
        let tariff = self.tariff.tariff(&TariffSpec::default()).resolve(&dates, first, last)?;
        if let Some(why) = prepared::outdoor_mistake(scenario.machine, &tariff) {
            bail!("{why}");
        }
        let window = self.tariff.window.as_ref();
        let windows = window.map(|window| window.resolve(&scenario.budget, &dates));
        let windows = windows.transpose().context("--window")?;
        Ok(Scenario {
            tariff,
            windows,
            energy: energy.map(|chosen| chosen.budget),
            outages: match &self.outages {
                Some(path) => {
                    scenario.machine.clone().of_one_kind().context("--outages")?;
                    Outages::from_file(path, scenario.machine.nodes)?
                }
                None => Outages::default(),
            },
            events: match self.events {
                When::Instant => Events::Instant,
                When::Each => Events::Each,
            },
            bsld_threshold: self.bsld_threshold,
            keep_power: self.out.is_some() || self.plots.is_some(),
            ..scenario
        })
    }

    /// Writes the files of `--out` and `--plots`.
    fn write_files(
        &self,
        prepared: &PreparedWorkload,
        scenario: &Scenario<'_>,
        run: &Run,
        summary: &Summary,
        format: Format,
    ) -> anyhow::Result<()> {
        if self.out.is_none() && self.plots.is_none() {
            return Ok(());
        }
        let policy = self.policy.to_string();
        let context = scenario.context(&policy);
        let asked = match &self.budget {
            BudgetSpec::Constant(Allowance::Unlimited) => String::new(),
            budget => budget.to_string(),
        };
        // A page has room for so many jobs; pictures tell of all of them.
        let most = if self.plots.is_some() { usize::MAX } else { MOST_JOBS };
        let digest = LazyLock::new(|| Digest {
            budget: asked,
            ..Digest::with(most, &context, run, summary)
        });
        if let Some(folder) = &self.out {
            write_folder(folder, &context, run, summary, &digest, format)?;
            if let (Some(site), Some(budget)) = (&prepared.site, scenario.energy) {
                let tasks = &prepared.workload;
                let content = |out: &mut dyn Write| write_tasks(out, tasks, site, &budget, run);
                write_whole(&folder.join("tasks.csv"), &content)?;
            }
        }
        if let Some(folder) = &self.plots {
            write_pictures(folder, slice::from_ref(&digest), &[])?;
        }
        Ok(())
    }

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
        if self.world == WhichWorld::Paper {
            warn("--world paper has no effect here: the tasks come with the tables of their paper");
        }
        Ok(())
    }
}

/// Likely mistakes in the input, one sentence each.
fn notes(prepared: &PreparedWorkload, scenario: &Scenario<'_>) -> Vec<String> {
    if prepared.machine.kinds.is_some() {
        // What jobs ask of nodes of several kinds is no number of nodes.
        return limits_nothing(&prepared.machine, &scenario.budget).into_iter().collect();
    }
    let demand = Demand::of(&prepared.workload, &prepared.machine);
    let mut notes: Vec<String> =
        demand.larger_machine(&prepared.plain_machine).into_iter().collect();
    notes.extend(limits_nothing(&prepared.machine, &scenario.budget));
    // Where the tables of a site say how tasks run, the workload does not say what they need.
    let is_known = scenario.world.is_some();
    let is_met = demand.is_always_met(&prepared.machine, &scenario.budget);
    if is_known && scenario.outages.is_empty() && is_met {
        notes.push(demand.never_waits(""));
    }
    notes
}

/// Runs the scenario with a progress bar, if a person is watching.
fn with_progress_bar(scenario: &Scenario<'_>) -> Simulated {
    let goes_on = host::goes_on();
    if !host::is_watched() {
        return scenario.simulate_with(&mut |_| goes_on());
    }
    let bar = ProgressBar::new(scenario.workload.jobs().len() as u64);
    // The template is a constant; if it were wrong, the plain bar would do.
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} jobs, {eta} left") {
        bar.set_style(style);
    }
    let simulated = scenario.simulate_with(&mut |over| {
        bar.set_position(over as u64);
        goes_on()
    });
    bar.finish_and_clear();
    simulated
}

fn describe(
    arguments: &Arguments,
    answer: &Answer<'_>,
    run: &Run,
    energy_is_assumed: bool,
    calendar: Option<&Calendar>,
) -> String {
    // What is assumed of nodes is said below, all of it.
    let is_said = answer.assumed.is_empty() && answer.summary.power_is_assumed;
    let summary = Summary { power_is_assumed: is_said, ..answer.summary.clone() };
    let mut facts = summary_facts(&summary);
    if let Some(calendar) = calendar {
        let [begin, end] = [run.begin, run.end].map(|instant| calendar.shown(instant));
        facts.add("dates", format_args!("{begin} to {end}, {}", calendar.zone_name()));
    }
    if energy_is_assumed {
        facts.add(
            "assumed",
            "1.11 GJ a day for each hundred machines, as in the paper; see --energy",
        );
    }
    if let Some(bsld) = answer.plain_bsld {
        facts.add(
            "reference",
            format_args!("mean slowdown {bsld:.2} under plain EASY without a limit: bsld_lower"),
        );
    }
    answer.assumed.iter().for_each(|assumed| facts.add("assumed", assumed));
    if let Some(profiles) = answer.profiles {
        facts.add("profiles", profiles);
    }
    if let Some(intake) = answer.intake {
        intake.lines().for_each(|line| facts.add("log", line));
    }
    answer.notes.iter().for_each(|note| facts.add("note", note));
    if answer.estimates_raised > 0 {
        let raised = answer.estimates_raised;
        facts.add(
            "estimates",
            format_args!("{raised} raised to the run time (--enforce-limits kills instead)"),
        );
    }
    let long = match answer.simulate_s {
        seconds if seconds < 1.0 => format!("{:.1} ms", seconds * 1000.0),
        seconds => human_time(seconds),
    };
    facts.add("speed", format_args!("simulated in {long}, {:.0} jobs/s", answer.jobs_per_s));
    answer.refused.iter().for_each(|refused| facts.add("refused", refused));
    for folder in [&arguments.out, &arguments.plots].into_iter().flatten() {
        facts.add("written to", folder.display());
    }
    facts.text()
}
