//! A machine with partitions: what each of them is, and what all of them draw together.

use serde::Serialize;

use super::feeds::{self, AnswerFeed};
use crate::cli::print;
use crate::machine::{Overlapping, Partition, Partitioned};
use crate::report::{Facts, Side, columns, human_power};
use crate::units::Watts;

/// The machine in JSON.
#[derive(Serialize)]
struct Answer<'a> {
    name: &'a str,
    nodes: u64,
    max_w: f64,
    floor_w: f64,
    base_w: f64,
    partitions: Vec<Part<'a>>,
    /// Partitions that have the nodes of others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    overlapping: Vec<Over<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    feeds: Vec<AnswerFeed>,
}

#[derive(Serialize)]
struct Over<'a> {
    name: &'a str,
    of: Vec<&'a str>,
    shared: bool,
}

#[derive(Serialize)]
struct Part<'a> {
    name: &'a str,
    nodes: u32,
    processors_per_node: u32,
    node_w: f64,
    idle_w: f64,
    max_w: f64,
    floor_w: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_mib: Option<u32>,
    gpus: u32,
    shared: bool,
}

/// Shows all partitions and the total.
pub(super) fn show(machine: &Partitioned, json: bool) -> anyhow::Result<()> {
    match json {
        true => print(&(serde_json::to_string_pretty(&answer(machine))? + "\n")),
        false => print(&describe(machine)),
    }
}

fn answer(machine: &Partitioned) -> Answer<'_> {
    Answer {
        name: &machine.name,
        nodes: machine.nodes(),
        max_w: machine.max_power().as_f64(),
        floor_w: machine.floor().as_f64(),
        base_w: machine.base_power.as_f64(),
        partitions: machine.parts.iter().map(Part::of).collect(),
        overlapping: machine.over.iter().map(|over| Over::of(over, machine)).collect(),
        feeds: machine.feeds.iter().flat_map(|feeds| feeds::answers(feeds)).collect(),
    }
}

impl<'a> Over<'a> {
    fn of(over: &'a Overlapping, machine: &'a Partitioned) -> Self {
        let of = over.of.iter().map(|place| machine.parts[*place].name.as_str()).collect();
        Over { name: &over.name, of, shared: over.shared }
    }
}

impl<'a> Part<'a> {
    fn of(part: &'a Partition) -> Self {
        let Partition { name, machine, memory_mib, gpus, shared, weight: _ } = part;
        Part {
            name,
            nodes: machine.nodes,
            processors_per_node: machine.processors_per_node,
            node_w: machine.node_power.as_f64(),
            idle_w: machine.node().idle.as_f64(),
            max_w: machine.max_power().as_f64(),
            floor_w: machine.floor().as_f64(),
            memory_mib: *memory_mib,
            gpus: *gpus,
            shared: *shared,
        }
    }
}

fn describe(machine: &Partitioned) -> String {
    let watts = |power: Watts| human_power(power.as_f64());
    let mut facts = Facts::default();
    facts.add("machine", &machine.name);
    facts.add("nodes", format!("{} in {} partitions", machine.nodes(), machine.parts.len()));
    facts.add(
        "power",
        format!("{} at most, {} idle", watts(machine.max_power()), watts(machine.floor())),
    );
    facts.add("base", format!("{} beside the nodes", machine.base_power));
    if let Some(feeds) = &machine.feeds {
        feeds::add(feeds, &mut facts);
    }
    let name = machine.parts.first().map_or("NAME", |part| part.name.as_str());
    facts.add("one of them", format!("--partition {name} shows it, and simulates it"));
    let right = Side::Right;
    let headings = [
        ("partition", Side::Left),
        ("nodes", right),
        ("processors/node", right),
        ("memory/node", right),
        ("GPUs/node", right),
        ("jobs have", Side::Left),
        ("busy node", right),
        ("idle node", right),
        ("at most", right),
        ("idle", right),
    ];
    let row = |part: &Partition| {
        let Partition { name, machine, memory_mib, gpus, shared, weight: _ } = part;
        vec![
            name.clone(),
            machine.nodes.to_string(),
            machine.processors_per_node.to_string(),
            memory_mib.map_or_else(|| "-".to_owned(), memory),
            gpus.to_string(),
            held(*shared).to_owned(),
            machine.node_power.to_string(),
            machine.node().idle.to_string(),
            watts(machine.max_power()),
            watts(machine.floor()),
        ]
    };
    let over = |over: &Overlapping| {
        let Over { name, of, shared } = Over::of(over, machine);
        let mut cells = vec![name.to_owned(), format!("those of {}", of.join(", "))];
        cells.extend(["", "", ""].map(str::to_owned));
        cells.push(held(shared).to_owned());
        cells.resize(headings.len(), String::new());
        cells
    };
    let rows = machine.parts.iter().map(row).chain(machine.over.iter().map(over));
    let rows: Vec<Vec<String>> = rows.collect();
    format!("{}\n{}", facts.text(), columns(&headings, &rows))
}

fn held(shared: bool) -> &'static str {
    if shared { "parts of nodes" } else { "whole nodes" }
}

/// Memory in the largest unit of which it is a whole number.
fn memory(mib: u32) -> String {
    match mib {
        mib if mib.is_multiple_of(1 << 10) => format!("{} GiB", mib >> 10),
        mib => format!("{mib} MiB"),
    }
}
