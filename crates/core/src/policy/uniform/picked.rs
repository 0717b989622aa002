//! Processors in a random order, and which of them are free. What is free follows the ledger: only processors that changed
//! hands since the last look are touched.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use crate::ledger::free_nodes::FreeNodes;
use crate::model::{Caps, NodeCap};
use crate::policy::View;
use crate::units::{NodeId, Watts};

/// All processors in the order in which they are picked.
#[derive(Debug, Default)]
pub(super) struct Picked {
    order: Vec<NodeId>,
    /// By node: its place in the order.
    place_of: Vec<u32>,
    /// Places in the order whose node is free.
    free: FreeNodes,
    /// The same by node, as the ledger has it.
    seen: FreeNodes,
    /// The nodes of the ledger that `seen` has room for.
    nodes: u32,
    /// Empty between two calls: nodes that are put in order.
    sorting: FreeNodes,
}

impl Picked {
    pub(super) fn at_random(count: u32, seed: u64) -> Self {
        let mut numbers = Pcg64Dxsm::seed_from_u64(seed ^ 0x756e_6966_6f72_6d00);
        let mut order: Vec<NodeId> = (0..count).map(NodeId).collect();
        for place in (1..order.len()).rev() {
            order.swap(place, numbers.random_range(0..=place));
        }
        let mut place_of = vec![0; order.len()];
        for (place, node) in (0..).zip(&order) {
            place_of[node.0 as usize] = place;
        }
        let (free, sorting) = (FreeNodes::none(count), FreeNodes::none(count));
        Picked { order, place_of, free, seen: FreeNodes::default(), nodes: 0, sorting }
    }

    pub(super) fn count(&self) -> u32 {
        self.order.len() as u32
    }

    /// Takes in what the ledger says.
    pub(super) fn follow(&mut self, view: &View<'_>) {
        let nodes = view.ledger.total_nodes();
        if self.nodes != nodes {
            (self.seen, self.nodes) = (FreeNodes::none(nodes), nodes);
            self.free = FreeNodes::none(self.count());
        }
        let Some(ledger) = view.ledger.free_set() else { return };
        let (free, place_of) = (&mut self.free, &self.place_of);
        self.seen.follow(ledger, |node, is_free| {
            // The machine may have nodes that are no processors.
            let Some(place) = place_of.get(node as usize).copied() else { return };
            if is_free {
                free.insert(place..place + 1);
            } else {
                free.remove(place..place + 1);
            }
        });
    }

    /// Leaves out free nodes that feeds cannot feed with so much each, until the ledger is looked at again.
    pub(super) fn leave_out_unfed(&mut self, view: &View<'_>, each: Watts) {
        let free = self.free.iter().map(|place| self.order[place as usize]);
        for node in view.ledger.unfed(free, each, false) {
            self.leave_out(node);
        }
    }

    /// How many of the first so many feeds can feed with so much each, if nobody else runs.
    pub(super) fn fed_alone(&self, view: &View<'_>, count: u32, each: Watts) -> u32 {
        let first = self.order.iter().take(count as usize).copied();
        count - view.ledger.unfed(first, each, true).len() as u32
    }

    fn leave_out(&mut self, node: NodeId) {
        let place = self.place_of[node.0 as usize];
        self.free.remove(place..place + 1);
        self.seen.remove(node.0..node.0 + 1);
    }

    /// How many of the first so many are free.
    pub(super) fn free_of_first(&self, count: u32) -> u32 {
        self.free.count_below(count)
    }

    /// The first so many that are free, all under this cap.
    pub(super) fn first_free(&mut self, count: u32, cap: Watts) -> Option<Caps> {
        for place in self.free.iter().take(count as usize) {
            let node = self.order[place as usize].0;
            self.sorting.insert(node..node + 1);
        }
        self.sorted(cap)
    }

    /// The first so many, whoever has them, all under this cap.
    fn first(&mut self, count: u32, cap: Watts) -> Option<Caps> {
        for node in &self.order[..count as usize] {
            self.sorting.insert(node.0..node.0 + 1);
        }
        self.sorted(cap)
    }

    fn sorted(&mut self, cap: Watts) -> Option<Caps> {
        let mut caps = Vec::new();
        let capped = |node| NodeCap { node: NodeId(node), cap };
        self.sorting.take_lowest(u32::MAX, |stretch| caps.extend(stretch.map(capped)));
        Caps::in_order(caps.into_iter())
    }

    /// They are not free any more, unless the ledger says otherwise.
    pub(super) fn take(&mut self, caps: &Caps) {
        caps.nodes().for_each(|node| self.leave_out(node));
    }
}

/// More nodes than this are not kept.
const MOST_KEPT: u32 = 1 << 16;

/// The caps of jobs that would be alone on the machine, by how many nodes they ask for. Every job is asked that when it comes,
/// and many ask for the same.
#[derive(Debug, Default)]
pub(super) struct Alone {
    cap: Watts,
    kept: u32,
    by_count: BTreeMap<u32, Option<Caps>>,
}

impl Alone {
    pub(super) fn on(&mut self, processors: &mut Picked, count: u32, cap: Watts) -> Option<&Caps> {
        if self.cap != cap || self.kept > MOST_KEPT {
            *self = Alone { cap, ..Alone::default() };
        }
        let kept = &mut self.kept;
        let caps = self.by_count.entry(count).or_insert_with(|| {
            *kept += count;
            processors.first(count, cap)
        });
        caps.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The same as a look at every processor in the order in which they are picked.
        #[test]
        fn sets_agree_with_a_look_at_each(
            count in 1u32..150, seed: u64, busy in prop::collection::vec(0u32..150, 0..100), wanted in 1u32..150,
        ) {
            let mut picked = Picked::at_random(count, seed);
            let cap = Watts::from_watts(60);
            let capped = |node: &NodeId| NodeCap { node: *node, cap };
            picked.free = FreeNodes::all(count);
            picked.seen = FreeNodes::all(count);
            for node in busy.iter().filter(|node| **node < count) {
                picked.take(&Caps::one(NodeId(*node), cap));
            }
            let free: Vec<NodeId> =
                picked.order.iter().copied().filter(|node| !busy.contains(&node.0)).collect();
            let in_use = wanted.min(count) as usize;
            let of_first = picked.order[..in_use].iter().filter(|node| !busy.contains(&node.0));
            prop_assert_eq!(picked.free_of_first(in_use as u32) as usize, of_first.count());
            if wanted as usize <= free.len() {
                let expected = Caps::new(free[..wanted as usize].iter().map(capped).collect());
                prop_assert_eq!(picked.first_free(wanted, cap), expected);
            }
            if wanted <= count {
                let first = Caps::new(picked.order[..wanted as usize].iter().map(capped).collect());
                let mut alone = Alone::default();
                for _ in 0..2 {
                    prop_assert_eq!(alone.on(&mut picked, wanted, cap).cloned(), first.clone());
                }
            }
        }
    }
}
