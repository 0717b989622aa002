//! A law that was worked out beforehand, on a grid of sizes and caps: in between it is read off in
//! straight lines.
//!
//! Closed forms need roots and bisections, which are slow and differ between platforms in their last
//! digit. A grid is made once, its values are rounded, and reading it off takes additions,
//! multiplications and divisions alone. So the same world gives the same times everywhere.

use std::fmt;

use crate::world::{Ask, Conditions, Factor, Law, Pace};

/// The numbers of nodes of the grid, as multiples of the nodes asked for.
const SIZES: [f64; 13] = [0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0];

/// The place of the nodes asked for.
const ASKED: usize = 6;

/// The lowest cap of the grid, as a share of the highest, and the steps from there on.
const LOWEST: f64 = 0.25;
const STEPS: usize = 60;

/// Values are rounded to this.
const GRAIN: f64 = 4096.0;

/// What a closed form says of an application somewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// How long it takes, in any unit.
    pub time: f64,
    /// What the capped part of a node draws, as a share of the highest cap.
    pub draw: f64,
}

/// What a law may not be.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{what} at {size} times the nodes asked for under {share} of the highest cap")]
pub(crate) struct NotALaw {
    what: &'static str,
    size: f64,
    share: f64,
}

/// A grid of samples.
#[derive(Clone, PartialEq)]
pub(crate) struct Sampled {
    /// By size and cap: how many node-hours a job takes for each that it takes as it was asked for. That
    /// is nearly the same for all sizes, where times are not.
    node_time: Vec<f64>,
    draw: Vec<f64>,
}

/// Thousands of numbers say nothing to anybody.
impl fmt::Debug for Sampled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sampled").finish_non_exhaustive()
    }
}

impl Sampled {
    /// Samples a closed form of size and cap, each a multiple of what is asked for.
    ///
    /// # Errors
    ///
    /// If a time is not a number above zero, or a draw is none or above the cap.
    pub(crate) fn of(form: impl Fn(f64, f64) -> Sample) -> Result<Self, NotALaw> {
        let reference = form(1.0, 1.0).time;
        let (mut node_time, mut draw) = (Vec::new(), Vec::new());
        for size in SIZES {
            for step in 0..=STEPS {
                let share = share_of(step);
                let sample = form(size, share);
                let wrong = |what| NotALaw { what, size, share };
                let factor = sample.time / reference;
                if !(factor.is_finite() && factor > 0.0) {
                    return Err(wrong("there is no time"));
                }
                if !(sample.draw >= 0.0 && sample.draw <= share + 1.0 / GRAIN) {
                    return Err(wrong("more is drawn than the cap allows"));
                }
                node_time.push(rounded(factor * size).max(1.0 / GRAIN));
                draw.push(rounded(sample.draw));
            }
        }
        Ok(Sampled { node_time, draw })
    }
}

fn share_of(step: usize) -> f64 {
    LOWEST + (1.0 - LOWEST) * step as f64 / STEPS as f64
}

fn rounded(value: f64) -> f64 {
    (value * GRAIN).round() / GRAIN
}

/// A place in the grid: the point before, and how far it is to the one after.
#[derive(Clone, Copy, Debug)]
struct Place {
    before: usize,
    beyond: f64,
}

impl Place {
    /// Among the sizes; nothing if a size is outside of them.
    fn of_size(size: f64) -> Option<Self> {
        let after = SIZES.iter().position(|known| size <= *known)?;
        match after {
            0 => (size == SIZES[0]).then_some(Place { before: 0, beyond: 0.0 }),
            after => {
                let before = after - 1;
                let beyond = (size - SIZES[before]) / (SIZES[after] - SIZES[before]);
                Some(Place { before, beyond })
            }
        }
    }

    /// Among the caps; a higher cap than the highest is as good as that.
    fn of_share(share: f64) -> Option<Self> {
        if share < LOWEST {
            return None;
        }
        let steps = ((share - LOWEST) / (1.0 - LOWEST) * STEPS as f64).min(STEPS as f64);
        let before = (steps as usize).min(STEPS - 1);
        Some(Place { before, beyond: steps - before as f64 })
    }
}

/// The value at a place, in straight lines between the four points around it.
fn read(values: &[f64], size: Place, share: Place) -> f64 {
    let row = |size: usize| {
        let first = size * (STEPS + 1) + share.before;
        values[first] + (values[first + 1] - values[first]) * share.beyond
    };
    let before = row(size.before);
    if size.beyond == 0.0 { before } else { before + (row(size.before + 1) - before) * size.beyond }
}

impl Law for Sampled {
    fn pace(&self, ask: Ask, at: Conditions) -> Option<Pace> {
        let size = f64::from(at.nodes) / f64::from(ask.nodes.max(1));
        let (place, share) = (Place::of_size(size)?, Place::of_share(at.share)?);
        Some(Pace::Times(Factor::new(read(&self.node_time, place, share) / size)))
    }

    fn draw(&self, ask: Ask, at: Conditions) -> f64 {
        let size = f64::from(at.nodes) / f64::from(ask.nodes.max(1));
        let asked = Place { before: ASKED, beyond: 0.0 };
        let place = Place::of_size(size).unwrap_or(asked);
        // Below the lowest cap nothing runs; what is drawn there is no more than the cap.
        Place::of_share(at.share).map_or(at.share, |share| read(&self.draw, place, share))
    }
}
