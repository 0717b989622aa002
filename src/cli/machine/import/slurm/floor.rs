//! What nodes draw at least: a job that had them for itself was measured to draw so much on each of them.

use std::collections::{BTreeMap, BTreeSet};

use super::parts::Part;
use crate::units::Watts;
use crate::workload::records::{Import, Kind, Run};

/// Gives each part the largest mean power that a job had on each of its nodes. A job counts where all its nodes are in
/// one part, by their names. Without names it counts where its partition has the name of a part.
pub(super) fn find(parts: &mut [Part<'_>], import: &Import) {
    let mut of_name: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, part) in parts.iter().enumerate() {
        of_name.extend(part.nodes.names().iter().map(|name| (name.as_str(), place)));
    }
    let names = import.node_names();
    let of_node: Vec<Option<usize>> =
        names.iter().map(|name| of_name.get(name.as_str()).copied()).collect();
    let partitions = import.names().of(Kind::Partition);
    let of_partition: Vec<Option<usize>> =
        partitions.iter().map(|name| parts.iter().position(|part| part.name == *name)).collect();
    let place = |run: &Run| match import.node_list(run) {
        Some(nodes) => {
            let places: BTreeSet<Option<usize>> =
                nodes.iter().map(|node| of_node[*node as usize]).collect();
            let mut places = places.into_iter();
            places.next().flatten().filter(|_| places.next().is_none())
        }
        None => run.name_of(Kind::Partition).and_then(|place| of_partition[place]),
    };
    let mut floors: Vec<Option<(Watts, &Run)>> = vec![None; parts.len()];
    for run in import.runs() {
        let mean = run.power().and_then(|power| power.mean());
        let (Some(mean), Some(nodes), Some(place)) = (mean, run.nodes(), place(run)) else {
            continue;
        };
        // Rounded down: it is a floor.
        let power = Watts::from_milliwatts(mean.milliwatts() / u64::from(nodes));
        let known = floors[place].map_or(Watts::ZERO, |(floor, _)| floor);
        if power > known {
            floors[place] = Some((power, run));
        }
    }
    for (part, floor) in parts.iter_mut().zip(floors) {
        let job = |run: &Run| run.label().unwrap_or_else(|| run.number().to_string());
        part.floor = floor.map(|(power, run)| (power, job(run)));
    }
}
