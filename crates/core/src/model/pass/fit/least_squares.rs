//! Non-linear least squares: a damped Gauss–Newton method, after Levenberg and Marquardt.
//!
//! Each step solves the linear problem that the residuals look like from here, and is held back as
//! far as the last steps were too bold. Derivatives are differences. It is written here since the
//! crate that does this comes with another version of the matrices; with six unknowns it is a page.

use nalgebra::{DMatrix, DVector};

/// Where to stop in any case.
const MOST_STEPS: usize = 200;
/// A step that gains less than this share has arrived.
const SMALL_GAIN: f64 = 1e-10;
/// Beyond this damping no step is left.
const MOST_DAMPING: f64 = 1e12;

/// The unknowns at which the residuals are least in the sum of their squares, near a start.
#[derive(Clone, Debug)]
pub(super) struct Minimum {
    pub(super) at: DVector<f64>,
    pub(super) sum_of_squares: f64,
}

/// Walks downhill from a start.
pub(super) fn minimise(
    start: DVector<f64>,
    residuals: impl Fn(&DVector<f64>) -> DVector<f64>,
) -> Minimum {
    let mut at = start;
    let mut here = residuals(&at);
    let mut sum_of_squares = here.norm_squared();
    let mut damping = 1e-3;
    for _ in 0..MOST_STEPS {
        let jacobian = derivatives(&at, &DVector::repeat(at.len(), 1e-6), &residuals);
        let normal = jacobian.tr_mul(&jacobian);
        let gradient = jacobian.tr_mul(&here);
        let mut gain = None;
        while gain.is_none() && damping <= MOST_DAMPING {
            let next = step(&normal, &gradient, damping).map(|step| &at - step);
            let there = next.map(|next| (residuals(&next), next));
            match there.filter(|(there, _)| there.norm_squared() < sum_of_squares) {
                Some((there, next)) => {
                    gain = Some(1.0 - there.norm_squared() / sum_of_squares);
                    sum_of_squares = there.norm_squared();
                    (at, here) = (next, there);
                    damping = (damping / 5.0).max(1e-9);
                }
                None => damping *= 4.0,
            }
        }
        if gain.is_none_or(|gain| gain < SMALL_GAIN) {
            break;
        }
    }
    Minimum { at, sum_of_squares }
}

/// What to subtract from the unknowns; nothing if rounding leaves no answer.
fn step(normal: &DMatrix<f64>, gradient: &DVector<f64>, damping: f64) -> Option<DVector<f64>> {
    let mut damped = normal.clone();
    // An unknown that changes nothing must not be divided by.
    let least = 1e-12 * normal.diagonal().max().max(f64::MIN_POSITIVE);
    for place in 0..damped.nrows() {
        damped[(place, place)] += damping * normal[(place, place)].max(least);
    }
    damped.cholesky().map(|factors| factors.solve(gradient))
}

/// How the residuals change with each unknown, by steps to either side.
pub(super) fn derivatives(
    at: &DVector<f64>,
    steps: &DVector<f64>,
    residuals: impl Fn(&DVector<f64>) -> DVector<f64>,
) -> DMatrix<f64> {
    let columns: Vec<DVector<f64>> = (0..at.len())
        .map(|place| {
            let moved = |by: f64| {
                let mut there = at.clone();
                there[place] += by;
                residuals(&there)
            };
            (moved(steps[place]) - moved(-steps[place])) / (2.0 * steps[place])
        })
        .collect();
    DMatrix::from_columns(&columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found() {
        // y = 3x + 1 at x = 0, 1, 2, with errors 0, 0.3 and 0: the mean of y is 4.1, its slope 3.
        let residuals = |line: &DVector<f64>| {
            DVector::from_fn(3, |row, _| line[0] * row as f64 + line[1] - [1.0, 4.3, 7.0][row])
        };
        let found = minimise(DVector::from_vec(vec![0.0, 0.0]), residuals);
        assert!((found.at[0] - 3.0).abs() < 1e-6 && (found.at[1] - 1.1).abs() < 1e-6, "{found:?}");
        // −0.1, 0.2, −0.1.
        assert!((found.sum_of_squares - 0.06).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn the_curved_valley_is_walked_to_its_end() {
        // Rosenbrock's: least at (1, 1).
        let residuals =
            |x: &DVector<f64>| DVector::from_vec(vec![10.0 * (x[1] - x[0] * x[0]), 1.0 - x[0]]);
        let found = minimise(DVector::from_vec(vec![-1.2, 1.0]), residuals);
        assert!((found.at - DVector::from_vec(vec![1.0, 1.0])).norm() < 1e-4);
    }

    #[test]
    fn an_unknown_without_effect_stays() {
        let residuals = |x: &DVector<f64>| DVector::from_vec(vec![x[0] - 2.0, 0.0]);
        let found = minimise(DVector::from_vec(vec![0.0, 7.0]), residuals);
        assert!((found.at[0] - 2.0).abs() < 1e-6 && found.at[1] == 7.0, "{found:?}");
        let nothing = minimise(DVector::from_vec(vec![1.0]), |_| DVector::from_vec(vec![5.0]));
        assert_eq!(nothing.at[0], 1.0);
    }
}
