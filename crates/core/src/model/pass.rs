//! PASS: how long an application takes on a number of nodes under a power cap.
//!
//! The model of Sarood and others (PARM, SC 2014), of three laws put together. [`Scaling`] says how
//! time falls with nodes (Downey's law of parallelism). [`PowerLaw`] says at which frequency a
//! processor runs under a cap. [`Throttling`] says how time grows as the frequency falls. What an
//! application takes is the product: the time on this many nodes at full frequency, times the
//! slowdown under the cap. More nodes never make it slower, and neither does a higher cap.
//!
//! These are laws of real numbers: seconds, watts and gigahertz in `f64`. Who promises something on
//! the strength of them rounds at the border, as [`Resizing`] does.
//!
//! What it deliberately does not do: say anything about caps below the lowest one an application
//! can run under, or about cores, of which all are used.

mod applications;
mod fit;
mod power;
mod resizing;
mod scaling;
mod testbed;
#[cfg(test)]
mod tests;
mod throttling;

pub use applications::Application;
pub use fit::{Certainty, Estimate, Estimates, PassFit, PassFitError, Sample, fit};
pub use power::PowerLaw;
pub use resizing::Resizing;
pub use scaling::Scaling;
pub use testbed::generate;
pub use throttling::Throttling;

use crate::units::Watts;

/// A parameter of a law is not what it can be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{what} is {value}; it must be {must}")]
pub struct OutOfRange {
    /// The parameter, by its name.
    pub what: &'static str,
    /// The quantity in question.
    pub value: f64,
    /// The valid values.
    pub must: String,
}

/// Passes a parameter on, if it is what it must be; what is no number is not.
fn checked(
    what: &'static str,
    value: f64,
    is_right: bool,
    must: impl Into<String>,
) -> Result<f64, OutOfRange> {
    if value.is_finite() && is_right {
        Ok(value)
    } else {
        Err(OutOfRange { what, value, must: must.into() })
    }
}

/// The time of one application, by nodes and cap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pass {
    /// How it falls with nodes.
    pub scaling: Scaling,
    /// How it grows under a cap.
    pub throttling: Throttling,
}

/// What an application takes in one combination of nodes and cap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// The number of nodes.
    pub nodes: u32,
    /// The cap of each processor.
    pub cap: Watts,
    /// How long it takes.
    pub seconds: f64,
}

impl Pass {
    /// The seconds on this many nodes, with each processor held to this many watts. Nothing, if there
    /// is no node, or the cap is below the lowest one the application can run under.
    pub fn seconds(&self, nodes: u32, cap_watts: f64) -> Option<f64> {
        Some(self.scaling.seconds(nodes)? * self.throttling.slowdown(cap_watts)?)
    }

    /// The times of all combinations in which the application can run, in the order of the nodes
    /// and then of the caps.
    fn timings(&self, node_counts: &[u32], caps: &[Watts]) -> Vec<Timing> {
        let timing = |nodes: u32, cap: Watts| {
            let seconds = self.seconds(nodes, cap.as_f64())?;
            Some(Timing { nodes, cap, seconds })
        };
        let combinations =
            node_counts.iter().flat_map(|&nodes| caps.iter().map(move |&cap| (nodes, cap)));
        combinations.filter_map(|(nodes, cap)| timing(nodes, cap)).collect()
    }
}
