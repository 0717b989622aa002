//! What jobs have of nodes that they share: what they ask for of each node, and what Slurm has given them.
//!
//! What cannot be read is [`UNKNOWN`], which is more than any node has: whoever asks for so much, or has it, counts with the whole
//! node.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::Serialize;

use crate::hosts::HostList;
use crate::unread::{UNKNOWN, known};

/// What a job asks for of each of its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Processors: so many that all of its nodes together have at least those it asks for.
    #[serde(serialize_with = "known")]
    pub cpus: u32,
    /// Memory in MiB; [`UNKNOWN`] also for all that a node has.
    #[serde(serialize_with = "known")]
    pub memory_mib: u32,
    /// GPUs.
    #[serde(serialize_with = "known")]
    pub gpus: u32,
    /// Whether it wants its nodes for itself.
    pub is_exclusive: bool,
}

impl Part {
    /// Whether it is not known how much of a node that is, or is known to be all of it.
    pub fn is_whole(&self) -> bool {
        self.is_exclusive || self.cpus == UNKNOWN || self.gpus == UNKNOWN
    }
}

/// What a job has of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// The node.
    pub node: String,
    /// Processors.
    #[serde(serialize_with = "known")]
    pub cpus: u32,
    /// Memory in MiB.
    #[serde(serialize_with = "known")]
    pub memory_mib: u32,
    /// GPUs.
    #[serde(serialize_with = "known")]
    pub gpus: u32,
}

/// What Slurm says of what a job asks for, all its nodes together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) nodes: u32,
    pub(crate) cpus: u32,
    /// `None` if that cannot be read.
    pub(crate) tasks: Option<u32>,
    pub(crate) memory: AskedMemory,
    /// Generic resources of a node, of the whole job, of a task, and of a socket.
    pub(crate) gres: [&'a str; 4],
    pub(crate) is_exclusive: bool,
}

/// How much memory a job asks for, in MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskedMemory {
    OfNode(u32),
    OfProcessor(u32),
    /// All of a node, or nobody can read how much.
    All,
}

impl Asked<'_> {
    /// What that is on each node.
    pub(crate) fn part(&self) -> Part {
        let nodes = match self.nodes {
            0 | UNKNOWN => 1,
            nodes => nodes,
        };
        let spread = |all: u32| if all == UNKNOWN { UNKNOWN } else { all.div_ceil(nodes) };
        let cpus = spread(self.cpus);
        let memory_mib = match self.memory {
            AskedMemory::OfNode(mib) => mib,
            AskedMemory::OfProcessor(mib) => mib.saturating_mul(cpus),
            AskedMemory::All => UNKNOWN,
        };
        let [of_node, of_job, of_task, of_socket] = self.gres.map(gpus);
        let of_tasks = match (of_task, self.tasks) {
            (Some(0), _) => Some(0),
            (Some(each), Some(tasks)) => Some(spread(each.saturating_mul(tasks))),
            _ => None,
        };
        // Nobody says on how many sockets a job will be.
        let of_sockets = of_socket.filter(|gpus| *gpus == 0);
        let all = [of_node, of_job.map(spread), of_tasks, of_sockets];
        let gpus = all.into_iter().map(|gpus| gpus.unwrap_or(UNKNOWN)).max().unwrap_or(UNKNOWN);
        Part { cpus, memory_mib, gpus, is_exclusive: self.is_exclusive }
    }
}

/// How many GPUs are in a list of generic resources: `gres:gpu:2`, `gres/gpu:a100:2(IDX:0-1)`, `gpu`, one beside others. `None` if
/// that cannot be read, or if parts of GPUs are in it.
pub(crate) fn gpus(list: &str) -> Option<u32> {
    let list = list.trim();
    if ["", "N/A", "(null)"].contains(&list) {
        return Some(0);
    }
    let mut depth = 0_i32;
    // What stands in brackets says which ones they are, and may hold commas.
    let bare = list.chars().filter(|c| {
        depth += i32::from(*c == '(');
        let is_bare = depth == 0;
        depth -= i32::from(*c == ')');
        is_bare
    });
    let bare: String = bare.collect();
    bare.split(',').try_fold(0_u32, |sum, one| {
        let name = one.trim().strip_prefix("gres").and_then(|rest| rest.strip_prefix([':', '/']));
        let words: Vec<&str> = name.unwrap_or(one.trim()).split([':', '=']).collect();
        let count = match words[..] {
            ["gpu"] => 1,
            ["gpu", last] | ["gpu", _, last] => match last.parse() {
                Ok(count) => count,
                // One of this type.
                Err(_) if words.len() == 2 && last.starts_with(char::is_alphabetic) => 1,
                Err(_) => return None,
            },
            ["gpu" | "mps" | "shard", ..] => return None,
            _ => 0,
        };
        sum.checked_add(count)
    })
}

/// Memory as Slurm writes it without converting it: `300M`, or `300`, which is MiB too.
pub(crate) fn mebibytes(text: &str) -> Option<u32> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor: u64 = match unit {
        "" | "M" => 1,
        "G" => 1024,
        "T" => 1024 * 1024,
        _ => return None,
    };
    u32::try_from(number.parse::<u64>().ok()?.checked_mul(factor)?).ok()
}

/// A count under a name in a list such as `cpu=2,mem=300M,node=1`.
pub(crate) fn tracked<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = list.split(',').filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// The memory that a job asks for, of what is the least and of what all of its nodes have together: of a node or of a
/// processor. The first number alone does not say which.
pub(crate) fn memory(least: &str, in_all: &str, cpus: u32) -> AskedMemory {
    let Some(least) = mebibytes(least).filter(|mib| *mib > 0) else { return AskedMemory::All };
    let all = tracked(in_all, "mem").and_then(mebibytes);
    match all {
        Some(all) if Some(all) != least.checked_mul(cpus) => AskedMemory::OfNode(least),
        // It is no less than that.
        _ => AskedMemory::OfProcessor(least),
    }
}

/// Reads `scontrol -o -d show job`: what each job has of its nodes, by its number.
///
/// A job's name and comment are its user's, and stand in the same line. What Slurm writes about nodes stands between two keys. Where
/// one of them is there twice, or a number of a job is, somebody may have made it up: of such a job nothing is known.
pub fn details(printed: &str) -> BTreeMap<u32, Vec<Held>> {
    let mut all: BTreeMap<u32, Option<Vec<Held>>> = BTreeMap::new();
    for line in printed.lines() {
        let Some(rest) = line.strip_prefix("JobId=") else { continue };
        let number = rest.split(' ').next().and_then(|number| number.parse().ok());
        let Some(number) = number else { continue };
        match all.entry(number) {
            Entry::Vacant(new) => _ = new.insert(held(line)),
            Entry::Occupied(mut known) => _ = known.insert(None),
        }
    }
    all.into_iter().filter_map(|(number, held)| Some((number, held?))).collect()
}

/// What stands in a line about nodes; `None` if that is not certain.
fn held(line: &str) -> Option<Vec<Held>> {
    let only = |key: &str| {
        let mut places = line.match_indices(key).map(|(place, _)| place);
        places.next().filter(|_| places.next().is_none())
    };
    let (begin, end) = (only(" JOB_GRES=")?, only(" MinCPUsNode=")?);
    let mut held = Vec::new();
    for group in line.get(begin..end)?.split(" Nodes=").skip(1) {
        let mut words = group.split_whitespace();
        let nodes: HostList = words.next()?.parse().ok()?;
        let (mut cpus, mut memory_mib, mut of_gpus) = (None, None, None);
        for word in words {
            match word.split_once('=')? {
                ("CPU_IDs", ids) => cpus = count(ids),
                ("Mem", memory) => memory_mib = mebibytes(memory),
                ("GRES", gres) => of_gpus = gpus(gres),
                _ => (),
            }
        }
        held.extend(nodes.names().iter().map(|node| Held {
            node: node.clone(),
            cpus: cpus.unwrap_or(UNKNOWN),
            memory_mib: memory_mib.unwrap_or(UNKNOWN),
            gpus: of_gpus.unwrap_or(UNKNOWN),
        }));
    }
    (!held.is_empty()).then_some(held)
}

/// How many numbers there are in `0-2,5`.
fn count(numbers: &str) -> Option<u32> {
    numbers.split(',').try_fold(0_u32, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

#[cfg(test)]
mod tests;
