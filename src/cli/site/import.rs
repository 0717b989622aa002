//! `busbar site import`: a site file from what Slurm says of its priorities.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use crate::cli::machine::import::slurm::numbered;
use crate::cli::{print, warn};
use crate::priority::SiteFile;
use crate::profile::counted;
use crate::report::write_whole;
use crate::slurm::priorities::Priorities;
use crate::slurm::site::SiteReader;

mod file;

/// Convert the priorities of a Slurm cluster to a site file
///
/// The files are what 'scontrol show config', 'scontrol show partition', 'sacctmgr show assoc tree -P', 'sacctmgr show
/// qos -P', 'sshare -a -l -P', 'scontrol show reservation' and 'scontrol show node' print, in any order. What sshare says was used counts as usage from before the first job.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  scontrol show config > config.txt
  sacctmgr show assoc tree -P > associations.txt
  busbar site import config.txt associations.txt --out site.toml
  busbar simulate log.swf --policy 'easy(order=multifactor)' --site site.toml")]
pub(in crate::cli) struct Arguments {
    /// Saved answers of Slurm
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The log's table of names, which 'busbar workload import --names' writes; it has to stand beside the site file
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,

    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

/// What the answers say, and the nodes in the order of their numbers if they are among the answers.
fn read(files: &[PathBuf]) -> anyhow::Result<(Priorities, Vec<String>)> {
    let (mut found, mut nodes, mut has_nodes) =
        (Priorities::default(), SiteReader::default(), false);
    for path in files {
        let bytes = std::fs::read(path)
            .with_context(|| format!("cannot read the answer {}", path.display()))?;
        let (name, text) = (path.to_string_lossy(), String::from_utf8_lossy(&bytes));
        let is_of_nodes = text.trim_start().starts_with("NodeName=");
        if is_of_nodes || text.trim_start().starts_with("PartitionName=") {
            nodes.read(&name, &text)?;
        }
        has_nodes |= is_of_nodes;
        if !is_of_nodes {
            found.read(&name, &text)?;
        }
    }
    let numbers = match has_nodes {
        true => numbered(&nodes.finish(&[])?),
        false => Vec::new(),
    };
    Ok((found, numbers))
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let (found, numbers) = read(&arguments.files)?;
    if let Some(other) =
        found.config.get("PriorityType").filter(|kind| !kind.ends_with("multifactor"))
    {
        bail!(
            "this cluster has no priorities of several factors (PriorityType = {other}); use the policies without \
             order=multifactor"
        );
    }
    let file::SiteText { text, left_out } =
        file::text(&found, &numbers, arguments.names.as_deref());
    // What comes out must be a site file, or nothing is written. The table of names need not be there yet.
    let without_names = file::text(&found, &numbers, None).text;
    SiteFile::from_text(Path::new("the site file"), without_names)
        .context("this cluster does not make a valid site file")?;
    left_out.iter().for_each(|what| warn(&format!("left out: {what}")));
    let Some(out) = &arguments.out else { return print(&text) };
    if out.exists() && !arguments.force {
        bail!("{} already exists; overwrite it with --force, or name another file", out.display());
    }
    write_whole(out, &|file| file.write_all(text.as_bytes()))?;
    let parts = [
        counted(found.accounts.len(), "account"),
        counted(found.users.len(), "user"),
        counted(found.partitions.len(), "partition"),
        counted(found.qos.len(), "quality of service"),
    ];
    print(&format!("{}: {}\n", out.display(), parts.join(", ")))
}
