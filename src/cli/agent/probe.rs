//! `busbar agent probe`: shows which caps and meters this node has, and what is missing.

use anyhow::Context;
use clap::Args;

use super::ConfigFile;
use super::shown::ShownProbe;
use crate::agent::probe::probe;
use crate::cli::print;

/// Show which caps and meters this node has, and what is missing
///
/// Nothing is changed. Run it as the agent's user.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    config: ConfigFile,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let found = probe(&arguments.config.load()?).context("cannot inspect this node")?;
    match arguments.json {
        true => print(&(serde_json::to_string_pretty(&ShownProbe::of(&found))? + "\n")),
        false => print(&found.in_words()),
    }
}
