//! Conservative backfilling (Mu'alem and Feitelson 2001), at nominal speed.
//!
//! Rule: every job gets a reservation when it arrives, at the earliest time at which its nodes
//! and its power are expected to be free for as long as it asks, and starts when that time comes.
//! When a job ends, the schedule is compressed: each waiting job in the order of the queue, once,
//! moves to the earliest time that is free for it now. So a reservation may become earlier, never
//! later, and nobody is delayed by anyone who came after.
//!
//! Only when the machine itself changes (the budget, or nodes going down or up) are all promises
//! made anew.
//!
//! What it deliberately does not do: compress twice. A job that moves may leave a hole for one
//! ahead of it, which that one finds at the next compression. Nor does it scale like EASY: a
//! compression considers every waiting job that the freed nodes could hold, so its cost grows with
//! the queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::availability::{Availability, Claim};
use crate::policy::{Decision, Policy, Room, View};
use crate::queue::Fit;
use crate::units::{Instant, JobId};

/// Conservative backfilling with every job at its nominal operating point.
#[derive(Clone, Debug, Default)]
pub struct Conservative {
    /// What is free when, with running jobs and reservations taken out.
    free: Option<Availability>,
    /// When each waiting job is to start; [`Instant::NEVER`] if it cannot be told, or if the job
    /// does not wait.
    starts: Vec<Instant>,
    /// The reservations by time. Those that were moved since are still there, and known by being
    /// different from `starts`.
    order: BinaryHeap<Reverse<(Instant, JobId)>>,
    /// Where something came free since each waiting job was last considered.
    hole: Option<Hole>,
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

impl Conservative {
    /// An empty schedule.
    pub fn new() -> Self {
        Conservative::default()
    }

    /// Makes every promise anew.
    fn replan(&mut self, view: &View<'_>) {
        self.order.clear();
        self.hole = None;
        let mut free = Availability::of(view.ledger);
        for job in view.queue.iter() {
            self.reserve(view, &mut free, job);
        }
        self.free = Some(free);
    }

    /// Gives a job the earliest place in the schedule.
    fn reserve(&mut self, view: &View<'_>, free: &mut Availability, job: JobId) {
        let claim = Claim::of(&view.nominal(job));
        if self.starts.len() <= job.index() {
            self.starts.resize(view.jobs.len().max(job.index() + 1), Instant::NEVER);
        }
        self.starts[job.index()] = Instant::NEVER;
        if let Some(start) = free.earliest(view.now, &claim) {
            free.take(start, &claim);
            self.promise(job, start);
        }
    }

    fn promise(&mut self, job: JobId, start: Instant) {
        self.starts[job.index()] = start;
        self.order.push(Reverse((start, job)));
    }

    /// Moves each waiting job, in the order of the queue, to the earliest time that is free for
    /// it.
    ///
    /// A job can move only into time in which something came free since it was last considered:
    /// before its reservation, and with enough nodes. The hole says where that is; jobs with more
    /// nodes are passed over by the queue's index without being looked at.
    fn compress(&mut self, view: &View<'_>, free: &mut Availability) {
        let Some(mut hole) = self.hole.take() else { return };
        // Those who just arrived have no reservation yet; they are last in the queue.
        let arrived = view.changes.arrived.first().copied().unwrap_or(JobId(u32::MAX));
        let mut candidates = view.queue.all_that_fit(JobId(0), &Fit::nodes(hole.nodes));
        while let Some(job) = candidates.next().filter(|job| *job < arrived) {
            let start = self.starts[job.index()];
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
            self.promise(job, earlier);
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

    /// Starts every job whose time has come, in the order of the queue, and asks to be woken for
    /// the next.
    fn start_due(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let mut due = Vec::new();
        let mut wake = None;
        while let Some(&Reverse((start, job))) = self.order.peek() {
            let moved = self.starts[job.index()] != start;
            if !moved && start > view.now {
                wake = Some(Decision::WakeAt(start));
                break;
            }
            self.order.pop();
            if !moved {
                due.push(job);
            }
        }
        due.sort_unstable();
        due.dedup();
        let mut room = Room::of(view);
        for job in due {
            let point = view.nominal(job);
            if room.admits(&point) {
                room.take(&point);
                self.starts[job.index()] = Instant::NEVER;
                decisions.push(Decision::Start { job, point });
            } else {
                // A job of this instant still holds what the schedule counts as given back; it
                // ends before the clock moves on, and then the policy is asked again.
                self.order.push(Reverse((self.starts[job.index()], job)));
            }
        }
        decisions.extend(wake);
        // Moved reservations are dropped before they outnumber the others by far.
        if self.order.len() > 4 * view.queue.len() + 1024 {
            let starts = &self.starts;
            self.order.retain(|Reverse((start, job))| starts[job.index()] == *start);
        }
    }
}

impl Policy for Conservative {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        // A running job past its time still holds what the schedule counts as free.
        let first = view.ledger.running().iter().next();
        let overdue = first.is_some_and(|first| first.until < view.now);
        match self.free.take().filter(|_| !view.changes.machine && !overdue) {
            None => self.replan(view),
            Some(mut free) => {
                free.forget_before(view.now);
                for back in view.changes.released {
                    if back.until > view.now {
                        let (from, until) = (view.now, back.until);
                        free.give(from, until, back.nodes, back.power);
                        let nodes = free.most_nodes(from, until);
                        self.hole = Some(Hole { from, until, nodes }.and(self.hole));
                    }
                }
                if !view.changes.released.is_empty() {
                    self.compress(view, &mut free);
                }
                for &job in view.changes.arrived {
                    self.reserve(view, &mut free, job);
                }
                self.free = Some(free);
            }
        }
        self.start_due(view, decisions);
    }

    fn copy(&self) -> Option<Box<dyn Policy + Send>> {
        Some(Box::new(self.clone()))
    }
}
