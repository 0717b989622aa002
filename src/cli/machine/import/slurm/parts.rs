//! The parts that a machine file has for a cluster: nodes of one kind each.

use std::collections::BTreeMap;

use crate::slurm::hosts::HostList;
use crate::slurm::site::{Kind, Shape, Site};
use crate::units::Watts;

/// Nodes that become a part of the machine file.
pub(super) struct Part<'a> {
    /// Its name.
    pub(super) name: String,
    pub(super) shape: &'a Shape,
    pub(super) nodes: HostList,
    /// What each of its nodes draws at least when it is busy, and the job that was measured.
    pub(super) floor: Option<(Watts, String)>,
}

impl<'a> Part<'a> {
    /// The parts of a cluster: its partitions, if each has nodes of one kind and no node is in two or in none.
    /// Otherwise a part is all nodes of a kind.
    pub(super) fn all(site: &'a Site) -> Vec<Part<'a>> {
        Part::by_partition(site).unwrap_or_else(|| Part::by_kind(site))
    }

    fn by_partition(site: &'a Site) -> Option<Vec<Part<'a>>> {
        let mut kind_of: BTreeMap<&str, &Kind> = BTreeMap::new();
        for kind in &site.kinds {
            kind_of.extend(kind.nodes.names().iter().map(|name| (name.as_str(), kind)));
        }
        let mut parts = Vec::new();
        for partition in &site.partitions {
            // A node that was taken by another partition is not there any more.
            let mut kinds = Vec::new();
            for name in partition.nodes.names() {
                kinds.push(kind_of.remove(name.as_str())?);
            }
            let first = *kinds.first()?;
            if kinds.iter().any(|kind| !std::ptr::eq(*kind, first)) {
                return None;
            }
            let (name, nodes) = (partition.name.clone(), partition.nodes.clone());
            parts.push(Part { name, shape: &first.shape, nodes, floor: None });
        }
        kind_of.is_empty().then_some(parts)
    }

    fn by_kind(site: &'a Site) -> Vec<Part<'a>> {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        let part = |kind: &'a Kind| {
            let name = name_of(&kind.shape);
            let count = counts.entry(name.clone()).or_default();
            *count += 1;
            let name = if *count == 1 { name } else { format!("{name}-{count}") };
            Part { name, shape: &kind.shape, nodes: kind.nodes.clone(), floor: None }
        };
        site.kinds.iter().map(part).collect()
    }
}

/// What nodes of a shape are called: by the type of their GPUs, or `cpu`.
fn name_of(shape: &Shape) -> String {
    let is_plain =
        |name: &&String| name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    match shape.gpus.keys().find(|name| !name.is_empty()).filter(is_plain) {
        Some(name) => name.clone(),
        None if shape.gpus.is_empty() => "cpu".to_owned(),
        None => "gpu".to_owned(),
    }
}
