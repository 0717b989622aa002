//! The table `[dvfs]` of a machine file, as written.

use serde::Deserialize;

use super::{Draw, Gear, Gearbox, GearboxError, Sensitivity};
use crate::machine::written::some_watts;
use crate::units::Watts;

/// The table. What it leaves out is as in the default.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    gears: Option<Vec<Entry>>,
    static_share: Option<f64>,
    beta: Option<Vec<Sensitivity>>,
}

/// A gear: what it is called by, what is drawn in it, and what it does to jobs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    ghz: Option<f64>,
    volts: Option<f64>,
    #[serde(default, deserialize_with = "some_watts")]
    watts: Option<Watts>,
    slowdown: Option<f64>,
}

impl TryFrom<Table> for Gearbox {
    type Error = GearboxError;

    fn try_from(table: Table) -> Result<Self, GearboxError> {
        let default = Gearbox::default();
        let is_assumed = table.gears.is_none();
        let gearbox = Gearbox::new(
            table.gears.map_or(Ok(default.gears), |entries| gears(&entries))?,
            table.static_share.unwrap_or(default.static_share),
            table.beta.unwrap_or(default.sensitivity),
        )?;
        Ok(Gearbox { is_assumed, ..gearbox })
    }
}

fn gears(entries: &[Entry]) -> Result<Vec<Gear>, GearboxError> {
    let have_ghz = entries.iter().any(|entry| entry.ghz.is_some());
    let have_watts = entries.iter().any(|entry| entry.watts.is_some());
    let gear = |(number, entry): (usize, &Entry)| {
        let is_last = number == entries.len();
        let incomplete = |why| GearboxError::Incomplete { entry: number, why };
        // Only what is slower than the fastest slows anybody down.
        if is_last && entry.slowdown.is_some_and(|slowdown| slowdown != 1.0) {
            return Err(incomplete("is the fastest: leave out its 'slowdown', or write 1.0"));
        }
        let ghz = match (entry.ghz, entry.slowdown) {
            (Some(ghz), _) => ghz,
            (None, _) if have_ghz => {
                return Err(incomplete(
                    "has no 'ghz', which others have; give it to all or to none",
                ));
            }
            (None, Some(slowdown)) => 1.0 / slowdown,
            (None, None) if is_last => 1.0,
            (None, None) => {
                return Err(incomplete("has neither 'ghz' nor 'slowdown'; give one of them"));
            }
        };
        let draw = match (entry.watts, entry.volts) {
            (Some(watts), _) => Draw::Node(watts),
            (None, _) if have_watts => {
                return Err(incomplete(
                    "has no 'watts', which others have; give them to all or to none",
                ));
            }
            (None, Some(volts)) => Draw::Volts(volts),
            (None, None) => {
                return Err(incomplete("has neither 'volts' nor 'watts'; give one of them"));
            }
        };
        Ok(Gear { ghz, draw, slowdown: entry.slowdown })
    };
    (1..).zip(entries).map(gear).collect()
}
