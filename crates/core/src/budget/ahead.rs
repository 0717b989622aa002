//! The lowest limit of a future period, without visiting each change: a tree over the steps of a budget.
//!
//! Each node of the tree knows the lowest limit below it, and for how long which limits can be
//! relied on from some step below it. So every question costs about the logarithm of the number of
//! steps, or its square.

use crate::units::{Instant, Span, Watts};

/// A limit that nothing undercuts for so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reach {
    time: Span,
    limit: Watts,
}

/// What is known of the steps below a node.
#[derive(Clone, Debug)]
struct Node {
    lowest: Watts,
    /// Stretches that begin with one of the steps: the longest first, and each later one shorter
    /// and higher than all before it.
    reaches: Vec<Reach>,
}

impl Node {
    fn above(left: &Node, right: Option<&Node>) -> Node {
        let Some(right) = right else { return left.clone() };
        let mut all: Vec<Reach> = left.reaches.iter().chain(&right.reaches).copied().collect();
        all.sort_unstable_by_key(|reach| (reach.time, reach.limit));
        let mut reaches: Vec<Reach> = Vec::new();
        for reach in all.into_iter().rev() {
            if reaches.last().is_none_or(|highest| highest.limit < reach.limit) {
                reaches.push(reach);
            }
        }
        Node { lowest: left.lowest.min(right.lowest), reaches }
    }

    /// The highest limit that holds for so long from some step on.
    fn highest_for(&self, time: Span) -> Option<Watts> {
        let long_enough = self.reaches.partition_point(|reach| reach.time >= time);
        Some(self.reaches[long_enough.checked_sub(1)?].limit)
    }
}

/// A tree over the steps of a budget.
#[derive(Debug)]
pub(super) struct Ahead {
    /// A leaf for each step first, the root last; each node stands above two of the level before.
    levels: Vec<Vec<Node>>,
}

impl Ahead {
    pub(super) fn of(steps: &[(Instant, Watts)]) -> Self {
        let mut levels = vec![leaves(steps)];
        while let Some(below) = levels.last().filter(|below| below.len() > 1) {
            let above = below.chunks(2).map(|pair| Node::above(&pair[0], pair.get(1)));
            let above = above.collect();
            levels.push(above);
        }
        Ahead { levels }
    }

    /// The lowest limit of the steps from `first` to before `last`.
    pub(super) fn lowest(&self, mut first: usize, mut last: usize) -> Option<Watts> {
        let mut lowest: Option<Watts> = None;
        for level in &self.levels {
            if first >= last {
                break;
            }
            let mut take = |node: &Node| {
                lowest = Some(lowest.map_or(node.lowest, |lowest| lowest.min(node.lowest)));
            };
            if first % 2 == 1 {
                take(&level[first]);
                first += 1;
            }
            if last % 2 == 1 {
                last -= 1;
                take(&level[last]);
            }
            (first, last) = (first / 2, last / 2);
        }
        lowest
    }

    /// The highest limit that holds for so long from some step on, `first` or a later one.
    pub(super) fn highest_for(&self, mut first: usize, time: Span) -> Option<Watts> {
        let mut highest = None;
        for level in &self.levels {
            // What has no place beside it, or above it, counts by itself.
            if first % 2 == 1 || level.len() == 1 {
                highest = highest.max(level.get(first).and_then(|node| node.highest_for(time)));
            }
            first = first.div_ceil(2);
        }
        highest
    }

    /// The first step, `first` or a later one, whose limit is below this.
    pub(super) fn first_below(&self, first: usize, limit: Watts) -> Option<usize> {
        self.first(first, |node| node.lowest < limit)
    }

    /// The first step, `first` or a later one, from which such a limit holds for so long.
    pub(super) fn first_for(&self, first: usize, limit: Watts, time: Span) -> Option<usize> {
        self.first(first, |node| node.highest_for(time).is_some_and(|highest| highest >= limit))
    }

    /// The first leaf of which something holds that holds of a node if it holds of one below it.
    fn first(&self, first: usize, holds: impl Fn(&Node) -> bool) -> Option<usize> {
        let (mut level, mut place) = (0, first);
        loop {
            let is_root = level + 1 == self.levels.len();
            if place % 2 == 0 && !is_root {
                (level, place) = (level + 1, place / 2);
            } else if holds(self.levels[level].get(place)?) {
                break;
            } else {
                place += 1;
            }
        }
        while level > 0 {
            (level, place) = (level - 1, 2 * place);
            if !holds(&self.levels[level][place]) {
                place += 1;
            }
        }
        Some(place)
    }

    /// The last step before `end` whose limit is below this.
    pub(super) fn last_below(&self, end: usize, limit: Watts) -> Option<usize> {
        let holds = |level: usize, place: usize| self.levels[level][place].lowest < limit;
        let (mut level, mut end) = (0, end);
        loop {
            let is_root = level + 1 == self.levels.len();
            if end == 0 {
                return None;
            } else if end % 2 == 0 && !is_root {
                (level, end) = (level + 1, end / 2);
            } else if holds(level, end - 1) {
                break;
            } else {
                end -= 1;
            }
        }
        let mut place = end - 1;
        while level > 0 {
            (level, place) = (level - 1, 2 * place + 1);
            if place >= self.levels[level].len() || !holds(level, place) {
                place -= 1;
            }
        }
        Some(place)
    }
}

/// What is known of each step by itself: how long each limit holds that begins with it. A limit
/// that is not lower than the one before it begins with its own step; a lower one began with the
/// first of those that it undercuts.
fn leaves(steps: &[(Instant, Watts)]) -> Vec<Node> {
    let leaf = |step: &(Instant, Watts)| Node { lowest: step.1, reaches: Vec::new() };
    let mut leaves: Vec<Node> = steps.iter().map(leaf).collect();
    // Limits that still hold, each with the step it holds since; the lowest first.
    let mut holding: Vec<(usize, Watts)> = Vec::new();
    for (place, &(at, limit)) in steps.iter().enumerate() {
        let mut since = place;
        while let Some((begin, higher)) = holding.pop_if(|held| held.1 > limit) {
            let time = at.since(steps[begin].0);
            leaves[begin].reaches.push(Reach { time, limit: higher });
            since = begin;
        }
        if holding.last().is_none_or(|held| held.1 < limit) {
            holding.push((since, limit));
        }
    }
    for (begin, limit) in holding.into_iter().rev() {
        leaves[begin].reaches.push(Reach { time: Span::FOREVER, limit });
    }
    leaves.iter_mut().for_each(|leaf| leaf.reaches.reverse());
    leaves
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use proptest::prelude::*;

    /// Steps at short and long intervals, at few levels, so that limits tie.
    fn budgets() -> impl Strategy<Value = Budget> {
        let step = (prop_oneof![1u64..4, 1u64..60], 0u32..6);
        prop::collection::vec(step, 1..70).prop_map(|steps| {
            let mut at = 0;
            let step = |(gap, watts): (u64, u32)| {
                at += gap;
                (Instant::from_millis(at), Watts::from_watts(watts))
            };
            Budget::from_steps(steps.into_iter().map(step).collect()).unwrap()
        })
    }

    /// The instants at which a question may have its answer: `from` and the changes after it.
    fn instants(budget: &Budget, from: Instant, until: Instant) -> Vec<Instant> {
        let changes = budget.changes_after(from).iter().map(|change| change.0);
        [from].into_iter().chain(changes.filter(|at| *at < until)).collect()
    }

    fn plain_lowest(budget: &Budget, from: Instant, until: Instant) -> Watts {
        let limits = instants(budget, from, until).into_iter().map(|at| budget.at(at));
        limits.min().unwrap()
    }

    proptest! {
        /// The tree answers as somebody does who walks along all limits.
        #[test]
        fn the_tree_agrees_with_a_walk(
            budget in budgets(),
            questions in prop::collection::vec((0u64..800, 0u64..800, 0u64..90, 0u32..7), 1..30),
        ) {
            for (from, until, time, watts) in questions {
                let from = Instant::from_millis(from);
                let until = if until > 700 { Instant::NEVER } else { Instant::from_millis(until) };
                let (time, limit) = (Span::from_millis(time), Watts::from_watts(watts));
                prop_assert_eq!(budget.lowest(from, until), plain_lowest(&budget, from, until));

                let all = || instants(&budget, from, until).into_iter().filter(|at| *at < until);
                let below = all().find(|at| budget.at(*at) < limit);
                prop_assert_eq!(budget.first_below(limit, from, until), below);

                let holds = |at: &Instant| {
                    plain_lowest(&budget, *at, (*at + time).min(until)) >= limit
                };
                prop_assert_eq!(
                    budget.first_stretch(limit, time, from, until),
                    all().find(holds),
                    "{} for {} from {} until {} in {:?}", limit, time, from, until, budget
                );

                let begins = instants(&budget, from, Instant::NEVER).into_iter();
                let largest = begins.map(|at| plain_lowest(&budget, at, at + time)).max();
                prop_assert_eq!(Some(budget.largest_for(from, time)), largest);

                // Who goes along gets the same answers.
                let mut along = budget.along(from);
                for from in [from, from + time.min(Span::from_millis(7)), from + time] {
                    for until in [until, from + Span::from_millis(2), from + time] {
                        let (below, stretch) = (
                            budget.first_below(limit, from, until),
                            budget.first_stretch(limit, time, from, until),
                        );
                        prop_assert_eq!(along.first_below(limit, from, until), below);
                        prop_assert_eq!(along.first_stretch(limit, time, from, until), stretch);
                    }
                }
            }
        }
    }
}
