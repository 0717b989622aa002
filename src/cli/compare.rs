//! `busbar compare`: policies × budgets × workloads × seeds, ranked.

use std::io::IsTerminal;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant as Clock;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value as Json;

use crate::calendar::Calendar;
use crate::cli::listed::{Budgets, Listed};
use crate::cli::{host, keeping, load, print, rules, sweep, tables, tariff, warn, wrong_kind};
use crate::experiment::assumptions::assumptions;
use crate::experiment::gains::{self, Gain, Gains, Value};
use crate::experiment::run::{Part, Results};
use crate::experiment::stream::Stream;
use crate::experiment::{
    CheckedExperiment, Equipment, Experiment, Figure, Load, Named, Place, file, results, table,
};
use crate::policy::PolicySpec;
use crate::profile::Profile;
use crate::report::html::{Aside, Beside, page_with};
use crate::report::{
    Course, Palette, Picture, Table, Versioned, course, human_time, make_folder, none_ran,
    write_pictures, write_whole,
};
use crate::units::Span;
use crate::workload::{FileKind, parse_places};

/// Compare policies under several budgets, and rank them
///
/// Without arguments, it compares all policies on the built-in workload under three budgets. Results are cached, so
/// an interrupted comparison continues where it stopped.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar compare
  busbar compare --policy easy-power,pb-guided --budget 50%,70%
  busbar compare --workload 'lublin(jobs=5000, load=0.9)' --seeds 10 --rank-by slowdown
  busbar compare log.swf.gz --machine cluster.toml --budget 1.2MW --out results/
  busbar compare experiment.toml --json
  busbar compare experiment.toml --cache results/ --shard 2/8

The keys of an experiment file are: policies, budgets, workloads, seeds, machine, nodes,
profiles, allow, believe, guard, applications, outages, start, price, carbon,
demand_charge, window, partitions, jobs, enforce_limits, bsld_threshold, rank_by,
title. Options override them. docs/reference/experiments.md describes them.")]
pub(super) struct Arguments {
    /// An experiment file (.toml), or workloads: logs (.swf, .swf.gz) or accounting records of a batch system
    ///
    /// Records are the output of sacct with -P or --json, or files of PBS or LSF. The format is recognised from the
    /// content.
    #[arg(value_name = "FILE")]
    experiment: Vec<String>,

    /// Policies to compare, separated by commas; may be repeated [default: all built-in ones]
    ///
    /// 'external(./mine)' is a program in any language.
    #[arg(short, long, value_name = "P")]
    policy: Vec<Listed<PolicySpec>>,

    /// Power budgets, separated by commas: watts (6500W, 4.2MW), shares of the machine's maximum (80%), rules, files,
    /// or none; may be repeated [default: 60%, 80%, 100%]
    ///
    /// Rules are by the calendar, such as 'weekdays 14:00-18:00 nov..feb: 80%, else 100%'. A file has rules, or
    /// time,budget rows (.csv).
    #[arg(short, long, value_name = "B", allow_hyphen_values = true)]
    budget: Vec<Budgets>,

    /// Workloads, separated by commas: logs, records of a batch system, generators, or demo; may be repeated
    /// [default: demo]
    ///
    /// Generators are 'lublin(jobs=10000, load=0.85)' and 'rmap(trace=random)'.
    #[arg(short, long, value_name = "SRC")]
    workload: Vec<String>,

    /// Repeat with seeds 1 to N; report means and standard deviations [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,

    /// A number of processors, a .toml machine file, a .csv file of curves, cab, or catalyst [default: from the
    /// workload's header]
    ///
    /// cab has 64 nodes of two sockets; catalyst has 600 processors with manufacturing variation.
    #[arg(short, long, value_name = "M", allow_hyphen_values = true)]
    machine: Option<String>,

    /// Change the number of nodes under the same watts; or several, separated by commas; may be repeated
    #[arg(long, value_name = "N", value_delimiter = ',')]
    nodes: Vec<u32>,

    #[command(flatten)]
    rules: rules::Arguments,

    #[command(flatten)]
    tables: tables::Arguments,

    /// Node failures: a .csv file of node,down,up rows
    #[arg(long, value_name = "FILE", help_heading = "Simulation")]
    outages: Option<PathBuf>,

    /// Date and time zone at which the workloads start, such as '2026-01-01 00:00 Europe/Berlin' [default: from a
    /// log's header]
    ///
    /// Budgets and prices by the calendar need it.
    #[arg(long, value_name = "WHEN", help_heading = "Workload")]
    start: Option<Calendar>,

    /// Only jobs of this partition of the logs, or of several, separated by commas
    ///
    /// If the machine file has partitions, only this one is simulated.
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = "Workload")]
    partition: Vec<String>,

    /// Only these jobs, by position in submit order: 20000..25000, 5000.., ..100
    #[arg(long, value_name = "A..B", value_parser = parse_places, help_heading = "Workload")]
    jobs: Option<Range<usize>>,

    /// End jobs at their requested time limit
    ///
    /// Without this option, a time limit below the run time is raised to the run time.
    #[arg(long, help_heading = "Simulation")]
    enforce_limits: bool,

    #[command(flatten)]
    tariff: tariff::Arguments,

    /// Threshold of the bounded slowdown, in seconds or with a unit (10min) [default: 600]
    #[arg(long, value_name = "S", value_parser = file::parse_threshold, allow_hyphen_values = true, help_heading = "Results")]
    bsld_threshold: Option<Span>,

    /// Rank policies that complete equally many jobs by this metric [default: turnaround]
    ///
    /// The metrics are turnaround, wait, p99_wait, max_wait, slowdown, makespan, energy, utilisation, cost and
    /// carbon.
    #[arg(long, value_name = "FIGURE", help_heading = "Results")]
    rank_by: Option<Figure>,

    /// Skip the tables of freedoms and knowledge, which need extra runs
    #[arg(long, help_heading = "Results")]
    brief: bool,

    #[command(flatten)]
    keeping: keeping::Arguments,

    #[command(flatten)]
    sweep: sweep::Arguments,

    /// Print one JSON object
    #[arg(long, help_heading = "Results")]
    json: bool,

    /// Write report.html, results.csv and experiment.toml into this folder
    #[arg(short, long, value_name = "DIR", help_heading = "Results")]
    out: Option<PathBuf>,

    /// Write the report's charts into this folder, as SVG files
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    plots: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if let Some(part) = arguments.sweep.part()? {
        return make_part(arguments, part);
    }
    let compared = Compared::new(arguments)?;
    if arguments.json {
        print(&compared.json()?)?;
    }
    compared.checked()?;
    match compared.none_ran() {
        Some(why) => bail!("{why}"),
        None => Ok(()),
    }
}

/// A finished comparison: its text has been printed, unless `--json` was given.
pub(super) struct Compared {
    /// The answer as JSON.
    pub(super) answer: Json,
    /// A row for each run.
    pub(super) results: Table<'static>,
    some_ran: bool,
    some_job_ran: bool,
}

impl Compared {
    /// Compares, and writes the files.
    pub(super) fn new(arguments: &Arguments) -> anyhow::Result<Self> {
        let began = Clock::now();
        let mut experiment = arguments.experiment()?;
        let profiles = tables::of_experiment(&mut experiment)?;
        let checked = arguments.check(&experiment, &profiles)?;
        let draws = arguments.draws();
        if arguments.sweep.is_on_slurm() {
            let folder = arguments.keeping.folder();
            let folder =
                folder.context("--slurm needs a folder for results; name one with --cache")?;
            arguments.sweep.run(&folder)?;
        }
        let results = match arguments.json {
            true => arguments.keeping.run(&checked, draws, &|_| ())?,
            false => shown_table_by_table(&checked, arguments, draws)?,
        };
        let gains = match arguments.brief {
            true => Vec::new(),
            false => gains::gains(&checked, |derived| {
                let checked = CheckedExperiment::new(derived, &profiles)?;
                anyhow::Ok(arguments.keeping.run(&checked, false, &|_| ())?.tried)
            })?,
        };
        if let Some(folder) = &arguments.out {
            write_folder(folder, &checked, &results, &gains)?;
        }
        if let Some(folder) = &arguments.plots {
            let digests = checked.digests(&results);
            let palette = Palette::of(&digests);
            let more: Vec<Picture> =
                gains.iter().map(|each| picture(&checked, each, &palette)).collect();
            write_pictures(folder, &digests, &more)?;
        }
        if !arguments.json {
            for each in &gains {
                print(&each.freedoms(&checked).text())?;
                print(&each.beliefs(&checked).text())?;
            }
            print(&describe(&checked, &results, arguments, began))?;
        }
        let rankings = checked.rankings(&results.tried);
        let mut answer = results::answer(&checked, &rankings, &results.tried);
        answer["gains"] = gains.iter().map(|each| results::gains(&checked, each)).collect();
        answer["reused"] = results.reused().into();
        answer["wall_s"] = began.elapsed().as_secs_f64().into();
        let mut summaries = results.tried.iter().filter_map(|tried| tried.outcome.summary());
        Ok(Compared {
            answer,
            results: results::table(&checked, &results.tried),
            some_ran: summaries.clone().next().is_some(),
            some_job_ran: summaries.any(|summary| none_ran(summary).is_none()),
        })
    }

    /// The JSON answer as text.
    pub(super) fn json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(&Versioned::new(&self.answer))? + "\n")
    }

    /// Whether anything can be compared.
    pub(super) fn checked(&self) -> anyhow::Result<()> {
        match self.some_ran {
            true => Ok(()),
            false => bail!("no policy could run; the reasons are above"),
        }
    }

    /// A message if no job ran under any policy. The answer is printed anyway.
    pub(super) fn none_ran(&self) -> Option<&'static str> {
        let why = "no job ran under any policy and budget; give more power, or a larger machine";
        (self.some_ran && !self.some_job_ran).then_some(why)
    }
}

/// Makes some of the runs, only for the cache.
fn make_part(arguments: &Arguments, part: Part) -> anyhow::Result<()> {
    let (keeping, began) = (&arguments.keeping, Clock::now());
    let folder = keeping.folder();
    let folder = folder.context("--shard needs a folder for results; name one with --cache")?;
    let mut experiment = arguments.experiment()?;
    let profiles = tables::of_experiment(&mut experiment)?;
    let checked = arguments.check(&experiment, &profiles)?;
    for policy in checked.experiment.policies.iter().filter(|policy| !policy.is_fixed()) {
        warn(&format!(
            "the runs of {policy} cannot be cached, because its program may decide differently next time; the \
            comparison makes them itself"
        ));
    }
    let (mut made, mut known) = (0, 0);
    let mut run = |checked: &CheckedExperiment<'_>, draws| {
        let results = keeping.run_part(checked, draws, Some(part), &|_| ())?;
        if let Some(error) = &results.not_kept {
            bail!(
                "the results of this shard could not be written to {}: {error}",
                folder.display()
            );
        }
        let ran = results.tried.iter().filter(|tried| tried.outcome.summary().is_some()).count();
        known += results.reused();
        made += ran - results.reused();
        anyhow::Ok(results.tried)
    };
    run(&checked, arguments.draws())?;
    if !arguments.brief {
        gains::gains(&checked, |derived| run(&CheckedExperiment::new(derived, &profiles)?, false))?;
    }
    let (number, of) = (part.place + 1, part.of);
    let took = human_time(began.elapsed().as_secs_f64());
    match arguments.json {
        true => print(
            &(serde_json::to_string_pretty(&Versioned::new(serde_json::json!({
                "shard": number, "shards": of, "made": made, "reused": known, "cache": folder,
            })))?
                + "\n"),
        ),
        false => print(&format!(
            "shard {number}/{of}: {made} runs made in {took}, {known} were in the cache; results are in {}\n",
            folder.display()
        )),
    }
}

impl Arguments {
    /// Whether charts are drawn.
    fn draws(&self) -> bool {
        self.out.is_some() || self.plots.is_some()
    }

    /// The experiment with everything looked up that it names, and with folders for what comes of it.
    fn check<'a>(
        &self,
        experiment: &'a Experiment,
        profiles: &'a [Profile],
    ) -> anyhow::Result<CheckedExperiment<'a>> {
        if let Some(named) = &experiment.machine {
            named.value.machine.remarks.iter().for_each(|remark| warn(remark));
        }
        let checked = CheckedExperiment::new(experiment, profiles)?;
        for folder in [&self.out, &self.plots].into_iter().flatten() {
            // Now rather than after a long run.
            make_folder(folder)?;
        }
        Ok(checked)
    }

    /// The positional files: one experiment, or workloads.
    fn files(&self) -> anyhow::Result<Experiment> {
        let usual = || Experiment { partitions: self.partition.clone(), ..Experiment::default() };
        let files = &self.experiment[..];
        if let Some(path) = files.iter().find(|text| is_experiment(Path::new(text))) {
            if files.len() > 1 {
                bail!(
                    "{path} is an experiment, which names its workloads itself; give no other file"
                );
            }
            return Ok(file::read_with(Path::new(path), &self.partition)?);
        }
        if files.is_empty() {
            return Ok(usual());
        }
        if !self.workload.is_empty() {
            bail!("both FILE and --workload name workloads; use one of them");
        }
        let loads = files.iter().map(|text| load::named_load(Some(text), None));
        Ok(Experiment { workloads: loads.collect::<Result<_, _>>()?, ..usual() })
    }

    /// The experiment of the file, overridden by the options.
    fn experiment(&self) -> anyhow::Result<Experiment> {
        let mut experiment = self.files()?;
        if !self.policy.is_empty() {
            experiment.policies = Listed::joined(&self.policy).collect();
        }
        if !self.budget.is_empty() {
            let budgets = self.budget.iter().flat_map(|budgets| budgets.0.clone());
            experiment.budgets =
                budgets.map(|budget| Named::by_option("--budget", budget)).collect();
        }
        if !self.workload.is_empty() {
            let read = |text: &String| text.parse::<Listed<Load>>();
            let workloads = self.workload.iter().map(read).collect::<Result<Vec<_>, _>>();
            let named = |workloads: Vec<Listed<Load>>| {
                Listed::joined(&workloads)
                    .map(|load| Named::by_option("--workload", load))
                    .collect()
            };
            experiment.workloads =
                workloads.map(named).map_err(|why| Place::Option("--workload").error(why))?;
        }
        if let Some(count) = self.seeds {
            experiment.seeds = (1..=count).collect();
        }
        if let Some(text) = &self.machine {
            let machine = equipment(text, &experiment.partitions)?;
            experiment.machine = Some(Named::by_option("--machine", machine));
        }
        if !self.nodes.is_empty() {
            experiment.nodes =
                self.nodes.iter().map(|nodes| Named::by_option("--nodes", *nodes)).collect();
        }
        if let Some(name) = self.tables.given() {
            experiment.profiles = Some(name.to_owned());
        }
        self.rules.apply_to(&mut experiment)?;
        if let Some(path) = &self.outages {
            experiment.outages = Some(Named::by_option("--outages", path.clone()));
        }
        experiment.tariff = self.tariff.tariff(&experiment.tariff);
        if let Some(window) = &self.tariff.window {
            experiment.window = Some(window.clone());
        }
        if let Some(start) = &self.start {
            experiment.start = Some(start.clone());
        }
        experiment.jobs = self.jobs.clone().or(experiment.jobs);
        experiment.enforce_limits |= self.enforce_limits;
        experiment.bsld_threshold = self.bsld_threshold.unwrap_or(experiment.bsld_threshold);
        experiment.rank_by = self.rank_by.unwrap_or(experiment.rank_by);
        Ok(experiment)
    }
}

/// Whether a file is an experiment. A missing file is judged by its name, and TOML with unknown keys counts as an
/// experiment, so that the error names the mistake.
fn is_experiment(path: &Path) -> bool {
    match FileKind::of(path) {
        Ok(kind) => matches!(kind, Some(FileKind::Experiment | FileKind::Toml)),
        Err(_) => path.extension().is_some_and(|ending| ending == "toml"),
    }
}

/// The machine that a text names, or the part of it that these partitions are.
pub(super) fn equipment(text: &str, partitions: &[String]) -> anyhow::Result<Equipment> {
    let machine = wrong_kind::machine(text, partitions).context("--machine")?;
    Ok(Equipment { text: text.to_owned(), machine })
}

fn write_folder(
    folder: &Path,
    checked: &CheckedExperiment<'_>,
    results: &Results,
    gains: &[Gains],
) -> anyhow::Result<()> {
    write_whole(&folder.join("results.csv"), &|out| {
        results::write_csv(out, checked, &results.tried)
    })?;
    let title = checked.experiment.title.as_deref().unwrap_or("Policies compared");
    let digests = checked.digests(results);
    let beside = beside(checked, results, gains, &Palette::of(&digests));
    let page = page_with(title, &digests, &beside);
    write_whole(&folder.join("report.html"), &|out| out.write_all(page.as_bytes()))?;
    let text = file::write(checked.experiment);
    write_whole(&folder.join("experiment.toml"), &|out| out.write_all(text.as_bytes()))?;
    Ok(())
}

/// The notes of the page, for example that its charts are of the first seed.
fn beside(
    checked: &CheckedExperiment<'_>,
    results: &Results,
    gains: &[Gains],
    palette: &Palette,
) -> Beside {
    let seeds = &checked.experiment.seeds;
    let mut notes = Vec::new();
    if let [first, _, ..] = seeds[..] {
        let count = seeds.len();
        notes.push(format!(
            "Rankings are over {count} seeds; charts, tables of waits and all figures are of seed \
             {first}. The figures of every seed are in results.csv."
        ));
    }
    notes.extend(checked.notes().iter().map(|note| format!("Note: {note}.")));
    let assumed = assumptions(checked);
    notes.extend(assumed.iter().map(|assumption| format!("Assumed: {assumption}.")));
    let ranked_by = checked.experiment.rank_by.ranked_by();
    let tables = gains.iter().flat_map(|each| {
        let picture = Some(picture(checked, each, palette).svg);
        [Aside { picture, ..each.freedoms(checked) }, each.beliefs(checked)]
    });
    let (absent, other_seeds) = (checked.absent(results), checked.other_seeds(results));
    Beside { absent, ranked_by, other_seeds, notes, tables: tables.collect(), ..Beside::default() }
}

/// A chart of the effect of each freedom.
fn picture(checked: &CheckedExperiment<'_>, gains: &Gains, palette: &Palette) -> Picture {
    let by = checked.experiment.rank_by;
    // Who leaves jobs undone that others complete has an easier time: that is no gain, and not drawn.
    let values = || gains.rows.iter().flat_map(Gain::course).flatten();
    let fewest = values().map(|value| value.undone).min().unwrap_or(0);
    let comparable = |value: Option<Value>| value.filter(|value| value.undone == fewest)?.figure;
    let courses: Vec<Vec<Option<f64>>> =
        gains.rows.iter().map(|gain| gain.course().into_iter().map(comparable).collect()).collect();
    let most = courses.iter().flatten().flatten().copied().fold(0.0, f64::max);
    let (unit, size) = table::unit(by, most);
    let names = gains.rows.iter().map(|gain| checked.experiment.policies[gain.policy].to_string());
    let scaled =
        |values: Vec<Option<f64>>| values.into_iter().map(|v| v.map(|v| v / size)).collect();
    let table = gains.freedoms(checked);
    let svg = course(&Course {
        title: &table.title,
        up: &if unit.is_empty() { by.to_string() } else { format!("{by} ({unit})") },
        steps: &table.headings[1..],
        lines: names.zip(courses.into_iter().map(scaled)).collect(),
        palette,
    });
    let name = match gains.workload {
        0 => "freedoms.svg".to_owned(),
        other => format!("freedoms-{}.svg", other + 1),
    };
    Picture { name, svg }
}

/// Runs the experiment, and prints each table as soon as it is complete.
fn shown_table_by_table(
    checked: &CheckedExperiment<'_>,
    arguments: &Arguments,
    draws: bool,
) -> anyhow::Result<Results> {
    if let Some(title) = &checked.experiment.title {
        print(&format!("{title}\n\n"))?;
    }
    let emphasis: fn(&str) -> String = match is_coloured() {
        true => |line| format!("\x1b[1m{line}\x1b[0m"),
        false => str::to_owned,
    };
    let is_hosted = host::is_there();
    let shown = Mutex::new((Stream::of(checked, emphasis), Ok(()), String::new()));
    let results = arguments.keeping.run(checked, draws, &|tried| {
        let mut shown = shown.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (stream, printed, kept) = &mut *shown;
        let text = stream.hear(tried);
        if is_hosted {
            // A host listens on its own thread alone.
            kept.push_str(&text);
        } else if !text.is_empty() && printed.is_ok() {
            *printed = print(&text);
        }
    })?;
    let (_, printed, kept) = shown.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    printed?;
    print(&kept)?;
    Ok(results)
}

/// The text below the tables.
fn describe(
    checked: &CheckedExperiment<'_>,
    results: &Results,
    arguments: &Arguments,
    began: Clock,
) -> String {
    let rankings = checked.rankings(&results.tried);
    let mut text = table::reasons(checked, &rankings);
    text += &table::legend(checked);
    // What could not run is no run.
    let all = results.tried.iter().filter(|tried| tried.outcome.summary().is_some()).count();
    let reused = results.reused();
    let reused = match reused {
        0 => String::new(),
        reused => format!(", {reused} of them from the cache"),
    };
    for note in checked.notes() {
        text += &format!("note: {note}\n");
    }
    for assumption in assumptions(checked) {
        text += &format!("assumed: {assumption}\n");
    }
    let took = human_time(began.elapsed().as_secs_f64());
    let runs = if all == 1 { "run" } else { "runs" };
    text += &format!("{all} {runs}{reused}; took {took}\n");
    if let Some(folder) = &arguments.out {
        text += &format!("written to {}\n", folder.display());
    }
    text
}

/// Whether standard output is a terminal that shows bold letters, and nobody minds
/// (<https://no-color.org>).
fn is_coloured() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    std::io::stdout().is_terminal() && !host::is_there() && !is_set("NO_COLOR") && !is_dumb
}
