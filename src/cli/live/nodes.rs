//! `busbar nodes`: the jobs on the nodes, and the nodes' caps.

use std::collections::BTreeMap;

use clap::Args;

use super::{Daemon, unexpected, words};
use crate::live::wire::{NodeLine, Reply, Request};
use crate::report::{Side, columns, human_power};

/// Show the nodes with their jobs and caps
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    daemon: Daemon,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match arguments.daemon.ask(&Request::Nodes)? {
        Reply::Nodes(nodes) => arguments.daemon.show(&nodes, |nodes| describe(nodes)),
        reply => Err(unexpected(&reply)),
    }
}

/// Nodes with the same job and cap share a row, in the order of the first of them.
fn describe(nodes: &[NodeLine]) -> String {
    let mut groups: Vec<(&NodeLine, Vec<u32>)> = Vec::new();
    let mut places = BTreeMap::new();
    for line in nodes {
        let place = *places.entry((line.job, line.cap)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, alike)) => alike.push(line.node),
            None => groups.push((line, vec![line.node])),
        }
    }
    let row = |(first, alike): &(&NodeLine, Vec<u32>)| {
        vec![
            alike.len().to_string(),
            first.job.map_or_else(|| "idle".to_owned(), |job| format!("job {job}")),
            first.cap.map(|cap| human_power(cap.as_f64())).unwrap_or_default(),
            words::node_list(alike),
        ]
    };
    let headings = [
        ("NODES", Side::Right),
        ("STATE", Side::Left),
        ("CAP", Side::Right),
        ("WHICH", Side::Left),
    ];
    columns(&headings, &groups.iter().map(row).collect::<Vec<_>>())
}
