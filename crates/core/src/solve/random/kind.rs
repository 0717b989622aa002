//! A kind of job: its application, how it scales, and so what its configurations are worth.

use rand::RngExt;
use rand_pcg::Pcg64Dxsm;

use super::Family;
use crate::model::pass::{Application, Scaling};
use crate::solve::file::Configuration;
use crate::units::Watts;

/// What a node draws beside its capped part.
const BASE_WATTS: u32 = 56;
/// The caps, in watts.
const CAPS: [u32; 6] = [30, 36, 42, 48, 54, 60];
/// A kind of job.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) application: Application,
    scaling: Scaling,
    fewest_nodes: u32,
    doubles: bool,
    /// Seconds in the smallest configuration.
    pub(super) slowest_s: f64,
    /// Seconds that all of the kind have waited, if they were submitted together.
    pub(super) waited: f64,
}

impl Kind {
    /// Draws what is left to chance for jobs of this application.
    pub(super) fn draw(random: &mut Pcg64Dxsm, application: Application, family: Family) -> Self {
        let doubles = family == Family::Pow2;
        let fewest_nodes = if doubles {
            1 << random.random_range(1..7)
        } else {
            log_uniform(random, 4.0, 128.0) as u32
        };
        let parallelism = f64::from(fewest_nodes) * log_uniform(random, 1.0, 32.0);
        let variation = random.random_range(0.0..1.0);
        Kind {
            application,
            // A parallelism of at least one and a variation below it.
            scaling: Scaling::new(1.0, parallelism, variation).expect("a way to scale"),
            fewest_nodes,
            doubles,
            slowest_s: log_uniform(random, 600.0, 43_200.0),
            waited: log_uniform(random, 60.0, 86_400.0),
        }
    }

    /// Node counts by caps, smallest first, until there are enough.
    pub(super) fn configurations(&self, count: u32, weight: f64) -> Vec<Configuration> {
        let steps = count.div_ceil(CAPS.len() as u32);
        let throttling = self.application.throttling();
        let scaled = |nodes: u32| self.scaling.seconds(nodes).unwrap_or(1.0);
        let slowest = scaled(self.fewest_nodes) * throttling.stretched(f64::from(CAPS[0]));
        let mut configurations = Vec::new();
        let mut nodes = 0;
        for step in 0..steps {
            nodes = if self.doubles {
                // Beyond any machine they would be for nothing.
                self.fewest_nodes << step.min(20)
            } else {
                let share = f64::from(step) / f64::from(steps.max(2) - 1);
                let spread = (f64::from(self.fewest_nodes) * libm::pow(8.0, share)).round() as u32;
                spread.max(nodes + 1)
            };
            let scaled = scaled(nodes);
            configurations.extend(CAPS.map(|cap| Configuration {
                nodes,
                cap: Some(Watts::from_watts(cap)),
                power: Watts::from_watts(cap + BASE_WATTS) * nodes,
                value: weight * slowest / (scaled * throttling.stretched(f64::from(cap))),
            }));
        }
        configurations.truncate(count as usize);
        configurations
    }
}

/// The application that a ticket wins, where each has this share of the tickets.
pub(super) fn application_of(mut ticket: u32, shares: [u32; 5]) -> Application {
    for (application, share) in Application::ALL.into_iter().zip(shares) {
        if ticket < share {
            return application;
        }
        ticket -= share;
    }
    Application::ALL[0]
}

/// A number whose logarithm is anywhere between those of two others alike.
pub(super) fn log_uniform(random: &mut Pcg64Dxsm, low: f64, high: f64) -> f64 {
    libm::exp(random.random_range(libm::log(low)..libm::log(high)))
}
