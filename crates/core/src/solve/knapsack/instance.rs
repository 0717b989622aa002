//! The input: entries with their options, and the shared nodes and power.

use std::ops::Range;

use crate::units::Watts;

/// One option of an entry: what it takes and what it is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offer {
    /// Nodes it takes.
    pub nodes: u32,
    /// Power it takes.
    pub power: Watts,
    /// Its value: zero or more.
    pub value: f64,
}

/// Whether an entry may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// At most one of its options is chosen.
    Optional,
    /// Exactly one of its options is chosen, such as for a job that runs already.
    Required,
}

/// Why entries cannot be used. Entries and options are counted from 0 in the order given.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InstanceError {
    /// A value is negative, not a number, or beyond what sums can hold.
    #[error("entry {entry}, option {option}: the value {value} is not a number from 0 to 1e200")]
    Value {
        /// The place of the entry in the program.
        entry: usize,
        /// The position of the option.
        option: usize,
        /// The given value.
        value: f64,
    },
    /// An option takes more power than can be counted with.
    #[error("entry {entry}, option {option}: {power} is more than the {largest} that is counted with", largest = Watts::LARGEST)]
    Power {
        /// The place of the entry in the program.
        entry: usize,
        /// The position of the option.
        option: usize,
        /// The given value.
        power: Watts,
    },
    /// A required entry has nothing to choose from.
    #[error("entry {entry} is required but has no options; give it at least one")]
    NoOptions {
        /// The place of the entry in the program.
        entry: usize,
    },
    /// There is more to share than can be counted with.
    #[error("there are too many nodes or watts (more than 2^62)")]
    Capacity,
    /// All entries together are beyond what can be counted with.
    #[error("entry {entry}: all entries up to it could take more than can be counted with")]
    TooMuch {
        /// The entry that is too much.
        entry: usize,
    },
}

/// The most that is counted with, in nodes, in milliwatts and in options.
const COUNTABLE: u64 = 1 << 62;

/// A checked program: nodes and power to share, and the entries that want some.
///
/// Options lie in one row, entry after entry, each number in a list of its own, so that going
/// through all of them is fast. Nodes and milliwatts of a single option fit a float exactly.
#[derive(Clone, Debug)]
pub struct Instance {
    nodes: u64,
    power: Watts,
    needs: Vec<Need>,
    /// Where the options of each entry begin, and where the last one's end.
    starts: Vec<u32>,
    pub(super) columns: Columns,
    /// What all entries could take together.
    most: [u64; 2],
}

impl Default for Instance {
    /// No resources and no entries.
    fn default() -> Self {
        let (needs, starts, columns) = (Vec::new(), vec![0], Columns::default());
        Instance { nodes: 0, power: Watts::ZERO, needs, starts, columns, most: [0; 2] }
    }
}

/// Options as columns. The last option of an optional entry is to be left out.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    /// The value, or minus infinity where the option alone is more than there is to share.
    pub(super) value: Vec<f64>,
    /// The nodes that each option takes.
    pub(super) nodes: Vec<f64>,
    /// The milliwatts that each option takes.
    pub(super) power: Vec<f64>,
}

impl Columns {
    pub(super) fn push(&mut self, value: f64, nodes: f64, power: f64) {
        self.value.push(value);
        self.nodes.push(nodes);
        self.power.push(power);
    }

    pub(super) fn clear(&mut self) {
        self.value.clear();
        self.nodes.clear();
        self.power.clear();
    }
}

impl Instance {
    /// So much to share, and no entries yet.
    pub fn new(nodes: u64, power: Watts) -> Result<Self, InstanceError> {
        if nodes > COUNTABLE || power.milliwatts() > COUNTABLE {
            return Err(InstanceError::Capacity);
        }
        Ok(Instance { nodes, power, ..Instance::default() })
    }

    /// Begins anew with so much to share and no entries, in the same memory.
    pub(crate) fn renew(&mut self, nodes: u64, power: Watts) -> Result<(), InstanceError> {
        let Instance { needs, starts, columns, .. } = std::mem::take(self);
        *self = Instance::new(nodes, power)?;
        (self.needs, self.starts, self.columns) = (needs, starts, columns);
        self.needs.clear();
        self.starts.clear();
        self.starts.push(0);
        self.columns.clear();
        Ok(())
    }

    /// Adds an entry. After an error the instance is as before.
    pub fn add(&mut self, need: Need, offers: &[Offer]) -> Result<(), InstanceError> {
        let entry = self.needs.len();
        for (option, offer) in offers.iter().enumerate() {
            if !(0.0..=1e200).contains(&offer.value) {
                return Err(InstanceError::Value { entry, option, value: offer.value });
            }
            if offer.power > Watts::LARGEST {
                return Err(InstanceError::Power { entry, option, power: offer.power });
            }
        }
        if need == Need::Required && offers.is_empty() {
            return Err(InstanceError::NoOptions { entry });
        }
        let nodes = offers.iter().map(|offer| u64::from(offer.nodes)).max().unwrap_or(0);
        let power = offers.iter().map(|offer| offer.power.milliwatts()).max().unwrap_or(0);
        // None of these can overflow: each is at most 2^62 plus something much smaller.
        let most = [self.most[0] + nodes, self.most[1] + power];
        let end = self.columns.value.len() + offers.len() + 1;
        let (Ok(end), true) = (u32::try_from(end), most.iter().all(|sum| *sum <= COUNTABLE)) else {
            return Err(InstanceError::TooMuch { entry });
        };
        for offer in offers {
            let fits = u64::from(offer.nodes) <= self.nodes && offer.power <= self.power;
            let value = if fits { offer.value } else { f64::NEG_INFINITY };
            let power = offer.power.milliwatts() as f64;
            self.columns.push(value, f64::from(offer.nodes), power);
        }
        if need == Need::Optional {
            self.columns.push(0.0, 0.0, 0.0);
        }
        self.starts.push(if need == Need::Optional { end } else { end - 1 });
        self.needs.push(need);
        self.most = most;
        Ok(())
    }

    /// Nodes to share.
    pub fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Power to share.
    pub fn power(&self) -> Watts {
        self.power
    }

    /// How many entries there are.
    pub(crate) fn entries(&self) -> usize {
        self.needs.len()
    }

    /// Whether an entry may be left out.
    pub(crate) fn need(&self, entry: usize) -> Need {
        self.needs[entry]
    }

    /// Where an entry's options are in the columns.
    pub(super) fn row(&self, entry: usize) -> Range<usize> {
        self.starts[entry] as usize..self.starts[entry + 1] as usize
    }

    /// Whether a choice, an option in its row for each entry, takes no more than there is.
    pub(super) fn fits(&self, choice: &[u32]) -> bool {
        let (mut nodes, mut power) = (0, 0);
        for (entry, option) in choice.iter().enumerate() {
            let place = self.starts[entry] as usize + *option as usize;
            nodes += self.columns.nodes[place] as u64;
            power += self.columns.power[place] as u64;
        }
        nodes <= self.nodes && power <= self.power.milliwatts()
    }

    /// How much of both there is, for prices.
    pub(super) fn capacity(&self) -> [f64; 2] {
        [self.nodes as f64, self.power.milliwatts() as f64]
    }
}
