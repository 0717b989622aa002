//! How certain fitted parameters are.
//!
//! As in linear regression: the scatter of the residuals, and how much each parameter moves them
//! that the others do not, give its standard error. A parameter at the end of its range has none,
//! but adds to the errors of those it can be traded for. Neither has one that can be traded for
//! others at no cost, or whose error is as large as half its range: nothing is known of it.
//!
//! Errors are those of a straight line through the best place. The laws have kinks, and beyond one
//! of them a rather different bend may be nearly as good: with few caps between p_l and p_h, the
//! errors of p_h and c are too small.

use std::ops::RangeInclusive;

use super::least_squares::derivatives;
use super::problem::{Parameters, Problem};
use super::{Estimates, PARAMETERS};
use crate::linear::{Symmetric, norm_squared};

/// A fitted parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The best value.
    pub value: f64,
    /// How certain it is.
    pub certainty: Certainty,
}

/// How certain a fitted parameter is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Certainty {
    /// With this standard error.
    Error(f64),
    /// It is the least that it can be, or that these samples could show.
    Least,
    /// It is the most that it can be, or that these samples could show.
    Most,
    /// These samples do not tell it.
    Unknown,
}

/// Nearer to an end of its range than this share of it, a parameter is at that end.
const AT_THE_END: f64 = 1e-4;

/// A combination of parameters that moves the residuals by less than this share of what the most
/// telling one does, in squares, moves nothing but rounding.
const NEGLIGIBLE: f64 = 1e-9;

/// The parameters with how certain they are.
pub(super) fn estimates(problem: &Problem, parameters: &Parameters) -> Estimates {
    let values = to_vector(parameters);
    let ranges: [RangeInclusive<f64>; PARAMETERS] = [
        f64::NEG_INFINITY..=f64::INFINITY,
        problem.parallelism_range(),
        0.0..=2.0 * parameters.average_parallelism,
        problem.highest_watts_range(),
        problem.constant_watts_range(),
        problem.sensitivity_range(),
    ];
    let errors = standard_errors(problem, &values, &ranges);
    let estimate = |place: usize| {
        let width = ranges[place].end() - ranges[place].start();
        let error = errors[place].filter(|error| *error < 0.5 * width).map(Certainty::Error);
        let certainty = end(values[place], &ranges[place]).or(error);
        Estimate { value: values[place], certainty: certainty.unwrap_or(Certainty::Unknown) }
    };
    // An error of a logarithm is a share.
    let ln_seconds = estimate(0);
    let seconds = libm::exp(ln_seconds.value);
    let certainty = match ln_seconds.certainty {
        Certainty::Error(share) => Certainty::Error(share * seconds),
        other => other,
    };
    Estimates {
        one_node_seconds: Estimate { value: seconds, certainty },
        average_parallelism: estimate(1),
        variation: estimate(2),
        highest_watts: estimate(3),
        constant_watts: estimate(4),
        sensitivity: estimate(5),
    }
}

/// Whether a value is at an end of its range.
fn end(value: f64, range: &RangeInclusive<f64>) -> Option<Certainty> {
    let (low, high) = (*range.start(), *range.end());
    let near = if high - low < f64::INFINITY { AT_THE_END * (high - low) } else { 0.0 };
    match value {
        value if value <= low + near => Some(Certainty::Least),
        value if value >= high - near => Some(Certainty::Most),
        _ => None,
    }
}

/// The standard errors of the parameters; nothing where they cannot be told.
fn standard_errors(
    problem: &Problem,
    values: &[f64; PARAMETERS],
    ranges: &[RangeInclusive<f64>; PARAMETERS],
) -> [Option<f64>; PARAMETERS] {
    let mut errors = [None; PARAMETERS];
    let residuals = |values: &[f64]| problem.residuals(&from_vector(values));
    let Some(spare) = problem.len().checked_sub(PARAMETERS).filter(|&spare| spare > 0) else {
        return errors;
    };
    let variance = norm_squared(&residuals(values)) / spare as f64;
    let mut at = *values;
    let mut steps = [1e-6; PARAMETERS];
    for (place, range) in ranges.iter().enumerate() {
        let (low, high) = (*range.start(), *range.end());
        if high - low < f64::INFINITY {
            steps[place] = 0.1 * AT_THE_END * (high - low);
            // A step to either side stays within the range.
            at[place] = at[place].max(low + steps[place]).min(high - steps[place]);
        }
    }
    let jacobian = derivatives(&at, &steps, residuals);
    // Those that move nothing say nothing, and would spoil the rest.
    let sizes: Vec<f64> = jacobian.iter().map(|column| norm_squared(column).sqrt()).collect();
    let moving: Vec<usize> =
        (0..PARAMETERS).filter(|&place| sizes[place] * steps[place] > 1e-12).collect();
    let scaled = |&place: &usize| -> Vec<f64> {
        jacobian[place].iter().map(|change| change / sizes[place]).collect()
    };
    let columns: Vec<Vec<f64>> = moving.iter().map(scaled).collect();
    let combinations = Symmetric::products(&columns).eigen();
    let most = combinations.values.iter().copied().fold(0.0, f64::max);
    for (order, &place) in moving.iter().enumerate() {
        // What each combination adds, as far as the parameter is part of it.
        let added = combinations.vectors.iter().zip(&combinations.values).map(|(parts, &moves)| {
            match (parts[order] * parts[order], moves > NEGLIGIBLE * most) {
                (share, true) => share / moves,
                (share, false) if share < NEGLIGIBLE => 0.0,
                (_, false) => f64::INFINITY,
            }
        });
        let error = (variance * added.sum::<f64>()).sqrt() / sizes[place];
        errors[place] = Some(error).filter(|error| error.is_finite());
    }
    errors
}

fn to_vector(parameters: &Parameters) -> [f64; PARAMETERS] {
    let p = parameters;
    [
        p.ln_seconds,
        p.average_parallelism,
        p.variation,
        p.highest_watts,
        p.constant_watts,
        p.sensitivity,
    ]
}

fn from_vector(values: &[f64]) -> Parameters {
    Parameters {
        ln_seconds: values[0],
        average_parallelism: values[1],
        variation: values[2],
        highest_watts: values[3],
        constant_watts: values[4],
        sensitivity: values[5],
    }
}
