//! The options that can still be somebody's best, for a sample of the entries or all of them.

use super::super::gain::{gains, largest};
use super::super::instance::{Columns, Instance};
use super::Region;

/// What all entries of a sample would be worth if there were no end of nodes and watts; never
/// nothing.
pub(super) fn most_worth(instance: &Instance, sample: usize) -> f64 {
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
pub(super) struct Live {
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
    pub(super) fn load(
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
    pub(super) fn evaluate(
        &mut self,
        at: [f64; 2],
        capacity: [f64; 2],
        looks: &mut u64,
    ) -> (f64, [f64; 2]) {
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
    pub(super) fn drop_beaten(&mut self, corners: &[[f64; 2]]) {
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
pub(super) fn best_of(value: &[f64], nodes: &[f64], power: &[f64], at: [f64; 2]) -> usize {
    let (mut best, mut most) = (0, f64::NEG_INFINITY);
    for (i, ((value, nodes), power)) in value.iter().zip(nodes).zip(power).enumerate() {
        let gain = value - at[0] * nodes - at[1] * power;
        if gain > most {
            (best, most) = (i, gain);
        }
    }
    best
}
