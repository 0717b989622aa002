//! `busbar machine show`: what is known of a machine, and what is assumed.

use std::path::Path;

use clap::Args;

use crate::cli::{curves, warn};
use crate::machine::{Described, Machine};

mod nodes;
mod partitions;
mod processors;

/// Show a machine: what its nodes draw, which caps and gears they have, and what of it is assumed
///
/// Where processors were measured one by one, the table has a row for each application, and the plots show one of
/// them on three processors: the most efficient, the one in the middle and the least efficient, each by its best
/// point.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar machine show cluster.toml
  busbar machine show cab --json
  busbar machine show site.toml --partition gpu
  busbar machine show curves.csv --app CoMD")]
pub(in crate::cli) struct Arguments {
    /// A .toml machine file, a .csv file of curves, cab, catalyst or a number of processors [default: catalyst,
    /// made up]
    #[arg(value_name = "MACHINE")]
    machine: Option<String>,

    /// The partition to show, of a machine file that has several [default: all of them, and the total]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    partition: Vec<String>,

    /// The application to plot, where processors were measured one by one [default: the first]
    #[arg(long, value_name = "APP")]
    app: Option<String>,

    /// One JSON object on standard output
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
        described => described.choose(partition)?,
    };
    machine.remarks.iter().for_each(|remark| warn(remark));
    match &machine.variation {
        Some(known) => processors::show(known, &machine.name, app, *json),
        None if app.is_some() => anyhow::bail!(
            "--app is for machines whose processors were measured one by one; {} has no curves",
            machine.name
        ),
        None => nodes::show(&machine, *json),
    }
}
