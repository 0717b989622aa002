//! Nodes that are switched off and on: out of service meanwhile, and counted with what they draw.
//!
//! What the machine draws without any job follows from how many nodes are in which state. Before it rises,
//! there has to be room for it under the limit in force and under all that are to come, beside what jobs hold
//! then; before that no node is started or stopped.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Ledger;
use crate::machine::{Machine, Off};
use crate::units::{Instant, NodeId, Watts};

/// Where a node is that is not on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SwitchState {
    /// It is being switched off.
    Stopping,
    /// It is off.
    Off,
    /// It is being started.
    Starting,
}

impl SwitchState {
    /// All of them, in the order in which a node goes through them.
    pub const ALL: [SwitchState; 3] =
        [SwitchState::Stopping, SwitchState::Off, SwitchState::Starting];
}

impl fmt::Display for SwitchState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SwitchState::Stopping => "stopping",
            SwitchState::Off => "off",
            SwitchState::Starting => "starting",
        })
    }
}

/// How many nodes are off, or on the way there or back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switched {
    /// Nodes that are being switched off.
    pub stopping: u32,
    /// Nodes that are off.
    pub off: u32,
    /// Nodes that are being started.
    pub starting: u32,
}

impl Switched {
    /// All of them.
    pub fn all(self) -> u32 {
        self.stopping + self.off + self.starting
    }

    /// How many are in a state.
    fn count(&mut self, state: SwitchState) -> &mut u32 {
        match state {
            SwitchState::Stopping => &mut self.stopping,
            SwitchState::Off => &mut self.off,
            SwitchState::Starting => &mut self.starting,
        }
    }
}

/// What the machine draws without jobs, by the states of its nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draws {
    /// With every node idle.
    floor: Watts,
    idle: Watts,
    off: Off,
}

impl Draws {
    pub(super) fn of(machine: &Machine) -> Self {
        Draws { floor: machine.floor(), idle: machine.node().idle, off: machine.off() }
    }

    /// With this many nodes not idle but switched.
    fn with(&self, switched: Switched) -> Watts {
        let Switched { stopping, off, starting } = switched;
        let idle = self.floor - self.idle * switched.all();
        idle + self.off.stop.power * stopping
            + self.off.power * off
            + self.off.start.power.max(self.idle) * starting
    }
}

impl Ledger {
    /// The nodes that are not in service because they are switched off, or on the way there or back.
    pub fn switched(&self) -> Switched {
        self.switched
    }

    /// What the machine draws without any job if every node is on.
    pub(crate) fn floor(&self) -> Watts {
        self.draws.floor
    }

    /// Begins to switch free nodes off, as many as are free and as there is room for; says how many.
    pub(crate) fn stop_nodes(&mut self, most: u32) -> u32 {
        let rise = self.draws.off.stop.power.saturating_sub(self.draws.idle);
        let count = self.most_with(most.min(self.free_nodes), rise);
        self.free_nodes -= count;
        self.down_nodes += count;
        if let Some(placement) = &mut self.placement {
            placement.stop(count);
        }
        self.switch(Switched { stopping: self.switched.stopping + count, ..self.switched });
        count
    }

    /// So many nodes that were being switched off are off.
    pub(crate) fn nodes_stopped(&mut self, count: u32) {
        let Switched { stopping, off, .. } = self.switched;
        let count = count.min(stopping);
        if let Some(placement) = &mut self.placement {
            placement.go_on(count, SwitchState::Stopping, Some(SwitchState::Off));
        }
        self.switch(Switched { stopping: stopping - count, off: off + count, ..self.switched });
    }

    /// Begins to start nodes that are off, as many as there is room for; says how many.
    pub(crate) fn start_nodes(&mut self, most: u32) -> u32 {
        let Draws { idle, off, .. } = self.draws;
        let rise = off.start.power.max(idle).saturating_sub(off.power);
        let count = self.most_with(most.min(self.switched.off), rise);
        if let Some(placement) = &mut self.placement {
            placement.go_on(count, SwitchState::Off, Some(SwitchState::Starting));
        }
        let Switched { off, starting, .. } = self.switched;
        self.switch(Switched { off: off - count, starting: starting + count, ..self.switched });
        count
    }

    /// So many nodes that were being started are idle and in service again.
    pub(crate) fn nodes_ready(&mut self, count: u32) {
        let count = count.min(self.switched.starting);
        self.free_nodes += count;
        self.down_nodes -= count;
        if let Some(placement) = &mut self.placement {
            placement.go_on(count, SwitchState::Starting, None);
        }
        self.switch(Switched { starting: self.switched.starting - count, ..self.switched });
    }

    /// A node is found in a state; if it is in none, it is on. What is so is written down, whether there is room for it
    /// or not. It is refused, and nothing changes, if a job holds the node, if it is down or does not exist, or where
    /// nodes are not kept track of.
    pub(crate) fn note_switched(&mut self, node: NodeId, state: Option<SwitchState>) -> bool {
        let Some(placement) = &mut self.placement else { return false };
        let before = placement.switched(node);
        if before.is_none() && !placement.is_free(node) {
            return false;
        }
        placement.set_switched(node, state);
        let (was_on, is_on) = (u32::from(before.is_none()), u32::from(state.is_none()));
        self.free_nodes = self.free_nodes - was_on + is_on;
        self.down_nodes = self.down_nodes + was_on - is_on;
        let mut switched = self.switched;
        if let Some(before) = before {
            *switched.count(before) -= 1;
        }
        if let Some(state) = state {
            *switched.count(state) += 1;
        }
        self.switch(switched);
        true
    }

    /// The nodes that are not on, in order; none where nodes are not kept track of.
    pub fn switched_nodes(&self) -> impl Iterator<Item = (NodeId, SwitchState)> {
        self.placement.iter().flat_map(|placement| placement.all_switched())
    }

    /// The most nodes, up to so many, for each of which the machine may come to draw so much more.
    fn most_with(&self, most: u32, rise: Watts) -> u32 {
        let fits = |count: u32| {
            let more = rise.checked_mul(count).unwrap_or(Watts::UNLIMITED);
            more <= self.free_power() && self.first_shortage(more, Instant::LAST).is_none()
        };
        // Where some fit, fewer fit as well.
        let (mut fitting, mut too_many) = (0, most + 1);
        while too_many - fitting > 1 {
            let middle = match fitting {
                0 if too_many == most + 1 => most,
                _ => fitting + (too_many - fitting) / 2,
            };
            if rise == Watts::ZERO || fits(middle) { fitting = middle } else { too_many = middle }
        }
        fitting
    }

    fn switch(&mut self, switched: Switched) {
        self.switched = switched;
        self.base_power = self.draws.with(switched);
        self.peak = self.peak.max(self.power());
    }

    /// The books of switched nodes, added up again.
    pub(super) fn check_switched(&self) -> Result<(), String> {
        let (all, down) = (self.switched.all(), self.down_nodes);
        if all > down {
            return Err(format!("{all} nodes are switched off, but only {down} out of service"));
        }
        if let Some(placement) = &self.placement {
            let mut named = Switched::default();
            placement.all_switched().for_each(|(_, state)| *named.count(state) += 1);
            if named != self.switched {
                return Err(format!("{:?} are counted, {named:?} are named", self.switched));
            }
        }
        match self.draws.with(self.switched) {
            base if base != self.base_power => Err(format!(
                "without jobs {base} is drawn, but the ledger says {}",
                self.base_power
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::machine::{Details, Transition};
    use crate::model::OperatingPoint;
    use crate::units::{JobId, Span};

    /// Ten nodes of 100 W, 20 W idle and 2 W off; they start at 80 W and stop at 30 W.
    fn machine() -> Machine {
        let watts = Watts::from_watts;
        let off = Off {
            power: watts(2),
            stop: Transition { time: Span::from_secs(10), power: watts(30) },
            start: Transition { time: Span::from_secs(60), power: watts(80) },
        };
        let details = Details { idle: Some(watts(20)), off: Some(off), ..Details::default() };
        Machine { details, ..Machine::of_processors(10).unwrap() }
    }

    fn point(nodes: u32, watts: u32, seconds: u32) -> OperatingPoint {
        let (power, time) = (Watts::from_watts(watts), Span::from_secs(seconds));
        OperatingPoint { nodes, cores: 1, cap: power, time, power }
    }

    #[test]
    fn nodes_count_with_what_they_draw() {
        let mut ledger = Ledger::new(&machine(), Budget::constant(Watts::from_watts(400)));
        let watts = |ledger: &Ledger| ledger.base_power().milliwatts() / 1000;
        assert_eq!(watts(&ledger), 200);
        assert_eq!(ledger.stop_nodes(4), 4);
        assert_eq!((watts(&ledger), ledger.free_nodes()), (240, 6));
        ledger.nodes_stopped(4);
        assert_eq!(watts(&ledger), 128);
        assert_eq!(ledger.start_nodes(1), 1);
        assert_eq!((watts(&ledger), ledger.free_nodes()), (206, 6));
        ledger.nodes_ready(1);
        assert_eq!((watts(&ledger), ledger.free_nodes(), ledger.nodes_in_service()), (146, 7, 7));
        assert_eq!(ledger.check(), Ok(()));
    }

    /// Of 300 W, a job that adds 90 W leaves 10 W: one node can be stopped at 30 W instead of 20, and when
    /// eight are off none can be started that would draw 78 W more than there is.
    #[test]
    fn nothing_is_switched_without_room() {
        let mut ledger = Ledger::new(&machine(), Budget::constant(Watts::from_watts(300)));
        ledger.start(JobId(0), &point(1, 90, 1000)).unwrap();
        assert_eq!(ledger.stop_nodes(9), 1);
        ledger.nodes_stopped(1);
        assert_eq!(ledger.stop_nodes(9), 2);
        ledger.nodes_stopped(2);
        assert_eq!(ledger.stop_nodes(9), 6);
        ledger.nodes_stopped(6);
        // 200 - 9 * 18 = 38 W without jobs.
        ledger.change(JobId(0), &point(1, 250, 1000), Span::from_secs(1000)).unwrap();
        assert_eq!(ledger.start_nodes(9), 0);
        ledger.change(JobId(0), &point(1, 90, 1000), Span::from_secs(1000)).unwrap();
        assert_eq!(ledger.start_nodes(9), 2);
        assert_eq!(ledger.check(), Ok(()));
    }

    /// A limit to come counts, as long as jobs hold what they hold.
    #[test]
    fn a_limit_to_come_counts() {
        let steps = vec![
            (Instant::ZERO, Watts::from_watts(1000)),
            (Instant::from_secs(100), Watts::from_watts(250)),
        ];
        let mut ledger = Ledger::new(&machine(), Budget::from_steps(steps).unwrap());
        assert_eq!(ledger.stop_nodes(5), 5);
        ledger.nodes_stopped(5);
        // 110 W without jobs; 140 W of 250 W are left for jobs while five nodes are off.
        ledger.start(JobId(0), &point(1, 140, 200)).unwrap();
        assert_eq!(ledger.start_nodes(5), 0);
        ledger.release(JobId(0)).unwrap();
        ledger.start(JobId(0), &point(1, 140, 50)).unwrap();
        assert_eq!(ledger.start_nodes(5), 1);
    }
    /// What is found is counted, whether there is room for it or not, and a node that a job holds is on.
    #[test]
    fn what_is_found_is_counted() {
        let mut ledger =
            Ledger::with_placement(&machine(), Budget::constant(Watts::from_watts(220)));
        ledger.start(JobId(0), &point(1, 20, 1000)).unwrap();
        assert!(!ledger.note_switched(NodeId(0), Some(SwitchState::Off)), "a job is there");
        assert!(!ledger.note_switched(NodeId(10), Some(SwitchState::Off)), "there is no such node");
        let watts = |ledger: &Ledger| ledger.base_power().milliwatts() / 1000;
        for (state, base) in [
            (Some(SwitchState::Starting), 260),
            (Some(SwitchState::Off), 182),
            (Some(SwitchState::Stopping), 210),
            (None, 200),
        ] {
            assert!(ledger.note_switched(NodeId(4), state));
            assert!(ledger.note_switched(NodeId(4), state), "twice is the same as once");
            assert_eq!((watts(&ledger), ledger.check()), (base, Ok(())), "{state:?}");
            assert_eq!(ledger.is_free(NodeId(4)), state.is_none());
            assert_eq!(ledger.switched_nodes().next(), state.map(|state| (NodeId(4), state)));
        }
        assert_eq!((ledger.free_nodes(), ledger.nodes_in_service()), (9, 10));
    }

    /// The ledger chooses: nodes with high numbers are stopped, those with low ones are started.
    #[test]
    fn nodes_are_known_by_their_names() {
        let mut ledger = Ledger::with_placement(&machine(), Budget::unlimited());
        assert_eq!(ledger.stop_nodes(3), 3);
        assert!(ledger.note_switched(NodeId(8), Some(SwitchState::Off)));
        assert_eq!(ledger.start_nodes(9), 1, "one that is stopping is not off");
        let states: Vec<_> = ledger.switched_nodes().map(|(node, state)| (node.0, state)).collect();
        let (stopping, starting) = (SwitchState::Stopping, SwitchState::Starting);
        assert_eq!(states, [(7, stopping), (8, starting), (9, stopping)]);
        ledger.nodes_ready(1);
        assert!(ledger.is_free(NodeId(8)) && !ledger.is_free(NodeId(7)));
        assert_eq!(ledger.check(), Ok(()));
    }
}
