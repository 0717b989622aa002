//! How certain fitted parameters are.
//!
//! As in linear regression: the scatter of the residuals, and how much each parameter moves them
//! that the others do not, give its standard error. A parameter at the end of its range has none,
//! and neither does one whose error is as large as half its range: nothing is known of it.

use std::ops::RangeInclusive;

use nalgebra::{DMatrix, DVector};

use super::least_squares::derivatives;
use super::problem::{Parameters, Problem};
use super::{Estimates, PARAMETERS};

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
    let ends: Vec<Option<Certainty>> =
        values.iter().zip(&ranges).map(|(value, range)| end(*value, range)).collect();
    let free: Vec<usize> = (0..PARAMETERS).filter(|&place| ends[place].is_none()).collect();
    let errors = standard_errors(problem, &values, &free, &ranges);
    let estimate = |place: usize| {
        let width = ranges[place].end() - ranges[place].start();
        let error = free.iter().position(|&other| other == place).and_then(|free| errors[free]);
        let error = error.filter(|error| *error < 0.5 * width).map(Certainty::Error);
        let certainty = ends[place].or(error).unwrap_or(Certainty::Unknown);
        Estimate { value: values[place], certainty }
    };
    // An error of a logarithm is a share.
    let ln_seconds = estimate(0);
    let seconds = ln_seconds.value.exp();
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

/// The standard errors of the free parameters; nothing where they cannot be told.
fn standard_errors(
    problem: &Problem,
    values: &DVector<f64>,
    free: &[usize],
    ranges: &[RangeInclusive<f64>; PARAMETERS],
) -> Vec<Option<f64>> {
    let nothing = vec![None; free.len()];
    let residuals = |values: &DVector<f64>| problem.residuals(&from_vector(values));
    let Some(spare) = problem.len().checked_sub(free.len()).filter(|&spare| spare > 0) else {
        return nothing;
    };
    let variance = residuals(values).norm_squared() / spare as f64;
    let moved = |at: &DVector<f64>| {
        let mut all = values.clone();
        free.iter().zip(at.iter()).for_each(|(&place, value)| all[place] = *value);
        residuals(&all)
    };
    let at = DVector::from_iterator(free.len(), free.iter().map(|&place| values[place]));
    let step = |&place: &usize| {
        let width = ranges[place].end() - ranges[place].start();
        // Small enough to stay within the range.
        if width < f64::INFINITY { 0.1 * AT_THE_END * width } else { 1e-6 }
    };
    let steps = DVector::from_iterator(free.len(), free.iter().map(step));
    let jacobian = derivatives(&at, &steps, moved);
    // Those that move nothing say nothing, and would spoil the rest.
    let sizes: Vec<f64> = jacobian.column_iter().map(|column| column.norm()).collect();
    let moving: Vec<usize> =
        (0..free.len()).filter(|&place| sizes[place] * steps[place] > 1e-12).collect();
    let columns: Vec<DVector<f64>> =
        moving.iter().map(|&place| jacobian.column(place) / sizes[place]).collect();
    if columns.is_empty() {
        return nothing;
    }
    let columns = DMatrix::from_columns(&columns);
    let mut errors = nothing;
    if let Some(factors) = columns.tr_mul(&columns).cholesky() {
        let inverse = factors.inverse();
        for (order, &place) in moving.iter().enumerate() {
            let error = (variance * inverse[(order, order)]).sqrt() / sizes[place];
            errors[place] = error.is_finite().then_some(error);
        }
    }
    errors
}

fn to_vector(parameters: &Parameters) -> DVector<f64> {
    let p = parameters;
    DVector::from_column_slice(&[
        p.ln_seconds,
        p.average_parallelism,
        p.variation,
        p.highest_watts,
        p.constant_watts,
        p.sensitivity,
    ])
}

fn from_vector(values: &DVector<f64>) -> Parameters {
    Parameters {
        ln_seconds: values[0],
        average_parallelism: values[1],
        variation: values[2],
        highest_watts: values[3],
        constant_watts: values[4],
        sensitivity: values[5],
    }
}
