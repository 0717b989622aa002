//! The law of an unknown application: it gains nothing by more nodes, is slowed down by a cap as much as that is
//! below the highest, and draws all of it. Hardly any does worse.

use crate::world::{Ask, Conditions, Factor, Law, Pace};

/// An application that nobody has described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unknown;

impl Law for Unknown {
    fn pace(&self, ask: Ask, at: Conditions) -> Option<Pace> {
        let slower = Factor::new((1.0 / at.share).max(1.0));
        (at.nodes == ask.nodes).then_some(Pace::Times(slower))
    }

    fn draw(&self, _: Ask, at: Conditions) -> f64 {
        at.share
    }
}
