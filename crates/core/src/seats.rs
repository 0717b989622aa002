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

/// What no node has that a job asks for, and by how much it asks for more than there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lack {
    /// What is missing.
    pub of: Missing,
    /// How much the job asks for: of each node, or how many nodes. Memory is in MiB.
    pub asked: u64,
    /// How much there is.
    pub most: u64,
}

/// Where jobs can be: what each partition has.
#[derive(Clone, Debug)]
pub struct Layout {
    anywhere: Partition,
    partitions: Vec<Partition>,
    groups: Vec<Vec<u16>>,
}

impl Layout {
    /// The nodes of a machine.
    pub fn of(kinds: &Kinds) -> Self {
        let mut groups = Vec::new();
        let all: Vec<usize> = (0..kinds.groups().len()).collect();
        let is_shared = kinds.partitions().iter().any(|partition| partition.shared);
        let anywhere = Partition::of(kinds, &all, is_shared, &mut groups);
        let partitions = kinds
            .partitions()
            .iter()
            .map(|known| Partition::of(kinds, &known.groups, known.shared, &mut groups))
            .collect();
        Layout { anywhere, partitions, groups }
    }

    /// What a job asks for that wants so many processors, as long as it has no number among others.
    pub fn seat(&self, processors: u32, asked: &Asked) -> Result<Seat, Lack> {
        let partition = asked.partition.and_then(|place| self.partitions.get(place));
        let seat = partition.unwrap_or(&self.anywhere).seat(processors, asked)?;
        Ok(Seat { partition: asked.partition.map(|place| place as u16), ..seat })
    }
}

/// What all jobs of a workload ask of nodes.
#[derive(Clone, Debug, Default)]
pub struct Seats {
    of_jobs: Vec<Result<Seat, Missing>>,
    groups: Vec<Vec<u16>>,
    shapes: u32,
    widths: Vec<Width>,
    numbers: Numbers,
    /// Whether jobs come that nobody knows beforehand.
    is_open: bool,
}

/// By what jobs ask for: the numbers of those who ask the same.
#[derive(Clone, Debug, Default)]
struct Numbers {
    shapes: HashMap<(u16, u32, NodeSize), u32>,
    parts: HashMap<(u16, NodeSize), u32>,
    widths: HashMap<Width, u32>,
}

/// How many shapes are told apart where nobody knows beforehand how many there will be.
const OPEN_SHAPES: u32 = 1 << 16;

impl Seats {
    /// What these jobs ask of the nodes of a machine.
    pub fn new<'a>(kinds: &Kinds, jobs: impl Iterator<Item = (&'a Job, Asked)>) -> Self {
        let layout = Layout::of(kinds);
        let mut seats = Seats { groups: layout.groups.clone(), ..Seats::default() };
        for (job, asked) in jobs {
            let seat = layout.seat(job.processors, &asked).map_err(|lack| lack.of);
            seats.add(seat);
        }
        seats.shapes = (seats.numbers.shapes.len() as u32).max(1);
        seats
    }

    /// No jobs as yet: they come one by one, and nobody knows what they will ask for.
    pub fn open(layout: &Layout) -> Self {
        let groups = layout.groups.clone();
        Seats { groups, shapes: OPEN_SHAPES, is_open: true, ..Seats::default() }
    }

    /// One job more, which asks for this.
    pub fn add(&mut self, seat: Result<Seat, Missing>) {
        let seat = seat.map(|seat| self.numbered(seat));
        self.of_jobs.push(seat);
    }

    /// The same with its numbers among others.
    fn numbered(&mut self, mut seat: Seat) -> Seat {
        let Numbers { shapes, parts, widths: known } = &mut self.numbers;
        let next = shapes.len() as u32;
        seat.shape = *shapes.entry((seat.groups, seat.nodes, seat.each)).or_insert(next);
        let next = parts.len() as u32;
        seat.part = *parts.entry((seat.groups, seat.each)).or_insert(next);
        let Seat { groups, kind, each: NodeSize { processors, .. }, .. } = seat;
        // Who waits is not told apart by widths where others may come.
        if !self.is_open {
            let width = Width { groups, kind, processors };
            let widths = &mut self.widths;
            seat.width = *known.entry(width).or_insert_with(|| {
                widths.push(width);
                widths.len() as u32 - 1
            });
        }
        seat
    }

    /// Whether jobs come that nobody knows beforehand.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
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
#[derive(Clone, Debug)]
struct Place {
    kind: usize,
    groups: u16,
    nodes: u32,
    size: NodeSize,
}

/// Where the jobs of a partition can be.
#[derive(Clone, Debug)]
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
    fn seat(&self, processors: u32, asked: &Asked) -> Result<Seat, Lack> {
        let mut why = Lack { of: Missing::Processors, asked: processors.into(), most: 0 };
        for place in &self.places {
            match place.seat(processors, asked, self.shared) {
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
    /// Memory on each of them, in MiB; 0 if nobody knows.
    pub each_memory_mib: u32,
    /// Whether it is to have its nodes alone, where these are shared, too.
    pub whole: bool,
}

impl Place {
    fn seat(&self, processors: u32, asked: &Asked, shared: bool) -> Result<Seat, Lack> {
        let Place { size, .. } = *self;
        let (mut wanted, whole) = (processors.max(1), size.processors.max(1));
        let mut nodes = asked.nodes.clamp(wanted.div_ceil(whole), wanted);
        if asked.whole {
            nodes = asked.nodes.max(wanted.div_ceil(whole));
            wanted = nodes.saturating_mul(whole);
        }
        let each = wanted.div_ceil(nodes);
        let memory = u32::try_from(asked.memory_mib.div_ceil(u64::from(nodes))).unwrap_or(u32::MAX);
        let memory = memory.max(asked.each_memory_mib);
        let gpus = asked.gpus.div_ceil(nodes);
        let is_there = |of: Missing, asked: u32, most: u32| match asked <= most {
            true => Ok(()),
            false => Err(Lack { of, asked: asked.into(), most: most.into() }),
        };
        is_there(Missing::Processors, each, size.processors)?;
        is_there(Missing::Memory, memory, size.memory_mib)?;
        is_there(Missing::Gpus, gpus, size.gpus)?;
        is_there(Missing::Nodes, nodes, self.nodes)?;
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
