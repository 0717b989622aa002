//! What is free below feeds over time, where jobs ask for certain nodes: those of some kind, or parts of them.
//!
//! It is known then on which nodes a job would be, so what is promised is kept below the feeds of the very nodes that were
//! promised.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::feeds::free_below;
use super::{Availability, Claim};
use crate::ledger::Ledger;
use crate::ledger::feeds::{each, nodes_of};
use crate::machine::{Feeds, Takes};
use crate::units::{Instant, NodeId, Watts};

/// Power below feeds.
#[derive(Clone, Debug)]
pub(crate) struct FeedRoom {
    tree: Arc<Feeds>,
    /// By feed: its power.
    free: Vec<Availability>,
    /// The same without what is promised, if anything is.
    unpromised: Option<Vec<Availability>>,
}

impl FeedRoom {
    /// What the ledger knows; nothing where feeds have no limits.
    pub(crate) fn of(ledger: &Ledger) -> Option<Self> {
        let tree = ledger.feeds()?.clone();
        let free = free_below(ledger, &tree);
        Some(FeedRoom { tree, free, unpromised: None })
    }

    /// The nodes that feeds can take for a job that begins then and has so many of them, beside what is promised.
    pub(crate) fn takes(&self, then: Instant, claim: &Claim, nodes: u32) -> Takes<'_> {
        let until = then + claim.time;
        let each = each(claim.power, nodes);
        let free = self.unpromised.as_ref().unwrap_or(&self.free);
        let fed = free.iter().map(|feed| nodes_of(feed.least(then, until).1, each));
        self.tree.takes(fed.collect())
    }

    /// Takes out what a job takes on these nodes from then on.
    pub(crate) fn take(&mut self, now: Instant, claim: &Claim, nodes: &[NodeId]) {
        let below = self.below(claim, nodes);
        let (free, unpromised) = (&mut self.free, &mut self.unpromised);
        for free in [Some(free), unpromised.as_mut()].into_iter().flatten() {
            below.iter().for_each(|(feed, part)| free[*feed].take(now, part));
        }
    }

    /// Gives back what a job takes on these nodes that was to begin then.
    pub(crate) fn give(&mut self, then: Instant, claim: &Claim, nodes: &[NodeId]) {
        for (feed, part) in self.below(claim, nodes) {
            self.free[feed].give(then, then + part.time, part.nodes, part.power);
        }
    }

    /// Forgets what is past.
    pub(crate) fn forget_before(&mut self, now: Instant) {
        self.free.iter_mut().for_each(|feed| feed.forget_before(now));
    }

    /// Keeps what a job needs on these nodes from then on, and nothing else.
    pub(crate) fn promise(&mut self, then: Instant, claim: &Claim, nodes: &[NodeId]) {
        let mut unpromised = self.free.clone();
        let below = self.below(claim, nodes);
        below.iter().for_each(|(feed, part)| unpromised[*feed].take(then, part));
        self.unpromised = Some(unpromised);
    }

    /// The first instant after this one at which there may be more below some feed.
    pub(crate) fn next_change(&self, after: Instant) -> Option<Instant> {
        self.free.iter().filter_map(|feed| feed.next_change(after)).min()
    }

    /// By feed: what a job takes of it on these nodes.
    fn below(&self, claim: &Claim, nodes: &[NodeId]) -> BTreeMap<usize, Claim> {
        let each = each(claim.power, nodes.len() as u32);
        let nothing = Claim { nodes: 0, power: Watts::ZERO, time: claim.time };
        let mut below: BTreeMap<usize, Claim> = BTreeMap::new();
        for zone in nodes.iter().filter_map(|node| self.tree.zone_of(*node)) {
            for feed in self.tree.above(zone) {
                below.entry(feed).or_insert(nothing).power += each;
            }
        }
        below
    }
}
