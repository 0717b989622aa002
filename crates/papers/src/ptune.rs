//! PTune and PPartition (Gholkar, Mueller and Rountree: Power tuning for HPC jobs under manufacturing
//! variations): jobs on processors that are not alike, their power in equal parts and tuned.
//!
//! The paper's measurements of 600 processors were never published. Machines made up from many
//! seeds stand in for them, with both shapes of the curves below 60 W, of which nothing is published.
//! Two experiments are about one job: how much slower it is on processors of the worse quartiles
//! when each is held at 51 W, and how much tuning gains over equal parts of the same power. A third
//! is not in the paper: what its greedy makes of curves that were measured with noise. Then a queue of
//! jobs under a budget for the whole machine: how many are let in, and how much they get done.
//!
//! `one_job` and `many_jobs` run them on one machine, `tables` and `throughput` hold the published
//! numbers and set ours beside them; `measured` runs those with one job on real processors.

use crate::Reproduction;
use crate::parallel::in_parallel;
use busbar_core::machine::MachineError;
use busbar_core::solve::ptune::TuneError;
use busbar_core::units::Share;
use busbar_core::variation::CurveError;
use busbar_core::variation::catalyst::{Catalyst, Shape};

pub(crate) mod many_jobs;
mod measured;
mod one_job;
mod tables;
mod throughput;

use many_jobs::{Field, SCHEMES, Scheme};
pub use measured::{OnCurves, reproduce_on};
use one_job::Draw;

/// How many machines, and from where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Machines of each shape.
    pub seeds: u64,
    /// The first seed; the others follow. After the largest number there is comes zero.
    pub first_seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { seeds: 20, first_seed: 1 }
    }
}

/// Why the experiments could not be repeated.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// The machine is none.
    #[error(transparent)]
    Curve(#[from] CurveError),
    /// A job cannot run on it.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// Quartiles of so few processors are no quartiles.
    #[error(
        "{processors} processors are too few: a job of a quarter of them has 16 at least, so measure {needed}"
    )]
    TooFew {
        /// Their number.
        processors: usize,
        /// How many there must be.
        needed: usize,
    },
    /// Its processors make no machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

/// Runs the paper's experiments on all cores; `progress` hears how many machines are done, of how
/// many.
pub fn reproduce(
    options: &Options,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Reproduction, ReproduceError> {
    let machines = Shape::ALL.into_iter().flat_map(|shape| {
        (0..options.seeds).map(move |draw| (shape, options.first_seed.wrapping_add(draw)))
    });
    let machines: Vec<(Shape, u64)> = machines.collect();
    let done = in_parallel(&machines, |(shape, seed)| on_one_machine(*shape, *seed), progress);
    let done = done.into_iter().collect::<Result<Vec<_>, ReproduceError>>()?;
    let (draws, fields): (Vec<_>, Vec<_>) = done.into_iter().unzip();
    let notes = vec![
        format!(
            "{} machines of 600 processors with each shape; measured is the mean over them, ± the \
             standard deviation, agree the share of them with the published sign",
            options.seeds
        ),
        "continued, cubic: how speed falls below 60 W, of which nothing is published".to_owned(),
        "Q1 to Q4: quartiles by power drawn without a cap, Q1 the most efficient; a job's \
         processors are drawn from its quartiles in equal numbers"
            .to_owned(),
        "the job's power is 51 W for each processor on offer, unless said otherwise; the paper's 8, \
         16 and 32 kW for 16, 32 and 64 processors are taken for slips"
            .to_owned(),
        "the queue: a job of 64 processors, then 199 of 1-4 or 4-32 with equal chance, a quarter of \
         all for each code, 10 to 60 minutes long, all there from the beginning on a machine of 550 \
         processors"
            .to_owned(),
        "stop: after the first job that does not fit nobody starts; skip: it is passed over".to_owned(),
    ];
    let mut findings = tables::findings(&draws);
    findings.extend(throughput::findings(&fields));
    Ok(Reproduction { findings, notes })
}

fn on_one_machine(shape: Shape, seed: u64) -> Result<(Draw, Field), ReproduceError> {
    let machine = |noise| Catalyst { shape, seed, noise, ..Catalyst::default() };
    let quiet = machine(Share::percent(0)).measure().processors()?;
    let noisy = machine(tables::NOISE).measure().processors()?;
    let draw = one_job::draw(shape, seed, &quiet, &noisy)?;
    Ok((draw, many_jobs_on(shape, seed, &SCHEMES)?))
}

/// The queue under these schemes, on the machine of a seed.
pub(crate) fn many_jobs_on(
    shape: Shape,
    seed: u64,
    schemes: &[Scheme],
) -> Result<Field, ReproduceError> {
    let (processors, noise) = (many_jobs::PROCESSORS, Share::percent(0));
    let machine = Catalyst { shape, seed, noise, processors };
    Ok(many_jobs::field(shape, seed, machine.measure().processors()?, schemes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two runs of the largest seed and the one after it: the same, and what must hold whatever
    /// the curves are.
    #[test]
    fn runs_repeat_and_tuning_is_never_slower() {
        let options = Options { seeds: 2, first_seed: u64::MAX };
        let once = reproduce(&options, &|_, _| ()).unwrap();
        let again = reproduce(&options, &|done, all| assert!(done <= all && all == 4));
        assert_eq!(once.findings, again.unwrap().findings);
        let mut checked = [0, 0];
        for finding in &once.findings {
            let measured = finding.measured.unwrap();
            assert!(measured.is_finite(), "{finding:?}");
            if finding.metric.starts_with("tuned slower") {
                assert_eq!(measured, 0.0, "{finding:?}");
                checked[0] += 1;
            }
            if finding.metric.contains("takes less time") {
                assert!(measured >= 0.0, "{finding:?}");
                checked[1] += 1;
            }
        }
        // Both are said of two shapes and four sizes; the second of every code and mix, too.
        assert!(checked[0] == 16 && checked[1] >= 2 * 4 * 4 * 6, "{checked:?}");
    }
}
