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
//! ahead of it, which that one finds at the next compression. Nor does it scale like EASY: in a long
//! queue one job that ends early moves hundreds of others, and each of them has to be moved.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::availability::Claim;
use crate::ledger::Holding;
use crate::policy::{Decision, Policy, Room, View};
use crate::units::{Instant, JobId};

mod changing;
mod openings;
mod steps;
mod timeline;

use changing::Changing;
use timeline::Timeline;

/// Conservative backfilling with every job at its nominal operating point.
#[derive(Clone, Debug, Default)]
pub struct Conservative {
    /// What is free when, with running jobs and reservations taken out.
    plan: Option<Plan>,
    promises: Promises,
}

/// What is free when.
#[derive(Clone, Debug)]
enum Plan {
    /// Under a limit that stays as it is.
    Steady(Box<Timeline>),
    /// While limits are to come.
    Changing(Box<Changing>),
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
    }
}

impl Plan {
    fn of(view: &View<'_>) -> Self {
        match view.ledger.limits_to_come().is_empty() {
            true => Plan::Steady(Box::new(Timeline::of(view.ledger))),
            false => Plan::Changing(Box::new(Changing::of(view.ledger))),
        }
    }

    fn advance(&mut self, now: Instant) {
        match self {
            Plan::Steady(timeline) => timeline.advance(now),
            Plan::Changing(changing) => changing.advance(now),
        }
    }

    /// A job gave back, before it was expected to.
    fn release(&mut self, back: &Holding, now: Instant) {
        match self {
            Plan::Steady(timeline) => timeline.release(back),
            Plan::Changing(changing) => changing.release(back, now),
        }
    }

    /// Gives a job the earliest place in the schedule.
    fn reserve(&mut self, view: &View<'_>, job: JobId) -> Option<Instant> {
        let claim = Claim::of(&view.nominal(job));
        match self {
            Plan::Steady(timeline) => timeline.reserve(job, &claim),
            Plan::Changing(changing) => changing.reserve(&claim, view.now),
        }
    }

    /// Moves each waiting job, in the order of the queue, to the earliest time that is free for
    /// it.
    fn compress(&mut self, view: &View<'_>, promises: &mut Promises) {
        match self {
            Plan::Steady(timeline) => {
                timeline.begin();
                let mut next = 0;
                while let Some((job, after)) = timeline.candidate(next) {
                    next = after;
                    let start = promises.of(job);
                    if let Some(earlier) = timeline.earlier(job, start) {
                        timeline.advance_to(job, start, &earlier);
                        promises.promise(job, earlier.at);
                    }
                }
                timeline.finish();
            }
            Plan::Changing(changing) => changing.compress(view, promises),
        }
    }

    /// Whether it knows all who wait, but for those who just arrived. It does not if a job could not
    /// be started.
    fn is_complete(&self, view: &View<'_>) -> bool {
        match self {
            Plan::Steady(timeline) => {
                timeline.waiting() + view.changes.arrived.len() == view.queue.len()
            }
            Plan::Changing(_) => true,
        }
    }

    fn start(&mut self, job: JobId) {
        if let Plan::Steady(timeline) = self {
            timeline.start(job);
        }
    }
}

impl Conservative {
    /// An empty schedule.
    pub fn new() -> Self {
        Conservative::default()
    }

    /// Makes every promise anew.
    fn replan(&mut self, view: &View<'_>) -> Plan {
        self.promises.order.clear();
        let mut plan = Plan::of(view);
        for job in view.queue.iter() {
            let start = plan.reserve(view, job);
            self.promises.welcome(view, job, start);
        }
        plan
    }

    /// Starts every job whose time has come, in the order of the queue, and asks to be woken for
    /// the next.
    fn start_due(&mut self, view: &View<'_>, plan: &mut Plan, decisions: &mut Vec<Decision>) {
        let Promises { starts, order } = &mut self.promises;
        let mut due = Vec::new();
        let mut wake = None;
        while let Some(&Reverse((start, job))) = order.peek() {
            let moved = starts[job.index()] != start;
            if !moved && start > view.now {
                wake = Some(Decision::WakeAt(start));
                break;
            }
            order.pop();
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
                starts[job.index()] = Instant::NEVER;
                plan.start(job);
                decisions.push(Decision::Start { job, point });
            } else {
                // A job of this instant still holds what the schedule counts as given back; it
                // ends before the clock moves on, and then the policy is asked again.
                order.push(Reverse((starts[job.index()], job)));
            }
        }
        decisions.extend(wake);
        // Moved reservations are dropped before they outnumber the others by far.
        if order.len() > 4 * view.queue.len() + 1024 {
            order.retain(|Reverse((start, job))| starts[job.index()] == *start);
        }
    }
}

impl Policy for Conservative {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        // A running job past its time still holds what the schedule counts as free.
        let first = view.ledger.running().iter().next();
        let overdue = first.is_some_and(|first| first.until < view.now);
        let plan = self.plan.take().filter(|_| !view.changes.machine && !overdue);
        let mut plan = match plan.filter(|plan| plan.is_complete(view)) {
            None => self.replan(view),
            Some(mut plan) => {
                plan.advance(view.now);
                for back in view.changes.released.iter().filter(|back| back.until > view.now) {
                    plan.release(back, view.now);
                }
                if !view.changes.released.is_empty() {
                    plan.compress(view, &mut self.promises);
                }
                for &job in view.changes.arrived {
                    let start = plan.reserve(view, job);
                    self.promises.welcome(view, job, start);
                }
                plan
            }
        };
        self.start_due(view, &mut plan, decisions);
        self.plan = Some(plan);
    }

    fn copy(&self) -> Option<Box<dyn Policy + Send>> {
        Some(Box::new(self.clone()))
    }
}
