//! Machines in partitions, as their files describe them.
//!
//! Partitions whose whole nodes are alike make a machine of one kind, in which jobs have any nodes. Where nodes are of several
//! kinds, or are shared by jobs, all are simulated together, and each job is on nodes of its partition ([`Kinds`](super::Kinds)).

use std::sync::Arc;

use super::{Feeds, Machine, MachineError};
use crate::spelling::hint;
use crate::units::Watts;

/// A machine as its file describes it.
#[derive(Clone, Debug, PartialEq)]
pub enum Described {
    /// All nodes are of one kind.
    One(Box<Machine>),
    /// There are partitions.
    Several(Partitioned),
}

/// A machine in partitions.
#[derive(Clone, Debug, PartialEq)]
pub struct Partitioned {
    /// Its name in reports.
    pub name: String,
    /// The constant power of the machine besides its nodes.
    pub base_power: Watts,
    /// The partitions with nodes of their own; at least one.
    pub parts: Vec<Partition>,
    /// The partitions that have the nodes of others.
    pub over: Vec<Overlapping>,
    /// The feeds of its nodes, where these have limits. Nodes are numbered through all partitions.
    pub feeds: Option<Arc<Feeds>>,
}

/// A part of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    /// Its name, also in the log.
    pub name: String,
    /// The part as a machine of its own, without the base power of the whole.
    pub machine: Machine,
    /// The memory of a node in MiB, if that is said.
    pub memory_mib: Option<u32>,
    /// The GPUs of a node.
    pub gpus: u32,
    /// Whether jobs share nodes.
    pub shared: bool,
    /// Slurm gives out nodes of a low weight first.
    pub weight: u32,
}

/// A partition without nodes of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlapping {
    /// Its name, also in the log.
    pub name: String,
    /// The places of the partitions whose nodes it has.
    pub of: Vec<usize>,
    /// Whether jobs share nodes.
    pub shared: bool,
}

impl Described {
    /// The machine, or the part of it that these partitions are. Without partitions in the file, they say nothing of it.
    pub fn choose(self, wanted: &[String]) -> Result<Machine, MachineError> {
        match self {
            Described::One(machine) => Ok(*machine),
            Described::Several(machine) => machine.choose(wanted),
        }
    }
}

impl Partitioned {
    /// The names of the partitions.
    pub fn names(&self) -> Vec<&str> {
        let over = self.over.iter().map(|over| over.name.as_str());
        self.parts.iter().map(|part| part.name.as_str()).chain(over).collect()
    }

    /// What these partitions are, without the base power of the whole.
    pub fn only(&self, wanted: &[String]) -> Partitioned {
        let chosen = self.chosen(wanted);
        let parts = chosen.iter().map(|place| self.parts[*place].clone()).collect();
        let over = self.over.iter().filter(|over| wanted.contains(&over.name)).map(|over| {
            let of = over.of.iter().filter_map(|part| chosen.iter().position(|one| one == part));
            Overlapping { of: of.collect(), ..over.clone() }
        });
        let (name, over) = (format!("{} {}", self.name, wanted.join("+")), over.collect());
        Partitioned { name, base_power: Watts::ZERO, parts, over, feeds: None }
    }

    /// The nodes of all partitions.
    pub fn nodes(&self) -> u64 {
        self.parts.iter().map(|part| u64::from(part.machine.nodes)).sum()
    }

    /// The draw of the whole machine with every node busy.
    pub fn max_power(&self) -> Watts {
        self.total(Machine::max_power)
    }

    /// The power without jobs.
    pub fn floor(&self) -> Watts {
        self.total(Machine::floor)
    }

    fn total(&self, of: impl Fn(&Machine) -> Watts) -> Watts {
        let parts = self.parts.iter().map(|part| of(&part.machine));
        parts.fold(self.base_power, Watts::saturating_add)
    }

    /// The places of the partitions whose nodes these names stand for; all if there are none.
    fn chosen(&self, wanted: &[String]) -> Vec<usize> {
        let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|one| one == name);
        let parts = 0..self.parts.len();
        let own = parts.filter(|place| is_wanted(&self.parts[*place].name));
        let over = self.over.iter().filter(|over| is_wanted(&over.name));
        let mut chosen: Vec<usize> = own.chain(over.flat_map(|over| over.of.clone())).collect();
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }

    /// The part that some of these names stand for, all of it if there are none. Others may be names that only a log has.
    /// The base power is that of the whole machine, and of no part.
    fn choose(&self, wanted: &[String]) -> Result<Machine, MachineError> {
        let chosen = self.chosen(wanted);
        let Some((first, others)) = chosen.split_first() else {
            let wrong = wanted.first().map_or("", String::as_str);
            return Err(MachineError::NoPartition {
                machine: self.name.clone(),
                wanted: wanted.join(", "),
                hint: hint(wrong, self.names()),
                names: self.names().join(", "),
            });
        };
        let has_chosen = |over: &&Overlapping| over.of.iter().any(|place| chosen.contains(place));
        let is_shared = chosen.iter().any(|place| self.parts[*place].shared)
            || self.over.iter().filter(has_chosen).any(|over| over.shared);
        let is_alike = others.iter().all(|other| self.parts[*other].is_like(&self.parts[*first]));
        let mut machine = match is_alike && !is_shared {
            true => {
                let nodes = chosen.iter().map(|place| self.parts[*place].machine.nodes);
                let nodes = nodes.fold(0, u32::saturating_add);
                Machine { nodes, ..self.parts[*first].machine.clone() }
            }
            false => self.joined(&chosen)?,
        };
        if chosen.len() == self.parts.len() {
            machine.name.clone_from(&self.name);
            machine.base_power = self.base_power;
            machine.feeds.clone_from(&self.feeds);
        } else if self.feeds.is_some() {
            return Err(MachineError::FeedsOfAll { machine: self.name.clone() });
        } else {
            let names: Vec<&str> =
                chosen.iter().map(|place| self.parts[*place].name.as_str()).collect();
            machine.name = format!("{} {}", self.name, names.join("+"));
        }
        machine.validated()
    }
}

impl Partition {
    /// Whether the nodes of another one are of the same kind.
    fn is_like(&self, other: &Partition) -> bool {
        let Machine { name, nodes, .. } = self.machine.clone();
        let machine = Machine { name, nodes, ..other.machine.clone() };
        (&machine, self.memory_mib, self.gpus) == (&self.machine, other.memory_mib, other.gpus)
    }
}
