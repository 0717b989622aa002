//! The gearbox: the speeds a processor can run at, what it draws at each, and how much jobs mind.
//!
//! Power at frequency `f` and voltage `V` is `activity·f·V² + leakage·V`; the leakage is such that
//! it makes up a given share of the power in the top gear. A job of sensitivity β takes
//! `β·(f_top/f − 1) + 1` times as long in gear `f` as in the top gear: β = 0 does not notice, β = 1
//! slows down as much as the processor does.

use std::hash::{Hash, Hasher};

use serde::Deserialize;

use crate::units::Watts;

/// One speed of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gear {
    /// Frequency in gigahertz.
    pub ghz: f64,
    /// Voltage in volts.
    pub volts: f64,
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
#[serde(try_from = "Table")]
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
        for Gear { ghz, volts } in gears {
            [ghz, volts].map(|number| number.to_bits()).hash(state);
        }
        for Sensitivity { up_to, mean, variance } in sensitivity {
            (up_to, mean.to_bits(), variance.to_bits()).hash(state);
        }
        (gears.len(), static_share.to_bits(), is_assumed).hash(state);
    }
}

/// The `[dvfs]` table of a machine file, as written. What it leaves out is as in the default.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    gears: Option<Vec<Gear>>,
    static_share: Option<f64>,
    beta: Option<Vec<Sensitivity>>,
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
    /// The sizes of the sensitivities leave a gap or never end.
    #[error("dvfs.beta entry {entry} {why}")]
    Sizes {
        /// Which entry, from 1.
        entry: usize,
        /// What is wrong and what to write.
        why: &'static str,
    },
}

impl TryFrom<Table> for Gearbox {
    type Error = GearboxError;

    fn try_from(table: Table) -> Result<Self, GearboxError> {
        let default = Gearbox::default();
        let is_assumed = table.gears.is_none();
        let gearbox = Gearbox::new(
            table.gears.unwrap_or(default.gears),
            table.static_share.unwrap_or(default.static_share),
            table.beta.unwrap_or(default.sensitivity),
        )?;
        Ok(Gearbox { is_assumed, ..gearbox })
    }
}

/// Six gears from 0.8 to 2.3 GHz with a quarter of the top gear's power static, and larger jobs
/// less sensitive: the set of the PB-guided paper (Etinski and others, 2010).
impl Default for Gearbox {
    fn default() -> Self {
        let gears = [(0.8, 1.0), (1.1, 1.1), (1.4, 1.2), (1.7, 1.3), (2.0, 1.4), (2.3, 1.5)];
        let beta = |up_to, mean, variance| Sensitivity { up_to, mean, variance };
        Gearbox {
            gears: gears.map(|(ghz, volts)| Gear { ghz, volts }).to_vec(),
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

    /// What a processor draws in a gear, as a share of what it draws in the top gear.
    pub fn relative_power(&self, gear: Gear) -> f64 {
        let top = self.top();
        let dynamic = gear.ghz * gear.volts.powi(2) / (top.ghz * top.volts.powi(2));
        (1.0 - self.static_share) * dynamic + self.static_share * gear.volts / top.volts
    }

    /// The gears worth having on nodes that draw so much in the top gear, fastest first, each
    /// with what a node draws in it, rounded up. A slower gear that saves not even a milliwatt
    /// is left out, so a node's draw tells its gear.
    pub fn node_powers(&self, node_power: Watts) -> Vec<(Gear, Watts)> {
        let mut useful = vec![(self.top(), node_power)];
        for &gear in self.gears.iter().rev().skip(1) {
            let milliwatts = node_power.milliwatts() as f64 * self.relative_power(gear);
            let power = Watts::from_milliwatts((milliwatts.ceil() as u64).max(1));
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
        for (name, value) in [("ghz", gear.ghz), ("volts", gear.volts)] {
            let entry = format!("gears entry {number}, '{name}',");
            check_range(entry, value, 0.001..=100.0, "from 0.001 to 100")?;
        }
    }
    for (number, pair) in (2..).zip(gears.windows(2)) {
        let unsorted = |name: &str, before: f64, value: f64, order| GearboxError::Unsorted {
            entry: format!("gears entry {number}, '{name}',"),
            value,
            before,
            order,
        };
        let (slow, fast) = (pair[0], pair[1]);
        if fast.ghz <= slow.ghz {
            return Err(unsorted("ghz", slow.ghz, fast.ghz, "gears from slow to fast"));
        }
        if fast.volts < slow.volts {
            return Err(unsorted(
                "volts",
                slow.volts,
                fast.volts,
                "gears so that a faster one has no less voltage",
            ));
        }
    }
    Ok(())
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
            let derived = (gearbox.relative_power(*gear) * 100.0).round() / 100.0;
            assert_eq!(derived, power, "{ghz} GHz");
        }
        assert_eq!(gearbox.top(), Gear { ghz: 2.3, volts: 1.5 });
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
}
