//! Which nodes a job will have that waits, if nobody else starts: jobs give back what they have when they are expected to end.

use std::ops::Range;

use smallvec::SmallVec;

use super::by_node::ByNode;
use super::{Seating, Taken};
use crate::ledger::Ledger;
use crate::ledger::free_nodes::FreeNodes;
use crate::machine::NodeSize;
use crate::seats::Seat;
use crate::units::{Instant, JobId, NodeId};

/// Which nodes are looked at that have enough left now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The first, as many as the job asks for.
    AsMany,
    /// All of them, because the first may not do.
    All,
}

/// What will be free of the nodes that a job may have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Foreseen {
    /// What is given back by then is counted; nothing yet.
    counted: Option<Instant>,
    /// By node of which something is taken or was given back.
    left: ByNode,
    /// Nodes that have enough left: those that do now, as many as are needed, and those that were given back.
    good: FreeNodes,
    count: u32,
    /// Nodes that the job may have.
    places: SmallVec<[Range<u32>; 4]>,
}

impl Foreseen {
    /// As things are now, of so many nodes that have enough left.
    fn begin(&mut self, seating: &Seating, seat: &Seat, taken: &Taken, wanted: Wanted) {
        self.counted = None;
        self.left.clear();
        self.good.empty(seating.kinds.nodes());
        self.places.clear();
        self.places.extend(seating.places(seat));
        for node in taken.ends.iter().flat_map(|(_, _, nodes)| nodes) {
            let left = seating.free(*node).without(&taken.of(*node)).unwrap_or_default();
            self.left.set(*node, left);
        }
        let most = match wanted {
            Wanted::AsMany => seat.nodes,
            Wanted::All => u32::MAX,
        };
        let (mut count, left, good) = (0, &self.left, &mut self.good);
        for group in seating.seats.groups(seat) {
            let goes_on = seating.left.visit(*group, &seat.each, |node| {
                if left.get(NodeId(node)).is_none_or(|left| left.has(&seat.each)) {
                    good.insert_one(node);
                    count += 1;
                }
                count < most
            });
            if !goes_on {
                break;
            }
        }
        self.count = count;
    }

    /// A job gives back what it has of nodes.
    fn give(&mut self, seating: &Seating, wanted: &Seat, job: JobId, nodes: &[NodeId]) {
        let Some(given) = seating.seat(job).filter(|given| given.kind == wanted.kind) else {
            return;
        };
        for node in nodes {
            let before = *self.left.get(*node).unwrap_or_else(|| seating.free(*node));
            let after = before.with(&given.each);
            self.left.set(*node, after);
            if !after.has(&wanted.each) || before.has(&wanted.each) {
                continue;
            }
            if self.places.iter().any(|place| place.contains(&node.0)) {
                self.good.insert_one(node.0);
                self.count += 1;
            }
        }
    }
}

impl Ledger {
    /// The first instant at which nodes for a job will be there that waits, if nobody else starts but those in `taken`.
    pub(crate) fn seats_ahead(
        &self,
        job: JobId,
        taken: &Taken,
        foreseen: &mut Foreseen,
        wanted: Wanted,
    ) -> Option<Instant> {
        let seating = self.seating.as_deref()?;
        let seat = seating.seat(job)?;
        foreseen.begin(seating, seat, taken, wanted);
        if foreseen.count >= seat.nodes {
            return Some(self.now);
        }
        let mut returns = self.returns(seating, seat, taken, None).peekable();
        while let Some((at, job, nodes)) = returns.next() {
            foreseen.give(seating, seat, job, nodes);
            let is_last = returns.peek().is_none_or(|next| next.0 > at);
            if is_last && foreseen.count >= seat.nodes {
                foreseen.counted = Some(at);
                return Some(at);
            }
        }
        None
    }

    /// After a look [ahead](Ledger::seats_ahead): the first nodes for the job at that instant or a later one that are good, and
    /// what is free of each then. It may be asked again about later instants.
    pub(crate) fn seats_at(
        &self,
        job: JobId,
        taken: &Taken,
        at: Instant,
        foreseen: &mut Foreseen,
        mut is_good: impl FnMut(NodeId, &NodeSize) -> bool,
    ) {
        let Some(seating) = self.seating.as_deref() else { return };
        let Some(seat) = seating.seat(job) else { return };
        let returns = self.returns(seating, seat, taken, foreseen.counted);
        for (_, job, nodes) in returns.take_while(|next| next.0 <= at) {
            foreseen.give(seating, seat, job, nodes);
        }
        foreseen.counted = foreseen.counted.max(Some(at));
        let Foreseen { good, left, .. } = &*foreseen;
        let mut missing = seat.nodes;
        for place in seating.places(seat) {
            let is_missing = good.visit_in(place, |node| {
                let node = NodeId(node);
                let left = left.get(node).unwrap_or_else(|| seating.free(node));
                missing -= u32::from(is_good(node, left));
                missing > 0
            });
            if !is_missing {
                return;
            }
        }
    }

    /// Who gives back nodes after some time, of the kind of a seat, soonest first. Whoever should have ended does so now.
    fn returns<'a>(
        &'a self,
        seating: &'a Seating,
        seat: &Seat,
        taken: &'a Taken,
        after: Option<Instant>,
    ) -> impl Iterator<Item = (Instant, JobId, &'a [NodeId])> {
        let now = self.now;
        let is_past = move |at: Instant| after.is_some_and(|after| at.max(now) <= after);
        let mut running = seating
            .running_on(seat.kind)
            .skip_while(move |holding| is_past(holding.until))
            .peekable();
        let mut starting = taken.ends.iter().skip_while(move |end| is_past(end.0)).peekable();
        std::iter::from_fn(move || {
            let is_sooner = match (running.peek(), starting.peek()) {
                (Some(running), Some(starting)) => running.until <= starting.0,
                (running, _) => running.is_some(),
            };
            if is_sooner {
                let holding = running.next()?;
                return Some((holding.until.max(now), holding.job, seating.nodes_of(holding.job)));
            }
            starting.next().map(|(until, job, nodes)| ((*until).max(now), *job, &nodes[..]))
        })
    }
}
