//! PASS (Sarood and others, PARM, SC 2014): time falls with nodes by Downey's law and grows under a cap,
//! and the two do not depend on each other. A job draws all of its cap.

use crate::model::pass::{Application, Scaling, Throttling};
use crate::world::{Ask, Conditions, Factor, Law, Pace};

/// The processor's power without a cap for which the laws of PASS were measured, in watts.
const WATTS: f64 = 60.0;

/// An application that scales and answers to power as PASS says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pass {
    throttling: Throttling,
    /// The average parallelism, as a multiple of the nodes asked for, and its variation.
    parallelism: f64,
    variation: f64,
}

impl Pass {
    /// One of PARM's applications that scales like this.
    pub(crate) fn of(application: &Application, parallelism: f64, variation: f64) -> Self {
        Pass { throttling: application.throttling(), parallelism, variation }
    }
}

impl Law for Pass {
    fn pace(&self, ask: Ask, at: Conditions) -> Option<Pace> {
        let parallelism = (self.parallelism * f64::from(ask.nodes)).max(1.0);
        let scaling = Scaling::new(1.0, parallelism, self.variation).ok();
        let seconds = |nodes: u32| scaling.as_ref().and_then(|scaling| scaling.seconds(nodes));
        // One who does not scale takes as long anywhere.
        let whole = seconds(ask.nodes).unwrap_or(1.0);
        let by_nodes = seconds(at.nodes).unwrap_or(whole) / whole;
        let by_cap = self.throttling.stretched(at.share * WATTS);
        Some(Pace::Times(Factor::new(by_nodes * by_cap)))
    }

    fn draw(&self, _: Ask, at: Conditions) -> f64 {
        at.share
    }
}
