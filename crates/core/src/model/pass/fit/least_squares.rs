//! Non-linear least squares: a damped Gauss–Newton method, after Levenberg and Marquardt.
//!
//! Each step solves the linear problem that the residuals look like from here, and is held back as
//! far as the last steps were too bold. Derivatives are differences.

use crate::linear::{Symmetric, dot, norm_squared};

/// Where to stop in any case.
const MOST_STEPS: usize = 200;
/// A step that gains less than this share has arrived.
const SMALL_GAIN: f64 = 1e-10;
/// Beyond this damping no step is left.
const MOST_DAMPING: f64 = 1e12;

/// A walk downhill, to the unknowns at which the residuals are least in the sum of their squares, near its start.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    pub(super) at: Vec<f64>,
    pub(super) sum_of_squares: f64,
    residuals: Vec<f64>,
    damping: f64,
    steps: usize,
    has_arrived: bool,
}

impl Walk {
    /// Begins at a start.
    pub(super) fn from(start: Vec<f64>, residuals: impl FnOnce(&[f64]) -> Vec<f64>) -> Self {
        let here = residuals(&start);
        Walk {
            at: start,
            sum_of_squares: norm_squared(&here),
            residuals: here,
            damping: 1e-3,
            steps: 0,
            has_arrived: false,
        }
    }

    /// Goes on until it has arrived, or for this many steps.
    pub(super) fn go(&mut self, steps: usize, mut residuals: impl FnMut(&[f64]) -> Vec<f64>) {
        for _ in 0..steps {
            if self.has_arrived || self.steps == MOST_STEPS {
                return;
            }
            self.steps += 1;
            self.step(&mut residuals);
        }
    }

    /// Goes on to the end.
    pub(super) fn arrive(&mut self, residuals: impl FnMut(&[f64]) -> Vec<f64>) {
        self.go(MOST_STEPS, residuals);
    }

    fn step(&mut self, residuals: &mut impl FnMut(&[f64]) -> Vec<f64>) {
        let jacobian = derivatives(&self.at, &vec![1e-6; self.at.len()], &mut *residuals);
        let normal = Symmetric::products(&jacobian);
        let gradient: Vec<f64> =
            jacobian.iter().map(|column| dot(column, &self.residuals)).collect();
        let mut gain = None;
        while gain.is_none() && self.damping <= MOST_DAMPING {
            let next = step(&normal, &gradient, self.damping).map(|step| minus(&self.at, &step));
            let there = next.map(|next| (residuals(&next), next));
            let smaller = there.filter(|(there, _)| norm_squared(there) < self.sum_of_squares);
            match smaller {
                Some((there, next)) => {
                    gain = Some(1.0 - norm_squared(&there) / self.sum_of_squares);
                    self.sum_of_squares = norm_squared(&there);
                    (self.at, self.residuals) = (next, there);
                    self.damping = (self.damping / 5.0).max(1e-9);
                }
                None => self.damping *= 4.0,
            }
        }
        self.has_arrived = gain.is_none_or(|gain| gain < SMALL_GAIN);
    }
}

/// What to subtract from the unknowns; nothing if rounding leaves no answer.
fn step(normal: &Symmetric, gradient: &[f64], damping: f64) -> Option<Vec<f64>> {
    let mut damped = normal.clone();
    // An unknown that changes nothing must not be divided by.
    let places = 0..normal.size();
    let largest = places.clone().map(|place| normal[(place, place)]).fold(0.0, f64::max);
    let least = 1e-12 * largest.max(f64::MIN_POSITIVE);
    for place in places {
        damped[(place, place)] += damping * normal[(place, place)].max(least);
    }
    damped.solve(gradient)
}

fn minus(one: &[f64], other: &[f64]) -> Vec<f64> {
    one.iter().zip(other).map(|(one, other)| one - other).collect()
}

/// How the residuals change with each unknown, by steps to either side.
pub(super) fn derivatives(
    at: &[f64],
    steps: &[f64],
    mut residuals: impl FnMut(&[f64]) -> Vec<f64>,
) -> Vec<Vec<f64>> {
    let derivative = |(place, step): (usize, &f64)| -> Vec<f64> {
        let mut moved = |by: f64| {
            let mut there = at.to_vec();
            there[place] += by;
            residuals(&there)
        };
        let changes = minus(&moved(*step), &moved(-step));
        changes.into_iter().map(|change| change / (2.0 * step)).collect()
    };
    steps.iter().enumerate().map(derivative).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minimise(start: Vec<f64>, mut residuals: impl FnMut(&[f64]) -> Vec<f64>) -> Walk {
        let mut walk = Walk::from(start, &mut residuals);
        walk.arrive(residuals);
        walk
    }

    /// Whoever rests on the way gets to the same place.
    #[test]
    fn a_rest_changes_nothing() {
        let residuals = |x: &[f64]| vec![10.0 * (x[1] - x[0] * x[0]), 1.0 - x[0]];
        let mut walk = Walk::from(vec![-1.2, 1.0], residuals);
        walk.go(3, residuals);
        assert!(!walk.has_arrived);
        walk.arrive(residuals);
        assert_eq!(walk.at, minimise(vec![-1.2, 1.0], residuals).at);
    }

    #[test]
    fn a_line_is_found() {
        // y = 3x + 1 at x = 0, 1, 2, with errors 0, 0.3 and 0: the mean of y is 4.1, its slope 3.
        let residuals = |line: &[f64]| {
            let measured = [(0.0, 1.0), (1.0, 4.3), (2.0, 7.0)];
            measured.iter().map(|(x, y)| line[0] * x + line[1] - y).collect()
        };
        let found = minimise(vec![0.0, 0.0], residuals);
        assert!((found.at[0] - 3.0).abs() < 1e-6 && (found.at[1] - 1.1).abs() < 1e-6, "{found:?}");
        // −0.1, 0.2, −0.1.
        assert!((found.sum_of_squares - 0.06).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn the_curved_valley_is_walked_to_its_end() {
        // Rosenbrock's: least at (1, 1).
        let residuals = |x: &[f64]| vec![10.0 * (x[1] - x[0] * x[0]), 1.0 - x[0]];
        let found = minimise(vec![-1.2, 1.0], residuals);
        assert!(norm_squared(&minus(&found.at, &[1.0, 1.0])) < 1e-8);
    }

    #[test]
    fn an_unknown_without_effect_stays() {
        let residuals = |x: &[f64]| vec![x[0] - 2.0, 0.0];
        let found = minimise(vec![0.0, 7.0], residuals);
        assert!((found.at[0] - 2.0).abs() < 1e-6 && found.at[1] == 7.0, "{found:?}");
        let nothing = minimise(vec![1.0], |_| vec![5.0]);
        assert_eq!(nothing.at[0], 1.0);
    }
}
