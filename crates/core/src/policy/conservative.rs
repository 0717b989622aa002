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

use crate::availability::Claim;
use crate::freedom::Freedoms;
use crate::ledger::{Holding, SeatNodes};
use crate::policy::{BuildContext, Decision, Policy, PolicyKind, Room, View};
use crate::units::{Instant, JobId};

mod changing;
mod openings;
mod promises;
mod seated;
mod steps;
mod timeline;

use changing::Changing;
use seated::{Seated, Starting};
use timeline::Timeline;

/// Conservative backfilling with every job at its nominal operating point.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conservative {
    /// What is free when, with running jobs and reservations taken out.
    plan: Option<Plan>,
    /// Room for the jobs whose time has come.
    due: Vec<JobId>,
}

/// Conservative backfilling, which has no parameters.
#[derive(Clone, Copy, Debug)]
pub struct ConservativeSpec;

impl PolicyKind for ConservativeSpec {
    fn name(&self) -> &str {
        "conservative"
    }

    fn about(&self) -> &str {
        "conservative backfilling"
    }

    fn usual(&self) -> Self {
        ConservativeSpec
    }

    fn build(&self, _: &BuildContext<'_>) -> Box<dyn Policy> {
        Box::new(Conservative::default())
    }

    fn minds_kinds(&self, _: Freedoms) -> bool {
        true
    }

    fn minds_limits(&self, _: Freedoms) -> bool {
        true
    }
}

/// What is free when.
#[derive(Clone, Debug)]
enum Plan {
    /// Under a limit that stays as it is.
    Steady(Box<Timeline>),
    /// While limits are to come.
    Changing(Box<Changing>),
    /// On nodes of several kinds, or shared ones.
    Seated(Box<Seated>),
}

impl Plan {
    fn of(view: &View<'_>) -> Self {
        if let Some(seating) = view.ledger.seating() {
            return Plan::Seated(Box::new(Seated::of(view.ledger, seating)));
        }
        match view.ledger.limits_to_come().is_empty() {
            true => Plan::Steady(Box::new(Timeline::of(view.ledger))),
            false => Plan::Changing(Box::new(Changing::of(view.ledger))),
        }
    }

    fn advance(&mut self, view: &View<'_>) {
        match self {
            Plan::Steady(timeline) => timeline.advance(view.now),
            Plan::Changing(changing) => changing.advance(view.now),
            Plan::Seated(seated) => seated.advance(view.ledger),
        }
    }

    /// A job gave back, before it was expected to.
    fn release(&mut self, back: &Holding, now: Instant) {
        match self {
            Plan::Steady(timeline) => timeline.release(back),
            Plan::Changing(changing) => changing.release(back, now),
            Plan::Seated(seated) => seated.release(back, now),
        }
    }

    /// Gives a job the earliest place in the schedule.
    fn reserve(&mut self, view: &View<'_>, job: JobId) {
        let claim = Claim::of(&view.nominal(job));
        match self {
            Plan::Steady(timeline) => timeline.reserve(job, &claim),
            Plan::Changing(changing) => changing.reserve(view, job, &claim),
            Plan::Seated(seated) => seated.reserve(view, job, &claim),
        }
    }

    /// Moves each waiting job, in the order of the queue, to the earliest time that is free for
    /// it.
    fn compress(&mut self, view: &View<'_>) {
        match self {
            Plan::Steady(timeline) => timeline.compress(),
            Plan::Changing(changing) => changing.compress(view),
            Plan::Seated(seated) => seated.compress(view),
        }
    }

    /// Whether it knows all who wait, but for those who just arrived. It does not if a job could not
    /// be started.
    fn is_complete(&self, view: &View<'_>) -> bool {
        match self {
            Plan::Steady(timeline) => {
                timeline.waiting() + view.changes.arrived.len() == view.queue.len()
            }
            Plan::Changing(_) | Plan::Seated(_) => true,
        }
    }

    /// Adds the waiting jobs whose time has come; says when that of the next comes.
    fn due(&mut self, now: Instant, due: &mut Vec<JobId>) -> Option<Instant> {
        match self {
            Plan::Steady(timeline) => timeline.due(due),
            Plan::Changing(changing) => changing.promises().due(now, due),
            Plan::Seated(seated) => seated.promises().due(now, due),
        }
    }

    /// A job whose time has come starts, or goes on waiting.
    fn settle(&mut self, job: JobId, starts: bool) {
        match self {
            Plan::Steady(timeline) if starts => timeline.start(job),
            Plan::Steady(_) => (),
            Plan::Changing(changing) => changing.promises().settle(job, starts),
            Plan::Seated(seated) => seated.promises().settle(job, starts),
        }
    }

    /// The nodes that are reserved for a job, where that matters.
    fn nodes_of(&self, job: JobId) -> SeatNodes {
        match self {
            Plan::Steady(_) | Plan::Changing(_) => SeatNodes::new(),
            Plan::Seated(seated) => seated.nodes_of(job),
        }
    }
}

impl Conservative {
    /// Starts every job whose time has come, in the order of the queue, and asks to be woken for
    /// the next.
    fn start_due(&mut self, view: &View<'_>, plan: &mut Plan, decisions: &mut Vec<Decision>) {
        self.due.clear();
        let wake = plan.due(view.now, &mut self.due);
        self.due.sort_unstable();
        let mut room = Room::of_machine(view);
        let mut starting = Starting::of(view.ledger);
        for &job in &self.due {
            let (point, nodes) = (view.nominal(job), plan.nodes_of(job));
            // If it is not admitted, a job of this instant still holds what the schedule counts as
            // given back; it ends before the clock moves on, and then the policy is asked again.
            let is_there = |starting: &Starting| starting.has(view.now, job, &point, &nodes);
            let starts = room.admits(&point) && starting.as_ref().is_none_or(is_there);
            plan.settle(job, starts);
            if !starts {
                continue;
            }
            room.take(&point);
            decisions.push(match &mut starting {
                None => Decision::Start { job, point },
                Some(starting) => {
                    starting.take(view.now, job, &point, &nodes);
                    Decision::StartIn { job, point, nodes: nodes.into_iter().collect() }
                }
            });
        }
        decisions.extend(wake.map(Decision::WakeAt));
    }
}

impl Policy for Conservative {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        // A running job past its time still holds what the schedule counts as free.
        let first = view.ledger.running().iter().next();
        let overdue = first.is_some_and(|first| first.until < view.now);
        let plan = self.plan.take().filter(|_| !view.changes.machine && !overdue);
        let mut plan = match plan.filter(|plan| plan.is_complete(view)) {
            None => {
                let mut plan = Plan::of(view);
                view.queue.iter().for_each(|job| plan.reserve(view, job));
                plan
            }
            Some(mut plan) => {
                plan.advance(view);
                for back in view.changes.released.iter().filter(|back| back.until > view.now) {
                    plan.release(back, view.now);
                }
                if !view.changes.released.is_empty() {
                    plan.compress(view);
                }
                view.changes.arrived.iter().for_each(|job| plan.reserve(view, *job));
                plan
            }
        };
        self.start_due(view, &mut plan, decisions);
        self.plan = Some(plan);
    }

    fn forget(&mut self, _job: JobId) -> bool {
        self.plan = None;
        true
    }

    fn copy(&self) -> Option<Box<dyn Policy + Send>> {
        Some(Box::new(self.clone()))
    }
}
