//! Which processors a job should run on, if it may have some of many; and how fast it could be at
//! most, whichever it had.
//!
//! Let power have a price. Then a processor is worth its speed less what its power costs, at the
//! corner of its hull where that is most. A job that may have `count` processors buys those that are
//! worth most, as long as they are worth anything. Whatever the price: no choice of processors
//! and caps within the power is faster than the worth of what it buys plus the price of all the power.
//! For the choice's speed is its worth plus the price of its power, and neither is more.
//!
//! The higher the price, the less power is bought. The price at which what is bought just fits into the
//! power gives the lowest bound, and says which processors are right: where power is plenty it is
//! low and the fastest are, and where power is short it is high and the most efficient are.
//!
//! Prices are whole numbers of 2⁻¹⁶ instructions per second for each milliwatt, and all is reckoned in
//! integers. So the bound is one, not one but for rounding.

use std::cmp::Reverse;

use crate::units::Watts;
use crate::variation::{Curve, Knot};

/// Bits of a price behind the point.
const FRACTION: u32 = 16;

/// What may be bought at a price.
pub(super) struct Market<'c> {
    candidates: &'c [&'c Curve],
    /// The most processors that can run.
    count: usize,
    budget: u64,
}

/// What is bought at a price.
struct Purchase {
    /// In units of prices.
    bound: i128,
    power: u64,
}

impl<'c> Market<'c> {
    /// At most so many of these processors, within so much power.
    pub(super) fn new(candidates: &'c [&'c Curve], count: usize, budget: Watts) -> Self {
        let mut leasts: Vec<Watts> = candidates.iter().map(|curve| curve.least()).collect();
        leasts.sort_unstable();
        let fed = leasts.iter().scan(Watts::ZERO, |sum, least| {
            *sum += *least;
            (*sum <= budget).then_some(())
        });
        let count = fed.count().min(count);
        Market { candidates, count, budget: budget.milliwatts() }
    }

    /// The lowest bound there is at any price, and the two prices beside each other between which
    /// what is bought comes to fit into the power.
    pub(super) fn clear(&self) -> (u64, [i128; 2]) {
        let free = self.at(0);
        if free.power <= self.budget {
            return (whole(free.bound), [0, 0]);
        }
        let (mut low, mut high) = (0, self.prohibitive());
        let mut bound = free.bound.min(self.at(high).bound);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let purchase = self.at(middle);
            bound = bound.min(purchase.bound);
            let end = if purchase.power > self.budget { &mut low } else { &mut high };
            *end = middle;
        }
        (whole(bound), [low, high])
    }

    /// A price at which nobody buys.
    fn prohibitive(&self) -> i128 {
        let best = self.candidates.iter().map(|curve| curve.most_efficient());
        let price = |knot: Knot| {
            (i128::from(knot.ips.ips()) << FRACTION) / i128::from(knot.power.milliwatts())
        };
        best.map(price).max().unwrap_or(0) + 1
    }

    fn at(&self, price: i128) -> Purchase {
        let worth = |curve: &&Curve| worth(curve, price);
        let mut worths: Vec<(i128, u64)> = self.candidates.iter().map(worth).collect();
        if self.count < worths.len() {
            worths.select_nth_unstable_by(self.count, |a, b| b.cmp(a));
            worths.truncate(self.count);
        }
        let bought = worths.iter().filter(|(worth, _)| *worth > 0);
        let (worth, power) = bought
            .fold((0, 0), |(worths, powers), (worth, power)| (worths + worth, powers + power));
        Purchase { bound: worth + price * i128::from(self.budget), power }
    }

    /// The candidates by what they are worth at a price, from the most on, and by place where that is
    /// the same.
    pub(super) fn order(&self, price: i128) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.candidates.len()).collect();
        order.sort_by_cached_key(|place| Reverse(worth(self.candidates[*place], price).0));
        order
    }
}

/// What a processor is worth at a price, where it is worth most, and the power there.
fn worth(curve: &Curve, price: i128) -> (i128, u64) {
    let (mut ips, mut power) = (curve.slowest().ips(), curve.least().milliwatts());
    for segment in curve.hull() {
        let (gain, more) = (segment.gain().ips(), segment.power().milliwatts());
        if i128::from(gain) << FRACTION <= price * i128::from(more) {
            break;
        }
        (ips, power) = (ips + gain, power + more);
    }
    ((i128::from(ips) << FRACTION) - price * i128::from(power), power)
}

/// Speeds are whole, so what is above a whole number bounds nothing more.
fn whole(bound: i128) -> u64 {
    u64::try_from(bound >> FRACTION).unwrap_or(u64::MAX)
}
