//! `busbar agent`: the node agent and its tools.

use std::path::PathBuf;

use clap::Subcommand;

use crate::agent::config::Config;
use crate::cli::print;

mod emulate;
mod keys;
mod probe;
mod run;
mod shown;
mod status;

/// Cap and measure the power of a node
///
/// The agent runs on each node, sets power caps for a controller, and measures power. It is the only part of Busbar
/// that needs access to the hardware.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Run(run::Arguments),
    Probe(probe::Arguments),
    Status(status::Arguments),
    Restore(run::Restore),
    Keys(keys::Arguments),
    #[command(subcommand)]
    Emulate(emulate::Command),
    /// Print a configuration with all defaults and explanations
    Config,
}

/// Runs a command.
pub(super) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Run(arguments) => run::run(arguments),
        Command::Probe(arguments) => probe::run(arguments),
        Command::Status(arguments) => status::run(arguments),
        Command::Restore(arguments) => run::restore(arguments),
        Command::Keys(arguments) => keys::run(arguments),
        Command::Emulate(command) => emulate::run(command),
        Command::Config => print(Config::template()),
    }
}

/// The configuration of an agent.
#[derive(Debug, clap::Args)]
#[group(skip)]
struct ConfigFile {
    /// Configuration file [default: /etc/busbar/agent.toml, if it exists]
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
}

impl ConfigFile {
    fn load(&self) -> anyhow::Result<Config> {
        Ok(Config::find(self.config.as_deref())?)
    }
}
