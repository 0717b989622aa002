//! What is fitted: samples, and parameters within their ranges.
//!
//! The logarithm of time is a sum, of one term that depends on nodes alone and one that depends on
//! the cap alone. Each is worked out once for every number of nodes and every cap that occurs, and
//! a sample only adds up two of them.
//!
//! The walk downhill knows no ranges. It moves unknowns without bounds, of which the parameters
//! are sines: (1 + sin u)/2 of the way from the lower end of the range to the upper one.

use std::f64::consts::FRAC_PI_2;
use std::ops::RangeInclusive;

use super::Sample;
use super::memo::Memo;
use crate::model::pass::power::root;
use crate::model::pass::scaling::share_of_one_node;

/// The share of the power left for speed that is linear in frequency, at the highest frequency. The
/// published applications have 0.36 to 0.71.
pub(crate) const LINEAR_SHARE: f64 = 0.5;

/// The largest c, as a share of the lowest cap: the processor has to run on what is left.
const LARGEST_CONSTANT: f64 = 0.95;
/// The largest β: under the lowest cap, a hundred times as slow.
const LARGEST_SENSITIVITY: f64 = 0.99;

/// What is fitted, as itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Parameters {
    /// The logarithm of T₁ in seconds.
    pub(super) ln_seconds: f64,
    /// A.
    pub(super) average_parallelism: f64,
    /// σ.
    pub(super) variation: f64,
    /// p_h.
    pub(super) highest_watts: f64,
    /// c.
    pub(super) constant_watts: f64,
    /// β.
    pub(super) sensitivity: f64,
}

/// The samples, with each number of nodes and each cap once.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    /// The numbers of nodes that occur, ascending.
    node_counts: Vec<f64>,
    /// The caps to choose from, ascending.
    caps: Vec<f64>,
    rows: Vec<Measured>,
}

/// A sample.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Its place among the numbers of nodes.
    nodes: usize,
    /// Its place among the caps.
    cap: usize,
    ln_seconds: f64,
}

/// All values, ascending, each once.
fn distinct(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    values
}

impl Problem {
    /// Of samples whose figures are above zero. All but this, the lists and `varies_together` is
    /// for problems with enough of each.
    pub(super) fn new(samples: &[Sample]) -> Self {
        let node_counts = distinct(samples.iter().map(|sample| f64::from(sample.nodes)));
        let caps = distinct(samples.iter().map(|sample| sample.cap_watts));
        let place = |values: &[f64], value: f64| values.partition_point(|other| *other < value);
        let row = |sample: &Sample| Measured {
            nodes: place(&node_counts, f64::from(sample.nodes)),
            cap: place(&caps, sample.cap_watts),
            ln_seconds: libm::log(sample.seconds),
        };
        let rows = samples.iter().map(row).collect();
        Problem { node_counts, caps, rows }
    }

    /// The numbers of nodes, ascending, each once.
    pub(super) fn node_counts(&self) -> &[f64] {
        &self.node_counts
    }

    /// The caps, ascending, each once.
    pub(super) fn caps(&self) -> &[f64] {
        &self.caps
    }

    /// Whether caps follow the order of nodes, or its reverse, so closely that less than 5 % of
    /// the variance of their ranks is their own.
    pub(super) fn varies_together(&self) -> bool {
        let count = self.rows.len() as f64;
        let ranks = || self.rows.iter().map(|row| (row.nodes as f64, row.cap as f64));
        let (nodes, caps) = ranks().fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        let (nodes, caps) = (nodes / count, caps / count);
        let (mut of_nodes, mut of_caps, mut of_both) = (0.0, 0.0, 0.0);
        for (node, cap) in ranks() {
            of_nodes += (node - nodes).powi(2);
            of_caps += (cap - caps).powi(2);
            of_both += (node - nodes) * (cap - caps);
        }
        of_both * of_both > 0.95 * of_nodes * of_caps
    }

    /// p_l.
    pub(super) fn lowest_cap(&self) -> f64 {
        self.caps[0]
    }

    /// How many samples there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The range of A. Below it every sample is on the level part of the law, above it every one is
    /// on the first branch.
    pub(super) fn parallelism_range(&self) -> RangeInclusive<f64> {
        let last = self.node_counts[self.node_counts.len() - 1];
        (self.node_counts[0] + 1.0) / 2.0..=last
    }

    /// The range of p_h. Below the second cap it would concern no other, and above the last none
    /// would be without effect.
    pub(super) fn highest_watts_range(&self) -> RangeInclusive<f64> {
        self.caps[1]..=self.caps[self.caps.len() - 1]
    }

    /// The range of c.
    pub(super) fn constant_watts_range(&self) -> RangeInclusive<f64> {
        0.0..=LARGEST_CONSTANT * self.lowest_cap()
    }

    /// The range of β.
    pub(super) fn sensitivity_range(&self) -> RangeInclusive<f64> {
        0.0..=LARGEST_SENSITIVITY
    }

    /// The parameters that unknowns stand for.
    pub(super) fn parameters(&self, unknowns: &[f64]) -> Parameters {
        let average_parallelism = bounded(unknowns[1], &self.parallelism_range());
        // No node makes things worse: σ ≤ 2A.
        let fixed = bounded(unknowns[2], &(0.0..=1.0));
        Parameters {
            ln_seconds: unknowns[0],
            average_parallelism,
            variation: 2.0 * average_parallelism * fixed,
            highest_watts: bounded(unknowns[3], &self.highest_watts_range()),
            constant_watts: bounded(unknowns[4], &self.constant_watts_range()),
            sensitivity: bounded(unknowns[5], &self.sensitivity_range()),
        }
    }

    /// Predicted over measured time, as logarithms.
    pub(super) fn residuals(&self, parameters: &Parameters) -> Vec<f64> {
        Evaluation::of(self).residuals(parameters)
    }

    /// The logarithm of the share of T₁ on each number of nodes.
    fn of_nodes(&self, average_parallelism: f64, variation: f64) -> Vec<f64> {
        let fixed = variation / (2.0 * average_parallelism);
        let of_nodes =
            |&nodes: &f64| libm::log(share_of_one_node(nodes, average_parallelism, fixed));
        self.node_counts.iter().map(of_nodes).collect()
    }

    /// The slowdown under each cap.
    fn slowdowns(&self, parameters: &Parameters) -> Vec<f64> {
        let Parameters { highest_watts, constant_watts, sensitivity, .. } = *parameters;
        // f_h/f − 1.
        let loss = |watts: f64| {
            let left = (watts - constant_watts) / (highest_watts - constant_watts);
            if left >= 1.0 { 0.0 } else { 1.0 / root(1.0 - LINEAR_SHARE, LINEAR_SHARE, left) - 1.0 }
        };
        let steepness = sensitivity / (1.0 - sensitivity) / loss(self.lowest_cap());
        self.caps.iter().map(|&watts| 1.0 + steepness * loss(watts)).collect()
    }

    /// Where to start: with A and p_h at many places of their ranges, since the laws have kinks
    /// there, and with the others at middling ones.
    pub(super) fn starts(&self) -> Vec<Vec<f64>> {
        const PARALLELISMS: usize = 6;
        const HIGHEST_CAPS: usize = 8;
        let (a_range, p_range) = (self.parallelism_range(), self.highest_watts_range());
        let steps = self.caps.len() - 2;
        let count = steps.min(HIGHEST_CAPS);
        let mut starts = Vec::with_capacity(PARALLELISMS * count);
        for parallelism in 0..PARALLELISMS {
            let part = (parallelism as f64 + 0.5) / PARALLELISMS as f64;
            // In equal ratios.
            let (low, high) = (a_range.start(), a_range.end());
            let parallelism = low * libm::pow(high / low, part);
            for place in 0..count {
                // Between two caps that follow each other.
                let place = 1 + place * steps / count;
                let highest = 0.5 * (self.caps[place] + self.caps[place + 1]);
                let mut start = vec![
                    0.0,
                    unbounded(parallelism, &a_range),
                    unbounded(0.2 / parallelism, &(0.0..=1.0)),
                    unbounded(highest, &p_range),
                    unbounded(0.4 * self.lowest_cap(), &self.constant_watts_range()),
                    unbounded(0.2, &self.sensitivity_range()),
                ];
                // T₁ such that the residuals are zero on average.
                let residuals = self.residuals(&self.parameters(&start));
                start[0] = -residuals.iter().sum::<f64>() / residuals.len() as f64;
                starts.push(start);
            }
        }
        starts
    }
}

/// Residuals at one place after the other, of which parts are alike.
pub(super) struct Evaluation<'a> {
    problem: &'a Problem,
    of_nodes: Memo<2>,
    of_caps: Memo<3>,
}

impl<'a> Evaluation<'a> {
    pub(super) fn of(problem: &'a Problem) -> Self {
        Evaluation { problem, of_nodes: Memo::default(), of_caps: Memo::default() }
    }

    /// Predicted over measured time, as logarithms.
    pub(super) fn residuals(&mut self, parameters: &Parameters) -> Vec<f64> {
        let Evaluation { problem, of_nodes, of_caps } = self;
        let Parameters { ln_seconds, average_parallelism, variation, .. } = *parameters;
        let Parameters { highest_watts, constant_watts, sensitivity, .. } = *parameters;
        let of_nodes = of_nodes.at([average_parallelism, variation], || {
            problem.of_nodes(average_parallelism, variation)
        });
        let of_caps = of_caps.at([highest_watts, constant_watts, sensitivity], || {
            problem.slowdowns(parameters).into_iter().map(libm::log).collect()
        });
        let rows = problem.rows.iter();
        rows.map(|row| ln_seconds + of_nodes[row.nodes] + of_caps[row.cap] - row.ln_seconds)
            .collect()
    }
}

/// The value in a range that an unknown without bounds stands for.
fn bounded(unknown: f64, range: &RangeInclusive<f64>) -> f64 {
    let (low, high) = (*range.start(), *range.end());
    (low + (high - low) * (1.0 + libm::sin(unknown)) / 2.0).clamp(low, high)
}

/// The unknown that stands for a value in a range.
fn unbounded(value: f64, range: &RangeInclusive<f64>) -> f64 {
    let (low, high) = (*range.start(), *range.end());
    libm::asin((2.0 * (value - low) / (high - low) - 1.0).clamp(-1.0, 1.0))
        .clamp(-FRAC_PI_2, FRAC_PI_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_kept_and_undone() {
        let range = 2.0..=10.0;
        for value in [2.0, 2.5, 6.0, 10.0] {
            assert!((bounded(unbounded(value, &range), &range) - value).abs() < 1e-12, "{value}");
        }
        for unknown in [-1e9, -3.0, 0.1, 7.0, 1e9] {
            assert!(range.contains(&bounded(unknown, &range)), "{unknown}");
        }
    }
}
