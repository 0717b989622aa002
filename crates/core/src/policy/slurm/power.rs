//! Power as one more resource: what is free of it over time, where it is limited.

use crate::availability::{Availability, Claim};
use crate::ledger::Ledger;
use crate::model::OperatingPoint;
use crate::units::Instant;

/// What is free of the power, over time; nothing where it is not limited.
#[derive(Clone, Debug)]
pub(super) struct Power(Option<Availability>);

/// What a job takes of the power alone.
fn claim(point: &OperatingPoint) -> Claim {
    Claim { nodes: 0, ..Claim::of(point) }
}

impl Power {
    /// What the ledger knows.
    pub(super) fn of(ledger: &Ledger) -> Self {
        Power(ledger.budget().is_limited().then(|| Availability::of(ledger)))
    }

    /// Whether there is enough for a job from then on.
    pub(super) fn fits(&self, at: Instant, point: &OperatingPoint) -> bool {
        self.earliest(at, point) == Some(at)
    }

    /// The first instant from then on at which there is enough.
    pub(super) fn earliest(&self, from: Instant, point: &OperatingPoint) -> Option<Instant> {
        match &self.0 {
            Some(free) => free.earliest(from, &claim(point)),
            None => Some(from),
        }
    }

    /// Takes out what a job will hold from then on.
    pub(super) fn take(&mut self, at: Instant, point: &OperatingPoint) {
        if let Some(free) = &mut self.0 {
            free.take(at, &claim(point));
        }
    }
}
