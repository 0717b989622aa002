//! Which nodes a job is on. Kept only where it matters: when nodes differ or can fail, or a policy names them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::free_nodes::FreeNodes;
use crate::ledger::{Running, SwitchState};
use crate::model::Caps;
use crate::units::{JobId, NodeId};

/// Which job is on which nodes, in stretches of neighbouring nodes. A job gets the free nodes with
/// the lowest numbers.
#[derive(Clone, Debug)]
pub(super) struct Placement {
    free: FreeNodes,
    /// By job: its place among the holdings, or [`NOWHERE`].
    places: Vec<u32>,
    /// What jobs hold. Places of jobs that have ended are used again.
    holdings: Vec<Held>,
    /// Unused places.
    unused: Vec<u32>,
    /// The caps of jobs that were given their nodes by name.
    caps: BTreeMap<JobId, Caps>,
    down: BTreeSet<u32>,
    /// Nodes that are switched off, or on the way there or back.
    switched: BTreeMap<u32, SwitchState>,
}

/// The place of a job that holds nothing.
const NOWHERE: u32 = u32::MAX;

/// What a job holds.
#[derive(Clone, Debug)]
struct Held {
    job: JobId,
    /// In the order in which it got them. None if nobody uses this place.
    stretches: Vec<Range<u32>>,
}

impl Held {
    /// Adds nodes, to the last stretch if they follow it.
    fn push(&mut self, nodes: Range<u32>) {
        match self.stretches.last_mut() {
            Some(last) if last.end == nodes.start => last.end = nodes.end,
            _ => self.stretches.push(nodes),
        }
    }
}

impl Placement {
    pub(super) fn new(nodes: u32) -> Self {
        Placement {
            free: FreeNodes::all(nodes),
            places: Vec::new(),
            holdings: Vec::new(),
            unused: Vec::new(),
            caps: BTreeMap::new(),
            down: BTreeSet::new(),
            switched: BTreeMap::new(),
        }
    }

    /// The place of a job among the holdings, which it gets if it has none.
    fn place_for(&mut self, job: JobId) -> usize {
        if job.index() >= self.places.len() {
            self.places.resize(job.index() + 1, NOWHERE);
        }
        let place = &mut self.places[job.index()];
        if *place == NOWHERE {
            *place = self.unused.pop().unwrap_or_else(|| {
                self.holdings.push(Held { job, stretches: Vec::new() });
                (self.holdings.len() - 1) as u32
            });
            self.holdings[*place as usize].job = job;
        }
        *place as usize
    }

    fn place_of(&self, job: JobId) -> Option<usize> {
        let place = self.places.get(job.index()).filter(|place| **place != NOWHERE)?;
        Some(*place as usize)
    }

    /// Gives a job so many free nodes, beside those it has. What caps it had it has no more.
    pub(super) fn take(&mut self, job: JobId, count: u32) {
        self.forget_caps(job);
        let place = self.place_for(job);
        let held = &mut self.holdings[place];
        self.free.take_lowest(count, |stretch| held.push(stretch));
    }

    /// Gives a job so many of these nodes that are free, beside those it has; the others stay.
    pub(super) fn take_in(&mut self, job: JobId, nodes: &[Range<u32>], count: u32) {
        let place = self.place_for(job);
        let held = &mut self.holdings[place];
        let mut left = count;
        for stretch in nodes {
            left = self.free.take_lowest_in(stretch.clone(), left, |stretch| held.push(stretch));
        }
    }

    /// Gives a job these nodes, all of which are free.
    pub(super) fn take_these(&mut self, job: JobId, nodes: impl Iterator<Item = NodeId>) {
        let place = self.place_for(job);
        for node in nodes {
            self.free.remove(node.0..node.0 + 1);
            self.holdings[place].push(node.0..node.0 + 1);
        }
    }

    /// The nodes of a job, in stretches that do not overlap.
    pub(super) fn stretches_of(&self, job: JobId) -> &[Range<u32>] {
        self.place_of(job).map_or(&[], |place| &self.holdings[place].stretches)
    }

    pub(super) fn is_free(&self, node: NodeId) -> bool {
        self.free.has(node.0)
    }

    pub(super) fn free(&self) -> &FreeNodes {
        &self.free
    }

    pub(super) fn caps(&self, job: JobId) -> Option<&Caps> {
        self.caps.get(&job)
    }

    /// The nodes that a job was given by name have these caps from now on.
    pub(super) fn set_caps(&mut self, job: JobId, caps: &Caps) {
        self.caps.insert(job, caps.clone());
    }

    fn forget_caps(&mut self, job: JobId) {
        if !self.caps.is_empty() {
            self.caps.remove(&job);
        }
    }

    pub(super) fn give(&mut self, job: JobId) {
        self.forget_caps(job);
        let Some(place) = self.place_of(job) else { return };
        let stretches = &mut self.holdings[place].stretches;
        stretches.drain(..).for_each(|stretch| self.free.insert(stretch));
        self.unused.push(place as u32);
        self.places[job.index()] = NOWHERE;
    }

    /// Takes so many of its nodes back from a job, those it got last first, and the caps of all.
    pub(super) fn give_some(&mut self, job: JobId, count: u32) {
        self.forget_caps(job);
        let Some(place) = self.place_of(job) else { return };
        let stretches = &mut self.holdings[place].stretches;
        let mut left = count;
        while let Some(last) = stretches.last_mut().filter(|_| left > 0) {
            let kept_end = last.end.saturating_sub(left).max(last.start);
            left -= last.end - kept_end;
            self.free.insert(kept_end..last.end);
            last.end = kept_end;
            if last.start == last.end {
                stretches.pop();
            }
        }
    }

    /// All jobs that hold nodes, with these.
    pub(super) fn held(&self) -> impl Iterator<Item = (JobId, &[Range<u32>])> {
        let used = self.holdings.iter().filter(|held| !held.stretches.is_empty());
        used.map(|held| (held.job, &held.stretches[..]))
    }

    /// The job that holds a node. It is looked for among all jobs that run: who asks about many nodes goes through
    /// [`held`](Placement::held).
    pub(super) fn holder(&self, node: NodeId) -> Option<JobId> {
        let holds = |stretches: &[Range<u32>]| stretches.iter().any(|one| one.contains(&node.0));
        self.held().find(|(_, stretches)| holds(stretches)).map(|(job, _)| job)
    }

    pub(super) fn take_down(&mut self, node: NodeId) -> bool {
        let is_free = self.free.has(node.0);
        if is_free {
            self.free.remove(node.0..node.0 + 1);
            self.down.insert(node.0);
        }
        is_free
    }

    pub(super) fn bring_up(&mut self, node: NodeId) -> bool {
        let was_down = self.down.remove(&node.0);
        if was_down {
            self.free.insert(node.0..node.0 + 1);
        }
        was_down
    }

    /// Begins to switch so many free nodes off, those with the highest numbers: the others are given out first.
    pub(super) fn stop(&mut self, count: u32) {
        for _ in 0..count {
            let Some(node) = self.free.last() else { return };
            self.set_switched(NodeId(node), Some(SwitchState::Stopping));
        }
    }

    /// This many nodes, those with the lowest numbers, go on from one state to the next; if there is none, they are in
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
                self.free.remove(node.0..node.0 + 1);
                self.switched.insert(node.0, state);
            }
            None => {
                if self.switched.remove(&node.0).is_some() {
                    self.free.insert(node.0..node.0 + 1);
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
        let count =
            |stretches: &[Range<u32>]| stretches.iter().map(|one| one.end - one.start).sum();
        let placed: BTreeMap<JobId, u32> =
            self.held().map(|(job, stretches)| (job, count(stretches))).collect();
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
