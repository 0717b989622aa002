//! `busbar workload convert`: the usable jobs of a log as a log again.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::{home, usual, write_log, write_records};
use crate::cli::{load, tables, warn};
use crate::report::write_whole;
use crate::workload::power::{self, write_power};
use crate::workload::swf::{self, CleanLog};
use crate::workload::{MeasuredPower, Selection, Source, Workload};

#[derive(Debug, Args)]
#[command(after_help = "Example:
  busbar workload convert KTH-SP2-1996-2.1-cln.swf.gz --jobs ..1000 --out small.swf")]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    load: load::Arguments,
    #[command(flatten)]
    tables: tables::Arguments,
    /// Output file, compressed if it ends in .gz [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let source = arguments.load.source("demo")?;
    let Source::Log(path) = source else {
        let usual = usual(&source, &arguments.tables)?;
        let home = home(&source);
        let loaded = arguments.load.load(&source, home.as_ref(), usual.as_ref(), false)?;
        let workload = loaded.workload.on_computer(home.map(|machine| machine.name));
        return write_log(&workload, arguments.out.as_deref());
    };
    // A log says more of its jobs than a workload keeps, and a copy of it says as much.
    let mut log = swf::clean_path(&path, arguments.load.bad_records())?;
    let partitions = &arguments.load.partition;
    let with_power = with_power(&log, &path, partitions)?;
    let mut replaced = vec!["MaxJobs", "MaxRecords", swf::POWER_KEY];
    let mut processors = None;
    if !partitions.is_empty() {
        // What is wrong with them is told as everywhere.
        let workload = log.log(&path.display().to_string())?.workload.in_partitions(partitions)?;
        let names = &log.header.partitions;
        let name_of = |number: i64| {
            let named = names.iter().find(|(known, _)| i64::from(*known) == number);
            named.map_or_else(|| number.to_string(), |(_, name)| name.clone())
        };
        log.records.retain(|record| {
            record.partition > 0 && partitions.contains(&name_of(record.partition))
        });
        let left_out = workload.selection().map_or(0, Selection::left_out);
        // What the header says of the machine is about all of it.
        if left_out > 0 {
            replaced.extend(["MaxProcs", "MaxNodes"]);
            processors = workload.processors();
        }
        let _ = writeln!(io::stderr(), "left out, in other partitions or none: {left_out}");
    }
    let range = arguments.load.places(log.records.len())?;
    let powers: Option<Vec<(u64, MeasuredPower)>> = with_power.map(|mut workload| {
        workload.slice(range.clone());
        workload.powers().map(|(job, power)| (job.number, power)).collect()
    });
    let out = arguments.out.as_deref();
    let power_file = powers.as_ref().zip(out).and_then(|(_, out)| power::name_beside(out));
    let is_replaced = |comment: &String| {
        comment.split_once(':').is_some_and(|(key, _)| replaced.contains(&key.trim()))
    };
    let mut comments = log.header.comments;
    comments.retain(|comment| !is_replaced(comment));
    comments.push(format!("MaxJobs: {}", range.len()));
    comments.push(format!("MaxRecords: {}", range.len()));
    comments.extend(processors.map(|processors| format!("MaxProcs: {processors}")));
    comments.extend(power_file.iter().map(|name| format!("{}: {name}", swf::POWER_KEY)));
    match (&powers, out, &power_file) {
        (Some(powers), Some(out), Some(name)) => {
            let content = |out: &mut dyn Write| write_power(out, powers.iter().copied());
            write_whole(&out.with_file_name(name), &content)?;
        }
        (Some(_), ..) => warn("the power of jobs is left out; name a file with --out to keep it"),
        _ => {}
    }
    write_records(&comments, &|| log.records[range.clone()].iter().copied(), out)?;
    // The log may be on standard output, so what was done to it is told beside it.
    for line in log.intake.lines() {
        let _ = writeln!(io::stderr(), "{line}");
    }
    Ok(())
}

/// The jobs in these partitions with their power, if the log comes with it.
fn with_power(
    log: &CleanLog,
    path: &Path,
    partitions: &[String],
) -> anyhow::Result<Option<Workload>> {
    if log.header.power_file.is_none() {
        return Ok(None);
    }
    let mut log = log.log(&path.display().to_string())?;
    swf::add_power(&mut log, path)?;
    Ok(Some(log.workload.in_partitions(partitions)?))
}
