//! A machine with partitions: what each of them is, and what all of them draw together.

use serde::Serialize;

use crate::cli::print;
use crate::machine::{Partition, Partitioned};
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
    }
}

impl<'a> Part<'a> {
    fn of(part: &'a Partition) -> Self {
        let Partition { name, machine } = part;
        Part {
            name,
            nodes: machine.nodes,
            processors_per_node: machine.processors_per_node,
            node_w: machine.node_power.as_f64(),
            idle_w: machine.node().idle.as_f64(),
            max_w: machine.max_power().as_f64(),
            floor_w: machine.floor().as_f64(),
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
    let name = machine.parts.first().map_or("NAME", |part| part.name.as_str());
    facts.add("one of them", format!("--partition {name} shows it, and simulates it"));
    let right = Side::Right;
    let headings = [
        ("partition", Side::Left),
        ("nodes", right),
        ("processors/node", right),
        ("busy node", right),
        ("idle node", right),
        ("at most", right),
        ("idle", right),
    ];
    let row = |Partition { name, machine }: &Partition| {
        vec![
            name.clone(),
            machine.nodes.to_string(),
            machine.processors_per_node.to_string(),
            machine.node_power.to_string(),
            machine.node().idle.to_string(),
            watts(machine.max_power()),
            watts(machine.floor()),
        ]
    };
    let rows: Vec<Vec<String>> = machine.parts.iter().map(row).collect();
    format!("{}\n{}", facts.text(), columns(&headings, &rows))
}
