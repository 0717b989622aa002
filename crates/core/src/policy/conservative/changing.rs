//! The schedule while limits of the budget are to come.
//!
//! Every promise is made anew whenever a limit comes into force, so what matters here is that limits
//! cost nothing while they are only to come.

use super::promises::Promises;
use crate::availability::{Availability, Claim};
use crate::ledger::{Holding, Ledger};
use crate::policy::View;
use crate::queue::Fit;
use crate::units::{Instant, JobId};

/// What is free when, and where something came free.
#[derive(Clone, Debug)]
pub(super) struct Changing {
    free: Availability,
    /// Where something came free since each waiting job was last considered.
    hole: Option<Hole>,
    promises: Promises,
}

/// A stretch of time in which something came free.
#[derive(Clone, Copy, Debug)]
struct Hole {
    from: Instant,
    until: Instant,
    /// The most nodes that are free anywhere in it, or more.
    nodes: u32,
}

impl Hole {
    /// One hole that covers both.
    fn and(self, other: Option<Hole>) -> Hole {
        other.map_or(self, |other| Hole {
            from: self.from.min(other.from),
            until: self.until.max(other.until),
            nodes: self.nodes.max(other.nodes),
        })
    }
}

impl Changing {
    pub(super) fn of(ledger: &Ledger) -> Self {
        Changing { free: Availability::of(ledger), hole: None, promises: Promises::default() }
    }

    pub(super) fn advance(&mut self, now: Instant) {
        self.free.forget_before(now);
    }

    pub(super) fn release(&mut self, back: &Holding, now: Instant) {
        let (from, until) = (now, back.until);
        self.free.give(from, until, back.nodes, back.power);
        let nodes = self.free.most_nodes(from, until);
        self.hole = Some(Hole { from, until, nodes }.and(self.hole));
    }

    /// Reserves the earliest time for a job that has none.
    pub(super) fn reserve(&mut self, view: &View<'_>, job: JobId, claim: &Claim) {
        let start = self.free.earliest(view.now, claim);
        if let Some(start) = start {
            self.free.take(start, claim);
        }
        self.promises.welcome(view, job, start);
    }

    /// When waiting jobs are to start.
    pub(super) fn promises(&mut self) -> &mut Promises {
        &mut self.promises
    }

    /// Moves each waiting job, in the order of the queue, to the earliest time that is free for it.
    ///
    /// A job can move only into time in which something came free since it was last considered:
    /// before its reservation, and with enough nodes. The hole says where that is; jobs with more
    /// nodes are passed over by the queue's index without being looked at.
    pub(super) fn compress(&mut self, view: &View<'_>) {
        let Some(mut hole) = self.hole.take() else { return };
        // Those who just arrived have no reservation yet; they are last in the queue.
        let arrived = view.changes.arrived.first().copied().unwrap_or(JobId(u32::MAX));
        let (free, promises) = (&mut self.free, &mut self.promises);
        let mut candidates = view.queue.all_that_fit(JobId(0), &Fit::nodes(hole.nodes));
        while let Some(job) = candidates.next().filter(|job| *job < arrived) {
            let start = promises.of(job);
            if hole.from >= start {
                continue;
            }
            // An earlier place that would not touch the hole was no better before.
            let claim = Claim::of(&view.nominal(job));
            let touching = hole.from.millis().saturating_sub(claim.time.millis());
            let after = view.now.max(Instant::from_millis(touching));
            let latest = start.min(hole.until);
            let Some(earlier) = free.earliest_before(after, latest, start, &claim) else {
                continue;
            };
            if start != Instant::NEVER {
                free.give(start, start + claim.time, claim.nodes, claim.power);
            }
            free.take(earlier, &claim);
            promises.promise(job, earlier);
            let (from, until) = (start.max(earlier + claim.time), start + claim.time);
            if from < until {
                let left = Hole { from, until, nodes: free.most_nodes(from, until) };
                // Those ahead in the queue find it next time.
                self.hole = Some(left.and(self.hole));
                if left.nodes > hole.nodes {
                    let next = JobId(job.0 + 1);
                    candidates = view.queue.all_that_fit(next, &Fit::nodes(left.nodes));
                }
                hole = left.and(Some(hole));
            }
        }
    }
}
