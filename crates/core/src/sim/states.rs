//! The energy of a run by the states of the nodes.

use serde::{Deserialize, Serialize};

use crate::ledger::{Ledger, Switched};
use crate::machine::Machine;
use crate::units::{Joules, Span, Watts, json};

/// The energy of a run, by what it was drawn for. The parts add up to the whole, to the microjoule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnergyByState {
    /// By nodes that ran jobs.
    #[serde(rename = "running_j", with = "json")]
    pub running: Joules,
    /// By nodes that were idle or out of service.
    #[serde(rename = "idle_j", with = "json")]
    pub idle: Joules,
    /// By nodes that were being started.
    #[serde(rename = "starting_j", with = "json")]
    pub starting: Joules,
    /// By nodes that were being switched off.
    #[serde(rename = "stopping_j", with = "json")]
    pub stopping: Joules,
    /// By nodes that were off.
    #[serde(rename = "off_j", with = "json")]
    pub off: Joules,
    /// By the machine beside its nodes.
    #[serde(rename = "base_j", with = "json")]
    pub base: Joules,
}

impl EnergyByState {
    /// All of it.
    #[cfg(test)]
    pub(crate) fn total(&self) -> Joules {
        let EnergyByState { running, idle, starting, stopping, off, base } = *self;
        [running, idle, starting, stopping, off, base].into_iter().sum()
    }
}

/// The states of the nodes, and for how long they were in each.
///
/// Nodes of several kinds draw unlike amounts when they are idle. They count in milliwatts of that instead of nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeStates {
    nodes: u64,
    draws: Draws,
    busy: u64,
    switched: Switched,
    times: NodeTimes,
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

/// The time that nodes spent in each state. In what is left, they were idle or out of service.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NodeTimes {
    elapsed: Span,
    busy: NodeTime,
    starting: NodeTime,
    stopping: NodeTime,
    off: NodeTime,
}

/// Nodes × milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct NodeTime(u128);

impl NodeTime {
    #[inline]
    fn of(nodes: u64, time: Span) -> Self {
        NodeTime(u128::from(nodes) * u128::from(time.millis()))
    }

    #[inline]
    fn add(&mut self, nodes: u64, time: Span) {
        self.0 += NodeTime::of(nodes, time).0;
    }

    fn at(self, power: Watts) -> Joules {
        Joules::from_microjoules(self.0 * u128::from(power.milliwatts()))
    }
}

impl NodeStates {
    /// All nodes of a machine are idle.
    pub(super) fn new(machine: &Machine) -> Self {
        let off = machine.off();
        let (nodes, idle) = match &machine.kinds {
            Some(kinds) => (kinds.floor().milliwatts(), Watts::from_milliwatts(1)),
            None => (machine.nodes.into(), machine.node().idle),
        };
        NodeStates {
            nodes,
            draws: Draws {
                idle,
                starting: off.start.power.max(idle),
                stopping: off.stop.power,
                off: off.power,
                base: machine.base_power,
            },
            busy: 0,
            switched: Switched::default(),
            times: NodeTimes::default(),
        }
    }

    /// Nodes were so for so long.
    #[inline]
    pub(super) fn advance(&mut self, time: Span) {
        let NodeStates { busy, switched, times, .. } = self;
        times.elapsed = times.elapsed + time;
        times.busy.add(*busy, time);
        if *switched != Switched::default() {
            times.starting.add(switched.starting.into(), time);
            times.stopping.add(switched.stopping.into(), time);
            times.off.add(switched.off.into(), time);
        }
    }

    /// From now on they are as the ledger says.
    #[inline]
    pub(super) fn set(&mut self, ledger: &Ledger) {
        self.busy = match ledger.seating() {
            Some(seating) => seating.idle_of_busy().milliwatts(),
            None => (ledger.nodes_in_service() - ledger.free_nodes()).into(),
        };
        self.switched = ledger.switched();
    }

    /// For how long they were in each state so far.
    #[inline]
    pub(super) fn times(&self) -> NodeTimes {
        self.times
    }

    /// What is drawn in such times in each state, if jobs draw so much beyond what their nodes draw when they are
    /// idle.
    pub(super) fn energy(&self, times: &NodeTimes, by_jobs: Joules) -> EnergyByState {
        let NodeTimes { elapsed, busy, starting, stopping, off } = *times;
        let in_use = busy.0 + starting.0 + stopping.0 + off.0;
        let idle = NodeTime(NodeTime::of(self.nodes, elapsed).0 - in_use);
        let draws = &self.draws;
        EnergyByState {
            running: by_jobs + busy.at(draws.idle),
            idle: idle.at(draws.idle),
            starting: starting.at(draws.starting),
            stopping: stopping.at(draws.stopping),
            off: off.at(draws.off),
            base: draws.base.over(elapsed),
        }
    }
}
