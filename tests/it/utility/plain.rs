//! Utility under an energy budget, written down plainly: at every event every task, machine and
//! P-state is looked at, and everything is planned to the end.

use busbar::heterogeneity::{Purpose, TaskType};
use busbar::policy::utility::filter::{Filter, Limit};
use busbar::policy::utility::spec::{Environment, Heuristic, Measure, Order, States};
use busbar::units::{Instant, Joules, NodeId, Span, Watts};
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
            Heuristic::Priced => unreachable!("its price has tests of its own"),
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

    fn assign(&mut self, task: usize, node: usize, state: usize) {
        let planned = Planned { task, state, charge: Joules::ZERO };
        let (time, _) = self.world.state(task, node, state);
        self.ready[node] = self.ready[node] + time;
        if !self.queued {
            self.usable.retain(|other| *other != node);
        }
        match (self.world.machines[node].running, self.world.machines[node].pending) {
            (None, None) => _ = self.world.start(planned, node, self.now),
            (Some((_, until)), None) => self.world.promise(planned, node, until),
            _ => self.world.machines[node].queue.push(planned),
        }
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
