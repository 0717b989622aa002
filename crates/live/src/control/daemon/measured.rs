//! What the daemon knows of nodes beyond their jobs: their names, and what they were measured to draw.

use super::Daemon;
use crate::control::answers::Wall;
use crate::engine::Measurement;
use crate::job::NodeState;
use crate::wire::{MeasuredPower, NodeLine, PowerState};
use busbar_core::units::{NodeId, Watts};

impl Daemon {
    /// Takes in a measurement.
    pub(super) fn measured(&mut self, node: u32, power: Measurement) {
        self.measured.insert(node, power);
    }

    /// Forgets what a node drew before nobody could tell any more.
    pub(super) fn unmeasured(&mut self, node: u32, state: &NodeState) {
        if matches!(state, NodeState::Down { .. } | NodeState::Awaited) {
            self.measured.remove(&node);
        }
    }

    /// The nodes, with their names, jobs and measured power.
    pub(super) fn node_lines(&self) -> Vec<NodeLine> {
        let mut lines = self.controller.nodes();
        for (line, info) in lines.iter_mut().zip(self.engine.nodes()) {
            line.name = Some(info.name);
        }
        for line in &mut lines {
            line.measured = self.measured.get(&line.node).cloned();
        }
        lines
    }

    /// The state of power, with what was measured.
    pub(super) fn power(&self, wall: Wall<'_>) -> PowerState {
        // Slurm's nodes have names, too: only an agent makes a node one that can be capped.
        let emulated = self.engine.nodes().iter().all(|node| node.caps.is_none());
        let measured =
            self.measured.values().fold(MeasuredPower::default(), |sum, node| MeasuredPower {
                power: sum.power.saturating_add(node.power),
                nodes: sum.nodes + 1,
                emulated: sum.emulated | node.is_emulated,
            });
        let measured = Some(measured).filter(|sum| sum.nodes > 0);
        let mut power = PowerState { emulated, measured, ..self.controller.power(wall) };
        for (feed, overridden) in power.feeds.iter_mut().zip(self.budget.overridden_feeds()) {
            feed.set_by_operator = overridden;
        }
        if let Some(tree) = &self.controller.setup().machine.feeds {
            for (node, measured) in &self.measured {
                for feed in tree.feeds_of(NodeId(*node)) {
                    let sum = power.feeds[feed].measured.get_or_insert(Watts::ZERO);
                    *sum = sum.saturating_add(measured.power);
                }
            }
        }
        power
    }
}
