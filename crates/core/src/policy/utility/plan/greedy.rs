//! Two-phase greedy mapping: every task finds its best choice, the best of those is assigned, and
//! again.
//!
//! As a plan goes on, machines are only ready later and energy only gets less, so no choice ever
//! becomes better. What a task was worth when it was last looked at is therefore a bound, and a
//! heap of bounds is enough: the task on top is looked at again if the machine it wanted has been
//! taken, and put back unless it is still the best. Of machines of one type only the first that is
//! ready can be anybody's best.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::super::choices::Choice;
use super::super::price::Market;
use super::super::spec::Measure;
use super::{Rules, Scene, Task};
use crate::heterogeneity::Purpose;
use crate::units::{Instant, NodeId};

/// The tasks that are left, the most promising on top.
pub(super) struct Greedy {
    by: By,
    heap: BinaryHeap<Bid>,
}

/// What is to be as large as possible.
#[derive(Clone, Copy, Debug)]
pub(super) enum By {
    /// Utility, or its ratio to what a choice costs.
    Ratio(Measure),
    /// Utility less the price of energy, for each millisecond.
    Surplus(Market),
}

/// What a task would do, if it were its turn.
#[derive(Clone, Copy, Debug)]
struct Bid {
    /// What is to be as large as possible, as the nearest double.
    value: f64,
    completion: Instant,
    purpose: Purpose,
    node: u32,
    state: u16,
    /// The machine type, and its version when this was worked out.
    kind: u16,
    version: u32,
    /// The place of the choice in the order of costs.
    choice: u16,
    /// The place of the task; tasks stand in the order of their arrival.
    task: u32,
}

impl Bid {
    /// Of equal values, the earliest completion; then special-purpose machines, then those with low
    /// numbers, then fast P-states, then tasks that arrived early.
    fn key(&self) -> impl Ord {
        let Bid { completion, purpose, node, state, task, .. } = *self;
        Reverse((completion, purpose, node, state, task))
    }
}

impl Ord for Bid {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.value.total_cmp(&other.value).then_with(|| self.key().cmp(&other.key()))
    }
}

impl PartialOrd for Bid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Bid {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Bid {}

impl Greedy {
    pub(super) fn new(by: By, rules: &Rules<'_>, scene: &mut Scene) -> Self {
        let mut bids = Vec::with_capacity(scene.tasks.len());
        for place in 0..scene.tasks.len() {
            let task = scene.tasks[place];
            if scene.closed[task.kind.0 as usize] {
                continue;
            }
            match best(by, rules, scene, place as u32, &task) {
                Some(bid) => bids.push(bid),
                // No machine now is no machine later, whoever asks.
                None if matches!(by, By::Ratio(_)) => scene.closed[task.kind.0 as usize] = true,
                // What is a loss for one may be a gain for another.
                None => {}
            }
        }
        Greedy { by, heap: bids.into() }
    }

    /// The next task with its choice, its machine and its start.
    pub(super) fn next(
        &mut self,
        rules: &Rules<'_>,
        scene: &mut Scene,
    ) -> Option<(u32, Choice, NodeId, Instant)> {
        while let Some(mut top) = self.heap.peek_mut() {
            let task = scene.tasks[top.task as usize];
            let choice = rules.choices.by_cost(task.kind)[usize::from(top.choice)];
            let fresh = top.version == scene.ready.version(top.kind)
                && scene.purse.allows(&choice, scene.ready.available(top.kind));
            if fresh {
                let bid = std::collections::binary_heap::PeekMut::pop(top);
                let (start, node) = scene.ready.take(choice.kind, choice.time);
                return Some((bid.task, choice, node, start));
            }
            match best(self.by, rules, scene, top.task, &task) {
                Some(bid) => *top = bid,
                None => {
                    std::collections::binary_heap::PeekMut::pop(top);
                }
            }
        }
        None
    }
}

/// The best that a task can do.
#[inline]
fn best(by: By, rules: &Rules<'_>, scene: &Scene, place: u32, task: &Task) -> Option<Bid> {
    match by {
        By::Ratio(measure) => best_ratio(measure, rules, scene, place, task),
        By::Surplus(market) => best_surplus(&market, rules, scene, place, task),
    }
}

/// The bid of a task for a choice, on the machine that is ready first, whose value is not known yet; none where
/// there is no machine or too little energy, and where it would be complete later than this.
#[inline]
fn bid(
    rules: &Rules<'_>,
    scene: &Scene,
    place: u32,
    (index, choice): (usize, &Choice),
    latest: Instant,
) -> Option<Bid> {
    let (ready, node) = scene.ready.first(choice.kind);
    let completion = ready + choice.time;
    if completion > latest || ready == Instant::NEVER {
        return None;
    }
    if !scene.purse.allows(choice, scene.ready.available(choice.kind)) {
        return None;
    }
    Some(Bid {
        value: 0.0,
        completion,
        purpose: rules.choices.purposes[usize::from(choice.kind)],
        node,
        state: choice.state,
        kind: choice.kind,
        version: scene.ready.version(choice.kind),
        choice: index as u16,
        task: place,
    })
}

fn best_ratio(
    measure: Measure,
    rules: &Rules<'_>,
    scene: &Scene,
    place: u32,
    task: &Task,
) -> Option<Bid> {
    let function = rules.utilities.at(task.utility);
    let mut best: Option<Bid> = None;
    let mut soonest = Instant::NEVER;
    for (index, choice) in rules.choices.by_cost(task.kind).iter().enumerate() {
        // Who costs no less and is complete later is worth no more.
        let Some(mut bid) = bid(rules, scene, place, (index, choice), soonest) else { continue };
        soonest = bid.completion;
        // Where all cost the same, the earliest completion is the best, and one look is enough.
        if measure != Measure::Utility {
            let utility = function.at(bid.completion.since(task.arrival));
            bid.value = utility.millionths() as f64 / choice.cost;
        }
        if best.is_none_or(|other| bid > other) {
            best = Some(bid);
        }
    }
    if let (Measure::Utility, Some(bid)) = (measure, &mut best) {
        bid.value = function.at(bid.completion.since(task.arrival)).millionths() as f64;
    }
    best
}

fn best_surplus(
    market: &Market,
    rules: &Rules<'_>,
    scene: &Scene,
    place: u32,
    task: &Task,
) -> Option<Bid> {
    let function = rules.utilities.at(task.utility);
    let mut best: Option<Bid> = None;
    for (index, choice) in rules.choices.by_cost(task.kind).iter().enumerate() {
        let Some(bid) = bid(rules, scene, place, (index, choice), market.end) else { continue };
        let (start, _) = scene.ready.first(choice.kind);
        let earned = function.at(bid.completion.since(task.arrival));
        let Some(value) = market.worth(choice, start, bid.completion, earned) else { continue };
        let bid = Bid { value, ..bid };
        if best.is_none_or(|other| bid > other) {
            best = Some(bid);
        }
    }
    best
}
