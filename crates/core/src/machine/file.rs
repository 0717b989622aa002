//! Machine files: TOML, with every mistake named.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use toml::Spanned;

use super::feeds::{FeedProblem, Feeds, Nodes, Written};
use super::written::{length, some_watts, watts};
use super::{
    Cooling, Described, Details, Gearbox, Machine, MachineError, Off, Overlapping, Partition,
    Partitioned, Parts, Transition, most_drawn,
};
use crate::spelling::hint;
use crate::text;
use crate::units::{Share, Span, Watts};
use crate::variation::csv::Table;

/// A machine file, as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<String>,
    /// Of all, unless partitions say how many each has.
    nodes: Option<u32>,
    processors_per_node: Option<u32>,
    sockets_per_node: Option<u32>,
    power: Option<Power>,
    dvfs: Option<Gearbox>,
    caps: Option<Caps>,
    parts: Option<Unlike>,
    off: Option<Switched>,
    cooling: Option<Cooling>,
    /// A CSV file of curves, beside this file.
    variation: Option<PathBuf>,
    #[serde(default)]
    partition: Vec<Spanned<PartitionFile>>,
    #[serde(default)]
    feed: Vec<Spanned<FeedFile>>,
}

/// A feed, as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FeedFile {
    name: String,
    limit: String,
    parent: Option<String>,
    #[serde(default)]
    nodes: String,
}

/// A part of the machine, as written. What it does not say is said for the whole.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PartitionFile {
    name: String,
    /// Nodes of its own, unless it has those of others.
    nodes: Option<u32>,
    /// The partitions whose nodes it has.
    of: Option<Vec<String>>,
    /// Whether jobs share nodes.
    shared: Option<bool>,
    /// The memory of a node.
    memory: Option<String>,
    /// The GPUs of a node, if what they draw is part of what the node draws.
    gpus: Option<u32>,
    /// Slurm gives out nodes of a low weight first.
    weight: Option<u32>,
    processors_per_node: Option<u32>,
    sockets_per_node: Option<u32>,
    power: Option<PartitionPower>,
    dvfs: Option<Gearbox>,
    caps: Option<Caps>,
    parts: Option<Unlike>,
    off: Option<Switched>,
}

/// A partition that has the nodes of others.
struct OverFile {
    name: String,
    of: Vec<String>,
    shared: bool,
}

impl PartitionFile {
    /// A partition without nodes of its own, of which nothing else can be said.
    fn over(self) -> Result<OverFile, &'static str> {
        let PartitionFile { name, nodes, of, shared, memory, gpus, weight, .. } = self;
        let is_of_nodes = [self.processors_per_node, self.sockets_per_node, nodes, gpus, weight]
            .iter()
            .any(Option::is_some)
            || self.power.is_some()
            || self.dvfs.is_some()
            || self.caps.is_some()
            || self.parts.is_some()
            || self.off.is_some()
            || memory.is_some();
        match is_of_nodes {
            true => Err(
                "it has the nodes of other partitions ('of'), so what they are is said there; leave out all but 'name', \
                 'of' and 'shared'",
            ),
            false => {
                let (of, shared) = (of.unwrap_or_default(), shared.unwrap_or(false));
                Ok(OverFile { name, of, shared })
            }
        }
    }
}

impl OverFile {
    /// The same with the places of the partitions whose nodes it has.
    fn on(self, parts: &[Partition]) -> Result<Overlapping, String> {
        let names = || parts.iter().map(|part| part.name.as_str());
        let place = |name: &String| {
            let found = names().position(|known| known == name);
            found.ok_or_else(|| {
                let (hint, all) = (hint(name, names()), names().collect::<Vec<_>>().join(", "));
                format!("there is no partition '{name}' ('of') with nodes of its own{hint} there are {all}")
            })
        };
        let of: Result<Vec<usize>, String> = self.of.iter().map(place).collect();
        let of = of?;
        match of.is_empty() {
            true => Err("'of' names no partition".to_owned()),
            false => Ok(Overlapping { name: self.name, of, shared: self.shared }),
        }
    }
}

/// Reads memory with its unit, in MiB.
#[doc(hidden)]
pub fn memory(text: &str) -> Result<u32, String> {
    let wrong =
        || format!("'{text}' is no amount of memory; write it with its unit, such as \"256GiB\"");
    let at = text.find(|sign: char| !sign.is_ascii_digit()).ok_or_else(wrong)?;
    let factor = match text[at..].trim() {
        "MiB" => 1,
        "GiB" => 1 << 10,
        "TiB" => 1 << 20,
        _ => return Err(wrong()),
    };
    let count: u32 = text[..at].parse().map_err(|_| wrong())?;
    count.checked_mul(factor).filter(|mib| *mib > 0).ok_or_else(wrong)
}

/// What the nodes of a partition draw, as far as it is not what those of the whole draw.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PartitionPower {
    #[serde(default, deserialize_with = "some_watts")]
    node: Option<Watts>,
    #[serde(default, deserialize_with = "some_watts")]
    idle: Option<Watts>,
    #[serde(default, deserialize_with = "some_watts")]
    rest: Option<Watts>,
    gpus: Option<u32>,
    #[serde(default, deserialize_with = "some_watts")]
    gpu: Option<Watts>,
}

impl PartitionPower {
    /// The same with what is said for the whole.
    fn over(self, whole: Option<&Power>) -> Result<Power, String> {
        let node = self.node.or(whole.map(|whole| whole.node));
        let node = node.ok_or("'power.node' is missing, here and in [power]")?;
        let either =
            |own: Option<Watts>, of: fn(&Power) -> Option<Watts>| own.or(whole.and_then(of));
        Ok(Power {
            node,
            base: Watts::ZERO,
            idle: either(self.idle, |whole| whole.idle),
            rest: either(self.rest, |whole| whole.rest),
            gpus: self.gpus.or(whole.and_then(|whole| whole.gpus)),
            gpu: either(self.gpu, |whole| whole.gpu),
        })
    }
}

/// What is wrong with a partition, and where it begins.
#[derive(Debug, thiserror::Error)]
#[error("line {line}, partition '{name}': {why}")]
pub(super) struct PartitionProblem {
    /// The line, from 1.
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) why: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Power {
    #[serde(deserialize_with = "watts")]
    node: Watts,
    #[serde(default, deserialize_with = "watts")]
    base: Watts,
    #[serde(default, deserialize_with = "some_watts")]
    idle: Option<Watts>,
    #[serde(default, deserialize_with = "some_watts")]
    rest: Option<Watts>,
    /// GPUs of a node, and what each of them draws at most on top of `node`.
    gpus: Option<u32>,
    #[serde(default, deserialize_with = "some_watts")]
    gpu: Option<Watts>,
}

impl Power {
    /// What a busy node draws with its GPUs.
    fn with_gpus(&self) -> Result<Watts, String> {
        match (self.gpus, self.gpu) {
            (None, None) => Ok(self.node),
            (Some(count), Some(each)) => {
                let all = each.checked_mul(count).unwrap_or(Watts::LARGEST);
                Ok(self.node.saturating_add(all).min(Watts::LARGEST))
            }
            (Some(_), None) => {
                Err("'power.gpus' is given without 'power.gpu', the power of each GPU".to_owned())
            }
            (None, Some(_)) => {
                Err("'power.gpu' is given without 'power.gpus', the number of GPUs per node"
                    .to_owned())
            }
        }
    }
}

/// The caps that can be set.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Caps {
    levels: Vec<Level>,
}

/// Watts in a list.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
struct Level(#[serde(deserialize_with = "watts")] Watts);

/// How nodes differ.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Unlike {
    spread: String,
    #[serde(default = "first_seed")]
    seed: u64,
}

/// What it means that a node is off.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Switched {
    #[serde(deserialize_with = "watts")]
    power: Watts,
    stop: Switching,
    start: Switching,
}

/// What it takes to switch a node off or on.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Switching {
    #[serde(deserialize_with = "length")]
    time: Span,
    #[serde(deserialize_with = "watts")]
    power: Watts,
}

impl From<Switching> for Transition {
    fn from(Switching { time, power }: Switching) -> Self {
        Transition { time, power }
    }
}

impl From<Switched> for Off {
    fn from(Switched { power, stop, start }: Switched) -> Self {
        Off { power, stop: stop.into(), start: start.into() }
    }
}

fn first_seed() -> u64 {
    1
}

/// What is said of a file without the one key that every file has, if it has no partitions.
pub(super) const NO_NODES: &str = "missing field `nodes`";

impl Unlike {
    fn parts(self) -> Result<Parts, String> {
        let wrong = |why: String| format!("'parts.spread': {why}");
        let spread: Share = self.spread.parse().map_err(|why| wrong(format!("{why}")))?;
        match spread {
            spread if spread > MOST_SPREAD => {
                Err(wrong(format!("nodes differ by {spread}; at most {MOST_SPREAD}")))
            }
            spread if spread == Share::percent(0) => Ok(Parts::Alike),
            spread => Ok(Parts::Unlike { spread, seed: self.seed }),
        }
    }
}

/// A node that needs a tenth more is still at full speed without a cap; beyond that nobody has measured anything.
const MOST_SPREAD: Share = Share::percent(10);

impl Machine {
    /// Reads a TOML machine file.
    pub fn from_file(path: &Path) -> Result<Described, MachineError> {
        let text = text::read_whole(path)
            .map_err(|source| MachineError::Unreadable { path: path.to_owned(), source })?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let folder = path.parent().unwrap_or(Path::new(""));
        Machine::from_toml(&text, &stem, folder).map_err(|error| match error.downcast() {
            // It names the file of curves itself.
            Ok(curves) => MachineError::Curves(*curves),
            Err(error) => MachineError::Malformed {
                path: path.to_owned(),
                why: error.to_string().trim_end().to_owned(),
            },
        })
    }

    pub(super) fn from_toml(
        text: &str,
        stem: &str,
        folder: &Path,
    ) -> Result<Described, Box<dyn std::error::Error>> {
        let mut file: File = toml::from_str(text)?;
        let line_of = |at: usize| text[..at].matches('\n').count() + 1;
        let written = std::mem::take(&mut file.feed).into_iter().map(|feed| {
            let line = line_of(feed.span().start);
            let FeedFile { name, limit, parent, nodes } = feed.into_inner();
            Written { line, name, limit, parent, nodes }
        });
        let written: Vec<Written> = written.collect();
        if file.partition.is_empty() {
            let machine = file.machine(stem, folder)?;
            let feeds = feeds_of(&written, std::iter::once((None, &machine)))?;
            return Ok(Described::One(Box::new(Machine { feeds, ..machine })));
        }
        let partitions = std::mem::take(&mut file.partition);
        let name = file.name.clone().unwrap_or_else(|| stem.to_owned());
        file.refuse_partitions()?;
        let mut parts: Vec<Partition> = Vec::new();
        let mut over: Vec<(usize, OverFile)> = Vec::new();
        for partition in partitions {
            let line = line_of(partition.span().start);
            let partition = partition.into_inner();
            let part = partition.name.clone();
            let mut known = parts.iter().map(|known: &Partition| &known.name);
            let is_known = known.any(|known| *known == part)
                || over.iter().any(|(_, known)| known.name == part);
            let made = match part.as_str() {
                _ if is_known => Err("another partition has this name".into()),
                "" => Err("a partition needs a name".into()),
                named if named.contains(',') => {
                    Err("names of partitions are listed with a comma between them, so none has one"
                        .into())
                }
                _ if partition.of.is_some() => match partition.over() {
                    Ok(partition) => {
                        over.push((line, partition));
                        continue;
                    }
                    Err(why) => Err(why.into()),
                },
                _ => file.part(partition, &name, folder),
            };
            let problem = |why: String| PartitionProblem { line, name: part.clone(), why };
            parts.push(made.map_err(|why| problem(why.to_string()))?);
        }
        let over = over.into_iter().map(|(line, partition)| {
            let name = partition.name.clone();
            partition.on(&parts).map_err(|why| PartitionProblem { line, name, why })
        });
        let over: Result<Vec<Overlapping>, PartitionProblem> = over.collect();
        let base_power = file.power.map_or(Watts::ZERO, |power| power.base);
        let machines = parts.iter().map(|part| (Some(part.name.clone()), &part.machine));
        let feeds = feeds_of(&written, machines)?;
        let whole = Partitioned { name, base_power, parts, over: over?, feeds };
        if whole.max_power() > Watts::LARGEST || whole.nodes() > Machine::MOST_NODES.into() {
            return Err(MachineError::TooLarge {
                what: "the power or the number of nodes",
                value: format!("{} nodes in all partitions", whole.nodes()),
                most: format!("{} and {} nodes", Watts::LARGEST, Machine::MOST_NODES),
            }
            .into());
        }
        Ok(Described::Several(whole))
    }
}

impl File {
    /// What is said of the whole where partitions say it of each.
    fn refuse_partitions(&self) -> Result<(), &'static str> {
        match (&self.nodes, &self.variation) {
            (Some(_), _) => Err(
                "'nodes' is given beside [[partition]]; give the nodes of each partition instead",
            ),
            (_, Some(_)) => Err(
                "'variation' is given beside [[partition]]; curves are of a machine without partitions",
            ),
            _ => Ok(()),
        }
    }

    /// A partition with nodes of its own.
    fn part(
        &self,
        partition: PartitionFile,
        name: &str,
        folder: &Path,
    ) -> Result<Partition, Box<dyn std::error::Error>> {
        let memory_mib = partition.memory.as_deref().map(memory).transpose();
        let memory_mib = memory_mib.map_err(|why| format!("memory: {why}"))?;
        let (part, shared) = (partition.name.clone(), partition.shared.unwrap_or(false));
        let (said, weight) = (partition.gpus, partition.weight.unwrap_or(1));
        let file = self.with(partition)?;
        let powered = file.power.and_then(|power| power.gpus);
        if let (Some(said), Some(powered)) = (said, powered)
            && said != powered
        {
            let why =
                format!("'gpus' is {said}, but 'power.gpus' is {powered}; leave one of them out");
            return Err(why.into());
        }
        let gpus = said.or(powered).unwrap_or(0);
        let machine = file.machine(name, folder)?;
        Ok(Partition { name: part, machine, memory_mib, gpus, shared, weight })
    }

    /// The file that a partition would be by itself.
    fn with(&self, partition: PartitionFile) -> Result<File, Box<dyn std::error::Error>> {
        let PartitionFile { nodes, processors_per_node, sockets_per_node, power, .. } = partition;
        let power = match power {
            Some(power) => Some(power.over(self.power.as_ref())?),
            None => self.power.map(|power| Power { base: Watts::ZERO, ..power }),
        };
        Ok(File {
            name: None,
            nodes: Some(nodes.ok_or(
                "missing field `nodes`; or name the partitions whose nodes it has ('of')",
            )?),
            processors_per_node: processors_per_node.or(self.processors_per_node),
            sockets_per_node: sockets_per_node.or(self.sockets_per_node),
            power,
            dvfs: partition.dvfs.or_else(|| self.dvfs.clone()),
            caps: partition.caps.or_else(|| self.caps.clone()),
            parts: partition.parts.or_else(|| self.parts.clone()),
            off: partition.off.or_else(|| self.off.clone()),
            cooling: self.cooling.clone(),
            variation: None,
            partition: Vec::new(),
            feed: Vec::new(),
        })
    }

    /// The machine of a file without partitions.
    fn machine(self, stem: &str, folder: &Path) -> Result<Machine, Box<dyn std::error::Error>> {
        let file = self;
        let nodes = file.nodes.ok_or(NO_NODES)?;
        let [processors_per_node, sockets_per_node] =
            [file.processors_per_node, file.sockets_per_node].map(|count| count.unwrap_or(1));
        let (variation, remarks) = match &file.variation {
            None => (None, Vec::new()),
            Some(path) => {
                let path = folder.join(path);
                let table = Table::read(&path)?;
                let remarks = table.remarks(&path);
                (Some(table.processors), remarks)
            }
        };
        if let Some(processors) = &variation
            && processors.names().len() != nodes as usize
        {
            return Err(
                MachineError::OtherCount { nodes, processors: processors.names().len() }.into()
            );
        }
        if variation.is_some() && (processors_per_node, sockets_per_node) != (1, 1) {
            return Err(MachineError::NodesOfSeveral.into());
        }
        let gears_draw = file.dvfs.as_ref().and_then(Gearbox::top_draw);
        let power_is_assumed = file.power.is_none() && variation.is_none() && gears_draw.is_none();
        let assumed = variation.as_ref().map_or(Machine::ASSUMED_NODE_POWER, most_drawn);
        let assumed = gears_draw.unwrap_or(assumed);
        let nothing_said = Power {
            node: assumed,
            base: Watts::ZERO,
            idle: None,
            rest: None,
            gpus: None,
            gpu: None,
        };
        let power = file.power.unwrap_or(nothing_said);
        let node_power = power.with_gpus()?;
        if let Some(drawn) = gears_draw.filter(|drawn| *drawn != node_power) {
            return Err(MachineError::OtherDraw { drawn, node_power }.into());
        }
        let levels = file.caps.map(|caps| caps.levels.iter().map(|level| level.0).collect());
        let parts = file.parts.map(Unlike::parts).transpose()?;
        let off = file.off.map(Off::from);
        let details = Details { idle: power.idle, rest: power.rest, levels, parts, off };
        let machine = Machine {
            name: file.name.unwrap_or_else(|| stem.to_owned()),
            nodes,
            processors_per_node,
            sockets_per_node,
            node_power,
            base_power: power.base,
            details,
            power_is_assumed,
            gearbox: file.dvfs.unwrap_or_default(),
            variation: variation.map(Arc::new),
            cooling: file.cooling,
            feeds: None,
            kinds: None,
            remarks,
        };
        Ok(machine.validated()?)
    }
}

/// The feeds of nodes, if there are any: those of a machine, or of partitions by name.
fn feeds_of<'a>(
    written: &[Written],
    machines: impl Iterator<Item = (Option<String>, &'a Machine)>,
) -> Result<Option<Arc<Feeds>>, FeedProblem> {
    if written.is_empty() {
        return Ok(None);
    }
    let mut first = 0u32;
    let nodes = machines.map(|(partition, machine)| {
        let numbers = first..first.saturating_add(machine.nodes);
        first = numbers.end;
        // What idle nodes draw is assumed before jobs run, where the file does not say it.
        let idle = machine.filled_in(0).node().idle;
        Nodes { partition, numbers, busy: machine.node_power, idle }
    });
    let nodes: Vec<Nodes> = nodes.collect();
    Ok(Some(Arc::new(Feeds::of(written, &nodes)?)))
}
