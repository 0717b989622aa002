//! Utility under an energy budget, written down plainly: at every event every task, machine and
//! P-state is looked at, and everything is planned to the end.

use std::collections::BTreeSet;

use busbar::heterogeneity::{Purpose, TaskType};
use busbar::policy::utility::filter::{Filter, Limit};
use busbar::policy::utility::spec::{Environment, Heuristic, Measure, Order, States};
use busbar::units::{Instant, Joules, NodeId, Span, Watts};
use busbar::utility::UtilityId;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use super::Case;

/// What becomes of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Left,
    Dropped { at: Instant },
    Started { at: Instant, node: u32, power: Watts },
}

/// A task that is planned: which, its P-state, and what it was promised.
#[derive(Clone, Copy)]
struct Planned {
    task: usize,
    state: usize,
    charge: Joules,
}

#[derive(Clone, Default)]
struct Machine {
    running: Option<(usize, Instant)>,
    pending: Option<Planned>,
    queue: Vec<Planned>,
}

struct World<'a> {
    case: &'a Case,
    machines: Vec<Machine>,
    /// Tasks that may be mapped, in the order of arrival.
    mappable: Vec<usize>,
    fates: Vec<Fate>,
    left: Joules,
    /// Of energy, in millionths of utility for each microjoule.
    price: f64,
}

/// What becomes of each task.
pub(super) fn plain(case: &Case) -> Vec<Fate> {
    let jobs = case.workload.jobs();
    let mut world = World {
        case,
        machines: vec![Machine::default(); case.site.tables.machines() as usize],
        mappable: Vec::new(),
        fates: vec![Fate::Left; jobs.len()],
        left: case.budget.energy,
        price: first_price(case),
    };
    let every = case.spec.every.millis();
    let mut now = jobs[0].submit;
    let mut arrived = 0;
    loop {
        let mut ended: Vec<(usize, usize)> = Vec::new();
        for (node, machine) in world.machines.iter_mut().enumerate() {
            if let Some((task, _)) = machine.running.take_if(|(_, until)| *until == now) {
                ended.push((task, node));
            }
        }
        while arrived < jobs.len() && jobs[arrived].submit == now {
            world.arrive(arrived, now);
            arrived += 1;
        }
        ended.sort_unstable();
        if case.spec.environment == Environment::Queued {
            for (_, node) in ended {
                world.promote(node, now);
            }
        }
        if now.millis().is_multiple_of(every) && now < case.budget.end {
            world.map(now);
        }
        let ends = world.machines.iter().filter_map(|machine| machine.running).map(|it| it.1);
        let arrival = jobs.get(arrived).map(|job| job.submit);
        let event = Instant::from_millis((now.millis() / every + 1) * every);
        now = ends.chain(arrival).chain([event]).min().unwrap();
        if now > case.budget.end {
            return world.fates;
        }
    }
}

/// Half of what the mean of all different starting values is for the mean energy of all entries of the tables.
fn first_price(case: &Case) -> f64 {
    let functions = (0..case.site.utilities.len() as u32).map(UtilityId::at);
    let start = |id| case.site.utilities.get(id).unwrap().start().millionths();
    let starts: BTreeSet<u64> = functions.map(start).collect();
    let mean_start = starts.iter().sum::<u64>() as f64 / starts.len() as f64;
    let energies: Vec<f64> = case
        .site
        .tables
        .entries()
        .map(|(_, _, state)| state.power.over(state.time).microjoules() as f64)
        .collect();
    let mean_energy = energies.iter().sum::<f64>() / energies.len() as f64;
    0.5 * mean_start / mean_energy
}

impl World<'_> {
    fn kind(&self, task: usize) -> TaskType {
        TaskType(self.case.workload.jobs()[task].application.unwrap().0.get() - 1)
    }

    fn machine_type(&self, node: usize) -> usize {
        self.case.site.tables.type_of(NodeId(node as u32)).unwrap()
    }

    fn state(&self, task: usize, node: usize, state: usize) -> (Span, Watts) {
        let states = self.case.site.tables.states(self.kind(task), self.machine_type(node));
        (states[state].time, states[state].power)
    }

    fn utility(&self, task: usize, completion: Instant) -> u64 {
        let job = &self.case.workload.jobs()[task];
        let function = self.case.site.utilities.get(job.terms.utility.unwrap()).unwrap();
        function.at(completion.since(job.submit)).millionths()
    }

    fn charge(&self, task: usize, node: usize, state: usize, start: Instant) -> Joules {
        let (time, power) = self.state(task, node, state);
        self.case.budget.charge(power, start, start + time)
    }

    fn arrive(&mut self, task: usize, now: Instant) {
        let runs = self.case.site.tables.can_run(self.kind(task));
        let worth = self.utility(task, now) >= self.case.spec.drop.millionths();
        match runs && worth && self.case.budget.energy > Joules::ZERO {
            true => self.mappable.push(task),
            false => self.fates[task] = Fate::Dropped { at: now },
        }
    }

    fn start(&mut self, planned: Planned, node: usize, now: Instant) -> bool {
        let charge = self.charge(planned.task, node, planned.state, now);
        if charge > self.left {
            return false;
        }
        self.left = self.left.saturating_sub(charge);
        let (time, power) = self.state(planned.task, node, planned.state);
        self.machines[node].running = Some((planned.task, now + time));
        self.mappable.retain(|task| *task != planned.task);
        self.fates[planned.task] = Fate::Started { at: now, node: node as u32, power };
        true
    }

    fn promise(&mut self, planned: Planned, node: usize, from: Instant) {
        let charge = self.charge(planned.task, node, planned.state, from);
        if charge <= self.left {
            self.left = self.left.saturating_sub(charge);
            self.machines[node].pending = Some(Planned { charge, ..planned });
            self.mappable.retain(|task| *task != planned.task);
        }
    }

    fn promote(&mut self, node: usize, now: Instant) {
        if let Some(pending) = self.machines[node].pending.take() {
            self.left += pending.charge;
            assert!(self.start(pending, node, now), "what was promised can be paid");
        }
        while self.machines[node].pending.is_none() && !self.machines[node].queue.is_empty() {
            let next = self.machines[node].queue.remove(0);
            match self.machines[node].running {
                None => _ = self.start(next, node, now),
                Some((_, until)) => self.promise(next, node, until),
            }
        }
    }

    fn map(&mut self, now: Instant) {
        let queued = self.case.spec.environment == Environment::Queued;
        let budget = self.case.budget;
        let available: Vec<Instant> = (0..self.machines.len())
            .map(|node| {
                let machine = &self.machines[node];
                let after = machine.running.map_or(now, |(_, until)| until);
                machine
                    .pending
                    .map_or(after, |next| after + self.state(next.task, node, next.state).0)
            })
            .collect();
        let remaining: u128 = available
            .iter()
            .map(|at| u128::from(budget.end.since((*at).max(budget.begin)).millis()))
            .sum();
        let usable: Vec<usize> = (0..self.machines.len())
            .filter(|node| queued || self.machines[*node].running.is_none())
            .collect();
        for machine in &mut self.machines {
            machine.queue.clear();
        }
        self.drop(now, &usable, &available);
        let committed = budget.energy.saturating_sub(self.left);
        let limit = match self.case.spec.filter {
            true => Filter::of(&self.case.site.tables).limit(&budget, now, committed, remaining),
            false => Limit::Unlimited,
        };
        let limit = match limit {
            Limit::Nothing => return,
            Limit::AtMost(limit) => limit,
            Limit::Unlimited => Joules::UNLIMITED,
        };
        let mut planning = Planning {
            world: self,
            usable,
            ready: available.clone(),
            available,
            limit,
            queued,
            now,
        };
        match planning.world.case.spec.heuristic {
            Heuristic::Greedy(measure) => planning.greedy(measure),
            Heuristic::Ordered { order, prioritized, states } => {
                planning.ordered(order, prioritized, states)
            }
            Heuristic::Random => planning.random(),
            Heuristic::Priced => planning.priced(remaining),
        }
    }

    fn drop(&mut self, now: Instant, usable: &[usize], available: &[Instant]) {
        let tables = &self.case.site.tables;
        for task in self.mappable.clone() {
            let best = usable
                .iter()
                .flat_map(|node| {
                    let states = tables.states(self.kind(task), self.machine_type(*node)).iter();
                    states.map(|state| self.utility(task, available[*node] + state.time))
                })
                .max();
            if best.is_some_and(|best| best < self.case.spec.drop.millionths()) {
                self.mappable.retain(|other| *other != task);
                self.fates[task] = Fate::Dropped { at: now };
            }
        }
    }
}

/// What decides where values are equal: completion, purpose, machine, P-state and task.
type Tie = (Instant, Purpose, usize, usize, usize);

struct Planning<'a, 'b> {
    world: &'a mut World<'b>,
    usable: Vec<usize>,
    ready: Vec<Instant>,
    available: Vec<Instant>,
    limit: Joules,
    queued: bool,
    now: Instant,
}

impl Planning<'_, '_> {
    fn passes(&self, task: usize, node: usize, state: usize) -> bool {
        let (time, power) = self.world.state(task, node, state);
        power.over(time) <= self.limit
    }

    /// Whether a choice could be paid for if it started when the first machine of the type that is
    /// used in this event is available, or at the begin of the period if that is later.
    fn payable(&self, task: usize, node: usize, state: usize) -> bool {
        let kind = self.world.machine_type(node);
        // A machine that got a task in the polled environment still says when its type was available.
        let nodes = 0..self.available.len();
        let of_kind = nodes.filter(|other| self.world.machine_type(*other) == kind);
        let was_usable = |other: &usize| self.queued || self.available[*other] == self.now;
        let first = of_kind.filter(was_usable).map(|other| self.available[other]).min();
        let start = first.unwrap().max(self.world.case.budget.begin);
        self.world.charge(task, node, state, start) <= self.world.left
    }

    fn states(&self, task: usize, node: usize) -> usize {
        let tables = &self.world.case.site.tables;
        tables.states(self.world.kind(task), self.world.machine_type(node)).len()
    }

    fn purpose(&self, node: usize) -> Purpose {
        self.world.case.site.tables.machine_types()[self.world.machine_type(node)].purpose
    }

    /// Says whether the task is committed.
    fn assign(&mut self, task: usize, node: usize, state: usize) -> bool {
        let planned = Planned { task, state, charge: Joules::ZERO };
        let (time, _) = self.world.state(task, node, state);
        self.ready[node] = self.ready[node] + time;
        if !self.queued {
            self.usable.retain(|other| *other != node);
        }
        match (self.world.machines[node].running, self.world.machines[node].pending) {
            (None, None) => self.world.start(planned, node, self.now),
            (Some((_, until)), None) => {
                self.world.promise(planned, node, until);
                true
            }
            _ => {
                self.world.machines[node].queue.push(planned);
                false
            }
        }
    }

    /// How long a machine is taken, in milliseconds. In the polled environment it gets its next task at an event.
    fn taken(&self, start: Instant, completion: Instant) -> u64 {
        let every = self.world.case.spec.every.millis();
        let until = match self.queued {
            true => completion.millis(),
            false => completion.millis().div_ceil(every) * every,
        };
        until - start.millis()
    }

    /// What a choice brings for each millisecond in which the machine is taken: its utility less the price of its
    /// energy, if that is a gain, and in the period.
    fn surplus(&self, task: usize, node: usize, state: usize) -> Option<f64> {
        let (time, power) = self.world.state(task, node, state);
        let (start, completion) = (self.ready[node], self.ready[node] + time);
        let budget = self.world.case.budget;
        let price = if budget.energy == Joules::UNLIMITED { 0.0 } else { self.world.price };
        let cost = price * power.over(time).microjoules() as f64;
        let surplus = self.world.utility(task, completion) as f64 - cost;
        let is_gain = surplus > 0.0 && completion <= budget.end;
        is_gain.then(|| surplus / self.taken(start, completion) as f64)
    }

    fn priced(&mut self, remaining: u128) {
        let left = self.world.left;
        let mut idle: Vec<usize> = (0..self.world.machines.len()).collect();
        idle.retain(|node| self.world.machines[*node].running.is_none());
        let (mut energy, mut filled) = (0, 0);
        let mut tasks = self.world.mappable.clone();
        loop {
            let mut best: Option<(f64, Tie)> = None;
            for &task in &tasks {
                for &node in &self.usable {
                    for state in 0..self.states(task, node) {
                        if !self.passes(task, node, state) || !self.payable(task, node, state) {
                            continue;
                        }
                        let Some(value) = self.surplus(task, node, state) else { continue };
                        let completion = self.ready[node] + self.world.state(task, node, state).0;
                        let tie = (completion, self.purpose(node), node, state, task);
                        let better = best.is_none_or(|(other, other_tie)| {
                            value > other || (value == other && tie < other_tie)
                        });
                        if better {
                            best = Some((value, tie));
                        }
                    }
                }
            }
            let Some((_, (_, _, node, state, task))) = best else { break };
            tasks.retain(|other| *other != task);
            if self.assign(task, node, state) {
                let (time, power) = self.world.state(task, node, state);
                energy += power.over(time).microjoules();
                filled += self.taken(self.now, self.now + time);
                idle.retain(|other| *other != node);
            }
        }
        self.follow(energy, filled, idle.len() as u64, left, remaining);
    }

    /// The price rises if more energy was committed than what is left allows for the machine time that it fills, and
    /// falls if it was less; a machine that stays idle is filled with nothing until the next event.
    fn follow(&mut self, energy: u128, filled: u64, idle: u64, left: Joules, remaining: u128) {
        if left == Joules::ZERO || remaining == 0 {
            return;
        }
        let every = self.world.case.spec.every.millis();
        let time = (filled + idle * every) as f64;
        let allowed = left.microjoules() as f64 / remaining as f64;
        let usual = self.world.machines.len() as f64 * every as f64;
        let excess = (energy as f64 / allowed - time) / usual;
        self.world.price *= 1.0 + (0.03 * excess).clamp(-0.5, 0.5);
    }

    fn greedy(&mut self, measure: Measure) {
        let mut tasks = self.world.mappable.clone();
        loop {
            // The value as a fraction, and what decides where values are equal.
            let mut best: Option<((u128, u128), Tie)> = None;
            for &task in &tasks {
                for &node in &self.usable {
                    for state in 0..self.states(task, node) {
                        if !self.passes(task, node, state) || !self.payable(task, node, state) {
                            continue;
                        }
                        let (time, power) = self.world.state(task, node, state);
                        let completion = self.ready[node] + time;
                        let value = u128::from(self.world.utility(task, completion));
                        let cost = match measure {
                            Measure::Utility => 1,
                            Measure::PerTime => u128::from(time.millis()),
                            Measure::PerEnergy => power.over(time).microjoules(),
                        };
                        let tie = (completion, self.purpose(node), node, state, task);
                        let better = best.is_none_or(|((other, other_cost), other_tie)| {
                            let (mine, theirs) = (value * other_cost, other * cost);
                            mine > theirs || (mine == theirs && tie < other_tie)
                        });
                        if better {
                            best = Some(((value, cost), tie));
                        }
                    }
                }
            }
            let Some((_, (_, _, node, state, task))) = best else { return };
            tasks.retain(|other| *other != task);
            self.assign(task, node, state);
        }
    }

    fn ordered(&mut self, order: Order, prioritized: bool, states: States) {
        let mut tasks = self.world.mappable.clone();
        if order == Order::LastCome {
            tasks.reverse();
        }
        if prioritized {
            let jobs = self.world.case.workload.jobs();
            let start = |task: &usize| {
                let function = jobs[*task].terms.utility.unwrap();
                self.world.case.site.utilities.get(function).unwrap().start()
            };
            tasks.sort_by_key(|task| std::cmp::Reverse(start(task)));
        }
        for task in tasks {
            let mut nodes = self.usable.clone();
            nodes.sort_by_key(|node| (self.ready[*node], self.purpose(*node), *node));
            let found = nodes.into_iter().find_map(|node| {
                let most = if states == States::Fastest { 1 } else { usize::MAX };
                let mut states = 0..self.states(task, node).min(most);
                let allowed = |state: &usize| {
                    self.passes(task, node, *state) && self.payable(task, node, *state)
                };
                states.find(allowed).map(|state| (node, state))
            });
            if let Some((node, state)) = found {
                self.assign(task, node, state);
            }
        }
    }

    fn random(&mut self) {
        let spec = self.world.case.spec;
        let event = self.now.millis() / spec.every.millis();
        let seed = spec.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(event);
        let mut rng = Pcg64Dxsm::seed_from_u64(seed);
        let mut tasks = self.world.mappable.clone();
        // Once every machine has its task nobody draws any more.
        while !tasks.is_empty() && !self.usable.is_empty() {
            let task = tasks.swap_remove(rng.random_range(0..tasks.len()));
            // By machine type, P-state and machine.
            let mut choices: Vec<(usize, usize, usize)> = Vec::new();
            for &node in &self.usable {
                let states = (0..self.states(task, node)).filter(|it| self.passes(task, node, *it));
                choices.extend(states.map(|state| (self.world.machine_type(node), state, node)));
            }
            choices.sort_unstable();
            if choices.is_empty() {
                continue;
            }
            let (_, state, node) = choices[rng.random_range(0..choices.len())];
            if self.payable(task, node, state) {
                self.assign(task, node, state);
            }
        }
    }
}
