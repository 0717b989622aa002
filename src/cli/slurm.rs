//! `busbar slurm`: shows a Slurm cluster, and prepares it for Busbar.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;

use crate::slurm::commands::Commands;
use crate::slurm::program::{Programs, USUAL_PATIENCE};

mod check;
#[cfg(feature = "live")]
mod guard;
mod jobs;
mod nodes;
mod record;
mod release_all;
mod setup;
#[cfg(feature = "live")]
mod watch;

/// Inspect a Slurm cluster, and set it up for Busbar
///
/// This works wherever the commands 'squeue' and 'scontrol' work.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Check(check::Arguments),
    Setup(setup::Arguments),
    Jobs(jobs::Arguments),
    Nodes(nodes::Arguments),
    Record(record::Arguments),
    #[cfg(feature = "live")]
    Guard(guard::Arguments),
    ReleaseAll(release_all::Arguments),
    #[cfg(feature = "live")]
    Watch(watch::Arguments),
}

/// Runs a command.
pub(super) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Check(arguments) => check::run(arguments),
        Command::Setup(arguments) => setup::run(arguments),
        Command::Jobs(arguments) => jobs::run(arguments),
        Command::Nodes(arguments) => nodes::run(arguments),
        Command::Record(arguments) => record::run(arguments),
        #[cfg(feature = "live")]
        Command::Guard(arguments) => guard::run(arguments),
        Command::ReleaseAll(arguments) => release_all::run(arguments),
        #[cfg(feature = "live")]
        Command::Watch(arguments) => watch::run(arguments),
    }
}

/// The cluster to use.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(super) struct Where {
    /// The cluster's slurm.conf [default: $SLURM_CONF, or Slurm's own default]
    #[arg(long, value_name = "PATH")]
    conf: Option<PathBuf>,

    /// Folder of Slurm's commands [default: $PATH]
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,

    /// Timeout of one Slurm command, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = USUAL_PATIENCE.as_secs(),
          value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
}

impl Where {
    pub(super) fn commands(&self) -> Commands {
        let mut programs = Programs::default().with_patience(Duration::from_secs(self.timeout));
        if let Some(conf) = &self.conf {
            programs = programs.with_conf(conf);
        }
        if let Some(folder) = &self.programs {
            programs = programs.in_folder(folder);
        }
        Commands::new(programs)
    }
}
