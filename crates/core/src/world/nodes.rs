//! The nodes of a machine, by their numbers: the class of each, and what stretches of them add to what is drawn.
//!
//! Most jobs get what they ask for, on many nodes that are all a little different. What these add together is the
//! difference of two sums over node numbers, one subtraction for each stretch of neighbours. Under caps it has to be known how
//! many nodes of each class there are, for which a byte a node is read.

use std::cell::OnceCell;
use std::ops::Range;

use crate::machine::{CLASSES, Parts};
use crate::units::{NodeId, Watts};

/// Machines with more nodes than this have no tables: they would take more memory than all else.
const LARGEST: u32 = 1 << 20;

/// The nodes between two sums that are kept whole. In between, what is added to the last of them is kept in half the space,
/// so that the tables of a large machine are small enough for a processor's caches.
const BLOCK: usize = 64;

/// The nodes of one machine.
#[derive(Clone, Debug)]
pub(crate) struct NodeTable {
    parts: Parts,
    /// By node; empty if there are too many.
    classes: Vec<u8>,
    /// By application: what the nodes before this one add, as a job asked for them.
    sums: Vec<OnceCell<Option<Sums>>>,
}

impl NodeTable {
    /// So many nodes that differ like this, for so many applications.
    pub(super) fn new(parts: &Parts, nodes: u32, applications: usize) -> Self {
        let nodes = if nodes <= LARGEST { nodes } else { 0 };
        let classes = (0..nodes).map(|node| parts.class(NodeId(node)) as u8).collect();
        NodeTable { parts: *parts, classes, sums: vec![OnceCell::new(); applications] }
    }

    /// How many nodes of each class are among these.
    pub(super) fn counts(&self, nodes: &[Range<u32>]) -> [u32; CLASSES] {
        let mut counts = [0; CLASSES];
        for stretch in nodes {
            match self.classes.get(stretch.start as usize..stretch.end as usize) {
                Some(classes) => classes.iter().for_each(|class| counts[usize::from(*class)] += 1),
                None => {
                    stretch.clone().for_each(|node| counts[self.parts.class(NodeId(node))] += 1)
                }
            }
        }
        counts
    }

    /// What these nodes add together under an application, if a node of each class adds so much. It is the same at every
    /// call with the same application. Nothing if the sums of this many nodes are not kept.
    pub(super) fn added(
        &self,
        application: usize,
        of_class: &[Watts; CLASSES],
        nodes: &[Range<u32>],
    ) -> Option<Watts> {
        let sums =
            self.sums[application].get_or_init(|| Sums::of(&self.classes, of_class)).as_ref()?;
        let mut all = 0;
        for stretch in nodes {
            all += sums.before(stretch.end)? - sums.before(stretch.start)?;
        }
        Some(Watts::from_milliwatts(all))
    }
}

/// What nodes add, from the first one on.
#[derive(Clone, Debug)]
struct Sums {
    /// By block: what all nodes before it add.
    blocks: Vec<u64>,
    /// By node: what the nodes of its block before it add.
    within: Vec<u32>,
}

impl Sums {
    /// Nothing if there are no nodes, or if they draw so much that a block does not fit its space.
    fn of(classes: &[u8], of_class: &[Watts; CLASSES]) -> Option<Self> {
        let most = of_class.iter().max()?.milliwatts();
        if classes.is_empty() || most.checked_mul(BLOCK as u64)? > u64::from(u32::MAX) {
            return None;
        }
        let mut sums = Sums { blocks: vec![0], within: Vec::with_capacity(classes.len() + 1) };
        let mut all = 0;
        for block in classes.chunks(BLOCK) {
            let mut within = 0;
            for class in block {
                sums.within.push(within);
                within += of_class[usize::from(*class)].milliwatts() as u32;
            }
            all += u64::from(within);
            sums.blocks.push(all);
        }
        // After the last node, there is either a new block or the rest of the last one.
        let rest = match classes.len() % BLOCK {
            0 => 0,
            _ => (all - sums.blocks[sums.blocks.len() - 2]) as u32,
        };
        sums.within.push(rest);
        Some(sums)
    }

    fn before(&self, node: u32) -> Option<u64> {
        let node = node as usize;
        Some(self.blocks[node / BLOCK] + u64::from(*self.within.get(node)?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::Share;

    proptest! {
        /// Sums and counts say what a look at each node says.
        #[test]
        fn tables_agree_with_single_nodes(
            nodes in prop::sample::select(vec![1u32, 63, 64, 65, 128, 300]),
            seed: u64,
            stretches in prop::collection::vec((0u32..300, 0u32..300), 0..5),
            watts in 1u32..60_000,
        ) {
            let parts = Parts::Unlike { spread: Share::percent(8), seed };
            let table = NodeTable::new(&parts, nodes, 1);
            let of_class = std::array::from_fn(|class| Watts::from_watts(watts) + Watts::from_milliwatts(class as u64));
            let stretch = |(one, other): (u32, u32)| one.min(other).min(nodes)..one.max(other).min(nodes);
            let stretches: Vec<Range<u32>> = stretches.into_iter().map(stretch).collect();
            let mut counts = [0; CLASSES];
            let mut sum = Watts::ZERO;
            for node in stretches.iter().cloned().flatten() {
                let class = parts.class(NodeId(node));
                counts[class] += 1;
                sum += of_class[class];
            }
            prop_assert_eq!(table.counts(&stretches), counts);
            prop_assert_eq!(table.added(0, &of_class, &stretches), Some(sum));
        }
    }

    /// Where nothing is kept, nothing is said, and counts are still right.
    #[test]
    fn too_many_nodes_have_no_table() {
        let parts = Parts::Unlike { spread: Share::percent(8), seed: 1 };
        let table = NodeTable::new(&parts, LARGEST + 1, 1);
        let stretch = LARGEST - 9..LARGEST + 1;
        assert_eq!(
            table.added(0, &[Watts::from_watts(1); CLASSES], std::slice::from_ref(&stretch)),
            None
        );
        assert_eq!(table.counts(&[stretch]).iter().sum::<u32>(), 10);
        let small = NodeTable::new(&parts, 8, 1);
        let megawatt = [Watts::from_watts(1_000_000); CLASSES];
        assert_eq!(
            small.added(0, &megawatt, std::slice::from_ref(&(0..8))),
            None,
            "a block does not fit its space"
        );
    }
}
