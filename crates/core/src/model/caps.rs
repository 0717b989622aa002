//! Named nodes, and the most each of them may draw.

use std::sync::Arc;

use crate::units::{NodeId, Watts};

/// The highest power of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeCap {
    /// The node.
    pub node: NodeId,
    /// The most it may draw.
    pub cap: Watts,
}

/// The nodes a job is to have, each with a cap of its own; in the order of the nodes, each once.
/// Copies are cheap.
#[derive(Clone, Debug, Eq)]
pub struct Caps(Arc<[NodeCap]>);

/// Most caps that are compared are copies of each other, and nothing has to be read for that.
impl PartialEq for Caps {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Caps {
    /// These caps; `None` if there are none, or if a node has two.
    pub fn new(mut caps: Vec<NodeCap>) -> Option<Self> {
        caps.sort_unstable();
        let is_good = !caps.is_empty() && caps.windows(2).all(|pair| pair[0].node < pair[1].node);
        is_good.then(|| Caps(caps.into()))
    }

    /// Nodes in rising order, each once, with what it may draw; `None` if there are none. Who has them in order need not
    /// have them sorted.
    pub(crate) fn in_order(caps: impl ExactSizeIterator<Item = NodeCap>) -> Option<Self> {
        let caps: Arc<[NodeCap]> = caps.collect();
        debug_assert!(caps.windows(2).all(|pair| pair[0].node < pair[1].node));
        (!caps.is_empty()).then_some(Caps(caps))
    }

    /// The same nodes, all under this cap.
    pub(crate) fn with_all_at(&self, cap: Watts) -> Self {
        Caps(self.0.iter().map(|one| NodeCap { cap, ..*one }).collect())
    }

    /// One node under one cap.
    pub fn one(node: NodeId, cap: Watts) -> Self {
        Caps(Arc::new([NodeCap { node, cap }]))
    }

    /// How many nodes there are.
    #[inline]
    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// Each node with its cap.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = NodeCap> + '_ {
        self.0.iter().copied()
    }

    /// The nodes.
    #[inline]
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = NodeId> + '_ {
        self.iter().map(|capped| capped.node)
    }

    /// The largest of the caps.
    pub(crate) fn largest(&self) -> Watts {
        self.iter().map(|capped| capped.cap).fold(Watts::ZERO, Watts::max)
    }

    /// All caps together.
    pub fn total(&self) -> Watts {
        self.iter().map(|capped| capped.cap).sum()
    }

    /// The single steps that lead from other caps of the same nodes to these: whoever gets less comes
    /// first, so that on the way no more is drawn in all than before or after.
    pub fn steps_from<'a>(&'a self, before: &'a Caps) -> impl Iterator<Item = NodeCap> + 'a {
        let pairs = || before.iter().zip(self.iter());
        let lowered = pairs().filter(|(before, after)| after.cap < before.cap);
        let raised = pairs().filter(|(before, after)| after.cap > before.cap);
        lowered.chain(raised).map(|(_, after)| after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caps(caps: &[(u32, u32)]) -> Option<Caps> {
        let capped =
            |&(node, watts): &_| NodeCap { node: NodeId(node), cap: Watts::from_watts(watts) };
        Caps::new(caps.iter().map(capped).collect())
    }

    #[test]
    fn each_node_is_named_once() {
        let named = caps(&[(7, 60), (2, 51)]).unwrap();
        assert_eq!(named.nodes().collect::<Vec<_>>(), [NodeId(2), NodeId(7)]);
        assert_eq!((named.count(), named.largest()), (2, Watts::from_watts(60)));
        assert_eq!(named.total(), Watts::from_watts(111));
        assert_eq!(caps(&[(2, 51), (2, 60)]), None);
        assert_eq!(caps(&[]), None);
    }

    #[test]
    fn who_gets_less_comes_first() {
        let before = caps(&[(0, 60), (1, 70), (2, 80), (3, 51)]).unwrap();
        let after = caps(&[(0, 65), (1, 60), (2, 80), (3, 56)]).unwrap();
        let steps = after.steps_from(&before).map(|step| (step.node.0, step.cap));
        let expected = [(1, 60), (0, 65), (3, 56)].map(|(node, w)| (node, Watts::from_watts(w)));
        assert_eq!(steps.collect::<Vec<_>>(), expected);
    }
}
