//! Machines of several types, and what tasks of several types take and draw on each of them.
//!
//! [`Tables`] holds the two matrices of the literature on heterogeneous computing: the estimated
//! time to compute (ETC) and the average power consumption (APC) of each task type on each machine
//! type in each P-state. A special-purpose machine type runs only some of the task types.
//! `csv` reads and writes tables, [`essc`] makes them up.

use std::ops::Range;
use std::sync::Arc;

use crate::units::{Joules, NodeId, Span, Watts};
use crate::utility::Utilities;

mod csv;
#[doc(hidden)]
pub mod essc;

/// A site: what its machines can do, and what tasks are worth to it. Copies are cheap.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// What tasks take and draw.
    pub tables: Arc<Tables>,
    /// What tasks may be worth.
    pub utilities: Arc<Utilities>,
}

/// A site without machines, at which nothing can run.
impl Default for Site {
    fn default() -> Self {
        let nothing = Tables {
            machine_types: Vec::new(),
            task_types: Vec::new(),
            states: Vec::new(),
            type_of: Vec::new(),
            first: Vec::new(),
            dominated: 0,
        };
        Site { tables: Arc::new(nothing), utilities: Arc::default() }
    }
}

/// The purpose of a machine type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// It runs some task types, and those fast.
    Special,
    /// It runs every task type.
    General,
}

/// Machines that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineType {
    /// Its name.
    pub name: String,
    /// Their number.
    pub machines: u32,
    /// Its purpose.
    pub purpose: Purpose,
}

/// A task type, by its place in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskType(pub u32);

/// How a task runs in one P-state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PState {
    /// Which P-state; 0 is the fastest.
    pub number: u8,
    /// How long it takes.
    pub time: Span,
    /// Its power meanwhile.
    pub power: Watts,
}

impl PState {
    /// Its energy.
    #[inline]
    pub(crate) fn energy(&self) -> Joules {
        self.power.over(self.time)
    }

    /// Whether another one is at least as fast and draws no more, and is not the very same.
    fn is_dominated_by(&self, other: &PState) -> bool {
        let no_worse = other.time <= self.time && other.power <= self.power;
        no_worse && (other.time, other.power) != (self.time, self.power)
    }
}

/// What tasks take and draw on machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    machine_types: Vec<MachineType>,
    task_types: Vec<String>,
    /// By task type and machine type: P-states, from the fastest to the thriftiest. Empty where
    /// the machine type does not run the task type.
    states: Vec<Vec<PState>>,
    /// The machine type of each node.
    type_of: Vec<u16>,
    /// The first node of each machine type.
    first: Vec<u32>,
    dominated: usize,
}

/// Why these are no tables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTables {
    /// No machine.
    #[error("there is no machine")]
    NoMachines,
    /// No task type.
    #[error("there is no task type")]
    NoTaskTypes,
    /// More machines or types than can be counted.
    #[error("more than {most} {what}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many there may be.
        most: u32,
    },
    /// There is a time or a power that is nothing.
    #[error("task type '{task}' on machine type '{machine}', P-state {state}: {what} is zero")]
    Zero {
        /// Which task type.
        task: String,
        /// Which machine type.
        machine: String,
        /// Which P-state.
        state: u8,
        /// Time or power.
        what: &'static str,
    },
    /// There is a time or a power beyond what is counted.
    #[error(
        "task type '{task}' on machine type '{machine}', P-state {state}: {what} is too large; at \
         most 115 days and 1 MW"
    )]
    TooLarge {
        /// Which task type.
        task: String,
        /// Which machine type.
        machine: String,
        /// Which P-state.
        state: u8,
        /// Time or power.
        what: &'static str,
    },
    /// A general-purpose machine type does not run everything.
    #[error("machine type '{machine}' is general, but has no entry for task type '{task}'")]
    Hole {
        /// Which task type.
        task: String,
        /// Which machine type.
        machine: String,
    },
}

impl Tables {
    /// The most machines there may be.
    const MOST_MACHINES: u32 = 1_000_000;
    /// The most types there may be, of machines or of tasks.
    const MOST_TYPES: u32 = 10_000;

    /// Tables of these types. `states` has the P-states of each pair, by task type and then by
    /// machine type; none where the machine type refuses the task type. P-states that another one
    /// dominates, being as fast and drawing no more, are left out and counted.
    pub fn new(
        machine_types: Vec<MachineType>,
        task_types: Vec<String>,
        mut states: Vec<Vec<PState>>,
    ) -> Result<Self, NotTables> {
        let machines: u64 = machine_types.iter().map(|kind| u64::from(kind.machines)).sum();
        let limits = [
            (machines, Tables::MOST_MACHINES, "machines"),
            (machine_types.len() as u64, Tables::MOST_TYPES, "machine types"),
            (task_types.len() as u64, Tables::MOST_TYPES, "task types"),
        ];
        for (count, most, what) in limits {
            if count > u64::from(most) {
                return Err(NotTables::TooMany { what, most });
            }
        }
        if machines == 0 {
            return Err(NotTables::NoMachines);
        }
        if task_types.is_empty() {
            return Err(NotTables::NoTaskTypes);
        }
        states.resize(machine_types.len() * task_types.len(), Vec::new());
        let mut dominated = 0;
        for (place, states) in states.iter_mut().enumerate() {
            let task = &task_types[place / machine_types.len()];
            let machine = &machine_types[place % machine_types.len()];
            let names = || (task.clone(), machine.name.clone());
            for state in &*states {
                let figures =
                    [("the time", state.time.millis()), ("the power", state.power.milliwatts())];
                if let Some((what, _)) = figures.into_iter().find(|(_, value)| *value == 0) {
                    let (task, machine) = names();
                    return Err(NotTables::Zero { task, machine, state: state.number, what });
                }
                // Energies then fit into 64 bits, and sums of them into 128.
                let too_large = [10_000_000_000, 1_000_000_000];
                let above = |((what, value), most): ((&'static str, u64), u64)| {
                    (value > most).then_some(what)
                };
                if let Some(what) = figures.into_iter().zip(too_large).find_map(above) {
                    let (task, machine) = names();
                    return Err(NotTables::TooLarge { task, machine, state: state.number, what });
                }
            }
            if states.is_empty() && machine.purpose == Purpose::General {
                let (task, machine) = names();
                return Err(NotTables::Hole { task, machine });
            }
            let all = states.len();
            let others = states.clone();
            states.retain(|state| !others.iter().any(|other| state.is_dominated_by(other)));
            states.sort_by_key(|state| (state.time, state.number));
            states.dedup_by_key(|state| (state.time, state.power));
            dominated += all - states.len();
        }
        let (mut type_of, mut first) = (Vec::new(), Vec::new());
        for (place, kind) in machine_types.iter().enumerate() {
            first.push(type_of.len() as u32);
            type_of.extend((0..kind.machines).map(|_| place as u16));
        }
        Ok(Tables { machine_types, task_types, states, type_of, first, dominated })
    }

    /// The machine types, in order. The nodes of the first come first.
    pub fn machine_types(&self) -> &[MachineType] {
        &self.machine_types
    }

    /// The names of the task types, in order.
    pub fn task_types(&self) -> &[String] {
        &self.task_types
    }

    /// How many machines there are.
    pub fn machines(&self) -> u32 {
        self.type_of.len() as u32
    }

    /// How many P-states were left out because another one is as fast and draws no more.
    pub fn dominated(&self) -> usize {
        self.dominated
    }

    /// The P-states of a task type on a machine type, from the fastest to the thriftiest; none if
    /// it does not run there.
    #[inline]
    pub fn states(&self, task: TaskType, machine_type: usize) -> &[PState] {
        let kinds = self.machine_types.len();
        self.states.get(task.0 as usize * kinds + machine_type).map_or(&[], Vec::as_slice)
    }

    /// The machine type of a node.
    #[inline]
    pub fn type_of(&self, node: NodeId) -> Option<usize> {
        self.type_of.get(node.0 as usize).map(|kind| usize::from(*kind))
    }

    /// The nodes of a machine type.
    pub fn nodes(&self, machine_type: usize) -> Range<u32> {
        let first = self.first[machine_type];
        first..first + self.machine_types[machine_type].machines
    }

    /// Whether any machine runs a task type.
    pub fn can_run(&self, task: TaskType) -> bool {
        let mut kinds = self.machine_types.iter().enumerate();
        kinds.any(|(place, kind)| kind.machines > 0 && !self.states(task, place).is_empty())
    }

    /// Every entry there is: task type, machine type and P-state.
    pub fn entries(&self) -> impl Iterator<Item = (TaskType, usize, &PState)> {
        let kinds = self.machine_types.len();
        self.states.iter().enumerate().flat_map(move |(place, states)| {
            let task = TaskType((place / kinds) as u32);
            states.iter().map(move |state| (task, place % kinds, state))
        })
    }

    /// The longest time a task type takes on any machine in its fastest P-state; none if no machine
    /// runs it.
    pub fn longest_at_full_speed(&self, task: TaskType) -> Option<Span> {
        let kinds = 0..self.machine_types.len();
        kinds.filter_map(|kind| self.states(task, kind).first()).map(|state| state.time).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn state(number: u8, seconds: u32, watts: u32) -> PState {
        PState { number, time: Span::from_secs(seconds), power: Watts::from_watts(watts) }
    }

    fn kind(name: &str, machines: u32, purpose: Purpose) -> MachineType {
        MachineType { name: name.to_owned(), machines, purpose }
    }

    #[test]
    fn nodes_stand_in_the_order_of_their_types() {
        let kinds = vec![kind("gpu", 2, Purpose::Special), kind("cpu", 3, Purpose::General)];
        let states =
            vec![vec![], vec![state(0, 10, 100)], vec![state(0, 1, 50)], vec![state(0, 9, 90)]];
        let tables = Tables::new(kinds, vec!["a".into(), "b".into()], states).unwrap();
        assert_eq!((tables.machines(), tables.nodes(1)), (5, 2..5));
        let types: Vec<_> = (0..6).map(|node| tables.type_of(NodeId(node))).collect();
        assert_eq!(types, [Some(0), Some(0), Some(1), Some(1), Some(1), None]);
        assert!(tables.states(TaskType(0), 0).is_empty());
        assert_eq!(tables.states(TaskType(1), 0)[0].energy(), Joules::from_microjoules(50_000_000));
        assert_eq!(tables.longest_at_full_speed(TaskType(1)), Some(Span::from_secs(9)));
        assert!(tables.can_run(TaskType(0)) && !tables.can_run(TaskType(2)));
        assert_eq!(tables.entries().count(), 3);
    }

    /// P1 is slower than P2 and draws more: nobody would ever want it. P2 and P3 are the same.
    #[test]
    fn dominated_states_are_left_out() {
        let states =
            vec![vec![state(0, 10, 200), state(1, 20, 160), state(2, 15, 120), state(3, 15, 120)]];
        let tables =
            Tables::new(vec![kind("cpu", 1, Purpose::General)], vec!["a".into()], states).unwrap();
        let kept: Vec<u8> =
            tables.states(TaskType(0), 0).iter().map(|state| state.number).collect();
        assert_eq!((kept, tables.dominated()), (vec![0, 2], 2));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let cpu = || vec![kind("cpu", 1, Purpose::General)];
        let tasks = || vec!["a".to_owned()];
        assert!(matches!(Tables::new(cpu(), tasks(), vec![]), Err(NotTables::Hole { .. })));
        let zero = Tables::new(cpu(), tasks(), vec![vec![state(0, 0, 1)]]).unwrap_err();
        assert!(zero.to_string().ends_with("the time is zero"), "{zero}");
        assert_eq!(Tables::new(vec![], tasks(), vec![]), Err(NotTables::NoMachines));
        assert_eq!(Tables::new(cpu(), vec![], vec![]), Err(NotTables::NoTaskTypes));
        let many = vec![kind("cpu", 1_000_001, Purpose::Special)];
        assert!(matches!(Tables::new(many, tasks(), vec![]), Err(NotTables::TooMany { .. })));
        let special = vec![kind("gpu", 1, Purpose::Special)];
        assert!(!Tables::new(special, tasks(), vec![]).unwrap().can_run(TaskType(0)));
    }
}
