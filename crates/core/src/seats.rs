//! What jobs ask of nodes that are not all alike, or that they share.
//!
//! A job that a log names a partition of is on nodes of that partition; if the log names none, or one that the machine does not
//! have, on any. How many nodes it has is what its log says, or else as few as hold its processors. Where a partition has nodes of
//! several kinds, the job is on the kind that comes first of those that can hold it, because its nodes are alike.

use std::collections::HashMap;

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
    /// The place of its partition among those of the machine, if it is of one.
    pub(crate) partition: Option<u16>,
    /// Where it can be: a place among the [lists](Seats::groups) of groups of nodes.
    groups: u16,
    /// Whether it has all processors of its nodes.
    pub is_whole: bool,
    /// The same number for jobs that ask the same of the same nodes.
    pub shape: u32,
    /// The same number for jobs that ask the same of a node, of however many of the same nodes.
    pub(crate) part: u32,
    /// The place of its width among [all](Seats::widths).
    pub(crate) width: u32,
}

/// What jobs have in common that ask for the same number of processors of each of the same nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Width {
    /// Where they can be: a place among the lists of groups of nodes.
    groups: u16,
    /// The kind of these nodes.
    pub(crate) kind: u16,
    /// How many processors of a node.
    pub(crate) processors: u32,
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
    widths: Vec<Width>,
}

impl Seats {
    /// What these jobs ask of the nodes of a machine.
    pub fn new<'a>(kinds: &Kinds, jobs: impl Iterator<Item = (&'a Job, Asked)>) -> Self {
        let mut groups = Vec::new();
        let all: Vec<usize> = (0..kinds.groups().len()).collect();
        let is_shared = kinds.partitions().iter().any(|partition| partition.shared);
        let anywhere = Partition::of(kinds, &all, is_shared, &mut groups);
        let partitions: Vec<Partition> = kinds
            .partitions()
            .iter()
            .map(|known| Partition::of(kinds, &known.groups, known.shared, &mut groups))
            .collect();
        let mut shapes: HashMap<(u16, u32, NodeSize), u32> = HashMap::new();
        let mut parts: HashMap<(u16, NodeSize), u32> = HashMap::new();
        let (mut widths, mut known) = (Vec::new(), HashMap::<Width, u32>::new());
        let of_jobs = jobs.map(|(job, asked)| {
            let partition = asked.partition.and_then(|place| partitions.get(place));
            let mut seat = partition.unwrap_or(&anywhere).seat(job, &asked)?;
            let next = shapes.len() as u32;
            seat.partition = asked.partition.map(|place| place as u16);
            seat.shape = *shapes.entry((seat.groups, seat.nodes, seat.each)).or_insert(next);
            let next = parts.len() as u32;
            seat.part = *parts.entry((seat.groups, seat.each)).or_insert(next);
            let Seat { groups, kind, each: NodeSize { processors, .. }, .. } = seat;
            let width = Width { groups, kind, processors };
            seat.width = *known.entry(width).or_insert_with(|| {
                widths.push(width);
                widths.len() as u32 - 1
            });
            Ok(seat)
        });
        let of_jobs = of_jobs.collect();
        Seats { of_jobs, groups, shapes: shapes.len().max(1) as u32, widths }
    }

    /// Keeps only those of some jobs, by their places.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(usize) -> bool) {
        let mut place = 0;
        self.of_jobs.retain(|_| {
            place += 1;
            is_kept(place - 1)
        });
    }

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

    /// What jobs ask for, in order, as far as some node can hold it.
    pub(crate) fn all(&self) -> impl Iterator<Item = Option<&Seat>> {
        self.of_jobs.iter().map(|seat| seat.as_ref().ok())
    }

    /// The widths of all jobs.
    #[inline]
    pub(crate) fn widths(&self) -> &[Width] {
        &self.widths
    }

    /// The groups of nodes that jobs of a width can be on.
    #[inline]
    pub(crate) fn groups_of(&self, width: &Width) -> &[u16] {
        &self.groups[usize::from(width.groups)]
    }

    /// The groups of nodes that a job can be on, in order.
    #[inline]
    pub fn groups(&self, seat: &Seat) -> &[u16] {
        &self.groups[usize::from(seat.groups)]
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

/// What a log says that a job had, as far as it does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// The place of its partition among those of the machine.
    pub partition: Option<usize>,
    /// How many nodes; 0 if nobody knows.
    pub nodes: u32,
    /// Memory on all of them together, in MiB; 0 if nobody knows.
    pub memory_mib: u64,
    /// GPUs on all of them together.
    pub gpus: u32,
}

impl Place {
    fn seat(&self, job: &Job, asked: &Asked, shared: bool) -> Result<Seat, Missing> {
        let Place { size, .. } = *self;
        let (wanted, whole) = (job.processors.max(1), size.processors.max(1));
        let nodes = asked.nodes.clamp(wanted.div_ceil(whole), wanted);
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
        Ok(Seat {
            nodes,
            each,
            kind,
            partition: None,
            groups,
            is_whole,
            shape: 0,
            part: 0,
            width: 0,
        })
    }
}
