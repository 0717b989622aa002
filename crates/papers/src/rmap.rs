//! RMAP (Patki and others: Practical resource management in power-constrained high performance
//! computing, HPDC 2015): three policies on 64 overprovisioned nodes under bounds from 6 500 to
//! 14 000 W.
//!
//! The paper's measurements and traces were never published. Both generated machines stand in for
//! the first and many draws for the second, each draw with its own measurement noise, its own
//! training rows and its own traces. What is reported is the mean over the draws, their spread,
//! and how many of them agree with what was published.
//!
//! `experiment` runs all policies on one trace, `accuracy` says how well tables are predicted,
//! `tables` holds the published numbers and sets ours beside them; `measured` runs the same traces on real tables.

use crate::Reproduction;
use crate::parallel::in_parallel;
use busbar_core::machine::{Machine, MachineError};
use busbar_core::model::ProfiledError;
use busbar_core::profile::cab::{self, Preset};
use busbar_core::profile::fit::FitError;
use busbar_workloads::rmap::TraceError;

mod accuracy;
pub(crate) mod experiment;
mod measured;
mod tables;

use accuracy::Accuracy;
use experiment::Draw;
pub use measured::{OnTables, reproduce_on};

/// How many draws, and from where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Draws of traces and of measurement noise.
    pub seeds: u64,
    /// The first seed; the others follow. After the largest number there is comes zero.
    pub first_seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { seeds: 100, first_seed: 1 }
    }
}

/// Why the experiments could not be repeated.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// The profiles do not serve.
    #[error(transparent)]
    Profiles(#[from] ProfiledError),
    /// No trace can be drawn from them.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// They cannot be fitted.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// There is nothing a policy could choose.
    #[error(
        "{tables} has one row for each application: RMAP chooses among configurations, so measure several \
         caps, or numbers of nodes or cores"
    )]
    NothingToChoose {
        /// The name of the tables.
        tables: String,
    },
    /// No configuration fits the machine.
    #[error(
        "a machine of {nodes} nodes (--nodes) is too small: the tables have configurations of at least {smallest}"
    )]
    TooSmall {
        /// The nodes that were asked for.
        nodes: u32,
        /// The fewest nodes of any row.
        smallest: u32,
    },
    /// The tables make no machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

/// Runs the paper's experiments; `progress` hears how many draws are done, of how many.
pub fn reproduce(
    options: &Options,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Reproduction, ReproduceError> {
    let seeds = (0..options.seeds).map(|draw| options.first_seed.wrapping_add(draw));
    let tasks: Vec<(Preset, u64)> =
        seeds.flat_map(|seed| Preset::ALL.map(|preset| (preset, seed))).collect();
    let mut draws = Vec::new();
    let mut accuracies = Vec::new();
    for done in in_parallel(&tasks, |(preset, seed)| draw(*preset, *seed), progress) {
        let (accuracy, drawn) = done?;
        accuracies.push(accuracy);
        draws.extend(drawn);
    }
    let mut findings = accuracy::findings(&accuracies);
    findings.extend(tables::findings(&draws));
    let notes = vec![
        format!(
            "{} draws of each trace and of the measurements; measured is their mean, ± their \
             standard deviation, agree the share of them, in per cent, with the published sign \
             or within the published bound",
            options.seeds
        ),
        "turnaround: from submission to end, mean over the 30 jobs; better: less of it".to_owned(),
        "the published comparison gives adaptive predicted tables and the others measured ones; \
         'even' gives everybody measured ones"
            .to_owned(),
        "a job that is killed at its limit leaves early, which makes the mean turnaround shorter"
            .to_owned(),
    ];
    Ok(Reproduction { findings, notes })
}

/// The measurements and traces of one seed: how well they are predicted, and all runs.
fn draw(preset: Preset, seed: u64) -> Result<(Accuracy, Vec<Draw>), ReproduceError> {
    let measured = cab::generate(preset, seed);
    let accuracy = Accuracy::of(preset, &measured, seed)?;
    let draws = experiment::draw(&Machine::cab(), preset, &measured, seed)?;
    Ok((accuracy, draws))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe;

    /// Two runs of the largest seed and the one after it: the same, and every number is one.
    #[test]
    fn the_same_seeds_give_the_same_numbers() {
        let options = Options { seeds: 2, first_seed: u64::MAX };
        let once = reproduce(&options, &|_, _| ()).unwrap();
        let again = reproduce(&options, &|_, _| ()).unwrap();
        assert_eq!(once.findings, again.findings);
        for finding in &once.findings {
            let variation = finding.variation.unwrap();
            assert!(finding.measured.unwrap().is_finite(), "{finding:?}");
            assert!(variation.deviation.is_finite(), "{finding:?}");
            assert!(variation.agreeing.is_none_or(|share| (0.0..=100.0).contains(&share)));
        }
        let text = describe(&once, "published");
        assert!(text.contains("random, over traditional: mean of the bounds"), "{text}");
    }
}
