//! `busbar profile import`: reads a table of measurements into the database.

use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};

use super::{Database, counted, describe, existing};
use crate::cli::{print, warn};
use crate::profile::csv::{CapRange, Constant, Layout, MOST_SOCKETS, Renamed, Sheet};
use crate::profile::{Store, StoreError};
use crate::text;
use crate::units::Watts;

/// Import a table of measurements; if a row is wrong, nothing is imported
///
/// The first line of the file names the columns, in any order: application, nodes, cores, cap_w, time_s, power_w or
/// energy_j; optionally memory_cap_w, gpu_cap_w, size (of the problem) and origin (measured, emulated, bound or
/// predicted). A cap is per socket, and an empty field means no cap; the power is that of all nodes together.
/// Repeated runs are summarised in one row.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar profile import cab.csv --cap-range 51W..115W
  busbar profile import more.csv --replace
  busbar profile import sweep.csv --column power=mean_pkg_W --set nodes=1 --set cores=24
  busbar profile import gpus.csv --column cap=cpu_cap_w --column power=cpu_power_w+gpu_power_w \\
      --column size=suite --set nodes=1 --set cores=32 --cap-of node --sockets 1
  busbar profile import times.csv --sockets 2")]
pub(in crate::cli) struct Arguments {
    /// The file, or - for standard input. Its fields are separated by commas, semicolons or tabs
    #[arg(value_name = "FILE.csv")]
    table: PathBuf,

    /// Name of a column in this file: time=runtime_s; may be repeated
    ///
    /// Several columns can be joined to the application (application=class/app), or added to power or energy
    /// (power=cpu_w+gpu_w).
    #[arg(long = "column", value_name = "FIELD=NAME")]
    columns: Vec<Renamed>,

    /// A value that all rows share: nodes=1, cap=80W
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    constants: Vec<Constant>,

    /// Do not warn about unknown columns
    #[arg(long)]
    ignore_other_columns: bool,

    /// Meaning of a cap in the file: for one socket, or for all sockets of a node together
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    cap_of: CapOf,

    /// Meaning of power and energy in the file: of the whole job, or of each of its nodes
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    power_of: PowerOf,

    /// Sockets per node [default: 2 for --cap-of node]
    ///
    /// Power is checked against caps, and caps stand in for power that was not measured.
    #[arg(long, value_name = "N")]
    sockets: Option<NonZeroU32>,

    /// The cap of a socket for rows without a cap [default: the highest in the table]
    #[arg(long, value_name = "POWER")]
    highest_cap: Option<Watts>,

    /// Refuse caps outside the range of a socket: 51W..115W
    #[arg(long, value_name = "A..B")]
    cap_range: Option<CapRange>,

    /// Replace existing measured rows; predicted rows are always replaced
    #[arg(long)]
    replace: bool,

    #[command(flatten)]
    database: Database,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum CapOf {
    #[default]
    Socket,
    Node,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum PowerOf {
    #[default]
    Job,
    Node,
}

const TWO: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let layout = layout(arguments)?;
    let (name, sheet) = match arguments.table.as_os_str() == "-" {
        true => {
            let name = Path::new("standard input");
            let bytes =
                text::read_lines(io::stdin().lock(), 0).context("cannot read standard input")?;
            (name, Sheet::decode(&bytes, name, &layout)?)
        }
        false => (&*arguments.table, Sheet::read(&arguments.table, &layout)?),
    };
    if let Some((count, line)) = sheet.implausible() {
        let more = match count - 1 {
            0 => String::new(),
            more => format!(", and so is that of {}", counted(more, "later row")),
        };
        warn(&format!(
            "{}, line {line}: the power exceeds {MOST_SOCKETS} × cap × nodes{more}; is the power in watts, and \
            the cap per socket?",
            name.display()
        ));
    }
    let mut store = Store::open_or_create(&arguments.database.profiles)?;
    let imported = match store.import_measured(&sheet.measured, existing(arguments.replace)) {
        Err(StoreError::AlreadyMeasured { application, configuration }) => {
            let line = sheet.line_of(&application, &configuration);
            let line = line.map_or(String::new(), |line| format!(", line {line}"));
            bail!(
                "{}{line}: {application} on {configuration} is already measured in {}; \
                 remove the row, or replace the measured one with --replace",
                name.display(),
                arguments.database.profiles.display()
            );
        }
        imported => imported?,
    };
    let notes = sheet.notes.iter().map(|note| format!("note: {note}\n"));
    print(&(describe(&imported, &arguments.database) + &notes.collect::<String>()))
}

fn layout(arguments: &Arguments) -> anyhow::Result<Layout> {
    let sockets = match arguments.cap_of {
        CapOf::Socket => arguments.sockets,
        CapOf::Node => arguments.sockets.or(Some(TWO)),
    };
    let mut layout = Layout::new(arguments.columns.clone(), arguments.constants.clone())?;
    layout.sockets_per_cap = match arguments.cap_of {
        CapOf::Socket => NonZeroU32::MIN,
        CapOf::Node => sockets.unwrap_or(TWO),
    };
    layout.sockets = sockets;
    layout.power_is_of_node = arguments.power_of == PowerOf::Node;
    layout.highest_cap = arguments.highest_cap.filter(|cap| *cap > Watts::ZERO);
    if layout.highest_cap != arguments.highest_cap {
        bail!("--highest-cap 0W is not a cap; write the highest cap of a socket, such as 115W");
    }
    layout.cap_range = arguments.cap_range;
    layout.ignore_other_columns = arguments.ignore_other_columns;
    Ok(layout)
}
