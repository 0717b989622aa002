//! Prices of a node and of a watt at which sharing regulates itself.
//!
//! With a price λ on each node and μ on each watt, every entry takes the option that is worth most
//! after paying, and what all of them gain, plus the price of all there is, bounds the value of any
//! choice:
//!
//! D(λ, μ) = Σ over entries of max over options (value − λ·nodes − μ·watts) + λ·N + μ·W
//!
//! The smallest such bound is wanted. D is convex and piecewise linear, and it has two variables
//! only, so prices that can still be best are kept as a polygon. D is worked out at its centre of
//! gravity, and its slope there cuts a good part of the polygon off. As the polygon shrinks, options
//! are dropped that another option of the same entry beats at all corners, and so everywhere in it;
//! soon nearly all entries are decided and the rest costs nothing. With many entries, a sample of
//! them says first where to look. Where options are few, planes find the best prices with less ado (`planes`).
//!
//! Any prices give a true bound; good ones give a close one.

use super::instance::Instance;
use super::polygon::Polygon;

mod live;
mod planes;

use live::{Live, most_worth};
use planes::Planes;

/// Entries of the first sample; each following sample is larger by [`SAMPLE_GROWTH`].
const FIRST_SAMPLE: usize = 96;
const SAMPLE_GROWTH: usize = 8;
/// How far around a sample's prices to look, as a share of all prices, for a sample of one.
const BREADTH: f64 = 2.0;
/// Centres of gravity at most; each takes at least a third of the polygon away, so that far fewer
/// are needed.
const MOST_CUTS: usize = 300;
/// How near to the best D is near enough, relatively.
const NEAR_ENOUGH: f64 = 1e-14;

/// What is needed to find prices; kept so that memory is asked for once.
#[derive(Default)]
pub(super) struct Dual {
    pub(super) planes: Planes,
    live: Live,
    polygon: Polygon,
    /// D at the prices found last.
    bound: f64,
    fitting: Option<Fitting>,
}

/// Prices at which what all entries take fits, and what that is worth.
#[derive(Clone, Copy)]
pub(super) struct Fitting {
    pub(super) prices: [f64; 2],
    worth: f64,
}

impl Fitting {
    /// These prices, if everything fits there: D falls in neither direction.
    fn of(prices: [f64; 2], bound: f64, slope: [f64; 2]) -> Option<Self> {
        let worth = bound - prices[0] * slope[0] - prices[1] * slope[1];
        (slope[0] >= 0.0 && slope[1] >= 0.0).then_some(Fitting { prices, worth })
    }

    /// The one of two that is worth more, the first of equals.
    fn better(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) if one.worth >= other.worth => Some(one),
            (one, None) => one,
            (_, other) => other,
        }
    }
}

/// The best prices, and what was seen on the way to them.
pub(super) struct Found {
    pub(super) prices: [f64; 2],
    /// D at these prices, but for rounding.
    pub(super) bound: f64,
    /// Of the prices at which everybody gets what he takes, those where that is worth most; if there were any.
    pub(super) fitting: Option<Fitting>,
    /// How many options were looked at.
    pub(super) looks: u64,
}

/// Where the best prices are looked for.
#[derive(Clone, Copy)]
struct Region {
    low: [f64; 2],
    high: [f64; 2],
}

/// A region to begin with, and how to make it larger.
#[derive(Clone, Copy)]
enum Guess {
    /// Around these prices, so far to each side, as a share of the price of all there is.
    Near([f64; 2], f64),
    /// Up to where all there is costs so many times what everybody would be worth.
    Anywhere(f64),
}

impl Guess {
    /// A larger region, around the best prices of this one.
    fn wider(self, prices: [f64; 2]) -> Self {
        match self {
            Guess::Near(_, share) if share < 0.25 => Guess::Near(prices, share * 2.0),
            Guess::Near(..) => Guess::Anywhere(1.0),
            Guess::Anywhere(times) => Guess::Anywhere(times * 16.0),
        }
    }

    fn region(self, capacity: [f64; 2], worth: f64) -> Region {
        let capacity = capacity.map(|amount| amount.max(1.0));
        match self {
            Guess::Near(prices, share) => {
                let all = prices[0] * capacity[0] + prices[1] * capacity[1];
                let reach = capacity.map(|amount| share * all / amount);
                Region {
                    low: [0, 1].map(|i| (prices[i] - reach[i]).max(0.0)),
                    high: [0, 1].map(|i| prices[i] + reach[i]),
                }
            }
            Guess::Anywhere(times) => {
                Region { low: [0.0; 2], high: capacity.map(|amount| times * worth / amount) }
            }
        }
    }
}

impl Region {
    /// Whether the best prices may be outside, seen from the best ones inside.
    fn has_on_edge(&self, prices: [f64; 2]) -> bool {
        [0, 1].iter().any(|&i| {
            let margin = 1e-3 * (self.high[i] - self.low[i]);
            (self.low[i] > 0.0 && prices[i] - self.low[i] < margin)
                || self.high[i] - prices[i] < margin
        })
    }
}

impl Dual {
    /// Prices of a node and of a milliwatt at which D is smallest, or nearly so. There must be a choice that fits:
    /// otherwise prices have no end.
    pub(super) fn prices(&mut self, instance: &Instance, warm: Option<[f64; 2]>) -> Found {
        let entries = instance.entries();
        let mut looks = 0;
        if let Some(found) = self.planes.lowest(instance, warm) {
            return found;
        }
        self.fitting = None;
        let mut guess = warm
            .filter(|prices| prices.iter().any(|price| *price > 0.0))
            .map(|prices| Guess::Near(prices, 0.1));
        let mut size = if guess.is_some() { entries } else { FIRST_SAMPLE };
        loop {
            // A sample nearly as large as the whole is not worth it.
            let sample = if size * 2 < entries { size } else { entries };
            let part = sample as f64 / entries as f64;
            let capacity = instance.capacity().map(|amount| amount * part);
            let mut near = guess.unwrap_or(Guess::Anywhere(1.0));
            let prices = loop {
                let prices = self.solve(instance, sample, capacity, near, &mut looks);
                // Prices beyond all measure come from required entries that barely fit. Any
                // prices will do.
                if !prices.1 || matches!(near, Guess::Anywhere(times) if times > 1e6) {
                    break prices.0;
                }
                near = near.wider(prices.0);
            };
            if sample == entries {
                return Found { prices, bound: self.bound, fitting: self.fitting, looks };
            }
            // What fits a sample says nothing about all.
            self.fitting = None;
            let free = prices.iter().all(|price| *price == 0.0);
            guess = (!free).then(|| Guess::Near(prices, BREADTH / (sample as f64).sqrt()));
            size = sample * SAMPLE_GROWTH;
        }
    }

    /// The best prices in a region for a sample of the entries, and whether they are on its edge.
    fn solve(
        &mut self,
        instance: &Instance,
        sample: usize,
        capacity: [f64; 2],
        guess: Guess,
        looks: &mut u64,
    ) -> ([f64; 2], bool) {
        let worth = match guess {
            Guess::Near(..) => 0.0,
            Guess::Anywhere(_) => most_worth(instance, sample),
        };
        let region = guess.region(capacity, worth);
        let narrow = matches!(guess, Guess::Near(..));
        self.live.load(instance, sample, narrow.then_some(&region), looks);
        let prices = self.descend(&region, capacity, looks);
        (prices, region.has_on_edge(prices))
    }

    /// Cuts the region down to the best prices.
    fn descend(&mut self, region: &Region, capacity: [f64; 2], looks: &mut u64) -> [f64; 2] {
        self.polygon.set_box(region.low, region.high);
        let (mut best, mut prices, mut least) = (f64::INFINITY, [0.0; 2], f64::NEG_INFINITY);
        let mut start = Some([0.0; 2]).filter(|zero| self.polygon.corners()[0] == *zero);
        for cut in 0..MOST_CUTS {
            // If everything fits for nothing, that is the end of it.
            let at = start.take().unwrap_or_else(|| self.polygon.centre());
            let (bound, slope) = self.live.evaluate(at, capacity, looks);
            if bound < best {
                (best, prices) = (bound, at);
            }
            self.fitting = Fitting::better(self.fitting, Fitting::of(at, bound, slope));
            let fall =
                |corner: &[f64; 2]| slope[0] * (corner[0] - at[0]) + slope[1] * (corner[1] - at[1]);
            let deepest = self.polygon.corners().iter().map(fall).fold(0.0, f64::min);
            least = f64::max(least, bound + deepest);
            if deepest == 0.0 || best - least <= NEAR_ENOUGH * best.abs() {
                break;
            }
            self.polygon.cut(slope, at, best - bound);
            if self.polygon.corners().len() < 3 {
                break;
            }
            if cut % 2 == 1 {
                self.live.drop_beaten(self.polygon.corners());
            }
        }
        // A price that is nearly nothing is nothing: it would be paid for all that stays unused.
        // Where it is more than that, options that are best without it may have been dropped.
        for axis in [0, 1] {
            let mut without = prices;
            without[axis] = 0.0;
            if prices[axis] > 0.0 && prices[axis] <= 1e-6 * region.high[axis] {
                let bound = self.live.evaluate(without, capacity, looks).0;
                if bound <= best + NEAR_ENOUGH * best.abs() {
                    (best, prices) = (bound.min(best), without);
                }
            }
        }
        self.bound = best;
        prices
    }
}
