//! A mapping event: who is dropped, what passes the filter, and how far the plan is carried out at
//! once.

use super::filter::Limit;
use super::plan::{Assignment, Plan, Purse, Rules, Scene};
use super::price::{Market, Spent};
use super::ready::ReadyMachines;
use super::{Environment, Heuristic, UtilityMapper, rules};
use crate::budget::EnergyBudget;
use crate::heterogeneity::TaskType;
use crate::policy::{Decision, DropReason, View};
use crate::units::{Instant, Joules, NodeId};

/// The machines that a mapping event has.
struct OpenMachines {
    ready: ReadyMachines,
    /// How many tasks each machine can be given, by its number.
    slots: Vec<u8>,
    /// The milliseconds that all of them have left in the period, together.
    remaining: u128,
}

impl UtilityMapper {
    /// A mapping event.
    pub(super) fn map(
        &mut self,
        view: &View<'_>,
        purse: &mut Purse,
        decisions: &mut Vec<Decision>,
    ) {
        let queued = self.spec.environment == Environment::Queued;
        let now = view.now;
        if now >= purse.budget.end {
            return;
        }
        let OpenMachines { ready, mut slots, remaining } = self.open_machines(view, &purse.budget);
        self.take_back_tasks();
        self.drop_hopeless(&ready, decisions);
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
        let market = self.market(&purse.budget);
        let scene = Scene {
            tasks: std::mem::take(&mut self.waiting),
            ready,
            purse: scene_purse,
            closed: vec![false; self.choices.types()],
            market,
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
        if self.spec.heuristic == Heuristic::Priced {
            let spent = self.spent(view, &market, &assigned);
            self.price.follow(spent, purse.left, remaining, self.usual());
        }
        self.carry_out(assigned, now, purse, decisions);
        match queued {
            true => self.plan = Some(plan),
            false => self.waiting = plan.into_tasks(),
        }
    }

    /// Empties the queues of all machines, and says which of them can be given tasks.
    fn open_machines(&mut self, view: &View<'_>, budget: &EnergyBudget) -> OpenMachines {
        let queued = self.spec.environment == Environment::Queued;
        let mut ready = ReadyMachines::new(self.tables.machine_types().len(), queued);
        let mut slots = vec![0u8; self.machines.all.len()];
        let mut remaining = 0u128;
        for (place, slots) in slots.iter_mut().enumerate() {
            let node = NodeId(place as u32);
            self.machines.all[place].queue.clear();
            if self.is_down(node, view) {
                continue;
            }
            let machine = &self.machines.all[place];
            let available = machine.available(view.now);
            let counted = available.max(budget.begin);
            remaining += u128::from(budget.end.since(counted).millis());
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
        OpenMachines { ready, slots, remaining }
    }

    /// Starts those for whom there is room and promises the others a place, as far as that can be paid.
    fn carry_out(
        &mut self,
        assigned: Vec<Assignment>,
        now: Instant,
        purse: &mut Purse,
        decisions: &mut Vec<Decision>,
    ) {
        for next in assigned {
            let machine = &mut self.machines.all[next.node.0 as usize];
            match (next.commits, machine.running) {
                (false, _) => machine.queue.push_back(next),
                (true, None) => _ = self.start(&next, now, purse, decisions),
                (true, Some((_, until))) => _ = self.promise(&next, until, purse, decisions),
            }
        }
    }

    /// How much machine time passes from one event to the next, in milliseconds.
    fn usual(&self) -> f64 {
        self.machines.all.len() as f64 * self.spec.every.millis() as f64
    }

    fn market(&self, budget: &EnergyBudget) -> Market {
        let is_polled = self.spec.environment == Environment::Polled;
        Market {
            price: budget.is_limited().then_some(self.price),
            every: is_polled.then_some(self.spec.every),
            end: budget.end,
        }
    }

    /// What an event decides on, energy and machine time: that of tasks that are committed, and that of machines that
    /// stay idle until the next event. In the warm-up it counts as later on, so that the price is known by then.
    fn spent(&self, view: &View<'_>, market: &Market, assigned: &[Assignment]) -> Spent {
        let is_idle = |place: &usize| {
            let idle = self.machines.all[*place].running.is_none();
            idle && !self.is_down(NodeId(*place as u32), view)
        };
        let mut idle = vec![false; self.machines.all.len()];
        (0..idle.len()).filter(is_idle).for_each(|place| idle[place] = true);
        let mut spent = Spent::default();
        for next in assigned.iter().filter(|next| next.commits) {
            spent.energy += next.choice.energy as f64;
            spent.time += market.taken(view.now, view.now + next.choice.time);
            idle[next.node.0 as usize] = false;
        }
        let idle = idle.iter().filter(|idle| **idle).count();
        spent.time += idle as f64 * self.spec.every.millis() as f64;
        spent
    }

    /// Machines of a type that no task may be mapped to are not waited for.
    fn close_unservable(&self, slots: &mut [u8], ready: &ReadyMachines, purse: &Purse) {
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
    fn drop_hopeless(&mut self, ready: &ReadyMachines, decisions: &mut Vec<Decision>) {
        // By task type: the earliest completion on any machine that is available.
        let earliest: Vec<Instant> = (0..self.choices.types() as u32)
            .map(|kind| {
                let choices = self.choices.fastest(TaskType(kind)).iter();
                let completions = choices
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
