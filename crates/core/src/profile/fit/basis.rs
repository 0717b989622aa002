//! The terms of the polynomial.
//!
//! Each of nodes, cores and cap enters as its logarithm, moved and scaled so that the training rows
//! lie between −1 and 1: squares and products then differ enough from what they are made of for the
//! arithmetic to tell them apart.

use super::Configuration;

/// The number of things a configuration consists of.
const VARIABLES: usize = 3;

/// The terms that can be told apart in a set of rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Basis {
    variables: [Variable; VARIABLES],
}

/// Nodes, cores or the cap, among a set of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Variable {
    /// The same in all rows.
    Fixed { value: u64 },
    /// The values differ among rows, so that a term can be fitted.
    Varying {
        /// The middle between the least and the largest logarithm.
        middle: f64,
        /// How far either is from it.
        reach: f64,
        /// Whether there are more than two values, so that a bend can be seen.
        bends: bool,
    },
}

/// What a configuration consists of, as whole numbers: nodes, cores, milliwatts.
fn values(configuration: &Configuration) -> [u64; VARIABLES] {
    let &Configuration { nodes, cores, cap } = configuration;
    [u64::from(nodes), u64::from(cores), cap.milliwatts()]
}

impl Variable {
    /// What is known from the values in a set of rows.
    fn of(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        values.dedup();
        let (Some(&least), Some(&most)) = (values.first(), values.last()) else {
            return Variable::Fixed { value: 0 };
        };
        if least == most {
            return Variable::Fixed { value: least };
        }
        let (low, high) = (libm::log(least as f64), libm::log(most as f64));
        let (middle, reach) = ((low + high) / 2.0, (high - low) / 2.0);
        Variable::Varying { middle, reach, bends: values.len() > 2 }
    }

    /// A value's place, between −1 and 1 where the rows are.
    fn place(self, value: u64) -> Option<f64> {
        match self {
            Variable::Fixed { .. } => None,
            Variable::Varying { middle, reach, .. } => {
                Some((libm::log(value as f64) - middle) / reach)
            }
        }
    }

    fn covers(self, value: u64) -> bool {
        match self {
            Variable::Fixed { value: only } => value == only,
            Variable::Varying { .. } => value > 0,
        }
    }
}

impl Basis {
    /// The terms that rows of these configurations can tell apart, if there are enough of them.
    pub(super) fn of(configurations: &[Configuration]) -> Self {
        let variable = |index| {
            let value = |configuration| values(configuration)[index];
            Variable::of(configurations.iter().map(value).collect())
        };
        Basis { variables: std::array::from_fn(variable) }
    }

    /// How many terms there are.
    pub(super) fn len(&self) -> usize {
        let varying = |variable: &&Variable| matches!(variable, Variable::Varying { .. });
        let bends =
            |variable: &&Variable| matches!(variable, Variable::Varying { bends: true, .. });
        let count = self.variables.iter().filter(varying).count();
        1 + count
            + self.variables.iter().filter(bends).count()
            + count * count.saturating_sub(1) / 2
    }

    /// Whether the terms say anything about a configuration.
    pub(super) fn covers(&self, configuration: &Configuration) -> bool {
        let values = values(configuration);
        self.variables.iter().zip(values).all(|(variable, value)| variable.covers(value))
    }

    /// The terms of a configuration: 1, then each variable with its square and its products with
    /// the variables before it.
    pub(super) fn terms(&self, configuration: &Configuration) -> Vec<f64> {
        let mut terms = vec![1.0];
        let mut before: Vec<f64> = Vec::with_capacity(VARIABLES);
        for (&variable, value) in self.variables.iter().zip(values(configuration)) {
            let Some(place) = variable.place(value) else { continue };
            terms.push(place);
            if matches!(variable, Variable::Varying { bends: true, .. }) {
                terms.push(place * place);
            }
            terms.extend(before.iter().map(|other| other * place));
            before.push(place);
        }
        terms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Watts;

    fn configuration(nodes: u32, cores: u32, cap: u32) -> Configuration {
        Configuration { nodes, cores, cap: Watts::from_watts(cap) }
    }

    fn check(rows: &[(u32, u32, u32)], terms: usize) {
        let rows: Vec<_> = rows.iter().map(|&(n, c, p)| configuration(n, c, p)).collect();
        let basis = Basis::of(&rows);
        assert_eq!(basis.len(), terms, "{rows:?}");
        for row in &rows {
            let values = basis.terms(row);
            assert_eq!(values.len(), terms, "{row:?}");
            assert!(values.iter().all(|value| value.abs() <= 1.0 + 1e-12), "{values:?}");
        }
    }

    #[test]
    fn terms_are_those_that_can_be_seen() {
        check(&[], 1);
        check(&[(1, 8, 51)], 1);
        check(&[(1, 8, 51), (1, 8, 115)], 2);
        check(&[(1, 8, 51), (1, 8, 80), (1, 8, 115)], 3);
        // Two variables of two values: 1, each, the product.
        check(&[(1, 8, 51), (2, 8, 115)], 4);
        check(&[(1, 8, 51), (2, 12, 80), (4, 16, 115)], 10);
    }

    #[test]
    fn places_worked_out_by_hand() {
        // 4 is the middle of 1 and 16 on a logarithmic scale, 8 half-way from there to 16.
        let basis = Basis::of(&[
            configuration(1, 8, 80),
            configuration(4, 8, 80),
            configuration(16, 8, 80),
        ]);
        let terms = basis.terms(&configuration(8, 8, 80));
        for (term, expected) in terms.iter().zip([1.0, 0.5, 0.25]) {
            assert!((term - expected).abs() < 1e-12, "{terms:?}");
        }
    }

    #[test]
    fn nothing_is_said_about_other_values_of_what_was_fixed() {
        let basis = Basis::of(&[configuration(1, 8, 51), configuration(1, 8, 115)]);
        assert!(basis.covers(&configuration(1, 8, 80)));
        assert!(!basis.covers(&configuration(2, 8, 80)));
        assert!(!basis.covers(&configuration(1, 16, 80)));
        assert!(!basis.covers(&configuration(1, 8, 0)));
    }
}
