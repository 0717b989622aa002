//! `busbar machine check`: all mistakes of a machine file at once.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use crate::cli::{print, warn};
use crate::machine::{self, Described, Machine, Partition, Problem};
use crate::profile::counted;
use crate::report::human_power;

/// Check a machine file, and list all mistakes with their lines
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar machine check cluster.toml
  busbar machine check curves.csv --json")]
pub(in crate::cli) struct Arguments {
    /// A .toml machine file, or a .csv file of curves
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The answer as JSON.
#[derive(Serialize)]
struct Answer {
    machine: String,
    nodes: u64,
    /// The nodes of each partition, if there are some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    partitions: Vec<PartitionNodes>,
    remarks: Vec<String>,
}

/// How many nodes a partition has.
#[derive(Serialize)]
struct PartitionNodes {
    name: String,
    nodes: u32,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let path = &arguments.file;
    let name = path.to_string_lossy();
    let described = match name.ends_with(".csv") {
        // Curves are read line by line, and the first mistake is told.
        true => Described::One(Box::new(Machine::from_text(&name)?)),
        false => match machine::check(path)? {
            Ok(machine) => machine,
            Err(problems) => bail!("{}", describe(&name, &problems)),
        },
    };
    let Found { machine, nodes, partitions, remarks, total } = Found::of(described);
    if arguments.json {
        let answer = Answer { machine, nodes, partitions, remarks };
        return print(&(serde_json::to_string_pretty(&answer)? + "\n"));
    }
    remarks.iter().for_each(|remark| warn(remark));
    let nodes = counted(nodes as usize, "node");
    print(&format!(
        "{name}: {machine}, {nodes}{total}: no mistakes; 'busbar machine show {name}' shows it\n"
    ))
}

/// The summary of a machine without mistakes.
struct Found {
    machine: String,
    nodes: u64,
    partitions: Vec<PartitionNodes>,
    remarks: Vec<String>,
    /// What all partitions are together, in words.
    total: String,
}

impl Found {
    fn of(described: Described) -> Self {
        match described {
            Described::One(machine) => {
                let Machine { name: machine, nodes, remarks, .. } = *machine;
                let (partitions, total) = (Vec::new(), String::new());
                Found { machine, nodes: nodes.into(), partitions, remarks, total }
            }
            Described::Several(whole) => {
                let [most, idle] =
                    [whole.max_power(), whole.floor()].map(|watts| human_power(watts.as_f64()));
                let names = whole.names().join(", ");
                let nodes = whole.nodes();
                let nodes_of =
                    |part: Partition| PartitionNodes { name: part.name, nodes: part.machine.nodes };
                Found {
                    nodes,
                    total: format!(" in the partitions {names}, {most} at most, {idle} idle"),
                    partitions: whole.parts.into_iter().map(nodes_of).collect(),
                    machine: whole.name,
                    remarks: Vec::new(),
                }
            }
        }
    }
}

/// All mistakes, a line for each.
pub(super) fn describe(name: &str, problems: &[Problem]) -> String {
    let line = |problem: &Problem| match problem.line {
        Some(line) => format!("{name}, line {line}: {}", problem.why),
        None => format!("{name}: {}", problem.why),
    };
    problems.iter().map(line).collect::<Vec<_>>().join("\n       ")
}
