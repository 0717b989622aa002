//! Orders on their way through several steps.

use std::collections::{BTreeMap, BTreeSet};

use busbar_agent::fleet;

use crate::engine::{Attempt, Order, Ticket};

/// A step that waits for agents.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// The nodes of the job get their caps; then the engine within gets the order.
    Capping(Order),
    /// The nodes that the job has left go down.
    Leaving(Attempt),
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

    fn asked(numbers: &[u64]) -> BTreeSet<fleet::Ticket> {
        numbers.iter().map(|number| fleet::Ticket(*number)).collect()
    }

    #[test]
    fn the_last_good_answer_or_the_first_bad_one_ends_a_step() {
        let mut steps = Steps::default();
        let step = Step::Leaving(Attempt { job: 1, number: 1 });
        steps.begin(Ticket(7), step.clone(), asked(&[1, 2, 3]));
        steps.begin(Ticket(8), step, asked(&[4, 5]));
        let good: Result<(), ()> = Ok(());
        assert!(steps.answered(fleet::Ticket(1), &good).is_none());
        assert!(steps.answered(fleet::Ticket(3), &good).is_none());
        assert_eq!(steps.answered(fleet::Ticket(2), &good).unwrap().0, Ticket(7));
        assert_eq!(steps.answered(fleet::Ticket(4), &Err(())).unwrap().0, Ticket(8));
        assert!(steps.answered(fleet::Ticket(5), &good).is_none(), "it is over already");
        assert!(steps.answered(fleet::Ticket(9), &good).is_none(), "nobody asked that");
    }
}
