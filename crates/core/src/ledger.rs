//! The ledger records which jobs hold which nodes and power, and until when. It cannot be overdrawn.
//!
//! Every job, simulated or live, gets its nodes and watts here and nowhere else. A claim that
//! does not fit is a typed [`Violation`] and changes nothing. All sums are exact integers; in
//! debug builds [`Ledger::check`] adds everything up again after every event.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::budget::Budget;
use crate::freedom::Freedom;
use crate::machine::Machine;
use crate::model::OperatingPoint;
use crate::units::{Instant, JobId, NodeId, Span, Watts};

mod audit;
mod energy;
pub(crate) mod feeds;
pub(crate) mod free_nodes;
mod live;
mod named;
mod placement;
mod running;
mod seats;
mod switching;
#[cfg(test)]
mod tests;
mod violation;

pub use energy::EnergyAccount;
pub use feeds::BelowFeed;
use feeds::Feeding;
pub(crate) use live::FoundOn;
use placement::Placement;
pub use running::{Holding, Running, Vacancy};
pub(crate) use seats::{ByNode, Foreseen, Taken, Wanted};
pub use seats::{SeatNodes, Seating};
use switching::Draws;
pub use switching::{SwitchState, Switched};
pub use violation::Violation;

/// Nodes and power, held and free.
#[derive(Clone)]
pub struct Ledger {
    now: Instant,
    free_nodes: u32,
    total_nodes: u32,
    /// Nodes that are out of service: down, or switched off.
    down_nodes: u32,
    switched: Switched,
    draws: Draws,
    budget: Budget,
    /// The limit in force now.
    limit: Watts,
    /// When the next limit comes into force.
    next_limit: Instant,
    /// The present power of the machine without jobs.
    base_power: Watts,
    /// What jobs hold, without the base power.
    held: Watts,
    running: Running,
    /// When each job is expected to give back what it holds; [`Instant::NEVER`] if it holds
    /// nothing.
    until: Vec<Instant>,
    /// Which nodes are whose, where that matters.
    placement: Option<Placement>,
    /// What is held below the feeds, where these have limits. Then it is known which nodes are whose.
    feeds: Option<Box<Feeding>>,
    /// What is free of each node, where nodes are of several kinds or jobs share them.
    seating: Option<Arc<Seating>>,
    /// Jobs that stand still, with the power that they will claim when they go on.
    suspended: BTreeMap<JobId, Watts>,
    /// The energy of a period, where it is counted.
    energy: Option<Box<EnergyAccount>>,
    peak: Watts,
}

impl Ledger {
    /// An empty machine under a budget.
    pub fn new(machine: &Machine, budget: Budget) -> Self {
        let feeds = Feeding::of(machine, &budget);
        let mut ledger = Ledger {
            now: Instant::ZERO,
            free_nodes: machine.nodes,
            total_nodes: machine.nodes,
            down_nodes: 0,
            switched: Switched::default(),
            draws: Draws::of(machine),
            limit: budget.at(Instant::ZERO),
            next_limit: Instant::ZERO,
            budget,
            base_power: machine.floor(),
            held: Watts::ZERO,
            running: Running::default(),
            until: Vec::new(),
            placement: feeds.is_some().then(|| Placement::new(machine.nodes)),
            feeds,
            seating: None,
            suspended: BTreeMap::new(),
            energy: None,
            peak: machine.floor(),
        };
        ledger.set_clock(Instant::ZERO);
        ledger
    }

    /// The same, also keeping track of which nodes each job is on, so that nodes can fail and jobs can
    /// be given nodes by name.
    pub fn with_placement(machine: &Machine, budget: Budget) -> Self {
        let placement = Some(Placement::new(machine.nodes));
        Ledger { placement, ..Ledger::new(machine, budget) }
    }

    /// Moves the clock. Time does not go back.
    #[inline]
    pub fn advance(&mut self, now: Instant) {
        if now > self.now {
            self.set_clock(now);
        }
    }

    /// The limit in force goes with the clock, so that nothing that happens first at an instant
    /// can use the limit of the instant before.
    #[inline]
    fn set_clock(&mut self, now: Instant) {
        self.now = now;
        if let Some(account) = &mut self.energy {
            account.advance(now);
        }
        if now >= self.next_limit {
            self.limit = self.budget.at(now);
            self.next_limit =
                self.budget.changes_after(now).first().map_or(Instant::NEVER, |change| change.0);
        }
    }

    /// Gives a job what the operating point says, until the point's time has passed.
    #[inline]
    pub fn start(&mut self, job: JobId, point: &OperatingPoint) -> Result<(), Violation> {
        if self.seating.is_some() {
            return self.start_in(job, point, None);
        }
        let holding = self.claim(job, point)?;
        if self.feeds.is_some() {
            return self.start_fed(holding);
        }
        self.hold(holding);
        if let Some(placement) = &mut self.placement {
            placement.take(job, point.nodes);
        }
        Ok(())
    }

    /// The same on nodes of which it has what it asks for: on these, or else on the first.
    #[inline(never)]
    pub fn start_in(
        &mut self,
        job: JobId,
        point: &OperatingPoint,
        nodes: Option<&[NodeId]>,
    ) -> Result<(), Violation> {
        let holding = self.claim(job, point)?;
        let nodes = self.nodes_for(&holding, nodes)?;
        self.take_seats(job, nodes);
        self.hold(holding);
        Ok(())
    }

    /// What a job that holds nothing would hold, if there is that much.
    #[inline]
    fn claim(&self, job: JobId, point: &OperatingPoint) -> Result<Holding, Violation> {
        if self.holds(job) {
            return Err(Violation::AlreadyRunning { job });
        }
        let until = self.until(point.time);
        self.find_room(job, point.nodes, point.power, until)?;
        self.can_pay(job, point.power, until)?;
        Ok(Holding { until, job, nodes: point.nodes, power: point.power })
    }

    /// When that time has passed; not 'never', which means that nothing is held.
    #[inline]
    fn until(&self, time: Span) -> Instant {
        (self.now + time).min(Instant::LAST)
    }

    /// Whether so much can be had now and under every limit until then.
    #[inline]
    fn find_room(
        &self,
        job: JobId,
        nodes: u32,
        power: Watts,
        until: Instant,
    ) -> Result<(), Violation> {
        if nodes > self.free_nodes {
            return Err(Violation::Nodes { job, asked: nodes, free: self.free_nodes });
        }
        let free = self.free_power();
        if power > free {
            return Err(Violation::Power { job, asked: power, free, at: self.now });
        }
        match self.first_shortage(power, until) {
            Some((at, free)) => Err(Violation::Power { job, asked: power, free, at }),
            None => Ok(()),
        }
    }

    /// Gives a job that runs what another operating point says instead, for so long from now on.
    /// What it holds already counts towards that. Who comes to hold no more of anything is never
    /// refused: less is what one asks for when there is too little.
    pub fn change(
        &mut self,
        job: JobId,
        point: &OperatingPoint,
        left: Span,
    ) -> Result<Holding, Violation> {
        self.goes_on(job)?;
        let before = self.take_back(job)?;
        match self.try_change(job, point, left, &before) {
            Ok(()) => Ok(before),
            Err(violation) => {
                self.hold(before);
                Err(violation)
            }
        }
    }

    fn try_change(
        &mut self,
        job: JobId,
        point: &OperatingPoint,
        left: Span,
        before: &Holding,
    ) -> Result<(), Violation> {
        if self.seating.is_some() && point.nodes != before.nodes {
            return Err(Violation::NotAllowed { job, needed: Freedom::Resizes });
        }
        let is_less = point.nodes <= before.nodes && point.power <= before.power;
        let until = self.until(left);
        if !is_less {
            self.find_room(job, point.nodes, point.power, until)?;
        }
        if self.feeds.is_some() {
            self.can_go_on(before, point, until)?;
        }
        self.can_pay(job, point.power, until)?;
        if let Some(placement) = &mut self.placement {
            match point.nodes.checked_sub(before.nodes) {
                Some(more) => placement.take(job, more),
                None => placement.give_some(job, before.nodes - point.nodes),
            }
        }
        self.hold(Holding { until, job, nodes: point.nodes, power: point.power });
        Ok(())
    }

    /// Takes back what a job holds; its nodes stay where they are.
    fn take_back(&mut self, job: JobId) -> Result<Holding, Violation> {
        if !self.holds(job) {
            return Err(Violation::HoldsNothing { job });
        }
        let until = std::mem::replace(&mut self.until[job.index()], Instant::NEVER);
        let holding = self.running.remove(until, job).ok_or(Violation::HoldsNothing { job })?;
        self.free_nodes += holding.nodes;
        self.held -= holding.power;
        if self.feeds.is_some() {
            self.note_unfed(job);
        }
        if self.seating.is_some() {
            self.note_unseated(&holding);
        }
        if let Some(account) = &mut self.energy {
            account.finish(job);
        }
        Ok(holding)
    }

    /// Lets a job hold this.
    #[inline]
    fn hold(&mut self, holding: Holding) {
        let Holding { until, job, nodes, power } = holding;
        self.free_nodes -= nodes;
        self.held += power;
        if job.index() >= self.until.len() {
            self.until.resize(job.index() + 1, Instant::NEVER);
        }
        self.until[job.index()] = until;
        if let Some(account) = &mut self.energy {
            account.begin(job, power, until);
        }
        if self.feeds.is_some() {
            self.note_fed(job, power);
        }
        if self.seating.is_some() {
            self.note_seated(holding);
        }
        self.running.insert(holding);
        self.peak = self.peak.max(self.power());
    }

    /// Takes back what a job holds.
    #[inline]
    pub(crate) fn release(&mut self, job: JobId) -> Result<Holding, Violation> {
        let holding = self.take_back(job)?;
        if let Some(power) = self.suspended.remove(&job) {
            self.keep(job, power, false);
        }
        if let Some(placement) = &mut self.placement {
            placement.give(job);
        }
        if self.seating.is_some() {
            self.give_seats(job);
        }
        Ok(holding)
    }

    /// Whether a job holds anything.
    #[inline]
    pub fn holds(&self, job: JobId) -> bool {
        self.until.get(job.index()).is_some_and(|until| *until != Instant::NEVER)
    }

    /// What a job holds, if it holds anything.
    pub fn held_by(&self, job: JobId) -> Option<&Holding> {
        self.running.find(*self.until.get(job.index())?, job)
    }

    /// The present instant.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Nodes no job holds.
    #[inline]
    pub fn free_nodes(&self) -> u32 {
        self.free_nodes
    }

    /// Nodes the machine has, in service or not.
    pub fn total_nodes(&self) -> u32 {
        self.total_nodes
    }

    /// Nodes that are in service, held or free.
    pub fn nodes_in_service(&self) -> u32 {
        self.total_nodes - self.down_nodes
    }

    /// Power no job holds under the limit in force now.
    #[inline]
    pub fn free_power(&self) -> Watts {
        self.limit.saturating_sub(self.power())
    }

    /// Power that counts as drawn now: what jobs hold and what the machine draws anyway.
    #[inline]
    pub fn power(&self) -> Watts {
        self.base_power + self.held
    }

    /// Power that jobs hold now.
    pub fn held(&self) -> Watts {
        self.held
    }

    /// The limit in force now.
    pub fn limit(&self) -> Watts {
        self.limit
    }

    /// What the machine draws without any job, as its nodes are now.
    pub fn base_power(&self) -> Watts {
        self.base_power
    }

    /// The lowest limit from now on until then, the one in force included.
    #[inline]
    pub fn lowest_limit(&self, until: Instant) -> Watts {
        if self.next_limit >= until { self.limit } else { self.budget.lowest(self.now, until) }
    }

    /// The power jobs may hold in all under a limit of the budget.
    pub fn for_jobs(&self, limit: Watts) -> Watts {
        limit.saturating_sub(self.base_power)
    }

    /// The limits that will come into force, in order.
    #[inline]
    pub fn limits_to_come(&self) -> &[(Instant, Watts)] {
        if self.next_limit == Instant::NEVER {
            return &[];
        }
        self.budget.changes_after(self.now)
    }

    /// The most power that jobs can hold in all for so long, from now or from some later time on, with every
    /// node switched on.
    #[inline]
    pub fn most_for_jobs(&self, time: Span) -> Watts {
        let limit = match self.limits_to_come() {
            [] => self.limit,
            _ => self.budget.largest_for(self.now, time),
        };
        limit.saturating_sub(self.floor())
    }

    /// The power that jobs can hold in all at every time from now on, with every node switched on: what draws no more
    /// can always be fed, whenever it starts and however long it takes.
    #[inline]
    pub fn least_for_jobs(&self) -> Watts {
        // Whatever a job draws, it may be too much for the feeds of its nodes.
        if self.feeds.is_some() {
            return Watts::ZERO;
        }
        self.lowest_limit(Instant::NEVER).saturating_sub(self.floor())
    }

    /// The budget with its future limits.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The allocations of running jobs, by expected end.
    #[inline]
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// The most that was ever handed out, with what the machine draws anyway.
    pub(crate) fn peak(&self) -> Watts {
        self.peak
    }

    /// The first limit to come, before `until`, under which so much power is not free, and what
    /// is.
    fn first_shortage(&self, power: Watts, until: Instant) -> Option<(Instant, Watts)> {
        let lowest = |from| self.for_jobs(self.budget.lowest(from, until));
        // What is held only falls: who has room beside all of it has room.
        let mut from = self.next_limit;
        if from >= until || power <= lowest(from).saturating_sub(self.held) {
            return None;
        }
        let mut held = self.held;
        let ends = self.running.iter().map(|holding| (holding.until, holding.power));
        for (back, freed) in ends.chain([(until, Watts::ZERO)]) {
            let needed = self.base_power + held + power;
            if back > from
                && let Some(at) = self.budget.first_below(needed, from, back.min(until))
            {
                return Some((at, self.for_jobs(self.budget.at(at)).saturating_sub(held)));
            }
            (from, held) = (from.max(back), held - freed);
        }
        None
    }
}
