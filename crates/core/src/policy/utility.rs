//! Utility under an energy budget (Khemka and others: Comparison of energy-constrained resource
//! allocation heuristics under different task management environments, 2015).
//!
//! Serial tasks arrive on machines of several types. What a task is worth falls with time, and the
//! energy of the day is limited. At every mapping event tasks that cannot earn enough any more are
//! dropped, a filter leaves out choices that take more than their share of the energy ([`filter`]),
//! and one of twelve heuristics maps the rest ([`spec::Heuristic`]). A thirteenth, with a price on energy, is our
//! own (`price`).
//!
//! In the polled environment only idle machines get a task. In the queued one each machine also has
//! a task that is next, with its energy promised, and a queue that is planned anew at each event.
//!
//! Where there are no tables of machines and tasks, jobs run on nodes of one type ([`Gangs`]).

use std::sync::Arc;

use crate::budget::EnergyBudget;
use crate::heterogeneity::{Site, Tables};
use crate::model::{Caps, task_type};
use crate::policy::{Decision, DropReason, Policy, View};
use crate::units::{Instant, JobId, Joules, NodeId, Span};
use crate::utility::Utilities;

mod choices;
mod event;
pub mod filter;
mod gangs;
mod kind;
mod machines;
mod plan;
mod price;
mod ready;
pub mod spec;

use choices::Choices;
use filter::Filter;
pub use gangs::{Gangs, worth};
use machines::Machines;
use plan::{Assignment, Plan, Purse, Rules, Task};
use price::Price;
use spec::Measure;
pub use spec::{Environment, Heuristic, UtilitySpec};

/// What does not change from event to event, borrowed field by field so that a plan can go on.
macro_rules! rules {
    ($mapper:ident) => {
        Rules {
            heuristic: $mapper.spec.heuristic,
            choices: &$mapper.choices,
            utilities: &$mapper.utilities,
            levels: &$mapper.levels,
            level_count: $mapper.level_count,
        }
    };
}
use rules;
/// Maps tasks to machines for the most utility within an energy budget.
pub struct UtilityMapper {
    spec: UtilitySpec,
    tables: Arc<Tables>,
    utilities: Arc<Utilities>,
    choices: Choices,
    filter: Filter,
    /// What energy costs, where it has a price.
    price: Price,
    /// By utility function: the rank of its starting value, the largest first.
    levels: Vec<u32>,
    level_count: u32,
    /// By utility function: the oldest age that is worth enough not to be dropped, if any is.
    latest: Vec<Option<Span>>,
    machines: Machines,
    /// Tasks that may be mapped, in the order of their arrival; those that a plan has are there.
    waiting: Vec<Task>,
    /// By job: whether it has been committed, so that it is nobody's to map.
    gone: Vec<bool>,
    plan: Option<Plan>,
    next_event: Option<Instant>,
    /// Whether nodes have failed.
    outages: bool,
}

impl UtilityMapper {
    /// The policy for a site.
    pub fn new(spec: UtilitySpec, site: &Site) -> Self {
        let Site { tables, utilities } = site.clone();
        let mut starts: Vec<_> = utilities.iter().map(|(_, function)| function.start()).collect();
        starts.sort_unstable_by_key(|start| std::cmp::Reverse(*start));
        starts.dedup();
        let rank = |start| starts.iter().position(|other| *other == start).unwrap_or(0) as u32;
        let levels = utilities.iter().map(|(_, function)| rank(function.start())).collect();
        let choices = Choices::of(&tables, |choice| match spec.heuristic {
            Heuristic::Greedy(Measure::PerTime) => choice.time.millis() as f64,
            Heuristic::Greedy(Measure::PerEnergy) => choice.energy as f64,
            _ => 1.0,
        });
        let filter = Filter::of(&tables);
        let price = Price::first(starts.iter().copied(), filter.mean_energy);
        UtilityMapper {
            spec,
            choices,
            filter,
            price,
            levels,
            level_count: starts.len() as u32,
            latest: utilities.iter().map(|(_, function)| function.latest(spec.drop)).collect(),
            machines: Machines::new(tables.machines()),
            tables,
            utilities,
            waiting: Vec::new(),
            gone: Vec::new(),
            plan: None,
            next_event: None,
            outages: false,
        }
    }

    /// A task joins those that may be mapped, if any machine could run it.
    fn arrive(
        &mut self,
        job: JobId,
        view: &View<'_>,
        purse: &Purse,
        decisions: &mut Vec<Decision>,
    ) {
        let asked = view.job(job);
        let kind = task_type(asked).filter(|kind| self.tables.can_run(*kind));
        let reason = match kind {
            None => Some(DropReason::NoMachine),
            Some(_) if purse.budget.energy == Joules::ZERO => Some(DropReason::NoEnergy),
            Some(_) => None,
        };
        if let Some(reason) = reason {
            decisions.push(Decision::Drop { job, reason });
            return;
        }
        let utility = asked.terms.utility.filter(|id| id.place() < self.utilities.len());
        // Whose utility is not known is worth nothing.
        let Some((kind, utility)) = kind.zip(utility) else {
            decisions.push(Decision::Drop { job, reason: DropReason::LowUtility });
            return;
        };
        let utility = utility.place() as u32;
        let Some(latest) = self.latest[utility as usize] else {
            decisions.push(Decision::Drop { job, reason: DropReason::LowUtility });
            return;
        };
        let (arrival, deadline) = (asked.submit, asked.submit + latest);
        if self.gone.len() <= job.index() {
            self.gone.resize(job.index() + 1, false);
        }
        // Who was thrown out by a failing node before the next event has not been forgotten yet.
        let came_back = std::mem::replace(&mut self.gone[job.index()], false);
        let is_there = |tasks: &[Task]| tasks.iter().any(|task| task.job == job);
        if came_back
            && (is_there(&self.waiting) || self.plan.as_ref().is_some_and(|plan| plan.has(job)))
        {
            return;
        }
        self.waiting.push(Task { job, kind, utility, arrival, deadline });
    }

    /// Ends the plan: its tasks wait again, those that arrived since behind them.
    fn take_back_tasks(&mut self) {
        if let Some(plan) = self.plan.take() {
            let mut tasks = plan.into_tasks();
            tasks.append(&mut self.waiting);
            self.waiting = tasks;
        }
    }

    /// Lets a machine whose task has ended go on with the next one.
    fn promote(
        &mut self,
        node: NodeId,
        view: &View<'_>,
        purse: &mut Purse,
        decisions: &mut Vec<Decision>,
    ) {
        if self.is_down(node, view) {
            return;
        }
        let machine = &mut self.machines.all[node.0 as usize];
        if machine.running.is_none()
            && let Some(pending) = machine.pending.take()
        {
            // Its promise comes back, and is paid again from now on.
            purse.left += pending.charge;
            if !self.start(&pending, view.now, purse, decisions) {
                self.machines.all[node.0 as usize].pending = Some(pending);
                purse.left = purse.left.saturating_sub(pending.charge);
                return;
            }
        }
        // Whoever cannot be paid for is passed over and may be mapped at the next event.
        while self.machines.all[node.0 as usize].pending.is_none() {
            let Some(next) = self.head(node) else { return };
            match self.machines.all[node.0 as usize].running {
                None => _ = self.start(&next, view.now, purse, decisions),
                Some((_, until)) => _ = self.promise(&next, until, purse, decisions),
            }
        }
    }

    /// Starts what has been next on a machine that was out of service.
    fn resume(&mut self, view: &View<'_>, purse: &mut Purse, decisions: &mut Vec<Decision>) {
        if !self.outages {
            return;
        }
        for place in 0..self.machines.all.len() {
            let machine = &self.machines.all[place];
            if machine.running.is_none() && machine.pending.is_some() {
                self.promote(NodeId(place as u32), view, purse, decisions);
            }
        }
    }

    fn is_down(&self, node: NodeId, view: &View<'_>) -> bool {
        let idle = self.machines.all[node.0 as usize].running.is_none();
        // A node whose task has ended at this instant is free already.
        self.outages && idle && !view.ledger.is_free(node)
    }

    /// The first task of a machine's queue; the plan goes on until there is one.
    fn head(&mut self, node: NodeId) -> Option<Assignment> {
        loop {
            if let Some(head) = self.machines.all[node.0 as usize].queue.pop_front() {
                return Some(head);
            }
            let kind = self.tables.type_of(node)?;
            let rules = rules!(self);
            let plan = self.plan.as_mut().filter(|plan| plan.may_serve(kind, &rules))?;
            let assigned = plan.next(&rules)?;
            self.machines.all[assigned.node.0 as usize].queue.push_back(assigned);
        }
    }

    /// Starts a task now, if that can be paid; says whether it was.
    fn start(
        &mut self,
        assigned: &Assignment,
        now: Instant,
        purse: &mut Purse,
        decisions: &mut Vec<Decision>,
    ) -> bool {
        let charge = purse.charge(&assigned.choice, now);
        if charge > purse.left {
            return false;
        }
        purse.left = purse.left.saturating_sub(charge);
        self.gone[assigned.job.index()] = true;
        self.machines.start(assigned.job, assigned.node, now + assigned.choice.time);
        let caps = Caps::one(assigned.node, assigned.choice.power);
        decisions.push(Decision::StartOn { job: assigned.job, caps });
        true
    }

    /// Makes a task the next one of its machine, if that can be paid; says whether it was.
    fn promise(
        &mut self,
        assigned: &Assignment,
        from: Instant,
        purse: &mut Purse,
        decisions: &mut Vec<Decision>,
    ) -> bool {
        let charge = purse.charge(&assigned.choice, from);
        if charge > purse.left {
            return false;
        }
        purse.left = purse.left.saturating_sub(charge);
        self.gone[assigned.job.index()] = true;
        let pending = Assignment { charge, ..*assigned };
        self.machines.all[assigned.node.0 as usize].pending = Some(pending);
        let caps = Caps::one(assigned.node, assigned.choice.power);
        decisions.push(Decision::Promise { job: assigned.job, caps, from });
        true
    }
}

/// Where energy is not counted, there is enough of it, and the period never ends.
const UNCOUNTED: EnergyBudget =
    EnergyBudget { energy: Joules::UNLIMITED, begin: Instant::ZERO, end: Instant::NEVER };

impl Policy for UtilityMapper {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let account = view.ledger.energy();
        let budget = account.map_or(UNCOUNTED, |account| *account.budget());
        let left = account.map_or(Joules::UNLIMITED, |account| account.left());
        let mut purse = Purse::new(budget, left, Joules::UNLIMITED, Joules::ZERO);
        self.outages |= view.changes.machine;
        for &job in view.changes.arrived {
            self.arrive(job, view, &purse, decisions);
        }
        for holding in view.changes.released {
            if let Some(node) = self.machines.end(holding.job)
                && self.spec.environment == Environment::Queued
            {
                self.promote(node, view, &mut purse, decisions);
            }
        }
        let every = self.spec.every.millis().max(1);
        let mut due = self.next_event;
        if due.is_none_or(|due| view.now >= due) {
            // The first event is at the first whole multiple.
            if due.is_some() || view.now.millis().is_multiple_of(every) {
                self.resume(view, &mut purse, decisions);
                self.map(view, &mut purse, decisions);
            }
            let next = (view.now.millis() / every + 1).saturating_mul(every);
            due = Some(Instant::from_millis(next));
            self.next_event = due;
            decisions.extend(due.filter(|due| *due < budget.end).map(Decision::WakeAt));
        }
    }

    fn names_nodes(&self) -> bool {
        true
    }
}
