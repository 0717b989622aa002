//! The schedule while limits of the budget are to come.
//!
//! Every promise is made anew whenever a limit comes into force, so what matters here is that limits
//! cost nothing while they are only to come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

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

/// When waiting jobs are to start.
#[derive(Clone, Debug, Default)]
struct Promises {
    /// When each waiting job is to start; [`Instant::NEVER`] if it cannot be told, or if the job
    /// does not wait.
    starts: Vec<Instant>,
    /// The reservations by time. Those that were moved since are still there, and known by being
    /// different from `starts`.
    order: BinaryHeap<Reverse<(Instant, JobId)>>,
}

impl Promises {
    fn of(&self, job: JobId) -> Instant {
        self.starts.get(job.index()).map_or(Instant::NEVER, |start| *start)
    }

    fn promise(&mut self, job: JobId, start: Instant) {
        self.starts[job.index()] = start;
        self.order.push(Reverse((start, job)));
    }

    /// A job that has just arrived gets its promise, if it can have one.
    fn welcome(&mut self, view: &View<'_>, job: JobId, start: Option<Instant>) {
        if self.starts.len() <= job.index() {
            self.starts.resize(view.jobs.len().max(job.index() + 1), Instant::NEVER);
        }
        self.starts[job.index()] = Instant::NEVER;
        if let Some(start) = start {
            self.promise(job, start);
        }
        // Moved reservations are dropped before they outnumber the others by far.
        if self.order.len() > 4 * view.queue.len() + 1024 {
            self.order.retain(|Reverse((start, job))| self.starts[job.index()] == *start);
        }
    }
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

    /// Adds the waiting jobs whose time has come; says when that of the next comes.
    pub(super) fn due(&mut self, now: Instant, due: &mut Vec<JobId>) -> Option<Instant> {
        let Promises { starts, order } = &mut self.promises;
        while let Some(&Reverse((start, job))) = order.peek() {
            let moved = starts[job.index()] != start;
            if !moved && start > now {
                return Some(start);
            }
            order.pop();
            // It may be there twice.
            if !moved && !due.contains(&job) {
                due.push(job);
            }
        }
        None
    }

    /// A job whose time has come starts, or goes on waiting.
    pub(super) fn settle(&mut self, job: JobId, starts: bool) {
        match starts {
            true => self.promises.starts[job.index()] = Instant::NEVER,
            false => self.promises.promise(job, self.promises.of(job)),
        }
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
