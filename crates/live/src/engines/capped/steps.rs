//! Orders on their way through several steps.

use std::collections::{BTreeMap, BTreeSet};

use busbar_agent::fleet;

use busbar_core::units::Watts;

use crate::engine::{Order, Ticket};
use crate::job::Attempt;

/// An order some of whose nodes are about to get their caps.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// The order.
    pub(super) order: Order,
    /// The nodes that get their caps after those.
    pub(super) then: Vec<(u32, Watts)>,
}

/// The orders that are not finished.
#[derive(Default)]
pub(super) struct Steps {
    /// Those that wait for agents, with the requests that are not answered.
    asking: BTreeMap<Ticket, (Step, BTreeSet<fleet::Ticket>)>,
    of: BTreeMap<fleet::Ticket, Ticket>,
    /// Those that wait for the engine within.
    within: BTreeMap<Ticket, Order>,
}

impl Steps {
    /// An order waits for these requests.
    pub(super) fn begin(&mut self, ticket: Ticket, step: Step, asked: BTreeSet<fleet::Ticket>) {
        self.of.extend(asked.iter().map(|asked| (*asked, ticket)));
        self.asking.insert(ticket, (step, asked));
    }

    /// An order waits for the engine within.
    pub(super) fn within(&mut self, ticket: Ticket, order: Order) {
        self.within.insert(ticket, order);
    }

    /// The engine within has answered an order.
    pub(super) fn done_within(&mut self, ticket: Ticket) -> Option<Order> {
        self.within.remove(&ticket)
    }

    /// Whether an order about an attempt is not finished.
    pub(super) fn is_under_way(&self, attempt: Attempt) -> bool {
        let asking = self.asking.values().map(|(step, _)| &step.order);
        asking.chain(self.within.values()).any(|order| order.attempt() == attempt)
    }

    /// A request was answered. Returns the order and its step if that is over: by the last answer, or by the
    /// first that is not good.
    pub(super) fn answered<E>(
        &mut self,
        asked: fleet::Ticket,
        result: &Result<(), E>,
    ) -> Option<(Ticket, Step)> {
        let ticket = self.of.remove(&asked)?;
        let (_, open) = self.asking.get_mut(&ticket)?;
        open.remove(&asked);
        if result.is_ok() && !open.is_empty() {
            return None;
        }
        let (step, open) = self.asking.remove(&ticket)?;
        // Later answers do not matter any more.
        self.of.retain(|asked, _| !open.contains(asked));
        Some((ticket, step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Signal;

    fn asked(numbers: &[u64]) -> BTreeSet<fleet::Ticket> {
        numbers.iter().map(|number| fleet::Ticket(*number)).collect()
    }

    #[test]
    fn the_last_good_answer_or_the_first_bad_one_ends_a_step() {
        let mut steps = Steps::default();
        let attempt = Attempt { job: 1, number: 1 };
        let order = Order::Signal { attempt, signal: Signal::Kill };
        let step = Step { order, then: Vec::new() };
        steps.begin(Ticket(7), step.clone(), asked(&[1, 2, 3]));
        steps.begin(Ticket(8), step, asked(&[4, 5]));
        let good: Result<(), ()> = Ok(());
        assert!(steps.is_under_way(attempt));
        assert!(steps.answered(fleet::Ticket(1), &good).is_none());
        assert!(steps.answered(fleet::Ticket(3), &good).is_none());
        assert_eq!(steps.answered(fleet::Ticket(2), &good).unwrap().0, Ticket(7));
        assert_eq!(steps.answered(fleet::Ticket(4), &Err(())).unwrap().0, Ticket(8));
        assert!(steps.answered(fleet::Ticket(5), &good).is_none(), "it has already ended");
        assert!(steps.answered(fleet::Ticket(9), &good).is_none(), "nobody asked that");
        assert!(!steps.is_under_way(attempt));
    }
}
