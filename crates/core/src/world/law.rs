//! Laws: how the time and the draw of an application depend on what it gets.
//!
//! A law speaks of the reference node, whose watts are shares of the highest cap. How real nodes differ
//! from it is none of its business ([`Parts`](super::Parts)).

use std::fmt;

use crate::model::Beta;
use crate::world::Pace;

mod curved;
// How fits see the laws of two papers is tested with these.
#[cfg(test)]
mod gears;
#[cfg(test)]
mod pass;
mod sampled;
mod table;
mod unknown;

pub(crate) use curved::Curved;
pub(crate) use curved::Which;
#[cfg(test)]
pub(crate) use gears::Gears;
#[cfg(test)]
pub(crate) use pass::Pass;
pub(crate) use sampled::{NotALaw, Sample, Sampled};
pub(crate) use table::Table;
pub(crate) use unknown::Unknown;

/// What a job asks for, as far as a law minds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask {
    /// The nodes that the user asks for.
    pub nodes: u32,
    /// How much its time depends on frequency, for laws that leave that to the job.
    pub beta: Beta,
}

/// What a job gets, on nodes like the reference node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditions {
    /// The nodes it has.
    pub nodes: u32,
    /// The cores it uses in each of them; nothing means all.
    pub cores: Option<u32>,
    /// The cap of each of them, as a share of the highest one; above 1 where a node needs less than the
    /// reference node does.
    pub share: f64,
}

/// How an application runs.
pub trait Law: fmt::Debug + Send + Sync {
    /// How long a job takes. Nothing, if it cannot run like that.
    fn pace(&self, ask: Ask, at: Conditions) -> Option<Pace>;

    /// What the capped part of a node draws, as a share of the highest cap.
    fn draw(&self, ask: Ask, at: Conditions) -> f64;

    /// Whether it says what fewer cores in each node amount to.
    fn minds_cores(&self) -> bool {
        false
    }
}
