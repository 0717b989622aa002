//! The ledger: nodes and power held, by whom and until when. It cannot be overdrawn.
//!
//! Every job, simulated or live, gets its nodes and watts here and nowhere else. A claim that
//! does not fit is a typed [`Violation`] and changes nothing. All sums are exact integers; in
//! debug builds [`Ledger::check`] adds everything up again after every event.

use crate::budget::Budget;
use crate::machine::Machine;
use crate::model::OperatingPoint;
use crate::units::{Instant, JobId, NodeId, Span, Watts};

mod placement;
mod running;

use placement::Placement;
pub use running::{Holding, Running, Vacancy};

/// Nodes and power, held and free.
#[derive(Clone)]
pub struct Ledger {
    now: Instant,
    free_nodes: u32,
    total_nodes: u32,
    /// Nodes that are out of service.
    down_nodes: u32,
    budget: Budget,
    /// The limit in force now.
    limit: Watts,
    /// When the next limit comes into force.
    next_limit: Instant,
    base_power: Watts,
    /// What jobs hold, without the base power.
    held: Watts,
    running: Running,
    /// When each job is expected to give back what it holds; [`Instant::NEVER`] if it holds
    /// nothing.
    until: Vec<Instant>,
    /// Which nodes are whose, where that matters.
    placement: Option<Placement>,
    peak: Watts,
}

/// A claim that cannot be met. The ledger is as it was before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The job does not wait: it is unknown, runs already, or has ended.
    #[error("{job} was to start, but it is not waiting")]
    NotWaiting {
        /// Which job.
        job: JobId,
    },
    /// The job holds something already.
    #[error("{job} was to start, but it runs already")]
    AlreadyRunning {
        /// Which job.
        job: JobId,
    },
    /// The model does not offer this operating point to the job.
    #[error("{job} was to run on {nodes} nodes drawing {power}, which is not on its menu")]
    NotOnMenu {
        /// Which job.
        job: JobId,
        /// The nodes claimed.
        nodes: u32,
        /// The power claimed.
        power: Watts,
    },
    /// There are not enough free nodes.
    #[error("{job} was to get {asked} nodes, but {free} are free")]
    Nodes {
        /// Which job.
        job: JobId,
        /// Nodes claimed.
        asked: u32,
        /// Nodes free.
        free: u32,
    },
    /// There is not enough free power, now or later in the job's life.
    #[error("{job} was to get {asked}, but at {at} only {free} are free")]
    Power {
        /// Which job.
        job: JobId,
        /// Power claimed.
        asked: Watts,
        /// Power free.
        free: Watts,
        /// When.
        at: Instant,
    },
    /// The job holds nothing.
    #[error("{job} was to give back or change what it holds, but it holds nothing")]
    HoldsNothing {
        /// Which job.
        job: JobId,
    },
    /// A policy changed a job that runs without having said that it does such things.
    #[error("{job} was to change, but the policy is not one that changes jobs while they run")]
    Unannounced {
        /// Which job.
        job: JobId,
    },
    /// A policy asked to be woken at a time that has passed.
    #[error("asked to be woken at {at}, which is not after {now}")]
    WakeInThePast {
        /// The time asked for.
        at: Instant,
        /// The time it is.
        now: Instant,
    },
}

impl Ledger {
    /// An empty machine under a budget.
    pub fn new(machine: &Machine, budget: Budget) -> Self {
        let mut ledger = Ledger {
            now: Instant::ZERO,
            free_nodes: machine.nodes,
            total_nodes: machine.nodes,
            down_nodes: 0,
            limit: budget.at(Instant::ZERO),
            next_limit: Instant::ZERO,
            budget,
            base_power: machine.base_power,
            held: Watts::ZERO,
            running: Running::default(),
            until: Vec::new(),
            placement: None,
            peak: machine.base_power,
        };
        ledger.set_clock(Instant::ZERO);
        ledger
    }

    /// The same, also keeping track of which nodes each job is on, so that nodes can fail.
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
        if now >= self.next_limit {
            self.limit = self.budget.at(now);
            self.next_limit =
                self.budget.changes_after(now).first().map_or(Instant::NEVER, |change| change.0);
        }
    }

    /// Gives a job what the operating point says, until the point's time has passed.
    #[inline]
    pub fn start(&mut self, job: JobId, point: &OperatingPoint) -> Result<(), Violation> {
        if self.holds(job) {
            return Err(Violation::AlreadyRunning { job });
        }
        if point.nodes > self.free_nodes {
            return Err(Violation::Nodes { job, asked: point.nodes, free: self.free_nodes });
        }
        let free = self.free_power();
        if point.power > free {
            return Err(Violation::Power { job, asked: point.power, free, at: self.now });
        }
        // One millisecond short of 'never', which means that nothing is held.
        let until = (self.now + point.time).min(Instant::from_millis(u64::MAX - 1));
        if let Some((at, free)) = self.first_shortage(point.power, until) {
            return Err(Violation::Power { job, asked: point.power, free, at });
        }

        self.hold(Holding { until, job, nodes: point.nodes, power: point.power });
        self.peak = self.peak.max(self.power());
        if let Some(placement) = &mut self.placement {
            placement.take(job, point.nodes);
        }
        Ok(())
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
        let is_less = point.nodes <= before.nodes && point.power <= before.power;
        let until = (self.now + left).min(Instant::from_millis(u64::MAX - 1));
        if !is_less {
            if point.nodes > self.free_nodes {
                return Err(Violation::Nodes { job, asked: point.nodes, free: self.free_nodes });
            }
            let free = self.free_power();
            if point.power > free {
                return Err(Violation::Power { job, asked: point.power, free, at: self.now });
            }
            if let Some((at, free)) = self.first_shortage(point.power, until) {
                return Err(Violation::Power { job, asked: point.power, free, at });
            }
        }
        if let Some(placement) = &mut self.placement {
            match point.nodes.checked_sub(before.nodes) {
                Some(more) => placement.take(job, more),
                None => placement.give_some(job, before.nodes - point.nodes),
            }
        }
        self.hold(Holding { until, job, nodes: point.nodes, power: point.power });
        self.peak = self.peak.max(self.power());
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
        self.running.insert(holding);
    }

    /// Takes back what a job holds.
    #[inline]
    pub fn release(&mut self, job: JobId) -> Result<Holding, Violation> {
        let holding = self.take_back(job)?;
        if let Some(placement) = &mut self.placement {
            placement.give(job);
        }
        Ok(holding)
    }

    /// The job that holds a node, where placement is known.
    pub fn holder(&self, node: NodeId) -> Option<JobId> {
        self.placement.as_ref()?.holder(node)
    }

    /// Takes a free node out of service; says whether it was in service. A node that a job holds
    /// stays: release the job first.
    pub fn take_down(&mut self, node: NodeId) -> bool {
        let taken = self.placement.as_mut().is_some_and(|placement| placement.take_down(node));
        if taken {
            self.free_nodes -= 1;
            self.down_nodes += 1;
        }
        taken
    }

    /// Puts a node back into service; says whether it was out.
    pub fn bring_up(&mut self, node: NodeId) -> bool {
        let brought = self.placement.as_mut().is_some_and(|placement| placement.bring_up(node));
        if brought {
            self.free_nodes += 1;
            self.down_nodes -= 1;
        }
        brought
    }

    /// Whether a job holds anything.
    #[inline]
    pub fn holds(&self, job: JobId) -> bool {
        self.until.get(job.index()).is_some_and(|until| *until != Instant::NEVER)
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

    /// The most power that jobs can hold in all for so long, from now or from some later time on.
    #[inline]
    pub fn most_for_jobs(&self, time: Span) -> Watts {
        if self.limits_to_come().is_empty() {
            return self.for_jobs(self.limit);
        }
        self.for_jobs(self.budget.largest_for(self.now, time))
    }

    /// The budget with its future limits.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Who holds what, by the time it is expected back.
    #[inline]
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// The most that was ever handed out, with what the machine draws anyway.
    pub fn peak(&self) -> Watts {
        self.peak
    }

    /// The first limit to come, before `until`, under which so much power is not free, and what
    /// is.
    fn first_shortage(&self, power: Watts, until: Instant) -> Option<(Instant, Watts)> {
        let mut holders = self.running.iter().peekable();
        let mut held = self.held;
        for &(at, limit) in self.limits_to_come().iter().take_while(|change| change.0 < until) {
            while let Some(holding) = holders.next_if(|holding| holding.until <= at) {
                held -= holding.power;
            }
            let free = self.for_jobs(limit).saturating_sub(held);
            if power > free {
                return Some((at, free));
            }
        }
        None
    }

    /// Adds everything up again and says what does not agree.
    pub fn check(&self) -> Result<(), String> {
        let (mut nodes, mut power, mut count) = (0u32, Watts::ZERO, 0);
        let mut previous = None;
        for holding in self.running.iter() {
            nodes += holding.nodes;
            power += holding.power;
            count += 1;
            if previous.replace(holding.until).is_some_and(|earlier| earlier > holding.until) {
                return Err(format!("{} is out of order among the running jobs", holding.job));
            }
            if self.until.get(holding.job.index()) != Some(&holding.until) {
                return Err(format!("{} runs, but is not known to hold anything", holding.job));
            }
        }
        if count != self.running.len() {
            return Err(format!("{count} jobs run, but {} are counted", self.running.len()));
        }
        let counted =
            nodes.checked_add(self.free_nodes).and_then(|n| n.checked_add(self.down_nodes));
        if counted != Some(self.total_nodes) {
            return Err(format!(
                "{nodes} nodes held, {} free and {} down do not make {}",
                self.free_nodes, self.down_nodes, self.total_nodes
            ));
        }
        if power != self.held {
            return Err(format!("jobs hold {power}, but the ledger says {}", self.held));
        }
        self.placement.as_ref().map_or(Ok(()), |placement| placement.check(&self.running))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(nodes: u32, watts: u32, seconds: u32) -> OperatingPoint {
        OperatingPoint {
            nodes,
            cores: 1,
            cap: Watts::from_watts(100),
            time: Span::from_secs(seconds),
            power: Watts::from_watts(watts),
        }
    }

    fn ledger(budget: Budget) -> Ledger {
        Ledger::with_placement(&Machine::of_processors(10).unwrap(), budget)
    }

    #[test]
    fn a_claim_that_does_not_fit_changes_nothing() {
        let mut ledger = ledger(Budget::constant(Watts::from_watts(500)));
        ledger.start(JobId(0), &point(4, 400, 10)).unwrap();
        let refused = [
            (JobId(0), point(1, 10, 1), Violation::AlreadyRunning { job: JobId(0) }),
            (JobId(1), point(7, 10, 1), Violation::Nodes { job: JobId(1), asked: 7, free: 6 }),
            (
                JobId(1),
                point(1, 101, 1),
                Violation::Power {
                    job: JobId(1),
                    asked: Watts::from_watts(101),
                    free: Watts::from_watts(100),
                    at: Instant::ZERO,
                },
            ),
        ];
        for (job, point, violation) in refused {
            assert_eq!(ledger.start(job, &point), Err(violation));
            assert_eq!((ledger.free_nodes(), ledger.power()), (6, Watts::from_watts(400)));
        }
        assert_eq!(ledger.release(JobId(1)), Err(Violation::HoldsNothing { job: JobId(1) }));
        ledger.start(JobId(1), &point(6, 100, 1)).unwrap();
        assert_eq!(ledger.check(), Ok(()));
        assert_eq!(ledger.peak(), Watts::from_watts(500));
    }

    #[test]
    fn what_is_released_is_what_was_held() {
        let mut ledger = ledger(Budget::unlimited());
        ledger.advance(Instant::from_secs(100));
        ledger.start(JobId(3), &point(2, 200, 20)).unwrap();
        ledger.advance(Instant::from_secs(110));
        let holding = ledger.release(JobId(3)).unwrap();
        assert_eq!(holding.until, Instant::from_secs(120));
        assert_eq!(ledger.power(), Watts::ZERO);
    }

    #[test]
    fn a_limit_that_will_fall_is_kept_in_advance() {
        let steps = vec![
            (Instant::ZERO, Watts::from_watts(500)),
            (Instant::from_secs(10), Watts::from_watts(300)),
        ];
        let mut ledger = ledger(Budget::from_steps(steps).unwrap());
        ledger.start(JobId(0), &point(2, 200, 20)).unwrap();
        assert!(matches!(
            ledger.start(JobId(1), &point(2, 200, 11)),
            Err(Violation::Power { at, .. }) if at == Instant::from_secs(10)
        ));
        ledger.start(JobId(1), &point(2, 200, 10)).unwrap();
        assert_eq!(ledger.check(), Ok(()));
    }

    /// 500 W for jobs of 200 and 250 W. One may grow by the 50 W that are free, and no further; both
    /// may shrink, even under a limit that has fallen below what they hold.
    #[test]
    fn running_jobs_change_within_what_is_free() {
        let steps = vec![
            (Instant::ZERO, Watts::from_watts(500)),
            (Instant::from_secs(10), Watts::from_watts(300)),
        ];
        let mut ledger = ledger(Budget::from_steps(steps).unwrap());
        ledger.start(JobId(0), &point(4, 200, 5)).unwrap();
        ledger.start(JobId(1), &point(3, 250, 5)).unwrap();
        let (change, left) = (point(5, 251, 5), Span::from_secs(5));
        let refused = ledger.change(JobId(0), &change, left);
        let (asked, free) = (Watts::from_watts(251), Watts::from_watts(250));
        let violation = Violation::Power { job: JobId(0), asked, free, at: Instant::ZERO };
        assert_eq!(refused, Err(violation));
        let refused = ledger.change(JobId(0), &point(8, 10, 5), left);
        assert_eq!(refused, Err(Violation::Nodes { job: JobId(0), asked: 8, free: 7 }));
        assert_eq!((ledger.free_nodes(), ledger.power()), (3, Watts::from_watts(450)));
        let before = ledger.change(JobId(0), &point(7, 250, 5), left).unwrap();
        assert_eq!((before.nodes, before.power), (4, Watts::from_watts(200)));
        assert_eq!((ledger.free_nodes(), ledger.power()), (0, Watts::from_watts(500)));
        assert_eq!(ledger.check(), Ok(()));
        // For longer than 500 W are there.
        let longer = ledger.change(JobId(1), &point(3, 251, 5), Span::from_secs(11));
        assert!(matches!(longer, Err(Violation::Power { .. })), "{longer:?}");
        ledger.advance(Instant::from_secs(10));
        ledger.change(JobId(0), &point(7, 240, 5), left).unwrap();
        assert_eq!(ledger.power(), Watts::from_watts(490), "less is never refused");
        ledger.change(JobId(1), &point(1, 60, 5), left).unwrap();
        assert_eq!(ledger.free_nodes(), 2);
        assert_eq!(ledger.check(), Ok(()));
        let nothing = Violation::HoldsNothing { job: JobId(2) };
        assert_eq!(ledger.change(JobId(2), &point(1, 1, 1), left), Err(nothing));
    }

    #[test]
    fn nodes_fail_and_come_back() {
        let mut ledger = ledger(Budget::unlimited());
        ledger.start(JobId(0), &point(3, 300, 20)).unwrap();
        assert_eq!(ledger.holder(NodeId(2)), Some(JobId(0)));
        assert!(!ledger.take_down(NodeId(2)), "a held node stays until its job is released");
        ledger.release(JobId(0)).unwrap();
        assert!(ledger.take_down(NodeId(2)));
        assert!(!ledger.take_down(NodeId(2)));
        assert_eq!((ledger.free_nodes(), ledger.nodes_in_service()), (9, 9));
        ledger.start(JobId(0), &point(9, 900, 20)).unwrap();
        assert_eq!(ledger.check(), Ok(()));
        assert!(ledger.bring_up(NodeId(2)));
        assert!(!ledger.bring_up(NodeId(2)));
        assert!(!ledger.take_down(NodeId(77)), "there is no such node");
        assert_eq!(ledger.check(), Ok(()));
    }
}
