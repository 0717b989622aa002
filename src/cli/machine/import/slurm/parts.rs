//! The parts that a machine file has for a cluster: nodes of one kind that are in the same partitions of Slurm. A partition of
//! Slurm that has just such nodes, and shares them with no other, is such a part; any other has the nodes of several parts.

use std::collections::{BTreeMap, BTreeSet};

use crate::slurm::hosts::HostList;
use crate::slurm::site::{self, Shape, Site};
use crate::units::Watts;

/// The partitions of the machine file.
pub(super) struct Parts<'a> {
    /// Those with nodes of their own.
    pub(super) parts: Vec<Part<'a>>,
    /// Those with the nodes of others.
    pub(super) over: Vec<Over<'a>>,
}

/// Nodes that become a part of the machine file.
pub(super) struct Part<'a> {
    /// Its name.
    pub(super) name: String,
    pub(super) shape: &'a Shape,
    pub(super) nodes: HostList,
    /// Whether jobs share its nodes.
    pub(super) is_shared: bool,
    /// What each of its nodes draws at least when it is busy, and the job that was measured.
    pub(super) floor: Option<(Watts, String)>,
}

/// A partition of Slurm with the nodes of parts.
pub(super) struct Over<'a> {
    pub(super) partition: &'a site::Part,
    /// The names of the parts.
    pub(super) of: Vec<String>,
}

impl<'a> Parts<'a> {
    pub(super) fn of(site: &'a Site) -> Self {
        // By node: the partitions that it is in.
        let mut partitions_of: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (place, partition) in site.partitions.iter().enumerate() {
            for name in partition.nodes.names() {
                partitions_of.entry(name).or_default().push(place);
            }
        }
        let mut groups: Vec<(&Shape, Vec<usize>, Vec<String>)> = Vec::new();
        for kind in &site.kinds {
            let first = groups.len();
            for name in kind.nodes.names() {
                let of = partitions_of.get(name.as_str()).cloned().unwrap_or_default();
                match groups[first..].iter_mut().find(|(_, known, _)| *known == of) {
                    Some((.., names)) => names.push(name.clone()),
                    None => groups.push((&kind.shape, of, vec![name.clone()])),
                }
            }
        }
        let taken: BTreeSet<&str> = site.partitions.iter().map(|part| part.name.as_str()).collect();
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        let mut own: BTreeSet<usize> = BTreeSet::new();
        let mut parts: Vec<Part<'a>> = Vec::new();
        for (shape, of, names) in &groups {
            let is_all = |place: &usize| site.partitions[*place].nodes.len() == names.len();
            let name = match &of[..] {
                [only] if is_all(only) => {
                    own.insert(*only);
                    site.partitions[*only].name.clone()
                }
                _ => {
                    let name = match name_of(shape) {
                        name if taken.contains(name.as_str()) => format!("{name}-nodes"),
                        name => name,
                    };
                    let count = counts.entry(name.clone()).or_default();
                    *count += 1;
                    if *count == 1 { name } else { format!("{name}-{count}") }
                }
            };
            let is_shared = of.iter().any(|place| !site.partitions[*place].is_exclusive);
            let nodes = HostList::new::<String>(names.clone());
            parts.push(Part { name, shape, nodes, is_shared, floor: None });
        }
        let over = site.partitions.iter().enumerate().filter(|(place, _)| !own.contains(place));
        let over = over.map(|(place, partition)| {
            let has = groups.iter().zip(&parts).filter(|((_, of, _), _)| of.contains(&place));
            Over { partition, of: has.map(|(_, part)| part.name.clone()).collect() }
        });
        let over = over.collect();
        Parts { parts, over }
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
