//! The plan of a mapping event: which task goes to which machine, one after the other.
//!
//! A plan is made as far as somebody asks for. In the queued environment most of it is never looked
//! at, as tasks are planned anew at the next event; what is asked for later is what would have come
//! at once, since a plan depends on nothing but the state in which it was begun.

mod greedy;

use greedy::{By, Greedy};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use super::choices::{Choice, Choices};
use super::price::Market;
use super::ready::ReadyMachines;
use super::spec::{Heuristic, Order, States};
use crate::budget::EnergyBudget;
use crate::heterogeneity::TaskType;
use crate::units::{Instant, JobId, Joules, NodeId};
use crate::utility::Utilities;

/// A task that can be mapped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) job: JobId,
    pub(super) kind: TaskType,
    /// The place of its utility function.
    pub(super) utility: u32,
    pub(super) arrival: Instant,
    /// The latest completion that is worth enough not to be dropped.
    pub(super) deadline: Instant,
}

/// A task, its machine and its P-state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assignment {
    pub(super) job: JobId,
    pub(super) node: NodeId,
    pub(super) choice: Choice,
    /// What it is charged, if it is committed.
    pub(super) charge: Joules,
    /// Whether there is room for it on the machine, so that it will not be moved any more.
    pub(super) commits: bool,
}

/// What may be spent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purse {
    pub(super) budget: EnergyBudget,
    /// The energy that is not promised.
    pub(super) left: Joules,
    /// What one choice may consume, in microjoules.
    limit: u64,
    /// Whether there is so little left that not every choice can be paid for.
    tight: bool,
}

impl Purse {
    pub(super) fn new(budget: EnergyBudget, left: Joules, limit: Joules, largest: Joules) -> Self {
        let limit = u64::try_from(limit.microjoules()).unwrap_or(u64::MAX);
        Purse { budget, left, limit, tight: left < largest }
    }

    /// Whether a choice passes the filter and can be paid for on a machine that is available then.
    #[inline]
    pub(super) fn allows(&self, choice: &Choice, available: Instant) -> bool {
        self.passes(choice) && (!self.tight || self.can_pay(choice, available))
    }

    /// Whether a choice passes the filter.
    #[inline]
    fn passes(&self, choice: &Choice) -> bool {
        choice.energy <= self.limit
    }

    /// Whether a choice can be paid for whenever it starts, from then on: nothing costs more than to
    /// start at once, or at the begin of the period.
    #[inline]
    pub(super) fn can_pay(&self, choice: &Choice, available: Instant) -> bool {
        self.charge(choice, available.max(self.budget.begin)) <= self.left
    }

    #[inline]
    pub(super) fn charge(&self, choice: &Choice, start: Instant) -> Joules {
        self.budget.charge(choice.power, start, start + choice.time)
    }

    fn spend(&mut self, charge: Joules, largest: Joules) {
        self.left = self.left.saturating_sub(charge);
        self.tight = self.left < largest;
    }
}

/// What does not change from event to event.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) heuristic: Heuristic,
    pub(super) choices: &'a Choices,
    pub(super) utilities: &'a Utilities,
    /// The rank of the starting value of each utility function, the largest first.
    pub(super) levels: &'a [u32],
    /// How many ranks there are.
    pub(super) level_count: u32,
}

/// Everything that a mapping event may look at.
pub(super) struct Scene {
    pub(super) tasks: Vec<Task>,
    pub(super) ready: ReadyMachines,
    pub(super) purse: Purse,
    /// Task types of which no task can be mapped any more in this event.
    pub(super) closed: Vec<bool>,
    /// What energy costs, where it has a price.
    pub(super) market: Market,
}

/// A plan, as far as it has got.
pub(super) struct Plan {
    scene: Scene,
    /// By node: how many tasks there still is room for beside the virtual queue.
    slots: Vec<u8>,
    /// By task type: how many tasks have not been assigned.
    unassigned: Vec<u32>,
    mapper: Mapper,
}

/// How the next task is found.
enum Mapper {
    Ordered { order: Vec<u32>, next: usize, states: States },
    Greedy(Greedy),
    Random { rng: Box<Pcg64Dxsm>, tasks: Vec<u32> },
}

impl Plan {
    /// A plan that has not got anywhere yet.
    pub(super) fn new(rules: &Rules<'_>, scene: Scene, slots: Vec<u8>, seed: u64) -> Self {
        let mut scene = scene;
        let mapper = match rules.heuristic {
            Heuristic::Ordered { order, prioritized, states } => {
                let order = in_order(rules, &scene.tasks, order, prioritized);
                Mapper::Ordered { order, next: 0, states }
            }
            Heuristic::Greedy(measure) => {
                Mapper::Greedy(Greedy::new(By::Ratio(measure), rules, &mut scene))
            }
            Heuristic::Priced => {
                let by = By::Surplus(scene.market);
                Mapper::Greedy(Greedy::new(by, rules, &mut scene))
            }
            Heuristic::Random => Mapper::Random {
                rng: Box::new(Pcg64Dxsm::seed_from_u64(seed)),
                tasks: (0..scene.tasks.len() as u32).collect(),
            },
        };
        let mut unassigned = vec![0; rules.choices.types()];
        for task in &scene.tasks {
            unassigned[task.kind.0 as usize] += 1;
        }
        Plan { scene, slots, unassigned, mapper }
    }

    /// Whether a task was there when the plan was begun.
    pub(super) fn has(&self, job: JobId) -> bool {
        self.scene.tasks.iter().any(|task| task.job == job)
    }

    /// The tasks that were there when the plan was begun.
    pub(super) fn into_tasks(self) -> Vec<Task> {
        self.scene.tasks
    }

    /// How many tasks there is still room for on machines that some task may be mapped to.
    pub(super) fn has_room(&self) -> bool {
        self.slots.iter().any(|slots| *slots > 0)
    }

    /// Whether a machine of this type may get another task, as far as can be told at a glance.
    pub(super) fn may_serve(&self, kind: usize, rules: &Rules<'_>) -> bool {
        let task_left = |task: &u32| {
            let task = *task as usize;
            self.unassigned[task] > 0 && !self.scene.closed[task]
        };
        rules.choices.runs(kind).iter().any(task_left)
    }

    /// The next assignment.
    pub(super) fn next(&mut self, rules: &Rules<'_>) -> Option<Assignment> {
        if self.scene.ready.is_empty() {
            return None;
        }
        let Plan { scene, mapper, .. } = self;
        let (task, choice, node, start) = match mapper {
            Mapper::Greedy(greedy) => greedy.next(rules, scene)?,
            Mapper::Ordered { order, next, states } => loop {
                let index = *order.get(*next)?;
                *next += 1;
                let task = scene.tasks[index as usize];
                if scene.closed[task.kind.0 as usize] {
                    continue;
                }
                match first_ready(rules, scene, task.kind, *states) {
                    Some(choice) => {
                        let (start, node) = scene.ready.take(choice.kind, choice.time);
                        break (index, choice, node, start);
                    }
                    None => scene.closed[task.kind.0 as usize] = true,
                }
            },
            Mapper::Random { rng, tasks } => loop {
                if tasks.is_empty() {
                    return None;
                }
                let index = tasks.swap_remove(rng.random_range(0..tasks.len()));
                let task = scene.tasks[index as usize];
                if let Some(assigned) = any_choice(rules, scene, task.kind, rng.as_mut()) {
                    let (choice, node, start) = assigned;
                    break (index, choice, node, start);
                }
            },
        };
        let charge = scene.purse.charge(&choice, start);
        let slots = &mut self.slots[node.0 as usize];
        let commits = *slots > 0;
        if commits {
            *slots -= 1;
            scene.purse.spend(charge, rules.choices.largest);
        }
        let Task { job, kind, .. } = scene.tasks[task as usize];
        self.unassigned[kind.0 as usize] -= 1;
        Some(Assignment { job, node, choice, charge, commits })
    }
}

/// The tasks in the order in which they are mapped.
fn in_order(rules: &Rules<'_>, tasks: &[Task], order: Order, prioritized: bool) -> Vec<u32> {
    let all = 0..tasks.len() as u32;
    let mut sorted: Vec<u32> = match order {
        Order::FirstCome => all.collect(),
        Order::LastCome => all.rev().collect(),
    };
    if prioritized {
        // There are few levels, so the tasks of each are counted and laid out; within a level the order
        // stays.
        let level = |task: &Task| rules.levels[task.utility as usize] as usize;
        let mut places = vec![0; rules.level_count as usize + 1];
        tasks.iter().for_each(|task| places[level(task) + 1] += 1);
        for next in 1..places.len() {
            places[next] += places[next - 1];
        }
        let mut by_level = vec![0; sorted.len()];
        for index in sorted {
            let place = &mut places[level(&tasks[index as usize])];
            by_level[*place] = index;
            *place += 1;
        }
        sorted = by_level;
    }
    sorted
}

/// On the machine that is ready first, the first P-state that is allowed. Of machines that are ready
/// at once, special-purpose ones come first, then those with the lowest numbers.
fn first_ready(rules: &Rules<'_>, scene: &Scene, kind: TaskType, states: States) -> Option<Choice> {
    let mut best: Option<(_, &Choice)> = None;
    let mut settled = u16::MAX;
    let choices = match states {
        States::Fastest => rules.choices.fastest(kind),
        States::All => rules.choices.by_kind(kind),
    };
    for choice in choices {
        let machine = choice.kind;
        if machine == settled {
            continue;
        }
        let (ready, node) = scene.ready.first(machine);
        if ready == Instant::NEVER {
            settled = machine;
            continue;
        }
        if !scene.purse.allows(choice, scene.ready.available(machine)) {
            continue;
        }
        settled = machine;
        let key = (ready, rules.choices.purposes[usize::from(machine)], node);
        if best.is_none_or(|(other, _)| key < other) {
            best = Some((key, choice));
        }
    }
    best.map(|(_, choice)| *choice)
}

/// Any machine and P-state of those that pass the filter, each as likely; nothing if that cannot be
/// paid for.
fn any_choice(
    rules: &Rules<'_>,
    scene: &mut Scene,
    kind: TaskType,
    rng: &mut Pcg64Dxsm,
) -> Option<(Choice, NodeId, Instant)> {
    let Scene { ready, purse, .. } = scene;
    let passing = || {
        let choices = rules.choices.by_kind(kind).iter();
        choices.filter(|choice| purse.passes(choice))
    };
    let count: usize = passing().map(|choice| ready.count(choice.kind)).sum();
    if count == 0 {
        return None;
    }
    let mut drawn = rng.random_range(0..count);
    let choice = *passing().find(|choice| {
        let here = ready.count(choice.kind);
        let found = drawn < here;
        drawn -= if found { 0 } else { here };
        found
    })?;
    let can_pay = purse.can_pay(&choice, ready.available(choice.kind));
    let (start, node) = can_pay.then(|| ready.take_member(choice.kind, drawn, choice.time))?;
    Some((choice, node, start))
}
