//! What the site draws while a machine runs: the machine and its cooling.

use crate::machine::{Cooling, Machine};
use crate::units::{Joules, Span, Watts};

/// The site's own meter.
#[derive(Clone, Debug)]
pub(super) struct SiteMeter {
    cooling: Cooling,
    /// The most that the machine can draw.
    most: Watts,
    drawn: SiteFigures,
}

/// What a site drew for a machine and its cooling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteFigures {
    /// All energy.
    pub energy: Joules,
    /// The most power.
    pub peak: Watts,
}

impl SiteMeter {
    /// The meter of the site of a machine, if it is said what cooling takes there.
    pub(super) fn of(machine: &Machine) -> Option<Self> {
        let cooling = machine.cooling.clone()?;
        Some(SiteMeter { cooling, most: machine.max_power(), drawn: SiteFigures::default() })
    }

    /// The machine drew so much for so long; says what the site drew.
    pub(super) fn advance(&mut self, machine: Watts, time: Span) -> Watts {
        let power = self.cooling.of_site(machine, self.most);
        self.drawn.energy += power.over(time);
        self.drawn.peak = self.drawn.peak.max(power);
        power
    }

    pub(super) fn figures(&self) -> SiteFigures {
        self.drawn
    }
}
