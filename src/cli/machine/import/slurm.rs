//! `busbar machine import --slurm`: a machine file from a site's own description of its nodes and partitions.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use super::super::check;
use crate::cli::print;
use crate::cli::slurm::Where;
use crate::machine::check_text;
use crate::profile::counted;
use crate::report::write_whole;
use crate::slurm::calls::Reading;
use crate::slurm::site::{Site, SiteReader};
use crate::workload::records::{Importer, Options};

mod file;
mod floor;
mod parts;

use parts::Parts;

/// What is asked of a cluster.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Arguments {
    /// Describe a Slurm cluster
    #[arg(long = "slurm", help_heading = "Slurm")]
    is_slurm: bool,

    /// Only the nodes of these partitions of Slurm, separated by commas
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        requires = "is_slurm",
        help_heading = "Slurm"
    )]
    partition: Vec<String>,

    /// Accounting records (sacct) with energy: nodes draw at least what a job on them was measured to draw
    #[arg(long, value_name = "FILE", requires = "is_slurm", help_heading = "Slurm")]
    records: Option<PathBuf>,

    /// Name of the machine in reports [default: the name of the cluster]
    #[arg(long, value_name = "NAME", requires = "is_slurm", help_heading = "Slurm")]
    name: Option<String>,

    /// Overwrite an existing file
    #[arg(long, requires = "is_slurm", help_heading = "Slurm")]
    force: bool,

    #[command(flatten, next_help_heading = "Slurm, if the cluster is asked")]
    cluster: Where,
}

impl Arguments {
    pub(super) fn is_meant(&self) -> bool {
        self.is_slurm
    }
}

pub(super) fn run(
    arguments: &Arguments,
    files: &[PathBuf],
    out: Option<&Path>,
) -> anyhow::Result<()> {
    let site = arguments.site(files)?;
    let Parts { mut parts, over } = Parts::of(&site);
    if let Some(records) = &arguments.records {
        let mut importer = Importer::new(Options::default())?;
        importer.read_path(records)?;
        floor::find(&mut parts, &importer.finish()?);
        if parts.iter().all(|part| part.floor.is_none()) {
            bail!(
                "{}: no job on whole nodes of this cluster has a measured energy, so the records say nothing of what \
                 nodes draw; dump with the columns ConsumedEnergyRaw and NodeList, or leave --records out",
                records.display()
            );
        }
    }
    let name = arguments.name.as_ref().or(site.name.as_ref());
    let text = file::text(name.map(String::as_str), &site, &parts, &over);
    if let Err(problems) = check_text(&text, "machine", Path::new("")) {
        bail!("this cluster is not a valid machine: {}", check::describe("the file", &problems));
    }
    let Some(out) = out else { return print(&text) };
    if out.exists() && !arguments.force {
        bail!("{} already exists; overwrite it with --force, or name another file", out.display());
    }
    write_whole(out, &|file| file.write_all(text.as_bytes()))?;
    let nodes: usize = parts.iter().map(|part| part.nodes.len()).sum();
    let kinds = counted(site.kinds.len(), "kind");
    let what = format!("{} of {kinds}", counted(nodes, "node"));
    print(&format!(
        "{}: {what}; what they draw is asked for in the lines with '?'; 'busbar machine show {0}' shows the machine\n",
        out.display()
    ))
}

/// The names of a cluster's nodes in the order in which its machine file numbers them.
pub(in crate::cli) fn numbered(site: &Site) -> Vec<String> {
    let parts = Parts::of(site).parts;
    parts.iter().flat_map(|part| part.nodes.names().to_vec()).collect()
}

impl Arguments {
    /// What the files say, or the cluster if there are none.
    fn site(&self, files: &[PathBuf]) -> anyhow::Result<Site> {
        let mut reader = SiteReader::default();
        for path in files {
            let bytes = std::fs::read(path)
                .with_context(|| format!("cannot read the description {}", path.display()))?;
            reader.read(&path.to_string_lossy(), &String::from_utf8_lossy(&bytes))?;
        }
        if files.is_empty() {
            let commands = self.cluster.commands();
            for reading in [Reading::Nodes, Reading::Partitions] {
                let printed = commands.ask(reading)?;
                reader.read("what scontrol prints", &printed)?;
            }
            let configuration = commands.configuration()?;
            let is_told = |key: &str| ["ClusterName", "SelectType"].contains(&key);
            let told = configuration.into_iter().filter(|(key, _)| is_told(key));
            let told: Vec<String> = told.map(|(key, value)| format!("{key}={value}\n")).collect();
            if !told.is_empty() {
                reader.read("scontrol show config", &told.concat())?;
            }
        }
        Ok(reader.finish(&self.partition)?)
    }
}
