//! `busbar slurm guard`: lets Slurm go on by itself while no daemon is there.

use std::path::PathBuf;

use clap::Args;

use crate::live::server::config::Config;
use crate::live::server::guard::guard;
use crate::live::server::log;

/// Let Slurm go on by itself, within the last budget, while no daemon is there
///
/// In mode steer nothing starts without a daemon. With slurm.fail = "admit" in the daemon's configuration,
/// this command waits until no daemon has given a sign of life for slurm.fail_after. Then it gives each job
/// its licences, one for each watt, and releases the jobs that Busbar holds. A daemon that starts takes over
/// again. It needs the daemon's state folder, and runs until it is stopped, so run it as a service on the host
/// of slurmctld.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar slurm guard --config /etc/busbar/busbar.toml")]
pub(in crate::cli) struct Arguments {
    /// The daemon's configuration [default: see busbar config show]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let config = Config::find(arguments.config.as_deref())?;
    log::begin(config.log.level, config.log.format)?;
    Ok(guard(&config)?)
}
