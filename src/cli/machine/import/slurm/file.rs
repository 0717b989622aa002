//! The text of a machine file for a cluster, with questions where Slurm does not know the answer.

use std::collections::BTreeSet;

use super::parts::{Over, Part};
use crate::machine::Machine;
use crate::slurm::hosts::HostList;
use crate::slurm::site::{Shape, Site};

/// The whole file.
pub(super) fn text(
    name: Option<&str>,
    site: &Site,
    parts: &[Part<'_>],
    over: &[Over<'_>],
) -> String {
    let mut file = format!(
        "# A machine file of Busbar, made by 'busbar machine import --slurm'. Slurm does not know what nodes draw: the lines\n\
         # with '?' ask for it. Until they are answered, a busy node counts with {} in all, its GPUs included, unless a value\n\
         # from records stands there. 'busbar machine check' finds mistakes, 'busbar machine show' shows what it all means.\n\n",
        Machine::ASSUMED_NODE_POWER
    );
    if let Some(name) = name {
        file += &format!("name = {}\n", quoted(name));
    }
    match parts {
        [only] if !only.is_shared => part(&mut file, site, only),
        parts => {
            for each in parts {
                file += &format!("\n[[partition]]\nname = {}\n", quoted(&each.name));
                part(&mut file, site, each);
                held(&mut file, each);
            }
            for Over { partition, of } in over {
                let of: Vec<String> = of.iter().map(|name| quoted(name)).collect();
                file += &format!("\n[[partition]]\nname = {}\n", quoted(&partition.name));
                file += &format!("of = [{}]\n", of.join(", "));
                shared(&mut file, !partition.is_exclusive);
            }
        }
    }
    file
}

/// What jobs can hold of a node beside its processors.
fn held(file: &mut String, part: &Part<'_>) {
    let Shape { memory_mib, .. } = *part.shape;
    if (1..=u64::from(u32::MAX)).contains(&memory_mib) {
        *file += &format!("memory = \"{memory_mib}MiB\"\n");
    }
    if part.shape.gpu_count() > 0 {
        *file += &format!("gpus = {}\n", part.shape.gpu_count());
    }
    if part.shape.weight != 1 {
        *file += &format!("weight = {}\n", part.shape.weight);
    }
    shared(file, part.is_shared);
}

fn shared(file: &mut String, is_shared: bool) {
    if is_shared {
        *file += "shared = true  # jobs take processors of nodes; without this line, whole nodes\n";
    }
}

fn part(file: &mut String, site: &Site, part: &Part<'_>) {
    let Part { shape, nodes, .. } = part;
    *file += &format!("nodes = {}  # {}\n", nodes.len(), shown(&nodes.to_string()));
    *file += &format!("processors_per_node = {}  # as Slurm counts them\n", shape.processors);
    *file += &format!("sockets_per_node = {}\n", shape.sockets);
    for sentence in about(site, part) {
        *file += &format!("# {}\n", shown(&sentence));
    }
    power(file, part);
}

/// What is known of a part and has no key, a sentence for each thing.
fn about(site: &Site, part: &Part<'_>) -> Vec<String> {
    let Part { shape, nodes, .. } = part;
    let gpu = |(kind, count): (&String, &u32)| match kind.as_str() {
        "" => format!("{count} GPUs"),
        kind => format!("{count} GPUs of type {kind}"),
    };
    let memory = (shape.memory_mib > 0).then(|| format!("{} MiB of memory", shape.memory_mib));
    let features: Vec<&str> = shape.features.iter().map(String::as_str).collect();
    let features = (!features.is_empty()).then(|| format!("features {}", features.join(", ")));
    let has: Vec<String> =
        memory.into_iter().chain(shape.gpus.iter().map(gpu)).chain(features).collect();
    let mut said = Vec::new();
    if !has.is_empty() {
        said.push(format!("Each node has {}.", has.join(", ")));
    }
    let own: BTreeSet<&String> = nodes.names().iter().collect();
    let common = |list: &HostList| {
        let names = list.names().iter().filter(|name| own.contains(name));
        HostList::new::<String>(names.cloned())
    };
    let mut partitions = Vec::new();
    for partition in &site.partitions {
        let (here, all) = (common(&partition.nodes).len(), partition.nodes.len());
        if here > 0 && here == all && all == nodes.len() {
            partitions.push(partition.name.clone());
        } else if here > 0 {
            partitions.push(format!("{} ({here} of its {all} nodes)", partition.name));
        }
    }
    said.push(match partitions.is_empty() {
        true => "In no partition of Slurm.".to_owned(),
        false => format!("Partitions of Slurm: {}.", partitions.join(", ")),
    });
    for switch in &site.switches {
        let below = common(&switch.nodes);
        if !below.is_empty() {
            said.push(format!("Below the switch {}: {below}.", switch.name));
        }
    }
    said
}

/// What nodes draw, as far as records tell, and the questions that they leave.
fn power(file: &mut String, part: &Part<'_>) {
    let busy = "the highest power of a busy node without its GPUs";
    *file += &match &part.floor {
        Some((watts, job)) => format!(
            "# ? A busy node draws at least the mean power of job {} on each of its nodes; replace it by {busy}.\n\
             power.node = \"{watts}\"\n",
            shown(job)
        ),
        None => format!("# ? power.node = \"{}\"  # {busy}\n", Machine::ASSUMED_NODE_POWER),
    };
    *file += "# ? power.idle = \"…W\"  # the power of a node without a job; 15 % of a busy node is assumed\n";
    let gpus = part.shape.gpu_count();
    if gpus > 0 {
        *file += &format!("# ? power.gpus = {gpus}\n");
        *file += "# ? power.gpu = \"…W\"  # the highest power of each GPU\n";
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", shown(text).replace('\\', "\\\\").replace('"', "\\\""))
}

/// A text without signs that would end a comment or a line.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
