//! Watts shared among nodes behind a tree of feeds so that they are worth most together.
//!
//! Each node draws at least so much and says what more is worth to it, watt by watt, the first of them most. Each feed carries at
//! most so much of what is drawn below it. The best watts are granted first, each as far as every feed above its node has room,
//! and what is refused once is refused for good, as room only shrinks. That is the optimum: limits of feeds contain each other or
//! have nothing in common, so a watt that is granted keeps no more than one other from being granted, and that one is worth no
//! more. All quantities are integers, so nothing is lost to rounding.
//!
//! A step costs its place in the order and a walk up its feeds.

use crate::units::Watts;

/// A feed. Feeds stand in a list, each after the one above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The most that may be drawn below it.
    pub limit: Watts,
    /// The place of the feed above it.
    pub above: Option<usize>,
}

/// So much power more, each milliwatt of which is worth so much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// How much.
    pub power: Watts,
    /// What a milliwatt of it is worth, in any unit that is the same for all nodes.
    pub worth: u64,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// The place of its feed.
    pub feed: usize,
    /// What it draws at least.
    pub least: Watts,
    /// What it would draw beyond that, in falling order of worth. With all of them it draws its most.
    pub steps: Vec<Step>,
}

/// Why watts cannot be shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShareError {
    /// A feed does not carry what is drawn below it at least.
    #[error("feed {feed} carries less than what its nodes draw at least")]
    TooSmall {
        /// Its place.
        feed: usize,
    },
    /// More watts are worth more to a node than the first ones.
    #[error("to node {node}, later watts are worth more than earlier ones")]
    NotConcave {
        /// Its place.
        node: usize,
    },
    /// A place is named where there is nothing, or a feed that stands before the one above it.
    #[error("feed {feed} is not there, or stands before the one above it")]
    NoFeed {
        /// The place.
        feed: usize,
    },
}

/// What each node gets, so that the worth of all is the largest there can be. Of watts that are worth the same, those of the node
/// that comes first are granted first.
///
/// # Errors
///
/// If what nodes draw at least is too much, or the input is not what it has to be.
pub fn share(lines: &[Line], nodes: &[Consumer]) -> Result<Vec<Watts>, ShareError> {
    let mut tree = Tree::of(lines)?;
    let mut shares = Vec::with_capacity(nodes.len());
    let mut wanted: Vec<(u64, u32, u32)> = Vec::new();
    for (place, node) in nodes.iter().enumerate() {
        if node.feed >= lines.len() {
            return Err(ShareError::NoFeed { feed: node.feed });
        }
        if node.steps.windows(2).any(|pair| pair[0].worth < pair[1].worth) {
            return Err(ShareError::NotConcave { node: place });
        }
        if let Err(feed) = tree.take_all(node.feed, node.least) {
            return Err(ShareError::TooSmall { feed });
        }
        shares.push(node.least);
        let steps = node.steps.iter().zip(0..);
        wanted.extend(steps.map(|(step, number)| (u64::MAX - step.worth, place as u32, number)));
    }
    wanted.sort_unstable();
    for (_, place, number) in wanted {
        let node = &nodes[place as usize];
        let granted = tree.take(node.feed, node.steps[number as usize].power);
        shares[place as usize] += granted;
    }
    Ok(shares)
}

/// What there is room for below each feed.
struct Tree<'a> {
    lines: &'a [Line],
    room: Vec<Watts>,
    /// By feed: the one above it that is used up, or itself; whoever is below needs not look further.
    used_up: Vec<bool>,
}

impl<'a> Tree<'a> {
    fn of(lines: &'a [Line]) -> Result<Self, ShareError> {
        let is_misplaced =
            |(place, line): (usize, &Line)| line.above.is_some_and(|above| above >= place);
        if let Some(feed) = lines.iter().enumerate().position(is_misplaced) {
            return Err(ShareError::NoFeed { feed });
        }
        let room: Vec<Watts> = lines.iter().map(|line| line.limit).collect();
        let used_up = vec![false; lines.len()];
        Ok(Tree { lines, room, used_up })
    }

    fn above(&self, feed: usize) -> impl Iterator<Item = usize> + use<'a> {
        let lines = self.lines;
        std::iter::successors(Some(feed), move |feed| lines[*feed].above)
    }

    /// Takes as much of a power as there is room for on the way up.
    fn take(&mut self, feed: usize, power: Watts) -> Watts {
        if self.used_up[feed] {
            return Watts::ZERO;
        }
        let granted = self.above(feed).map(|feed| self.room[feed]).fold(power, Watts::min);
        for above in self.above(feed) {
            self.room[above] -= granted;
        }
        self.used_up[feed] = granted < power;
        granted
    }

    /// Takes all of a power, or says which feed has no room for it.
    fn take_all(&mut self, feed: usize, power: Watts) -> Result<(), usize> {
        if let Some(small) = self.above(feed).find(|feed| self.room[*feed] < power) {
            return Err(small);
        }
        for above in self.above(feed) {
            self.room[above] -= power;
        }
        Ok(())
    }
}

/// What shares are worth.
pub fn worth(nodes: &[Consumer], shares: &[Watts]) -> u128 {
    let worth_of = |(node, share): (&Consumer, &Watts)| {
        let mut left = share.saturating_sub(node.least);
        let worths = node.steps.iter().map(|step| {
            let power = left.min(step.power);
            left -= power;
            u128::from(power.milliwatts()) * u128::from(step.worth)
        });
        worths.sum::<u128>()
    };
    nodes.iter().zip(shares).map(worth_of).sum()
}

/// What no shares can be worth more than, by the prices of feeds: what a milliwatt below each is worth when none is left there.
/// With the right prices that is the optimum itself, which proves that shares are the best.
///
/// Each feed has a price, which counts for all below it, and grants its whole limit at that; each node takes what is worth its price.
pub fn bound(lines: &[Line], nodes: &[Consumer], prices: &[u64]) -> u128 {
    let price_of = |feed: usize| -> u64 {
        let above = std::iter::successors(Some(feed), |feed| lines[*feed].above);
        above.map(|feed| prices[feed]).sum()
    };
    let of_feeds = lines.iter().zip(prices);
    let of_feeds =
        of_feeds.map(|(line, price)| u128::from(line.limit.milliwatts()) * u128::from(*price));
    let mut total = of_feeds.sum::<u128>();
    for node in nodes {
        let price = price_of(node.feed);
        total -= u128::from(node.least.milliwatts()) * u128::from(price);
        let gains = node.steps.iter().map(|step| {
            u128::from(step.power.milliwatts()) * u128::from(step.worth.saturating_sub(price))
        });
        total += gains.sum::<u128>();
    }
    total
}

/// The prices at which these shares are the best: by feed, what the best milliwatt is worth that is refused below it alone.
pub fn prices(lines: &[Line], nodes: &[Consumer], shares: &[Watts]) -> Vec<u64> {
    let mut left: Vec<Watts> = lines.iter().map(|line| line.limit).collect();
    for (node, share) in nodes.iter().zip(shares) {
        let above = std::iter::successors(Some(node.feed), |feed| lines[*feed].above);
        above.for_each(|feed| left[feed] = left[feed].saturating_sub(*share));
    }
    // By feed: the best that is refused below it, for which none of the feeds in between can be blamed.
    let mut refused = vec![0u64; lines.len()];
    for (node, share) in nodes.iter().zip(shares) {
        let mut had = share.saturating_sub(node.least);
        let next = node.steps.iter().find(|step| {
            let whole = had >= step.power;
            had = had.saturating_sub(step.power);
            !whole
        });
        refused[node.feed] = refused[node.feed].max(next.map_or(0, |step| step.worth));
    }
    // What is refused below a feed that has room left is refused because of one above it.
    let mut total = vec![0u64; lines.len()];
    for feed in (0..lines.len()).rev() {
        if let Some(above) = lines[feed].above
            && left[feed] > Watts::ZERO
        {
            refused[above] = refused[above].max(refused[feed]);
        }
    }
    for feed in 0..lines.len() {
        let above = lines[feed].above.map_or(0, |above| total[above]);
        total[feed] = match left[feed] {
            Watts::ZERO => above.max(refused[feed]),
            _ => above,
        };
    }
    let above = |feed: usize| lines[feed].above.map_or(0, |above| total[above]);
    (0..lines.len()).map(|feed| total[feed] - above(feed)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WATTS: fn(u32) -> Watts = Watts::from_watts;

    fn node(feed: usize, least: u32, steps: &[(u32, u64)]) -> Consumer {
        let step = |&(watts, worth): &(u32, u64)| Step { power: WATTS(watts), worth };
        Consumer { feed, least: WATTS(least), steps: steps.iter().map(step).collect() }
    }

    /// Two racks below a row of 500 W; the first has 260 W.
    #[test]
    fn the_best_watts_first() {
        let line = |limit, above| Line { limit: WATTS(limit), above };
        let lines = [line(500, None), line(260, Some(0)), line(400, Some(0))];
        let nodes = [
            node(1, 50, &[(50, 9), (100, 3)]),
            node(1, 50, &[(50, 8), (100, 7)]),
            node(2, 50, &[(100, 5), (100, 4)]),
            node(2, 50, &[(100, 2)]),
        ];
        // 200 W at least; the first rack has 160 W more, the row 300: 50 at 9, 50 at 8, 60 of 100 at 7, 100 at 5, 40 of 100 at 4.
        let shares = share(&lines, &nodes).unwrap();
        assert_eq!(shares, [100, 160, 190, 50].map(WATTS));
        let best = 1000 * (50 * 9 + 50 * 8 + 60 * 7 + 100 * 5 + 40 * 4);
        assert_eq!(worth(&nodes, &shares), best);
        assert_eq!(prices(&lines, &nodes, &shares), [4, 3, 0]);
        assert_eq!(bound(&lines, &nodes, &[4, 3, 0]), best);
        assert!(bound(&lines, &nodes, &[3, 4, 0]) > best);
        let small = [line(500, None), line(99, Some(0)), line(400, Some(0))];
        assert_eq!(share(&small, &nodes), Err(ShareError::TooSmall { feed: 1 }));
        let rising = [node(0, 0, &[(1, 1), (1, 2)])];
        assert_eq!(share(&lines, &rising), Err(ShareError::NotConcave { node: 0 }));
    }

    proptest! {
        /// Prices prove for every tree that nothing is worth more.
        #[test]
        fn prices_prove_the_optimum(
            lines in prop::collection::vec((0u32..9, 0u32..400), 1..8),
            nodes in prop::collection::vec((0usize..8, 0u32..20, prop::collection::vec((1u32..60, 1u64..20), 0..5)), 1..30),
        ) {
            let line = |(place, (above, limit)): (usize, &(u32, u32))| {
                let above = (place > 0 && *above > 0).then(|| *above as usize % place);
                Line { limit: WATTS(*limit), above }
            };
            let lines: Vec<Line> = lines.iter().enumerate().map(line).collect();
            let nodes = nodes.into_iter().map(|(feed, least, mut steps)| {
                steps.sort_by_key(|step| std::cmp::Reverse(step.1));
                node(feed % lines.len(), least, &steps)
            });
            let nodes: Vec<Consumer> = nodes.collect();
            let Ok(shares) = share(&lines, &nodes) else { return Ok(()) };
            let mut drawn = vec![Watts::ZERO; lines.len()];
            for (node, share) in nodes.iter().zip(&shares) {
                let most: Watts = node.steps.iter().map(|step| step.power).sum();
                prop_assert!(*share >= node.least && *share <= node.least + most);
                let above = std::iter::successors(Some(node.feed), |feed| lines[*feed].above);
                above.for_each(|feed| drawn[feed] += *share);
            }
            prop_assert!(drawn.iter().zip(&lines).all(|(drawn, line)| *drawn <= line.limit));
            let prices = prices(&lines, &nodes, &shares);
            prop_assert_eq!(worth(&nodes, &shares), bound(&lines, &nodes, &prices), "{:?}", prices);
        }
    }
}
