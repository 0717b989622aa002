//! `busbar machine show`: the properties of a machine, and which of them are assumed.

use std::path::Path;

use clap::Args;

use crate::cli::{curves, warn};
use crate::machine::{Described, Machine};

mod feeds;
mod nodes;
mod partitions;
mod processors;

/// Show the power of a machine's nodes, their caps and gears, and all assumptions
///
/// For a machine with manufacturing variation, the table has a row for each application, and the plots show one
/// application on the most efficient, the median and the least efficient processor.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar machine show cluster.toml
  busbar machine show cab --json
  busbar machine show site.toml --partition gpu
  busbar machine show curves.csv --app CoMD")]
pub(in crate::cli) struct Arguments {
    /// A .toml machine file, a .csv file of curves, cab, catalyst or a number of processors [default: catalyst,
    /// synthetic]
    #[arg(value_name = "MACHINE")]
    machine: Option<String>,

    /// The partition to show, of a machine file with partitions [default: all of them, and the total]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    partition: Vec<String>,

    /// The application to plot, for a machine with manufacturing variation [default: the first]
    #[arg(long, value_name = "APP")]
    app: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { machine, partition, app, json } = arguments;
    let app = app.as_deref();
    // Curves alone are no machine file: what they are called is all there is to say of the machine.
    let file = machine.as_deref().filter(|name| *name != "catalyst");
    if file.is_none_or(|name| name.ends_with(".csv")) {
        let (known, source) = curves::load(file.map(Path::new))?;
        return processors::show(&known, &source, app, *json);
    }
    let machine = match Machine::described(file.unwrap_or_default())? {
        Described::Several(whole) if partition.is_empty() => {
            return partitions::show(&whole, *json);
        }
        Described::Several(whole) => {
            let chosen = Described::Several(whole.clone()).choose(partition)?;
            if chosen.kinds.is_some() {
                return partitions::show(&whole.only(partition), *json);
            }
            chosen
        }
        described => described.choose(partition)?,
    };
    machine.remarks.iter().for_each(|remark| warn(remark));
    match &machine.variation {
        Some(known) => processors::show(known, &machine.name, app, *json),
        None if app.is_some() => anyhow::bail!(
            "--app is for machines with curves for each processor; {} has none",
            machine.name
        ),
        None => nodes::show(&machine, *json),
    }
}
