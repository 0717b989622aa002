//! `busbar site`: a site's accounts, shares and priorities.

use clap::Subcommand;

mod import;

/// Describe accounts, shares and priorities of a site
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Import(import::Arguments),
}

pub(super) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Import(arguments) => import::run(arguments),
    }
}
