//! A machine like Catalyst, the Ivy Bridge cluster of the PTune paper (Gholkar, Mueller and
//! Rountree: Power tuning for HPC jobs under manufacturing variations), synthetic: the paper's
//! measurements of 600 processors were never published.
//!
//! What is published is one table, of one processor: four caps, what it drew, how fast it was. Every
//! processor here is that one with its axes stretched: along power to what it draws without a cap,
//! along speed to the peak of the code. What a processor draws is one number between the least and
//! the most of the machine, the same for all codes, drawn so that the middle is more common than the
//! ends. The rest is chosen to meet these facts and no others:
//!
//! - peaks of 77 (CoMD), 50 (EP), 80 (BT) and 60 (SP) billion instructions per second;
//! - all processors reach them, at 70 to 105 W depending on processor and code;
//! - at a low cap the slowest is up to 30 % slower than the fastest;
//! - work for each watt has one peak, at lower watts for processors that draw less;
//! - the table, for one processor.
//!
//! Below 60 W the table says nothing, and what PTune gains depends on just that. So the [`Shape`]
//! there is a parameter. Which code draws how much is a choice too: the faster a code, the more.
//!
//! No step is more than addition, multiplication, division and rounding, so a seed gives the same
//! curves to the last digit on every platform.

use std::fmt;
use std::str::FromStr;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use super::csv::Measurement;
use super::{Application, Curve, CurveError, Ips, Knot, Processors};
use crate::units::{Share, Watts};

mod table;
#[cfg(test)]
mod tests;

/// The processors that the paper measured.
pub const PROCESSORS: u32 = 600;
/// More than anybody generates.
pub const MOST_PROCESSORS: u32 = 100_000;
/// The caps they were measured under, in watts.
pub(crate) const CAPS: [u32; 15] =
    [51, 55, 60, 65, 70, 75, 80, 85, 90, 95, 100, 105, 110, 115, 120];
/// What a processor is rated at.
pub const RATED: Watts = Watts::from_watts(115);
/// The lowest of the caps: the least that a processor can be held at.
const FLOOR: Watts = Watts::from_watts(CAPS[0]);

/// How the most that a processor draws compares with the least, for any one code.
const SPREAD: f64 = 105.0 / 78.0;

/// A code that was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Code {
    name: &'static str,
    /// Its speed without a cap, in billions of instructions per second.
    peak: f64,
    /// What the most efficient processor draws without a cap.
    least_watts: f64,
}

const CODES: [Code; 4] = [
    Code { name: "CoMD", peak: 77.0, least_watts: 75.0 },
    Code { name: "EP", peak: 50.0, least_watts: 70.0 },
    Code { name: "BT", peak: 80.0, least_watts: 78.0 },
    Code { name: "SP", peak: 60.0, least_watts: 73.0 },
];

/// How speed falls below the lowest power that was published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shape {
    /// As it falls above: the first stretch of the table is continued.
    #[default]
    Continued,
    /// With the third power of the watts, from the first point of the table to the origin.
    Cubic,
}

/// There is no shape of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown shape '{0}'; valid shapes: continued, cubic")]
pub struct UnknownShape(String);

impl Shape {
    /// Every shape there is.
    pub const ALL: [Shape; 2] = [Shape::Continued, Shape::Cubic];
}

impl FromStr for Shape {
    type Err = UnknownShape;

    fn from_str(text: &str) -> Result<Self, UnknownShape> {
        let named = Shape::ALL.into_iter().find(|shape| shape.to_string() == text);
        named.ok_or_else(|| UnknownShape(text.to_owned()))
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Shape::Continued => "continued",
            Shape::Cubic => "cubic",
        })
    }
}

/// The machine that is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Catalyst {
    /// How many processors it has; no more than [`MOST_PROCESSORS`] are made.
    pub processors: u32,
    /// Where the random numbers start.
    pub seed: u64,
    /// How speed falls below 60 W.
    pub shape: Shape,
    /// The largest error of a measured speed.
    pub noise: Share,
}

impl Default for Catalyst {
    fn default() -> Self {
        let shape = Shape::default();
        Catalyst { processors: PROCESSORS, seed: 1, shape, noise: Share::percent(0) }
    }
}

/// What was measured on a generated machine.
#[derive(Clone, Debug)]
pub struct Measured {
    names: Vec<String>,
    /// For each code, for each processor, at each cap.
    knots: Vec<Vec<[Knot; CAPS.len()]>>,
}

impl Catalyst {
    /// This many processors, measured without error.
    pub fn processors_of(processors: u32, seed: u64) -> Processors {
        let measured = Catalyst { processors, seed, ..Catalyst::default() }.measure();
        // Without noise there are no speeds of zero, and nothing else can be wrong.
        measured.processors().unwrap_or_else(|error| unreachable!("{error}"))
    }

    /// Runs every code on every processor at every cap.
    pub fn measure(&self) -> Measured {
        let parts = self.parts();
        // A stream of its own, so that the same processors come with noise and without.
        let mut numbers = Pcg64Dxsm::seed_from_u64(self.seed ^ 0x6e6f_6973_655f_6970);
        let largest_error = self.noise.millionths() as f64 / 1e6;
        let mut run = |code: &Code, part: f64| {
            CAPS.map(|cap| {
                let error = largest_error * (bell(&mut numbers) * 2.0 - 1.0);
                code.run(part, cap, self.shape, 1.0 + error)
            })
        };
        let mut on_all = |code: &Code| parts.iter().map(|part| run(code, *part)).collect();
        let knots = CODES.iter().map(&mut on_all).collect();
        let width = parts.len().saturating_sub(1).to_string().len();
        let names = (0..parts.len()).map(|place| format!("p{place:0width$}")).collect();
        Measured { names, knots }
    }

    /// How much each processor draws: 0 as the most efficient can, 1 as the least efficient can.
    fn parts(&self) -> Vec<f64> {
        let count = self.processors.clamp(1, MOST_PROCESSORS);
        let mut numbers = Pcg64Dxsm::seed_from_u64(self.seed ^ 0x6361_7461_6c79_7374);
        (0..count).map(|_| bell(&mut numbers)).collect()
    }
}

/// A number between 0 and 1, more likely in the middle: the mean of two even ones.
fn bell(numbers: &mut impl Rng) -> f64 {
    let number = numbers.next_u64();
    let even = |bits: u64| ((bits & 0xffff_ffff) as f64 + 0.5) / 4_294_967_296.0;
    (even(number) + even(number >> 32)) / 2.0
}

impl Code {
    /// What a processor draws without a cap.
    fn uncapped(&self, part: f64) -> f64 {
        self.least_watts * (1.0 + part * (SPREAD - 1.0))
    }

    /// One run at a cap, with what measuring makes of its speed.
    fn run(&self, part: f64, cap: u32, shape: Shape, error: f64) -> Knot {
        let stretch = self.uncapped(part) / table::UNCAPPED_WATTS;
        let drawn = table::drawn(f64::from(cap) / stretch) * stretch;
        // Speed belongs to the power as it is written down, so that rounding bends no curve.
        let milliwatts = (drawn * 1000.0).ceil();
        let share = table::gips(milliwatts / 1000.0 / stretch, shape) / table::PEAK_GIPS;
        Knot {
            power: Watts::from_milliwatts(milliwatts as u64),
            ips: Ips::from_ips((self.peak * share * error * 1e9).round() as u64),
        }
    }
}

/// How a code runs on a processor in the middle between the most and the least efficient.
#[derive(Clone, Copy, Debug)]
pub struct ClosedForm(Code);

impl ClosedForm {
    /// All codes.
    pub fn all() -> [ClosedForm; 4] {
        CODES.map(ClosedForm)
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Its speed under a cap, as a share of its peak, and the watts that the processor draws.
    pub fn run(&self, cap: f64) -> (f64, f64) {
        let stretch = self.0.uncapped(0.5) / table::UNCAPPED_WATTS;
        let drawn = table::drawn(cap / stretch);
        (table::gips(drawn, Shape::Continued) / table::PEAK_GIPS, drawn * stretch)
    }
}

impl Measured {
    /// Every run, in the form of a table.
    pub fn rows(&self) -> impl Iterator<Item = Measurement<'_>> {
        CODES.iter().zip(&self.knots).flat_map(move |(code, parts)| {
            self.names.iter().zip(parts).flat_map(move |(processor, knots)| {
                CAPS.iter().zip(knots).map(move |(cap, knot)| Measurement {
                    processor,
                    application: code.name,
                    cap: Watts::from_watts(*cap),
                    knot: *knot,
                })
            })
        })
    }

    /// The processors with their curves. There is an error only if noise ate all speed.
    pub fn processors(self) -> Result<Processors, CurveError> {
        let curve = |knots: &[Knot; CAPS.len()]| Curve::new(FLOOR, knots.to_vec());
        let mut applications = Vec::with_capacity(CODES.len());
        for (code, parts) in CODES.iter().zip(&self.knots) {
            let curves = parts.iter().map(curve).collect::<Result<Vec<Curve>, CurveError>>()?;
            applications.push(Application { name: code.name.to_owned(), curves });
        }
        Ok(Processors { names: self.names, floor: FLOOR, applications })
    }
}
