//! `busbar machine`: describes, checks and shows a machine, also with manufacturing variation.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Subcommand, ValueEnum};

use crate::report::write_whole;
use crate::units::Share;
use crate::variation::catalyst::{self, Catalyst, Shape};
use crate::variation::csv;

mod check;
pub(in crate::cli) mod import;
mod init;
mod show;

/// Describe a machine, check it and show it
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Init(Box<init::Arguments>),
    Check(check::Arguments),
    Show(show::Arguments),
    Import(Box<import::Arguments>),
    Generate(Generate),
}

/// A synthetic machine.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum MadeUp {
    /// Ivy Bridge processors of 115 W that run CoMD, EP, BT and SP
    Catalyst,
}

/// Write the curves of a synthetic machine
///
/// The measurements of the PTune paper were never published. These curves agree with what the paper says about them;
/// docs/reference/variation.md lists it, and the assumptions.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar machine generate catalyst --out catalyst.csv
  busbar machine generate catalyst --processors 64 --seed 7 --shape cubic --noise 1%")]
pub(super) struct Generate {
    /// Machine to generate
    #[arg(value_name = "MACHINE", value_enum)]
    machine: MadeUp,

    /// Number of processors
    #[arg(long, value_name = "N", default_value_t = catalyst::PROCESSORS,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(catalyst::MOST_PROCESSORS)))]
    processors: u32,

    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Shape of the curves below 60 W, where nothing is published: continued (as above 60 W), or cubic (with the
    /// third power of the watts)
    #[arg(long, value_name = "SHAPE", default_value_t = Shape::Continued)]
    shape: Shape,

    /// The largest error of a measured speed, up to 1%
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    noise: Share,

    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Generate(arguments) => generate(arguments),
        Command::Init(arguments) => init::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Show(arguments) => show::run(arguments),
        Command::Import(arguments) => import::run(arguments),
    }
}

fn generate(arguments: &Generate) -> anyhow::Result<()> {
    let MadeUp::Catalyst = arguments.machine;
    let Generate { processors, seed, shape, noise, .. } = *arguments;
    if noise > Share::percent(1) {
        bail!("--noise {noise} is too much: above 1%, speed would fall where power rises");
    }
    let measured = Catalyst { processors, seed, shape, noise }.measure();
    let write = |out: &mut dyn Write| csv::write(out, measured.rows());
    match &arguments.out {
        Some(path) => Ok(write_whole(path, &write)?),
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            write(&mut out)?;
            Ok(out.flush()?)
        }
    }
}
