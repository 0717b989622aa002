//! Strong scaling: the time of a job of fixed size on more and more nodes.
//!
//! Downey's law, adjusted so that one node takes T₁ and very many take T₁/A. A is the average
//! parallelism of the application, σ says how much its parallelism varies: σ = 0 is perfect
//! speed-up on up to A nodes and nothing gained by more. With k = σ/(2A), the share of the work
//! that nodes up to A do not speed up, the time against that of one node is
//!
//! - (1 − k)/n + k on up to A nodes,
//! - k(2A − 1)/n + 1/A − k on more than that,
//! - 1/A on more than 2A − 1.
//!
//! The branches meet at A and at 2A − 1. No node makes things worse as long as neither factor of
//! 1/n is negative: 0 ≤ σ ≤ 2A. Downey's own range is σ ≤ 1; there nodes beyond A also gain less
//! each than those before, since k(2A − 1) ≤ 1 − k just if σ ≤ 1. Beyond that the law still falls,
//! and can describe work of which a large share does not scale.

use super::{OutOfRange, checked};

/// How the time of an application falls with nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    one_node_seconds: f64,
    average_parallelism: f64,
    variation: f64,
}

impl Scaling {
    /// T₁ in seconds, A and σ.
    ///
    /// # Errors
    ///
    /// If T₁ is not above zero, A is below one, or σ is outside 0 to 2A.
    pub fn new(
        one_node_seconds: f64,
        average_parallelism: f64,
        variation: f64,
    ) -> Result<Self, OutOfRange> {
        let (t1, a, sigma) = (one_node_seconds, average_parallelism, variation);
        checked("the time on one node", t1, t1 > 0.0, "above zero")?;
        checked("the average parallelism", a, a >= 1.0, "at least 1")?;
        let most = 2.0 * a;
        let must = format!("from 0 to {most}, twice the average parallelism");
        checked("the variation of parallelism", sigma, (0.0..=most).contains(&sigma), must)?;
        Ok(Scaling::of(t1, a, sigma))
    }

    /// The same of what is known to be right.
    pub(super) const fn of(t1: f64, a: f64, sigma: f64) -> Self {
        Scaling { one_node_seconds: t1, average_parallelism: a, variation: sigma }
    }

    /// The time on this many nodes, also between whole ones, as a share of that on one, by A and σ.
    pub(crate) fn share_of_one(nodes: f64, average_parallelism: f64, variation: f64) -> f64 {
        share_of_one_node(nodes, average_parallelism, variation / (2.0 * average_parallelism))
    }

    /// The seconds on this many nodes, at full frequency. Nothing on no node.
    pub(crate) fn seconds(&self, nodes: u32) -> Option<f64> {
        let fixed = self.variation / (2.0 * self.average_parallelism);
        let share = share_of_one_node(f64::from(nodes), self.average_parallelism, fixed);
        (nodes > 0).then_some(self.one_node_seconds * share)
    }
}

/// The time on n nodes as a share of that on one, by A and k = σ/(2A).
pub(super) fn share_of_one_node(nodes: f64, average_parallelism: f64, fixed: f64) -> f64 {
    let (n, a, k) = (nodes, average_parallelism, fixed);
    if n <= a {
        (1.0 - k) / n + k
    } else if n <= 2.0 * a - 1.0 {
        1.0 / a + k * ((2.0 * a - 1.0) / n - 1.0)
    } else {
        1.0 / a
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_three_branches_worked_out_by_hand() {
        // T₁ = 800 s, A = 4, σ = 0.5, so that T₁·σ/(2A) = 800 · 0.5/8 = 50 s.
        let scaling = Scaling::new(800.0, 4.0, 0.5).unwrap();
        for (nodes, seconds) in [
            (1, 800.0),
            (2, 425.0), // (800 − 50)/2 + 50
            (4, 237.5), // 750/4 + 50
            (5, 220.0), // 0.5 · (800 − 100)/5 + 800/4 − 50 = 70 + 200 − 50
            (7, 200.0), // 350/7 + 150: 2A − 1 = 7
            (8, 200.0), // 800/4
            (1_000_000, 200.0),
        ] {
            let said = scaling.seconds(nodes).unwrap();
            assert!((said - seconds).abs() < 1e-9, "{nodes} nodes: {said} s");
        }
        assert_eq!(scaling.seconds(0), None);
    }

    #[test]
    fn without_variation_speed_up_is_perfect_up_to_the_average() {
        let scaling = Scaling::new(120.0, 6.0, 0.0).unwrap();
        for (nodes, seconds) in [(1, 120.0), (3, 40.0), (6, 20.0), (7, 20.0), (60, 20.0)] {
            assert!((scaling.seconds(nodes).unwrap() - seconds).abs() < 1e-9, "{nodes} nodes");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let error = |t1, a, sigma| Scaling::new(t1, a, sigma).unwrap_err().what;
        assert_eq!(error(0.0, 4.0, 1.0), "the time on one node");
        assert_eq!(error(f64::INFINITY, 4.0, 1.0), "the time on one node");
        assert_eq!(error(1.0, 0.9, 1.0), "the average parallelism");
        assert_eq!(error(1.0, f64::NAN, 1.0), "the average parallelism");
        assert_eq!(error(1.0, 4.0, -0.1), "the variation of parallelism");
        assert_eq!(error(1.0, 4.0, 8.1), "the variation of parallelism");
        assert_eq!(
            Scaling::new(1.0, 4.0, f64::NAN).unwrap_err().to_string(),
            "the variation of parallelism is NaN; it must be from 0 to 8, twice the average \
             parallelism"
        );
    }

    proptest! {
        #[test]
        fn more_nodes_never_take_longer(a in 1.0..200.0f64, part in 0.0..=1.0f64) {
            let scaling = Scaling::new(1000.0, a, 2.0 * a * part).unwrap();
            let times: Vec<f64> = (1..500).map(|nodes| scaling.seconds(nodes).unwrap()).collect();
            prop_assert!((times[0] - 1000.0).abs() < 1e-9);
            prop_assert!((times[498] - 1000.0 / a).abs() < 1e-9);
            prop_assert!(times.is_sorted_by(|few, more| more - few <= 1e-9), "{times:?}");
        }

        /// The law as it is usually written, in T₁ and σ instead of k, at any real n.
        #[test]
        fn the_law_is_the_one_that_is_known(
            a in 1.0..200.0f64, sigma in 0.0..2.0f64, n in 1.0..500.0f64,
        ) {
            let (t1, fixed) = (1000.0, 1000.0 * sigma / (2.0 * a));
            let expected = if n <= a {
                (t1 - fixed) / n + fixed
            } else if n <= 2.0 * a - 1.0 {
                sigma * (t1 - t1 / (2.0 * a)) / n + t1 / a - fixed
            } else {
                t1 / a
            };
            let said = t1 * share_of_one_node(n, a, sigma / (2.0 * a));
            prop_assert!((said - expected).abs() < 1e-9 * t1, "{said} instead of {expected}");
        }

        #[test]
        fn the_branches_meet(a in 1.0..200.0f64, k in 0.0..=1.0f64) {
            for edge in [a, 2.0 * a - 1.0] {
                let step = 1e-9 * edge;
                let before = share_of_one_node(edge - step, a, k);
                let after = share_of_one_node(edge + step, a, k);
                prop_assert!((before - after).abs() < 1e-7, "{before} and {after} at {edge}");
            }
        }
    }
}
