//! `busbar lab`: a private Slurm on this machine.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::cli::print;
use crate::slurm::cluster::Cluster;
use crate::slurm::lab::{Extras, Lab, Member, Plan, Up};
use crate::slurm::setup::Mode;

/// Run a private Slurm with emulated power on this machine, for experiments
///
/// A lab runs munge, slurmctld and some slurmds on loopback; each node has an emulated meter and an agent. It needs
/// root, and installs Slurm's Debian packages if they are missing.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Up(UpArguments),
    Status(StatusArguments),
    Down(DownArguments),
}

/// Start a lab, or its missing processes
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar lab up
  busbar lab up --nodes 4 --mode admit --folder /tmp/other-lab
  busbar lab up --nodes 4 --gpu-nodes 2 --shared --mode watch")]
pub(super) struct UpArguments {
    #[command(flatten)]
    place: Place,

    /// Number of nodes without GPUs, of 4 processors and up to 200 W each
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1000))]
    nodes: u32,

    /// Number of further nodes, of 8 processors, 4 GPUs and up to 1400 W each
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=999))]
    gpu_nodes: u32,

    /// Let jobs share nodes: they get processors, memory and GPUs instead of whole nodes
    #[arg(long)]
    shared: bool,

    /// How Busbar works on the lab: watch, steer or admit
    #[arg(long, value_name = "MODE", default_value = "watch")]
    mode: Mode,

    /// Run no agents
    #[arg(long)]
    no_agents: bool,

    /// Run slurmrestd, too
    #[arg(long)]
    rest: bool,

    /// Run MariaDB and slurmdbd, too, so that jobs can change their size more than once
    #[arg(long)]
    accounting: bool,

    /// Prefix of a Slurm other than the system's: a folder with bin and sbin
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
}

/// Show the processes and nodes of a lab
#[derive(Debug, Args)]
pub(super) struct StatusArguments {
    #[command(flatten)]
    place: Place,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Stop a lab and remove its folder
#[derive(Debug, Args)]
pub(super) struct DownArguments {
    #[command(flatten)]
    place: Place,

    /// Keep the folder with its logs
    #[arg(long)]
    keep: bool,
}

/// The folder of a lab.
#[derive(Debug, Args)]
#[group(skip)]
struct Place {
    /// Folder of the lab
    #[arg(long, value_name = "FOLDER", default_value = "/tmp/busbar-lab")]
    folder: PathBuf,
}

/// Runs a command.
pub(super) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Up(arguments) => up(arguments),
        Command::Status(arguments) => status(arguments),
        Command::Down(arguments) => down(arguments),
    }
}

fn up(arguments: &UpArguments) -> anyhow::Result<()> {
    let own = std::env::current_exe().context("cannot find this program")?;
    let busbar = (cfg!(feature = "agent") && !arguments.no_agents).then_some(own);
    let extras = Extras { rest: arguments.rest, accounting: arguments.accounting };
    let programs = arguments.programs.as_ref().map(std::path::absolute).transpose()?;
    let plan = Plan {
        nodes: arguments.nodes,
        gpu_nodes: arguments.gpu_nodes,
        is_shared: arguments.shared,
        mode: arguments.mode,
        busbar,
        extras,
        programs,
    };
    let (lab, up) = Lab::up(&arguments.place.folder, &plan)?;
    let folder = lab.folder().display();
    let first = match up {
        Up::Started => format!("a lab of {} nodes is up in {folder}", lab.nodes()),
        Up::Repaired => {
            format!("the lab in {folder} is up again; its missing processes were started")
        }
        Up::Already => format!("the lab in {folder} is up already"),
    };
    let has_daemon = arguments.mode != Mode::Watch;
    let job = if plan.is_shared { "sbatch -n2" } else { "sbatch -N2" };
    let (serve, stop) = match has_daemon {
        true => (format!("busbar serve --config {folder}/busbar.toml &\n  "), "busbar stop\n  "),
        false => (String::new(), ""),
    };
    let queue = if has_daemon { "busbar queue" } else { "busbar slurm jobs" };
    print(&format!(
        "{first}\n\
         now type:\n  \
         . {env}\n  \
         sinfo\n  \
         {serve}{job} -t 5 --wrap 'sleep 60'\n  \
         {queue}\n\
         at the end:\n  \
         {stop}busbar lab down --folder {folder}\n",
        env = lab.environment_file().display()
    ))
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Status<'a> {
    folder: String,
    is_up: bool,
    conf: String,
    processes: &'a [Member],
    nodes: Option<Vec<crate::slurm::model::Node>>,
}

fn status(arguments: &StatusArguments) -> anyhow::Result<()> {
    let folder = &arguments.place.folder;
    let Some(lab) = Lab::find(folder)? else {
        if arguments.json {
            return print("{\"is_up\": false}\n");
        }
        return print(&format!("there is no lab in {}\n", folder.display()));
    };
    let members = lab.members()?;
    let is_up = members.iter().all(|member| member.pid.is_some());
    let nodes = lab.commands().nodes().ok().map(|nodes| nodes.read);
    if arguments.json {
        let status = Status {
            folder: lab.folder().display().to_string(),
            is_up,
            conf: lab.conf().display().to_string(),
            processes: &members,
            nodes,
        };
        return print(&(serde_json::to_string_pretty(&status)? + "\n"));
    }
    let mut text = String::new();
    let running = members.iter().filter(|member| member.pid.is_some()).count();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "lab in {}: {running} of {} processes run",
        lab.folder().display(),
        members.len()
    );
    for member in members.iter().filter(|member| member.pid.is_none()) {
        let _ = writeln!(text, "  {} does not run", member.name);
    }
    let _ = match nodes {
        Some(nodes) => {
            let usable = nodes.iter().filter(|node| node.state.is_usable()).count();
            writeln!(text, "{usable} of {} nodes are in service", nodes.len())
        }
        None => writeln!(text, "slurmctld does not answer"),
    };
    print(&text)
}

fn down(arguments: &DownArguments) -> anyhow::Result<()> {
    let folder = &arguments.place.folder;
    let Some(lab) = Lab::find(folder)? else {
        return print(&format!("there is no lab in {}\n", folder.display()));
    };
    if lab.members()?.iter().any(|member| member.pid.is_some()) && !is_root() {
        bail!("the lab in {} was started by root; only root can stop it", folder.display());
    }
    lab.down(arguments.keep)?;
    print(&format!("the lab in {} is down\n", folder.display()))
}

/// Whether this process is root's.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
