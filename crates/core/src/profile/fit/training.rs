//! Which rows to train on.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Dxsm;

use super::basis::Basis;
use super::{Configuration, Row};
use crate::linear::{Symmetric, dot, norm_squared};
use crate::units::Share;

/// How to choose the rows to train on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Training {
    /// Any, all equally likely: what is left of runs that were made for other reasons.
    Random {
        /// How many, of the measured ones.
        share: Share,
        /// Where the random numbers start.
        seed: u64,
    },
    /// Those that tell most about the polynomial's coefficients: what to run if runs are made to
    /// learn from. Always the row about which those chosen before say least (a greedy D-optimal
    /// design). That begins with the corners of the configuration space, goes on to the middles of
    /// faces and edges, and later to the centre and to what is next to all of these. Only
    /// configurations matter, not what was measured, so it can be asked before anything is run.
    Designed {
        /// How many, of the measured ones.
        share: Share,
    },
}

impl Training {
    /// How the rows of this application are chosen. Tables of the same size would otherwise be
    /// trained on the same rows, and be lucky or unlucky together.
    pub fn of(self, application: &str) -> Self {
        match self {
            Training::Random { share, seed } => {
                Training::Random { share, seed: seed ^ fingerprint(application) }
            }
            Training::Designed { .. } => self,
        }
    }
}

/// A number for a name, the same on every machine and in every version (FNV-1a, 64 bits).
fn fingerprint(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The places of the rows to train on, ascending. Rows that were not measured are never chosen.
pub fn choose(rows: &[Row], training: &Training) -> Vec<usize> {
    let (Training::Random { share, .. } | Training::Designed { share }) = *training;
    let measured = rows.iter().filter(|row| row.origin.was_run()).count();
    let count = share.of_count(u32::try_from(measured).unwrap_or(u32::MAX));
    choose_some(rows, training, usize::try_from(count).unwrap_or(usize::MAX))
}

/// As [`choose`], but so many, whatever the share.
pub(super) fn choose_some(rows: &[Row], training: &Training, count: usize) -> Vec<usize> {
    let measured = |&index: &usize| rows[index].origin.was_run();
    let mut candidates: Vec<usize> = (0..rows.len()).filter(measured).collect();
    let count = count.min(candidates.len());
    let mut chosen: Vec<usize> = match *training {
        Training::Random { seed, .. } => {
            let mut numbers = Pcg64Dxsm::seed_from_u64(seed);
            candidates.partial_shuffle(&mut numbers, count).0.to_vec()
        }
        Training::Designed { .. } => {
            // In a fixed order, so that ties do not depend on how the rows came.
            candidates.sort_by_key(|&index| rows[index].configuration);
            let configurations: Vec<Configuration> =
                candidates.iter().map(|&index| rows[index].configuration).collect();
            let places = most_telling(&configurations, count);
            places.into_iter().map(|place| candidates[place]).collect()
        }
    };
    chosen.sort_unstable();
    chosen
}

/// So many of the configurations, always the one whose prediction is the most uncertain given
/// those before; of several equally uncertain ones, the first.
fn most_telling(configurations: &[Configuration], count: usize) -> Vec<usize> {
    /// How uncertain a coefficient is at first, compared with one measurement. It decides nothing
    /// once there are more rows than coefficients, and has only to be large.
    const AT_FIRST: f64 = 1000.0;
    /// What is nearer than this counts as equal: the rest is rounding.
    const TIE: f64 = 1.0 + 1e-9;
    struct Candidate {
        terms: Vec<f64>,
        /// The variance of its prediction, or nothing once it is chosen.
        variance: Option<f64>,
    }

    let basis = Basis::of(configurations);
    let mut covariance = Symmetric::diagonal(basis.len(), AT_FIRST);
    let candidate = |configuration| {
        let terms = basis.terms(configuration);
        let variance = Some(AT_FIRST * norm_squared(&terms));
        Candidate { terms, variance }
    };
    let mut candidates: Vec<Candidate> = configurations.iter().map(candidate).collect();
    let mut chosen = Vec::with_capacity(count);
    while chosen.len() < count {
        let mut next = None;
        for (place, candidate) in candidates.iter().enumerate() {
            if let Some(variance) = candidate.variance
                && next.is_none_or(|(_, largest)| variance > largest * TIE)
            {
                next = Some((place, variance));
            }
        }
        let Some((place, variance)) = next else { break };
        candidates[place].variance = None;
        chosen.push(place);
        // What one more measurement takes from the uncertainty (Sherman and Morrison).
        let gain = covariance.times(&candidates[place].terms);
        covariance.subtract_products(&gain, 1.0 + variance);
        for Candidate { terms, variance: other } in &mut candidates {
            *other = other.map(|other| other - dot(&gain, terms).powi(2) / (1.0 + variance));
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_as_published() {
        // From the test vectors of the hash's authors.
        assert_eq!(fingerprint(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fingerprint("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fingerprint("foobar"), 0x8594_4171_f739_67e8);
    }
}
