//! Machines with nodes of several kinds, or with nodes that jobs share.
//!
//! Such a machine is counted in processors, because that is what all its jobs have: a job of two whole nodes with 64
//! processors each has 128, and a job on four cores of a node has four. So wherever a machine of one kind counts nodes, this one
//! counts processors, and what a node draws is split evenly among its processors. Which nodes a job can be on is kept
//! beside that ([`Seating`](crate::ledger::Seating)).

use std::ops::Range;
use std::sync::Arc;

use super::{Details, Machine, MachineError, Partition, Partitioned, Parts};
use crate::calendar::Timetable;
use crate::units::{NodeId, Watts};

/// The nodes of a machine by their kinds, and the partitions that jobs name.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Kinds {
    kinds: Vec<Kind>,
    groups: Vec<NodeGroup>,
    partitions: Vec<PartitionNodes>,
}

/// What a node has, of which jobs take parts. It is also what a job takes of one node, and what is free of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeSize {
    /// Processors.
    pub processors: u32,
    /// Memory in MiB; nodes whose memory nobody says have as much as anybody asks for.
    pub memory_mib: u32,
    /// GPUs.
    pub gpus: u32,
}

impl NodeSize {
    /// Whether there is as much as that of everything.
    #[inline]
    pub fn has(&self, other: &NodeSize) -> bool {
        self.processors >= other.processors
            && self.memory_mib >= other.memory_mib
            && self.gpus >= other.gpus
    }

    /// What remains without that, if there is as much.
    #[inline]
    pub fn without(&self, other: &NodeSize) -> Option<NodeSize> {
        Some(NodeSize {
            processors: self.processors.checked_sub(other.processors)?,
            memory_mib: self.memory_mib.checked_sub(other.memory_mib)?,
            gpus: self.gpus.checked_sub(other.gpus)?,
        })
    }

    /// Both together. Of what is not known there is any amount.
    #[inline]
    pub fn with(&self, other: &NodeSize) -> NodeSize {
        NodeSize {
            processors: self.processors.saturating_add(other.processors),
            memory_mib: self.memory_mib.saturating_add(other.memory_mib),
            gpus: self.gpus.saturating_add(other.gpus),
        }
    }
}

/// A kind of nodes.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Kind {
    /// What a node of this kind has.
    pub size: NodeSize,
    /// A machine of one such node.
    machine: Machine,
}

/// Nodes of one kind that are in the same partitions, with neighbouring numbers.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct NodeGroup {
    /// The partition whose own nodes they are.
    pub name: String,
    /// Their numbers.
    pub nodes: Range<u32>,
    /// The place of their kind.
    pub kind: usize,
    /// Slurm gives out nodes of a low weight first.
    pub weight: u32,
}

/// A partition: the nodes that its jobs may have.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct PartitionNodes {
    /// Its name, also in the log.
    pub name: String,
    /// The places of the groups of its nodes.
    pub groups: Vec<usize>,
    /// Whether jobs share its nodes.
    pub shared: bool,
}

impl Kinds {
    /// The nodes of these partitions, by their places among those that have nodes of their own.
    pub(super) fn of(whole: &Partitioned, chosen: &[usize]) -> Self {
        let (mut kinds, mut groups): (Vec<Kind>, Vec<NodeGroup>) = (Vec::new(), Vec::new());
        for place in chosen {
            let Partition { name, machine, memory_mib, gpus, weight, .. } = &whole.parts[*place];
            let size = NodeSize {
                processors: machine.processors_per_node,
                memory_mib: memory_mib.unwrap_or(u32::MAX),
                gpus: *gpus,
            };
            let machine = Machine { name: String::new(), nodes: 1, ..machine.clone() };
            let first = groups.last().map_or(0, |last| last.nodes.end);
            let nodes = first..first + whole.parts[*place].machine.nodes;
            let kind = Kind { size, machine };
            let known = kinds.iter().position(|other| *other == kind);
            let kind = known.unwrap_or_else(|| {
                kinds.push(kind);
                kinds.len() - 1
            });
            groups.push(NodeGroup { name: name.clone(), nodes, kind, weight: *weight });
        }
        let own = chosen.iter().enumerate().map(|(group, place)| PartitionNodes {
            name: whole.parts[*place].name.clone(),
            groups: vec![group],
            shared: whole.parts[*place].shared,
        });
        let over = whole.over.iter().filter_map(|over| {
            let groups =
                over.of.iter().filter_map(|part| chosen.iter().position(|one| one == part));
            let groups: Vec<usize> = groups.collect();
            let partition = PartitionNodes { name: over.name.clone(), groups, shared: over.shared };
            (!partition.groups.is_empty()).then_some(partition)
        });
        let partitions = own.chain(over).collect();
        Kinds { kinds, groups, partitions }
    }

    /// The kinds.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// The groups of nodes, in the order of their numbers.
    pub fn groups(&self) -> &[NodeGroup] {
        &self.groups
    }

    /// The partitions.
    pub fn partitions(&self) -> &[PartitionNodes] {
        &self.partitions
    }

    /// The kind of a group's nodes.
    pub fn kind_of(&self, group: usize) -> &Kind {
        &self.kinds[self.groups[group].kind]
    }

    /// What each node has, in the order of their numbers.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = NodeSize> + '_ {
        self.groups.iter().flat_map(|group| {
            let size = self.kinds[group.kind].size;
            group.nodes.clone().map(move |_| size)
        })
    }

    /// The kind of a node.
    pub fn kind_of_node(&self, node: NodeId) -> Option<usize> {
        let group = self.groups.partition_point(|group| group.nodes.end <= node.0);
        self.groups.get(group).map(|group| group.kind)
    }

    /// The same with so many nodes in a group; those of later groups have other numbers then.
    fn with_nodes_of(&self, group: usize, nodes: u32) -> Self {
        let mut next = 0;
        let groups = self.groups.iter().enumerate().map(|(place, known)| {
            let count = if place == group { nodes } else { known.nodes.len() as u32 };
            let first = next;
            next += count;
            NodeGroup { nodes: first..next, ..known.clone() }
        });
        Kinds { groups: groups.collect(), ..self.clone() }
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> u32 {
        self.groups.last().map_or(0, |last| last.nodes.end)
    }

    /// How many processors they have.
    fn processors(&self) -> u64 {
        let of = |group: &NodeGroup| {
            u64::from(self.kinds[group.kind].size.processors) * group.nodes.len() as u64
        };
        self.groups.iter().map(of).sum()
    }

    /// What all nodes draw together of which each draws so much.
    fn total(&self, of: impl Fn(&Machine) -> Watts) -> Watts {
        let groups = self.groups.iter();
        groups.fold(Watts::ZERO, |sum, group| {
            let each = of(&self.kinds[group.kind].machine);
            let all = each.checked_mul(group.nodes.len() as u32).unwrap_or(Watts::LARGEST);
            sum.saturating_add(all)
        })
    }

    /// What all nodes draw that are idle.
    pub(crate) fn floor(&self) -> Watts {
        self.total(|machine| machine.node().idle)
    }

    /// What all nodes draw that are busy.
    pub(super) fn max_power(&self) -> Watts {
        self.total(|machine| machine.node_power)
    }

    /// The same with nodes of which more is said.
    pub(crate) fn try_map<E>(
        &self,
        each: impl Fn(&Machine) -> Result<Machine, E>,
    ) -> Result<Self, E> {
        let kind = |kind: &Kind| Ok(Kind { machine: each(&kind.machine)?, ..kind.clone() });
        let kinds: Result<Vec<Kind>, E> = self.kinds.iter().map(kind).collect();
        Ok(Kinds { kinds: kinds?, ..self.clone() })
    }
}

impl Kind {
    /// A machine of one such node.
    pub fn node(&self) -> &Machine {
        &self.machine
    }

    /// A node as a machine of its processors. What each adds to the idle power is rounded up, so that what jobs are given is
    /// never too little.
    pub fn by_processor(&self) -> Machine {
        let machine = &self.machine;
        let processors = u64::from(self.size.processors.max(1));
        let up = |power: Watts| Watts::from_milliwatts(power.milliwatts().div_ceil(processors));
        let node = machine.node();
        let idle = Watts::from_milliwatts(node.idle.milliwatts() / processors);
        let highest = up(node.highest);
        let rest = (up(node.added(node.highest)) + idle).saturating_sub(highest);
        // The rest may have lost a part of a milliwatt, which lower caps get.
        let level = |level: &Watts| (up(*level) + Watts::from_milliwatts(1)).min(highest);
        let levels = machine.details.levels.as_ref().map(|levels| {
            let mut levels: Vec<Watts> = levels.iter().map(level).collect();
            levels.dedup();
            levels
        });
        let (idle, rest) = (machine.details.idle.map(|_| idle), Some(rest));
        let details = Details { idle, rest, levels, parts: Some(Parts::Alike), off: None };
        Machine {
            nodes: self.size.processors,
            processors_per_node: 1,
            sockets_per_node: 1,
            node_power: rest.unwrap_or_default() + highest,
            details,
            ..machine.clone()
        }
    }
}

impl Machine {
    /// The same with so many nodes in one of the [groups](Kinds::groups) of several kinds.
    #[doc(hidden)]
    pub fn with_nodes_of(&self, group: usize, nodes: u32) -> Result<Self, MachineError> {
        let Some(kinds) = &self.kinds else { return self.with_nodes(nodes) };
        if self.feeds.is_some() {
            return Err(MachineError::Fed);
        }
        let kinds = kinds.with_nodes_of(group, nodes);
        let processors = u32::try_from(kinds.processors()).unwrap_or(u32::MAX);
        Machine { nodes: processors, kinds: Some(Arc::new(kinds)), ..self.clone() }.validated()
    }

    /// By feed: what its nodes draw together when they are idle.
    pub fn idle_of_feeds(&self) -> Vec<Watts> {
        let Some(tree) = &self.feeds else { return Vec::new() };
        let mut idle = vec![Watts::ZERO; tree.all().len()];
        for (place, zone) in tree.zones().iter().enumerate() {
            let of_zone = match &self.kinds {
                None => self.node().idle * zone.count(),
                Some(kinds) => {
                    let groups = kinds.groups().iter().enumerate();
                    let idle = |(place, group): (usize, &NodeGroup)| {
                        kinds.kind_of(place).node().node().idle * zone.count_in(&group.nodes)
                    };
                    groups.map(idle).sum()
                }
            };
            tree.above(place).for_each(|feed| idle[feed] += of_zone);
        }
        idle
    }

    /// What a limit of a feed comes to that is written as in a machine file: watts, a share of what its nodes can draw, none, or
    /// rules by the calendar. A limit below what its idle nodes draw is refused.
    pub fn limit_of_feed(&self, feed: usize, text: &str) -> Result<Timetable<Watts>, String> {
        let found = self.feeds.as_ref().and_then(|feeds| feeds.all().get(feed));
        let found = found.ok_or("the machine has no such feed")?;
        found.limited(text, self.idle_of_feeds()[feed])
    }
}

impl Partitioned {
    /// These partitions as one machine, counted in processors.
    pub(super) fn joined(&self, chosen: &[usize]) -> Result<Machine, MachineError> {
        let kinds = Kinds::of(self, chosen);
        let processors = kinds.processors();
        let nodes = u32::try_from(processors).ok().filter(|count| *count <= Machine::MOST_NODES);
        let nodes = nodes.ok_or_else(|| MachineError::TooLarge {
            what: "the number of processors",
            value: processors.to_string(),
            most: Machine::MOST_NODES.to_string(),
        })?;
        let greediest = kinds.kinds.iter().map(|kind| kind.by_processor().node_power).max();
        let is_assumed = kinds.kinds.iter().any(|kind| kind.machine.power_is_assumed);
        let first = &self.parts[chosen[0]].machine;
        Machine {
            nodes,
            processors_per_node: 1,
            sockets_per_node: 1,
            node_power: greediest.unwrap_or(Machine::ASSUMED_NODE_POWER),
            details: Details::default(),
            power_is_assumed: is_assumed,
            kinds: Some(Arc::new(kinds)),
            ..first.clone()
        }
        .validated()
    }
}
