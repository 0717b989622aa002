//! The parameters of [`Pass`] from measured times, by non-linear least squares.
//!
//! What is made small is the sum of squares of the logarithms of predicted over measured time: an
//! error of 10 % counts the same at any size. [`fit`] walks downhill (`least_squares`) from starts
//! spread over the places where the laws bend. All of them take a few steps, those that are lowest then go on to
//! the end, and the lowest place that they find is kept.
//!
//! Not everything in the laws can be told from nodes, caps and times. So the fit is for what can:
//! T₁, A, σ, p_h, c and β. The others are settled thus:
//!
//! - The unit of frequency is f_h. Only ratios of frequencies count, so a and b can be scaled at
//!   will, and f_h = 1 makes a + b the power that is left for speed at full frequency.
//! - Of that, half is linear in frequency and half is cubic ([`LINEAR_SHARE`]). Both c and the share
//!   only bend the curve between p_l and p_h, nearly in the same way. c is found with the share held
//!   fixed, so it is a measure of the bend more than a draw to be measured. The tests show that
//!   this costs less than 0.1 % of time for any of the published applications.
//! - p_l is the lowest cap there is a sample of, and β is the loss there.
//! - A is at most the largest number of nodes, and p_h at most the highest cap: beyond the samples
//!   any value says the same about them. Likewise at the lower ends. An [`Estimate`] says when it is
//!   at such an edge, and how certain it is otherwise.

use super::{OutOfRange, Pass, PowerLaw, Scaling, Throttling};

mod certainty;
mod least_squares;
mod memo;
mod problem;
#[cfg(test)]
mod tests;

pub use certainty::{Certainty, Estimate};
use least_squares::Walk;
pub(crate) use problem::LINEAR_SHARE;
use problem::{Evaluation, Parameters, Problem};

/// One measured run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The number of nodes.
    pub nodes: u32,
    /// The cap of each processor, in watts.
    pub cap_watts: f64,
    /// How long it took.
    pub seconds: f64,
}

/// What [`fit`] finds.
#[derive(Clone, Debug, PartialEq)]
pub struct PassFit {
    /// The model. Its frequencies are shares of the highest one.
    pub pass: Pass,
    /// Its parameters, each with how certain it is.
    pub estimates: Estimates,
    /// By how much of what was measured the model says more, for each sample in order.
    pub residuals: Vec<f64>,
}

/// The parameters that are fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimates {
    /// T₁, in seconds.
    pub one_node_seconds: Estimate,
    /// A.
    pub average_parallelism: Estimate,
    /// σ.
    pub variation: Estimate,
    /// p_h, in watts.
    pub highest_watts: Estimate,
    /// c, in watts.
    pub constant_watts: Estimate,
    /// β.
    pub sensitivity: Estimate,
}

/// Why there is no model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PassFitError {
    /// There are fewer samples than parameters.
    #[error("{samples} rows are too few for the {needed} parameters; give at least {needed}")]
    TooFew {
        /// Their number.
        samples: usize,
        /// How many there must be.
        needed: usize,
    },
    /// How time falls with nodes has three parameters.
    #[error(
        "there are rows on {found} different numbers of nodes only; add rows until there are {needed}"
    )]
    TooFewNodeCounts {
        /// Their number.
        found: usize,
        /// How many there must be.
        needed: usize,
    },
    /// How time grows under a cap has three parameters, beside the time without one.
    #[error("there are rows under {found} different caps only; add rows until there are {needed}")]
    TooFewCaps {
        /// Their number.
        found: usize,
        /// How many there must be.
        needed: usize,
    },
    /// The cap rises, or falls, with the nodes.
    #[error(
        "nodes and cap vary together, so that their effects cannot be told apart; add rows in \
         which they vary independently"
    )]
    Entangled,
    /// A sample says what cannot be.
    #[error("row {row}: the {field} is {value}; it must be a number above zero")]
    Unusable {
        /// Which one, from 1.
        row: usize,
        /// The field.
        field: &'static str,
        /// The quantity in question.
        value: f64,
    },
    /// The samples are so absurd that no law has such parameters.
    #[error("the rows lead to invalid parameters: {0}")]
    Absurd(#[from] OutOfRange),
}

/// This many steps are walked from every start, ...
const FIRST_STEPS: usize = 8;
/// ... and from so many of them to the end.
const FINALISTS: usize = 8;

/// How many parameters are fitted.
const PARAMETERS: usize = 6;
/// Three numbers of nodes for T₁, A and σ.
const NODE_COUNTS_NEEDED: usize = 3;
/// Three caps for p_h, c and β, and one to compare them with.
const CAPS_NEEDED: usize = 4;

/// Finds the model that is nearest to measured times.
///
/// # Errors
///
/// If there are too few samples, numbers of nodes or caps, if these vary together, or if a sample
/// says what cannot be.
pub fn fit(samples: &[Sample]) -> Result<PassFit, PassFitError> {
    check_figures(samples)?;
    let problem = Problem::new(samples);
    check_variety(&problem)?;
    let mut evaluation = Evaluation::of(&problem);
    let mut residuals = |unknowns: &[f64]| evaluation.residuals(&problem.parameters(unknowns));
    let mut walks = Vec::new();
    for start in problem.starts() {
        let mut walk = Walk::from(start, &mut residuals);
        walk.go(FIRST_STEPS, &mut residuals);
        walks.push(walk);
    }
    walks.sort_by(|a, b| a.sum_of_squares.total_cmp(&b.sum_of_squares));
    walks.truncate(FINALISTS);
    let mut best: Option<Walk> = None;
    for mut walk in walks {
        walk.arrive(&mut residuals);
        // What is better by rounding alone is not better: the first of equals is kept.
        let is_better = |best: &Walk| walk.sum_of_squares < best.sum_of_squares * (1.0 - 1e-9);
        if best.as_ref().is_none_or(is_better) {
            best = Some(walk);
        }
    }
    let too_few = PassFitError::TooFew { samples: samples.len(), needed: PARAMETERS };
    let parameters = problem.parameters(&best.ok_or(too_few)?.at);
    let pass = pass(&parameters, problem.lowest_cap())?;
    let residuals = samples.iter().map(|sample| {
        let said = pass.seconds(sample.nodes, sample.cap_watts).unwrap_or(f64::NAN);
        said / sample.seconds - 1.0
    });
    let residuals = residuals.collect();
    Ok(PassFit { pass, estimates: certainty::estimates(&problem, &parameters), residuals })
}

/// The laws with these parameters.
fn pass(parameters: &Parameters, lowest_watts: f64) -> Result<Pass, OutOfRange> {
    let Parameters { ln_seconds, average_parallelism, variation, highest_watts, .. } = *parameters;
    let left = highest_watts - parameters.constant_watts;
    let (cubic, linear) = ((1.0 - LINEAR_SHARE) * left, LINEAR_SHARE * left);
    let law = PowerLaw::new(cubic, linear, parameters.constant_watts)?;
    Ok(Pass {
        scaling: Scaling::new(libm::exp(ln_seconds), average_parallelism, variation)?,
        throttling: Throttling::new(law, lowest_watts, highest_watts, parameters.sensitivity)?,
    })
}

/// Whether every sample says what can be.
fn check_figures(samples: &[Sample]) -> Result<(), PassFitError> {
    for (place, sample) in samples.iter().enumerate() {
        let figures = [
            ("number of nodes", f64::from(sample.nodes)),
            ("cap in watts", sample.cap_watts),
            ("time in seconds", sample.seconds),
        ];
        let wrong = figures.into_iter().find(|(_, value)| !(*value > 0.0 && value.is_finite()));
        if let Some((field, value)) = wrong {
            return Err(PassFitError::Unusable { row: place + 1, field, value });
        }
    }
    Ok(())
}

/// Whether there is enough to fit.
fn check_variety(problem: &Problem) -> Result<(), PassFitError> {
    if problem.len() < PARAMETERS {
        return Err(PassFitError::TooFew { samples: problem.len(), needed: PARAMETERS });
    }
    let (found, needed) = (problem.node_counts().len(), NODE_COUNTS_NEEDED);
    if found < needed {
        return Err(PassFitError::TooFewNodeCounts { found, needed });
    }
    let (found, needed) = (problem.caps().len(), CAPS_NEEDED);
    if found < needed {
        return Err(PassFitError::TooFewCaps { found, needed });
    }
    if problem.varies_together() {
        return Err(PassFitError::Entangled);
    }
    Ok(())
}
