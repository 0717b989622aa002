//! Gears: a job of sensitivity β takes 1 + β·(f_top/f − 1) times as long at frequency f, on the nodes it
//! asks for and on no others (Etinski and others 2010).

use crate::machine::Gearbox;
use crate::model::Beta;
use crate::units::Watts;
use crate::world::{Ask, Conditions, Factor, Law, Pace};

/// One speed of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Gear {
    /// What a node draws in it, as a share of what it draws in the top gear.
    share: f64,
    /// How much longer a job of β = 1 takes, beyond once; in steps of 2⁻³².
    slowness: u64,
}

/// The speeds of a node: a cap allows the fastest one that draws no more.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gears(Vec<Gear>);

impl Gears {
    /// The gears of a gearbox. Their draws are those of the capped part of a node alone, which draws so much in
    /// the top gear.
    pub(crate) fn of(gearbox: &Gearbox, part: Watts) -> Self {
        let gear = |gear: &crate::machine::Gear| Gear {
            share: gearbox.relative_power(*gear, part),
            slowness: ((gearbox.slowdown(*gear) - 1.0) * (1u64 << 32) as f64).round() as u64,
        };
        Gears(gearbox.gears().iter().map(gear).collect())
    }

    fn gear(&self, at: Conditions) -> Option<&Gear> {
        self.0.iter().rev().find(|gear| gear.share <= at.share)
    }
}

impl Law for Gears {
    fn pace(&self, ask: Ask, at: Conditions) -> Option<Pace> {
        let gear = self.gear(at).filter(|_| at.nodes == ask.nodes)?;
        Some(Pace::Times(slowed(gear.slowness, ask.beta)))
    }

    fn draw(&self, _: Ask, at: Conditions) -> f64 {
        self.gear(at).map_or(0.0, |gear| gear.share)
    }
}

/// The factor of a job in a gear, rounded down to steps of 2⁻³²: it is the time that is rounded up.
fn slowed(slowness: u64, beta: Beta) -> Factor {
    let added = (u128::from(slowness) * u128::from(beta.to_bits())) >> 31;
    Factor::from_bits((1u64 << 32).saturating_add(u64::try_from(added).unwrap_or(u64::MAX)))
}
