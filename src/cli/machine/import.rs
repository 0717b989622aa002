//! `busbar machine import`: converts runs on many processors to a file of curves, or the description of a Slurm cluster to a
//! machine file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;

use crate::cli::{print, warn};
use crate::profile::counted;
use crate::report::write_whole;
use crate::variation::csv::{self, Table};
use crate::variation::runs::{Runs, Saying};

#[cfg(feature = "slurm")]
pub(in crate::cli) mod slurm;

/// Convert a table of runs on many processors to a file of curves, or a Slurm cluster to a machine file
///
/// The first line of the table names the columns: processor, application, cap_w, time_s or gips, power_w, or the
/// names that published tables use for these. A time is converted to a speed.
///
/// With --slurm, the files are what 'scontrol show node' and 'scontrol show partition' print (with -o, without, or with
/// --json), slurm.conf, gres.conf and topology.conf, in any order. Without files, the cluster is asked. Slurm does not know
/// what nodes draw: the machine file has questions about that.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar machine import runs.csv --set cap=300W --out gpus.csv
  busbar machine import runs.csv --column processor=host --column power=package_w --out machine.csv
  busbar machine import --slurm nodes.txt partitions.txt --records january.txt --out site.toml
  busbar machine import --slurm --partition short,long --out cpu.toml")]
pub(in crate::cli) struct Arguments {
    /// The table of runs (.csv), or with --slurm, descriptions of a cluster
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    #[cfg(feature = "slurm")]
    #[command(flatten)]
    slurm: slurm::Arguments,

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
    let Arguments { files, columns, constants, out, .. } = arguments;
    #[cfg(feature = "slurm")]
    if arguments.slurm.is_meant() {
        if !columns.is_empty() || !constants.is_empty() {
            bail!(
                "--column and --set are for tables of runs; leave them out, or leave --slurm out"
            );
        }
        return slurm::run(&arguments.slurm, files, out.as_deref());
    }
    let [table] = &files[..] else {
        bail!(
            "give one table of runs (.csv){}",
            if cfg!(feature = "slurm") { ", or --slurm" } else { "" }
        );
    };
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
