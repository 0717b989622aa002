//! `busbar machine import`: converts runs on many processors to a file of curves.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::{print, warn};
use crate::profile::counted;
use crate::report::write_whole;
use crate::variation::csv::{self, Table};
use crate::variation::runs::{Runs, Saying};

/// Convert a table of runs on many processors to a file of curves
///
/// The first line of the table names the columns: processor, application, cap_w, time_s or gips, power_w, or the
/// names that published tables use for these. A time is converted to a speed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar machine import runs.csv --set cap=300W --out gpus.csv
  busbar machine import runs.csv --column processor=host --column power=package_w --out machine.csv")]
pub(in crate::cli) struct Arguments {
    /// The table of runs
    #[arg(value_name = "FILE.csv")]
    table: PathBuf,

    /// Name of a column in this table: time=elapsed_ms; names that end in _ms are in milliseconds
    #[arg(long = "column", value_name = "FIELD=NAME")]
    columns: Vec<Saying>,

    /// A value that all runs share: cap=300W
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    constants: Vec<Saying>,

    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { table, columns, constants, out } = arguments;
    let runs = Runs::read(table, columns, constants)?;
    let write = |file: &mut dyn Write| -> io::Result<()> {
        match runs.are_timed {
            true => csv::write_relative(file, runs.measurements()),
            false => csv::write(file, runs.measurements()),
        }
    };
    let mut text = Vec::new();
    write(&mut text)?;
    // What comes out must be a machine, or nothing is written.
    let shown = out.as_deref().unwrap_or(Path::new("standard output"));
    let curves = Table::parse(&String::from_utf8_lossy(&text), shown)?;
    curves.remarks(shown).iter().for_each(|remark| warn(remark));
    if !runs.others.is_empty() {
        warn(&format!("unknown columns are ignored: {}", runs.others.join(", ")));
    }
    let Some(out) = out else { return print(&String::from_utf8_lossy(&text)) };
    write_whole(out, &|file| file.write_all(&text))?;
    let processors = counted(curves.processors.names().len(), "processor");
    let applications = counted(curves.processors.applications().len(), "application");
    print(&format!("{}: {processors}, {applications}\n", out.display()))
}
