//! Three lists of combinations joined, a short one and two long ones: which triple leaves least?
//!
//! A triple is of interest if together it takes no more than is left, and loses and leaves so little
//! that it beats the best choice known. So for each pair of the first two lists, the nodes and watts
//! of the third must lie in a small window. The last list is put on a grid with cells as large as
//! the largest window, and the cells are hashed: a window touches four of them at most. The pairs
//! are not listed: for a few times as many looks, the long lists are much shorter.

use super::meter::Meter;
use super::runs::Combination;

/// A list on a grid.
#[derive(Default)]
pub(super) struct Grid {
    /// Where each bucket begins in `members`, and where the last one ends.
    starts: Vec<u32>,
    members: Vec<Member>,
    /// The buckets that are in the order of losses: those that somebody looked into.
    sorted: Vec<bool>,
    axes: [Axis; 2],
    bits: u32,
    /// How much of each resource one unit of value pays for.
    per_price: [f64; 2],
    /// The shortfall for which the cells are large enough.
    shortfall: f64,
}

/// The grid is made finer when the shortfall is less than this share of what it was made for.
const FINER: f64 = 0.6;

#[derive(Clone, Copy, Default)]
struct Member {
    loss: f64,
    takes: [i64; 2],
    place: u32,
}

/// The best triple found, by the places of its parts, and what it falls short by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Triple {
    pub(super) places: [usize; 3],
    pub(super) shortfall: f64,
}

/// What is joined for: the prices, what the loss-free choice leaves, and what a pair has to fall
/// short by less than to be of interest.
#[derive(Clone, Copy)]
pub(super) struct Aim {
    pub(super) prices: [f64; 2],
    pub(super) left: [i64; 2],
    pub(super) shortfall: f64,
    /// Differences below this are taken for rounding.
    pub(super) tolerance: f64,
}

/// One axis of the grid.
#[derive(Clone, Copy, Default)]
struct Axis {
    low: i64,
    high: i64,
    cells_per_unit: f64,
}

impl Axis {
    fn of(list: &[Combination], axis: usize, window: f64) -> Self {
        let amounts = || list.iter().map(|combination| combination.takes[axis]);
        let (low, high) = (amounts().min().unwrap_or(0), amounts().max().unwrap_or(0));
        // A window that holds everything, or has no end because the price is zero: one cell.
        let all = (high - low) as f64 <= window;
        Axis { low, high, cells_per_unit: if all { 0.0 } else { 1.0 / window.max(1.0) } }
    }

    #[inline]
    fn cell(&self, amount: i64) -> i64 {
        ((amount - self.low) as f64 * self.cells_per_unit) as i64
    }

    /// The cells that hold amounts of at most `most` that leave no more than `room` of it.
    #[inline]
    fn cells(&self, most: i64, room: f64) -> Option<(i64, i64)> {
        let least = (most as f64 - room).max(self.low as f64);
        (most >= self.low && least <= self.high as f64)
            .then(|| (self.cell(least as i64), self.cell(most.min(self.high))))
    }
}

/// Two cells as one number in which neighbours are far apart. They come in lattices, which plain
/// multiplication would leave as lattices: so what is above is folded into what is below.
#[inline]
fn mix(pair: [i64; 2]) -> u64 {
    let fold = |x: u64| (x ^ (x >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    let both = (pair[0] as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ pair[1] as u64;
    let folded = fold(fold(both));
    folded ^ (folded >> 32)
}

#[inline]
fn hash(cells: [i64; 2], bits: u32) -> usize {
    mix(cells) as usize & ((1 << bits) - 1)
}

impl Grid {
    /// The triple that falls short least, if one falls short by less than the aim. Returns nothing
    /// else when the effort is spent before all were tried: `meter` knows. Gives up after about
    /// `most_tries`.
    pub(super) fn join(
        &mut self,
        [few, one, other]: [&[Combination]; 3],
        mut aim: Aim,
        most_tries: u64,
        meter: &mut Meter<'_, '_>,
    ) -> Option<Triple> {
        let mut best = None;
        let mut tries = 0;
        self.put(other, &aim);
        for (first, base) in few.iter().enumerate() {
            let left = [aim.left[0] - base.takes[0], aim.left[1] - base.takes[1]];
            if !meter.spend(one.len() as u64) {
                break;
            }
            for (second, here) in one.iter().enumerate() {
                let lost = base.loss + here.loss;
                let room = aim.shortfall - lost;
                if room <= aim.tolerance {
                    continue;
                }
                let left = [left[0] - here.takes[0], left[1] - here.takes[1]];
                let (found, tried) = self.fit(left, room, &aim);
                if let Some((shortfall, third)) = found {
                    let shortfall = lost + shortfall;
                    aim.shortfall = shortfall;
                    best = Some(Triple { places: [first, second, third], shortfall });
                    if shortfall < FINER * self.shortfall {
                        self.put(other, &aim);
                        meter.spend(other.len() as u64);
                    }
                }
                tries += tried;
                if !meter.spend(tried) || tries > most_tries {
                    return best;
                }
            }
        }
        best
    }

    /// What falls short least, by less than `room`, of those that take no more than is left: by how
    /// much, and which. And how many were tried.
    #[inline]
    fn fit(&mut self, left: [i64; 2], mut room: f64, aim: &Aim) -> (Option<(f64, usize)>, u64) {
        let cells = [0, 1].map(|i| self.axes[i].cells(left[i], room * self.per_price[i]));
        let [Some(nodes), Some(power)] = cells else { return (None, 0) };
        let (mut best, mut tried) = (None, 0);
        for node_cell in nodes.0..=nodes.1 {
            for power_cell in power.0..=power.1 {
                let bucket = hash([node_cell, power_cell], self.bits);
                for member in self.bucket(bucket) {
                    // Those that follow lose more.
                    if member.loss > room {
                        break;
                    }
                    tried += 1;
                    let unused = [left[0] - member.takes[0], left[1] - member.takes[1]];
                    if unused[0] < 0 || unused[1] < 0 {
                        continue;
                    }
                    let shortfall = member.loss
                        + aim.prices[0] * unused[0] as f64
                        + aim.prices[1] * unused[1] as f64;
                    if shortfall < room - aim.tolerance {
                        room = shortfall;
                        best = Some((shortfall, member.place as usize));
                    }
                }
            }
        }
        (best, tried)
    }

    /// The members of a bucket, by loss.
    #[inline]
    fn bucket(&mut self, bucket: usize) -> &[Member] {
        let bounds = self.starts[bucket] as usize..self.starts[bucket + 1] as usize;
        let members = &mut self.members[bounds];
        if members.len() > 1 && !std::mem::replace(&mut self.sorted[bucket], true) {
            members.sort_unstable_by(|a, b| a.loss.total_cmp(&b.loss).then(a.place.cmp(&b.place)));
        }
        members
    }

    /// Puts a list into the buckets of its cells.
    fn put(&mut self, list: &[Combination], aim: &Aim) {
        self.shortfall = aim.shortfall;
        self.axes = [0, 1].map(|i| Axis::of(list, i, aim.shortfall / aim.prices[i]));
        self.per_price = aim.prices.map(|price| 1.0 / price);
        self.bits = (list.len() as u32).next_power_of_two().trailing_zeros().max(4);
        let (axes, bits) = (self.axes, self.bits);
        let bucket = |combination: &Combination| {
            hash([0, 1].map(|i| axes[i].cell(combination.takes[i])), bits)
        };
        self.starts.clear();
        self.starts.resize((1 << bits) + 1, 0);
        for combination in list {
            self.starts[bucket(combination)] += 1;
        }
        let mut sum = 0;
        for start in &mut self.starts {
            sum += *start;
            *start = sum;
        }
        self.members.clear();
        self.members.resize(sum as usize, Member::default());
        // From the last to the first, so that equal ones stay in order.
        for (place, combination) in list.iter().enumerate().rev() {
            let start = &mut self.starts[bucket(combination)];
            *start -= 1;
            self.members[*start as usize] =
                Member { loss: combination.loss, takes: combination.takes, place: place as u32 };
        }
        self.sorted.clear();
        self.sorted.resize(1 << bits, false);
    }
}
