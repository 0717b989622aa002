//! What the energy of a run went into, by what the nodes did.

use serde::{Deserialize, Serialize};

use crate::ledger::{Ledger, Switched};
use crate::machine::Machine;
use crate::units::{Joules, Span, Watts};

/// The energy of a run, by what it was drawn for. The parts add up to the whole, to the microjoule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnergyByState {
    /// By nodes that ran jobs.
    pub running: Joules,
    /// By nodes that were idle or out of service.
    pub idle: Joules,
    /// By nodes that were being started.
    pub starting: Joules,
    /// By nodes that were being switched off.
    pub stopping: Joules,
    /// By nodes that were off.
    pub off: Joules,
    /// By the machine beside its nodes.
    pub base: Joules,
}

impl EnergyByState {
    /// All of it.
    pub fn total(&self) -> Joules {
        let EnergyByState { running, idle, starting, stopping, off, base } = *self;
        [running, idle, starting, stopping, off, base].into_iter().sum()
    }
}

/// How many nodes do what.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    busy: u32,
    idle: u32,
    switched: Switched,
}

/// The time that nodes spend in each state.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeStates {
    machine: Draws,
    counts: Counts,
    elapsed: Span,
    busy: NodeTime,
    idle: NodeTime,
    starting: NodeTime,
    stopping: NodeTime,
    off: NodeTime,
}

/// What a node draws in each state, and the machine beside them.
#[derive(Clone, Copy, Debug)]
struct Draws {
    idle: Watts,
    starting: Watts,
    stopping: Watts,
    off: Watts,
    base: Watts,
}

/// Nodes × milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct NodeTime(u128);

impl NodeTime {
    #[inline]
    fn add(&mut self, nodes: u32, time: Span) {
        self.0 += u128::from(nodes) * u128::from(time.millis());
    }

    fn at(self, power: Watts) -> Joules {
        Joules::from_microjoules(self.0 * u128::from(power.milliwatts()))
    }
}

impl NodeStates {
    /// All nodes of a machine are idle.
    pub(super) fn new(machine: &Machine) -> Self {
        let (idle, off) = (machine.node().idle, machine.off());
        NodeStates {
            machine: Draws {
                idle,
                starting: off.start.power.max(idle),
                stopping: off.stop.power,
                off: off.power,
                base: machine.base_power,
            },
            counts: Counts { idle: machine.nodes, ..Counts::default() },
            elapsed: Span::ZERO,
            busy: NodeTime::default(),
            idle: NodeTime::default(),
            starting: NodeTime::default(),
            stopping: NodeTime::default(),
            off: NodeTime::default(),
        }
    }

    /// Nodes were so for so long.
    #[inline]
    pub(super) fn advance(&mut self, time: Span) {
        let Counts { busy, idle, switched } = self.counts;
        self.elapsed = self.elapsed + time;
        self.busy.add(busy, time);
        self.idle.add(idle, time);
        if switched != Switched::default() {
            self.starting.add(switched.starting, time);
            self.stopping.add(switched.stopping, time);
            self.off.add(switched.off, time);
        }
    }

    /// From now on they are as the ledger says.
    #[inline]
    pub(super) fn set(&mut self, ledger: &Ledger) {
        let switched = ledger.switched();
        let down = ledger.total_nodes() - ledger.nodes_in_service() - switched.all();
        let busy = ledger.nodes_in_service() - ledger.free_nodes();
        self.counts = Counts { busy, idle: ledger.free_nodes() + down, switched };
    }

    /// What was drawn in each state, if jobs drew so much beyond what their nodes draw when they are idle.
    pub(super) fn energy(&self, by_jobs: Joules) -> EnergyByState {
        let draws = &self.machine;
        EnergyByState {
            running: by_jobs + self.busy.at(draws.idle),
            idle: self.idle.at(draws.idle),
            starting: self.starting.at(draws.starting),
            stopping: self.stopping.at(draws.stopping),
            off: self.off.at(draws.off),
            base: draws.base.over(self.elapsed),
        }
    }
}
