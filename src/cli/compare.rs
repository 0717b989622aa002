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
/// Without arguments: the built-in workload under all policies and three budgets. Results are kept,
/// so that a comparison that was interrupted goes on where it stopped.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar compare
  busbar compare --policy easy-power,pb-guided --budget 50%,70%
  busbar compare --workload 'lublin(jobs=5000, load=0.9)' --seeds 10 --rank-by slowdown
  busbar compare log.swf.gz --machine cluster.toml --budget 1.2MW --out results/
  busbar compare experiment.toml --json
  busbar compare experiment.toml --cache results/ --shard 2/8

An experiment file lists what the options say: policies, budgets, workloads, seeds, machine, nodes,
profiles, allow, believe, guard, applications, outages, start, price, carbon,
demand_charge, window, partitions, jobs, enforce_limits, bsld_threshold, rank_by,
title. An option takes the place of the key of the file. docs/reference/experiments.md has more.")]
pub(super) struct Arguments {
    /// A .toml file that says what is to be compared; or the workload, or several: logs (.swf, .swf.gz), records of a
    /// batch system (what sacct prints with -P or --json, of PBS, of LSF). Files are known by what they hold
    #[arg(value_name = "FILE")]
    experiment: Vec<String>,

    /// A policy to compare, or several with commas between them; may be repeated. 'external(./mine)' is a
    /// program in any language [default: all that are built in]
    #[arg(short, long, value_name = "P")]
    policy: Vec<Listed<PolicySpec>>,

    /// Watts (6500W, 4.2MW), a share of the machine's maximum (80%), rules by the calendar ('weekdays
    /// 14:00-18:00 nov..feb: 80%, else 100%'), a file of rules or of time,budget rows (.csv), or none; or several
    /// with commas between them; may be repeated [default: 60%, 80%, 100%]
    #[arg(short, long, value_name = "B", allow_hyphen_values = true)]
    budget: Vec<Budgets>,

    /// A log (.swf, .swf.gz), records of a batch system, 'lublin(jobs=10000, load=0.85)', 'rmap(trace=random)', or
    /// demo; or several with commas between them; may be repeated [default: demo]
    #[arg(short, long, value_name = "SRC")]
    workload: Vec<String>,

    /// Repeat with seeds 1 to N; report means and standard deviations [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,

    /// A number of processors, cab (64 nodes of two sockets), catalyst (600 processors that are not
    /// alike), a .toml machine file, or a .csv file of curves [default: the machine named in the workload's header]
    #[arg(short, long, value_name = "M", allow_hyphen_values = true)]
    machine: Option<String>,

    /// The machine with this number of nodes, under the same watts; or several with commas between
    /// them; may be repeated
    #[arg(long, value_name = "N", value_delimiter = ',')]
    nodes: Vec<u32>,

    #[command(flatten)]
    rules: rules::Arguments,

    #[command(flatten)]
    tables: tables::Arguments,

    #[command(flatten)]
    tariff: tariff::Arguments,

    /// Nodes that fail: a .csv file of node,down,up rows
    #[arg(long, value_name = "FILE")]
    outages: Option<PathBuf>,

    /// The date, time and time zone at which the workloads start, for budgets and prices by the calendar:
    /// '2026-01-01 00:00 Europe/Berlin' [default: what a log's header says]
    #[arg(long, value_name = "WHEN")]
    start: Option<Calendar>,

    /// Only jobs of this partition of the logs, or of several with commas between them; of a machine file with
    /// partitions, that part is the machine
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    partition: Vec<String>,

    /// Only these jobs, by their place in submit order: 20000..25000, 5000.., ..100
    #[arg(long, value_name = "A..B", value_parser = parse_places)]
    jobs: Option<Range<usize>>,

    /// End jobs at the time they asked for; without this an estimate below the run time counts
    /// as equal to it
    #[arg(long)]
    enforce_limits: bool,

    /// Threshold of the bounded slowdown, in seconds or with its unit (10min) [default: 600]
    #[arg(long, value_name = "S", value_parser = file::parse_threshold, allow_hyphen_values = true)]
    bsld_threshold: Option<Span>,

    /// The figure that decides among policies that complete as many jobs: turnaround, wait, p99_wait,
    /// max_wait, slowdown, makespan, energy, utilisation, cost, carbon [default: turnaround]
    #[arg(long, value_name = "FIGURE")]
    rank_by: Option<Figure>,

    /// Leave out what freedoms and knowledge buy, which takes some more runs
    #[arg(long)]
    brief: bool,

    #[command(flatten)]
    keeping: keeping::Arguments,

    #[command(flatten)]
    sweep: sweep::Arguments,

    /// One JSON object on standard output
    #[arg(long)]
    json: bool,

    /// Write report.html, results.csv and experiment.toml into this folder
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Write the pictures of the report into this folder, as SVG files
    #[arg(long, value_name = "DIR")]
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

/// A comparison that is over: its text has been printed, unless `--json` was asked for.
pub(super) struct Compared {
    /// The answer for programs.
    pub(super) answer: Json,
    /// A row for each run.
    pub(super) results: Table<'static>,
    some_ran: bool,
    some_job_ran: bool,
}

impl Compared {
    /// Does what was asked for, files included.
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

    /// The answer for programs, as text.
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

    /// That no job ran, whichever policy decided, if it is so. The answer is there all the same.
    pub(super) fn none_ran(&self) -> Option<&'static str> {
        let why = "no job ran under any policy and budget; give more power, or a larger machine";
        (self.some_ran && !self.some_job_ran).then_some(why)
    }
}

/// Makes a part of the runs, for the cache alone.
fn make_part(arguments: &Arguments, part: Part) -> anyhow::Result<()> {
    let (keeping, began) = (&arguments.keeping, Clock::now());
    let folder = keeping.folder();
    let folder = folder.context("--shard needs a folder for results; name one with --cache")?;
    let mut experiment = arguments.experiment()?;
    let profiles = tables::of_experiment(&mut experiment)?;
    let checked = arguments.check(&experiment, &profiles)?;
    for policy in checked.experiment.policies.iter().filter(|policy| !policy.is_fixed()) {
        warn(&format!(
            "the runs of {policy} cannot be kept, as another time its program may decide otherwise; \
             the comparison makes them itself"
        ));
    }
    let (mut made, mut known) = (0, 0);
    let mut run = |checked: &CheckedExperiment<'_>, draws| {
        let results = keeping.run_part(checked, draws, Some(part), &|_| ())?;
        if let Some(error) = &results.not_kept {
            bail!("the results of this shard are not kept in {}: {error}", folder.display());
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
            "shard {number}/{of}: {made} runs made in {took}, {known} were there; results are in {}\n",
            folder.display()
        )),
    }
}

impl Arguments {
    /// Whether pictures are drawn.
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

    /// What the files without an option say: one experiment, or workloads.
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
            bail!("both FILE and --workload name workloads; give one of them");
        }
        let loads = files.iter().map(|text| load::named_load(Some(text), None));
        Ok(Experiment { workloads: loads.collect::<Result<_, _>>()?, ..usual() })
    }

    /// What is to be compared: what the file says, and instead of it what the options say.
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
        self.rules.apply_to(&mut experiment);
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

/// Whether a file says what is to be compared. One that is not there is looked for by its name alone, and TOML with
/// unknown keys is read, so that the mistake is told.
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

/// What the page says beside the runs: they are those of the first seed.
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

/// What policies make of one freedom more at a time.
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

/// What is said below the tables.
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
        reused => format!(", {reused} of them known from before"),
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
