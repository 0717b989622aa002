//! One job on one machine: which processors it is offered, and what becomes of it.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use busbar_core::solve::ptune::{TuneError, Tuner, plain};
use busbar_core::units::Watts;
use busbar_core::variation::catalyst::Shape;
use busbar_core::variation::{Application, Curve, Processors};

/// The sizes of a job, in processors.
pub(super) const SIZES: [usize; 4] = [16, 32, 64, 128];

/// The power of a job, for each processor it is offered, in watts. The first is what the paper has.
pub(super) const WATTS: [u32; 3] = [51, 60, 75];

/// Quartiles that a job's processors are drawn from, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mix {
    pub(super) name: &'static str,
    pub(super) quartiles: &'static [usize],
}

/// The first is what others are compared with.
pub(super) const MIXES: [Mix; 6] = [
    Mix { name: "Q1", quartiles: &[0] },
    Mix { name: "Q2", quartiles: &[1] },
    Mix { name: "Q3", quartiles: &[2] },
    Mix { name: "Q4", quartiles: &[3] },
    Mix { name: "Q1+Q4", quartiles: &[0, 3] },
    Mix { name: "all", quartiles: &[0, 1, 2, 3] },
];

/// A job, and what became of it. Speeds are in billions of instructions per second.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) code: String,
    /// Which of [`MIXES`].
    pub(super) mix: usize,
    pub(super) size: usize,
    pub(super) watts: u32,
    /// Equal parts, and tuned.
    pub(super) even: f64,
    pub(super) tuned: f64,
    /// The paper's greedy.
    pub(super) plain: f64,
    /// The processors that tuning leaves to others, and the power it leaves, in per cent.
    pub(super) freed: f64,
    pub(super) unused: f64,
    /// Equal parts, tuned and the paper's greedy on curves that were measured with noise.
    pub(super) noisy: [f64; 3],
}

impl Case {
    /// How much less time the tuned job takes, in per cent.
    pub(super) fn reduction(&self) -> f64 {
        100.0 * (1.0 - self.even / self.tuned)
    }

    /// How much faster it is, in per cent.
    pub(super) fn speedup(&self) -> f64 {
        100.0 * (self.tuned / self.even - 1.0)
    }
}

/// All jobs on one machine.
#[derive(Clone, Debug)]
pub(super) struct Draw {
    pub(super) shape: Shape,
    pub(super) cases: Vec<Case>,
}

/// Every code in every mix and size, with every power.
pub(super) fn draw(
    shape: Shape,
    seed: u64,
    quiet: &Processors,
    noisy: &Processors,
) -> Result<Draw, TuneError> {
    // A stream of its own, so that machines know nothing of it.
    let mut numbers = Pcg64Dxsm::seed_from_u64(seed ^ 0x7175_6172_7469_6c65);
    let mut tuner = Tuner::new();
    let mut cases = Vec::new();
    for (application, noisy) in quiet.applications().iter().zip(noisy.applications()) {
        let order = application.by_draw();
        for size in SIZES {
            for (mix, Mix { quartiles, .. }) in MIXES.iter().enumerate() {
                let chosen = pick(&mut numbers, &order, quartiles, size);
                for watts in WATTS {
                    let job = Job { mix, chosen: &chosen, watts };
                    cases.push(job.run(&mut tuner, application, noisy)?);
                }
            }
        }
    }
    Ok(Draw { shape, cases })
}

/// As many processors, at random, from each of these quartiles.
fn pick(numbers: &mut Pcg64Dxsm, order: &[usize], quartiles: &[usize], size: usize) -> Vec<usize> {
    let mut chosen = Vec::with_capacity(size);
    for quartile in quartiles {
        let ends = [order.len() * quartile / 4, order.len() * (quartile + 1) / 4];
        let mut there = order[ends[0]..ends[1]].to_vec();
        for _ in 0..(size / quartiles.len()).min(there.len()) {
            let place = numbers.random_range(0..there.len());
            chosen.push(there.swap_remove(place));
        }
    }
    chosen
}

/// Processors that a job is offered, from which of [`MIXES`] they are, and its power for each of
/// them.
struct Job<'j> {
    mix: usize,
    chosen: &'j [usize],
    watts: u32,
}

impl Job<'_> {
    fn run(
        &self,
        tuner: &mut Tuner,
        quiet: &Application,
        noisy: &Application,
    ) -> Result<Case, TuneError> {
        let budget = Watts::from_watts(self.watts) * self.chosen.len() as u32;
        let (offered, blurred) = (self.curves(quiet), self.curves(noisy));
        let [even, tuned, plain] = speeds(tuner, &offered, budget)?;
        let tuning = tuner.tune(&offered, budget)?;
        Ok(Case {
            code: quiet.name.clone(),
            mix: self.mix,
            size: self.chosen.len(),
            watts: self.watts,
            even,
            tuned,
            plain,
            freed: 100.0 * (1.0 - tuning.grants.len() as f64 / offered.len() as f64),
            unused: 100.0 * (1.0 - tuning.power().as_f64() / budget.as_f64()),
            noisy: speeds(tuner, &blurred, budget)?,
        })
    }

    fn curves<'a>(&self, application: &'a Application) -> Vec<&'a Curve> {
        self.chosen.iter().map(|place| &application.curves[*place]).collect()
    }
}

/// Equal parts, tuned, and the paper's greedy.
fn speeds(tuner: &mut Tuner, curves: &[&Curve], budget: Watts) -> Result<[f64; 3], TuneError> {
    let plain = plain::tune(curves, budget, plain::DELTA)?.ips.billions();
    let tuning = tuner.tune(curves, budget)?;
    let even = tuning.uniform.map_or(0.0, |even| even.ips.billions());
    Ok([even, tuning.ips.billions(), plain])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_come_from_their_quartiles() {
        let order: Vec<usize> = (0..600).rev().collect();
        let mut numbers = Pcg64Dxsm::seed_from_u64(1);
        let mut chosen = pick(&mut numbers, &order, &[0, 3], 64);
        chosen.sort_unstable();
        chosen.dedup();
        assert_eq!(chosen.len(), 64);
        // The order is turned around: the first quartile has the largest numbers.
        assert_eq!(chosen.iter().filter(|place| **place >= 450).count(), 32);
        assert_eq!(chosen.iter().filter(|place| **place < 150).count(), 32);
        assert_eq!(pick(&mut numbers, &order, &[2], 128).len(), 128);
    }
}
