//! Nodes that are to have less than they may have, until their agents confirm it.
//!
//! The daemon counts what a job had as free when the job has left its nodes. It is free only when the agents there
//! have confirmed the lower cap, or when they have been silent for so long that they have fallen to their safe cap by
//! themselves. What was begun is numbered, so that whoever takes power waits for what was begun before, and not for
//! what comes after.

use std::collections::BTreeMap;
use std::time::Instant;

use busbar_agent::fleet::Ticket;

use crate::engine::Lowered;

/// The nodes that are to be lowered.
#[derive(Debug, Default)]
pub(super) struct Lowerings {
    begun: u64,
    open: BTreeMap<u32, Lowering>,
}

/// A node that is to be lowered.
#[derive(Debug)]
struct Lowering {
    number: u64,
    /// The request that its agent has to confirm: the last one.
    asked: Option<Ticket>,
    /// When its agent is to be asked again, which has refused.
    again: Option<Instant>,
    /// When an agent that did not answer has fallen to its safe cap.
    until: Instant,
}

impl Lowerings {
    /// A node is to have less than it may have.
    pub(super) fn begin(&mut self, node: u32, until: Instant) {
        // Whoever waits for a node that was begun before goes on waiting for it.
        let number = self.open.get(&node).map_or(self.begun + 1, |lowering| lowering.number);
        self.begun = self.begun.max(number);
        self.open.insert(node, Lowering { number, asked: None, again: None, until });
    }

    /// The agent of a node was asked for the cap that it is to have.
    pub(super) fn asked(&mut self, node: u32, ticket: Ticket) {
        if let Some(lowering) = self.open.get_mut(&node) {
            lowering.asked = Some(ticket);
        }
    }

    /// The agent of a node has confirmed the cap that it was asked for; returns whether that was waited for.
    pub(super) fn confirmed(&mut self, node: u32, ticket: Ticket) -> bool {
        let is_meant = self.open.get(&node).is_some_and(|it| it.asked == Some(ticket));
        if is_meant {
            self.open.remove(&node);
        }
        is_meant
    }

    /// The agent of a node has not confirmed the cap that it was asked for, and may be asked again then; returns whether
    /// that was waited for.
    pub(super) fn refused(&mut self, node: u32, ticket: Ticket, again: Instant) -> bool {
        let lowering = self.open.get_mut(&node).filter(|it| it.asked == Some(ticket));
        lowering.map(|lowering| lowering.again = Some(again)).is_some()
    }

    /// The nodes whose agents are to be asked again.
    pub(super) fn due(&mut self, now: Instant) -> Vec<u32> {
        let is_due = |lowering: &Lowering| lowering.again.is_some_and(|again| again <= now);
        let due: Vec<u32> =
            self.open.iter().filter(|(_, it)| is_due(it)).map(|(node, _)| *node).collect();
        for node in &due {
            if let Some(lowering) = self.open.get_mut(node) {
                lowering.again = None;
            }
        }
        due
    }

    /// The agent of a node has just been lost, and falls to its safe cap by then.
    pub(super) fn silent_from(&mut self, node: u32, until: Instant) {
        if let Some(lowering) = self.open.get_mut(&node) {
            lowering.until = until;
        }
    }

    /// Nobody waits for a node any more.
    pub(super) fn forget(&mut self, node: u32) {
        self.open.remove(&node);
    }

    /// Takes out the nodes whose agents have been silent for long enough.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<u32> {
        let silent = self.open.iter().filter(|(_, lowering)| lowering.until <= now);
        let silent: Vec<u32> = silent.map(|(node, _)| *node).collect();
        silent.iter().for_each(|node| self.forget(*node));
        silent
    }

    /// How many were begun, how many of the first are over, and whether others are of nodes that cannot be reached or
    /// have refused.
    pub(super) fn lowered(&self, is_reached: impl Fn(u32) -> bool) -> Lowered {
        let first = self.open.values().map(|lowering| lowering.number).min();
        Lowered {
            begun: self.begun,
            over: first.map_or(self.begun, |first| first - 1),
            is_stuck: self.open.iter().any(|(node, it)| it.again.is_some() || !is_reached(*node)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn progress(lowerings: &Lowerings) -> (u64, u64) {
        let lowered = lowerings.lowered(|_| true);
        assert!(!lowered.is_stuck);
        (lowered.begun, lowered.over)
    }

    #[test]
    fn the_last_request_has_to_be_confirmed() {
        let (mut lowerings, until) = (Lowerings::default(), Instant::now());
        lowerings.begin(4, until);
        lowerings.begin(7, until);
        assert_eq!(progress(&lowerings), (2, 0));
        lowerings.asked(4, Ticket(1));
        // It is to have still less, and whoever waits for it waits on.
        lowerings.begin(4, until);
        assert_eq!(progress(&lowerings), (2, 0));
        lowerings.asked(4, Ticket(2));
        lowerings.asked(5, Ticket(3));
        lowerings.confirmed(4, Ticket(1));
        lowerings.confirmed(5, Ticket(3));
        assert_eq!(progress(&lowerings), (2, 0));
        assert!(lowerings.lowered(|node| node == 4).is_stuck);
        lowerings.confirmed(4, Ticket(2));
        assert_eq!(progress(&lowerings), (2, 1));
        // Another one of the same node is a new one.
        lowerings.begin(4, until);
        assert_eq!(progress(&lowerings), (3, 1));
        lowerings.forget(7);
        assert_eq!(progress(&lowerings), (3, 2));
    }

    #[test]
    fn who_refuses_is_asked_again() {
        let (mut lowerings, now) = (Lowerings::default(), Instant::now());
        lowerings.begin(1, now + Duration::from_secs(10));
        lowerings.asked(1, Ticket(1));
        assert!(!lowerings.refused(1, Ticket(9), now), "nobody waits for that");
        assert!(lowerings.refused(1, Ticket(1), now + Duration::from_secs(1)));
        assert!(lowerings.lowered(|_| true).is_stuck);
        assert!(lowerings.due(now).is_empty());
        assert_eq!(lowerings.due(now + Duration::from_secs(1)), [1]);
        assert!(lowerings.due(now + Duration::from_secs(1)).is_empty());
        lowerings.asked(1, Ticket(2));
        assert!(lowerings.confirmed(1, Ticket(2)));
        assert_eq!(progress(&lowerings), (1, 1));
    }

    #[test]
    fn who_is_silent_for_long_has_fallen_by_itself() {
        let (mut lowerings, now) = (Lowerings::default(), Instant::now());
        lowerings.begin(1, now + Duration::from_secs(10));
        lowerings.begin(2, now + Duration::from_secs(20));
        assert!(lowerings.expire(now).is_empty());
        assert_eq!(lowerings.expire(now + Duration::from_secs(10)), [1]);
        assert_eq!(progress(&lowerings), (2, 1));
    }
}
