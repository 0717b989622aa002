//! PPartition: the machine's power shared among jobs on processors that are not alike (Gholkar,
//! Mueller and Rountree: Power tuning for HPC jobs under manufacturing variations).
//!
//! Rule: a job gets the most efficient free processors, as many as it asks for or fewer, and a share of
//! the machine's power in proportion to what it asks for; PTune says which of the processors and
//! which caps make the best of it. If so much power is not free, its share is what its processors
//! are of all that are busy, and what is missing is taken from every running job in proportion to
//! what that has. Each of those is tuned again on its own processors. If too little comes together,
//! nothing changes, and the job waits until another ends. What jobs give back when they end, and
//! nobody can start with, goes to the running jobs that gain most by it; of that the paper says
//! nothing.
//!
//! Jobs come from a conventional dispatcher with [three queues](super::three_queues).
//!
//! Where the budget is going to change, the lowest limit to come counts from now on: safe, but
//! wasteful. If running jobs need more than there is, nobody starts, and all go down to the least.
//!
//! What it deliberately does not do: reserve. A large job may wait forever while smaller ones pass it
//! (`dispatch=stop` prevents that).

mod partition;
mod spec;

pub use spec::{First, PpartitionSpec};

use crate::model::{Caps, NodeCap, Varied};
use crate::policy::three_queues::{Kind, ThreeQueues};
use crate::policy::{Decision, Policy, View};
use crate::solve::ptune::Tuner;
use crate::units::{JobId, NodeId, Watts};
use crate::variation::Curve;

use partition::{Admission, Partition};

/// Power shared by need, and processors by efficiency.
pub struct Ppartition {
    spec: PpartitionSpec,
    queues: ThreeQueues,
    partition: Partition,
    tuner: Tuner,
}

impl Ppartition {
    /// The policy with these parameters.
    pub fn with(spec: PpartitionSpec) -> Self {
        Ppartition {
            spec,
            queues: ThreeQueues::new(spec.queueing),
            partition: Partition::default(),
            tuner: Tuner::new(),
        }
    }

    /// Takes in what happened: who came, and who is gone.
    fn note(&mut self, view: &View<'_>, varied: &Varied) {
        let processors = varied.processors().names().len();
        let gone = self.partition.follow(view, processors);
        for job in gone.iter().chain(view.changes.arrived) {
            if view.queue.contains(*job) {
                self.queues.insert(*job, kind(view, varied, *job));
            }
        }
    }

    /// How a job could be let in, if it can.
    fn admission(&mut self, varied: &Varied, power: Watts, kind: Kind) -> Option<Admission> {
        let Kind { application, nodes } = kind;
        let curves = varied.curves(application);
        let places = self.partition.candidates(varied.by_efficiency(application), nodes)?;
        let mut offered: Vec<&Curve> =
            places.iter().map(|place| &curves[*place as usize]).collect();
        let free = power.saturating_sub(self.partition.power());
        let everybody = varied.processors().names().len() as u64;
        let share = portion(power, u64::from(nodes), everybody);
        let first = match self.spec.first {
            First::Share => share.max(least(&offered)),
            First::Uncapped => offered.iter().map(|curve| curve.most()).sum(),
        };
        let mut budgets = Vec::new();
        let tuning = if first <= free {
            self.tuner.tune(&offered, first).ok()?
        } else {
            let allocated = self.partition.allocated();
            // More than there is it would wait for in vain, even alone.
            let mut wanted = share.max(least(&offered)).min(power);
            // With fewer processors its share is another, and of that it may have use for fewer still.
            loop {
                let best = self.tuner.tune(&offered, wanted).ok()?.grants.len();
                if best == offered.len() {
                    break;
                }
                offered.truncate(best);
                wanted = portion(power, best as u64, allocated + best as u64);
            }
            let taken;
            (budgets, taken) = self.partition.take(wanted.saturating_sub(free));
            let gathered = wanted.min(free) + taken;
            if gathered < least(&offered) {
                return None;
            }
            self.tuner.tune(&offered, gathered).ok()?
        };
        let granted = tuning.grants.iter();
        let caps = granted
            .map(|grant| NodeCap { node: NodeId(places[grant.candidate]), cap: grant.cap })
            .collect();
        offered.truncate(tuning.grants.len());
        Some(Admission { application, caps: Caps::new(caps)?, least: least(&offered), budgets })
    }

    /// Lets in whoever can be, in the order of the queues.
    fn dispatch(&mut self, varied: &Varied, power: Watts) {
        let mut turn = self.queues.turn();
        while let Some((job, kind)) = turn.next() {
            match self.admission(varied, power, kind) {
                Some(admission) => {
                    self.partition.admit(job, admission);
                    self.queues.remove(job, kind);
                    turn.started(&self.queues, kind);
                }
                None => turn.refused(&self.queues, kind),
            }
        }
    }

    /// Writes down how to get from what is to what is to be: first who gets less, then who starts, then
    /// who gets more.
    fn carry_out(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let mut raises = Vec::new();
        let mut starts = Vec::new();
        for (&job, member) in &mut self.partition.members {
            if member.held.as_ref() == Some(&member.wanted) {
                continue;
            }
            let caps = member.wanted.clone();
            // The caps are of processors there are, within what can be set.
            let Some(point) = view.model.on(job, view.job(job), &caps) else { continue };
            match member.held.as_ref().map(Caps::total) {
                None => {
                    member.start(view.now, point.time);
                    starts.push(Decision::StartOn { job, caps });
                }
                Some(before) => {
                    let is_more = caps.total() > before;
                    let left = member.recap(view.now, point.time);
                    let list = if is_more { &mut raises } else { &mut *decisions };
                    list.push(Decision::Recap { job, caps, left });
                }
            }
        }
        decisions.append(&mut starts);
        decisions.append(&mut raises);
    }
}

/// The least that processors can be held at together.
fn least(curves: &[&Curve]) -> Watts {
    curves.iter().map(|curve| curve.least()).sum()
}

/// A part of the machine's power, rounded down.
fn portion(power: Watts, part: u64, whole: u64) -> Watts {
    let milliwatts = u128::from(power.milliwatts()) * u128::from(part) / u128::from(whole.max(1));
    Watts::from_milliwatts(u64::try_from(milliwatts).unwrap_or(u64::MAX))
}

/// What makes a job like others.
pub(super) fn kind(view: &View<'_>, varied: &Varied, job: JobId) -> Kind {
    Kind { nodes: view.job(job).nodes, application: varied.application(job) }
}

/// The power that jobs can rely on, now and under every limit to come.
pub(super) fn reliable(view: &View<'_>) -> Watts {
    let to_come = view.ledger.limits_to_come().iter().map(|change| change.1);
    view.ledger.for_jobs(to_come.fold(view.ledger.limit(), Watts::min)).min(Watts::LARGEST)
}

impl Policy for Ppartition {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let Some(varied) = view.model.varied() else { return };
        self.note(view, varied);
        let power = reliable(view);
        self.partition.go_down_to(power);
        self.dispatch(varied, power);
        self.partition.settle(varied, &mut self.tuner, power);
        self.carry_out(view, decisions);
    }

    fn adjusts(&self) -> bool {
        true
    }

    fn names_nodes(&self) -> bool {
        true
    }
}
