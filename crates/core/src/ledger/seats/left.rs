//! What is left of each node, in blocks, so that full nodes are stepped over, and counted, so that most searches in vain are
//! answered without a look at any node.

use std::ops::Range;

use crate::machine::{Kinds, NodeSize};
use crate::units::NodeId;

/// What is left of each node, with the most of everything in each block of nodes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Left {
    nodes: Vec<NodeSize>,
    blocks: Vec<NodeSize>,
    /// Of blocks of blocks.
    above: Vec<NodeSize>,
    /// By group of nodes.
    counts: Vec<Counts>,
}

/// Nodes in a block, and blocks in the next.
const BLOCK: usize = 32;

impl Left {
    /// All of each node.
    pub(super) fn all(kinds: &Kinds) -> Self {
        let groups = kinds.groups().iter().enumerate();
        let counts = groups
            .map(|(place, group)| Counts::all(group.nodes.clone(), kinds.kind_of(place).size));
        Left::of(kinds.sizes().collect(), counts.collect())
    }

    fn of(nodes: Vec<NodeSize>, counts: Vec<Counts>) -> Self {
        let blocks: Vec<NodeSize> = nodes.chunks(BLOCK).map(most).collect();
        let above = blocks.chunks(BLOCK).map(most).collect();
        Left { nodes, blocks, above, counts }
    }

    /// What is left of a node.
    #[inline]
    pub(super) fn of_node(&self, node: NodeId) -> &NodeSize {
        &self.nodes[node.0 as usize]
    }

    /// No more nodes of these groups have so much left.
    #[inline]
    pub(super) fn at_most(&self, groups: &[u16], wanted: &NodeSize) -> u32 {
        groups.iter().map(|group| self.counts[usize::from(*group)].at_most(wanted)).sum()
    }

    /// The first node of these that has so much left.
    #[inline]
    pub(super) fn next(&self, places: Range<u32>, wanted: &NodeSize) -> Option<u32> {
        let (mut at, end) = (places.start as usize, places.end as usize);
        while at < end {
            if at.is_multiple_of(BLOCK) {
                let block = at / BLOCK;
                if block.is_multiple_of(BLOCK) && !self.above[block / BLOCK].has(wanted) {
                    at += BLOCK * BLOCK;
                    continue;
                }
                if !self.blocks[block].has(wanted) {
                    at += BLOCK;
                    continue;
                }
            }
            if self.nodes[at].has(wanted) {
                return Some(at as u32);
            }
            at += 1;
        }
        None
    }

    /// So much less is left of each of these nodes; `was` hears what was left of each.
    pub(super) fn take(
        &mut self,
        nodes: &[NodeId],
        each: &NodeSize,
        mut was: impl FnMut(&NodeSize),
    ) {
        let mut nodes = nodes.iter().map(|node| node.0 as usize).peekable();
        while let Some(at) = nodes.next() {
            let before = self.nodes[at];
            was(&before);
            self.nodes[at] = before.without(each).unwrap_or_default();
            self.count(at, &before);
            // Neighbours mostly follow, and their block is looked through once.
            if nodes.peek().is_none_or(|next| next / BLOCK != at / BLOCK) {
                self.sum_up(at / BLOCK);
            }
        }
    }

    /// So much more is left of each of these nodes; `is` hears what is left of each.
    pub(super) fn give(
        &mut self,
        nodes: &[NodeId],
        each: &NodeSize,
        mut is: impl FnMut(&NodeSize),
    ) {
        for node in nodes {
            let at = node.0 as usize;
            let before = self.nodes[at];
            let after = before.with(each);
            is(&after);
            self.nodes[at] = after;
            self.count(at, &before);
            for most in [&mut self.blocks[at / BLOCK], &mut self.above[at / BLOCK / BLOCK]] {
                *most = most.most(after);
            }
        }
    }

    /// Counts a node that has changed.
    #[inline]
    fn count(&mut self, at: usize, before: &NodeSize) {
        let node = at as u32;
        let group = match &self.counts[..] {
            [_] => 0,
            counts => counts.partition_point(|counts| counts.nodes.end <= node),
        };
        self.counts[group].change(before, &self.nodes[at]);
    }

    fn sum_up(&mut self, block: usize) {
        let renewed = most(of_block(&self.nodes, block));
        if std::mem::replace(&mut self.blocks[block], renewed) != renewed {
            self.above[block / BLOCK] = most(of_block(&self.blocks, block / BLOCK));
        }
    }

    /// The sums made anew, if so much is left of the nodes.
    pub(super) fn check(&self, nodes: Vec<NodeSize>) -> Result<(), String> {
        if nodes != self.nodes {
            return Err("what is left of nodes is not what their jobs leave".to_owned());
        }
        let counts = self.counts.iter().map(|counts| {
            let mut renewed = Counts::all(counts.nodes.clone(), counts.size);
            let left = &nodes[counts.nodes.start as usize..counts.nodes.end as usize];
            left.iter().for_each(|left| renewed.change(&counts.size, left));
            renewed
        });
        match *self == Left::of(nodes.clone(), counts.collect()) {
            true => Ok(()),
            false => Err("blocks or groups of nodes have other sums than their nodes".to_owned()),
        }
    }
}

fn of_block(all: &[NodeSize], block: usize) -> &[NodeSize] {
    &all[block * BLOCK..all.len().min((block + 1) * BLOCK)]
}

fn most(of: &[NodeSize]) -> NodeSize {
    of.iter().copied().fold(NodeSize::default(), NodeSize::most)
}

/// How many nodes of a group have how much left of each thing.
#[derive(Clone, Debug, PartialEq)]
struct Counts {
    nodes: Range<u32>,
    size: NodeSize,
    processors: Vec<u32>,
    /// By the leading bits of what is left of the memory.
    memory: Vec<u32>,
    gpus: Vec<u32>,
}

impl Counts {
    /// These nodes, with all of this size left.
    fn all(nodes: Range<u32>, size: NodeSize) -> Self {
        let many = nodes.len() as u32;
        let of = |most: u32| {
            let mut counts = vec![0; most as usize + 1];
            counts[most as usize] = many;
            counts
        };
        let memory = of(size.memory_mib >> leading(&size));
        Counts { nodes, size, processors: of(size.processors), memory, gpus: of(size.gpus) }
    }

    fn change(&mut self, from: &NodeSize, to: &NodeSize) {
        let move_one = |counts: &mut [u32], from: u32, to: u32| {
            counts[from as usize] -= 1;
            counts[to as usize] += 1;
        };
        let bits = leading(&self.size);
        move_one(&mut self.processors, from.processors, to.processors);
        move_one(&mut self.memory, from.memory_mib >> bits, to.memory_mib >> bits);
        move_one(&mut self.gpus, from.gpus, to.gpus);
    }

    /// No more nodes have so much left.
    #[inline]
    fn at_most(&self, wanted: &NodeSize) -> u32 {
        let from = |counts: &[u32], least: u32| -> u32 {
            counts.get(least as usize..).map_or(0, |counts| counts.iter().sum())
        };
        let mut most = from(&self.processors, wanted.processors);
        if wanted.memory_mib > 0 && most > 0 {
            most = most.min(from(&self.memory, wanted.memory_mib >> leading(&self.size)));
        }
        if wanted.gpus > 0 && most > 0 {
            most = most.min(from(&self.gpus, wanted.gpus));
        }
        most
    }
}

/// How many bits of an amount of memory are left away, so that 64 amounts are told apart at most.
fn leading(size: &NodeSize) -> u32 {
    (u32::BITS - size.memory_mib.leading_zeros()).saturating_sub(6)
}
