//! The machine: how many nodes there are and what they draw.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::rows::TableError;
use crate::units::{Share, Watts};
use crate::variation::catalyst::{self, Catalyst};
use crate::variation::csv::Table;
use crate::variation::{Curve, Processors};

mod check;
mod cooling;
mod feeds;
mod file;
mod gearbox;
mod kinds;
mod node;
mod off;
mod partitioned;
mod parts;
mod written;

pub use check::{Problem, check, check_text};
pub use cooling::Cooling;
pub use feeds::{Feed, Feeds};
pub(crate) use feeds::{Placing, Takes, Zone, numbered};
#[doc(hidden)]
pub use file::memory;
pub use gearbox::{Draw, Gear, Gearbox, GearboxError, Sensitivity};
pub use kinds::{Kind, Kinds, NodeGroup, NodeSize, PartitionNodes};
pub(crate) use node::assumed_idle;
pub use node::{Details, Node};
pub use off::{Off, Transition};
pub use partitioned::{Described, Overlapping, Partition, Partitioned};
pub(crate) use parts::CLASSES;
pub use parts::Parts;

/// A machine. Its nodes are alike, or its [kinds](Machine::kinds) say which there are.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Machine {
    /// Its name in reports.
    pub name: String,
    /// How many nodes it has; at least one.
    pub nodes: u32,
    /// Processors in a node: a log that counts processors is packed onto whole nodes.
    pub processors_per_node: u32,
    /// Sockets in a node, each with a power cap of its own.
    pub sockets_per_node: u32,
    /// What a node draws while it runs a job in the top gear, on top of the base power.
    pub node_power: Watts,
    /// The constant power of the machine besides its nodes, with or without jobs.
    pub base_power: Watts,
    /// What else is said of its nodes.
    pub details: Details,
    /// Whether the power figures were given, or are [`Machine::ASSUMED_NODE_POWER`].
    pub power_is_assumed: bool,
    /// The speeds of its nodes, and how jobs respond to them.
    pub gearbox: Gearbox,
    /// The curves of its nodes, where they are not alike: each node is one processor.
    pub variation: Option<Arc<Processors>>,
    /// What its site draws for it and its cooling, where that is said.
    pub cooling: Option<Cooling>,
    /// The feeds of its nodes, where these have limits.
    pub feeds: Option<Arc<Feeds>>,
    /// Its nodes, where they are of several kinds or shared by jobs: then everything else counts processors instead of nodes.
    pub kinds: Option<Arc<Kinds>>,
    /// What people should know of the files it was read from.
    pub remarks: Vec<String>,
}

/// Why a machine could not be used.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The text is neither a count nor a file.
    #[error(
        "machine '{0}': write a number of processors (1024), cab (64 nodes of two sockets), catalyst (600 \
        processors with manufacturing variation), or the path of a .toml machine file or of a .csv file \
         of curves"
    )]
    Unknown(String),
    /// A machine without nodes.
    #[error("a machine needs at least one node")]
    NoNodes,
    /// Nodes without processors.
    #[error("'processors_per_node' is 0; a node needs at least one processor")]
    NoProcessors,
    /// Nodes without sockets.
    #[error("'sockets_per_node' is 0; a node needs at least one socket")]
    NoSockets,
    /// Some figure is beyond what can be counted.
    #[error("{what} of the machine is too large: {value}; at most {most}")]
    TooLarge {
        /// The figure, by its name.
        what: &'static str,
        /// The quantity in question.
        value: String,
        /// The valid values.
        most: String,
    },
    /// A node that draws nothing cannot be budgeted.
    #[error("'power.node' is 0W: the power of a node must be above zero; give its real draw")]
    NoPower,
    /// An idle node that draws as much as a busy one.
    #[error(
        "'power.{what}' is {part}, but a busy node draws {whole} ('power.node') in all; it has to be less"
    )]
    TooMuch {
        /// The part of a node, by its name in the file.
        what: &'static str,
        /// The quantity in question.
        part: Watts,
        /// The power of a busy node.
        whole: Watts,
    },
    /// Two say what a busy node draws, and differ.
    #[error(
        "'dvfs.gears': a node draws {drawn} in the fastest one, but 'power.node', with the GPUs, is {node_power}; \
        they must be equal"
    )]
    OtherDraw {
        /// What it draws in the fastest gear.
        drawn: Watts,
        /// The power of a busy node.
        node_power: Watts,
    },
    /// An idle node draws more than a busy one under the lowest cap.
    #[error(
        "'power.idle' is {idle}, but a busy node under the lowest cap draws {busy} ('power.rest', and the first \
         of 'caps.levels' or its default); an idle node cannot draw more"
    )]
    IdleAboveBusy {
        /// The power of an idle node.
        idle: Watts,
        /// The power of a busy node.
        busy: Watts,
    },
    /// A node that is off draws more than an idle one.
    #[error(
        "'off.power' is {off}, but an idle node draws {idle} ('power.idle', or its default); a node that is off \
        cannot draw more"
    )]
    OffAboveIdle {
        /// The power of a node that is off.
        off: Watts,
        /// The power of an idle node.
        idle: Watts,
    },
    /// Caps that cannot be set.
    #[error(
        "'caps.levels': {wrong}; write caps from the lowest to the highest, each above 0W; the highest of them is \
         {highest} ('power.node' less 'power.rest'), which has no effect"
    )]
    NoLevels {
        /// Which of them, and what is wrong with it.
        wrong: String,
        /// The highest cap.
        highest: Watts,
    },
    /// Curves of other processors than the machine has.
    #[error(
        "'nodes' is {nodes}, but 'variation' has curves of {processors} processors; each node is one \
         processor"
    )]
    OtherCount {
        /// Nodes, as written.
        nodes: u32,
        /// Processors with curves.
        processors: usize,
    },
    /// Nodes of several processors that are not alike.
    #[error(
        "'variation' is of processors, and each node is one: 'processors_per_node' and \
         'sockets_per_node' are 1 then; leave them out"
    )]
    NodesOfSeveral,
    /// More of processors that are not alike.
    #[error(
        "a machine with measured curves for each processor cannot have another number of processors, because \
        their curves are unknown"
    )]
    Measured,
    /// More or fewer nodes behind feeds.
    #[error(
        "a machine with feeds cannot have another number of nodes, because it is unknown which feeds they would have; \
        change 'nodes' and [[feed]] in the machine file"
    )]
    Fed,
    /// A part of the nodes behind feeds.
    #[error(
        "the machine {machine} has feeds, and its other partitions draw through them, too; leave --partition out, or leave \
         [[feed]] out of the machine file"
    )]
    FeedsOfAll {
        /// The machine.
        machine: String,
    },
    /// Nodes of several kinds where one is needed.
    #[error(
        "the machine {machine} has nodes of several kinds, or nodes that jobs share ('shared'), and only whole nodes of one kind \
        work here; leave 'shared' out where jobs get whole nodes, name one partition (--partition) if there is that option, or \
        write a machine file for one kind"
    )]
    SeveralKinds {
        /// The machine.
        machine: String,
    },
    /// More or fewer nodes of several kinds.
    #[error(
        "a machine with nodes of several kinds, or with shared ones, cannot have another number of nodes, because it is unknown \
        of which kind they would be; change the partitions in the machine file, or name one partition (--partition)"
    )]
    OfKinds,
    /// A partition that the machine does not have.
    #[error("the machine {machine} has no partition '{wanted}'{hint} there are {names}")]
    NoPartition {
        /// The machine.
        machine: String,
        /// The requested value.
        wanted: String,
        /// What may have been meant, in words.
        hint: String,
        /// All partitions.
        names: String,
    },
    /// The curves cannot be read.
    #[error(transparent)]
    Curves(#[from] TableError),
    /// The file cannot be read.
    #[error("cannot read the machine file {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason that the system or the library gives.
        source: std::io::Error,
    },
    /// The file is not what it should be.
    #[error("{}: {why}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The place of the mistake, and the reason.
        why: String,
    },
}

impl Machine {
    /// What a busy node is taken to draw by default.
    pub const ASSUMED_NODE_POWER: Watts = Watts::from_watts(100);

    /// The largest machine, ten times any that was ever built.
    pub const MOST_NODES: u32 = 100_000_000;

    /// A machine known only by its number of processors: each is a node of its own and draws
    /// [`Machine::ASSUMED_NODE_POWER`].
    pub fn of_processors(processors: u32) -> Result<Self, MachineError> {
        Machine {
            name: format!("{processors} processors"),
            nodes: processors,
            processors_per_node: 1,
            sockets_per_node: 1,
            node_power: Machine::ASSUMED_NODE_POWER,
            base_power: Watts::ZERO,
            details: Details::default(),
            power_is_assumed: true,
            gearbox: Gearbox::default(),
            variation: None,
            cooling: None,
            feeds: None,
            kinds: None,
            remarks: Vec::new(),
        }
        .validated()
    }

    /// A machine like LLNL's Cab, as far as the RMAP paper used it: 64 nodes of two sockets with
    /// eight cores and at most 115 W each.
    pub fn cab() -> Self {
        Machine {
            name: "cab".to_owned(),
            nodes: 64,
            processors_per_node: 16,
            sockets_per_node: 2,
            node_power: Watts::from_watts(230),
            base_power: Watts::ZERO,
            details: Details::default(),
            power_is_assumed: false,
            gearbox: Gearbox::default(),
            variation: None,
            cooling: None,
            feeds: None,
            kinds: None,
            remarks: Vec::new(),
        }
    }

    /// A machine of processors like those of LLNL's Catalyst: synthetic, no two alike.
    pub fn catalyst(processors: u32, seed: u64) -> Result<Self, MachineError> {
        if processors > catalyst::MOST_PROCESSORS {
            return Err(MachineError::TooLarge {
                what: "the number of synthetic processors",
                value: processors.to_string(),
                most: catalyst::MOST_PROCESSORS.to_string(),
            });
        }
        let machine = Machine::of_processors(processors)?;
        let variation = Some(Arc::new(Catalyst::processors_of(processors, seed)));
        let name = format!("{processors} synthetic processors like Catalyst's");
        let (node_power, power_is_assumed) = (catalyst::RATED, false);
        Machine { name, node_power, power_is_assumed, variation, ..machine }.validated()
    }

    /// A machine of processors that were measured. What they are rated at is not known: the most that
    /// any of them draws is taken for it.
    pub fn of_varied(processors: Processors, name: &str) -> Result<Self, MachineError> {
        let count = u32::try_from(processors.names().len()).unwrap_or(u32::MAX);
        let machine = Machine::of_processors(count)?;
        Machine {
            name: name.to_owned(),
            node_power: most_drawn(&processors),
            power_is_assumed: false,
            variation: Some(Arc::new(processors)),
            ..machine
        }
        .validated()
    }

    /// Reads what the command line calls a machine: a processor count, `cab`, `catalyst`, a TOML file,
    /// or a CSV file of curves. Its nodes are of one kind.
    pub fn from_text(text: &str) -> Result<Self, MachineError> {
        Machine::part_of(text, &[])?.of_one_kind()
    }

    /// The machine, if its nodes are alike and whole: not everybody knows others.
    pub fn of_one_kind(self) -> Result<Self, MachineError> {
        match self.kinds {
            Some(_) => Err(MachineError::SeveralKinds { machine: self.name }),
            None => Ok(self),
        }
    }

    /// How many nodes it has, of whatever kinds.
    pub fn node_count(&self) -> u32 {
        self.kinds.as_ref().map_or(self.nodes, |kinds| kinds.nodes())
    }

    /// The same for a machine in partitions, of which these are wanted; all if none is named.
    pub fn part_of(text: &str, partitions: &[String]) -> Result<Self, MachineError> {
        Machine::described(text)?.choose(partitions)
    }

    /// The same with all partitions.
    pub fn described(text: &str) -> Result<Described, MachineError> {
        if text.ends_with(".toml") || is_other_file(text) {
            return Machine::from_file(Path::new(text));
        }
        Machine::in_one_piece(text).map(|machine| Described::One(Box::new(machine)))
    }

    fn in_one_piece(text: &str) -> Result<Self, MachineError> {
        match text {
            "cab" => return Ok(Machine::cab()),
            "catalyst" => return Machine::catalyst(catalyst::PROCESSORS, 1),
            _ => (),
        }
        if let Ok(processors) = text.parse() {
            return Machine::of_processors(processors);
        }
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(MachineError::TooLarge {
                what: "the number of nodes",
                value: text.to_owned(),
                most: Machine::MOST_NODES.to_string(),
            });
        }
        let path = Path::new(text);
        if text.ends_with(".csv") {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let table = Table::read(path)?;
            let remarks = table.remarks(path);
            return Ok(Machine { remarks, ..Machine::of_varied(table.processors, &stem)? });
        }
        Err(MachineError::Unknown(text.to_owned()))
    }

    /// How many processors it has in all.
    pub fn processors(&self) -> u32 {
        self.nodes.saturating_mul(self.processors_per_node)
    }

    /// The power without jobs.
    pub fn floor(&self) -> Watts {
        self.base_power
            + match &self.kinds {
                Some(kinds) => kinds.floor(),
                None => self.node().idle * self.nodes,
            }
    }

    /// What a node adds to that when it is busy.
    pub fn added_power(&self) -> Watts {
        self.node_power.saturating_sub(self.node().idle)
    }

    /// What its nodes draw.
    pub fn node(&self) -> Node {
        self.details.node(self.node_power)
    }

    /// What its nodes draw that are off, and what it takes to stop and start them.
    pub fn off(&self) -> Off {
        self.details.off.unwrap_or_else(|| Off::assumed(self.node_power, self.node().idle))
    }

    /// The same machine with what nobody says about its nodes assumed, as jobs in a world need it.
    pub fn filled_in(&self, seed: u64) -> Self {
        let details = match &self.variation {
            None => self.details.filled_in(self.node_power, &self.gearbox, seed),
            Some(processors) => {
                // What was measured is the whole node, from a cap on that each of them can be held at.
                let curves = processors.applications().iter().flat_map(|each| &each.curves);
                let least = curves.map(Curve::least).fold(processors.floor(), Watts::max);
                self.details.measured(self.node_power, least)
            }
        };
        Machine { details, ..self.clone() }
    }

    /// The draw of the whole machine with every node busy.
    pub fn max_power(&self) -> Watts {
        self.base_power
            + match &self.kinds {
                Some(kinds) => kinds.max_power(),
                None => self.node_power * self.nodes,
            }
    }

    /// The most that is drawn where the budget is measured: by the site, if the budget is its, or by the machine.
    pub(crate) fn most_at_meter(&self) -> Watts {
        let (most, cooling) = (self.max_power(), self.cooling_in_budget());
        cooling.map_or(most, |cooling| cooling.of_site(most, most, None))
    }

    /// What the machine may draw under a limit at the meter of the budget.
    pub(crate) fn within(&self, limit: Watts) -> Watts {
        let cooling = self.cooling_in_budget();
        cooling.map_or(limit, |cooling| cooling.of_machine(limit, self.max_power()))
    }

    fn cooling_in_budget(&self) -> Option<&Cooling> {
        self.cooling.as_ref().filter(|cooling| cooling.in_budget)
    }

    /// The same machine with so much more of the same nodes, rounded up.
    pub fn enlarged(&self, by: Share) -> Result<Self, MachineError> {
        if self.variation.is_some() {
            return Err(MachineError::Measured);
        }
        self.check_other_count(None)?;
        let nodes = u64::from(self.nodes) + by.of_count(self.nodes);
        let nodes = u32::try_from(nodes).ok().filter(|nodes| *nodes <= Machine::MOST_NODES);
        let nodes = nodes.ok_or_else(|| MachineError::TooLarge {
            what: "the number of nodes",
            value: format!("{} and {by} more", self.nodes),
            most: Machine::MOST_NODES.to_string(),
        })?;
        Machine { name: format!("{} +{by}", self.name), nodes, ..self.clone() }.validated()
    }

    /// The same machine with this number of the same nodes.
    pub fn with_nodes(&self, nodes: u32) -> Result<Self, MachineError> {
        if self.variation.is_some() && nodes != self.nodes {
            return Err(MachineError::Measured);
        }
        self.check_other_count(Some(nodes))?;
        Machine { name: format!("{} with {nodes} nodes", self.name), nodes, ..self.clone() }
            .validated()
    }

    /// Feeds name their nodes, so there can be no others.
    fn check_other_count(&self, nodes: Option<u32>) -> Result<(), MachineError> {
        match (&self.kinds, &self.feeds) {
            _ if nodes == Some(self.nodes) => Ok(()),
            (Some(_), _) => Err(MachineError::OfKinds),
            (_, Some(_)) => Err(MachineError::Fed),
            (None, None) => Ok(()),
        }
    }

    /// Checks what the rest of the program relies on: there are nodes, they draw something, and
    /// the whole machine's power can be counted.
    pub(crate) fn validated(self) -> Result<Self, MachineError> {
        if self.nodes == 0 {
            return Err(MachineError::NoNodes);
        }
        if self.processors_per_node == 0 {
            return Err(MachineError::NoProcessors);
        }
        if self.sockets_per_node == 0 {
            return Err(MachineError::NoSockets);
        }
        if self.nodes > Machine::MOST_NODES {
            return Err(MachineError::TooLarge {
                what: "the number of nodes",
                value: self.nodes.to_string(),
                most: Machine::MOST_NODES.to_string(),
            });
        }
        if self.node_power == Watts::ZERO {
            return Err(MachineError::NoPower);
        }
        self.check_details()?;
        let total = self
            .node_power
            .checked_mul(self.nodes)
            .map(|nodes| nodes.saturating_add(self.base_power))
            .filter(|total| *total <= Watts::LARGEST);
        if total.is_none() {
            return Err(MachineError::TooLarge {
                what: "the power",
                value: format!("{} nodes of {}", self.nodes, self.node_power),
                most: Watts::LARGEST.to_string(),
            });
        }
        Ok(self)
    }
}

impl Machine {
    /// What is said of the nodes must add up.
    fn check_details(&self) -> Result<(), MachineError> {
        let (whole, Details { idle, rest, levels, .. }) = (self.node_power, &self.details);
        for (what, part) in [("idle", idle), ("rest", rest)] {
            if let Some(part) = part.filter(|part| *part >= whole) {
                return Err(MachineError::TooMuch { what, part, whole });
            }
        }
        let filled = self.filled_in(0);
        let node = filled.node();
        if let Some(levels) = levels {
            let falls = levels.windows(2).find(|pair| pair[0] >= pair[1]);
            let highest = node.highest;
            let wrong = match (falls, levels.first(), levels.last()) {
                (Some(pair), ..) => Some(format!("{} comes after {}", pair[1], pair[0])),
                (_, None, _) => Some("there is none".to_owned()),
                (_, Some(first), _) if *first == Watts::ZERO => {
                    Some(format!("the first is {first}"))
                }
                (.., Some(last)) if *last != highest => Some(format!("the last is {last}")),
                _ => None,
            };
            if let Some(wrong) = wrong {
                return Err(MachineError::NoLevels { wrong, highest });
            }
        }
        if let Some(off) = &self.details.off
            && off.power > node.idle
        {
            return Err(MachineError::OffAboveIdle { off: off.power, idle: node.idle });
        }
        let lowest = filled.details.levels.and_then(|levels| levels.first().copied());
        let busy = node.rest + lowest.unwrap_or_default();
        match node.idle > busy {
            true => Err(MachineError::IdleAboveBusy { idle: node.idle, busy }),
            false => Ok(()),
        }
    }
}

/// Whether a name is that of a file, and of nothing that machines are known by otherwise.
fn is_other_file(text: &str) -> bool {
    let is_known = matches!(text, "cab" | "catalyst") || text.bytes().all(|b| b.is_ascii_digit());
    let path = Path::new(text);
    !is_known && !text.ends_with(".csv") && path.exists() && !path.is_dir()
}

/// The most that any processor draws, whatever it runs.
fn most_drawn(processors: &Processors) -> Watts {
    let curves = processors.applications().iter().flat_map(|application| &application.curves);
    curves.map(Curve::most).fold(Watts::ZERO, Watts::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Machine, String> {
        let described = Machine::from_toml(text, "cab", Path::new(""));
        let described = described.map_err(|error| error.to_string())?;
        described.choose(&[]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_names_nodes_and_power() {
        let machine =
            read("nodes = 64\nprocessors_per_node = 16\n[power]\nnode = '230W'\nbase = '1.5kW'\n")
                .unwrap();
        assert_eq!(machine.name, "cab");
        assert_eq!(machine.max_power(), Watts::from_watts(64 * 230 + 1500));
        assert!(!machine.power_is_assumed);
        assert!(machine.gearbox.is_assumed());
        assert!(read("nodes = 2").unwrap().power_is_assumed);
        assert!(read("nodes = 2\n[dvfs]\nstatic_share = 0.1").unwrap().gearbox.is_assumed());
        let geared = read("nodes = 2\n[dvfs]\ngears = [{ ghz = 2.0, volts = 1.0 }]").unwrap();
        assert_eq!((geared.gearbox.top().ghz, geared.gearbox.is_assumed()), (2.0, false));
    }

    #[test]
    fn gpus_and_measured_gears_are_part_of_a_node() {
        let machine = read("nodes = 2\n[power]\nnode = '300W'\ngpus = 4\ngpu = '250W'\n").unwrap();
        assert_eq!(machine.node_power, Watts::from_watts(1300));
        assert!(read("nodes = 2\n[power]\nnode = '300W'\ngpus = 4").unwrap_err().contains("each"));
        // What a node draws is known by its fastest gear.
        let gears =
            "[dvfs]\ngears = [{ ghz = 1.0, watts = '200W' }, { ghz = 2.0, watts = '300W' }]";
        let geared = read(&format!("nodes = 2\n{gears}")).unwrap();
        assert_eq!((geared.node_power, geared.power_is_assumed), (Watts::from_watts(300), false));
        let caps = geared.filled_in(1).details.levels.unwrap();
        // A fifth of the node is beyond the reach of caps: 300 − 60 W, and 200 − 60 W.
        assert_eq!(caps, [140, 240].map(Watts::from_watts));
        let other = read(&format!("nodes = 2\n[power]\nnode = '310W'\n{gears}")).unwrap_err();
        assert!(other.contains("draws 300W in the fastest one"), "{other}");
    }

    const SITE: &str = "name = 'site'\nprocessors_per_node = 48\n[power]\nnode = '400W'\nidle = '90W'\nbase = '5kW'\n\
        [[partition]]\nname = 'cpu'\nnodes = 100\n[[partition]]\nname = 'gpu'\nnodes = 8\nprocessors_per_node = 64\n\
        power.gpus = 4\npower.gpu = '400W'\npower.idle = '300W'\n";

    fn part(text: &str, wanted: &[&str]) -> Result<Machine, String> {
        let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
        let described = Machine::from_toml(text, "stem", Path::new(""));
        let described = described.map_err(|error| error.to_string())?;
        described.choose(&wanted).map_err(|error| error.to_string())
    }

    #[test]
    fn a_partition_is_a_machine_of_its_own() {
        let cpu = part(SITE, &["cpu"]).unwrap();
        assert_eq!((cpu.name.as_str(), cpu.nodes, cpu.processors_per_node), ("site cpu", 100, 48));
        // The base power is that of the whole.
        assert_eq!(cpu.max_power(), Watts::from_watts(100 * 400));
        let gpu = part(SITE, &["gpu", "gpu-dev"]).unwrap();
        assert_eq!((gpu.nodes, gpu.processors_per_node), (8, 64));
        assert_eq!(gpu.node_power, Watts::from_watts(400 + 4 * 400));
        assert_eq!(gpu.node().idle, Watts::from_watts(300));
        let Described::Several(whole) = Machine::from_toml(SITE, "stem", Path::new("")).unwrap()
        else {
            panic!("no partitions")
        };
        assert_eq!(whole.nodes(), 108);
        assert_eq!(whole.max_power(), Watts::from_watts(5000 + 100 * 400 + 8 * 2000));
        assert_eq!(whole.floor(), Watts::from_watts(5000 + 100 * 90 + 8 * 300));
    }

    #[test]
    fn nodes_of_several_kinds_are_counted_in_processors() {
        let whole = part(SITE, &[]).unwrap();
        assert_eq!((whole.name.as_str(), whole.nodes), ("site", 100 * 48 + 8 * 64));
        assert_eq!(whole.max_power(), Watts::from_watts(5000 + 100 * 400 + 8 * 2000));
        assert_eq!(whole.floor(), Watts::from_watts(5000 + 100 * 90 + 8 * 300));
        let kinds = whole.kinds.as_deref().unwrap();
        assert_eq!(
            (kinds.nodes(), kinds.kinds().len(), kinds.groups()[1].nodes.clone()),
            (108, 2, 100..108)
        );
        // 2000 W of a node are 31.25 W of each of its processors.
        let gpu = kinds.kind_of(1).by_processor();
        assert_eq!(gpu.node_power, Watts::from_milliwatts(31_250));
        let error = part(SITE, &["gpus"]).unwrap_err();
        assert!(error.contains("no partition 'gpus'; did you mean 'gpu'? there are cpu, gpu"));
        // Those of one kind are joined, and so are alike nodes as far as nobody shares them.
        let alike = "[power]\nnode = '400W'\nbase = '1kW'\n[[partition]]\nname = 'short'\nnodes = 3\n\
            [[partition]]\nname = 'long'\nnodes = 4\n[[partition]]\nname = 'test'\nnodes = 1\n";
        let whole = part(alike, &[]).unwrap();
        assert_eq!((whole.name.as_str(), whole.nodes), ("stem", 8));
        assert_eq!(whole.max_power(), Watts::from_watts(8 * 400 + 1000));
        let some = part(alike, &["test", "short"]).unwrap();
        assert_eq!((some.name.as_str(), some.nodes), ("stem short+test", 4));
        assert_eq!(some.max_power(), Watts::from_watts(4 * 400));
        let shared = part(&alike.replace("nodes = 3", "nodes = 3\nshared = true"), &[]).unwrap();
        assert!(shared.kinds.is_some());
    }

    #[test]
    fn partitions_may_have_the_nodes_of_others() {
        let over = |more: &str| part(&format!("{SITE}[[partition]]\nname = 'all'\n{more}"), &[]);
        let whole = over("of = ['gpu', 'cpu']\nshared = true\n").unwrap();
        let partitions = whole.kinds.as_deref().unwrap().partitions();
        assert_eq!((partitions[2].groups.clone(), partitions[2].shared), (vec![1, 0], true));
        let only = part(&format!("{SITE}[[partition]]\nname = 'all'\nof = ['gpu']\n"), &["all"]);
        assert_eq!(only.unwrap().nodes, 8);
        let mistakes = [
            ("of = ['cpus']\n", "line 17, partition 'all': there is no partition 'cpus'"),
            ("of = []\n", "names no partition"),
            ("of = ['cpu']\nnodes = 3\n", "leave out all but 'name'"),
            ("", "or name the partitions whose nodes it has ('of')"),
            ("nodes = 1\nmemory = '3GB'\n", "such as \"256GiB\""),
        ];
        for (more, why) in mistakes {
            let error = over(more).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn mistakes_in_partitions_have_their_lines() {
        let error = |from: &str, to: &str| {
            assert!(SITE.contains(from), "{from}");
            part(&SITE.replace(from, to), &["cpu"]).unwrap_err()
        };
        let found = error("power.idle = '300W'", "power.idle = '3kW'");
        assert!(
            found.starts_with("line 10, partition 'gpu': 'power.idle' is 3000W, but"),
            "{found}"
        );
        assert!(error("nodes = 8\n", "").contains("missing field `nodes`"));
        assert!(error("power.gpus = 4", "power.base = '3W'").contains("unknown field `base`"));
        assert!(
            error("name = 'gpu'", "name = 'cpu'")
                .contains("line 10, partition 'cpu': another partition has this name")
        );
        assert!(error("name = 'gpu'", "name = 'a,b'").contains("a comma"));
        assert!(error("name = 'site'", "nodes = 7").contains("'nodes' is given beside"));
    }

    #[test]
    fn more_of_the_same_nodes_round_up() {
        let larger = Machine::of_processors(128).unwrap().enlarged(Share::percent(20)).unwrap();
        assert_eq!((larger.nodes, larger.name.as_str()), (154, "128 processors +20%"));
        let huge = Machine::of_processors(Machine::MOST_NODES).unwrap();
        assert!(matches!(huge.enlarged(Share::percent(1)), Err(MachineError::TooLarge { .. })));
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| read(text).unwrap_err();
        assert!(error("nodes = 0").contains("at least one node"));
        assert!(error("nodes = -1").contains("nodes = -1"), "{}", error("nodes = -1"));
        assert!(error("node = 3").contains("unknown field `node`"), "{}", error("node = 3"));
        assert!(error("nodes = 1\n[power]\nnode = '5'").contains("valid units"));
        assert!(
            error("nodes = 1\n[power]\nnode = '0W'")
                .contains("must be above zero; give its real draw")
        );
        let empty = "nodes = 1\n[dvfs]\ngears = []";
        assert!(error(empty).contains("dvfs.gears is empty"), "{}", error(empty));
        assert!(error("nodes = 1\n[power]\nnode = 400").contains("such as \"400W\""));
        assert!(error("nodes = 4000000000").contains("at most 100000000"));
        assert!(error("nodes = 40000000\n[power]\nnode = '1GW'").contains("too large"));
        assert!(matches!(Machine::from_text("many"), Err(MachineError::Unknown(_))));
        assert!(matches!(Machine::from_text("0"), Err(MachineError::NoNodes)));
        assert!(matches!(Machine::from_text("99999999999"), Err(MachineError::TooLarge { .. })));
    }
}
