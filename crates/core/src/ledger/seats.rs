//! Which nodes jobs are on, where nodes are of several kinds or jobs share them.
//!
//! A job gets the free nodes, or those with enough left for it, that have the lowest numbers, in the order of the groups of nodes
//! that it may have. Whoever starts it may also choose them.

use std::iter::Peekable;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Holding, Ledger, Violation};
use crate::machine::{Kinds, NodeSize};
use crate::seats::{Missing, Seat, Seats};
use crate::units::{Instant, JobId, NodeId, Watts};

/// The nodes of a job, in the order in which it got them.
pub type SeatNodes = SmallVec<[NodeId; 4]>;

/// What is free of each node, and who has the rest.
#[derive(Clone, Debug)]
pub struct Seating {
    kinds: Arc<Kinds>,
    seats: Arc<Seats>,
    free: FreeParts,
    /// By job; empty if it has no node.
    held: Vec<SeatNodes>,
    /// What those nodes draw when they are idle that have a job.
    idle_of_busy: Watts,
}

impl Seating {
    /// Empty nodes, of which jobs ask this.
    pub(super) fn new(kinds: Arc<Kinds>, seats: Arc<Seats>) -> Self {
        let free = FreeParts::new(kinds.sizes().collect());
        Seating { kinds, seats, free, held: Vec::new(), idle_of_busy: Watts::ZERO }
    }

    /// What a job asks for, if some node can hold it.
    #[inline]
    pub fn seat(&self, job: JobId) -> Option<&Seat> {
        self.seats.of(job).ok()
    }

    /// What no node has that a job asks for, if none can hold it.
    #[inline]
    pub(crate) fn missing(&self, job: JobId) -> Option<Missing> {
        self.seats.of(job).err()
    }

    /// The nodes of a job that runs.
    #[inline]
    pub fn nodes_of(&self, job: JobId) -> &[NodeId] {
        self.held.get(job.index()).map_or(&[], |nodes| nodes)
    }

    /// The nodes that a job may have, in order.
    pub fn places(&self, seat: &Seat) -> impl Iterator<Item = Range<u32>> + '_ {
        let groups = self.seats.groups(seat);
        groups.iter().map(|group| self.kinds.groups()[usize::from(*group)].nodes.clone())
    }

    /// What is free of a node.
    #[inline]
    pub fn free(&self, node: NodeId) -> &NodeSize {
        &self.free.nodes[node.0 as usize]
    }

    /// The first nodes for a job of those that have enough left, and are also good otherwise; if there are so many.
    pub fn first_for(
        &self,
        seat: &Seat,
        mut is_good: impl FnMut(NodeId) -> bool,
    ) -> Option<SeatNodes> {
        let mut found = SeatNodes::new();
        for place in self.places(seat) {
            let mut from = place.start;
            while let Some(node) = self.free.next(from..place.end, &seat.each) {
                if is_good(NodeId(node)) {
                    found.push(NodeId(node));
                    if found.len() == seat.nodes as usize {
                        return Some(found);
                    }
                }
                from = node + 1;
            }
        }
        None
    }

    /// Whether these are as many different nodes as a job asks for, that it may have, with enough left for it.
    fn can_have(&self, seat: &Seat, nodes: &[NodeId]) -> bool {
        let is_allowed = |node: &NodeId| self.places(seat).any(|place| place.contains(&node.0));
        let mut sorted: SeatNodes = nodes.into();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.len() == seat.nodes as usize
            && nodes.iter().all(|node| is_allowed(node) && self.free(*node).has(&seat.each))
    }

    /// What those nodes draw when they are idle that have a job.
    #[inline]
    pub fn idle_of_busy(&self) -> Watts {
        self.idle_of_busy
    }

    /// What a node draws when it is idle, if it has no job.
    fn idle_of_empty(&self, node: NodeId) -> Watts {
        let kind = self.kinds.kind_of_node(node).map(|kind| &self.kinds.kinds()[kind]);
        let empty = kind.filter(|kind| kind.size == *self.free(node));
        empty.map_or(Watts::ZERO, |kind| kind.node().node().idle)
    }

    fn take(&mut self, job: JobId, each: NodeSize, nodes: SeatNodes) {
        for node in &nodes {
            self.idle_of_busy += self.idle_of_empty(*node);
            self.free.change(*node, |free| free.without(&each).unwrap_or_default());
        }
        if job.index() >= self.held.len() {
            self.held.resize(job.index() + 1, SeatNodes::new());
        }
        self.held[job.index()] = nodes;
    }

    fn give(&mut self, job: JobId) {
        let Some(seat) = self.seats.of(job).ok().copied() else { return };
        let Some(nodes) = self.held.get_mut(job.index()).map(std::mem::take) else { return };
        for node in nodes {
            self.free.change(node, |free| free.with(&seat.each));
            self.idle_of_busy -= self.idle_of_empty(node);
        }
    }

    /// The books added up again.
    fn check(&self, running: impl Iterator<Item = JobId>) -> Result<(), String> {
        let mut free: Vec<NodeSize> = self.kinds.sizes().collect();
        let mut count = 0;
        for job in running {
            let (nodes, seat) = (self.nodes_of(job), self.seats.of(job));
            let Ok(seat) = seat else { return Err(format!("{job} runs, but no node can hold it")) };
            if nodes.len() != seat.nodes as usize {
                return Err(format!("{job} asks for {} nodes and is on {nodes:?}", seat.nodes));
            }
            count += 1;
            for node in nodes {
                let free = &mut free[node.0 as usize];
                *free = free
                    .without(&seat.each)
                    .ok_or_else(|| format!("{node} has less than its jobs, one of them {job}"))?;
            }
        }
        match (
            self.held.iter().filter(|nodes| !nodes.is_empty()).count() == count,
            free == self.free.nodes,
        ) {
            (true, true) => self.free.check(),
            (false, _) => Err("somebody who does not run is on nodes".to_owned()),
            (_, false) => Err("what is free of nodes is not what their jobs leave".to_owned()),
        }
    }
}

impl Ledger {
    /// The same empty ledger, in which each job is on nodes that have what it asks for.
    pub(crate) fn seated(self, kinds: &Arc<Kinds>, seats: &Arc<Seats>) -> Self {
        let seating = Seating::new(kinds.clone(), seats.clone());
        Ledger { seating: Some(Arc::new(seating)), ..self }
    }

    /// Who is on which nodes, where nodes are of several kinds or jobs share them.
    #[inline]
    pub fn seating(&self) -> Option<&Arc<Seating>> {
        self.seating.as_ref()
    }

    /// The nodes for a job that starts now: those that were chosen for it, or else the first that can have it.
    pub(super) fn nodes_for(
        &self,
        job: JobId,
        chosen: Option<&[NodeId]>,
    ) -> Result<Option<SeatNodes>, Violation> {
        let Some(seating) = &self.seating else { return Ok(None) };
        let refused = || Violation::Seats { job };
        let seat = seating.seat(job).ok_or_else(refused)?;
        let nodes = match chosen {
            Some(nodes) => seating.can_have(seat, nodes).then(|| nodes.into()),
            None => seating.first_for(seat, |_| true),
        };
        nodes.map(Some).ok_or_else(refused)
    }

    pub(super) fn take_seats(&mut self, job: JobId, nodes: Option<SeatNodes>) {
        let (Some(seating), Some(nodes)) = (&mut self.seating, nodes) else { return };
        let seating = Arc::make_mut(seating);
        if let Some(each) = seating.seat(job).map(|seat| seat.each) {
            seating.take(job, each, nodes);
        }
    }

    #[inline(never)]
    pub(super) fn give_seats(&mut self, job: JobId) {
        if let Some(seating) = &mut self.seating {
            Arc::make_mut(seating).give(job);
        }
    }

    pub(super) fn check_seats(&self) -> Result<(), String> {
        let Some(seating) = &self.seating else { return Ok(()) };
        seating.check(self.running.iter().map(|holding| holding.job))
    }

    /// The first instant at which nodes for a job will be there that waits, if nobody else starts but those in `taken`.
    pub(crate) fn seats_ahead(&self, job: JobId, taken: &Taken) -> Option<Instant> {
        let seat = self.seating.as_ref()?.seat(job)?;
        let mut ahead = Ahead::new(self, self.running.iter(), seat, taken)?;
        while !ahead.is_enough() {
            ahead.go_on()?;
        }
        Some(ahead.now)
    }

    /// The first nodes for a job at an instant to come, and what is free of each then.
    pub(crate) fn free_seats(
        &self,
        job: JobId,
        taken: &Taken,
        at: Instant,
    ) -> Vec<(NodeId, NodeSize)> {
        let seat = self.seating.as_ref().and_then(|seating| seating.seat(job));
        let Some(seat) = seat else { return Vec::new() };
        let Some(mut ahead) = Ahead::new(self, self.running.iter(), seat, taken) else {
            return Vec::new();
        };
        while ahead.next().is_some_and(|next| next <= at) {
            ahead.go_on();
        }
        ahead.first()
    }
}

/// What jobs will have that are about to start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken {
    /// By node, in order: what they take of it.
    pub(crate) of_nodes: Vec<(NodeId, NodeSize)>,
    /// When each gives back what, soonest first.
    pub(crate) ends: Vec<(Instant, NodeSize, SeatNodes)>,
}

impl Taken {
    /// What is taken of a node.
    #[inline]
    pub(crate) fn of(&self, node: NodeId) -> NodeSize {
        match self.of_nodes.binary_search_by_key(&node, |taken| taken.0) {
            Ok(place) => self.of_nodes[place].1,
            Err(_) => NodeSize::default(),
        }
    }

    /// A job takes so much of nodes until then.
    pub(crate) fn add(&mut self, until: Instant, each: NodeSize, nodes: &[NodeId]) {
        for node in nodes {
            match self.of_nodes.binary_search_by_key(node, |taken| taken.0) {
                Ok(place) => self.of_nodes[place].1 = self.of_nodes[place].1.with(&each),
                Err(place) => self.of_nodes.insert(place, (*node, each)),
            }
        }
        let place = self.ends.partition_point(|taken| taken.0 <= until);
        self.ends.insert(place, (until, each, nodes.into()));
    }
}

/// The nodes that a job may have, while time goes on.
struct Ahead<'a, R: Iterator<Item = &'a Holding>> {
    ledger: &'a Ledger,
    seating: &'a Seating,
    seat: &'a Seat,
    now: Instant,
    running: Peekable<R>,
    starting: Peekable<std::slice::Iter<'a, (Instant, NodeSize, SeatNodes)>>,
    places: SmallVec<[Range<u32>; 4]>,
    /// By place: what is free of its nodes.
    free: SmallVec<[Vec<NodeSize>; 4]>,
    /// How many have enough.
    enough: u32,
}

impl<'a, R: Iterator<Item = &'a Holding>> Ahead<'a, R> {
    /// From now on, while these run.
    fn new(ledger: &'a Ledger, running: R, seat: &'a Seat, taken: &'a Taken) -> Option<Self> {
        let seating = ledger.seating.as_deref()?;
        let places: SmallVec<[Range<u32>; 4]> = seating.places(seat).collect();
        let of = |place: &Range<u32>| {
            seating.free.nodes[place.start as usize..place.end as usize].to_vec()
        };
        let free = places.iter().map(of).collect();
        let (running, starting) = (running.peekable(), taken.ends.iter().peekable());
        let now = ledger.now;
        let mut ahead =
            Ahead { ledger, seating, seat, now, running, starting, places, free, enough: 0 };
        for (node, taken) in &taken.of_nodes {
            if let Some(free) = ahead.at(*node) {
                *free = free.without(taken).unwrap_or_default();
            }
        }
        let all = ahead.free.iter().flatten();
        ahead.enough = all.filter(|free| free.has(&seat.each)).count() as u32;
        Some(ahead)
    }

    /// When somebody gives something back next.
    fn next(&mut self) -> Option<Instant> {
        let running = self.running.peek().map(|holding| holding.until);
        let starting = self.starting.peek().map(|starting| starting.0);
        // Whoever should have ended gives back at once.
        running.into_iter().chain(starting).min().map(|next| next.max(self.ledger.now))
    }

    /// Goes on to that time.
    fn go_on(&mut self) -> Option<()> {
        let next = self.next()?;
        self.now = next;
        while let Some(holding) = self.running.next_if(|holding| holding.until <= next) {
            if let Some(seat) = self.seating.seat(holding.job) {
                let nodes = self.seating.nodes_of(holding.job);
                nodes.iter().for_each(|node| self.give(*node, &seat.each));
            }
        }
        while let Some((_, each, nodes)) = self.starting.next_if(|starting| starting.0 <= next) {
            nodes.iter().for_each(|node| self.give(*node, each));
        }
        Some(())
    }

    fn at(&mut self, node: NodeId) -> Option<&mut NodeSize> {
        let place = self.places.iter().position(|place| place.contains(&node.0))?;
        let first = self.places[place].start;
        self.free[place].get_mut((node.0 - first) as usize)
    }

    fn give(&mut self, node: NodeId, each: &NodeSize) {
        let wanted = self.seat.each;
        let Some(free) = self.at(node) else { return };
        let had = free.has(&wanted);
        *free = free.with(each);
        let more = !had && free.has(&wanted);
        self.enough += u32::from(more);
    }

    fn is_enough(&self) -> bool {
        self.enough >= self.seat.nodes
    }

    /// The first of those that have enough, with what is free of each.
    fn first(&self) -> Vec<(NodeId, NodeSize)> {
        let all = self.places.iter().zip(&self.free);
        let all = all.flat_map(|(place, free)| place.clone().map(NodeId).zip(free.iter().copied()));
        let good = all.filter(|(_, free)| free.has(&self.seat.each));
        good.take(self.seat.nodes as usize).collect()
    }
}

/// What is free of each node, with the most of everything in each block of nodes, so that full ones are stepped over.
#[derive(Clone, Debug)]
struct FreeParts {
    nodes: Vec<NodeSize>,
    blocks: Vec<NodeSize>,
    /// Of blocks of blocks.
    above: Vec<NodeSize>,
}

/// Nodes in a block, and blocks in the next.
const BLOCK: usize = 32;

impl FreeParts {
    fn new(nodes: Vec<NodeSize>) -> Self {
        let blocks: Vec<NodeSize> = nodes.chunks(BLOCK).map(most).collect();
        let above = blocks.chunks(BLOCK).map(most).collect();
        FreeParts { nodes, blocks, above }
    }

    /// The first node of these that has so much.
    fn next(&self, places: Range<u32>, wanted: &NodeSize) -> Option<u32> {
        let (mut at, end) = (places.start as usize, places.end as usize);
        while at < end {
            if at.is_multiple_of(BLOCK) {
                let block = at / BLOCK;
                if block.is_multiple_of(BLOCK) && !self.above[block / BLOCK].has(wanted) {
                    at += BLOCK * BLOCK;
                    continue;
                }
                if !self.blocks[block].has(wanted) {
                    at += BLOCK;
                    continue;
                }
            }
            if self.nodes[at].has(wanted) {
                return Some(at as u32);
            }
            at += 1;
        }
        None
    }

    fn change(&mut self, node: NodeId, to: impl FnOnce(&NodeSize) -> NodeSize) {
        let at = node.0 as usize;
        self.nodes[at] = to(&self.nodes[at]);
        let block = at / BLOCK;
        let renewed = most(of_block(&self.nodes, block));
        if std::mem::replace(&mut self.blocks[block], renewed) != renewed {
            self.above[block / BLOCK] = most(of_block(&self.blocks, block / BLOCK));
        }
    }

    fn check(&self) -> Result<(), String> {
        let FreeParts { blocks, above, .. } = FreeParts::new(self.nodes.clone());
        match (blocks, above) == (self.blocks.clone(), self.above.clone()) {
            true => Ok(()),
            false => Err("blocks of nodes have other sums than their nodes".to_owned()),
        }
    }
}

fn of_block(all: &[NodeSize], block: usize) -> &[NodeSize] {
    &all[block * BLOCK..all.len().min((block + 1) * BLOCK)]
}

fn most(of: &[NodeSize]) -> NodeSize {
    of.iter().copied().fold(NodeSize::default(), NodeSize::most)
}
