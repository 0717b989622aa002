//! `busbar agent status`: shows the caps and the power of a node.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Args;

use super::ConfigFile;
use super::shown::ShownStatus;
use crate::agent::client::{Address, Client};
use crate::agent::tls::KeyFiles;
use crate::agent::wire::{Answer, Inventory, Request, Sample};
use crate::cli::print;

/// How long an agent may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Show the caps and the power of a node
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar agent status
  busbar agent status --connect n7:7117 --node n7 --keys /etc/busbar/keys")]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    config: ConfigFile,

    /// The agent's socket [default: that of the configuration]
    #[arg(long, value_name = "PATH", conflicts_with = "connect")]
    socket: Option<PathBuf>,

    /// The agent's address on another machine
    #[arg(long, value_name = "HOST:PORT", requires = "keys", requires = "node")]
    connect: Option<String>,

    /// The name of that node
    #[arg(long, value_name = "NAME")]
    node: Option<String>,

    /// Folder with authority.pem, observer.pem and observer.key
    #[arg(long, value_name = "FOLDER")]
    keys: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut client = connect(arguments)?;
    let inventory = client.inventory().clone();
    let Answer::Sample(sample) = client.ask(Request::Read)? else {
        bail!("the agent's answer has an unknown form; is it another version?");
    };
    match arguments.json {
        true => {
            let status = ShownStatus::of(&inventory, &sample);
            print(&(serde_json::to_string_pretty(&status)? + "\n"))
        }
        false => print(&in_words(&inventory, &sample)),
    }
}

fn connect(arguments: &Arguments) -> anyhow::Result<Client> {
    let name = "busbar agent status";
    if let (Some(place), Some(node), Some(folder)) =
        (&arguments.connect, &arguments.node, &arguments.keys)
    {
        let files: KeyFiles = crate::agent::keys::files(folder, "observer");
        let address = Address::Tcp(place.clone());
        let keys = files.client()?;
        return Ok(Client::connect(&address, node, Some(&keys), name, false, PATIENCE)?);
    }
    let path = match &arguments.socket {
        Some(path) => path.clone(),
        None => {
            let unix = arguments.config.load()?.unix;
            unix.ok_or_else(|| anyhow!("the configuration names no socket; use --connect"))?.path
        }
    };
    Ok(Client::connect(&Address::Unix(path), "", None, name, false, PATIENCE)?)
}

fn in_words(inventory: &Inventory, sample: &Sample) -> String {
    let mut text = String::new();
    let emulated = if inventory.emulated { " (emulated)" } else { "" };
    let node = format!("{}{emulated}", inventory.node);
    // Writing to a string does not fail.
    let _ = match inventory.caps {
        Some(caps) => writeln!(
            text,
            "node {node}: {} counted, caps from {} to {}",
            inventory.counted, caps.lowest, caps.highest
        ),
        None => writeln!(text, "node {node}: cannot be capped"),
    };
    let _ = match &inventory.controller {
        Some(controller) => writeln!(text, "controlled by {controller}"),
        None => writeln!(text, "no controller"),
    };
    let _ = writeln!(text, "draws {}", sample.power);
    for (domain, measured) in inventory.domains.iter().zip(&sample.domains) {
        let cap = domain.cap.map_or_else(|| "no cap".to_owned(), |cap| format!("cap {cap}"));
        let _ = writeln!(
            text,
            "  {:<10} {cap}, limit {}, draws {}",
            domain.name.as_str(),
            domain.effective,
            measured.power
        );
    }
    text
}
