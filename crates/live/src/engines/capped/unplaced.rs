//! Jobs whose nodes the engine within chooses.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::Order;
use crate::job::Attempt;

/// Jobs that were started without nodes, until an order names those that they have.
#[derive(Default)]
pub(super) struct Unplaced {
    /// The nodes of each, once they are known.
    jobs: BTreeMap<Attempt, Option<Vec<u32>>>,
    /// Those of which an order has named the nodes, and which have not got their caps yet.
    beginning: BTreeSet<Attempt>,
}

impl Unplaced {
    /// Whether an order is to be carried out without caps: the nodes of its job are not known, or it was given before they were,
    /// so that it names others.
    pub(super) fn takes(&mut self, order: &Order) -> bool {
        match order {
            Order::Start(launch) if launch.is_free => {
                self.jobs.insert(launch.attempt, None);
                true
            }
            Order::Set { attempt, allotment, .. } => match self.jobs.get(attempt) {
                Some(Some(nodes)) if *nodes == allotment.node_numbers() => {
                    self.jobs.remove(attempt);
                    self.beginning.insert(*attempt);
                    false
                }
                found => found.is_some(),
            },
            Order::Start(_) | Order::Signal { .. } => false,
        }
    }

    /// The daemon knows a job from before, and not its nodes.
    pub(super) fn adopt(&mut self, attempt: Attempt) {
        self.jobs.insert(attempt, None);
    }

    /// The nodes of a job are known; returns whether that is news.
    pub(super) fn placed(&mut self, attempt: Attempt, nodes: &[u32]) -> bool {
        match self.jobs.get_mut(&attempt) {
            Some(known @ None) => {
                *known = Some(nodes.to_vec());
                true
            }
            Some(Some(_)) | None => false,
        }
    }

    /// Whether a job is waiting for an order that names its nodes.
    pub(super) fn has(&self, attempt: Attempt) -> bool {
        self.jobs.contains_key(&attempt)
    }

    /// Whether an order has changed no caps.
    pub(super) fn is_about(&self, order: &Order) -> bool {
        matches!(order, Order::Start(_) | Order::Set { .. }) && self.has(order.attempt())
    }

    /// Whether a job gets its first caps; it is asked once.
    pub(super) fn has_just_begun(&mut self, attempt: Attempt) -> bool {
        self.beginning.remove(&attempt)
    }

    /// A job is over.
    pub(super) fn forget(&mut self, attempt: Attempt) {
        self.jobs.remove(&attempt);
        self.beginning.remove(&attempt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Allotment;
    use busbar_core::units::{Span, Watts};

    #[test]
    fn an_order_that_names_the_nodes_ends_it() {
        let attempt = Attempt { job: 1, number: 1 };
        let set = |nodes: &[u32]| {
            let (cap, power) = (Watts::from_watts(90), Watts::from_watts(180));
            let nodes = nodes.iter().map(|node| (*node, cap)).collect();
            let (time, speed) = (Span::from_secs(60), Allotment::FULL_SPEED);
            let allotment = Allotment { nodes, cores: 1, cap, time, power, speed, part: None };
            Order::Set { attempt, allotment, pause: Span::ZERO }
        };
        let mut unplaced = Unplaced::default();
        assert!(!unplaced.takes(&set(&[0, 1])), "it is not known");
        unplaced.adopt(attempt);
        assert!(unplaced.takes(&set(&[0, 1])));
        assert!(unplaced.placed(attempt, &[4, 5]));
        assert!(!unplaced.placed(attempt, &[4, 5]), "once");
        assert!(unplaced.takes(&set(&[0, 1])), "it was given before");
        assert!(unplaced.is_about(&set(&[0, 1])));
        assert!(!unplaced.takes(&set(&[4, 5])));
        assert!(unplaced.has_just_begun(attempt) && !unplaced.has_just_begun(attempt));
        assert!(!unplaced.takes(&set(&[0, 1])), "it moves");
    }
}
