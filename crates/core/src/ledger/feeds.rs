//! The limits of feeds: what jobs hold below each, and where there is room for more.
//!
//! A job that starts gets nodes of zones whose feeds can take it, now and under every limit that is known to come, until it is
//! expected to end. What its nodes hold together is split evenly among them, rounded up; nodes that were given by name hold
//! their caps, as far as that is no more than the whole job holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::placement::Placement;
use super::seats::{SeatNodes, Seating};
use super::{Holding, Ledger, Violation};
use crate::budget::Budget;
use crate::freedom::Freedom;
use crate::machine::{Feeds, Machine, Placing, Zone};
use crate::model::{Caps, OperatingPoint};
use crate::seats::Seat;
use crate::units::{Instant, JobId, NodeId, Watts};

/// What is held below feeds.
#[derive(Clone)]
pub(super) struct Feeding {
    tree: Arc<Feeds>,
    /// By feed: its limits over time.
    limits: Arc<[Budget]>,
    /// By feed: what its nodes draw without any job.
    base: Vec<Watts>,
    /// By feed: what jobs hold below it.
    held: Vec<Watts>,
    /// By feed: what suspended jobs below it will claim when they go on. Nobody else gets that.
    kept: Vec<Watts>,
    /// By job: what it holds.
    parts: BTreeMap<JobId, Vec<Part>>,
    /// By zone, where nodes are of several kinds or shared: what processors could add that nobody has.
    unused: Vec<Watts>,
}

/// What a feed carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BelowFeed {
    /// The most that it may carry.
    pub limit: Watts,
    /// What its nodes draw without any job.
    pub base: Watts,
    /// What jobs hold below it.
    pub held: Watts,
}

impl BelowFeed {
    /// What counts as drawn below it beyond its limit.
    pub fn excess(&self) -> Watts {
        (self.base + self.held).saturating_sub(self.limit)
    }
}

/// What a job holds in a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    zone: usize,
    nodes: u32,
    power: Watts,
    /// What its processors could add at most, where nodes are of several kinds or shared.
    adds: Watts,
}

/// Who knows which nodes are whose.
#[derive(Clone, Copy)]
enum Whose<'a> {
    /// Jobs have whole nodes of one kind.
    Counted(&'a Placement),
    /// Nodes are of several kinds, or shared.
    Seated(&'a Seating),
}

impl<'a> Whose<'a> {
    fn of(seating: &'a Option<Arc<Seating>>, placement: &'a Option<Placement>) -> Option<Self> {
        let seated = seating.as_deref().map(Whose::Seated);
        seated.or(placement.as_ref().map(Whose::Counted))
    }
}

impl Feeding {
    /// That of a machine whose feeds have limits in this budget.
    pub(super) fn of(machine: &Machine, budget: &Budget) -> Option<Box<Self>> {
        let (tree, limits) = (machine.feeds.clone()?, budget.feeds()?.clone());
        let base = machine.idle_of_feeds();
        let held = vec![Watts::ZERO; base.len()];
        Some(Box::new(Feeding {
            tree,
            limits,
            base,
            kept: held.clone(),
            held,
            parts: BTreeMap::new(),
            unused: Vec::new(),
        }))
    }

    /// The same on a machine whose nodes are of several kinds, or shared; all of them are empty.
    pub(super) fn seated(mut self: Box<Self>, seating: &Seating) -> Box<Self> {
        let nodes = |zone: &Zone| zone.nodes.clone().into_iter().flatten().map(NodeId);
        let unused = |zone: &Zone| nodes(zone).map(|node| seating.unused(node)).sum();
        self.unused = self.tree.zones().iter().map(unused).collect();
        self
    }

    fn feeds(&self) -> impl Iterator<Item = usize> + use<> {
        0..self.base.len()
    }

    /// By feed: what these parts hold below it.
    fn sums(&self, parts: &[Part]) -> BTreeMap<usize, Watts> {
        let mut sums = BTreeMap::new();
        for part in parts {
            for feed in self.tree.above(part.zone) {
                *sums.entry(feed).or_insert(Watts::ZERO) += part.power;
            }
        }
        sums
    }

    fn give(&mut self, job: JobId) {
        let parts = self.parts.remove(&job).unwrap_or_default();
        for (feed, power) in self.sums(&parts) {
            self.held[feed] -= power;
        }
        for part in parts.iter().filter(|part| part.adds > Watts::ZERO) {
            self.unused[part.zone] += part.adds;
        }
    }

    fn take(&mut self, job: JobId, parts: Vec<Part>) {
        self.give(job);
        for (feed, power) in self.sums(&parts) {
            self.held[feed] += power;
        }
        for part in parts.iter().filter(|part| part.adds > Watts::ZERO) {
            self.unused[part.zone] -= part.adds;
        }
        self.parts.insert(job, parts);
    }

    /// What a job holds below a feed.
    fn held_by(&self, job: JobId, feed: usize) -> Watts {
        let parts = self.parts.get(&job).into_iter().flatten();
        parts
            .filter(|part| self.tree.above(part.zone).any(|above| above == feed))
            .map(|part| part.power)
            .sum()
    }

    /// What a feed carries without jobs that run: what its nodes draw, and what is kept for suspended jobs.
    fn without_jobs(&self, feed: usize) -> Watts {
        self.base[feed] + self.kept[feed]
    }

    /// What the nodes of a job hold, by the zones they are in.
    fn parts_of(&self, job: JobId, power: Watts, whose: Whose<'_>) -> Vec<Part> {
        match whose {
            Whose::Counted(placement) => self.parts_in(job, power, placement),
            Whose::Seated(seating) => {
                let adds = seating.seat(job).map_or(Watts::ZERO, |seat| seating.could_add(seat));
                self.parts_on(seating.nodes_of(job), power, adds)
            }
        }
    }

    /// What these nodes hold, by the zones they are in, and what a job could add on each of them.
    fn parts_on(&self, nodes: &[NodeId], power: Watts, adds: Watts) -> Vec<Part> {
        let each = each(power, nodes.len() as u32);
        let mut counts: BTreeMap<usize, u32> = BTreeMap::new();
        for zone in nodes.iter().filter_map(|node| self.tree.zone_of(*node)) {
            *counts.entry(zone).or_insert(0) += 1;
        }
        let part = |(zone, nodes)| Part { zone, nodes, power: each * nodes, adds: adds * nodes };
        counts.into_iter().map(part).collect()
    }

    fn parts_in(&self, job: JobId, power: Watts, placement: &Placement) -> Vec<Part> {
        let stretches = placement.stretches_of(job);
        let all: u32 = stretches.iter().map(|one| one.end - one.start).sum();
        let caps = placement.caps(job);
        let mut parts = Vec::new();
        for (place, zone) in self.tree.zones().iter().enumerate() {
            let count = stretches.iter().map(|stretch| zone.count_in(stretch)).sum();
            if count == 0 {
                continue;
            }
            let power = match caps {
                Some(caps) => capped(caps, zone).min(power),
                None => each(power, all) * count,
            };
            parts.push(Part { zone: place, nodes: count, power, adds: Watts::ZERO });
        }
        parts
    }

    /// By feed: what is free below it for so many watts of a job, as a number of nodes.
    fn fed(&self, room: impl Fn(usize) -> Watts, each: Watts) -> Vec<u32> {
        let fed = self.feeds().map(|feed| nodes_of(room(feed), each));
        fed.collect()
    }

    /// By zone: all its nodes that a job may have.
    fn all_of(&self, seating: &Seating, seat: &Seat) -> Vec<u32> {
        let count = |zone: &Zone| seating.places(seat).map(|place| zone.count_in(&place)).sum();
        self.tree.zones().iter().map(count).collect()
    }

    /// By zone: all its nodes.
    fn whole(&self) -> Vec<u32> {
        self.tree.zones().iter().map(|zone| zone.count()).collect()
    }
}

/// What each of so many nodes holds of a power.
pub(crate) fn each(power: Watts, nodes: u32) -> Watts {
    Watts::from_milliwatts(power.milliwatts().div_ceil(u64::from(nodes.max(1))))
}

/// How many nodes a power feeds.
pub(crate) fn nodes_of(power: Watts, each: Watts) -> u32 {
    let nodes = power.milliwatts().checked_div(each.milliwatts());
    nodes.map_or(u32::MAX, |nodes| u32::try_from(nodes).unwrap_or(u32::MAX))
}

/// The caps of the nodes in a zone.
fn capped(caps: &Caps, zone: &Zone) -> Watts {
    let caps = caps.iter().filter(|capped| zone.has(capped.node));
    caps.fold(Watts::ZERO, |sum, capped| sum.saturating_add(capped.cap))
}

impl Ledger {
    /// Whether feeds have limits.
    #[inline]
    pub fn has_feeds(&self) -> bool {
        self.feeds.is_some()
    }

    /// Whether the limits in force stay for ever, and there are no others than that of the machine.
    #[inline]
    pub fn is_steady(&self) -> bool {
        self.feeds.is_none() && self.limits_to_come().is_empty()
    }

    /// The feeds whose limits hold.
    pub fn feeds(&self) -> Option<&Arc<Feeds>> {
        self.feeds.as_ref().map(|feeds| &feeds.tree)
    }

    /// The limits of a feed over time, and what it carries without jobs that run.
    pub(crate) fn limit_of(&self, feed: usize) -> Option<(&Budget, Watts)> {
        let feeds = self.feeds.as_ref()?;
        let limit = feeds.limits.get(feed)?;
        Some((limit, feeds.without_jobs(feed)))
    }

    /// What a feed may carry now, what its nodes draw without any job, and what jobs hold below it.
    pub fn below(&self, feed: usize) -> Option<BelowFeed> {
        let feeds = self.feeds.as_ref()?;
        let limit = feeds.limits.get(feed)?.at(self.now);
        let (base, held) = (feeds.base[feed], feeds.held[feed]);
        Some(BelowFeed { limit, base, held })
    }

    /// What a running job holds below a feed.
    pub fn held_below(&self, job: JobId, feed: usize) -> Watts {
        self.feeds.as_ref().map_or(Watts::ZERO, |feeds| feeds.held_by(job, feed))
    }

    /// How many nodes of a running job are below a feed.
    pub fn nodes_below(&self, job: JobId, feed: usize) -> u32 {
        let Some(feeds) = &self.feeds else { return 0 };
        let parts = feeds.parts.get(&job).into_iter().flatten();
        let is_below = |part: &&Part| feeds.tree.above(part.zone).any(|above| above == feed);
        parts.filter(is_below).map(|part| part.nodes).sum()
    }

    /// When the next limit comes into force that is known, of the machine or of a feed.
    pub fn next_limit(&self) -> Option<Instant> {
        let feeds = self.feeds.iter().flat_map(|feeds| feeds.limits.iter());
        let feeds = feeds.filter_map(|limit| limit.changes_after(self.now).first());
        feeds.chain(self.limits_to_come().first()).map(|change| change.0).min()
    }

    /// Whether the feeds of free nodes can take a job now that runs at this point, on nodes that have what it asks for.
    pub fn is_fed(&self, job: JobId, point: &OperatingPoint) -> bool {
        let until = self.until(point.time);
        let holding = Holding { until, job, nodes: point.nodes, power: point.power };
        match &self.seating {
            Some(_) => self.nodes_for(&holding, None).is_ok(),
            None => self.feeds.is_none() || self.place(point.nodes, point.power, until).is_ok(),
        }
    }

    /// What a running job holds in zones: nodes and power.
    pub(crate) fn parts_of(&self, job: JobId) -> impl Iterator<Item = (usize, u32, Watts)> + '_ {
        let feeds = self.feeds.iter();
        let parts = feeds.flat_map(move |feeds| feeds.parts.get(&job).into_iter().flatten());
        parts.map(|part| (part.zone, part.nodes, part.power))
    }

    /// By zone: what its free nodes could add at most, if each of them adds so much where nodes are of one kind.
    pub(crate) fn unused_by_zone(&self, added: Watts) -> Vec<Watts> {
        let Some(feeds) = self.feeds.as_ref().filter(|_| self.seating.is_some()) else {
            return self.free_by_zone().into_iter().map(|idle| added * idle).collect();
        };
        feeds.unused.clone()
    }

    /// By zone: the nodes that are free.
    pub(crate) fn free_by_zone(&self) -> Vec<u32> {
        let (Some(feeds), Some(placement)) = (&self.feeds, &self.placement) else {
            return Vec::new();
        };
        let free = placement.free();
        let count = |zone: &Zone| zone.nodes.iter().map(|nodes| free.count_in(nodes.clone())).sum();
        feeds.tree.zones().iter().map(count).collect()
    }

    /// The power that jobs may still hold below a feed, from now until then.
    pub(crate) fn room_below(&self, feed: usize, until: Instant) -> Watts {
        let Some(feeds) = &self.feeds else { return Watts::UNLIMITED };
        let (limit, base) = (&feeds.limits[feed], feeds.without_jobs(feed));
        let mut held = feeds.held[feed];
        let room = |limit: Watts, held: Watts| limit.saturating_sub(base + held);
        let change = limit.changes_after(self.now).first();
        if change.is_none_or(|change| change.0 >= until) {
            return room(limit.at(self.now), held);
        }
        let mut least = room(limit.at(self.now), held);
        // What is held only falls, as jobs end.
        let mut from = self.now;
        let ends =
            self.running.iter().map(|holding| (holding.until, feeds.held_by(holding.job, feed)));
        for (back, freed) in
            ends.filter(|(_, freed)| *freed > Watts::ZERO).chain([(until, Watts::ZERO)])
        {
            let back = back.min(until);
            if back > from {
                least = least.min(room(limit.lowest(from, back), held));
                from = back;
            }
            held -= freed;
        }
        least
    }

    /// Whether jobs hold no more than the limits in force, of the machine and of its feeds.
    pub(crate) fn is_within_limits(&self) -> bool {
        let feeds =
            self.feeds.iter().flat_map(|feeds| feeds.feeds().map(move |feed| (&**feeds, feed)));
        let is_within = |(feeds, feed): (&Feeding, usize)| {
            feeds.base[feed] + feeds.held[feed] <= feeds.limits[feed].at(self.now)
        };
        self.power() <= self.limit && feeds.into_iter().all(is_within)
    }

    /// Whether they never will, as far as is known, if nobody else starts.
    pub(crate) fn stays_within_limits(&self) -> bool {
        let stays = |limit: &Budget, mut drawn: Watts, held_by: &dyn Fn(&Holding) -> Watts| {
            let mut from = self.now;
            for holding in self.running.iter() {
                if holding.until > from {
                    if drawn > limit.lowest(from, holding.until) {
                        return false;
                    }
                    from = holding.until;
                }
                drawn -= held_by(holding);
            }
            true
        };
        let of_feeds = |feeds: &Feeding| {
            feeds.feeds().all(|feed| {
                let drawn = feeds.base[feed] + feeds.held[feed];
                stays(&feeds.limits[feed], drawn, &|holding| feeds.held_by(holding.job, feed))
            })
        };
        self.is_within_limits()
            && stays(&self.budget, self.power(), &|holding| holding.power)
            && self.feeds.as_deref().is_none_or(of_feeds)
    }

    /// Whether a point can be had for its whole time, from now or from some later time on, if nobody else runs.
    #[inline]
    pub fn fits_alone(&self, job: JobId, point: &OperatingPoint) -> bool {
        point.power <= self.most_for_jobs(point.time)
            && (self.feeds.is_none() || self.feeds_alone(job, point).is_ok())
    }

    /// The same of the feeds alone; or the number of one that is too small, if it is not just nodes that are missing.
    #[inline(never)]
    pub(crate) fn feeds_alone(
        &self,
        job: JobId,
        point: &OperatingPoint,
    ) -> Result<(), Option<usize>> {
        let Some(feeds) = &self.feeds else { return Ok(()) };
        let seat = self.seating.as_ref().and_then(|seating| Some((seating, seating.seat(job)?)));
        let (whole, nodes) = match seat {
            Some((seating, seat)) => (feeds.all_of(seating, seat), seat.nodes),
            None => (feeds.whole(), point.nodes),
        };
        let each = each(point.power, nodes);
        let (limits, base, time) = (&feeds.limits, &feeds.base, point.time);
        let place = |limit: &dyn Fn(&Budget) -> Watts| {
            let fed = feeds.fed(|feed| limit(&limits[feed]).saturating_sub(base[feed]), each);
            feeds.tree.place(nodes, &whole, fed, false).map(|_| ())
        };
        if place(&|limit| limit.lowest(self.now, Instant::NEVER)).is_ok() {
            return Ok(());
        }
        place(&|limit| limit.largest_for(self.now, time))?;
        // Each feed could take its part at some time. Now one is needed at which all can, and the machine.
        let changes =
            limits.iter().chain([&self.budget]).flat_map(|limit| limit.changes_after(self.now));
        let mut times: Vec<Instant> = changes.map(|change| change.0).chain([self.now]).collect();
        times.sort_unstable();
        times.dedup();
        let floor = self.floor();
        let mut short = None;
        for from in times {
            let until = from + time;
            let is_fed = self.budget.lowest(from, until).saturating_sub(floor) >= point.power;
            match place(&|limit| limit.lowest(from, until)) {
                Ok(()) if is_fed => return Ok(()),
                Ok(()) => (),
                Err(feed) => short = feed,
            }
        }
        Err(short)
    }

    /// Which of these nodes, taken in this order, feeds cannot feed with so much each, now and under every limit to come: beside
    /// what jobs hold, or if nobody else runs.
    pub(crate) fn unfed(
        &self,
        nodes: impl Iterator<Item = NodeId>,
        each: Watts,
        alone: bool,
    ) -> Vec<NodeId> {
        let Some(feeds) = &self.feeds else { return Vec::new() };
        let room = |feed: usize| match alone {
            true => {
                feeds.limits[feed].lowest(self.now, Instant::NEVER).saturating_sub(feeds.base[feed])
            }
            false => self.room_below(feed, Instant::LAST),
        };
        let mut feeds = feeds.tree.takes(feeds.fed(room, each));
        nodes.filter(|node| !feeds.takes(*node)).collect()
    }

    /// The nodes for a job that starts where it asks for certain ones, in the first places that its feeds can take.
    pub(super) fn seats_fed(
        &self,
        seating: &Seating,
        seat: &Seat,
        holding: &Holding,
    ) -> Result<SeatNodes, Violation> {
        let Holding { job, power, until, .. } = *holding;
        let Some(feeds) = &self.feeds else {
            return seating.first_for(seat, |_| true).map_err(|_| Violation::Seats { job });
        };
        let fed = feeds.fed(|feed| self.room_below(feed, until), each(power, seat.nodes));
        let mut takes = feeds.tree.takes(fed);
        seating.first_for(seat, |node| takes.takes(node)).map_err(|_| match takes.short() {
            Some(feed) => self.short(job, feed, power, until),
            None => Violation::Seats { job },
        })
    }

    /// Whether these nodes can hold so much together until then.
    pub(super) fn can_feed_on(&self, nodes: &[NodeId], holding: &Holding) -> Result<(), Violation> {
        let Some(feeds) = &self.feeds else { return Ok(()) };
        self.can_take(
            holding.job,
            &feeds.parts_on(nodes, holding.power, Watts::ZERO),
            holding.until,
        )
    }

    /// Starts a job on nodes that its feeds can take.
    pub(super) fn start_fed(&mut self, holding: Holding) -> Result<(), Violation> {
        let Holding { job, nodes, power, until } = holding;
        let placing = self.place(nodes, power, until).map_err(|feed| match feed {
            Some(feed) => self.short(job, feed, power, until),
            None => Violation::Nodes { job, asked: nodes, free: self.free_nodes },
        })?;
        if let (Some(feeds), Some(placement)) = (&self.feeds, &mut self.placement) {
            for (zone, count) in placing {
                placement.take_in(job, &feeds.tree.zones()[zone].nodes, count);
            }
        }
        self.hold(holding);
        Ok(())
    }

    /// Where so many nodes with so much power go that are held until then.
    fn place(&self, nodes: u32, power: Watts, until: Instant) -> Result<Placing, Option<usize>> {
        let Some(feeds) = &self.feeds else { return Err(None) };
        let fed = feeds.fed(|feed| self.room_below(feed, until), each(power, nodes));
        feeds.tree.place(nodes, &self.free_by_zone(), fed, false)
    }

    /// That there is too little power below a feed.
    fn short(&self, job: JobId, feed: usize, asked: Watts, until: Instant) -> Violation {
        let name = self.feeds.as_ref().map_or("", |feeds| feeds.tree.name(feed));
        Violation::Feed { job, feed: name.to_owned(), asked, free: self.room_below(feed, until) }
    }

    /// Whether nodes that are named, under these caps, can be fed until then.
    pub(super) fn can_feed(
        &self,
        job: JobId,
        caps: &Caps,
        power: Watts,
        until: Instant,
    ) -> Result<(), Violation> {
        let Some(feeds) = &self.feeds else { return Ok(()) };
        let parts = feeds.tree.zones().iter().enumerate().map(|(place, zone)| Part {
            zone: place,
            nodes: 0,
            power: capped(caps, zone).min(power),
            adds: Watts::ZERO,
        });
        self.can_take(job, &parts.collect::<Vec<Part>>(), until)
    }

    fn can_take(&self, job: JobId, parts: &[Part], until: Instant) -> Result<(), Violation> {
        let Some(feeds) = &self.feeds else { return Ok(()) };
        for (feed, asked) in feeds.sums(parts) {
            if asked > self.room_below(feed, until) {
                return Err(self.short(job, feed, asked, until));
            }
        }
        Ok(())
    }

    /// Takes over other limits of the feeds.
    pub(super) fn set_feed_limits(&mut self, budget: &Budget) {
        if let Some((feeds, limits)) = self.feeds.as_mut().zip(budget.feeds()) {
            feeds.limits = limits.clone();
        }
    }

    /// Whether a job that holds nothing for the moment can go on with so much power on the nodes it has, and go on with fewer of
    /// them that draw no more each.
    pub(super) fn can_go_on(
        &self,
        before: &Holding,
        point: &OperatingPoint,
        until: Instant,
    ) -> Result<(), Violation> {
        let whose = Whose::of(&self.seating, &self.placement);
        let Some((feeds, whose)) = self.feeds.as_ref().zip(whose) else { return Ok(()) };
        let is_less = each(point.power, point.nodes) <= each(before.power, before.nodes);
        match point.nodes.cmp(&before.nodes) {
            _ if is_less && point.nodes <= before.nodes => Ok(()),
            std::cmp::Ordering::Equal => {
                let parts = feeds.parts_of(before.job, point.power, whose);
                self.can_take(before.job, &parts, until)
            }
            _ => Err(Violation::NotAllowed { job: before.job, needed: Freedom::Resizes }),
        }
    }

    /// Whether a job that is suspended can have so much power again on its nodes.
    pub(super) fn can_resume(
        &self,
        before: &Holding,
        power: Watts,
        until: Instant,
    ) -> Result<(), Violation> {
        let whose = Whose::of(&self.seating, &self.placement);
        let Some((feeds, whose)) = self.feeds.as_ref().zip(whose) else { return Ok(()) };
        self.can_take(before.job, &feeds.parts_of(before.job, power, whose), until)
    }

    /// What a suspended job will claim is kept for it below the feeds of its nodes, or no longer.
    pub(super) fn keep(&mut self, job: JobId, power: Watts, is_kept: bool) {
        let whose = Whose::of(&self.seating, &self.placement);
        let Some((feeds, whose)) = self.feeds.as_mut().zip(whose) else { return };
        let parts = feeds.parts_of(job, power, whose);
        for (feed, power) in feeds.sums(&parts) {
            match is_kept {
                true => feeds.kept[feed] += power,
                false => feeds.kept[feed] = feeds.kept[feed].saturating_sub(power),
            }
        }
    }

    /// A job holds so much power on the nodes it has.
    #[inline(never)]
    pub(super) fn note_fed(&mut self, job: JobId, power: Watts) {
        let whose = Whose::of(&self.seating, &self.placement);
        if let Some((feeds, whose)) = self.feeds.as_mut().zip(whose) {
            let parts = feeds.parts_of(job, power, whose);
            feeds.take(job, parts);
        }
    }

    /// A job holds nothing below feeds any more.
    #[inline(never)]
    pub(super) fn note_unfed(&mut self, job: JobId) {
        if let Some(feeds) = &mut self.feeds {
            feeds.give(job);
        }
    }

    /// The books of the feeds, added up again.
    pub(super) fn check_feeds(&self) -> Result<(), String> {
        let whose = Whose::of(&self.seating, &self.placement);
        let Some((feeds, whose)) = self.feeds.as_ref().zip(whose) else { return Ok(()) };
        let mut sums = vec![Watts::ZERO; feeds.held.len()];
        let running = self.running.iter().map(|holding| (holding.job, holding.power));
        let running: BTreeMap<JobId, Watts> = running.collect();
        for (job, parts) in &feeds.parts {
            let Some(power) = running.get(job) else {
                return Err(format!("{job} does not run, but is fed"));
            };
            if *parts != feeds.parts_of(*job, *power, whose) {
                return Err(format!("{job} is on other nodes than its feeds know"));
            }
            feeds.sums(parts).into_iter().for_each(|(feed, power)| sums[feed] += power);
        }
        if sums != feeds.held {
            let said = &feeds.held;
            return Err(format!("below feeds {sums:?} are held, but the ledger says {said:?}"));
        }
        let mut kept = vec![Watts::ZERO; feeds.kept.len()];
        for (job, power) in &self.suspended {
            let parts = feeds.parts_of(*job, *power, whose);
            feeds.sums(&parts).into_iter().for_each(|(feed, power)| kept[feed] += power);
        }
        match kept == feeds.kept {
            true => Ok(()),
            false => Err(format!(
                "below feeds {kept:?} are kept for suspended jobs, but the ledger says {:?}",
                feeds.kept
            )),
        }
    }
}

#[cfg(test)]
mod tests;
