//! Caps as gears: the frequency that a cap leaves, and what that makes of a job's time.

use crate::machine::Gearbox;
use crate::model::Beta;
use crate::units::Watts;
use crate::world::{Ask, Conditions, Factor, Law, Pace};

/// The frequency of a node under a cap, between the gears of a gearbox in straight lines; and how much
/// jobs depend on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Clock {
    /// What is drawn, as a share of what is drawn in the top gear, and how many times as fast the top gear
    /// is; the slowest gear first.
    gears: Vec<(f64, f64)>,
    beta: Beta,
}

impl Clock {
    /// The gears of a machine whose nodes draw so much in the top gear that a cap reaches.
    pub fn of(gearbox: &Gearbox, highest: Watts) -> Self {
        let gears = gearbox.gears().iter();
        let gears =
            gears.map(|gear| (gearbox.relative_power(*gear, highest), gearbox.slowdown(*gear)));
        Clock { gears: gears.collect(), beta: Beta::FULL }
    }

    /// The same for jobs that depend on it so much.
    pub fn with(&self, beta: Beta) -> Self {
        Clock { beta, ..self.clone() }
    }

    /// How much longer a job of β = 1 takes under a cap, beyond once. Below the slowest gear its clock
    /// stands still for part of the time.
    pub(crate) fn slowness(&self, share: f64) -> f64 {
        let after = self.gears.iter().position(|(power, _)| share <= *power);
        let times = match after {
            None => 1.0,
            Some(0) => self.gears[0].1 * self.gears[0].0 / share.max(f64::MIN_POSITIVE),
            Some(after) => {
                let ((less, slower), (more, faster)) = (self.gears[after - 1], self.gears[after]);
                slower + (faster - slower) * (share - less) / (more - less)
            }
        };
        times - 1.0
    }
}

impl Law for Clock {
    fn pace(&self, ask: Ask, at: Conditions) -> Option<Pace> {
        let beta = f64::from(self.beta.to_bits()) / f64::from(Beta::FULL.to_bits());
        let factor = 1.0 + beta * self.slowness(at.share);
        (at.nodes == ask.nodes).then(|| Pace::Times(Factor::new(factor)))
    }

    fn draw(&self, _: Ask, at: Conditions) -> f64 {
        at.share
    }
}
