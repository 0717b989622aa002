//! Utility under an energy budget (Khemka and others: Comparison of energy-constrained resource
//! allocation heuristics under different task management environments, 2015).
//!
//! Serial tasks arrive on machines of several types. What a task is worth falls with time, and the
//! energy of the day is limited. At every mapping event tasks that cannot earn enough any more are
//! dropped, a filter leaves out choices that take more than their share of the energy ([`filter`]),
//! and one of twelve heuristics maps the rest ([`spec::Heuristic`]).
//!
//! In the polled environment only idle machines get a task. In the queued one each machine also has
//! a task that is next, with its energy promised, and a queue that is planned anew at each event.

use std::sync::Arc;

use crate::budget::EnergyBudget;
use crate::heterogeneity::{Site, Tables, TaskType};
use crate::model::{Caps, task_type};
use crate::policy::{Decision, DropReason, Policy, View};
use crate::units::{Instant, JobId, Joules, NodeId, Span};
use crate::utility::Utilities;

mod choices;
pub mod filter;
mod greedy;
mod machines;
mod plan;
mod ready;
pub mod spec;

use choices::Choices;
use filter::{Filter, Limit};
use machines::Machines;
use plan::{Assignment, Plan, Purse, Rules, Scene, Task};
use ready::Ready;
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
/// Maps tasks to machines for the most utility within an energy budget.
pub struct UtilityMapper {
    spec: UtilitySpec,
    tables: Arc<Tables>,
    utilities: Arc<Utilities>,
    choices: Choices,
    filter: Filter,
    /// By utility function: the rank of its starting value, the largest first.
    levels: Vec<u32>,
    level_count: u32,
    /// By utility function: the oldest age that is worth enough not to be dropped, if any is.
    latest: Vec<Option<Span>>,
    machines: Machines,
    /// Tasks that may be mapped, in the order of their arrival.
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
            Heuristic::Greedy(Measure::PerEnergy) => choice.energy.microjoules() as f64,
            _ => 1.0,
        });
        UtilityMapper {
            spec,
            choices,
            filter: Filter::of(&tables),
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
        self.gone[job.index()] = false;
        self.waiting.push(Task { job, kind, utility, arrival, deadline });
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
            purse.left = purse.left + pending.charge;
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
            let rules = rules!(self);
            let assigned = self.plan.as_mut()?.next(&rules)?;
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

    /// A mapping event.
    fn map(&mut self, view: &View<'_>, purse: &mut Purse, decisions: &mut Vec<Decision>) {
        let queued = self.spec.environment == Environment::Queued;
        let now = view.now;
        if now >= purse.budget.end {
            return;
        }
        let mut ready = Ready::new(self.tables.machine_types().len(), queued);
        let mut slots = vec![0u8; self.machines.all.len()];
        let mut remaining = 0u128;
        for (place, slots) in slots.iter_mut().enumerate() {
            let node = NodeId(place as u32);
            if self.is_down(node, view) {
                continue;
            }
            let machine = &mut self.machines.all[place];
            machine.queue.clear();
            let available = machine.available(now);
            let counted = available.max(purse.budget.begin);
            remaining += u128::from(purse.budget.end.since(counted).millis());
            let idle = machine.running.is_none();
            if !queued && !idle {
                continue;
            }
            *slots = match (queued, idle, machine.pending.is_some()) {
                (false, ..) => 1,
                (true, _, true) => 0,
                (true, true, false) => 2,
                (true, false, false) => 1,
            };
            ready.add(self.tables.type_of(node).unwrap_or(0), node, available);
        }
        self.drop_hopeless(&ready, decisions);
        self.plan = None;
        let committed = purse.budget.energy.saturating_sub(purse.left);
        let limit = match self.spec.filter {
            true => self.filter.limit(&purse.budget, now, committed, remaining),
            false => Limit::Unlimited,
        };
        let limit = match limit {
            Limit::Nothing => return,
            Limit::AtMost(limit) => limit,
            Limit::Unlimited => Joules::UNLIMITED,
        };
        let scene_purse = Purse::new(purse.budget, purse.left, limit, self.choices.largest);
        if queued {
            self.close_unservable(&mut slots, &ready, &scene_purse);
        }
        let scene = Scene {
            tasks: self.waiting.clone(),
            ready,
            purse: scene_purse,
            closed: vec![false; self.choices.types()],
        };
        let rules = rules!(self);
        let event = now.millis() / self.spec.every.millis().max(1);
        let seed = self.spec.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(event);
        let mut plan = Plan::new(&rules, scene, slots, seed);
        let mut assigned = Vec::new();
        while plan.has_room() {
            match plan.next(&rules) {
                Some(next) => assigned.push(next),
                None => break,
            }
        }
        for next in assigned {
            let machine = &mut self.machines.all[next.node.0 as usize];
            match (next.commits, machine.running) {
                (false, _) => machine.queue.push_back(next),
                (true, None) => _ = self.start(&next, now, purse, decisions),
                (true, Some((_, until))) => _ = self.promise(&next, until, purse, decisions),
            }
        }
        if queued {
            self.plan = Some(plan);
        }
    }

    /// Machines of a type that no task may be mapped to are not waited for.
    fn close_unservable(&self, slots: &mut [u8], ready: &Ready, purse: &Purse) {
        let kinds = self.tables.machine_types().len();
        let mut wanted = vec![false; kinds];
        for (place, slots) in slots.iter().enumerate().filter(|(_, slots)| **slots > 0) {
            debug_assert!(*slots > 0);
            wanted[self.tables.type_of(NodeId(place as u32)).unwrap_or(0)] = true;
        }
        if !wanted.contains(&true) {
            return;
        }
        let mut servable = vec![false; kinds];
        let mut seen = vec![false; self.choices.types()];
        for task in &self.waiting {
            if std::mem::replace(&mut seen[task.kind.0 as usize], true) {
                continue;
            }
            for choice in self.choices.by_kind(task.kind) {
                let kind = usize::from(choice.kind);
                if wanted[kind] && !servable[kind] {
                    servable[kind] = purse.allows(choice, ready.available(choice.kind));
                }
            }
        }
        for (place, slots) in slots.iter_mut().enumerate() {
            if !servable[self.tables.type_of(NodeId(place as u32)).unwrap_or(0)] {
                *slots = 0;
            }
        }
    }

    /// Drops tasks that could not earn enough on any available machine, and forgets those that are
    /// committed.
    fn drop_hopeless(&mut self, ready: &Ready, decisions: &mut Vec<Decision>) {
        // By task type: the earliest completion on any machine that is available.
        let earliest: Vec<Instant> = (0..self.choices.types() as u32)
            .map(|kind| {
                let choices = self.choices.by_kind(TaskType(kind)).iter();
                let completions = choices
                    .filter(|choice| choice.state == 0)
                    .map(|choice| (ready.first(choice.kind).0, choice.time))
                    .filter(|(ready, _)| *ready != Instant::NEVER)
                    .map(|(ready, time)| ready + time);
                completions.min().unwrap_or(Instant::ZERO)
            })
            .collect();
        let gone = &self.gone;
        self.waiting.retain(|task| {
            if gone[task.job.index()] {
                return false;
            }
            let hopeless = earliest[task.kind.0 as usize] > task.deadline;
            if hopeless {
                let reason = DropReason::LowUtility;
                decisions.push(Decision::Drop { job: task.job, reason });
            }
            !hopeless
        });
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
