//! Idle nodes are switched off, and on again: the rule of the site decides how many, the ledger which.
//!
//! A node that is stopping, off or starting is written down as such before the engine is asked, and counts with no less
//! than it may draw: it counts as off only when the engine has confirmed that, and with what a start takes from the
//! moment the start is decided. After a restart, whatever was under way is asked for again.

use super::{Act, Controller};
use crate::control::scheduler::Scheduler;
use crate::engine::Power;
use crate::job::EventKind;
use busbar_core::ledger::SwitchState;
use busbar_core::switching::{Directions, Switcher};
use busbar_core::units::{Instant, NodeId};

impl Controller {
    /// Applies the rule, or starts all nodes again if there is none any more.
    pub(super) fn switch_nodes(&mut self, now: Instant) {
        self.ask_for_unsent();
        // Power that is free belongs first to those from whom it was taken.
        let is_short = self.is_short() || self.scheduler.ledger().has_suspended();
        let directions = if is_short { Directions::Off } else { Directions::Both };
        match &mut self.switcher {
            Some(switcher) => self.scheduler.switch(switcher, directions),
            None if self.switched.is_empty() || is_short => return,
            None => self.scheduler.start_nodes(),
        }
        let ledger = self.scheduler.ledger();
        let is_new = |(node, state): &(NodeId, SwitchState)| {
            self.switched.get(&node.0).is_none_or(|before| before != state)
        };
        let new: Vec<(NodeId, SwitchState)> = ledger.switched_nodes().filter(is_new).collect();
        for (NodeId(node), state) in new {
            self.set_switched(now, node, None, Some(state));
            let act = self.asked_to(node, false);
            self.unwritten.acts.extend(act);
        }
    }

    /// Asks again for whatever was under way when the daemon ended. It counts already, but perhaps it was never asked
    /// for: then it takes power that may be missing since.
    fn ask_for_unsent(&mut self) {
        let machine = &self.setup.machine;
        let takes_none = machine.off().stop.power <= machine.node().idle;
        let is_short = self.is_short();
        for node in std::mem::take(&mut self.unsent) {
            match self.asked_to(node, true) {
                Some(Act::Switch { to, .. }) if is_short && !(takes_none && to == Power::Off) => {
                    self.unsent.insert(node);
                }
                act => self.unwritten.acts.extend(act),
            }
        }
    }

    /// When nodes will have been idle for long enough.
    pub(super) fn next_switch(&self) -> Option<Instant> {
        self.switcher.as_ref()?.next(self.scheduler.ledger().now())
    }

    /// The engine says that a node is off, or ready for jobs. What nobody waits for is of no use, except that a node that
    /// was off is on: then it draws more.
    pub(crate) fn switched(&mut self, now: Instant, node: u32, name: Option<String>, to: Power) {
        let state = match (self.switched.get(&node), to) {
            (Some(SwitchState::Stopping), Power::Off) => Some(SwitchState::Off),
            (Some(SwitchState::Starting | SwitchState::Off), Power::On) => None,
            _ => return,
        };
        self.set_switched(now, node, name, state);
        self.scheduler.note_switched(node, state);
        // It may be out of service for another reason.
        self.keep_out();
        self.must_ask = true;
    }

    /// A switch was not asked for, because something that should have freed power for it did not. If it may have been
    /// asked for before a restart, it goes on to count as it does, and is asked for later.
    pub(super) fn not_switched(&mut self, now: Instant, node: u32, to: Power, again: bool) {
        let state = match (self.switched.get(&node), to) {
            (Some(_), _) if again => {
                self.unsent.insert(node);
                return;
            }
            (Some(SwitchState::Stopping), Power::Off) => None,
            (Some(SwitchState::Starting), Power::On) => Some(SwitchState::Off),
            _ => return,
        };
        self.set_switched(now, node, None, state);
    }

    /// What the engine was asked for, or is to be, and has not confirmed.
    pub(crate) fn switches_under_way(&self) -> impl Iterator<Item = Act> {
        self.switched.keys().filter_map(|node| self.asked_to(*node, true))
    }

    /// Asks for all of that again, as soon as there is power for it.
    pub(super) fn resend_switches(&mut self) {
        self.unsent = self.switched.keys().copied().collect();
    }

    /// Whether a node is still to be switched so. What was decided otherwise since is not asked for.
    pub(crate) fn is_to_be(&self, node: u32, to: Power) -> bool {
        let state = match to {
            Power::Off => SwitchState::Stopping,
            Power::On => SwitchState::Starting,
        };
        self.switched.get(&node) == Some(&state)
    }

    /// The engine cannot switch nodes, so that all of them are on.
    pub(crate) fn all_nodes_are_on(&mut self, now: Instant) {
        let nodes: Vec<u32> = self.switched.keys().copied().collect();
        for node in nodes {
            self.set_switched(now, node, None, None);
            self.must_rebuild = true;
        }
    }

    /// The rule and the machine that are in force now.
    pub(super) fn follow_rule(&mut self) {
        let machine = &self.setup.machine;
        self.switcher = match (self.switcher.take(), self.setup.switch_off) {
            (_, None) => None,
            (None, Some(rule)) => Some(Switcher::new(rule, machine)),
            (Some(mut switcher), Some(rule)) => {
                switcher.follow(rule, machine);
                Some(switcher)
            }
        };
    }

    /// Lets a new scheduler count the nodes that are not on. One that a job runs on is on, and one that the machine does
    /// not have any more is nobody's.
    pub(super) fn count_switched(&mut self, scheduler: &mut Scheduler) {
        let written = &mut self.unwritten.nodes;
        self.switched.retain(|node, state| {
            let is_there = scheduler.note_switched(*node, Some(*state));
            written.extend((!is_there).then_some(*node));
            is_there
        });
    }

    /// Where a node is that is not on.
    pub(crate) fn node_switched(&self, node: u32) -> Option<SwitchState> {
        self.switched.get(&node).copied()
    }

    /// The nodes that are not on.
    pub(crate) fn switched_nodes(&self) -> impl Iterator<Item = (u32, SwitchState)> {
        self.switched.iter().map(|(node, state)| (*node, *state))
    }

    /// What the engine is to do with a node that is on its way.
    fn asked_to(&self, node: u32, again: bool) -> Option<Act> {
        let off = self.setup.machine.off();
        let (to, expected) = match self.switched.get(&node)? {
            SwitchState::Stopping => (Power::Off, off.stop.time),
            SwitchState::Starting => (Power::On, off.start.time),
            SwitchState::Off => return None,
        };
        Some(Act::Switch { node, to, expected, again })
    }

    /// A node is in another state, which is to be written.
    fn set_switched(
        &mut self,
        now: Instant,
        node: u32,
        name: Option<String>,
        switched: Option<SwitchState>,
    ) {
        match switched {
            Some(state) => _ = self.switched.insert(node, state),
            None => _ = self.switched.remove(&node),
        }
        self.unwritten.nodes.insert(node);
        let state = self.node_state(node);
        self.note(now, EventKind::Node { node, name, state, switched });
    }
}
