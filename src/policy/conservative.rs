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
//! ahead of it, which that one finds at the next compression.

use std::collections::BTreeSet;

use crate::availability::{Availability, Claim};
use crate::policy::{Decision, Policy, Room, View};
use crate::queue::Fit;
use crate::units::{Instant, JobId};

/// Conservative backfilling with every job at its nominal operating point.
#[derive(Clone, Debug, Default)]
pub struct Conservative {
    /// What is free when, with running jobs and reservations taken out.
    free: Option<Availability>,
    /// When each waiting job is to start; [`Instant::NEVER`] if it cannot be told.
    starts: Vec<Instant>,
    /// The reservations by time.
    order: BTreeSet<(Instant, JobId)>,
    /// Where something came free since each waiting job was last considered.
    holes: Vec<Hole>,
}

/// A stretch of time in which something came free.
#[derive(Clone, Copy, Debug)]
struct Hole {
    from: Instant,
    /// The most nodes that are free anywhere in it, at the least known.
    nodes: u32,
}

/// More holes than this are looked at as one: telling them apart would cost more than it saves.
const MOST_HOLES: usize = 16;

impl Conservative {
    /// An empty schedule.
    pub fn new() -> Self {
        Conservative::default()
    }

    /// Makes every promise anew.
    fn replan(&mut self, view: &View<'_>) {
        self.order.clear();
        self.holes.clear();
        let mut free = Availability::of(view.ledger);
        for job in view.queue.iter() {
            self.reserve(view, &mut free, job);
        }
        self.free = Some(free);
    }

    /// Gives a job the earliest place in the schedule.
    fn reserve(&mut self, view: &View<'_>, free: &mut Availability, job: JobId) {
        let claim = Claim::of(&view.nominal(job));
        let start = free.earliest(view.now, &claim).unwrap_or(Instant::NEVER);
        if start != Instant::NEVER {
            free.take(start, &claim);
        }
        if self.starts.len() <= job.index() {
            self.starts.resize(view.jobs.len().max(job.index() + 1), Instant::NEVER);
        }
        self.starts[job.index()] = start;
        self.order.insert((start, job));
    }

    /// Moves each waiting job, in the order of the queue, to the earliest time that is free for
    /// it.
    ///
    /// A job can move only into time in which something came free since it was last considered:
    /// before its reservation, and with enough nodes. The holes say where that is; all other jobs
    /// are passed over by the queue's index without being looked at.
    fn compress(&mut self, view: &View<'_>, free: &mut Availability) {
        let mut holes = std::mem::take(&mut self.holes);
        let mut moved = Vec::new();
        // Those who just arrived have no reservation yet; they are last in the queue.
        let arrived = view.changes.arrived.first();
        let mut next = view.queue.head();
        while let Some(from) = next {
            let most_nodes = holes.iter().map(|hole| hole.nodes).max().unwrap_or(0);
            let Some(job) = view.queue.next_fit(from, &Fit::nodes(most_nodes)) else { break };
            if arrived.is_some_and(|first| job >= *first) {
                break;
            }
            next = Some(JobId(job.0 + 1));
            let point = view.nominal(job);
            let start = self.starts.get(job.index()).copied().unwrap_or(Instant::NEVER);
            let usable = |hole: &&Hole| hole.from < start && hole.nodes >= point.nodes;
            let Some(hole) = holes.iter().filter(usable).map(|hole| hole.from).min() else {
                continue;
            };
            // A start so early that the job would end before the first hole was no better before.
            let claim = Claim::of(&point);
            let after = view
                .now
                .max(Instant::from_millis(hole.millis().saturating_sub(claim.time.millis())));
            let Some(earlier) = free.earliest_before(after, start, &claim) else { continue };
            if start != Instant::NEVER {
                free.give(start, start + claim.time, claim.nodes, claim.power);
            }
            free.take(earlier, &claim);
            self.order.remove(&(start, job));
            self.order.insert((earlier, job));
            self.starts[job.index()] = earlier;
            let left = start.max(earlier + claim.time);
            if left < start + claim.time {
                let nodes = free.most_nodes(left, start + claim.time);
                note(&mut holes, Hole { from: left, nodes });
                // Those ahead in the queue find it next time.
                note(&mut moved, Hole { from: left, nodes });
            }
        }
        self.holes = moved;
    }

    /// Starts every job whose time has come, in the order of the queue, and asks to be woken for
    /// the next.
    fn start_due(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let mut room = Room::of(view);
        let mut due: Vec<JobId> =
            self.order.range(..=(view.now, JobId(u32::MAX))).map(|(_, job)| *job).collect();
        due.sort_unstable();
        for job in due {
            // A job of this instant may still hold what the schedule counts as given back; it
            // ends before the clock moves on, and then the policy is asked again.
            let point = view.nominal(job);
            if room.admits(&point) {
                room.take(&point);
                self.order.remove(&(self.starts[job.index()], job));
                decisions.push(Decision::Start { job, point });
            }
        }
        let next = self.order.range((view.now, JobId(u32::MAX))..).next();
        if let Some(&(at, _)) = next.filter(|(at, _)| *at != Instant::NEVER) {
            decisions.push(Decision::WakeAt(at));
        }
    }
}

/// Adds a hole; when there are many, they become one that covers them all.
fn note(holes: &mut Vec<Hole>, hole: Hole) {
    if holes.len() < MOST_HOLES {
        return holes.push(hole);
    }
    let all = holes.iter().fold(hole, |all, other| Hole {
        from: all.from.min(other.from),
        nodes: all.nodes.max(other.nodes),
    });
    holes.clear();
    holes.push(all);
}

impl Policy for Conservative {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        // A running job past its time still holds what the schedule counts as free.
        let overdue =
            view.ledger.running().iter().next().is_some_and(|first| first.until < view.now);
        match self.free.take().filter(|_| !view.changes.machine && !overdue) {
            None => self.replan(view),
            Some(mut free) => {
                free.forget_before(view.now);
                for back in view.changes.released {
                    if back.until > view.now {
                        free.give(view.now, back.until, back.nodes, back.power);
                        let nodes = free.most_nodes(view.now, back.until);
                        note(&mut self.holes, Hole { from: view.now, nodes });
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
}
