//! Curves that were measured on each processor (Gholkar, Mueller and Rountree, PTune): the speed over the
//! power, for one application. A job scales perfectly, and work goes to whichever processor is ready for it.

use std::sync::Arc;

use crate::units::Watts;
use crate::variation::{Curve, Processors};
use crate::world::{Ask, Conditions, Factor, Law, Pace};

/// Which processor is meant, where nobody knows which a job has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// One like the mean of all.
    Middle,
    /// As slow as the slowest of all, and drawing as much as the one that draws most.
    Worst,
}

/// One application on processors that were measured.
#[derive(Clone, Debug)]
pub(crate) struct Curved {
    processors: Arc<Processors>,
    application: usize,
    which: Which,
    /// The highest cap, which shares are of.
    highest: Watts,
    /// The mean of what processors do at their peaks: full speed.
    full: f64,
}

impl Curved {
    /// An application by its place, on nodes whose highest cap is this.
    pub(crate) fn new(processors: Arc<Processors>, application: usize, highest: Watts) -> Self {
        let curves = &processors.applications()[application].curves;
        let peaks: f64 = curves.iter().map(|curve| curve.peak().billions()).sum();
        let full = peaks / curves.len().max(1) as f64;
        Curved { processors, application, which: Which::Middle, highest, full }
    }

    /// The same of another processor.
    pub(crate) fn on(&self, which: Which) -> Self {
        Curved { which, ..self.clone() }
    }

    /// The processors.
    pub(crate) fn processors(&self) -> &Processors {
        &self.processors
    }

    fn curves(&self) -> &[Curve] {
        &self.processors.applications()[self.application].curves
    }

    fn cap(&self, at: Conditions) -> Watts {
        Watts::from_f64_rounded_up(at.share.min(1.0) * self.highest.as_f64())
            .unwrap_or(self.highest)
    }

    /// How long a job takes, if all of its processors did what this one does under a cap; and what that
    /// draws.
    pub(in crate::world) fn on_one(
        &self,
        processor: usize,
        ask: Ask,
        nodes: u32,
        cap: Watts,
    ) -> (Pace, Watts) {
        let curve = &self.curves()[processor];
        let cap = held(curve, cap);
        (self.pace_of(curve.at(cap).billions(), ask, nodes), cap)
    }

    fn pace_of(&self, speed: f64, ask: Ask, nodes: u32) -> Pace {
        let share = speed / self.full * f64::from(nodes) / f64::from(ask.nodes.max(1));
        if share > 0.0 { Pace::Times(Factor::new(1.0 / share)) } else { Pace::NEVER }
    }
}

/// What a processor draws under a cap: it cannot be held below its least, and draws no more than its most.
fn held(curve: &Curve, cap: Watts) -> Watts {
    cap.clamp(curve.least(), curve.most())
}

impl Law for Curved {
    fn pace(&self, ask: Ask, at: Conditions) -> Option<Pace> {
        let cap = self.cap(at);
        let speeds = self.curves().iter().map(|curve| curve.at(held(curve, cap)).billions());
        let count = self.curves().len().max(1) as f64;
        let speed = match self.which {
            Which::Middle => speeds.sum::<f64>() / count,
            Which::Worst => speeds.fold(f64::INFINITY, f64::min),
        };
        Some(self.pace_of(speed, ask, at.nodes))
    }

    fn draw(&self, _: Ask, at: Conditions) -> f64 {
        let cap = self.cap(at);
        let draws = self.curves().iter().map(|curve| held(curve, cap).as_f64());
        let count = self.curves().len().max(1) as f64;
        let drawn = match self.which {
            Which::Middle => draws.sum::<f64>() / count,
            Which::Worst => draws.fold(0.0, f64::max),
        };
        drawn / self.highest.as_f64()
    }
}
