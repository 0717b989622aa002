//! Limits of racks and rows in mode `admit`, by Slurm's hierarchical resources (`resources.yaml`).
//!
//! Slurm counts such a resource per node, and admits a job only if its watts fit into every layer that its nodes are in. A
//! reservation of it is not respected, so the budget of all moves by [licences](super::Site::licence), and layers are
//! limits that stay.

use std::collections::BTreeSet;

use crate::hosts::HostList;
use crate::version::Version;

/// The name of the resource. It must not be that of a licence.
pub(crate) const RESOURCE: &str = "watts";

/// Nodes that share a limit of their own, such as a rack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The nodes.
    pub nodes: HostList,
    /// What jobs may draw there together.
    pub watts: u64,
}

/// What is wrong with layers, if something is. Slurm wants each node in one of them.
pub(super) fn mistake(layers: &[Layer]) -> Option<String> {
    let mut seen = BTreeSet::new();
    for layer in layers {
        if layer.nodes.is_empty() || layer.watts == 0 {
            return Some("a layer needs nodes and watts".to_owned());
        }
        if let Some(twice) = layer.nodes.names().iter().find(|name| !seen.insert((*name).clone())) {
            return Some(format!("node {twice} is in two layers; keep it in one"));
        }
    }
    None
}

/// The file `resources.yaml`: one layer with all nodes and the watts of the feed, and those below it. From 26.11 on layers
/// have names, and those above others get their nodes from them.
pub fn resources(layers: &[Layer], feed: u64, version: Version) -> String {
    let named = version.names_layers();
    let mut text = format!(
        "# Busbar: what jobs may draw on nodes that share a limit. Slurm counts it for each node of a job.\n\
         - resource: {RESOURCE}\n  mode: MODE_3\n  layers:\n"
    );
    let mut layer = |name: String, parent: &str, nodes: Option<String>, watts: u64| {
        let mut lines = Vec::new();
        if named {
            lines.push(format!("layer_name: {name}"));
        }
        if named && !parent.is_empty() {
            lines.push(format!("parent_name: {parent}"));
        }
        lines.extend(nodes.map(|nodes| format!("nodes:\n        - \"{nodes}\"")));
        lines.push(format!("count: {watts}"));
        text += &format!("    - {}\n", lines.join("\n      "));
    };
    let all = HostList::new(layers.iter().flat_map(|layer| layer.nodes.names().to_vec()));
    layer("all".to_owned(), "", (!named).then(|| all.to_string()), feed);
    for (number, Layer { nodes, watts }) in (1..).zip(layers) {
        layer(format!("layer{number}"), "all", Some(nodes.to_string()), *watts);
    }
    text
}
