//! The gearbox: the speeds a processor can run at, what it draws at each, and how much jobs mind.
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
    /// Jobs of at most so many processors; the last one has no limit.
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
        /// What it is.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
    /// The entries are out of order.
    #[error("dvfs.{entry} is {value}, but the entry before it has {before}; list {order}")]
    Unsorted {
        /// Which figure of which entry.
        entry: String,
        /// What it is.
        value: f64,
        /// What it should be above.
        before: f64,
        /// How to put it right.
        order: &'static str,
    },
    /// An entry does not say what the others say.
    #[error("dvfs.gears entry {entry} {why}")]
    Incomplete {
        /// Which entry, from 1.
        entry: usize,
        /// What is wrong and what to write.
        why: &'static str,
    },
    /// The sizes of the sensitivities leave a gap or never end.
    #[error("dvfs.beta entry {entry} {why}")]
    Sizes {
        /// Which entry, from 1.
        entry: usize,
        /// What is wrong and what to write.
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

    /// Whether the gears are those that are assumed where nobody says.
    pub fn is_assumed(&self) -> bool {
        self.is_assumed
    }

    /// The gears, slowest first.
    pub fn gears(&self) -> &[Gear] {
        &self.gears
    }

    /// The fastest gear: the nominal speed.
    pub fn top(&self) -> Gear {
        self.gears[self.gears.len() - 1]
    }

    /// What a node draws in the top gear, if that was measured.
    pub fn top_draw(&self) -> Option<Watts> {
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
    pub fn relative_power(&self, gear: Gear, part: Watts) -> f64 {
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

    /// How sensitive a job of so many processors is.
    pub fn sensitivity_of(&self, processors: u32) -> Sensitivity {
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
                    "is the last one: leave out its 'up_to', so that no job is forgotten",
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The published row, to its two digits; it follows from the formulas.
    #[test]
    fn the_default_draws_what_was_published() {
        let gearbox = Gearbox::default();
        let published =
            [(0.8, 0.28), (1.1, 0.38), (1.4, 0.49), (1.7, 0.63), (2.0, 0.80), (2.3, 1.00)];
        assert_eq!(gearbox.gears().len(), published.len());
        for (gear, (ghz, power)) in gearbox.gears().iter().zip(published) {
            assert_eq!(gear.ghz, ghz);
            let derived =
                (gearbox.relative_power(*gear, Watts::from_watts(1)) * 100.0).round() / 100.0;
            assert_eq!(derived, power, "{ghz} GHz");
        }
        assert_eq!(gearbox.top(), Gear::new(2.3, 1.5));
    }

    /// 0.75·(0.8·1)/(2.3·2.25) + 0.25·1/1.5 = 0.282 608…: 28.261 W of 100 W, rounded up.
    #[test]
    fn nodes_draw_their_share_rounded_up() {
        let powers = Gearbox::default().node_powers(Watts::from_watts(100));
        assert_eq!(powers.len(), 6);
        assert_eq!(powers[0].1, Watts::from_watts(100));
        assert_eq!(powers[5].1, Watts::from_milliwatts(28_261));
        // Of a 2 mW node, 1 mW is all a slower gear can save.
        let tiny = Gearbox::default().node_powers(Watts::from_milliwatts(2));
        assert_eq!(tiny.iter().map(|gear| gear.1.milliwatts()).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn larger_jobs_are_less_sensitive() {
        let mean = |processors| Gearbox::default().sensitivity_of(processors).mean;
        assert_eq!([1, 4, 5, 32, 33, 4000].map(mean), [0.5, 0.5, 0.4, 0.4, 0.3, 0.3]);
    }

    #[test]
    fn mistakes_name_the_entry() {
        let read = |text: &str| toml::from_str::<Gearbox>(text).map_err(|e| e.to_string());
        let error = |text: &str| read(text).unwrap_err();
        let gears = |list: &str| error(&format!("gears = [{list}]"));
        assert!(gears("").contains("dvfs.gears is empty; give at least one entry"));
        assert!(
            gears("{ ghz = 2, volts = 1 }, { ghz = 1, volts = 1 }")
                .contains("dvfs.gears entry 2, 'ghz', is 1, but the entry before it has 2")
        );
        assert!(
            gears("{ ghz = 1, volts = 1.2 }, { ghz = 2, volts = 1 }")
                .contains("dvfs.gears entry 2, 'volts', is 1")
        );
        for wrong in ["0", "-1.5", "nan", "inf", "2300.0"] {
            let text =
                gears(&format!("{{ ghz = 1.0, volts = 1.0 }}, {{ ghz = {wrong}, volts = 1.0 }}"));
            assert!(
                text.contains("gears entry 2, 'ghz'") && text.contains("from 0.001 to 100"),
                "{text}"
            );
        }
        assert!(
            error("static_share = 1.5").contains("dvfs.static_share is 1.5; it must be from 0")
        );
        let beta = |list: &str| error(&format!("beta = [{list}]"));
        assert!(beta("").contains("dvfs.beta is empty"));
        assert!(
            beta("{ mean = 1.2, variance = 0.0 }")
                .contains("dvfs.beta entry 1, 'mean', is 1.2; it must be from 0 to 1")
        );
        assert!(beta("{ mean = 0.2, variance = -1 }").contains("'variance'"));
        let entry = |up_to: &str| format!("{{ {up_to} mean = 0.5, variance = 0.01 }}");
        assert!(beta(&entry("up_to = 4,")).contains("entry 1 is the last one"));
        assert!(beta(&format!("{0},{0}", entry(""))).contains("entry 1 has no 'up_to'"));
        let small = entry("up_to = 4,");
        assert!(beta(&format!("{small},{small},{}", entry(""))).contains("entry 2 has an 'up_to'"));
        assert!(error("gear = []").contains("unknown field `gear`"));
        assert_eq!(read("").unwrap(), Gearbox::default());
    }

    /// A node of 300 W that draws 100 W whatever it does: its other 200 W are 180, 110 and 200.
    #[test]
    fn what_was_measured_is_the_whole_node() {
        let read = |text: &str| toml::from_str::<Gearbox>(text).map_err(|e| e.to_string());
        let gearbox = read(
            "gears = [{ ghz = 1.0, watts = '210W', slowdown = 1.8 }, \
             { ghz = 1.5, watts = '280W' }, { ghz = 2.0, watts = '300W' }]",
        )
        .unwrap();
        let part = Watts::from_watts(200);
        let drawn: Vec<u64> =
            gearbox.node_powers(part).iter().map(|(_, power)| power.milliwatts() / 1000).collect();
        assert_eq!(drawn, [200, 180, 110]);
        assert_eq!(gearbox.relative_power(gearbox.gears()[0], part), 0.55);
        let slowdowns: Vec<f64> =
            gearbox.gears().iter().map(|gear| gearbox.slowdown(*gear)).collect();
        assert_eq!(slowdowns, [1.8, 2.0 / 1.5, 1.0]);
        // Without frequencies speeds are shares of the fastest.
        let shares = read("gears = [{ watts = '210W', slowdown = 2.0 }, { watts = '300W' }]");
        let shares = shares.unwrap();
        assert_eq!((shares.gears()[0].ghz, shares.slowdown(shares.gears()[0])), (0.5, 2.0));
        let error = |gears: &str| read(&format!("gears = [{gears}]")).unwrap_err();
        assert!(error("{ ghz = 1.0 }").contains("gears entry 1 has neither 'volts' nor 'watts'"));
        assert!(error("{ watts = '9W' }, { watts = '10W' }").contains("entry 1 has neither 'ghz'"));
        assert!(
            error("{ ghz = 1.0, watts = '9W' }, { watts = '10W' }")
                .contains("entry 2 has no 'ghz'")
        );
        assert!(
            error("{ ghz = 1.0, watts = '9W' }, { ghz = 2.0, volts = 1.0 }")
                .contains("entry 2 has no 'watts'")
        );
        assert!(
            error("{ ghz = 1.0, watts = '9W' }, { ghz = 2.0, watts = '8W' }")
                .contains("entry 2, 'watts', is 8, but the entry before it has 9")
        );
        assert!(
            error("{ watts = '9W', slowdown = 0.5 }, { watts = '10W' }").contains("from 1 to 1000")
        );
        assert!(
            error("{ watts = '9W', slowdown = 3.0 }, { watts = '10W', slowdown = 2.0 }")
                .contains("entry 2 is the fastest")
        );
    }
}
