//! Utility on machines whose nodes are of one type, for jobs of several nodes, under a power limit.
//!
//! The paper maps serial tasks to machines of several types. Here a job of n nodes is a gang: it starts
//! when n nodes and its watts are free at once, and takes n times the energy. That is not in the paper.
//! What is left of the choice of a machine and a P-state is the choice of a point of the job's menu.
//!
//! What a job is worth follows from its request: four times its priority weight, for twice the requested
//! time after its submission; then half of it after each requested time. Less than an hour counts as an
//! hour. It is worth what it is worth when it is believed to be complete.
//!
//! A turn picks the best of all waiting jobs and their points that fit now, starts it, and again, until
//! nothing fits. Nobody is planned ahead: this is the paper's polled environment, asked at every turn. What
//! is best, the heuristics say:
//!
//! | heuristic | which job | at which point |
//! |---|---|---|
//! | `random` | in an order that is drawn once | any that fits |
//! | `fcfs-p0` | the first arrival that fits | as asked for |
//! | `fcfs-all` | the first arrival that fits | the fastest that fits |
//! | `lcfs-p0`, `lcfs-all` | the last arrival that fits | the same |
//! | `prioritized-…` | the same, larger starting worth first | the same |
//! | `max-utility` | job and point of the largest worth | |
//! | `max-upt` | of the largest worth for each second of a node | |
//! | `max-upe` | of the largest worth for each joule | |
//!
//! A job that no limit can ever feed as asked for has the fastest point that can be fed in its place. Of
//! equal worth is best what is complete first, then who arrived first.
//!
//! **Nobody waits for ever.** Who cannot earn the threshold any more is dropped, but only where that is
//! [allowed](crate::freedom::Freedom::Drops). Otherwise it is worth little and comes late. Small jobs could
//! pass a large one without end, so once a job is worth nothing at all, to the millionth, it is owed its
//! start: the first to arrive of these starts before everybody else, or has a reservation as in EASY, which
//! nobody may delay. With the usual weight that is a day after its submission, or 24 times the time it
//! asked for.
//!
//! **Energy** only paces ([`pace`]), where it is counted at all.
//!
//! A turn costs what differs among the jobs, not how many wait ([`waiting`]).

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

mod bid;
mod pace;
#[cfg(test)]
mod tests;
mod waiting;

use smallvec::SmallVec;

use bid::{Bid, Rule};
use pace::Pace;
use waiting::Waiting;

use super::spec::UtilitySpec;
use crate::freedom::Freedom;
use crate::ledger::Holding;
use crate::model::{OperatingPoint, TimedPoints};
use crate::policy::slowable::is_steady;
use crate::policy::{Ahead, Decision, DropReason, Policy, Room, View};
use crate::units::{Instant, JobId};

pub use bid::worth;

/// Something that happens to a job at a time, soonest on top.
type Alarms = BinaryHeap<Reverse<(Instant, JobId)>>;

/// Starts gangs for the most utility within what is free.
#[derive(Clone)]
pub struct Gangs {
    spec: UtilitySpec,
    rule: Rule,
    waiting: Waiting,
    /// When waiting jobs cannot earn enough any more; those that have left are passed over.
    hopeless_at: Alarms,
    /// When they are worth nothing any more.
    spent_at: Alarms,
    /// Waiting jobs that are worth nothing any more.
    spent: BTreeSet<JobId>,
    /// The job that had the reservation in the last turn.
    promised: Option<JobId>,
    /// When somebody may start whom only the pace of energy kept from it.
    resumes: Option<Instant>,
    /// The bids of those that arrived in this turn.
    arrived: Vec<Bid>,
    /// Room to work in.
    candidates: BinaryHeap<Bid>,
}

impl Gangs {
    /// A policy with these parameters.
    pub fn new(spec: UtilitySpec) -> Self {
        Gangs {
            spec,
            rule: Rule::of(&spec),
            waiting: Waiting::default(),
            hopeless_at: Alarms::new(),
            spent_at: Alarms::new(),
            spent: BTreeSet::new(),
            promised: None,
            resumes: None,
            arrived: Vec::new(),
            candidates: BinaryHeap::new(),
        }
    }

    /// Takes in who arrived. Says whether all that wait had to be taken in anew.
    fn welcome(&mut self, view: &View<'_>) -> bool {
        // How long a limit lasts that could feed a job gets less while others are to come.
        let limits_change = view.changes.machine || !is_steady(view);
        let is_outdated = limits_change && self.rule.heeds_limits();
        self.arrived.clear();
        if !is_outdated {
            for &job in view.changes.arrived {
                // A job may have come and gone, and come again.
                if view.queue.contains(job) && !self.waiting.has(job) {
                    let bids = self.take_in(view, job).into_iter();
                    self.arrived.extend(bids.map(|bid| self.waiting.placed(bid)));
                }
            }
        }
        // A start that was refused leaves a job waiting that was thought to be gone.
        let is_complete = !is_outdated && self.waiting.len() == view.queue.len();
        if !is_complete {
            *self =
                Gangs { promised: self.promised, resumes: self.resumes, ..Gangs::new(self.spec) };
            view.queue.iter().for_each(|job| _ = self.take_in(view, job));
        }
        !is_complete
    }

    /// A job waits from now on, with these bids.
    fn take_in(&mut self, view: &View<'_>, id: JobId) -> SmallVec<[Bid; 8]> {
        let job = view.job(id);
        let worth = worth(job);
        let ways = view.model.ways(id, job);
        let bids = self.rule.bids(view, id, &ways);
        self.waiting.insert(id, &ways, bids.iter().copied());
        self.spent_at.push(Reverse((job.submit + worth.spent(), id)));
        if view.model.freedoms(id, job).has(Freedom::Drops) {
            let least = ways.iter().map(|way| way.believed.millis()).min().unwrap_or(0);
            let too_late = worth.latest(self.spec.drop).map_or(Instant::ZERO, |latest| {
                let too_old = (job.submit + latest).millis().saturating_add(1);
                Instant::from_millis(too_old.saturating_sub(least))
            });
            self.hopeless_at.push(Reverse((too_late, id)));
        }
        bids
    }

    fn leave(&mut self, job: JobId) {
        self.waiting.remove(job);
        self.spent.remove(&job);
    }

    /// Drops those that could not earn enough any more, even if they started now at their fastest.
    fn drop_hopeless(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        while let Some(job) = due(&mut self.hopeless_at, view.now) {
            if self.waiting.has(job) {
                self.leave(job);
                decisions.push(Decision::Drop { job, reason: DropReason::LowUtility });
            }
        }
    }

    /// Starts those that are worth nothing any more while they fit, the first to arrive first; returns the
    /// first that does not, which has its reservation in the room from now on.
    fn serve_spent(&mut self, turn: &mut Turn<'_, '_>) -> Option<JobId> {
        while let Some(job) = due(&mut self.spent_at, turn.view.now) {
            if self.waiting.has(job) {
                self.spent.insert(job);
            }
        }
        let mut started: Vec<Holding> = Vec::new();
        while let Some(job) = self.spent.first().copied() {
            let view = turn.view;
            let ways = view.model.ways(job, view.job(job));
            let bids = self.rule.bids(view, job, &ways).into_iter();
            turn.room.ask_about(job);
            let fitting: SmallVec<[Bid; 8]> =
                bids.filter(|bid| turn.room.admits(&ways[bid.place()].point)).collect();
            let paid = fitting.iter().filter(|bid| turn.allows(&ways, bid.place()));
            let Some(bid) = paid.max() else {
                if !fitting.is_empty() {
                    // It waits for energy, and room that is kept would be of no use.
                    return None;
                }
                turn.room.look_ahead(view);
                let ahead = Ahead::of(view, &turn.room, &started);
                let point = ways[bid::fed(view, job, &ways)].point;
                let promised = ahead.vacancy(&point).map(|then| (point, then));
                turn.room.promise(view, promised);
                return Some(job);
            };
            let point = ways[bid.place()].point;
            let OperatingPoint { nodes, power, time, .. } = point;
            started.push(Holding { until: view.now + time, job, nodes, power });
            Holding::sort(&mut started);
            self.start(job, point, turn);
        }
        None
    }

    /// Starts the job that was asked about last.
    fn start(&mut self, job: JobId, point: OperatingPoint, turn: &mut Turn<'_, '_>) {
        let decision = turn.room.start(job, point);
        turn.decisions.push(decision);
        if let Some(pace) = &mut turn.pace {
            pace.spend(&point);
        }
        self.leave(job);
    }

    /// Starts the best of all that fit, again and again. If nothing came free, only those can fit that
    /// arrived.
    fn fill(&mut self, turn: &mut Turn<'_, '_>, arrived_only: bool) {
        let view = turn.view;
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        if !arrived_only {
            self.waiting.best_of_each(view, &self.rule, &turn.room, &mut candidates);
        } else {
            candidates.extend(self.arrived.drain(..));
        }
        while let Some(bid) = candidates.pop() {
            // There is only less room as a turn goes on.
            let Some(longest) = self.waiting.fits_for(&bid, &turn.room) else { continue };
            if self.waiting.has(bid.job) {
                let fits = bid.time <= longest;
                turn.room.ask_about(bid.job);
                let ways = fits.then(|| view.model.ways(bid.job, view.job(bid.job)));
                let ways = ways.filter(|ways| {
                    turn.room.admits(&ways[bid.place()].point) && turn.allows(ways, bid.place())
                });
                match ways {
                    Some(ways) => self.start(bid.job, ways[bid.place()].point, turn),
                    None if !arrived_only => self.waiting.set_aside(&bid),
                    None => {}
                }
            }
            if !arrived_only {
                candidates.extend(self.waiting.best_like(view, &self.rule, &bid));
            }
        }
        self.waiting.put_back();
        self.candidates = candidates;
    }
}

/// The next job whose time has come.
fn due(alarms: &mut Alarms, now: Instant) -> Option<JobId> {
    let is_due = alarms.peek().is_some_and(|Reverse((at, _))| *at <= now);
    is_due.then(|| alarms.pop()).flatten().map(|Reverse((_, job))| job)
}

/// What changes as a turn goes on.
struct Turn<'a, 'b> {
    view: &'a View<'a>,
    room: Room,
    pace: Option<Pace>,
    decisions: &'b mut Vec<Decision>,
}

impl Turn<'_, '_> {
    /// Whether the pace of energy allows a job to start now.
    fn allows(&mut self, ways: &TimedPoints, place: usize) -> bool {
        self.pace.as_mut().is_none_or(|pace| pace.allows(ways, place))
    }
}

impl Policy for Gangs {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let is_new = self.welcome(view);
        self.drop_hopeless(view, decisions);
        let pace = Pace::of(view, self.spec.filter);
        let mut turn = Turn { view, room: Room::of(view), pace, decisions };
        let promised = self.serve_spent(&mut turn);
        let is_due = self.resumes.is_some_and(|at| at <= view.now);
        // Whoever was refused still is, if nothing came free and room is kept for the same job. Where the
        // budget changes as well, a reservation may have moved.
        let arrived_only = view.changes.nothing_freed()
            && !is_new
            && !is_due
            && promised == self.promised
            && (promised.is_none() || !turn.room.is_changing());
        self.promised = promised;
        self.fill(&mut turn, arrived_only);
        if !arrived_only {
            self.resumes = None;
        }
        if let Some(pace) = turn.pace.filter(Pace::has_refused) {
            let resumes = pace.resumes(self.spec.every);
            self.resumes = Some(resumes);
            decisions.push(Decision::WakeAt(resumes));
        }
    }

    fn forget(&mut self, job: JobId) -> bool {
        self.leave(job);
        // It may have been promised its start.
        self.promised = None;
        true
    }

    fn copy(&self) -> Option<Box<dyn Policy + Send>> {
        Some(Box::new(self.clone()))
    }
}
