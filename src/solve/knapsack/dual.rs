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
//! them says first where to look.
//!
//! Any prices give a true bound; good ones give a close one.

use super::gain::{gains, largest};
use super::instance::{Columns, Instance};
use super::polygon::Polygon;

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
    live: Live,
    polygon: Polygon,
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
    /// Prices of a node and of a milliwatt at which D is smallest, or nearly so, and how many
    /// options were looked at. There must be a choice that fits: otherwise prices have no end.
    pub(super) fn prices(
        &mut self,
        instance: &Instance,
        warm: Option<[f64; 2]>,
    ) -> ([f64; 2], u64) {
        let entries = instance.entries();
        let mut looks = 0;
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
                return (prices, looks);
            }
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
        prices
    }
}

/// What all entries of a sample would be worth if there were no end of nodes and watts; never
/// nothing.
fn most_worth(instance: &Instance, sample: usize) -> f64 {
    let largest =
        |entry| instance.columns.value[instance.row(entry)].iter().copied().fold(0.0, f64::max);
    let worth: f64 = places(instance.entries(), sample).map(largest).sum();
    if worth > 0.0 { worth } else { 1.0 }
}

/// A sample of the entries, spread over all of them but at no fixed stride, which may be that of
/// something in the data.
fn places(entries: usize, sample: usize) -> impl Iterator<Item = usize> {
    /// The golden ratio's fraction: its multiples fall everywhere between 0 and 1.
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let stride = entries as f64 / sample as f64;
    (0..sample).map(move |i| {
        if sample == entries {
            return i;
        }
        (((i as f64 + (i as f64 * GOLDEN).fract()) * stride) as usize).min(entries - 1)
    })
}

/// The options that can still be somebody's best.
#[derive(Default)]
struct Live {
    columns: Columns,
    /// Where the options of each undecided entry begin, and where the last one's end.
    starts: Vec<usize>,
    /// The option each undecided entry took when it was last asked.
    taken: Vec<usize>,
    /// Value, nodes and power of the entries that are decided.
    decided: [f64; 3],
    gains: Vec<f64>,
}

impl Live {
    /// Takes the options of a sample; of a region, those that can be best in it.
    fn load(
        &mut self,
        instance: &Instance,
        sample: usize,
        region: Option<&Region>,
        looks: &mut u64,
    ) {
        self.columns.clear();
        self.starts.clear();
        self.starts.push(0);
        self.taken.clear();
        self.decided = [0.0; 3];
        let all = &instance.columns;
        for entry in places(instance.entries(), sample) {
            let row = instance.row(entry);
            *looks += row.len() as u64;
            let (value, nodes, power) =
                (&all.value[row.clone()], &all.nodes[row.clone()], &all.power[row]);
            match region {
                None => {
                    for i in (0..value.len()).filter(|i| value[*i] > f64::NEG_INFINITY) {
                        self.columns.push(value[i], nodes[i], power[i]);
                    }
                }
                Some(Region { low, high }) => {
                    let middle = [0, 1].map(|i| 0.5 * (low[i] + high[i]));
                    gains(value, nodes, power, middle, &mut self.gains);
                    let taken = largest(&self.gains).0;
                    let own = [value[taken], nodes[taken], power[taken]];
                    // How far each gets ahead at most, anywhere in the region.
                    let options = value.iter().zip(nodes).zip(power);
                    self.gains.clear();
                    self.gains.extend(options.map(|((value, nodes), power)| {
                        let (more, watts) = (nodes - own[1], power - own[2]);
                        let smaller = |a: f64, b: f64| if a < b { a } else { b };
                        value
                            - own[0]
                            - smaller(low[0] * more, high[0] * more)
                            - smaller(low[1] * watts, high[1] * watts)
                    }));
                    self.gains[taken] = 1.0;
                    for (i, _) in self.gains.iter().enumerate().filter(|(_, ahead)| **ahead > 0.0) {
                        self.columns.push(value[i], nodes[i], power[i]);
                    }
                }
            }
            self.close();
        }
    }

    /// Ends the options of an entry; one that has a single option is decided.
    fn close(&mut self) {
        let begin = self.starts[self.starts.len() - 1];
        let end = self.columns.value.len();
        if end == begin + 1 {
            self.decided[0] += self.columns.value[begin];
            self.decided[1] += self.columns.nodes[begin];
            self.decided[2] += self.columns.power[begin];
            self.columns.value.truncate(begin);
            self.columns.nodes.truncate(begin);
            self.columns.power.truncate(begin);
        } else {
            self.starts.push(end);
            self.taken.push(begin);
        }
    }

    /// D and its slope at these prices.
    fn evaluate(&mut self, at: [f64; 2], capacity: [f64; 2], looks: &mut u64) -> (f64, [f64; 2]) {
        let [value, nodes, power] = self.decided;
        let mut used = [nodes, power];
        let mut gain = value - at[0] * nodes - at[1] * power;
        let Columns { value, nodes, power } = &self.columns;
        for (bounds, taken) in self.starts.windows(2).zip(&mut self.taken) {
            let row = bounds[0]..bounds[1];
            let best =
                bounds[0] + best_of(&value[row.clone()], &nodes[row.clone()], &power[row], at);
            *taken = best;
            gain += value[best] - at[0] * nodes[best] - at[1] * power[best];
            used[0] += nodes[best];
            used[1] += power[best];
        }
        *looks += value.len() as u64 + 1;
        let bound = gain + at[0] * capacity[0] + at[1] * capacity[1];
        (bound, [capacity[0] - used[0], capacity[1] - used[1]])
    }

    /// Drops options that the one last taken beats at every corner.
    fn drop_beaten(&mut self, corners: &[[f64; 2]]) {
        let (mut kept, mut entries) = (0, 0);
        let Columns { value, nodes, power } = &mut self.columns;
        let mut begin = 0;
        for entry in 0..self.taken.len() {
            let end = self.starts[entry + 1];
            let taken = self.taken[entry];
            let own = [value[taken], nodes[taken], power[taken]];
            let first = kept;
            for i in begin..end {
                let more = [value[i] - own[0], nodes[i] - own[1], power[i] - own[2]];
                let is_ahead = |at: &[f64; 2]| more[0] > at[0] * more[1] + at[1] * more[2];
                if i == taken || corners.iter().any(is_ahead) {
                    // What is kept moves down, never past what is still to be read.
                    (value[kept], nodes[kept], power[kept]) = (value[i], nodes[i], power[i]);
                    kept += 1;
                }
            }
            begin = end;
            if kept == first + 1 {
                self.decided[0] += own[0];
                self.decided[1] += own[1];
                self.decided[2] += own[2];
                kept = first;
            } else {
                self.taken[entries] = first;
                entries += 1;
                self.starts[entries] = kept;
            }
        }
        value.truncate(kept);
        nodes.truncate(kept);
        power.truncate(kept);
        self.taken.truncate(entries);
        self.starts.truncate(entries + 1);
    }
}

/// The option that gains most at these prices; of several the first.
#[inline]
fn best_of(value: &[f64], nodes: &[f64], power: &[f64], at: [f64; 2]) -> usize {
    let (mut best, mut most) = (0, f64::NEG_INFINITY);
    for (i, ((value, nodes), power)) in value.iter().zip(nodes).zip(power).enumerate() {
        let gain = value - at[0] * nodes - at[1] * power;
        if gain > most {
            (best, most) = (i, gain);
        }
    }
    best
}
