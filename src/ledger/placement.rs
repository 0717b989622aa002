//! Which nodes a job is on. Kept only where it matters: when nodes can fail.

use std::collections::BTreeMap;

use crate::ledger::Running;
use crate::units::{JobId, NodeId};

/// What a node is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Free,
    Held(JobId),
    Down,
}

/// Which job is on which nodes. A job gets the free nodes with the lowest numbers.
#[derive(Clone, Debug)]
pub(super) struct Placement {
    nodes: Vec<Node>,
}

impl Placement {
    pub(super) fn new(nodes: u32) -> Self {
        Placement { nodes: vec![Node::Free; nodes as usize] }
    }

    pub(super) fn take(&mut self, job: JobId, count: u32) {
        let free = self.nodes.iter_mut().filter(|node| **node == Node::Free);
        for node in free.take(count as usize) {
            *node = Node::Held(job);
        }
    }

    pub(super) fn give(&mut self, job: JobId) {
        for node in self.nodes.iter_mut().filter(|node| **node == Node::Held(job)) {
            *node = Node::Free;
        }
    }

    pub(super) fn holder(&self, node: NodeId) -> Option<JobId> {
        match self.nodes.get(node.0 as usize) {
            Some(Node::Held(job)) => Some(*job),
            _ => None,
        }
    }

    pub(super) fn take_down(&mut self, node: NodeId) -> bool {
        self.change(node, Node::Free, Node::Down)
    }

    pub(super) fn bring_up(&mut self, node: NodeId) -> bool {
        self.change(node, Node::Down, Node::Free)
    }

    fn change(&mut self, node: NodeId, from: Node, to: Node) -> bool {
        match self.nodes.get_mut(node.0 as usize) {
            Some(node) if *node == from => {
                *node = to;
                true
            }
            _ => false,
        }
    }

    pub(super) fn check(&self, running: &Running) -> Result<(), String> {
        let mut held = BTreeMap::<JobId, u32>::new();
        for node in &self.nodes {
            if let Node::Held(job) = node {
                *held.entry(*job).or_default() += 1;
            }
        }
        let expected: BTreeMap<JobId, u32> =
            running.iter().map(|holding| (holding.job, holding.nodes)).collect();
        if held == expected {
            Ok(())
        } else {
            Err(format!("placed {held:?}, running {expected:?}"))
        }
    }
}
