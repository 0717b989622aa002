//! `busbar workload`: generates, shows, converts and imports workloads.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use clap::Subcommand;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::cli::tables;
use crate::job::Job;
use crate::machine::Machine;
use crate::report::write_whole;
use crate::units::Span;
use crate::workload::rmap::UsualTimes;
use crate::workload::swf;
use crate::workload::{Source, Workload};

mod convert;
mod generate;
mod import;
mod info;

pub(super) use info::look;

/// Generate, show, convert and import workloads
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write a generated workload as a log
    ///
    /// Without arguments, it prints the default of the Lublin-Feitelson model.
    Generate(generate::Arguments),
    /// Show the statistics of a workload
    Info(info::Arguments),
    /// Write the usable jobs of a log, repaired and in submit order, as a new log
    Convert(convert::Arguments),
    /// Convert accounting records of Slurm, PBS or LSF, or a published data set, to a log
    ///
    /// The format is recognised from the first line. Every record becomes a job, or is counted with the reason why
    /// not. If the records have energy or power, each job's power is written beside the log, as NAME.power.csv.
    Import(import::Arguments),
}

pub(super) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Generate(arguments) => generate::run(arguments),
        Command::Info(arguments) => info::run(arguments),
        Command::Convert(arguments) => convert::run(arguments),
        Command::Import(arguments) => import::run(arguments),
    }
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
