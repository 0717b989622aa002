//! `busbar machine check`: everything that is wrong with a machine file, at once.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use crate::cli::{print, warn};
use crate::machine::{self, Machine, Problem};
use crate::profile::counted;

/// Check a machine file: everything that is wrong with it, each with its line
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar machine check cluster.toml
  busbar machine check curves.csv --json")]
pub(in crate::cli) struct Arguments {
    /// A .toml machine file, or a .csv file of curves
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
}

/// The answer for programs.
#[derive(Serialize)]
struct Answer {
    machine: String,
    nodes: u32,
    remarks: Vec<String>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let path = &arguments.file;
    let name = path.to_string_lossy();
    let machine = match name.ends_with(".csv") {
        // Curves are read line by line, and the first mistake is told.
        true => Machine::from_text(&name)?,
        false => match machine::check(path)? {
            Ok(machine) => machine,
            Err(problems) => bail!("{}", describe(&name, &problems)),
        },
    };
    let Machine { name: machine, nodes, remarks, .. } = machine;
    if arguments.json {
        let answer = Answer { machine, nodes, remarks };
        return print(&(serde_json::to_string_pretty(&answer)? + "\n"));
    }
    remarks.iter().for_each(|remark| warn(remark));
    let nodes = counted(nodes as usize, "node");
    print(&format!(
        "{name}: {machine}, {nodes}: nothing is wrong; 'busbar machine show {name}' shows it\n"
    ))
}

/// All mistakes, a line for each.
pub(super) fn describe(name: &str, problems: &[Problem]) -> String {
    let line = |problem: &Problem| match problem.line {
        Some(line) => format!("{name}, line {line}: {}", problem.why),
        None => format!("{name}: {}", problem.why),
    };
    problems.iter().map(line).collect::<Vec<_>>().join("\n       ")
}
