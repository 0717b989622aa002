//! `busbar workload import`: converts a site's accounting records to a log.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::write_records;
use crate::cli::{print, warn, wrong_kind};
use crate::report::write_whole;
use crate::workload::records::{Format, Import, Importer, Kind, Options, RecordIntake};
use crate::workload::{FileKind, power};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sacct -a -D -P -S 2024-01-01 -E 2024-02-01 -o JobIDRaw,JobID,User,Account,Partition,QOS,State,Submit,Start,End,ElapsedRaw,\
Timelimit,NNodes,AllocCPUS,AllocTRES,NodeList,Reservation,ConsumedEnergyRaw,JobName > january.txt
  busbar workload import january.txt --zone Europe/Berlin --out january.swf
  sacct -a -D --json -S 2024-01-01 -E 2024-02-01 | busbar workload import - --out january.swf
  busbar workload import /var/spool/pbs/server_priv/accounting/202401* --out january.swf.gz --anonymise")]
pub(in crate::cli) struct Arguments {
    /// Files of records, plain or gzip, or - for standard input; several files are read as one
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Output log, compressed if it ends in .gz; the power of jobs is written beside it [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Format: sacct, pbs, lsf, pm100 or fdata [default: recognised from the first line]
    #[arg(long, value_name = "F")]
    format: Option<Format>,
    /// The time zone of local times, such as Europe/Berlin [default: UTC]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
    /// Only jobs of this partition, or of several, separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    partition: Vec<String>,
    /// Write the names of the numbered users, groups, executables, queues and partitions into this file
    #[arg(long, value_name = "FILE", conflicts_with = "anonymise")]
    names: Option<PathBuf>,
    /// Number jobs from 1, and leave names of files, queues and partitions out of the log
    #[arg(long)]
    anonymise: bool,
    /// Stop at the first record that cannot be used, instead of counting it
    #[arg(long)]
    strict: bool,
    /// Print a summary as one JSON object
    #[arg(long, requires = "out")]
    json: bool,
}

/// What was found, for programs.
#[derive(Serialize)]
struct Found<'a> {
    formats: &'a [Format],
    time_zone: &'a str,
    time_zone_assumed: bool,
    unix_start_time: i64,
    jobs: usize,
    most_processors_at_once: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    most_nodes_at_once: Option<u64>,
    users: usize,
    groups: usize,
    executables: usize,
    queues: usize,
    partitions: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    power_file: Option<&'a str>,
    intake: &'a RecordIntake,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut importer = Importer::new(Options {
        format: arguments.format,
        zone: arguments.zone.clone(),
        is_strict: arguments.strict,
        partitions: arguments.partition.clone(),
        is_anonymous: arguments.anonymise,
    })?;
    for file in &arguments.files {
        let is_records = |kind| matches!(kind, FileKind::Records(_));
        // Who says what the format is gets to hear what is wrong with that.
        let is_wanted = |kind| arguments.format.is_some() || is_records(kind);
        wrong_kind::told(importer.read_path(file), file, is_wanted)?;
    }
    let import = importer.finish()?;
    let out = arguments.out.as_deref();
    let power_file = out.and_then(power::name_beside).filter(|_| import.intake().with_power > 0);
    if let (Some(out), Some(name)) = (out, &power_file) {
        write_whole(&out.with_file_name(name), &|out| import.write_power(out))?;
    } else if import.intake().with_power > 0 {
        warn("the power of jobs is left out; name a file with --out to keep it");
    }
    if let Some(path) = &arguments.names {
        write_whole(path, &|out| import.names().write(out))?;
    }
    // The log names the other files, so it comes last.
    write_records(&import.comments(power_file.as_deref()), &|| import.records(), out)?;
    if arguments.json {
        let found = found(&import, arguments.zone.is_none(), power_file.as_deref());
        return print(&(serde_json::to_string_pretty(&found)? + "\n"));
    }
    let text = describe(&import, arguments.zone.is_none(), out, power_file.as_deref());
    match out {
        Some(_) => print(&text),
        // The log is on standard output.
        None => Ok(io::stderr().write_all(text.as_bytes())?),
    }
}

fn found<'a>(import: &'a Import, is_assumed: bool, power_file: Option<&'a str>) -> Found<'a> {
    let count = |kind| import.names().count(kind);
    Found {
        formats: import.formats(),
        time_zone: import.zone(),
        time_zone_assumed: is_assumed && import.intake().local_times > 0,
        unix_start_time: import.start(),
        jobs: import.runs().len(),
        most_processors_at_once: import.most_processors(),
        most_nodes_at_once: import.most_nodes(),
        users: count(Kind::User),
        groups: count(Kind::Group),
        executables: count(Kind::Application),
        queues: count(Kind::Queue),
        partitions: count(Kind::Partition),
        power_file,
        intake: import.intake(),
    }
}

fn jobs(count: u64) -> String {
    if count == 1 { "1 job".to_owned() } else { format!("{count} jobs") }
}

fn describe(import: &Import, is_assumed: bool, out: Option<&Path>, power: Option<&str>) -> String {
    let mut text = String::new();
    let mut line = |name: &str, what: String| text += &format!("{name:>12}  {what}\n");
    let formats: Vec<&str> = import.formats().iter().map(|format| format.title()).collect();
    line("records", formats.join(", "));
    if let Some(out) = out {
        line("log", format!("{}, {}", out.display(), jobs(import.runs().len() as u64)));
    }
    if let Some(power) = power {
        line("power", format!("{power}, {}", jobs(import.intake().with_power)));
    }
    let most = match import.most_nodes() {
        Some(nodes) => format!("{} processors on {nodes} nodes", import.most_processors()),
        None => format!("{} processors", import.most_processors()),
    };
    line("machine", format!("at least {most}: the most that were busy at once"));
    if is_assumed && import.intake().local_times > 0 {
        line(
            "assumed",
            "local times are taken as UTC; name the time zone of the site with --zone".to_owned(),
        );
    }
    import.intake().lines().for_each(|counted| line("intake", counted));
    text
}
