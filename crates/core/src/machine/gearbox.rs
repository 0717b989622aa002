//! The gearbox: the frequency levels of a processor, the power at each, and the sensitivity of jobs.
//!
//! Power at frequency `f` and voltage `V` is `activity·f·V² + leakage·V`; the leakage is such that
//! it makes up a given share of the power in the top gear. A job of sensitivity β takes
//! `β·(f_top/f − 1) + 1` times as long in gear `f` as in the top gear: β = 0 does not notice, β = 1
//! slows down as much as the processor does.
//!
//! What a node draws in a gear may also be measured, and so may how many times as long a job of β = 1 takes in it
//! (`gearbox/file` reads both): then no voltage is needed, nor even a frequency.

use std::hash::{Hash, Hasher};

use serde::Deserialize;

use crate::units::Watts;

mod file;
#[cfg(test)]
mod tests;

/// One speed of a processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gear {
    /// Frequency in gigahertz; where nobody knows it, the speed as a share of that of the top gear.
    pub ghz: f64,
    /// What says how much is drawn.
    pub draw: Draw,
    /// How many times as long a job of β = 1 takes, if that was measured; else it follows from the frequencies.
    pub slowdown: Option<f64>,
}

/// What says how much is drawn in a gear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Draw {
    /// Its voltage, in volts.
    Volts(f64),
    /// What a busy node was measured to draw.
    Node(Watts),
}

impl Gear {
    /// A gear of this frequency, in gigahertz, and voltage, in volts.
    pub const fn new(ghz: f64, volts: f64) -> Self {
        Gear { ghz, draw: Draw::Volts(volts), slowdown: None }
    }
}

/// How sensitive jobs up to a certain size are to frequency: β is normal, held within 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sensitivity {
    /// Jobs of at most this many processors; the last one has no limit.
    pub up_to: Option<u32>,
    /// Mean of β.
    pub mean: f64,
    /// Variance of β before it is held within 0 and 1.
    pub variance: f64,
}

/// Gears, and how jobs respond to them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "file::Table")]
pub struct Gearbox {
    /// Slowest first; never empty.
    gears: Vec<Gear>,
    static_share: f64,
    /// Smallest jobs first; never empty, the last without a limit.
    sensitivity: Vec<Sensitivity>,
    /// Whether nobody said which gears there are.
    is_assumed: bool,
}

/// By the bits of its numbers: gearboxes that are equal hash alike, as none of them can be a zero with a sign.
impl Hash for Gearbox {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Gearbox { gears, static_share, sensitivity, is_assumed } = self;
        for Gear { ghz, draw, slowdown } in gears {
            (ghz.to_bits(), slowdown.map(f64::to_bits)).hash(state);
            match draw {
                Draw::Volts(volts) => volts.to_bits().hash(state),
                Draw::Node(watts) => watts.hash(state),
            }
        }
        for Sensitivity { up_to, mean, variance } in sensitivity {
            (up_to, mean.to_bits(), variance.to_bits()).hash(state);
        }
        (gears.len(), static_share.to_bits(), is_assumed).hash(state);
    }
}

/// Why a gearbox cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GearboxError {
    /// There is nothing in the list.
    #[error("dvfs.{list} is empty; give at least one entry, such as {example}")]
    Empty {
        /// The list, by its name in the file.
        list: &'static str,
        /// What an entry looks like.
        example: &'static str,
    },
    /// A figure is out of its range.
    #[error("dvfs.{entry} is {value}; it must be {range}")]
    OutOfRange {
        /// Which figure of which entry.
        entry: String,
        /// The quantity in question.
        value: f64,
        /// The valid values.
        range: &'static str,
    },
    /// The entries are out of order.
    #[error("dvfs.{entry} is {value}, but the entry before it has {before}; list {order}")]
    Unsorted {
        /// Which figure of which entry.
        entry: String,
        /// The quantity in question.
        value: f64,
        /// The value that it should exceed.
        before: f64,
        /// How to put it right.
        order: &'static str,
    },
    /// An entry does not say what the others say.
    #[error("dvfs.gears entry {entry} {why}")]
    Incomplete {
        /// Which entry, from 1.
        entry: usize,
        /// The mistake, and what to write instead.
        why: &'static str,
    },
    /// The sizes of the sensitivities leave a gap or never end.
    #[error("dvfs.beta entry {entry} {why}")]
    Sizes {
        /// Which entry, from 1.
        entry: usize,
        /// The mistake, and what to write instead.
        why: &'static str,
    },
}

/// Six gears from 0.8 to 2.3 GHz with a quarter of the top gear's power static, and larger jobs
/// less sensitive: the set of the PB-guided paper (Etinski and others, 2010).
impl Default for Gearbox {
    fn default() -> Self {
        let gears = [(0.8, 1.0), (1.1, 1.1), (1.4, 1.2), (1.7, 1.3), (2.0, 1.4), (2.3, 1.5)];
        let beta = |up_to, mean, variance| Sensitivity { up_to, mean, variance };
        Gearbox {
            gears: gears.map(|(ghz, volts)| Gear::new(ghz, volts)).to_vec(),
            static_share: 0.25,
            sensitivity: vec![
                beta(Some(4), 0.5, 0.01),
                beta(Some(32), 0.4, 0.01),
                beta(None, 0.3, 0.0064),
            ],
            is_assumed: true,
        }
    }
}

impl Gearbox {
    /// A gearbox of these gears, slowest first, with this share of the top gear's power static.
    pub fn new(
        gears: Vec<Gear>,
        static_share: f64,
        sensitivity: Vec<Sensitivity>,
    ) -> Result<Self, GearboxError> {
        check_gears(&gears)?;
        check_range("static_share".to_owned(), static_share, 0.0..=1.0, "from 0 to 1")?;
        check_sensitivity(&sensitivity)?;
        Ok(Gearbox { gears, static_share, sensitivity, is_assumed: false })
    }

    /// Whether the gears are those that are assumed by default.
    pub fn is_assumed(&self) -> bool {
        self.is_assumed
    }

    /// The gears, slowest first.
    pub fn gears(&self) -> &[Gear] {
        &self.gears
    }

    /// The fastest gear: the nominal speed.
    pub(crate) fn top(&self) -> Gear {
        self.gears[self.gears.len() - 1]
    }

    /// What a node draws in the top gear, if that was measured.
    pub(crate) fn top_draw(&self) -> Option<Watts> {
        match self.top().draw {
            Draw::Node(watts) => Some(watts),
            Draw::Volts(_) => None,
        }
    }

    /// How many times as long a job of β = 1 takes in a gear as in the top gear.
    pub fn slowdown(&self, gear: Gear) -> f64 {
        gear.slowdown.unwrap_or(self.top().ghz / gear.ghz)
    }

    /// What the part of a node that gears change draws in a gear, as a share of what it draws in the top gear,
    /// which is this. What was measured is a whole node: what the part does not draw is drawn in every gear.
    pub(crate) fn relative_power(&self, gear: Gear, part: Watts) -> f64 {
        let top = self.top();
        match (gear.draw, top.draw) {
            (Draw::Volts(volts), Draw::Volts(top_volts)) => {
                let dynamic = gear.ghz * volts.powi(2) / (top.ghz * top_volts.powi(2));
                (1.0 - self.static_share) * dynamic + self.static_share * volts / top_volts
            }
            _ => self.measured(gear, part).map_or(1.0, |drawn| drawn.as_f64() / part.as_f64()),
        }
    }

    /// What such a part was measured to draw in a gear, if it was.
    fn measured(&self, gear: Gear, part: Watts) -> Option<Watts> {
        let (Draw::Node(drawn), Some(top)) = (gear.draw, self.top_draw()) else { return None };
        let always = top.saturating_sub(part);
        Some(drawn.saturating_sub(always).max(Watts::from_milliwatts(1)))
    }

    /// The gears worth having on nodes that draw so much in the top gear, fastest first, each
    /// with what a node draws in it, rounded up. A slower gear that saves not even a milliwatt
    /// is left out, so a node's draw tells its gear.
    pub fn node_powers(&self, node_power: Watts) -> Vec<(Gear, Watts)> {
        let mut useful = vec![(self.top(), node_power)];
        for &gear in self.gears.iter().rev().skip(1) {
            let power = self.measured(gear, node_power).unwrap_or_else(|| {
                let share = self.relative_power(gear, node_power);
                let milliwatts = node_power.milliwatts() as f64 * share;
                Watts::from_milliwatts((milliwatts.ceil() as u64).max(1))
            });
            if useful.last().is_some_and(|faster| power < faster.1) {
                useful.push((gear, power));
            }
        }
        useful
    }

    /// How sensitive a job of this many processors is.
    pub(crate) fn sensitivity_of(&self, processors: u32) -> Sensitivity {
        let covers = |entry: &&Sensitivity| entry.up_to.is_none_or(|most| processors <= most);
        let last = self.sensitivity[self.sensitivity.len() - 1];
        self.sensitivity.iter().find(covers).copied().unwrap_or(last)
    }
}

fn check_gears(gears: &[Gear]) -> Result<(), GearboxError> {
    if gears.is_empty() {
        return Err(GearboxError::Empty { list: "gears", example: "{ ghz = 2.3, volts = 1.5 }" });
    }
    for (number, gear) in (1..).zip(gears) {
        let volts = match gear.draw {
            Draw::Volts(volts) => volts,
            Draw::Node(watts) => watts.as_f64().clamp(0.0, 1.0),
        };
        let drawn = if let Draw::Volts(_) = gear.draw { "volts" } else { "watts" };
        for (name, value) in [("ghz", gear.ghz), (drawn, volts)] {
            let entry = format!("gears entry {number}, '{name}',");
            check_range(entry, value, 0.001..=100.0, "from 0.001 to 100")?;
        }
        if let Some(slowdown) = gear.slowdown {
            let entry = format!("gears entry {number}, 'slowdown',");
            check_range(entry, slowdown, 1.0..=1000.0, "from 1 to 1000")?;
        }
    }
    for (number, pair) in (2..).zip(gears.windows(2)) {
        check_order(number, pair[0], pair[1])?;
    }
    Ok(())
}

/// What is faster draws no less; how much longer jobs take follows from the frequencies or falls with them.
fn check_order(number: usize, slow: Gear, fast: Gear) -> Result<(), GearboxError> {
    let unsorted = |name: &str, before: f64, value: f64, order| {
        Err(GearboxError::Unsorted {
            entry: format!("gears entry {number}, '{name}',"),
            value,
            before,
            order,
        })
    };
    if fast.ghz <= slow.ghz {
        return unsorted("ghz", slow.ghz, fast.ghz, "gears from slow to fast");
    }
    if let (Some(slower), Some(faster)) = (slow.slowdown, fast.slowdown)
        && faster > slower
    {
        return unsorted("slowdown", slower, faster, "gears from slow to fast");
    }
    match (slow.draw, fast.draw) {
        (Draw::Volts(less), Draw::Volts(more)) if more < less => {
            let order = "gears so that a faster one has no less voltage";
            unsorted("volts", less, more, order)
        }
        (Draw::Node(less), Draw::Node(more)) if more < less => {
            let order = "gears so that a faster one draws no less";
            unsorted("watts", less.as_f64(), more.as_f64(), order)
        }
        (Draw::Volts(_), Draw::Node(_)) | (Draw::Node(_), Draw::Volts(_)) => {
            let why = "has volts where others have watts; give all gears the one or the other";
            Err(GearboxError::Incomplete { entry: number, why })
        }
        _ => Ok(()),
    }
}

fn check_sensitivity(sensitivity: &[Sensitivity]) -> Result<(), GearboxError> {
    if sensitivity.is_empty() {
        return Err(GearboxError::Empty {
            list: "beta",
            example: "{ mean = 0.4, variance = 0.01 }",
        });
    }
    let mut before = 0;
    for (number, entry) in (1..).zip(sensitivity) {
        let name = |figure: &str| format!("beta entry {number}, '{figure}',");
        check_range(name("mean"), entry.mean, 0.0..=1.0, "from 0 to 1")?;
        check_range(name("variance"), entry.variance, 0.0..=1.0, "from 0 to 1")?;
        let wrong = |why| Err(GearboxError::Sizes { entry: number, why });
        match entry.up_to {
            Some(_) if number == sensitivity.len() => {
                return wrong(
                    "is the last one: leave out its 'up_to', so that it covers all larger jobs",
                );
            }
            Some(up_to) if up_to <= before => {
                return wrong(
                    "has an 'up_to' that is not above the one before; list small jobs first",
                );
            }
            None if number < sensitivity.len() => {
                return wrong("has no 'up_to', so those after it are never used; give it one");
            }
            up_to => before = up_to.unwrap_or(before),
        }
    }
    Ok(())
}

fn check_range(
    entry: String,
    value: f64,
    valid: std::ops::RangeInclusive<f64>,
    range: &'static str,
) -> Result<(), GearboxError> {
    if valid.contains(&value) {
        return Ok(());
    }
    Err(GearboxError::OutOfRange { entry, value, range })
}
