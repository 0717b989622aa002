//! A cluster as its site describes it: which nodes there are, which of them are alike, and which partitions they are in.
//!
//! It is read from what `scontrol show node` and `scontrol show partition` print (with `-o` or without, or with
//! `--json`), and from the files `slurm.conf`, `gres.conf` and `topology.conf`. All of them are records of `KEY=VALUE`
//! pairs or JSON, so that a file is known by what stands in it. Of a node that is described more than once, what
//! `scontrol` says counts: it is what the node was found to have.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::hosts::HostList;
use crate::json::Answer;

mod lines;

use lines::{Line, lines};

/// What is the same for all nodes of a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// Sockets of a node.
    pub sockets: u32,
    /// Processors of a node, as Slurm counts them.
    pub processors: u32,
    /// Memory in MiB; 0 if that is not said.
    pub memory_mib: u64,
    /// GPUs of each type; the type is empty where there is none.
    pub gpus: BTreeMap<String, u32>,
    /// Features that jobs can ask for.
    pub features: BTreeSet<String>,
    /// Its weight: nodes of a low one are given out first.
    pub weight: u32,
}

/// Nodes of which nothing is said have weight 1.
impl Default for Shape {
    fn default() -> Self {
        Shape {
            sockets: 0,
            processors: 0,
            memory_mib: 0,
            gpus: BTreeMap::new(),
            features: BTreeSet::new(),
            weight: 1,
        }
    }
}

impl Shape {
    /// All GPUs of a node.
    pub fn gpu_count(&self) -> u32 {
        self.gpus.values().copied().fold(0, u32::saturating_add)
    }
}

/// Nodes that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// What they are.
    pub shape: Shape,
    /// Which ones.
    pub nodes: HostList,
}

/// A partition of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Its nodes.
    pub nodes: HostList,
    /// Whether its jobs share no node with others.
    pub is_exclusive: bool,
}

/// A switch and the nodes directly below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Its name.
    pub name: String,
    /// The nodes.
    pub nodes: HostList,
}

/// A cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// Its name, if that is said.
    pub name: Option<String>,
    /// Kinds of nodes, in the order of their first node.
    pub kinds: Vec<Kind>,
    /// Partitions, each with a node at least.
    pub partitions: Vec<Part>,
    /// Switches with nodes.
    pub switches: Vec<Switch>,
}

/// Why a description cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {why}", line.map(|line| format!(", line {line}")).unwrap_or_default())]
pub struct SiteError {
    /// The file, or the command that was asked.
    pub(crate) file: String,
    /// The line, from 1, if it is known.
    pub(crate) line: Option<usize>,
    /// The field, and what is wrong with it.
    pub(crate) why: String,
}

/// The pieces of a site, while they are read.
#[derive(Debug, Default)]
pub struct SiteReader {
    name: Option<String>,
    /// By name, in the order in which they were found.
    nodes: Vec<(String, Found)>,
    places: BTreeMap<String, usize>,
    partitions: Vec<FoundPartition>,
    /// Named sets of nodes that partitions of slurm.conf consist of: by their nodes, or by a feature.
    sets: Vec<(String, Members)>,
    switches: Vec<Switch>,
    /// Whether jobs have whole nodes, in whichever partition.
    is_linear: bool,
    /// What gres.conf says of GPUs: of which nodes, or of all, their type and their number.
    gpus: Vec<(Option<HostList>, String, u32)>,
}

/// A node that was found.
#[derive(Clone, Debug, Default)]
struct Found {
    shape: Shape,
    /// The partitions that the node itself names.
    partitions: Vec<String>,
    is_from_scontrol: bool,
}

#[derive(Debug)]
struct FoundPartition {
    name: String,
    nodes: Members,
    is_exclusive: bool,
    is_from_scontrol: bool,
    /// Where it stands.
    file: String,
    line: Option<usize>,
}

/// Nodes that belong together.
#[derive(Clone, Debug)]
enum Members {
    All,
    /// Names of nodes, or of sets of them.
    Named(HostList),
    WithFeature(String),
}

/// Slurm's word for defaults of the records that follow.
const DEFAULT: &str = "DEFAULT";

impl SiteReader {
    /// Reads a file of any of the forms.
    pub fn read(&mut self, file: &str, text: &str) -> Result<(), SiteError> {
        match text.trim_start().starts_with('{') {
            true => self.read_json(file, text),
            false => self.read_text(file, text),
        }
    }

    fn read_text(&mut self, file: &str, text: &str) -> Result<(), SiteError> {
        let lines = lines(text);
        let mut defaults: Vec<Line<'_>> = Vec::new();
        let mut has_any = false;
        for line in &lines {
            let used = self.read_line(file, line, &mut defaults);
            has_any |= used.map_err(|why| SiteError {
                file: file.to_owned(),
                line: Some(line.number),
                why,
            })?;
        }
        match has_any {
            true => Ok(()),
            false => Err(SiteError {
                file: file.to_owned(),
                line: None,
                why: "it has no nodes, partitions or switches; give what 'scontrol show node' and 'scontrol show \
                      partition' print, or slurm.conf, gres.conf or topology.conf"
                    .to_owned(),
            }),
        }
    }

    /// Whether a line says something that is used.
    fn read_line<'a>(
        &mut self,
        file: &str,
        line: &Line<'a>,
        defaults: &mut Vec<Line<'a>>,
    ) -> Result<bool, String> {
        let has_gres = line.get("Name").is_some();
        if line.begins_with("ClusterName") {
            self.name = line.get("ClusterName").map(str::to_owned);
            return Ok(true);
        }
        if line.begins_with("SelectType") {
            self.is_linear = line.get("SelectType") == Some("select/linear");
            return Ok(true);
        }
        if line.begins_with("AutoDetect") || line.get("AutoDetect").is_some() && !has_gres {
            return Ok(true);
        }
        if has_gres && (line.begins_with("Name") || line.begins_with("NodeName")) {
            return self.read_gres(line).map(|()| true);
        }
        if line.begins_with("NodeName") {
            if line.get("NodeName") == Some(DEFAULT) {
                defaults.push(line.clone());
                return Ok(true);
            }
            return self.read_nodes(line, defaults).map(|()| true);
        }
        if line.begins_with("PartitionName") {
            if line.get("PartitionName") == Some(DEFAULT) {
                defaults.push(line.clone());
                return Ok(true);
            }
            let get =
                |key: &str| line.get(key).or_else(|| default_of(defaults, "PartitionName", key));
            let nodes = get("Nodes");
            let is_exclusive = get("OverSubscribe").or(get("Shared")) == Some("EXCLUSIVE")
                || get("Exclusive").is_some_and(|what| ["NODE", "TOPO"].contains(&what));
            self.partitions.push(FoundPartition {
                is_exclusive,
                name: line.get("PartitionName").unwrap_or_default().to_owned(),
                nodes: members("Nodes", nodes.unwrap_or(""))?,
                is_from_scontrol: line.get("TotalNodes").is_some(),
                file: file.to_owned(),
                line: Some(line.number),
            });
            return Ok(true);
        }
        if line.begins_with("NodeSet") {
            let members = match line.get("Feature") {
                Some(feature) => Members::WithFeature(feature.to_owned()),
                None => members("Nodes", line.get("Nodes").unwrap_or(""))?,
            };
            self.sets.push((line.get("NodeSet").unwrap_or_default().to_owned(), members));
            return Ok(true);
        }
        if line.begins_with("SwitchName") || line.begins_with("BlockName") {
            let name = line.get("SwitchName").or(line.get("BlockName")).unwrap_or_default();
            if let Some(nodes) = line.get("Nodes") {
                let nodes = hosts("Nodes", nodes)?;
                self.switches.push(Switch { name: name.to_owned(), nodes });
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// A record of a node, or of several in slurm.conf.
    fn read_nodes(&mut self, line: &Line<'_>, defaults: &[Line<'_>]) -> Result<(), String> {
        let get = |keys: &[&str]| {
            let default = |key: &&str| default_of(defaults, "NodeName", key);
            let own = keys.iter().find_map(|key| line.get(key));
            own.or_else(|| keys.iter().find_map(default)).map(str::to_owned)
        };
        let number = |keys: &[&str]| {
            let key = keys.iter().find(|key| line.get(key).is_some()).unwrap_or(&keys[0]);
            let wrong = |text| format!("'{key}' is '{text}', which is not a number");
            get(keys).map(|text| text.parse::<u32>().map_err(|_| wrong(text)))
        };
        let is_from_scontrol = line.get("CPUTot").is_some();
        let boards = number(&["Boards"]).transpose()?.unwrap_or(1).max(1);
        let on_boards = number(&["SocketsPerBoard"]).transpose()?;
        let on_boards = on_boards.map(|sockets| sockets.saturating_mul(boards));
        let sockets = number(&["Sockets"]).transpose()?.or(on_boards).unwrap_or(1).max(1);
        let cores = number(&["CoresPerSocket"]).transpose()?.unwrap_or(1);
        let threads = number(&["ThreadsPerCore"]).transpose()?.unwrap_or(1);
        let product = sockets.saturating_mul(cores).saturating_mul(threads);
        let processors = number(&["CPUTot", "CPUs", "Procs"]).transpose()?.unwrap_or(product);
        let memory = get(&["RealMemory"]).unwrap_or_else(|| "0".to_owned());
        let memory_mib = memory
            .parse()
            .map_err(|_| format!("'RealMemory' is '{memory}', which is not a number of MiB"))?;
        if processors == 0 {
            return Err("'CPUTot' or 'CPUs' is 0, and a node has at least one processor".to_owned());
        }
        let words = |keys: &[&str]| -> Vec<String> {
            let text = get(keys).unwrap_or_default();
            let words = text.split(',').filter(|word| !["", "(null)"].contains(word));
            words.map(str::to_owned).collect()
        };
        let found = Found {
            shape: Shape {
                sockets,
                processors,
                memory_mib,
                gpus: gpus(&get(&["Gres"]).unwrap_or_default())?,
                features: words(&["AvailableFeatures", "Features", "Feature"])
                    .into_iter()
                    .collect(),
                weight: number(&["Weight"]).transpose()?.unwrap_or(1),
            },
            partitions: words(&["Partitions"]),
            is_from_scontrol,
        };
        if get(&["State"]).is_some_and(|state| state.starts_with("FUTURE")) {
            return Ok(());
        }
        let names = hosts("NodeName", line.get("NodeName").unwrap_or_default())?;
        if names.is_empty() {
            return Err("'NodeName' is empty".to_owned());
        }
        names.names().iter().for_each(|name| self.add(name, found.clone()));
        Ok(())
    }

    fn add(&mut self, name: &str, found: Found) {
        match self.places.get(name) {
            Some(place) => {
                let known = &mut self.nodes[*place].1;
                if found.is_from_scontrol || !known.is_from_scontrol {
                    *known = found;
                }
            }
            None => {
                self.places.insert(name.to_owned(), self.nodes.len());
                self.nodes.push((name.to_owned(), found));
            }
        }
    }

    /// A line of gres.conf.
    fn read_gres(&mut self, line: &Line<'_>) -> Result<(), String> {
        if line.get("Name") != Some("gpu") {
            return Ok(());
        }
        let nodes = line.get("NodeName").map(|nodes| hosts("NodeName", nodes)).transpose()?;
        let devices =
            || hosts("File", line.get("File").unwrap_or("")).map(|files| files.len() as u32);
        let count = match line.get("Count") {
            Some(text) => text
                .parse()
                .map_err(|_| format!("'Count' is '{text}', which is not a number of GPUs"))?,
            None => devices()?,
        };
        self.gpus.push((nodes, line.get("Type").unwrap_or("").to_owned(), count));
        Ok(())
    }

    fn read_json(&mut self, file: &str, text: &str) -> Result<(), SiteError> {
        let wrong =
            |line: Option<usize>, why: String| SiteError { file: file.to_owned(), line, why };
        let value: Value = serde_json::from_str(text)
            .map_err(|error| wrong(Some(error.line()), format!("it is not JSON: {error}")))?;
        let list = |key: &str| value.get(key).and_then(Value::as_array);
        if list("nodes").is_none() && list("partitions").is_none() {
            let why = "it has no list 'nodes' or 'partitions'; give what 'scontrol show node --json' and 'scontrol \
                       show partition --json' print";
            return Err(wrong(None, why.to_owned()));
        }
        let answer = Answer::read(file, text).map_err(|error| wrong(None, error.to_string()))?;
        let cluster = value.pointer("/meta/slurm/cluster").and_then(Value::as_str);
        let cluster = cluster.filter(|name| !name.is_empty()).map(str::to_owned);
        self.name = self.name.take().or(cluster);
        for node in list("nodes").into_iter().flatten() {
            self.read_json_node(node).map_err(|why| wrong(None, why))?;
        }
        if list("partitions").is_some() {
            let read = answer.partitions().map_err(|error| wrong(None, error.to_string()))?;
            if let Some(unread) = read.unread.first() {
                return Err(wrong(None, unread.to_string()));
            }
            // At most no other job on a node: that is how Slurm says it in JSON.
            let is_exclusive = |name: &str| {
                let named = |part: &&Value| part.get("name").and_then(Value::as_str) == Some(name);
                let part = list("partitions").into_iter().flatten().find(named);
                let jobs = part.and_then(|part| part.pointer("/maximums/oversubscribe/jobs"));
                jobs.and_then(Value::as_u64) == Some(0)
            };
            self.partitions.extend(read.read.into_iter().map(|part| FoundPartition {
                is_exclusive: is_exclusive(&part.name),
                name: part.name,
                nodes: Members::Named(part.nodes),
                is_from_scontrol: true,
                file: file.to_owned(),
                line: None,
            }));
        }
        Ok(())
    }

    fn read_json_node(&mut self, node: &Value) -> Result<(), String> {
        let text = |key: &str| node.get(key).and_then(Value::as_str).unwrap_or("");
        let name = text("name");
        if name.is_empty() {
            return Err("a node has no 'name'".to_owned());
        }
        let number = |key: &str| {
            let value = node.get(key)?;
            value.as_u64().or_else(|| value.get("number")?.as_u64())
        };
        let small = |key: &str| number(key).and_then(|number| u32::try_from(number).ok());
        let words = |key: &str| -> Vec<String> {
            match node.get(key) {
                Some(Value::Array(list)) => {
                    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
                }
                _ => {
                    let words = text(key).split(',').filter(|word| !word.is_empty());
                    words.map(str::to_owned).collect()
                }
            }
        };
        let processors = small("cpus").filter(|cpus| *cpus > 0);
        let processors = processors
            .ok_or_else(|| format!("node {name}: 'cpus' is missing, 0 or not a number"))?;
        let shape = Shape {
            sockets: small("sockets").unwrap_or(1).max(1),
            processors,
            memory_mib: number("real_memory").unwrap_or(0),
            gpus: gpus(text("gres")).map_err(|why| format!("node {name}: {why}"))?,
            features: words("features").into_iter().collect(),
            weight: small("weight").unwrap_or(1),
        };
        self.add(name, Found { shape, partitions: words("partitions"), is_from_scontrol: true });
        Ok(())
    }

    /// The site, of all that was read; only these partitions of it, if any is named.
    pub fn finish(mut self, wanted: &[String]) -> Result<Site, SiteError> {
        let wrong = |why: String| SiteError { file: "the cluster".to_owned(), line: None, why };
        if self.nodes.is_empty() {
            return Err(wrong(
                "no node is described; give what 'scontrol show node' prints, or slurm.conf"
                    .to_owned(),
            ));
        }
        self.add_gpus();
        let mut partitions = self.all_partitions()?;
        if !wanted.is_empty() {
            let names = || partitions.iter().map(|part| part.name.as_str()).collect::<Vec<_>>();
            let is_there = |name: &&String| names().contains(&name.as_str());
            if let Some(unknown) = wanted.iter().find(|name| !is_there(name)) {
                let names = names().join(", ");
                return Err(wrong(format!("there is no partition '{unknown}'; there are {names}")));
            }
            partitions.retain(|part| wanted.contains(&part.name));
            let kept: BTreeSet<&String> =
                partitions.iter().flat_map(|part| part.nodes.names()).collect();
            self.nodes.retain(|(name, _)| kept.contains(name));
        }
        let mut kinds: Vec<(Shape, Vec<String>)> = Vec::new();
        let mut places: BTreeMap<Shape, usize> = BTreeMap::new();
        for (name, found) in self.nodes {
            let place = *places.entry(found.shape.clone()).or_insert(kinds.len());
            if place == kinds.len() {
                kinds.push((found.shape, Vec::new()));
            }
            kinds[place].1.push(name);
        }
        let kind = |(shape, names)| Kind { shape, nodes: HostList::new::<String>(names) };
        Ok(Site {
            name: self.name,
            kinds: kinds.into_iter().map(kind).collect(),
            partitions,
            switches: self.switches,
        })
    }

    /// Gives nodes the GPUs of gres.conf, where their own record has none, or has no type.
    fn add_gpus(&mut self) {
        let mut lines_of: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (place, (nodes, ..)) in self.gpus.iter().enumerate() {
            for name in nodes.iter().flat_map(HostList::names) {
                lines_of.entry(name).or_default().push(place);
            }
        }
        let of_all = (0..self.gpus.len()).filter(|place| self.gpus[*place].0.is_none());
        let of_all: Vec<usize> = of_all.collect();
        for (name, found) in &mut self.nodes {
            let own = lines_of.get(name.as_str()).map(Vec::as_slice).unwrap_or_default();
            let mut said: BTreeMap<String, u32> = BTreeMap::new();
            for (_, kind, count) in own.iter().chain(&of_all).map(|place| &self.gpus[*place]) {
                let known = said.entry(kind.clone()).or_default();
                *known = known.saturating_add(*count);
            }
            said.retain(|_, count| *count > 0);
            let total = |gpus: &BTreeMap<String, u32>| -> u64 {
                gpus.values().map(|count| u64::from(*count)).sum()
            };
            let gpus = &mut found.shape.gpus;
            // A line for all nodes is about those that have GPUs.
            let has_none = gpus.is_empty() && !own.is_empty();
            let has_no_type = !gpus.is_empty() && gpus.keys().all(String::is_empty);
            if has_none || (has_no_type && total(gpus) == total(&said)) {
                *gpus = said;
            }
        }
    }

    /// The partitions with their nodes: those of `scontrol`, or else those of slurm.conf, or else those that nodes name.
    fn all_partitions(&self) -> Result<Vec<Part>, SiteError> {
        let is_live = self.partitions.iter().any(|part| part.is_from_scontrol);
        let mut parts = Vec::new();
        for part in self.partitions.iter().filter(|part| part.is_from_scontrol == is_live) {
            let wrong = |why: String| SiteError { file: part.file.clone(), line: part.line, why };
            let nodes = self.members(&part.nodes, &mut BTreeSet::new()).map_err(|name| {
                wrong(format!(
                    "'Nodes' of the partition '{}' has '{name}', of which no record tells",
                    part.name
                ))
            })?;
            if !nodes.is_empty() {
                let (name, nodes) = (part.name.clone(), HostList::new(nodes));
                let is_exclusive = part.is_exclusive || self.is_linear;
                parts.push(Part { name, nodes, is_exclusive });
            }
        }
        if self.partitions.is_empty() {
            let mut named: BTreeMap<&str, Vec<String>> = BTreeMap::new();
            for (name, found) in &self.nodes {
                for partition in &found.partitions {
                    named.entry(partition).or_default().push(name.clone());
                }
            }
            let part = |(name, nodes): (&str, Vec<String>)| Part {
                name: name.to_owned(),
                nodes: HostList::new(nodes),
                is_exclusive: self.is_linear,
            };
            parts.extend(named.into_iter().map(part));
        }
        Ok(parts)
    }

    /// The names of members, or one that nobody knows. No set is looked into twice.
    fn members<'a>(
        &'a self,
        members: &'a Members,
        seen: &mut BTreeSet<&'a str>,
    ) -> Result<Vec<String>, String> {
        let all = || self.nodes.iter().map(|(name, _)| name.clone());
        let names = match members {
            Members::All => return Ok(all().collect()),
            Members::WithFeature(feature) => {
                let nodes = self.nodes.iter();
                let has = nodes.filter(|(_, found)| found.shape.features.contains(feature));
                return Ok(has.map(|(name, _)| name.clone()).collect());
            }
            Members::Named(names) => names,
        };
        let mut found = Vec::new();
        for name in names.names() {
            match self.sets.iter().find(|(set, _)| set == name) {
                _ if self.places.contains_key(name) => found.push(name.clone()),
                Some((set, members)) => {
                    if seen.insert(set) {
                        found.extend(self.members(members, seen)?);
                    }
                }
                None if name == "ALL" => found.extend(all()),
                None => return Err(name.clone()),
            }
        }
        Ok(found)
    }
}

/// What the last record of defaults of this kind that has a key says.
fn default_of<'a>(defaults: &[Line<'a>], kind: &str, key: &str) -> Option<&'a str> {
    let of_kind = defaults.iter().rev().filter(|line| line.begins_with(kind));
    of_kind.filter_map(|line| line.get(key)).next()
}

fn members(field: &str, text: &str) -> Result<Members, String> {
    match text {
        "ALL" => Ok(Members::All),
        "" | "(null)" => Ok(Members::Named(HostList::default())),
        text => hosts(field, text).map(Members::Named),
    }
}

fn hosts(field: &str, text: &str) -> Result<HostList, String> {
    text.parse().map_err(|why| format!("'{field}': {why}"))
}

/// The GPUs in a list of generic resources: `gpu:a100:4(S:0-1),shard:8`, `gpu:2` or `gpu`.
fn gpus(gres: &str) -> Result<BTreeMap<String, u32>, String> {
    let mut found: BTreeMap<String, u32> = BTreeMap::new();
    let mut depth = 0;
    // What stands in brackets says which sockets they are on.
    let bare: String = gres
        .chars()
        .filter(|c| {
            depth += i32::from(*c == '(');
            let is_bare = depth == 0;
            depth -= i32::from(*c == ')');
            is_bare
        })
        .collect();
    for part in bare.split(',') {
        let mut words = part.split(':').filter(|word| *word != "no_consume");
        if words.next() != Some("gpu") {
            continue;
        }
        let rest: Vec<&str> = words.collect();
        let count = |text: &str| {
            text.parse::<u32>().map_err(|_| {
                format!("'Gres' is '{gres}', in which '{text}' is not a number of GPUs")
            })
        };
        let (kind, count) = match rest[..] {
            [] => ("", 1),
            [number] if number.starts_with(|c: char| c.is_ascii_digit()) => ("", count(number)?),
            [kind] => (kind, 1),
            [kind, number, ..] => (kind, count(number)?),
        };
        let known = found.entry(kind.to_owned()).or_default();
        *known = known.saturating_add(count);
    }
    found.retain(|_, count| *count > 0);
    Ok(found)
}

#[cfg(test)]
mod tests;
