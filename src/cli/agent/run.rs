//! `busbar agent run` and `busbar agent restore`.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;

use anyhow::{Context, bail};
use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::ConfigFile;
use crate::agent::Stopped;
use crate::agent::notify::Manager;
use crate::agent::server::{self, Server};
use crate::agent::wire::{Inventory, Outcome, SetReport};
use crate::cli::{print, warn};

/// Run the agent of this node
///
/// It runs until SIGTERM or SIGINT. It saves the site's own limits before it changes the first one, and restores them
/// when it stops, unless a controller relies on the caps: then the caps stay, and the next agent takes them over.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar agent probe
  busbar agent run --config agent.toml")]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    config: ConfigFile,
}

/// Restore the site's own limits
///
/// This is for a node whose agent does not run: it restores the limits that an agent saved, even if a controller
/// relies on the caps.
#[derive(Debug, Args)]
pub(in crate::cli) struct Restore {
    #[command(flatten)]
    config: ConfigFile,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let config = arguments.config.load()?;
    let (woken, stop) = UnixStream::pair().context("cannot wait for signals")?;
    for signal in [SIGTERM, SIGINT] {
        let end = woken.try_clone().context("cannot wait for signals")?;
        signal_hook::low_level::pipe::register(signal, end).context("cannot wait for signals")?;
    }
    let places = places(&config);
    let server = Server::start(config)?;
    for warning in server.warnings() {
        warn(warning);
    }
    say(&format!("{}; listening on {places}", summary(&server.inventory())));
    match server.run(&stop, Manager::from_environment().unwrap_or_default())? {
        Stopped::Restored(report) => {
            say_failures(&report);
            say("the agent has stopped; the site's own limits are restored");
        }
        Stopped::Kept { controller } => say(&format!(
            "the agent has stopped; the caps stay, because {controller} relies on them. To restore the site's \
            limits, as the agent's user: busbar agent restore \
             (docs/reference/agent-security.md)"
        )),
    }
    Ok(())
}

pub(super) fn restore(arguments: &Restore) -> anyhow::Result<()> {
    let report = server::restore(arguments.config.load()?)?;
    say_failures(&report);
    let is_restored = |outcome: &Outcome| *outcome == Outcome::Confirmed;
    let count = report.domains.iter().filter(|domain| is_restored(&domain.outcome)).count();
    match report.domains.len() {
        0 => print("nothing was capped\n"),
        all if all == count => print(&format!("restored {count} limits\n")),
        all => bail!(
            "restored {count} of {all} limits; run the command again when the others are writable"
        ),
    }
}

/// Where an agent will listen.
fn places(config: &crate::agent::config::Config) -> String {
    let unix = config.unix.iter().map(|unix| unix.path.display().to_string());
    let tcp = config.tcp.iter().map(|tcp| tcp.address.to_string());
    unix.chain(tcp).collect::<Vec<_>>().join(" and ")
}

fn summary(inventory: &Inventory) -> String {
    let node = &inventory.node;
    let emulated = if inventory.emulated { " (emulated)" } else { "" };
    match inventory.caps {
        Some(caps) => {
            format!("node {node}{emulated}: caps from {} to {}", caps.lowest, caps.highest)
        }
        None => {
            format!("node {node}{emulated}: no caps, only meters; 'busbar agent probe' says why")
        }
    }
}

fn say_failures(report: &SetReport) {
    for domain in &report.domains {
        if domain.outcome != Outcome::Confirmed {
            warn(&format!("{}: {}; {} holds", domain.name, domain.outcome, domain.effective));
        }
    }
}

/// Prints a line on standard error, which a service manager logs.
fn say(text: &str) {
    // A failure to print changes nothing.
    let _ = writeln!(io::stderr(), "{text}");
}
