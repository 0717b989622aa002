//! `busbar slurm nodes`: the nodes of a cluster.

use clap::Args;

use super::Where;
use crate::cli::{print, warn};
use crate::report::{Side, columns};
use crate::slurm::cluster::Cluster;
use crate::slurm::hosts::HostList;
use crate::slurm::model::Node;
use crate::slurm::unread::UNKNOWN;

/// Show the nodes of the cluster
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    cluster: Where,

    /// Print a JSON array with all values
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut unread = Vec::new();
    let nodes = arguments.cluster.commands().nodes()?.into_read(&mut unread);
    unread.iter().for_each(|unread| warn(&format!("cannot be read: {unread}")));
    match arguments.json {
        true => print(&(serde_json::to_string_pretty(&nodes)? + "\n")),
        false => print(&in_words(&nodes)),
    }
}

/// Nodes that are alike share a row, in the order of the first of them.
fn in_words(nodes: &[Node]) -> String {
    let mut groups: Vec<(&Node, Vec<&str>)> = Vec::new();
    for node in nodes {
        let is_alike = |other: &Node| {
            let of = |node: &Node| {
                (node.state.clone(), node.reason.clone(), node.cpus, node.partitions.clone())
            };
            of(node) == of(other)
        };
        match groups.iter_mut().find(|(first, _)| is_alike(first)) {
            Some((_, names)) => names.push(&node.name),
            None => groups.push((node, vec![&node.name])),
        }
    }
    let row = |(first, names): &(&Node, Vec<&str>)| {
        vec![
            names.len().to_string(),
            first.state.to_string(),
            if first.cpus == UNKNOWN { "?".to_owned() } else { first.cpus.to_string() },
            first.partitions.join(","),
            HostList::new(names.iter().copied()).to_string(),
            first.reason.clone().unwrap_or_default(),
        ]
    };
    let headings = [
        ("NODES", Side::Right),
        ("STATE", Side::Left),
        ("CPUS", Side::Right),
        ("PARTITIONS", Side::Left),
        ("WHICH", Side::Left),
        ("REASON", Side::Left),
    ];
    columns(&headings, &groups.iter().map(row).collect::<Vec<_>>())
}
