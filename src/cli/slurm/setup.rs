//! `busbar slurm setup`: prints the files that a site installs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::Args;

use super::Where;
use crate::cli::print;
use crate::report::{make_folder, write_whole};
use crate::slurm::check::{conf_folder, tracked};
use crate::slurm::cluster::Cluster;
use crate::slurm::commands::Commands;
use crate::slurm::hosts::HostList;
use crate::slurm::setup::{self, Fail, Layer, Mode, Site};
use crate::slurm::version::Version;
use crate::units::Watts;

/// Print the files to install for Busbar: job_submit.lua, prolog, epilog, lines of slurm.conf, systemd drop-ins
///
/// With --write, the files are written into a folder; slurm.conf itself is never changed.
#[derive(Debug, Args)]
#[command(
    after_help = "Modes: watch only reads; in steer, Busbar starts the jobs; in admit, Slurm starts them within \
    Busbar's watts.
Examples:
  busbar slurm setup --mode steer --partition main
  busbar slurm setup --mode admit --watts 40kW --node-watts 400W --write /etc/slurm"
)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    cluster: Where,

    #[command(flatten)]
    site: SiteArguments,

    /// Write job_submit.lua, busbar-prolog and busbar-epilog into this folder
    #[arg(long, value_name = "FOLDER")]
    write: Option<PathBuf>,

    /// Version of Slurm to print for [default: the installed one]
    #[arg(long, value_name = "VERSION")]
    slurm_version: Option<Version>,

    /// Print one JSON object with the files
    #[arg(long)]
    json: bool,
}

/// The options that differ between sites.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct SiteArguments {
    /// How Busbar works on the cluster: watch, steer or admit
    #[arg(long, value_name = "MODE", default_value = "steer")]
    mode: Mode,

    /// What happens in mode steer while no daemon runs: jobs wait, or Slurm admits them within watts
    #[arg(long, value_name = "wait|admit", default_value = "wait")]
    fail: Fail,

    /// A partition that Busbar manages; may be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    partition: Vec<String>,

    /// Power of the feed, for mode admit and --fail admit
    #[arg(long, value_name = "POWER")]
    watts: Option<Watts>,

    /// Power of a node [default: 200W]
    #[arg(long, value_name = "POWER")]
    node_watts: Option<Watts>,

    /// Power of a node of this partition; may be repeated
    #[arg(long, value_name = "PARTITION=POWER", value_parser = named_watts)]
    partition_watts: Vec<(String, Watts)>,

    /// Power of a node that runs this application; may be repeated
    #[arg(long, value_name = "APP=POWER", value_parser = named_watts)]
    app_watts: Vec<(String, Watts)>,

    /// A separate limit of some nodes, such as a rack, in mode admit on Slurm 25.11 and newer; may be repeated
    #[arg(long, value_name = "NODES=POWER", value_parser = layer)]
    layer: Vec<(HostList, Watts)>,

    /// Processors of a node, for jobs that request only tasks
    #[arg(long, value_name = "N", default_value_t = 0)]
    node_cpus: u32,

    /// Power of a GPU, of all types or of one, in mode admit; may be repeated
    #[arg(long, value_name = "[TYPE=]POWER", value_parser = gpu_watts)]
    gpu_watts: Vec<(String, Watts)>,

    /// GPUs of a node, for jobs whose request for GPUs cannot be read
    #[arg(long, value_name = "N", default_value_t = 0)]
    node_gpus: u32,

    /// Jobs share nodes, in mode steer: they get processors, memory and GPUs instead of whole nodes
    #[arg(long)]
    shared: bool,

    /// User ID of an operator besides root; may be repeated
    #[arg(long, value_name = "UID")]
    operator: Vec<u32>,

    /// The agent's socket on each node
    #[arg(long, value_name = "PATH", default_value = "/run/busbar-agent/socket")]
    agent_socket: PathBuf,

    /// Path of busbar on each node [default: that of this program]
    #[arg(long, value_name = "PATH")]
    busbar: Option<PathBuf>,
}

impl SiteArguments {
    /// The site. Where slurmctld answers, files are beside its slurm.conf.
    pub(super) fn site(&self, commands: &Commands) -> anyhow::Result<Site> {
        let mut site = Site::new(self.mode);
        site.fail = self.fail;
        site.partitions = self.partition.clone();
        site.watts = self.watts.map(whole_watts).transpose()?.map_or(0, u64::from);
        if let Some(watts) = self.node_watts {
            site.node_watts = whole_watts(watts)?;
        }
        site.partition_watts = table(&self.partition_watts)?;
        site.app_watts = table(&self.app_watts)?;
        for (nodes, watts) in &self.layer {
            site.layers.push(Layer { nodes: nodes.clone(), watts: whole_watts(*watts)?.into() });
        }
        site.node_cpus = self.node_cpus;
        site.gpu_watts = table(&self.gpu_watts)?;
        site.node_gpus = self.node_gpus;
        site.is_shared = self.shared;
        site.operators = self.operator.clone();
        site.agent_socket = self.agent_socket.clone();
        site.busbar = match &self.busbar {
            Some(path) => path.clone(),
            None => std::env::current_exe().context("cannot find this program")?,
        };
        if let Ok(folder) = conf_folder(commands) {
            site.off_file = folder.join("busbar.off");
        }
        site.tracked = tracked(commands).ok().flatten();
        match site.mistake() {
            Some(mistake) if site.may_admit() && site.watts == 0 => {
                Err(anyhow!("{mistake}; name them with --watts"))
            }
            Some(mistake) => Err(anyhow!(mistake)),
            None => Ok(site),
        }
    }
}

fn layer(text: &str) -> Result<(HostList, Watts), String> {
    let (nodes, watts) = text.split_once('=').ok_or("expected NODES=POWER, such as n[1-8]=4kW")?;
    let nodes = nodes.parse::<HostList>().map_err(|error| error.to_string())?;
    Ok((nodes, watts.parse::<Watts>().map_err(|error| error.to_string())?))
}

fn gpu_watts(text: &str) -> Result<(String, Watts), String> {
    match text.contains('=') {
        true => named_watts(text),
        false => Ok((String::new(), text.parse::<Watts>().map_err(|error| error.to_string())?)),
    }
}

fn named_watts(text: &str) -> Result<(String, Watts), String> {
    let (name, watts) = text.split_once('=').ok_or("expected NAME=POWER, such as lulesh=150W")?;
    Ok((name.to_owned(), watts.parse::<Watts>().map_err(|error| error.to_string())?))
}

/// Watts as licences count them: whole ones, rounded up.
fn whole_watts(power: Watts) -> anyhow::Result<u32> {
    u32::try_from(power.milliwatts().div_ceil(1000)).context("that is too much power")
}

fn table(list: &[(String, Watts)]) -> anyhow::Result<BTreeMap<String, u32>> {
    list.iter().map(|(name, watts)| Ok((name.clone(), whole_watts(*watts)?))).collect()
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let commands = arguments.cluster.commands();
    let version = match arguments.slurm_version {
        Some(version) => version,
        None => commands
            .version()
            .context("cannot find the version of Slurm; name it with --slurm-version")?,
    };
    if !version.is_supported() {
        bail!("Slurm {version} is too old; Busbar supports {} and newer", Version::OLDEST);
    }
    let site = arguments.site.site(&commands)?;
    if !site.layers.is_empty() && !version.has_hierarchical_resources() {
        bail!(
            "--layer needs the hierarchical resources of Slurm 25.11 or newer; this is Slurm {version}"
        );
    }
    let folder = match &arguments.write {
        Some(folder) => folder.clone(),
        None => conf_folder(&commands).unwrap_or_else(|_| "/etc/slurm".into()),
    };
    let files = files(&site, version, &folder);
    let lines = setup::conf_lines(
        &site,
        version,
        &folder.join("busbar-prolog"),
        &folder.join("busbar-epilog"),
    );
    if let Some(folder) = &arguments.write {
        make_folder(folder)?;
        if site.mode != Mode::Watch
            && site.off_file.parent() == Some(folder)
            && !site.off_file.exists()
        {
            setup::Switch::On.write(&site.off_file)?;
        }
        for (path, text, mode) in &files {
            write_whole(path, &|out| out.write_all(text.as_bytes()))?;
            let set = std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode));
            set.with_context(|| format!("cannot change {}", path.display()))?;
        }
    }
    let units = setup::drop_ins(&site);
    if arguments.json {
        let mut all = BTreeMap::new();
        for (path, text, _) in &files {
            all.insert(path.display().to_string(), text.clone());
        }
        all.insert("slurm.conf".to_owned(), lines);
        all.extend(
            units.into_iter().map(|(name, text)| (format!("/etc/systemd/system/{name}"), text)),
        );
        return print(&(serde_json::to_string_pretty(&all)? + "\n"));
    }
    let mut text = format!("# Busbar on Slurm {version}, mode {}\n", site.mode);
    for (path, content, _) in &files {
        // Writing to a string does not fail.
        let _ = match arguments.write {
            Some(_) => writeln!(text, "# written: {}", path.display()),
            None => write!(text, "\n## {}\n{content}", path.display()),
        };
    }
    let _ = write!(text, "\n## to be added to slurm.conf; then restart slurmctld\n{lines}");
    for (name, content) in units {
        let _ = write!(text, "\n## /etc/systemd/system/{name}\n{content}");
    }
    let _ = writeln!(text, "\n# afterwards: busbar slurm check --mode {}", site.mode);
    print(&text)
}

/// The files of a site, with their modes; mode watch has none.
fn files(site: &Site, version: Version, folder: &Path) -> Vec<(PathBuf, String, u32)> {
    if site.mode == Mode::Watch {
        return Vec::new();
    }
    let mut files = vec![
        (folder.join("job_submit.lua"), setup::job_submit(site), 0o644),
        (folder.join("busbar-prolog"), setup::prolog(site), 0o755),
        (folder.join("busbar-epilog"), setup::epilog(), 0o755),
    ];
    if !site.layers.is_empty() {
        let resources = setup::resources(&site.layers, site.watts, version);
        files.push((folder.join("resources.yaml"), resources, 0o644));
    }
    files
}
