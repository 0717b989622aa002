//! What an engine says of its nodes: those that no job may start on, and what jobs consumed there.

use super::Controller;
use crate::engine::Consumption;
use crate::job::{EventKind, NodeState};
use busbar_core::units::Instant;

impl Controller {
    /// Takes in the state of a node. A job that runs there goes on, and counts as before.
    /// `name` is what people call it.
    pub(crate) fn node_changed(
        &mut self,
        now: Instant,
        node: u32,
        name: Option<String>,
        state: NodeState,
    ) {
        let before = self.nodes.get(&node).unwrap_or(&NodeState::Up);
        if *before == state || node >= self.setup.machine.nodes {
            return;
        }
        let is_news = state != NodeState::Awaited
            && !(*before == NodeState::Awaited && state == NodeState::Up);
        match state {
            NodeState::Up => {
                self.nodes.remove(&node);
                self.scheduler.put_back(node);
            }
            NodeState::Awaited | NodeState::Drained { .. } | NodeState::Down { .. } => {
                self.nodes.insert(node, state.clone());
                self.scheduler.take_out(node);
            }
        }
        self.must_ask = true;
        if is_news {
            let switched = self.switched.get(&node).copied();
            self.note(now, EventKind::Node { node, name, state, switched });
        }
    }

    /// Records what a job that is over was measured to consume.
    pub(crate) fn consumed(&mut self, now: Instant, job: u64, consumption: &Consumption) {
        let &Consumption { energy, power, is_emulated, .. } = consumption;
        self.note(now, EventKind::Consumed { job, energy, power, emulated: is_emulated });
    }

    /// Takes nodes out of service on which a job ran until now.
    pub(super) fn keep_out(&mut self) {
        for node in self.nodes.keys() {
            self.scheduler.take_out(*node);
        }
    }

    /// The state of a node.
    pub(crate) fn node_state(&self, node: u32) -> NodeState {
        let switched = self.switched.get(&node).copied().map(NodeState::of_switched);
        switched.or_else(|| self.nodes.get(&node).cloned()).unwrap_or_default()
    }
}
