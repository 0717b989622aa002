//! What running jobs hold, ordered by when it is expected back.
//!
//! A sorted list in blocks: a machine may run thousands of jobs, and shifting one long array at
//! every start would then be most of the work. Each block knows its sums, so that the walk to
//! the instant at which enough is free steps over whole blocks.

use crate::units::{Instant, JobId, Watts};

/// A block is split in two when it grows past this: small enough to shift, long enough to keep
/// the list of blocks short.
const BLOCK: usize = 64;

/// What one job holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// When it is expected back.
    pub until: Instant,
    /// Its owner.
    pub job: JobId,
    /// Nodes held.
    pub nodes: u32,
    /// Power held.
    pub power: Watts,
}

impl Holding {
    /// Puts holdings in order, soonest back first.
    pub(crate) fn sort(holdings: &mut [Holding]) {
        holdings.sort_unstable_by_key(|holding| (holding.until, holding.job));
    }
}

#[derive(Clone, Debug, Default)]
struct Block {
    holdings: Vec<Holding>,
    nodes: u32,
    power: Watts,
}

impl Block {
    fn of(holdings: Vec<Holding>) -> Self {
        let nodes = holdings.iter().map(|holding| holding.nodes).sum();
        let power = holdings.iter().map(|holding| holding.power).sum();
        Block { holdings, nodes, power }
    }

    #[inline]
    fn last(&self) -> Option<&Holding> {
        self.holdings.last()
    }
}

/// The holdings of all running jobs, soonest back first.
#[derive(Clone, Debug, Default)]
pub struct Running {
    /// No empty block, unless it is the only one.
    blocks: Vec<Block>,
    len: usize,
}

/// The instant at which enough is expected to be free, and what is free then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vacancy {
    /// When it happens.
    pub at: Instant,
    /// Nodes free then.
    pub nodes: u32,
    /// Power free then.
    pub power: Watts,
}

/// A walk along the holdings towards the instant at which enough is free.
struct Walk {
    free: Vacancy,
    nodes: u32,
    power: Watts,
}

impl Walk {
    #[inline]
    fn is_enough(&self) -> bool {
        self.free.nodes >= self.nodes && self.free.power >= self.power
    }

    /// Whether the walk can step over a whole block: it is not enough yet, nor with all of it.
    #[inline]
    fn is_too_little(&self, block: &Block) -> bool {
        self.free.nodes + block.nodes < self.nodes || self.free.power + block.power < self.power
    }

    /// Adds what the next holding brings back, unless there was enough before its time.
    #[inline]
    fn ends_before(&mut self, next: &Holding) -> bool {
        if self.is_enough() && next.until > self.free.at {
            return true;
        }
        self.free.at = self.free.at.max(next.until);
        self.free.nodes += next.nodes;
        self.free.power += next.power;
        false
    }
}

impl Running {
    /// How many jobs run.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no job runs.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The holdings, soonest back first.
    pub fn iter(&self) -> impl Iterator<Item = &Holding> {
        self.blocks.iter().flat_map(|block| &block.holdings)
    }

    /// Walks to the first instant at which `nodes` and `power` are free, from what is free now
    /// and what comes back by then, this list's holdings and `more` (sorted alike) together.
    /// Everything that comes back at that very instant counts. `None` if it is never enough.
    pub fn vacancy(
        &self,
        now: Vacancy,
        more: &[Holding],
        nodes: u32,
        power: Watts,
    ) -> Option<Vacancy> {
        let mut walk = Walk { free: now, nodes, power };
        let mut more = more.iter().peekable();
        for block in &self.blocks {
            let Some(last) = block.last() else { continue };
            let uninterrupted = more.peek().is_none_or(|other| other.until > last.until);
            if uninterrupted && walk.is_too_little(block) {
                walk.free.at = walk.free.at.max(last.until);
                walk.free.nodes += block.nodes;
                walk.free.power += block.power;
                continue;
            }
            for holding in &block.holdings {
                while let Some(earlier) = more.next_if(|other| other.until < holding.until) {
                    if walk.ends_before(earlier) {
                        return Some(walk.free);
                    }
                }
                if walk.ends_before(holding) {
                    return Some(walk.free);
                }
            }
        }
        for holding in more {
            if walk.ends_before(holding) {
                return Some(walk.free);
            }
        }
        walk.is_enough().then_some(walk.free)
    }

    /// The first block that ends at or after an instant; the last one if none does.
    #[inline]
    fn block_of(&self, until: Instant) -> usize {
        if self.blocks.len() == 1 {
            return 0;
        }
        let before = |block: &Block| block.last().is_some_and(|last| last.until < until);
        self.blocks.partition_point(before).min(self.blocks.len().saturating_sub(1))
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, holding: Holding) {
        self.len += 1;
        if self.blocks.is_empty() {
            self.blocks.push(Block { holdings: Vec::with_capacity(BLOCK + 1), ..Block::default() });
        }
        let at = self.block_of(holding.until);
        let block = &mut self.blocks[at];
        let place = block.holdings.partition_point(|other| other.until < holding.until);
        block.holdings.insert(place, holding);
        block.nodes += holding.nodes;
        block.power += holding.power;
        if block.holdings.len() > BLOCK {
            let mut tail = Vec::with_capacity(BLOCK + 1);
            tail.extend(block.holdings.drain(BLOCK / 2..));
            let tail = Block::of(tail);
            block.nodes -= tail.nodes;
            block.power -= tail.power;
            self.blocks.insert(at + 1, tail);
        }
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, until: Instant, job: JobId) -> Option<Holding> {
        let (at, place) = self.place_of(until, job)?;
        let block = &mut self.blocks[at];
        let holding = block.holdings.remove(place);
        block.nodes -= holding.nodes;
        block.power -= holding.power;
        if block.holdings.is_empty() && self.blocks.len() > 1 {
            self.blocks.remove(at);
        }
        self.len -= 1;
        Some(holding)
    }

    /// What a job holds that is expected back then.
    pub(super) fn find(&self, until: Instant, job: JobId) -> Option<&Holding> {
        let (at, place) = self.place_of(until, job)?;
        self.blocks[at].holdings.get(place)
    }

    /// The block of a holding, and its place there.
    #[inline]
    fn place_of(&self, until: Instant, job: JobId) -> Option<(usize, usize)> {
        if self.blocks.is_empty() {
            return None;
        }
        // Those that end at the same instant stand together, but not in any order.
        for at in self.block_of(until)..self.blocks.len() {
            let holdings = &self.blocks[at].holdings;
            let first = holdings.partition_point(|other| other.until < until);
            let together = holdings[first..].iter().take_while(|other| other.until == until);
            if let Some(place) = together.map(|other| other.job).position(|other| other == job) {
                return Some((at, first + place));
            }
            if first < holdings.len() && holdings[first].until > until {
                return None;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holding(job: u32, until: u32, nodes: u32) -> Holding {
        let power = Watts::from_watts(nodes * 7 % 13);
        Holding { until: Instant::from_secs(until), job: JobId(job), nodes, power }
    }

    proptest! {
        /// Blocks and their sums change nothing: order and vacancy are those of a plain list.
        #[test]
        fn blocks_agree_with_a_plain_list(
            ends in prop::collection::vec((0u32..300, 1u32..9), 1..400),
            gone in prop::collection::vec(any::<prop::sample::Index>(), 0..300),
            more in prop::collection::vec((0u32..300, 1u32..9), 0..4),
            nodes in 0u32..1500,
            watts in 0u32..3000,
        ) {
            let mut running = Running::default();
            let mut plain: Vec<Holding> =
                (0..).zip(ends).map(|(job, (until, nodes))| holding(job, until, nodes)).collect();
            for holding in &plain {
                running.insert(*holding);
            }
            for index in gone {
                if !plain.is_empty() {
                    let holding = plain.swap_remove(index.index(plain.len()));
                    prop_assert_eq!(running.remove(holding.until, holding.job), Some(holding));
                    prop_assert_eq!(running.remove(holding.until, holding.job), None);
                }
            }
            let key = |holding: &Holding| (holding.until, holding.job);
            prop_assert!(running.iter().is_sorted_by_key(|holding| holding.until));
            let mut all: Vec<Holding> = running.iter().copied().collect();
            all.sort_by_key(key);
            plain.sort_by_key(key);
            prop_assert_eq!(&all, &plain);
            prop_assert_eq!(running.len(), plain.len());

            let mut more: Vec<Holding> =
                (1000..).zip(more).map(|(job, (until, n))| holding(job, until, n)).collect();
            more.sort_by_key(key);
            plain.extend(&more);
            let now = Vacancy { at: Instant::from_secs(50), nodes: 3, power: Watts::from_watts(5) };
            let power = Watts::from_watts(watts);
            // The plain definition: the first end, or now, by which enough has come back.
            let expected = plain
                .iter()
                .map(|holding| holding.until.max(now.at))
                .chain([now.at])
                .map(|at| {
                    let back = plain.iter().filter(|holding| holding.until <= at);
                    let (nodes, power) = back.fold((now.nodes, now.power), |sum, holding| {
                        (sum.0 + holding.nodes, sum.1 + holding.power)
                    });
                    Vacancy { at, nodes, power }
                })
                .filter(|vacancy| vacancy.nodes >= nodes && vacancy.power >= power)
                .min_by_key(|vacancy| vacancy.at);
            prop_assert_eq!(running.vacancy(now, &more, nodes, power), expected);
        }
    }
}
