//! `busbar workload`: generators, and a look at a log.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Args, Subcommand};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

use crate::cli::{load, print, tables};
use crate::job::Job;
use crate::machine::Machine;
use crate::report::{human_time, make_folder, write_whole};
use crate::units::Span;
use crate::workload::essc::Tasks;
use crate::workload::rmap::UsualTimes;
use crate::workload::swf::{self, Intake};
use crate::workload::tasks::FILES;
use crate::workload::{Loaded, Source, SourceDefaults, Workload};

/// Generate, look at and convert workloads
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write a generated workload as a log
    ///
    /// Without arguments: the default of the Lublin-Feitelson model, to standard output.
    Generate(Generate),
    /// Show what a workload is like
    Info(Info),
    /// Write the usable jobs of a log, repaired and in submit order, as a log again
    Convert(Convert),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar workload generate > lublin.swf
  busbar workload generate 'lublin(jobs=100000, load=1.5, sizes=any)' --out busy.swf.gz")]
pub(super) struct Generate {
    /// The generator: lublin(jobs, load, processors, seed, kind=batch|interactive|typeless,
    /// sizes=mixed|powers-of-two|any), rmap(trace=random-early|random|large|small, jobs, gaps,
    /// seed), essc(tasks, machines, hours, warm_up, seed, …), which makes a folder, or demo
    #[arg(value_name = "GENERATOR", default_value = "lublin")]
    generator: String,
    #[command(flatten)]
    tables: tables::Arguments,
    /// Where the random numbers start
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The file; .gz packs it [default: standard output]. For essc, a folder
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Info {
    #[command(flatten)]
    load: load::Arguments,
    #[command(flatten)]
    tables: tables::Arguments,
    /// A number of processors, or a .toml machine file [default: what the log's header says]
    #[arg(short, long, value_name = "M")]
    machine: Option<String>,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  busbar workload convert --workload KTH-SP2-1996-2.1-cln.swf.gz --jobs ..1000 --out small.swf")]
pub(super) struct Convert {
    #[command(flatten)]
    load: load::Arguments,
    #[command(flatten)]
    tables: tables::Arguments,
    /// The file; .gz packs it [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Generate(arguments) => generate(arguments),
        Command::Info(arguments) => info(arguments),
        Command::Convert(arguments) => convert(arguments),
    }
}

fn generate(arguments: &Generate) -> anyhow::Result<()> {
    let source: Source = arguments.generator.parse()?;
    if let Source::Log(path) = &source {
        bail!("{} is a log, not a generator; see 'busbar workload convert'", path.display());
    }
    let usual = usual(&source, &arguments.tables)?;
    let home = home(&source);
    let given = SourceDefaults {
        processors: home.as_ref().map(Machine::processors),
        processors_per_node: home.as_ref().map_or(1, |machine| machine.processors_per_node),
        seed: arguments.seed,
        usual: usual.as_ref(),
        ..SourceDefaults::default()
    };
    let Loaded { workload, site, period, .. } = source.load(&given)?;
    let workload = workload.on_computer(home.map(|machine| machine.name));
    match site {
        None => write_log(&workload, arguments.out.as_deref()),
        Some(site) => write_site(&Tasks { workload, site, period }, arguments.out.as_deref()),
    }
}

/// Writes tasks and their machines into a folder.
fn write_site(tasks: &Tasks, folder: Option<&Path>) -> anyhow::Result<()> {
    let Some(folder) = folder else {
        bail!("tasks with their machines are a folder of files; name it with --out");
    };
    make_folder(folder)?;
    let site = &tasks.site;
    let [machines, tables, utilities, arrivals] = FILES.map(|name| folder.join(name));
    write_whole(&machines, &|out| site.tables.write_machines(out))?;
    write_whole(&tables, &|out| site.tables.write_entries(out))?;
    write_whole(&utilities, &|out| site.utilities.write(out))?;
    write_whole(&arrivals, &|out| tasks.write_tasks(out))?;
    Ok(())
}

/// How long applications take, if the workload is made of them.
fn usual(source: &Source, tables: &tables::Arguments) -> anyhow::Result<Option<UsualTimes>> {
    match source.needs_applications() {
        true => Ok(Some(tables::usual_times(&tables.load()?))),
        false => Ok(None),
    }
}

/// The machine that a trace of applications is made for. A log of it names the machine, and counts its
/// processors.
fn home(source: &Source) -> Option<Machine> {
    source.needs_applications().then(Machine::cab)
}

fn convert(arguments: &Convert) -> anyhow::Result<()> {
    let source = arguments.load.source("demo")?;
    let Source::Log(path) = source else {
        let usual = usual(&source, &arguments.tables)?;
        let home = home(&source);
        let loaded = arguments.load.load(&source, home.as_ref(), usual.as_ref(), false)?;
        let workload = loaded.workload.on_computer(home.map(|machine| machine.name));
        return write_log(&workload, arguments.out.as_deref());
    };
    // A log says more of its jobs than a workload keeps, and a copy of it says as much.
    let log = swf::clean_path(&path, arguments.load.bad_records())?;
    let range = arguments.load.places(log.records.len())?;
    let counted =
        |comment: &String| ["MaxJobs:", "MaxRecords:"].iter().any(|key| comment.starts_with(key));
    let mut comments = log.comments;
    comments.retain(|comment| !counted(comment));
    comments.push(format!("MaxJobs: {}", range.len()));
    comments.push(format!("MaxRecords: {}", range.len()));
    write_records(
        &comments,
        &|| log.records[range.clone()].iter().copied(),
        arguments.out.as_deref(),
    )?;
    // The log may be on standard output, so what was done to it is told beside it.
    for line in log.intake.lines() {
        let _ = writeln!(io::stderr(), "{line}");
    }
    Ok(())
}

/// Writes a workload as a log, to a file or to standard output.
fn write_log(workload: &Workload, path: Option<&Path>) -> anyhow::Result<()> {
    let jobs = || workload.jobs().iter().zip(workload.run_times());
    let record = |(job, run_time): (&Job, &Span)| {
        let processors = i64::from(job.processors);
        let (allocated_processors, requested_processors) = (processors, processors);
        let record = swf::Record::new(job, *run_time);
        swf::Record { allocated_processors, requested_processors, ..record }
    };
    let records = || jobs().map(record);
    write_records(&swf::describe(workload), &records, path)
}

/// Writes records as a log, to a file or to standard output.
fn write_records<I: Iterator<Item = swf::Record>>(
    comments: &[String],
    records: &dyn Fn() -> I,
    path: Option<&Path>,
) -> anyhow::Result<()> {
    match path {
        None => {
            let mut out = BufWriter::with_capacity(1 << 18, io::stdout().lock());
            swf::write(&mut out, comments, records())?;
            out.flush()?;
        }
        Some(path) if path.extension().is_some_and(|ending| ending == "gz") => {
            write_whole(path, &|out| {
                let mut packed = GzEncoder::new(out, Compression::default());
                swf::write(&mut packed, comments, records())?;
                packed.finish().map(|_| ())
            })?;
        }
        Some(path) => write_whole(path, &|mut out| swf::write(&mut out, comments, records()))?,
    }
    Ok(())
}

/// What a workload is like.
#[derive(Serialize)]
struct Portrait<'a> {
    workload: &'a str,
    jobs: usize,
    processors: u32,
    span_s: f64,
    offered_load: Option<f64>,
    serial_share: f64,
    power_of_two_share: f64,
    larger_than_machine: usize,
    size: Spread,
    run_time_s: Spread,
    requested_s: Spread,
    estimates_below_run_time: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    intake: Option<&'a Intake>,
}

/// The smallest, the quartiles, the largest and the mean.
#[derive(Serialize)]
struct Spread {
    min: f64,
    lower_quartile: f64,
    median: f64,
    upper_quartile: f64,
    max: f64,
    mean: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
        Spread {
            min: at(0.0),
            lower_quartile: at(0.25),
            median: at(0.5),
            upper_quartile: at(0.75),
            max: at(1.0),
            mean: values.iter().sum::<f64>() / values.len() as f64,
        }
    }

    fn row(&self, show: impl Fn(f64) -> String) -> String {
        let [min, lower, median, upper, max, mean] =
            [self.min, self.lower_quartile, self.median, self.upper_quartile, self.max, self.mean]
                .map(show);
        format!("{min:>9} {lower:>9} {median:>9} {upper:>9} {max:>9} {mean:>10}")
    }
}

fn info(arguments: &Info) -> anyhow::Result<()> {
    let machine = arguments.machine.as_deref().map(Machine::from_text).transpose()?;
    let source = arguments.load.source("demo")?;
    let usual = usual(&source, &arguments.tables)?;
    let loaded = arguments.load.load(&source, machine.as_ref(), usual.as_ref(), false)?;
    let workload = &loaded.workload;
    let processors = machine
        .map(|machine| machine.processors())
        .or(workload.processors())
        .unwrap_or(workload.largest_job());
    let jobs = workload.jobs();
    let count = |wanted: &dyn Fn(u32) -> bool| jobs.iter().filter(|job| wanted(job.nodes)).count();
    let share = |part: usize| part as f64 / jobs.len() as f64;
    let times = jobs.iter().zip(workload.run_times());
    let portrait = Portrait {
        workload: workload.name(),
        jobs: jobs.len(),
        processors,
        span_s: match (jobs.first(), jobs.last()) {
            (Some(first), Some(last)) => last.submit.since(first.submit).secs_f64(),
            _ => 0.0,
        },
        offered_load: workload.offered_load(processors),
        serial_share: share(count(&|size| size == 1)),
        power_of_two_share: share(count(&|size| size > 1 && size.is_power_of_two())),
        larger_than_machine: count(&|size| size > processors),
        size: Spread::of(jobs.iter().map(|job| f64::from(job.nodes)).collect()),
        run_time_s: Spread::of(workload.run_times().iter().map(|run| run.secs_f64()).collect()),
        requested_s: Spread::of(jobs.iter().map(|job| job.requested.secs_f64()).collect()),
        estimates_below_run_time: times.filter(|(job, run)| job.requested < **run).count(),
        intake: loaded.intake.as_ref(),
    };
    if arguments.json {
        print(&(serde_json::to_string_pretty(&portrait)? + "\n"))
    } else {
        print(&describe(&portrait))
    }
}

fn describe(portrait: &Portrait<'_>) -> String {
    let p = portrait;
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let mut text = format!(
        "    workload  {}\n        jobs  {} over {}\n     machine  {} processors, offered load {}\n\
         \x20      sizes  {} serial, {} other powers of two, {} larger than the machine\n",
        p.workload,
        p.jobs,
        human_time(p.span_s),
        p.processors,
        p.offered_load.map_or("-".to_owned(), |load| format!("{load:.3}")),
        percent(p.serial_share),
        percent(p.power_of_two_share),
        p.larger_than_machine,
    );
    text += &format!(
        "   estimates  {} below the run time\n\n{:>12}  {:>9} {:>9} {:>9} {:>9} {:>9} {:>10}\n",
        p.estimates_below_run_time, "", "min", "quarter", "median", "quarter", "max", "mean"
    );
    text += &format!("{:>12}  {}\n", "processors", p.size.row(|size| format!("{size:.1}")));
    text += &format!("{:>12}  {}\n", "run time", p.run_time_s.row(human_time));
    text += &format!("{:>12}  {}\n", "requested", p.requested_s.row(human_time));
    for line in p.intake.iter().flat_map(|intake| intake.lines()) {
        text += &format!("{:>12}  {line}\n", "log");
    }
    text
}
