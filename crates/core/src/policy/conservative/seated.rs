//! The schedule where nodes are of several kinds or jobs share them: it says which nodes each job will have.
//!
//! A job gets the first instant from which as many of the nodes that it may have are free for it for its whole time, each of
//! them, as it asks for, and enough power of the machine and of the feeds above them; and then the first of these nodes.

mod nodes;

use std::sync::Arc;

use super::promises::Promises;
use crate::availability::{Availability, Claim, FeedRoom};
use crate::ledger::{Holding, Ledger, SeatNodes, Seating, Taken};
use crate::model::OperatingPoint;
use crate::policy::View;
use crate::seats::Seat;
use crate::units::{Instant, JobId, NodeId};
use nodes::NodesOverTime;

/// What is free of which nodes when, and where something came free.
#[derive(Clone, Debug)]
pub(super) struct Seated {
    seating: Arc<Seating>,
    /// Processors and power of the whole machine.
    free: Availability,
    /// The power of feeds, where these have limits.
    feeds: Option<FeedRoom>,
    nodes: NodesOverTime,
    promises: Promises,
    /// By job that runs or has a promise: its nodes.
    nodes_of: Vec<SeatNodes>,
    /// Where something came free since each waiting job was last considered.
    holes: Holes,
    /// Whether jobs on nodes of different kinds have anything in common: power.
    is_limited: bool,
}

/// Stretches of time in which something came free, by kind of nodes.
#[derive(Clone, Debug, Default)]
struct Holes(Vec<Option<(Instant, Instant)>>);

impl Holes {
    fn add(&mut self, kind: u16, from: Instant, until: Instant) {
        let kind = usize::from(kind);
        if self.0.len() <= kind {
            self.0.resize(kind + 1, None);
        }
        self.0[kind] = both(self.0[kind], Some((from, until)));
    }

    /// Where something came free on nodes of a kind, or on any.
    fn of(&self, kind: Option<u16>) -> Option<(Instant, Instant)> {
        match kind {
            Some(kind) => self.0.get(usize::from(kind)).copied().flatten(),
            None => self.0.iter().copied().fold(None, both),
        }
    }
}

/// One stretch that covers both.
fn both(
    one: Option<(Instant, Instant)>,
    other: Option<(Instant, Instant)>,
) -> Option<(Instant, Instant)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}

impl Seated {
    pub(super) fn of(ledger: &Ledger, seating: &Arc<Seating>) -> Self {
        let mut nodes_of = Vec::new();
        for holding in ledger.running().iter() {
            *entry(&mut nodes_of, holding.job) = seating.nodes_of(holding.job).into();
        }
        let feeds = FeedRoom::of(ledger);
        Seated {
            free: Availability::of(ledger),
            nodes: NodesOverTime::of(ledger, seating),
            is_limited: ledger.budget().is_limited() || feeds.is_some(),
            feeds,
            promises: Promises::default(),
            nodes_of,
            holes: Holes::default(),
            seating: seating.clone(),
        }
    }

    pub(super) fn advance(&mut self, ledger: &Ledger) {
        if let Some(seating) = ledger.seating() {
            self.seating = seating.clone();
        }
        self.free.forget_before(ledger.now());
        self.nodes.advance(ledger.now());
        if let Some(feeds) = &mut self.feeds {
            feeds.forget_before(ledger.now());
        }
    }

    /// A running job gave back, before it was expected to.
    pub(super) fn release(&mut self, back: &Holding, now: Instant) {
        let claim = Claim { nodes: back.nodes, power: back.power, time: back.until.since(now) };
        self.give(back.job, now, &claim);
    }

    /// A job does not hold its nodes then.
    fn give(&mut self, job: JobId, from: Instant, claim: &Claim) {
        let Some(seat) = self.seating.seat(job) else { return };
        let until = from + claim.time;
        self.free.give(from, until, claim.nodes, claim.power);
        let nodes = std::mem::take(entry(&mut self.nodes_of, job));
        self.nodes.give(&nodes, &seat.each, from, until);
        if let Some(feeds) = &mut self.feeds {
            feeds.give(from, claim, &nodes);
        }
        self.holes.add(seat.kind, from, until);
    }

    /// A job holds these nodes then.
    fn take(&mut self, seat: &Seat, job: JobId, from: Instant, claim: &Claim, nodes: SeatNodes) {
        self.free.take(from, claim);
        self.nodes.take(&nodes, &seat.each, from, from + claim.time);
        if let Some(feeds) = &mut self.feeds {
            feeds.take(from, claim, &nodes);
        }
        *entry(&mut self.nodes_of, job) = nodes;
        self.promises.promise(job, from);
    }

    /// Reserves the earliest time for a job that has none.
    pub(super) fn reserve(&mut self, view: &View<'_>, job: JobId, claim: &Claim) {
        self.promises.welcome(view, job, None);
        let Some(seat) = self.seating.seat(job).copied() else { return };
        if let Some((start, nodes)) = self.earliest(&seat, claim, view.now, Instant::NEVER) {
            self.take(&seat, job, start, claim, nodes);
        }
    }

    /// The first instant from one on, and before another, at which a job finds nodes and power for its whole time.
    fn earliest(
        &self,
        seat: &Seat,
        claim: &Claim,
        after: Instant,
        latest: Instant,
    ) -> Option<(Instant, SeatNodes)> {
        let mut at = after;
        loop {
            at = self.free.earliest_before(at, latest, Instant::NEVER, claim)?;
            match self.nodes_at(seat, claim, at) {
                Ok(nodes) => return Some((at, nodes)),
                Err(next) if next < latest => at = next,
                Err(_) => return None,
            }
        }
    }

    /// The first nodes for a job that begins then; or an instant before which there are not enough.
    fn nodes_at(&self, seat: &Seat, claim: &Claim, at: Instant) -> Result<SeatNodes, Instant> {
        let mut takes = self.feeds.as_ref().map(|feeds| feeds.takes(at, claim, seat.nodes));
        let more_fed = || self.feeds.as_ref().and_then(|feeds| feeds.next_change(at));
        let (mut found, mut later) = (SeatNodes::new(), Vec::new());
        let places = self.seating.places(seat).flatten();
        for node in places.map(NodeId) {
            match self.nodes.room(node, &seat.each, at, claim.time) {
                Err(next) => later.push(next),
                Ok(()) if takes.as_mut().is_none_or(|takes| takes.takes(node)) => found.push(node),
                Ok(()) => later.push(more_fed().unwrap_or(Instant::NEVER)),
            }
            if found.len() == seat.nodes as usize {
                return Ok(found);
            }
        }
        // So many more have to come, and each of them comes at its time.
        let missing = seat.nodes as usize - found.len();
        match missing <= later.len() {
            true => Err(*later.select_nth_unstable(missing - 1).1),
            false => Err(Instant::NEVER),
        }
    }

    /// When waiting jobs are to start.
    pub(super) fn promises(&mut self) -> &mut Promises {
        &mut self.promises
    }

    /// The nodes of a job that has a promise.
    pub(super) fn nodes_of(&self, job: JobId) -> SeatNodes {
        self.nodes_of.get(job.index()).cloned().unwrap_or_default()
    }

    /// Moves each waiting job, in the order of the queue, to the earliest time that is free for it. A job that cannot begin
    /// earlier keeps its nodes.
    ///
    /// A job can move only into time in which something came free since it was last considered: on nodes of its kind, or
    /// power.
    pub(super) fn compress(&mut self, view: &View<'_>) {
        // Who moves leaves more, which those behind it find now, and those ahead of it next time.
        let mut holes = std::mem::take(&mut self.holes);
        // Those who just arrived have no reservation yet; they are last in the queue.
        let arrived = view.changes.arrived.first().copied().unwrap_or(JobId(u32::MAX));
        for job in view.queue.iter().take_while(|job| *job < arrived) {
            let Some(seat) = self.seating.seat(job).copied() else { continue };
            let Some((from, until)) = holes.of((!self.is_limited).then_some(seat.kind)) else {
                continue;
            };
            let start = self.promises.of(job);
            if from >= start {
                continue;
            }
            let claim = Claim::of(&view.nominal(job));
            // An earlier place that would not touch the hole was no better before.
            let touching = from.millis().saturating_sub(claim.time.millis());
            let after = view.now.max(Instant::from_millis(touching));
            let latest = start.min(until);
            if after >= latest {
                continue;
            }
            let kept = std::mem::take(&mut self.holes);
            let has = self.nodes_of(job);
            if start != Instant::NEVER {
                self.give(job, start, &claim);
            }
            let left = std::mem::replace(&mut self.holes, kept);
            match self.earliest(&seat, &claim, after, latest) {
                Some((earlier, nodes)) => {
                    self.take(&seat, job, earlier, &claim, nodes);
                    if let Some((from, until)) = left.of(None) {
                        self.holes.add(seat.kind, from, until);
                        holes.add(seat.kind, from, until);
                    }
                }
                None if start != Instant::NEVER => self.take(&seat, job, start, &claim, has),
                None => (),
            }
        }
    }
}

/// What jobs start with in a turn: whether what is reserved for them is there.
pub(super) struct Starting {
    seating: Arc<Seating>,
    taken: Taken,
    feeds: Option<FeedRoom>,
}

impl Starting {
    pub(super) fn of(ledger: &Ledger) -> Option<Self> {
        let seating = ledger.seating()?.clone();
        Some(Starting { seating, taken: Taken::default(), feeds: FeedRoom::of(ledger) })
    }

    /// Whether a job can start now on these nodes.
    pub(super) fn has(
        &self,
        now: Instant,
        job: JobId,
        point: &OperatingPoint,
        nodes: &SeatNodes,
    ) -> bool {
        let Some(seat) = self.seating.seat(job) else { return false };
        let feeds = self.feeds.as_ref();
        let mut takes = feeds.map(|feeds| feeds.takes(now, &Claim::of(point), seat.nodes));
        nodes.len() == seat.nodes as usize
            && nodes.iter().all(|node| {
                self.taken.left(*node, self.seating.free(*node)).has(&seat.each)
                    && takes.as_mut().is_none_or(|takes| takes.takes(*node))
            })
    }

    /// It does.
    pub(super) fn take(
        &mut self,
        now: Instant,
        job: JobId,
        point: &OperatingPoint,
        nodes: &SeatNodes,
    ) {
        let Some(seat) = self.seating.seat(job) else { return };
        self.taken.add(now + point.time, job, &seat.each, nodes);
        if let Some(feeds) = &mut self.feeds {
            feeds.take(now, &Claim::of(point), nodes);
        }
    }
}

/// The nodes of a job, to be changed.
fn entry(nodes_of: &mut Vec<SeatNodes>, job: JobId) -> &mut SeatNodes {
    if nodes_of.len() <= job.index() {
        nodes_of.resize(job.index() + 1, SeatNodes::new());
    }
    &mut nodes_of[job.index()]
}
