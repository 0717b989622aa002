//! `busbar nodes`: the jobs on the nodes, and the nodes' caps.

use std::collections::BTreeMap;

use clap::Args;

use super::{Daemon, unexpected, words};
use crate::live::job::NodeState;
use crate::live::wire::{NodeLine, Reply, Request};
use crate::report::{Side, columns, human_power};
use crate::units::Watts;

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

/// Nodes with the same job, cap and state share a row, in the order of the first of them.
fn describe(nodes: &[NodeLine]) -> String {
    let mut groups: Vec<Vec<&NodeLine>> = Vec::new();
    let mut places = BTreeMap::new();
    for line in nodes {
        // Nodes of which jobs have parts are each in a row of its own, unless they are free.
        let alone = line.part.as_ref().filter(|part| !part.jobs.is_empty()).map(|_| line.node);
        let kind = line.part.as_ref().map(|part| &part.partition);
        let key = (line.job, line.cap, &line.state, kind, alone);
        let place = *places.entry(key).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(alike) => alike.push(line),
            None => groups.push(vec![line]),
        }
    }
    let has_parts = nodes.iter().any(|line| line.part.is_some());
    let is_measured = nodes.iter().any(|line| line.measured.is_some());
    let row = |alike: &Vec<&NodeLine>| {
        let mut row = vec![alike.len().to_string(), state(alike[0]), cap(alike[0])];
        if is_measured {
            row.push(measured(alike));
        }
        if has_parts {
            row.extend(free(alike[0]));
        }
        row.push(which(alike));
        row
    };
    let mut headings = vec![("NODES", Side::Right), ("STATE", Side::Left), ("CAP", Side::Right)];
    if is_measured {
        headings.push(("MEASURED", Side::Right));
    }
    if has_parts {
        headings.push(("PARTITION", Side::Left));
        headings.push(("FREE CORES", Side::Right));
        headings.push(("FREE GPUS", Side::Right));
        headings.push(("FREE MEMORY", Side::Right));
    }
    headings.push(("WHICH", Side::Left));
    columns(&headings, &groups.iter().map(row).collect::<Vec<_>>())
}

/// What a node does, and why it does nothing more.
fn state(line: &NodeLine) -> String {
    let parts = line.part.as_ref().map_or(&[][..], |part| &part.jobs);
    let job = match parts {
        [] | [_] => line.job.map(|job| format!("job {job}")),
        jobs => {
            let numbers: Vec<String> = jobs.iter().map(u64::to_string).collect();
            Some(format!("jobs {}", numbers.join(", ")))
        }
    };
    let out = line.switched.map(|state| state.to_string()).or_else(|| match &line.state {
        NodeState::Up => None,
        NodeState::Awaited => Some("awaited".to_owned()),
        NodeState::Drained { reason } => Some(format!("drained ({})", words::visible(reason))),
        NodeState::Down { reason } => Some(format!("down ({})", words::visible(reason))),
    });
    match (job, out) {
        (None, None) => "idle".to_owned(),
        (job, out) => job.into_iter().chain(out).collect::<Vec<_>>().join(", "),
    }
}

/// The partition of a node, and what is free of it.
fn free(line: &NodeLine) -> [String; 4] {
    let Some(part) = &line.part else { return Default::default() };
    let of = |free: u32, all: u32| if all == 0 { String::new() } else { format!("{free}/{all}") };
    let memory = part.free_memory_mib.zip(part.memory_mib);
    [
        part.partition.clone(),
        of(part.free_processors, part.processors),
        of(part.free_gpus, part.gpus),
        memory.map_or(String::new(), |(free, all)| format!("{free}/{all} MiB")),
    ]
}

fn cap(line: &NodeLine) -> String {
    line.cap.map(|cap| human_power(cap.as_f64())).unwrap_or_default()
}

/// What these nodes draw together; `?` if that is not known of each of them.
fn measured(alike: &[&NodeLine]) -> String {
    let powers: Option<Vec<Watts>> =
        alike.iter().map(|line| line.measured.as_ref().map(|it| it.power)).collect();
    powers.map_or_else(
        || "?".to_owned(),
        |all| human_power(all.into_iter().fold(Watts::ZERO, Watts::saturating_add).as_f64()),
    )
}

/// The names of these nodes, or their numbers if they have none.
fn which(alike: &[&NodeLine]) -> String {
    let names: Option<Vec<&str>> = alike.iter().map(|line| line.name.as_deref()).collect();
    match names {
        Some(names) => names.join(","),
        None => words::node_list(&alike.iter().map(|line| line.node).collect::<Vec<_>>()),
    }
}
