//! What is really drawn below feeds, which of them keep power from idle nodes, and for how long.
//!
//! A feed binds while jobs wait, nodes below it are idle, and it is its limit that keeps power from them which the machine has
//! left: power that no idle node elsewhere could draw. That power is stranded below it. Where feeds above each other are both too
//! small, each counts with what it keeps back of what the feeds below it would let through.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::budget::Budget;
use crate::ledger::Ledger;
use crate::machine::{Feeds, Machine};
use crate::units::{Instant, JobId, Joules, Span, Watts};

/// How a feed was used from the begin of a run to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedUse {
    /// The most that its nodes drew for any time.
    pub(crate) peak: Watts,
    /// The energy that they drew.
    pub(crate) energy: Joules,
    /// For how long it kept power from idle nodes while jobs waited.
    pub(crate) bound: Span,
    /// The energy that it kept from them.
    pub(crate) stranded: Joules,
    /// For how long its nodes drew more than its limit: jobs drew more than was believed.
    pub(crate) over: Span,
    /// By how much at most.
    pub(crate) worst_over: Watts,
}

/// What the nodes below a feed draw from an instant on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedSample {
    /// The instant from which it holds.
    pub at: Instant,
    /// The place of the feed in [`Feeds::all`].
    pub feed: usize,
    /// What its nodes draw from then on.
    pub power: Watts,
    /// Its limit.
    pub limit: Watts,
}

/// The nodes of a job that started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// When it started.
    pub at: Instant,
    /// The job.
    pub job: JobId,
    /// Its nodes, in stretches of neighbours, ascending.
    pub nodes: Vec<Range<u32>>,
}

/// The meters of all feeds.
pub(super) struct FeedMeters {
    tree: Arc<Feeds>,
    limits: Arc<[Budget]>,
    now: Instant,
    /// What a node adds at most that is idle.
    added: Watts,
    meters: Vec<Meter>,
    /// By job: what it draws by feed.
    jobs: BTreeMap<JobId, Vec<(usize, Watts)>>,
}

/// The meter of a feed.
#[derive(Clone, Copy)]
struct Meter {
    power: Watts,
    limit: Watts,
    /// What is stranded below it now.
    stranded: Watts,
    so_far: FeedUse,
    /// What it said when somebody last looked.
    sampled: Option<(Watts, Watts)>,
}

impl FeedMeters {
    /// Those of a machine whose feeds have limits in this budget.
    pub(super) fn of(machine: &Machine, budget: &Budget, now: Instant) -> Option<Box<Self>> {
        let (tree, limits) = (machine.feeds.clone()?, budget.feeds()?.clone());
        let meters =
            machine.idle_of_feeds().into_iter().zip(limits.iter()).map(|(idle, limit)| Meter {
                power: idle,
                limit: limit.at(now),
                stranded: Watts::ZERO,
                so_far: FeedUse { peak: idle, ..FeedUse::default() },
                sampled: None,
            });
        let (meters, added) = (meters.collect(), machine.added_power());
        Some(Box::new(FeedMeters { tree, limits, now, added, meters, jobs: BTreeMap::new() }))
    }

    /// Moves the clock: what was drawn and kept back until now is charged.
    pub(super) fn advance(&mut self, now: Instant) {
        let elapsed = now.since(self.now);
        if elapsed == Span::ZERO {
            return;
        }
        self.now = now;
        for (meter, limit) in self.meters.iter_mut().zip(self.limits.iter()) {
            meter.charge(elapsed);
            meter.limit = limit.at(now);
        }
    }

    /// A job begins to draw so much on these nodes, or goes on with that; `part` says how much of it on some of them.
    pub(super) fn set(
        &mut self,
        job: JobId,
        stretches: &[Range<u32>],
        power: Watts,
        mut part: impl FnMut(&[Range<u32>]) -> Watts,
    ) {
        self.end(job);
        let zones = self.tree.zones().iter().map(|zone| zone.shared(stretches)).enumerate();
        let zones: Vec<(usize, Vec<Range<u32>>)> =
            zones.filter(|zone| !zone.1.is_empty()).collect();
        let mut below: BTreeMap<usize, Watts> = BTreeMap::new();
        let mut left = power;
        for (place, (zone, nodes)) in zones.iter().enumerate() {
            // Parts are rounded, but together they are what the job draws.
            let is_last = place + 1 == zones.len();
            let power = if is_last { left } else { part(nodes).min(left) };
            left -= power;
            self.tree.above(*zone).for_each(|feed| *below.entry(feed).or_default() += power);
        }
        below.iter().for_each(|(feed, power)| self.meters[*feed].power += *power);
        self.jobs.insert(job, below.into_iter().collect());
    }

    /// A job stops.
    pub(super) fn end(&mut self, job: JobId) {
        for (feed, power) in self.jobs.remove(&job).unwrap_or_default() {
            self.meters[feed].power -= power;
        }
    }

    /// Looks at what is stranded from now on, if jobs wait.
    pub(super) fn look(&mut self, ledger: &Ledger, jobs_wait: bool) {
        self.meters.iter_mut().for_each(|meter| meter.stranded = Watts::ZERO);
        if !jobs_wait || !ledger.has_feeds() {
            return;
        }
        // What idle nodes below each feed could draw more, as far as the feeds below it let that through.
        let mut wanted = vec![Watts::ZERO; self.meters.len()];
        let mut usable = Watts::ZERO;
        for (zone, unused) in ledger.unused_by_zone(self.added).into_iter().enumerate() {
            match self.tree.above(zone).next() {
                Some(feed) => wanted[feed] += unused,
                None => usable += unused,
            }
        }
        let mut kept = vec![Watts::ZERO; self.meters.len()];
        for feed in (0..self.meters.len()).rev() {
            let through = wanted[feed].min(ledger.room_below(feed, self.now));
            kept[feed] = wanted[feed] - through;
            match self.tree.all()[feed].parent {
                Some(parent) => wanted[parent] += through,
                None => usable += through,
            }
        }
        let mut left = ledger.free_power().saturating_sub(usable);
        for (meter, kept) in self.meters.iter_mut().zip(kept) {
            meter.stranded = kept.min(left);
            left -= meter.stranded;
        }
    }

    /// Adds what has changed since the last time.
    pub(super) fn sample(&mut self, samples: &mut Vec<FeedSample>) {
        for (feed, meter) in self.meters.iter_mut().enumerate() {
            let Meter { power, limit, .. } = *meter;
            if meter.sampled.replace((power, limit)) == Some((power, limit)) {
                continue;
            }
            let at = self.now;
            samples.push(FeedSample { at, feed, power, limit });
        }
    }

    pub(super) fn so_far(&self) -> Vec<FeedUse> {
        self.meters.iter().map(|meter| meter.so_far).collect()
    }
}

impl Meter {
    fn charge(&mut self, elapsed: Span) {
        let Meter { power, limit, stranded, so_far, .. } = self;
        so_far.peak = so_far.peak.max(*power);
        so_far.energy += power.over(elapsed);
        if *stranded > Watts::ZERO {
            so_far.bound = so_far.bound + elapsed;
            so_far.stranded += stranded.over(elapsed);
        }
        if *power > *limit {
            so_far.over = so_far.over + elapsed;
            so_far.worst_over = so_far.worst_over.max(*power - *limit);
        }
    }
}

#[cfg(test)]
mod tests;
