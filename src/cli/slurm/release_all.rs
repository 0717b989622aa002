//! `busbar slurm release-all`: gives a cluster back to Slurm.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;

use super::Where;
use crate::cli::{print, warn};
use crate::slurm::check::conf_folder;
use crate::slurm::release_all::{Released, release_all};
use crate::slurm::setup;

/// Give the cluster back to Slurm: release all jobs that Busbar holds
///
/// Stop the daemon first, or it holds jobs again. This command switches the plug-in off, so that new jobs are not
/// held, releases jobs, removes the reservation of watts, and returns nodes that Busbar drained to service. Running
/// jobs continue. To use Busbar again, remove the file busbar.off beside slurm.conf.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    cluster: Where,

    /// The file that switches the plug-in off [default: busbar.off beside slurm.conf]
    #[arg(long, value_name = "PATH")]
    off_file: Option<PathBuf>,

    /// Leave the plug-in on
    #[arg(long, conflicts_with = "off_file")]
    keep_plug_in: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let commands = arguments.cluster.commands();
    if !arguments.keep_plug_in {
        let file = match &arguments.off_file {
            Some(file) => file.clone(),
            None => conf_folder(&commands)?.join("busbar.off"),
        };
        let done = setup::Switch::Off.write(&file);
        done.with_context(|| {
            format!("cannot write {}; run this on the host of slurmctld", file.display())
        })?;
    }
    let released = release_all(&commands)?;
    match arguments.json {
        true => print(&(serde_json::to_string_pretty(&released)? + "\n"))?,
        false => print(&in_words(&released))?,
    }
    for failure in &released.failures {
        warn(failure);
    }
    match released.failures.is_empty() {
        true => Ok(()),
        false => bail!("{} steps failed; run the command again", released.failures.len()),
    }
}

fn in_words(released: &Released) -> String {
    let count = |list: &[String], what: &str| match list {
        [] => format!("no {what}\n"),
        list => format!("{} {what}: {}\n", list.len(), list.join(", ")),
    };
    let mut text = count(&released.jobs, "jobs released");
    text += &count(&released.kept_back, "jobs left held, because their users hold them");
    text += &count(&released.nodes, "nodes returned to service");
    text + match released.had_reservation {
        true => "the reservation of watts is removed\n",
        false => "no reservation of watts existed\n",
    }
}
