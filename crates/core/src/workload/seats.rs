//! What jobs ask of nodes that are not all alike, or that they share.
//!
//! A job that a log names a partition of is on nodes of that partition; if the log names none, or one that the machine does not
//! have, on any. How many nodes it has is what its log says, or else as few as hold its processors. Where a partition has nodes of
//! several kinds, the job is on the kind that comes first of those that can hold it, because its nodes are alike.

use std::collections::HashMap;
use std::sync::Arc;

use super::Workload;
use crate::job::Job;
use crate::machine::{Kinds, NodeSize};
use crate::units::JobId;

/// What a job asks of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// How many nodes it is on.
    pub nodes: u32,
    /// What it has of each of them.
    pub each: NodeSize,
    /// The kind of its nodes.
    pub kind: u16,
    /// Where it can be: a place among the [lists](Seats::groups) of groups of nodes.
    groups: u16,
    /// Whether it has all processors of its nodes.
    pub is_whole: bool,
    /// The same number for jobs that ask the same of the same nodes.
    pub shape: u32,
}

/// Why no node can hold a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It asks for more processors than all nodes of its partition have, or more of a node than one has.
    Processors,
    /// No node has as much memory.
    Memory,
    /// No node has as many GPUs.
    Gpus,
    /// There are not so many nodes.
    Nodes,
}

impl Missing {
    /// The reason in a few words.
    pub fn reason(self) -> &'static str {
        match self {
            Missing::Processors => {
                "needs more processors than its partition has in nodes of one kind"
            }
            Missing::Memory => "needs more memory of a node than any node of its partition has",
            Missing::Gpus => "needs more GPUs of a node than any node of its partition has",
            Missing::Nodes => "needs more nodes than its partition has of one kind",
        }
    }
}

/// What all jobs of a workload ask of nodes.
#[derive(Clone, Debug, Default)]
pub struct Seats {
    of_jobs: Vec<Result<Seat, Missing>>,
    groups: Vec<Vec<u16>>,
    shapes: u32,
    strangers: usize,
}

impl Seats {
    /// How many shapes there are.
    pub(crate) fn shapes(&self) -> u32 {
        self.shapes
    }

    /// What a job asks for, or why no node can hold it.
    #[inline]
    pub fn of(&self, job: JobId) -> Result<&Seat, Missing> {
        self.of_jobs
            .get(job.index())
            .map_or(Err(Missing::Nodes), |seat| seat.as_ref().map_err(|why| *why))
    }

    /// The groups of nodes that a job can be on, in order.
    #[inline]
    pub fn groups(&self, seat: &Seat) -> &[u16] {
        &self.groups[usize::from(seat.groups)]
    }

    /// How many jobs are of no partition that the machine has.
    pub fn strangers(&self) -> usize {
        self.strangers
    }
}

/// The nodes of one kind that the jobs of a partition may have.
struct Place {
    kind: usize,
    groups: u16,
    nodes: u32,
    size: NodeSize,
}

/// Where the jobs of a partition can be.
struct Partition {
    places: Vec<Place>,
    shared: bool,
}

impl Partition {
    /// These groups of nodes by their kinds, in the order in which they are named.
    fn of(kinds: &Kinds, groups: &[usize], shared: bool, lists: &mut Vec<Vec<u16>>) -> Self {
        let mut places: Vec<(usize, Vec<u16>)> = Vec::new();
        for group in groups {
            let (kind, at) = (kinds.groups()[*group].kind, *group as u16);
            match places.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, list)) => list.push(at),
                None => places.push((kind, vec![at])),
            }
        }
        let places = places.into_iter().map(|(kind, list)| {
            let nodes = list.iter().map(|at| kinds.groups()[usize::from(*at)].nodes.len() as u32);
            let (nodes, size) = (nodes.sum(), kinds.kinds()[kind].size);
            let place = lists.iter().position(|known| *known == list).unwrap_or_else(|| {
                lists.push(list);
                lists.len() - 1
            });
            Place { kind, groups: place as u16, nodes, size }
        });
        Partition { places: places.collect(), shared }
    }

    /// What a job asks for here.
    fn seat(&self, job: &Job, asked: &Asked) -> Result<Seat, Missing> {
        let mut why = Missing::Processors;
        for place in &self.places {
            match place.seat(job, asked, self.shared) {
                Ok(seat) => return Ok(seat),
                Err(other) => why = other,
            }
        }
        Err(why)
    }
}

/// What a log says that a job had.
struct Asked {
    nodes: Option<u32>,
    memory_mib: u64,
    gpus: u32,
}

impl Place {
    fn seat(&self, job: &Job, asked: &Asked, shared: bool) -> Result<Seat, Missing> {
        let Place { size, .. } = *self;
        let (wanted, whole) = (job.processors.max(1), size.processors.max(1));
        let nodes = asked.nodes.unwrap_or(0).clamp(wanted.div_ceil(whole), wanted);
        let each = wanted.div_ceil(nodes);
        let memory = u32::try_from(asked.memory_mib.div_ceil(u64::from(nodes))).unwrap_or(u32::MAX);
        let gpus = asked.gpus.div_ceil(nodes);
        if each > size.processors {
            return Err(Missing::Processors);
        }
        if memory > size.memory_mib {
            return Err(Missing::Memory);
        }
        if gpus > size.gpus {
            return Err(Missing::Gpus);
        }
        if nodes > self.nodes {
            return Err(Missing::Nodes);
        }
        let is_whole = !shared || each == whole;
        let each = match is_whole {
            true => size,
            // Where nobody says how much memory nodes have, nobody runs short of it.
            false => {
                let memory_mib = if size.memory_mib == u32::MAX { 0 } else { memory };
                NodeSize { processors: each, memory_mib, gpus }
            }
        };
        let (kind, groups) = (self.kind as u16, self.groups);
        Ok(Seat { nodes, each, kind, groups, is_whole, shape: 0 })
    }
}

impl Workload {
    /// Puts jobs on nodes of several kinds, or that they share: each asks for processors from now on, all those of the nodes that
    /// it has alone.
    pub fn seat(&mut self, kinds: &Kinds) {
        let mut lists = Vec::new();
        let all: Vec<usize> = (0..kinds.groups().len()).collect();
        let is_shared = kinds.partitions().iter().any(|partition| partition.shared);
        let anywhere = Partition::of(kinds, &all, is_shared, &mut lists);
        let known = kinds.partitions().iter();
        let known: Vec<(&str, Partition)> = known
            .map(|partition| {
                let places = Partition::of(kinds, &partition.groups, partition.shared, &mut lists);
                (partition.name.as_str(), places)
            })
            .collect();
        // Most logs have few partitions and many jobs.
        let most = self.partitions.of_jobs.iter().max().copied().unwrap_or(0);
        let by_number = |number: u32| {
            let name = self.partition_name(number);
            known.iter().position(|(known, _)| *known == name)
        };
        let of_number: Vec<Option<usize>> = match most {
            0..100_000 => (0..=most).map(by_number).collect(),
            _ => Vec::new(),
        };
        let mut strangers = 0;
        let mut seats: Vec<Result<Seat, Missing>> = (0..)
            .map(JobId)
            .zip(&self.jobs)
            .map(|(id, job)| {
                let number = self.partition(id);
                let named = number.and_then(|number| match of_number.get(number as usize) {
                    Some(found) => *found,
                    None => by_number(number),
                });
                strangers += usize::from(named.is_none());
                let placed = self.placed.of_jobs.get(id.index()).copied().unwrap_or_default();
                let nodes = (placed.nodes > 0).then_some(placed.nodes);
                let asked = Asked { nodes, memory_mib: placed.memory_mib, gpus: placed.gpus };
                named.map_or(&anywhere, |place| &known[place].1).seat(job, &asked)
            })
            .collect();
        let mut shapes: HashMap<(u16, u32, NodeSize), u32> = HashMap::new();
        for seat in seats.iter_mut().flatten() {
            let next = shapes.len() as u32;
            seat.shape = *shapes.entry((seat.groups, seat.nodes, seat.each)).or_insert(next);
        }
        for (job, seat) in self.jobs.iter_mut().zip(&seats) {
            job.nodes = match seat {
                Ok(seat) => seat.nodes.saturating_mul(seat.each.processors),
                Err(_) => job.processors.max(1),
            };
        }
        let shapes = shapes.len().max(1) as u32;
        self.seats = Some(Arc::new(Seats { of_jobs: seats, groups: lists, shapes, strangers }));
    }

    /// What jobs ask of nodes, where these are of several kinds or shared.
    pub fn seats(&self) -> Option<&Arc<Seats>> {
        self.seats.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::machine::{Machine, check_text};
    use crate::units::{Instant, Span};
    use crate::workload::{Partitions, Placed};

    fn machine() -> Machine {
        let text = "processors_per_node = 8\n[[partition]]\nname = 'own'\nnodes = 4\n\
            [[partition]]\nname = 'cpu'\nnodes = 4\nshared = true\nmemory = '16GiB'\n\
            [[partition]]\nname = 'gpu'\nnodes = 2\nprocessors_per_node = 4\nshared = true\npower.node = '900W'\n\
            power.gpus = 2\npower.gpu = '300W'\n[[partition]]\nname = 'any'\nof = ['gpu', 'cpu']\nshared = true\n";
        check_text(text, "site", Path::new("")).unwrap().choose(&[]).unwrap()
    }

    fn seat(partition: u32, processors: u32, placed: Placed) -> Result<Seat, Missing> {
        let machine = machine();
        let names = ["own", "cpu", "gpu", "any"].map(str::to_owned);
        let partitions = Partitions::new(vec![partition], (1..).zip(names).collect());
        let job = Job::new(1, Instant::ZERO, processors, Span::from_secs(9));
        let (jobs, times) = (vec![job], vec![Span::from_secs(9)]);
        let mut workload = Workload::from_parts("log".to_owned(), jobs, times, vec![], partitions);
        workload.set_placed(Vec::new(), |_| placed);
        workload.seat(machine.kinds.as_deref().unwrap());
        workload.seats().unwrap().of(JobId(0)).copied()
    }

    #[test]
    fn jobs_ask_for_parts_of_nodes_where_these_are_shared() {
        let nothing = Placed::default();
        let plain = |partition, processors| {
            seat(partition, processors, nothing)
                .map(|seat| (seat.nodes, seat.each.processors, seat.is_whole))
        };
        assert_eq!(plain(1, 3), Ok((1, 8, true)));
        assert_eq!(plain(2, 3), Ok((1, 3, false)));
        assert_eq!(plain(2, 8), Ok((1, 8, true)));
        assert_eq!(plain(2, 12), Ok((2, 6, false)));
        let spread = Placed { nodes: 3, ..nothing };
        assert_eq!(seat(2, 12, spread).map(|seat| (seat.nodes, seat.each.processors)), Ok((3, 4)));
        // More nodes than processors is a mistake of the log.
        let wide = Placed { nodes: 9, ..nothing };
        assert_eq!(seat(2, 2, wide).map(|seat| (seat.nodes, seat.each.processors)), Ok((2, 1)));
    }

    #[test]
    fn jobs_are_on_the_first_kind_that_can_hold_them() {
        let nothing = Placed::default();
        let kind = |processors, placed| seat(4, processors, placed).map(|seat| seat.kind);
        assert_eq!(kind(4, nothing), Ok(2));
        assert_eq!(kind(9, nothing), Ok(1));
        assert_eq!(kind(2, Placed { gpus: 2, ..nothing }), Ok(2));
    }

    #[test]
    fn what_no_node_has_is_named() {
        let nothing = Placed::default();
        let missing = |processors, placed| seat(2, processors, placed).unwrap_err();
        assert_eq!(missing(33, nothing), Missing::Nodes);
        assert_eq!(missing(1, Placed { memory_mib: 17 << 10, ..nothing }), Missing::Memory);
        assert_eq!(missing(1, Placed { gpus: 1, ..nothing }), Missing::Gpus);
        assert!(seat(2, 1, Placed { memory_mib: 16 << 10, ..nothing }).is_ok());
    }
}
