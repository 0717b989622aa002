//! `busbar slurm check`: checks whether a site is ready for Busbar.

use std::fmt::Write;

use anyhow::bail;
use clap::Args;

use super::Where;
use super::setup::SiteArguments;
use crate::cli::print;
use crate::slurm::check::{Point, Verdict, check, is_complete};

/// Check whether a cluster is ready for one of Busbar's modes
///
/// Nothing is changed. Run it on the host of slurmctld, as the daemon's user. The exit code is 2 if something is
/// missing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar slurm check --mode watch
  busbar slurm check --mode admit --watts 40kW --node-watts 400W")]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    cluster: Where,

    #[command(flatten)]
    site: SiteArguments,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let commands = arguments.cluster.commands();
    let site = arguments.site.site(&commands)?;
    let points = check(&commands, &site);
    match arguments.json {
        true => print(&(serde_json::to_string_pretty(&points)? + "\n"))?,
        false => print(&in_words(&points))?,
    }
    if !is_complete(&points) {
        bail!("something is missing for mode {}; the lines above say what to do", site.mode);
    }
    Ok(())
}

fn in_words(points: &[Point]) -> String {
    let mut text = String::new();
    for point in points {
        let verdict = match point.verdict {
            Verdict::Fine => "ok     ",
            Verdict::Advice => "advice ",
            Verdict::Missing => "MISSING",
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{verdict} {}: {}", point.what, point.found);
        if !point.to_do.is_empty() {
            let _ = writeln!(text, "        to do: {}", point.to_do);
        }
    }
    text
}
