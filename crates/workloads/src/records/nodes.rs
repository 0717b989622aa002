//! What records tell of the nodes that jobs ran on.

use super::import::{Import, most_at_once};
use super::name::Kind;
use super::run::Run;
use busbar_core::machine::{Machine, MachineError};
use busbar_core::units::Watts;

/// What records tell of the nodes of a machine, which may have more of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodesSeen {
    /// The most nodes that were busy at once; those that the busy processors fill, where jobs share nodes. Nothing if
    /// the records do not count nodes.
    pub nodes: Option<u64>,
    /// The most processors that a job had on each of its nodes.
    pub processors_per_node: Option<u32>,
    /// The most that a job drew in the mean on each of its nodes, if that was measured of any: nodes draw at least so
    /// much when they are busy.
    pub node_power: Option<Watts>,
    /// Why this is not enough to know the machine by.
    pub doubt: Option<NodeDoubt>,
}

/// Why records are not enough to know a machine by.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeDoubt {
    /// Some records have no number of nodes.
    #[error("the number of nodes of {0} jobs is missing")]
    NotCounted(u64),
    /// Some jobs ran on parts of nodes.
    #[error("{0} jobs ran on shared nodes")]
    Shared(u64),
    /// The nodes of partitions differ.
    #[error("the nodes of partitions differ ({0}); --partition selects one")]
    SeveralKinds(String),
    /// No job has a measured power.
    #[error("no job on whole nodes has a measured energy")]
    NotMeasured,
}

impl NodesSeen {
    /// The machine that the records tell of, with what is not known of it as remarks. Its power is a floor: what jobs were
    /// measured to draw. Where records do not tell enough, every processor is a node of which everything is assumed.
    pub fn machine(&self, processors: u32) -> Result<Machine, MachineError> {
        let known = (self.nodes, self.processors_per_node, self.node_power);
        let ((Some(nodes), Some(per_node), Some(power)), None) = (known, &self.doubt) else {
            let mut machine = Machine::of_processors(processors)?;
            let why = self
                .doubt
                .as_ref()
                .map_or("the nodes are unknown".to_owned(), |doubt| doubt.to_string());
            machine.remarks.push(format!(
                "the records do not describe the machine: {why}. Each of the {processors} processors counts as a \
                node of {}; describe your nodes in a machine file ('busbar machine init')",
                machine.node_power
            ));
            return Ok(machine);
        };
        let nodes = u32::try_from(nodes).unwrap_or(u32::MAX).min(Machine::MOST_NODES);
        let mut machine = Machine::of_processors(nodes)?;
        machine.name = format!("{nodes} nodes of the records");
        (machine.processors_per_node, machine.node_power) = (per_node, power);
        machine.power_is_assumed = false;
        // What idle nodes draw is in no record. Without it, what is drawn is what jobs were measured to draw.
        machine.details.idle = Some(Watts::ZERO);
        machine.remarks.push(format!(
            "the machine is that of the records: {nodes} nodes of {per_node} processors, the most that were busy \
            at once, of {power} each, the highest measured mean power of a job per node. The power of idle nodes and of the rest of the machine is unknown and counts as zero; --machine FILE gives it"
        ));
        Ok(machine)
    }
}

impl Import {
    /// What is known of the nodes of these partitions, by their names, or of all if none is named.
    pub fn nodes_seen(&self, partitions: &[String]) -> NodesSeen {
        let names = self.names().of(Kind::Partition);
        let name = |run: &Run| {
            let place = (run.names[Kind::Partition as usize] as usize).checked_sub(1)?;
            names.get(place).map(String::as_str)
        };
        let is_wanted = |run: &&Run| {
            partitions.is_empty()
                || name(run).is_some_and(|name| partitions.iter().any(|wanted| wanted == name))
        };
        let runs = || self.runs().iter().filter(is_wanted);
        let counted = || runs().filter(|run| run.nodes > 0);
        let per_node = |run: &Run| run.processors.div_ceil(run.nodes.max(1));
        // By the number of the partition: the most processors on a node.
        let mut kinds: Vec<(u32, u32)> = Vec::new();
        for run in counted() {
            let partition = run.names[Kind::Partition as usize];
            match kinds.iter_mut().find(|kind| kind.0 == partition) {
                Some(kind) => kind.1 = kind.1.max(per_node(run)),
                None => kinds.push((partition, per_node(run))),
            }
        }
        kinds.sort_unstable();
        let most = kinds.iter().map(|kind| kind.1).max();
        let uncounted = runs().filter(|run| run.nodes == 0).count() as u64;
        let kind_of = |run: &Run| {
            let partition = run.names[Kind::Partition as usize];
            kinds.iter().find(|kind| kind.0 == partition).map_or(0, |kind| kind.1)
        };
        let is_shared = |run: &&Run| {
            !run.is_exclusive && run.processors < run.nodes.saturating_mul(kind_of(run))
        };
        let shared = counted().filter(is_shared).count() as u64;
        let nodes = most.map(|per_node| match shared {
            0 => most_at_once(runs(), |run| run.nodes),
            _ => most_at_once(runs(), |run| run.processors).div_ceil(u64::from(per_node.max(1))),
        });
        let drawn = counted().filter_map(|run| {
            let mean = run.power()?.mean()?.milliwatts();
            Some(Watts::from_milliwatts(mean.div_ceil(u64::from(run.nodes))))
        });
        let node_power = drawn.max();
        let differ = kinds.windows(2).any(|pair| pair[0].1 != pair[1].1);
        let doubt = match () {
            () if uncounted > 0 => Some(NodeDoubt::NotCounted(uncounted)),
            () if differ => {
                let said = kinds.iter().map(|&(partition, processors)| {
                    let name = (partition as usize).checked_sub(1).and_then(|at| names.get(at));
                    let name = name.map_or("none", String::as_str);
                    format!("{name}: {processors} processors a node")
                });
                Some(NodeDoubt::SeveralKinds(said.collect::<Vec<_>>().join(", ")))
            }
            () if shared > 0 => Some(NodeDoubt::Shared(shared)),
            () if node_power.is_none() => Some(NodeDoubt::NotMeasured),
            () => None,
        };
        NodesSeen { nodes, processors_per_node: most, node_power, doubt }
    }
}
