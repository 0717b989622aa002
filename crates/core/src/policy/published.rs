//! What policies were published with: how each expects caps and sizes to matter.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::belief::fit::{self, Clock};
use crate::belief::{Choices, Holds};
use crate::policy::field::Field;
use crate::units::Share;
use crate::world::Law;

/// What fitted laws are wrong by is rarely more than a third.
const MARGIN_OF_FITS: Share = Share::percent(133);

/// What was measured on one node is wrong by up to a tenth on another.
pub(super) const MARGIN_OF_MEASUREMENTS: Share = Share::percent(110);

/// What a policy was published with: how it expects caps and sizes to matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// Jobs run as they were asked for, and nodes draw what they are rated at.
    Rated,
    /// A job's time grows as the clock slows down, for all jobs alike.
    Clock,
    /// The same, with how much it does so measured for each application.
    FittedClock,
    /// A table that was measured on the reference node.
    Measured,
    /// A regression that is fitted to part of that table.
    Regression,
    /// PASS, fitted to it.
    Pass,
}

impl Published {
    /// All of them.
    pub(crate) const ALL: [Published; 6] = [
        Published::Rated,
        Published::Clock,
        Published::FittedClock,
        Published::Measured,
        Published::Regression,
        Published::Pass,
    ];

    /// What that comes to in a world: laws, what is set aside by them, and how far they may be wrong.
    pub(super) fn fitted(
        self,
        field: &Field<'_>,
        choices: &Choices,
    ) -> (Vec<Arc<dyn Law>>, Holds, Share) {
        let (world, clock) = (&field.world, Clock::of(field.gearbox, field.world.node().highest));
        let (whole, caps, draw) = (Share::percent(100), Holds::WholeCaps, Holds::Draw);
        match self {
            Published::Rated => (fit::rated(world), caps, whole),
            Published::Clock => (fit::clock(world, &clock), caps, whole),
            Published::FittedClock => {
                (fit::clock_fitted(world, choices, &clock), caps, MARGIN_OF_FITS)
            }
            Published::Measured => (fit::measured(world), draw, MARGIN_OF_MEASUREMENTS),
            Published::Regression => {
                (fit::regression(world, choices, field.seed), draw, MARGIN_OF_FITS)
            }
            Published::Pass => (fit::pass(world, choices), caps, MARGIN_OF_FITS),
        }
    }
}

impl fmt::Display for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Published::Rated => "rated",
            Published::Clock => "clock",
            Published::FittedClock => "fitted-clock",
            Published::Measured => "measured",
            Published::Regression => "regression",
            Published::Pass => "pass",
        })
    }
}

impl FromStr for Published {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Published::ALL.into_iter().find(|published| published.to_string() == text);
        named.ok_or("write rated, clock, fitted-clock, measured, regression or pass")
    }
}
