//! Random programs from a seed, as PARM would meet them: jobs that scale and answer to caps as the PASS model says,
//! and a machine on which one resource or both are short.
//!
//! A job may run on some node counts, the largest eight times the smallest (or powers of two), and
//! under caps from 30 W to 60 W a processor; the rest of a node draws 56 W. Its value is PARM's: how
//! many times as fast it runs as in its smallest configuration, times the time it has to go and has
//! waited, to the power of alpha. The machine is the one of the paper's projection, scaled down for
//! fewer than 500 jobs.

use std::fmt;
use std::str::FromStr;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use super::file::{Job, Program};
use crate::units::Watts;

mod kind;

use kind::{Kind, application_of, log_uniform};

/// What a program is to be like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Random {
    /// How many jobs.
    pub jobs: u32,
    /// Configurations of each.
    pub configs: u32,
    /// What is short, and what jobs have in common.
    pub family: Family,
    /// How much waiting counts: 0 for throughput, more for fairness.
    pub alpha: f64,
    /// How many of the jobs run already.
    pub running: u32,
    /// Where the random numbers start.
    pub seed: u64,
}

/// What is short, and what jobs have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Power is short and nodes are not.
    Free,
    /// Nodes and power are both short.
    Tight,
    /// As `Tight`, and node counts are powers of two.
    Pow2,
    /// As `Tight`, and there are 35 kinds of jobs, all of a kind alike.
    Twins,
}

impl Family {
    /// All families.
    pub const ALL: [Family; 4] = [Family::Free, Family::Tight, Family::Pow2, Family::Twins];

    fn name(self) -> &'static str {
        match self {
            Family::Free => "free",
            Family::Tight => "tight",
            Family::Pow2 => "pow2",
            Family::Twins => "twins",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Default for Random {
    fn default() -> Self {
        Random { jobs: 50, configs: 60, family: Family::Tight, alpha: 0.0, running: 0, seed: 1 }
    }
}

/// Why a random program cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RandomError {
    /// The text is not a list of `key=value`.
    #[error("'{0}' has no '=value'; write jobs=500,configs=60,family=tight")]
    Form(String),
    /// There is no such parameter.
    #[error("there is no '{0}'; valid: jobs, configs, family, alpha, running, seed")]
    Unknown(String),
    /// A value cannot be used.
    #[error("{key}={value} cannot be used; valid: {valid}")]
    Value {
        /// The parameter, by its name.
        key: &'static str,
        /// The text as written.
        value: String,
        /// What could have been.
        valid: &'static str,
    },
}

const VALID_JOBS: &str = "1 to 100000";
const VALID_CONFIGS: &str = "1 to 240";
const VALID_ALPHA: &str = "0 to 4";
const VALID_RUNNING: &str = "0 to the number of jobs";
const VALID_FAMILIES: &str = "free, tight, pow2, twins";

/// Reads `jobs=500,configs=60,family=tight,alpha=0,running=50,seed=1`; what is not named is as by
/// default.
impl FromStr for Random {
    type Err = RandomError;

    fn from_str(text: &str) -> Result<Self, RandomError> {
        fn read<T: FromStr>(
            key: &'static str,
            value: &str,
            valid: &'static str,
        ) -> Result<T, RandomError> {
            value.parse().map_err(|_| RandomError::Value { key, value: value.to_owned(), valid })
        }
        let mut random = Random::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) =
                part.split_once('=').ok_or_else(|| RandomError::Form(part.to_owned()))?;
            let value = value.trim();
            match key.trim() {
                "jobs" => random.jobs = read("jobs", value, VALID_JOBS)?,
                "configs" => random.configs = read("configs", value, VALID_CONFIGS)?,
                "alpha" => random.alpha = read("alpha", value, VALID_ALPHA)?,
                "running" => random.running = read("running", value, VALID_RUNNING)?,
                "seed" => random.seed = read("seed", value, "a whole number")?,
                "family" => {
                    let named = Family::ALL.into_iter().find(|family| family.name() == value);
                    random.family = named.ok_or_else(|| RandomError::Value {
                        key: "family",
                        value: value.to_owned(),
                        valid: VALID_FAMILIES,
                    })?;
                }
                other => return Err(RandomError::Unknown(other.to_owned())),
            }
        }
        random.check().map(|()| random)
    }
}

impl fmt::Display for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Random { jobs, configs, family, alpha, running, seed } = self;
        write!(
            f,
            "jobs={jobs},configs={configs},family={family},alpha={alpha},running={running},seed={seed}"
        )
    }
}

/// The machine of the projection: nodes and watts of the whole, for this many jobs or more.
const NODES: u64 = 50_000;
const BUDGET_WATTS: u64 = 4_751_360;
const JOBS_OF_THE_WHOLE: u64 = 500;
/// This many nodes are too many: at the lowest cap the budget feeds fewer.
const FREE_NODES: u64 = 60_000;
/// Out of how many jobs so many run each application: all alike; or mostly those that mind a low
/// cap little, as in the paper's set with a mean sensitivity of 0.10. Others make so much of a higher cap
/// that the budget runs out before the nodes do.
const EVEN: [u32; 5] = [1, 1, 1, 1, 1];
const LOW: [u32; 5] = [1, 2, 1, 1, 95];
/// The same for the kinds of twins, which are so few that chance would not do.
const OF_TWINS: [u32; 5] = [0, 1, 0, 0, 34];
/// Kinds of jobs among twins.
const TWIN_KINDS: u32 = 35;

impl Random {
    fn check(&self) -> Result<(), RandomError> {
        let wrong = |key, value: String, valid| Err(RandomError::Value { key, value, valid });
        if !(1..=100_000).contains(&self.jobs) {
            return wrong("jobs", self.jobs.to_string(), VALID_JOBS);
        }
        if !(1..=240).contains(&self.configs) {
            return wrong("configs", self.configs.to_string(), VALID_CONFIGS);
        }
        if !(0.0..=4.0).contains(&self.alpha) {
            return wrong("alpha", self.alpha.to_string(), VALID_ALPHA);
        }
        if self.running > self.jobs {
            return wrong("running", self.running.to_string(), VALID_RUNNING);
        }
        Ok(())
    }

    /// Makes the program. The same parameters give the same program.
    pub fn generate(&self) -> Result<Program, RandomError> {
        self.check()?;
        let mut random = Pcg64Dxsm::seed_from_u64(self.seed);
        let scale = u64::from(self.jobs).min(JOBS_OF_THE_WHOLE);
        let nodes = if self.family == Family::Free { FREE_NODES } else { NODES };
        let kinds: Vec<Kind> = (0..TWIN_KINDS)
            .map(|place| Kind::draw(&mut random, application_of(place, OF_TWINS), self.family))
            .collect();
        let shares = if self.family == Family::Free { EVEN } else { LOW };
        let jobs = (0..self.jobs).map(|place| {
            let kind = match self.family {
                Family::Twins => kinds[(place % TWIN_KINDS) as usize],
                _ => {
                    let ticket = random.random_range(0..shares.iter().sum::<u32>());
                    Kind::draw(&mut random, application_of(ticket, shares), self.family)
                }
            };
            let running = place < self.running;
            let left = if running { random.random_range(0.05..1.0) } else { 1.0 };
            // Twins have also been submitted together.
            let waited = match self.family {
                Family::Twins => kind.waited,
                _ => log_uniform(&mut random, 60.0, 86_400.0),
            };
            let weight = libm::pow(kind.slowest_s * left + waited, self.alpha);
            Job {
                name: Some(format!("{}-{}", kind.application.name.to_lowercase(), place + 1)),
                running,
                configurations: kind.configurations(self.configs, weight),
            }
        });
        Ok(Program {
            jobs: jobs.collect(),
            nodes: nodes * scale / JOBS_OF_THE_WHOLE,
            power: Watts::from_milliwatts(BUDGET_WATTS * 1000 * scale / JOBS_OF_THE_WHOLE),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::knapsack::{Limits, solve};

    #[test]
    fn parameters_round_trip_and_mistakes_are_named() {
        let text = "jobs=500,configs=60,family=pow2,alpha=0.5,running=50,seed=7";
        assert_eq!(text.parse::<Random>().unwrap().to_string(), text);
        assert_eq!("".parse(), Ok(Random::default()));
        let error = |text: &str| text.parse::<Random>().unwrap_err().to_string();
        assert!(error("jobs").contains("no '=value'"));
        assert!(error("job=3").contains("no 'job'; valid: jobs"));
        assert_eq!(error("jobs=0"), "jobs=0 cannot be used; valid: 1 to 100000");
        assert_eq!(error("alpha=NaN"), "alpha=NaN cannot be used; valid: 0 to 4");
        assert!(error("family=loose").contains("valid: free, tight, pow2, twins"));
        assert!(error("running=51").contains("0 to the number of jobs"));
    }

    #[test]
    fn what_a_family_says_is_short_has_a_price() {
        for family in Family::ALL {
            for jobs in [50, 500, 1000] {
                for (alpha, running, seed) in [(0.0, 0, 1), (0.0, 50, 2), (0.5, 0, 3), (0.5, 50, 4)]
                {
                    let random = Random { jobs, configs: 60, family, alpha, running, seed };
                    let instance = random.generate().unwrap().instance().unwrap();
                    let limits = Limits { gap: 1e-3, ..Limits::default() };
                    let prices = solve(&instance, limits, None).unwrap().prices();
                    assert!(prices.watt > 0.0, "{random}: {prices:?}");
                    assert_eq!(prices.node > 0.0, family != Family::Free, "{random}: {prices:?}");
                }
            }
        }
    }

    #[test]
    fn a_program_has_as_many_configurations_as_asked_for() {
        for configs in [1, 5, 60, 240] {
            for family in Family::ALL {
                let program = Random { configs, family, ..Random::default() }.generate().unwrap();
                assert!(
                    program.jobs.iter().all(|job| job.configurations.len() == configs as usize)
                );
            }
        }
    }
}
