//! Machines with nodes of several kinds, each kind in partitions of its own.
//!
//! Jobs are simulated on nodes of one kind. So of such a machine a part is chosen, and what is not alike is never mixed.

use super::{Machine, MachineError};
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
    /// The partitions; at least one.
    pub parts: Vec<Partition>,
}

/// A part of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    /// Its name, also in the log.
    pub name: String,
    /// The part as a machine of its own, without the base power of the whole.
    pub machine: Machine,
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
        self.parts.iter().map(|part| part.name.as_str()).collect()
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

    /// The part that some of these names stand for, all of it if there are none. Others may be names that only a log has.
    /// Partitions are joined if their nodes are of one kind; the base power is that of the whole machine, and of no part.
    fn choose(&self, wanted: &[String]) -> Result<Machine, MachineError> {
        let is_wanted = |part: &&Partition| wanted.is_empty() || wanted.contains(&part.name);
        let chosen: Vec<&Partition> = self.parts.iter().filter(is_wanted).collect();
        let names = || self.names().join(", ");
        let Some((first, others)) = chosen.split_first() else {
            let wrong = wanted.first().map_or("", String::as_str);
            return Err(MachineError::NoPartition {
                machine: self.name.clone(),
                wanted: wanted.join(", "),
                hint: hint(wrong, self.names()),
                names: names(),
            });
        };
        let mut machine = first.machine.clone();
        for other in others {
            let alike = Machine {
                name: machine.name.clone(),
                nodes: machine.nodes,
                ..other.machine.clone()
            };
            if alike != machine {
                return Err(MachineError::SeveralKinds {
                    machine: self.name.clone(),
                    one: first.name.clone(),
                    other: other.name.clone(),
                    names: names(),
                });
            }
            machine.nodes = machine.nodes.saturating_add(other.machine.nodes);
        }
        if chosen.len() == self.parts.len() {
            machine.name.clone_from(&self.name);
            machine.base_power = self.base_power;
        } else {
            let names: Vec<&str> = chosen.iter().map(|part| part.name.as_str()).collect();
            machine.name = format!("{} {}", self.name, names.join("+"));
        }
        machine.validated()
    }
}
