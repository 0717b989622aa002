//! Which nodes a job is on. Kept only where it matters: when nodes can fail, or a policy names them.

use std::collections::{BTreeMap, BTreeSet};

use crate::ledger::{Running, SwitchState};
use crate::model::Caps;
use crate::units::{JobId, NodeId};

/// Which job is on which nodes, in stretches of neighbouring nodes. A job gets the free nodes with
/// the lowest numbers.
#[derive(Clone, Debug)]
pub(super) struct Placement {
    /// Free stretches, apart from each other: the first node of each, and the node after its last.
    free: BTreeMap<u32, u32>,
    /// Held stretches: the first node of each, the node after its last, and whose it is.
    held: BTreeMap<u32, (u32, JobId)>,
    /// The first node of each stretch that a job holds.
    stretches: BTreeMap<JobId, Vec<u32>>,
    /// The caps of jobs that were given their nodes by name.
    caps: BTreeMap<JobId, Caps>,
    down: BTreeSet<u32>,
    /// Nodes that are switched off, or on the way there or back.
    switched: BTreeMap<u32, SwitchState>,
}

impl Placement {
    pub(super) fn new(nodes: u32) -> Self {
        Placement {
            free: BTreeMap::from([(0, nodes)]),
            held: BTreeMap::new(),
            stretches: BTreeMap::new(),
            caps: BTreeMap::new(),
            down: BTreeSet::new(),
            switched: BTreeMap::new(),
        }
    }

    /// Gives a job so many free nodes, beside those it has. What caps it had it has no more.
    pub(super) fn take(&mut self, job: JobId, count: u32) {
        self.caps.remove(&job);
        let mut left = count;
        let mut stretches = self.stretches.remove(&job).unwrap_or_default();
        while let Some((first, end)) = self.free.pop_first() {
            let taken_end = end.min(first + left);
            if taken_end < end {
                self.free.insert(taken_end, end);
            }
            if taken_end > first {
                self.held.insert(first, (taken_end, job));
                stretches.push(first);
                left -= taken_end - first;
            }
            if left == 0 {
                break;
            }
        }
        self.stretches.insert(job, stretches);
    }

    /// Gives a job these nodes, all of which are free.
    pub(super) fn take_these(&mut self, job: JobId, nodes: impl Iterator<Item = NodeId>) {
        let mut stretches = self.stretches.remove(&job).unwrap_or_default();
        for node in nodes {
            self.cut(node);
            self.held.insert(node.0, (node.0 + 1, job));
            stretches.push(node.0);
        }
        self.stretches.insert(job, stretches);
    }

    /// The nodes of a job, in ascending order.
    pub(super) fn nodes_of(&self, job: JobId) -> Vec<NodeId> {
        let stretches = self.stretches.get(&job).into_iter().flatten();
        let ends = stretches.filter_map(|first| Some((*first, self.held.get(first)?.0)));
        let mut nodes: Vec<NodeId> = ends.flat_map(|(first, end)| first..end).map(NodeId).collect();
        nodes.sort_unstable();
        nodes
    }

    pub(super) fn is_free(&self, node: NodeId) -> bool {
        self.free_stretch(node).is_some()
    }

    pub(super) fn caps(&self, job: JobId) -> Option<&Caps> {
        self.caps.get(&job)
    }

    /// The nodes that a job was given by name have these caps from now on.
    pub(super) fn set_caps(&mut self, job: JobId, caps: &Caps) {
        self.caps.insert(job, caps.clone());
    }

    pub(super) fn give(&mut self, job: JobId) {
        self.caps.remove(&job);
        for first in self.stretches.remove(&job).unwrap_or_default() {
            if let Some((end, _)) = self.held.remove(&first) {
                self.set_free(first, end);
            }
        }
    }

    /// Takes so many of its nodes back from a job, those it got last first, and the caps of all.
    pub(super) fn give_some(&mut self, job: JobId, count: u32) {
        self.caps.remove(&job);
        let mut left = count;
        let mut stretches = self.stretches.remove(&job).unwrap_or_default();
        while left > 0 {
            let Some(first) = stretches.pop() else { break };
            let Some((end, _)) = self.held.remove(&first) else { continue };
            let kept_end = end.saturating_sub(left).max(first);
            left -= end - kept_end;
            self.set_free(kept_end, end);
            if kept_end > first {
                self.held.insert(first, (kept_end, job));
                stretches.push(first);
            }
        }
        self.stretches.insert(job, stretches);
    }

    /// Frees a stretch and joins it with its free neighbours.
    fn set_free(&mut self, mut first: u32, mut end: u32) {
        if let Some((&before, _)) = self.free.range(..first).next_back().filter(|b| *b.1 == first) {
            self.free.remove(&before);
            first = before;
        }
        if let Some(after) = self.free.remove(&end) {
            end = after;
        }
        self.free.insert(first, end);
    }

    pub(super) fn holder(&self, node: NodeId) -> Option<JobId> {
        let (_, (end, job)) = self.held.range(..=node.0).next_back()?;
        (node.0 < *end).then_some(*job)
    }

    /// The free stretch in which a node is.
    fn free_stretch(&self, node: NodeId) -> Option<(u32, u32)> {
        let stretch = self.free.range(..=node.0).next_back().map(|(first, end)| (*first, *end));
        stretch.filter(|(_, end)| node.0 < *end)
    }

    /// Takes a node out of its free stretch; says whether it was in one.
    fn cut(&mut self, node: NodeId) -> bool {
        let Some((first, end)) = self.free_stretch(node) else { return false };
        self.free.remove(&first);
        for (first, end) in [(first, node.0), (node.0 + 1, end)] {
            if first < end {
                self.free.insert(first, end);
            }
        }
        true
    }

    pub(super) fn take_down(&mut self, node: NodeId) -> bool {
        self.cut(node) && self.down.insert(node.0)
    }

    pub(super) fn bring_up(&mut self, node: NodeId) -> bool {
        let was_down = self.down.remove(&node.0);
        if was_down {
            self.set_free(node.0, node.0 + 1);
        }
        was_down
    }

    /// Begins to switch so many free nodes off, those with the highest numbers: the others are given out first.
    pub(super) fn stop(&mut self, count: u32) {
        for _ in 0..count {
            let Some(node) = self.free.last_key_value().map(|(_, end)| NodeId(end - 1)) else {
                return;
            };
            self.set_switched(node, Some(SwitchState::Stopping));
        }
    }

    /// So many nodes, those with the lowest numbers, go on from one state to the next; if there is none, they are in
    /// service.
    pub(super) fn go_on(&mut self, count: u32, from: SwitchState, to: Option<SwitchState>) {
        let there = self.switched.iter().filter(|(_, state)| **state == from);
        let nodes: Vec<u32> = there.map(|(node, _)| *node).take(count as usize).collect();
        for node in nodes {
            self.set_switched(NodeId(node), to);
        }
    }

    /// A node that is free or switched is in this state from now on; if it is in none, it is free.
    pub(super) fn set_switched(&mut self, node: NodeId, state: Option<SwitchState>) {
        match state {
            Some(state) => {
                self.cut(node);
                self.switched.insert(node.0, state);
            }
            None => {
                if self.switched.remove(&node.0).is_some() {
                    self.set_free(node.0, node.0 + 1);
                }
            }
        }
    }

    /// The state of a node that is not on.
    pub(super) fn switched(&self, node: NodeId) -> Option<SwitchState> {
        self.switched.get(&node.0).copied()
    }

    /// All nodes that are not on, in order.
    pub(super) fn all_switched(&self) -> impl Iterator<Item = (NodeId, SwitchState)> {
        self.switched.iter().map(|(node, state)| (NodeId(*node), *state))
    }

    pub(super) fn check(&self, running: &Running) -> Result<(), String> {
        let mut placed = BTreeMap::<JobId, u32>::new();
        for (first, (end, job)) in &self.held {
            *placed.entry(*job).or_default() += end - first;
        }
        let expected: BTreeMap<JobId, u32> =
            running.iter().map(|holding| (holding.job, holding.nodes)).collect();
        if placed != expected {
            return Err(format!("placed {placed:?}, running {expected:?}"));
        }
        for (job, caps) in &self.caps {
            if caps.nodes().any(|node| self.holder(node) != Some(*job)) {
                return Err(format!("{job} has caps for nodes it does not hold: {caps:?}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Node {
        Free,
        Held(JobId),
        Down,
    }

    proptest! {
        /// Stretches say the same as a list of nodes.
        #[test]
        fn stretches_agree_with_a_plain_list(steps in prop::collection::vec((0u8..5, 0u32..12), 0..60)) {
            let mut plain = [Node::Free; 12];
            let mut placement = Placement::new(12);
            for (job, (kind, number)) in (0u32..).zip(steps) {
                let at = number as usize;
                match kind {
                    0 => {
                        let free = plain.iter_mut().filter(|node| **node == Node::Free);
                        let count = free.map(|_| 1).sum::<u32>().min(number);
                        if count > 0 {
                            let free = plain.iter_mut().filter(|node| **node == Node::Free);
                            free.take(count as usize).for_each(|node| *node = Node::Held(JobId(job)));
                            placement.take(JobId(job), count);
                        }
                    }
                    1 => {
                        if let Node::Held(job) = plain[at] {
                            let held = plain.iter_mut().filter(|node| **node == Node::Held(job));
                            held.for_each(|node| *node = Node::Free);
                            placement.give(job);
                        }
                    }
                    4 => {
                        let free = plain[at] == Node::Free;
                        prop_assert_eq!(placement.is_free(NodeId(number)), free);
                        if free {
                            plain[at] = Node::Held(JobId(job));
                            placement.take_these(JobId(job), [NodeId(number)].into_iter());
                        }
                    }
                    2 => {
                        let free = plain[at] == Node::Free;
                        prop_assert_eq!(placement.take_down(NodeId(number)), free);
                        if free {
                            plain[at] = Node::Down;
                        }
                    }
                    _ => {
                        let down = plain[at] == Node::Down;
                        prop_assert_eq!(placement.bring_up(NodeId(number)), down);
                        if down {
                            plain[at] = Node::Free;
                        }
                    }
                }
                for (number, node) in (0..).zip(plain) {
                    let holder = match node {
                        Node::Held(job) => Some(job),
                        _ => None,
                    };
                    prop_assert_eq!(placement.holder(NodeId(number)), holder);
                }
            }
        }
    }
}
