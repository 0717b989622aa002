//! What is free below feeds, over time: nodes by zone, and power by feed.
//!
//! The ledger chooses the zones of a job that starts, without knowing of anything that is promised. So a job fits now if the zones
//! that the ledger would choose leave what is promised alone. What is promised is kept in the last zones that can take it, as the
//! ledger begins with the first: so they seldom meet.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Availability, Claim};
use crate::budget::Budget;
use crate::ledger::Ledger;
use crate::ledger::feeds::{each, nodes_of};
use crate::machine::{Feeds, Placing};
use crate::units::{Instant, Span, Watts};

/// What is free below feeds.
#[derive(Clone, Debug)]
pub(crate) struct Below {
    tree: Arc<Feeds>,
    free: Free,
    /// The same without what is promised, if anything is.
    unpromised: Option<Free>,
}

/// Nodes and power over time.
#[derive(Clone, Debug)]
struct Free {
    /// By zone: its nodes.
    zones: Vec<Availability>,
    /// By feed: its power.
    feeds: Vec<Availability>,
}

/// What jobs hold in zones: until when, which zone, nodes and power; soonest back first. Who is over its time holds its nodes and
/// its power still.
fn held_in_zones(ledger: &Ledger) -> impl Iterator<Item = (Instant, usize, u32, Watts)> + '_ {
    let soonest = ledger.now() + Span::from_millis(1);
    ledger.running().iter().flat_map(move |holding| {
        let until = holding.until.max(soonest);
        let parts = ledger.parts_of(holding.job);
        parts.map(move |(zone, nodes, power)| (until, zone, nodes, power))
    })
}

/// By feed: its power over time.
pub(super) fn free_below(ledger: &Ledger, tree: &Feeds) -> Vec<Availability> {
    let mut ends: Vec<Vec<(Instant, u32, Watts)>> = vec![Vec::new(); tree.all().len()];
    for (until, zone, _, power) in held_in_zones(ledger) {
        tree.above(zone).for_each(|feed| ends[feed].push((until, 0, power)));
    }
    let free = ends.into_iter().enumerate().filter_map(|(feed, ends)| {
        let (limit, base) = ledger.limit_of(feed)?;
        Some(Availability::below(ledger.now(), limit, base).with_ends(0, ends.into_iter()))
    });
    free.collect()
}

impl Below {
    /// What the ledger knows; nothing where feeds have no limits.
    pub(crate) fn of(ledger: &Ledger) -> Option<Self> {
        let tree = ledger.feeds()?.clone();
        let free = ledger.free_by_zone();
        let mut parts: Vec<Vec<(Instant, u32, Watts)>> = vec![Vec::new(); free.len()];
        for (until, zone, nodes, _) in held_in_zones(ledger) {
            parts[zone].push((until, nodes, Watts::ZERO));
        }
        let nothing = Availability::below(ledger.now(), &Budget::unlimited(), Watts::ZERO);
        let zones = parts.into_iter().zip(&free);
        let zones = zones.map(|(parts, free)| nothing.with_ends(*free, parts.into_iter()));
        let feeds = free_below(ledger, &tree);
        let free = Free { zones: zones.collect(), feeds };
        Some(Below { tree, free, unpromised: None })
    }

    /// Whether a claim that begins now fits for its whole time, in the zones that the ledger would choose.
    pub(crate) fn admits(&self, now: Instant, claim: &Claim) -> bool {
        let Some(placing) = self.place(now, claim, false) else { return false };
        let Some(unpromised) = &self.unpromised else { return true };
        let parts = self.parts(&placing, claim);
        parts.iter().all(|(place, part)| unpromised.at(*place).fits(now, part))
    }

    /// Takes out a claim that begins now.
    pub(crate) fn take(&mut self, now: Instant, claim: &Claim) {
        if let Some(placing) = self.place(now, claim, false) {
            let parts = self.parts(&placing, claim);
            for free in [Some(&mut self.free), self.unpromised.as_mut()].into_iter().flatten() {
                parts.iter().for_each(|(place, part)| free.at_mut(*place).take(now, part));
            }
        }
    }

    /// Keeps what a claim needs from then on.
    pub(crate) fn promise(&mut self, then: Instant, claim: &Claim) {
        if let Some(placing) = self.place(then, claim, true) {
            let parts = self.parts(&placing, claim);
            let unpromised = self.unpromised.get_or_insert_with(|| self.free.clone());
            parts.iter().for_each(|(place, part)| unpromised.at_mut(*place).take(then, part));
        }
    }

    /// The first instant, not before `after`, from which a claim fits below feeds and in what is free on the whole machine.
    pub(crate) fn earliest(
        &self,
        machine: &Availability,
        after: Instant,
        claim: &Claim,
    ) -> Option<Instant> {
        let mut from = after;
        loop {
            let at = machine.earliest(from, claim)?;
            if self.place(at, claim, false).is_some() {
                return Some(at);
            }
            let all = self.free.zones.iter().chain(&self.free.feeds).chain([machine]);
            from = all.filter_map(|free| free.next_change(at)).min()?;
        }
    }

    /// The zones of a claim that begins then, if it fits.
    fn place(&self, then: Instant, claim: &Claim, last_first: bool) -> Option<Placing> {
        let until = then + claim.time;
        let each = each(claim.power, claim.nodes);
        let free = self.free.zones.iter().map(|zone| zone.least(then, until).0);
        let fed = self.free.feeds.iter().map(|feed| nodes_of(feed.least(then, until).1, each));
        self.tree.place(claim.nodes, &free.collect::<Vec<u32>>(), fed.collect(), last_first).ok()
    }

    /// What a claim takes of zones and feeds.
    fn parts(&self, placing: &Placing, claim: &Claim) -> Vec<(Place, Claim)> {
        let (time, each) = (claim.time, each(claim.power, claim.nodes));
        let mut below: BTreeMap<usize, u32> = BTreeMap::new();
        for (zone, nodes) in placing {
            self.tree.above(*zone).for_each(|feed| *below.entry(feed).or_insert(0) += nodes);
        }
        let of_zone = |&(zone, nodes): &(usize, u32)| {
            (Place::Zone(zone), Claim { nodes, power: Watts::ZERO, time })
        };
        let of_feed = |(feed, nodes): (usize, u32)| {
            (Place::Feed(feed), Claim { nodes: 0, power: each * nodes, time })
        };
        placing.iter().map(of_zone).chain(below.into_iter().map(of_feed)).collect()
    }
}

/// Where something is free.
#[derive(Clone, Copy, Debug)]
enum Place {
    Zone(usize),
    Feed(usize),
}

impl Free {
    fn at(&self, place: Place) -> &Availability {
        match place {
            Place::Zone(zone) => &self.zones[zone],
            Place::Feed(feed) => &self.feeds[feed],
        }
    }

    fn at_mut(&mut self, place: Place) -> &mut Availability {
        match place {
            Place::Zone(zone) => &mut self.zones[zone],
            Place::Feed(feed) => &mut self.feeds[feed],
        }
    }
}
