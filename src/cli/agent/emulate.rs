//! `busbar agent emulate`: nodes without power hardware.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};

use crate::agent::emulate::{self, Emulation, Fault, Shape, USUAL_DRAM};
use crate::cli::print;
use crate::units::Watts;

/// Make and drive an emulated node, without power hardware
///
/// An emulated node is a folder of files with the names of Linux's powercap tree. An agent uses it with 'powercap' and
/// 'emulate = true' under [hardware], and calls its watts emulated.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Command {
    Create(Create),
    Demand(Demand),
    Fault(SetFault),
    Drive(Drive),
}

/// Make an emulated node
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar agent emulate create tree
  busbar agent emulate create tree --packages 1 --dram --gpus 2")]
pub(in crate::cli) struct Create {
    /// Folder, empty or new
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// Processor packages, of 40 W to 100 W each
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    packages: u32,

    /// Give each package memory that can be capped, of 5 W to 20 W
    #[arg(long)]
    dram: bool,

    /// GPUs, of 100 W to 300 W each
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=16))]
    gpus: u32,
}

/// Set the uncapped power of the job on an emulated node
#[derive(Debug, Args)]
#[command(after_help = "Example:
  busbar agent emulate demand tree 180W")]
pub(in crate::cli) struct Demand {
    /// Folder of the node
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// Power of the whole node; 0W is an idle node
    #[arg(value_name = "POWER")]
    power: Watts,
}

/// Inject a fault into an emulated node
#[derive(Debug, Args)]
#[command(
    after_help = "Faults: write-denied, read-denied, locked, refused, ignored, disobeyed, disabled, stuck, vanished
Example:
  busbar agent emulate fault tree intel-rapl:0 locked
  busbar agent emulate fault tree --none"
)]
pub(in crate::cli) struct SetFault {
    /// Folder of the node
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// Folder of a zone in it, such as intel-rapl:0 or gpu:0
    #[arg(value_name = "ZONE", required_unless_present = "none", requires = "fault")]
    zone: Option<String>,

    /// Fault
    #[arg(value_name = "FAULT")]
    fault: Option<String>,

    /// Remove all faults
    #[arg(long, conflicts_with_all = ["zone", "fault"])]
    none: bool,
}

/// Advance the counters of emulated nodes, for programs other than the agent
///
/// This runs until it is stopped. An agent with 'emulate = true' advances its node itself, and a node has one
/// driver at a time.
#[derive(Debug, Args)]
pub(in crate::cli) struct Drive {
    /// Folders of the nodes
    #[arg(value_name = "FOLDER", required = true)]
    folders: Vec<PathBuf>,

    /// Step in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    step: u64,
}

pub(super) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Create(arguments) => create(arguments),
        Command::Demand(arguments) => {
            check(&arguments.folder)?;
            emulate::set_demand(&arguments.folder, arguments.power)
                .with_context(|| format!("cannot change {}", arguments.folder.display()))
        }
        Command::Fault(arguments) => fault(arguments),
        Command::Drive(arguments) => drive(arguments),
    }
}

fn create(arguments: &Create) -> anyhow::Result<()> {
    let shape = Shape {
        packages: arguments.packages,
        dram: arguments.dram.then_some(USUAL_DRAM),
        gpus: arguments.gpus,
        ..Shape::default()
    };
    let folder = arguments.folder.display();
    emulate::create(&arguments.folder, shape)
        .with_context(|| format!("cannot make an emulated node in {folder}"))?;
    print(&format!("made an emulated node in {folder}\n"))
}

/// Refuses a folder that is not an emulated node, so that nothing is written to real hardware.
fn check(folder: &Path) -> anyhow::Result<()> {
    match emulate::is_emulated(folder) {
        true => Ok(()),
        false => Err(anyhow!(
            "{folder} is not an emulated node; make one with: busbar agent emulate create {folder}",
            folder = folder.display()
        )),
    }
}

fn fault(arguments: &SetFault) -> anyhow::Result<()> {
    check(&arguments.folder)?;
    let mut faults = emulate::Faults::new();
    if let (Some(zone), Some(name)) = (&arguments.zone, &arguments.fault) {
        if !arguments.folder.join(zone).is_dir() {
            return Err(anyhow!("{} has no zone '{zone}'", arguments.folder.display()));
        }
        let fault: Fault = serde_json::from_value(name.as_str().into())
            .map_err(|_| anyhow!("there is no fault '{name}'; --help lists them"))?;
        faults.insert(zone.clone(), vec![fault]);
    }
    emulate::set_faults(&arguments.folder, &faults)
        .with_context(|| format!("cannot change {}", arguments.folder.display()))
}

fn drive(arguments: &Drive) -> anyhow::Result<()> {
    let open = |folder: &PathBuf| {
        check(folder)?;
        Emulation::open(folder).with_context(|| format!("cannot drive {}", folder.display()))
    };
    let nodes = arguments.folders.iter().map(open).collect::<anyhow::Result<Vec<_>>>()?;
    loop {
        for (node, folder) in nodes.iter().zip(&arguments.folders) {
            node.advance().with_context(|| format!("cannot drive {}", folder.display()))?;
        }
        std::thread::sleep(Duration::from_millis(arguments.step));
    }
}
