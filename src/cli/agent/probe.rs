//! `busbar agent probe`: what this node can do, and what is missing.

use anyhow::Context;
use clap::Args;

use super::ConfigFile;
use super::shown::ShownProbe;
use crate::agent::probe::probe;
use crate::cli::print;

/// Show what this node can do, and what is missing
///
/// Nothing is changed. Run it as the user that the agent will have.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    config: ConfigFile,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let found = probe(&arguments.config.load()?).context("cannot look at this node")?;
    match arguments.json {
        true => print(&(serde_json::to_string_pretty(&ShownProbe::of(&found))? + "\n")),
        false => print(&found.in_words()),
    }
}
