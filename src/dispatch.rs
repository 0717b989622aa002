//! Between policy and cluster: the waiting and the running jobs, and what a decision does to them.
//!
//! Simulated or live, a driver tells the dispatch what happened, lets the policy decide, and gets
//! back what was really done. A decision that is wrong in any way changes nothing.

use crate::budget::Budget;
use crate::job::Job;
use crate::ledger::{Holding, Ledger, Violation};
use crate::machine::Machine;
use crate::model::{Model, OperatingPoint};
use crate::policy::{Changes, Decision, Policy, View};
use crate::queue::{Queue, SizeClasses};
use crate::units::{Instant, JobId, NodeId, Span};

/// The waiting and the running jobs of one machine.
pub struct Dispatch<'a> {
    model: &'a dyn Model,
    queue: Queue,
    ledger: Ledger,
    arrived: Vec<JobId>,
    released: Vec<Holding>,
    machine_changed: bool,
    decisions: Vec<Decision>,
}

/// What a decision led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// A job started; it passed others if it was not at the head of the queue.
    Started {
        /// Which.
        job: JobId,
        /// How.
        point: OperatingPoint,
        /// Whether a job ahead of it still waits.
        backfilled: bool,
    },
    /// A job goes on at another point.
    Changed {
        /// Which.
        job: JobId,
        /// How.
        point: OperatingPoint,
        /// After a pause.
        pause: Span,
    },
    /// A job left the queue for good.
    Dropped {
        /// Which.
        job: JobId,
    },
    /// The policy wants to be asked again.
    Wake(Instant),
}

/// Why a job is turned away at the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// It needs more nodes than the machine has.
    TooManyNodes,
    /// It needs more power than the budget ever allows for as long as it takes.
    TooMuchPower,
}

impl Rejection {
    /// The reason in a few words.
    pub fn reason(self) -> &'static str {
        match self {
            Rejection::TooManyNodes => "needs more nodes than the machine has",
            Rejection::TooMuchPower => {
                "needs more power than the budget allows for so long from its submission on"
            }
        }
    }
}

/// How well the dispatch has to know the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// Their number is enough.
    Counted,
    /// Each by itself, because nodes can fail.
    Named,
}

impl<'a> Dispatch<'a> {
    /// An empty machine that expects `jobs`.
    pub fn new(
        machine: &Machine,
        budget: Budget,
        nodes: Nodes,
        model: &'a dyn Model,
        jobs: &[Job],
    ) -> Self {
        let classes = SizeClasses::of_sizes(
            (0..).map(JobId).zip(jobs).map(|(id, job)| model.footprint(id, job).nodes),
        );
        Dispatch {
            model,
            queue: Queue::new(classes, jobs.len()),
            ledger: match nodes {
                Nodes::Counted => Ledger::new(machine, budget),
                Nodes::Named => Ledger::with_placement(machine, budget),
            },
            arrived: Vec::new(),
            released: Vec::new(),
            machine_changed: false,
            decisions: Vec::new(),
        }
    }

    /// The ledger, to read.
    #[inline]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The waiting jobs.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Moves the clock.
    #[inline]
    pub fn advance(&mut self, now: Instant) {
        self.ledger.advance(now);
    }

    /// A job was submitted, or was thrown out by a failing node and waits again. It is turned
    /// away if it could not run even alone, now or under the limits to come.
    #[inline]
    pub fn arrive(&mut self, id: JobId, job: &Job) -> Result<(), Rejection> {
        let least = self.model.footprint(id, job);
        if least.nodes > self.ledger.total_nodes() {
            return Err(Rejection::TooManyNodes);
        }
        let is_fed = |point: &OperatingPoint| point.power <= self.ledger.most_for_jobs(point.time);
        if !self.model.may_enter(id, job, &is_fed) {
            return Err(Rejection::TooMuchPower);
        }
        self.queue.insert(id, &least);
        self.arrived.push(id);
        Ok(())
    }

    /// A job ended.
    #[inline]
    pub fn end(&mut self, job: JobId) -> Result<(), Violation> {
        self.released.push(self.ledger.release(job)?);
        Ok(())
    }

    /// A new limit of the budget came into force.
    pub fn budget_changed(&mut self) {
        self.machine_changed = true;
    }

    /// A node failed. The job that was on it, if any, is released and returned: it has to be
    /// submitted again.
    pub fn node_down(&mut self, node: NodeId) -> Option<JobId> {
        let thrown_out = self.ledger.holder(node);
        if let Some(holding) = thrown_out.and_then(|job| self.ledger.release(job).ok()) {
            self.released.push(holding);
        }
        self.machine_changed |= self.ledger.take_down(node);
        thrown_out
    }

    /// A node is back.
    pub fn node_up(&mut self, node: NodeId) {
        self.machine_changed |= self.ledger.bring_up(node);
    }

    /// Asks the policy and carries its decisions out, in order. `done` hears what came of each.
    #[inline]
    pub fn decide(
        &mut self,
        policy: &mut dyn Policy,
        jobs: &[Job],
        mut done: impl FnMut(Result<Applied, Violation>),
    ) {
        let Dispatch { model, queue, ledger, arrived, released, .. } = self;
        let view = View {
            now: ledger.now(),
            jobs,
            queue,
            ledger,
            model: *model,
            changes: Changes { arrived, released, machine: self.machine_changed },
        };
        policy.decide(&view, &mut self.decisions);
        arrived.clear();
        released.clear();
        self.machine_changed = false;
        for decision in self.decisions.drain(..) {
            if let Decision::Change { job, .. } = decision
                && !policy.adjusts()
            {
                done(Err(Violation::Unannounced { job }));
                continue;
            }
            done(apply(&decision, *model, queue, ledger, jobs));
        }
    }
}

/// Carries a decision out, or says why it cannot be.
#[inline]
fn apply(
    decision: &Decision,
    model: &dyn Model,
    queue: &mut Queue,
    ledger: &mut Ledger,
    jobs: &[Job],
) -> Result<Applied, Violation> {
    match *decision {
        Decision::Start { job, point } => {
            if !queue.contains(job) {
                return Err(match ledger.holds(job) {
                    true => Violation::AlreadyRunning { job },
                    false => Violation::NotWaiting { job },
                });
            }
            if !model.offers(job, &jobs[job.index()], &point) {
                let OperatingPoint { nodes, power, .. } = point;
                return Err(Violation::NotOnMenu { job, nodes, power });
            }
            ledger.start(job, &point)?;
            let backfilled = queue.head() != Some(job);
            queue.remove(job);
            Ok(Applied::Started { job, point, backfilled })
        }
        Decision::Change { job, point, pause, left } => {
            if !ledger.holds(job) {
                return Err(Violation::HoldsNothing { job });
            }
            if !model.offers(job, &jobs[job.index()], &point) {
                let OperatingPoint { nodes, power, .. } = point;
                return Err(Violation::NotOnMenu { job, nodes, power });
            }
            ledger.change(job, &point, left)?;
            Ok(Applied::Changed { job, point, pause })
        }
        Decision::Drop { job } => match queue.remove(job) {
            true => Ok(Applied::Dropped { job }),
            false => Err(Violation::NotWaiting { job }),
        },
        Decision::WakeAt(at) => {
            let now = ledger.now();
            if at > now { Ok(Applied::Wake(at)) } else { Err(Violation::WakeInThePast { at, now }) }
        }
    }
}
