//! Which nodes jobs are on, where nodes are of several kinds or jobs share them.
//!
//! A job gets the free nodes, or those with enough left for it, that have the lowest numbers, in the order of the groups of nodes
//! that it may have. Whoever starts it may also choose them.

mod ahead;
mod by_node;
mod left;

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Holding, Ledger, Running, Violation};
use crate::machine::{Kind, Kinds, NodeSize};
use crate::seats::{Missing, Seat, Seats};
use crate::units::{Instant, JobId, NodeId, Watts};
pub(crate) use ahead::{Foreseen, Wanted};
pub(crate) use by_node::ByNode;
use left::{Left, Levels};

/// The nodes of a job, in the order in which it got them.
pub type SeatNodes = SmallVec<[NodeId; 4]>;

/// What is free of each node, and who has the rest.
#[derive(Clone, Debug)]
pub struct Seating {
    kinds: Arc<Kinds>,
    seats: Arc<Seats>,
    left: Left,
    /// By job; empty if it has no node.
    held: Vec<SeatNodes>,
    /// What jobs hold that run, by the kind of their nodes.
    running: Vec<Running>,
    /// What those nodes draw when they are idle that have a job.
    idle_of_busy: Watts,
}

impl Seating {
    /// Empty nodes, of which jobs ask this.
    pub(super) fn new(kinds: Arc<Kinds>, seats: Arc<Seats>) -> Self {
        let left = Left::all(&kinds, &seats);
        let running = vec![Running::default(); kinds.kinds().len()];
        Seating { kinds, seats, left, held: Vec::new(), running, idle_of_busy: Watts::ZERO }
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

    /// By node: the jobs that have a part of it, by their places.
    pub fn jobs_of_nodes(&self) -> Vec<Vec<JobId>> {
        let mut jobs = vec![Vec::new(); self.nodes() as usize];
        for (job, nodes) in (0..).map(JobId).zip(&self.held) {
            nodes.iter().for_each(|node| jobs[node.0 as usize].push(job));
        }
        jobs
    }

    /// Whether there are nodes now that have what a job asks for.
    pub fn has_room(&self, job: JobId) -> bool {
        self.seat(job).is_some_and(|seat| self.first_for(seat, |_| true).is_ok())
    }

    /// How many nodes there are of which nobody has anything.
    pub fn idle_nodes(&self) -> u32 {
        let whole = self.kinds.sizes().enumerate();
        whole.filter(|(node, size)| self.free(NodeId(*node as u32)) == size).count() as u32
    }

    /// How many nodes there are.
    pub(crate) fn nodes(&self) -> u32 {
        self.kinds.nodes()
    }

    /// The nodes by their kinds.
    #[inline]
    pub(crate) fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// The nodes that a job may have, in order.
    pub fn places(&self, seat: &Seat) -> impl Iterator<Item = Range<u32>> + '_ {
        let groups = self.seats.groups(seat);
        groups.iter().map(|group| self.kinds.groups()[usize::from(*group)].nodes.clone())
    }

    /// What a job asks for, or what no node has that it asks for.
    pub fn asked(&self, job: JobId) -> Result<Seat, Missing> {
        self.seats.of(job).copied()
    }

    /// What is free of each node, in order.
    pub fn free_of_nodes(&self) -> impl Iterator<Item = NodeSize> + '_ {
        (0..self.nodes()).map(|node| *self.free(NodeId(node)))
    }

    /// What is free of a node.
    #[inline]
    pub fn free(&self, node: NodeId) -> &NodeSize {
        self.left.of_node(node)
    }

    /// The first nodes for a job of those that have enough left, and are also good otherwise. If there are not so many: a number
    /// of nodes that is not there, either, and is as small as was found out.
    pub(crate) fn first_for(
        &self,
        seat: &Seat,
        is_good: impl FnMut(NodeId) -> bool,
    ) -> Result<SeatNodes, u32> {
        let most = self.left.at_most(self.seats.groups(seat), &seat.each);
        if most < seat.nodes {
            return Err(most + 1);
        }
        let found = self.first(seat, seat.nodes, is_good);
        let count = found.len() as u32;
        if count < seat.nodes { Err(count + 1) } else { Ok(found) }
    }

    /// So many of them, or all if there are fewer.
    fn first(&self, seat: &Seat, most: u32, mut is_good: impl FnMut(NodeId) -> bool) -> SeatNodes {
        let mut found = SeatNodes::with_capacity(most as usize);
        for group in self.seats.groups(seat) {
            let goes_on = self.left.visit(*group, &seat.each, |node| {
                if is_good(NodeId(node)) {
                    found.push(NodeId(node));
                }
                found.len() < most as usize
            });
            if !goes_on {
                break;
            }
        }
        found
    }

    /// Whether these are as many different nodes as a job asks for, that it may have, with enough left for it.
    fn can_have(&self, seat: &Seat, nodes: &[NodeId]) -> bool {
        let mut place = 0..0;
        let mut is_allowed = |node: &NodeId| {
            // Most of the time it is in the group of the node before.
            if !place.contains(&node.0) {
                place = self.places(seat).find(|place| place.contains(&node.0)).unwrap_or_default();
            }
            !place.is_empty()
        };
        let are_different = nodes.is_sorted_by(|one, next| one < next) || {
            let mut sorted: SeatNodes = nodes.into();
            sorted.sort_unstable();
            sorted.is_sorted_by(|one, next| one < next)
        };
        nodes.len() == seat.nodes as usize
            && are_different
            && nodes.iter().all(|node| is_allowed(node) && self.free(*node).has(&seat.each))
    }

    /// What those nodes draw when they are idle that have a job.
    #[inline]
    pub fn idle_of_busy(&self) -> Watts {
        self.idle_of_busy
    }

    /// What the free processors of a node could add at most.
    pub(super) fn unused(&self, node: NodeId) -> Watts {
        let kind = self.kinds.kind_of_node(node).map(|place| &self.kinds.kinds()[place]);
        kind.map_or(Watts::ZERO, |kind| added_by(kind, self.free(node).processors))
    }

    /// What a job could add at most on each of its nodes.
    pub(super) fn could_add(&self, seat: &Seat) -> Watts {
        added_by(&self.kinds.kinds()[usize::from(seat.kind)], seat.each.processors)
    }

    /// The size of a kind of nodes, and what such a node draws when it is idle.
    fn kind(&self, seat: &Seat) -> (NodeSize, Watts) {
        let kind = &self.kinds.kinds()[usize::from(seat.kind)];
        (kind.size, kind.node().node().idle)
    }

    fn take(&mut self, job: JobId, seat: &Seat, nodes: SeatNodes) {
        let (size, idle) = self.kind(seat);
        let mut empty = 0;
        self.left.take(&nodes, &seat.each, |was| empty += u32::from(*was == size));
        self.idle_of_busy += idle * empty;
        if job.index() >= self.held.len() {
            self.held.resize(job.index() + 1, SeatNodes::new());
        }
        self.held[job.index()] = nodes;
    }

    fn give(&mut self, job: JobId) {
        let Some(seat) = self.seats.of(job).ok().copied() else { return };
        let Some(nodes) = self.held.get_mut(job.index()).map(std::mem::take) else { return };
        let (size, idle) = self.kind(&seat);
        let mut empty = 0;
        self.left.give(&nodes, &seat.each, |is| empty += u32::from(*is == size));
        self.idle_of_busy -= idle * empty;
    }

    /// What jobs ask for.
    #[inline]
    pub(crate) fn seats(&self) -> &Seats {
        &self.seats
    }

    /// How many groups of nodes there are.
    #[inline]
    pub(crate) fn groups(&self) -> usize {
        self.kinds.groups().len()
    }

    /// The nodes of a group by the processors that they have left.
    #[inline]
    pub(crate) fn levels(&self, group: u16) -> &Levels {
        self.left.levels(group)
    }

    /// The group of a node.
    #[inline]
    pub(crate) fn group_of(&self, node: NodeId) -> u16 {
        self.left.group_of(node)
    }

    /// Who runs on nodes of a kind, soonest back first.
    fn running_on(&self, kind: u16) -> impl Iterator<Item = &Holding> {
        self.running[usize::from(kind)].iter()
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
        match self.held.iter().filter(|nodes| !nodes.is_empty()).count() == count {
            true => self.left.check(&free),
            false => Err("somebody who does not run is on nodes".to_owned()),
        }
    }
}

/// What so many processors of a node could add at most, rounded down: those of a node never come to more than the node.
fn added_by(kind: &Kind, processors: u32) -> Watts {
    let added = u128::from(kind.node().added_power().milliwatts()) * u128::from(processors);
    Watts::from_milliwatts((added / u128::from(kind.size.processors.max(1))) as u64)
}

impl Ledger {
    /// The same empty ledger, in which each job is on nodes that have what it asks for.
    pub(crate) fn seated(self, kinds: &Arc<Kinds>, seats: &Arc<Seats>) -> Self {
        let seating = Seating::new(kinds.clone(), seats.clone());
        let feeds = self.feeds.map(|feeds| feeds.seated(&seating));
        // It knows which nodes are whose, also for feeds.
        Ledger { seating: Some(Arc::new(seating)), placement: None, feeds, ..self }
    }

    /// The next job that comes asks this of nodes, where that was not known beforehand.
    pub(crate) fn take_seat(&mut self, seat: Result<Seat, Missing>) {
        if let Some(seating) = &mut self.seating {
            Arc::make_mut(&mut Arc::make_mut(seating).seats).add(seat);
        }
    }

    /// A job is found on these nodes, of which it has what it asks for: refused if they are others than it can have, or if others
    /// have that.
    pub(super) fn found_seats(&self, job: JobId, nodes: &[NodeId]) -> Result<SeatNodes, Violation> {
        let refused = Violation::Seats { job };
        let Some(seating) = &self.seating else { return Err(refused) };
        match seating.seat(job).filter(|seat| seating.can_have(seat, nodes)) {
            Some(_) => Ok(nodes.into()),
            None => Err(refused),
        }
    }

    /// Who is on which nodes, where nodes are of several kinds or jobs share them.
    #[inline]
    pub fn seating(&self) -> Option<&Arc<Seating>> {
        self.seating.as_ref()
    }

    /// The nodes for a job that starts now: those that were chosen for it, or else the first that can have it.
    pub(super) fn nodes_for(
        &self,
        holding: &Holding,
        chosen: Option<&[NodeId]>,
    ) -> Result<Option<SeatNodes>, Violation> {
        let Some(seating) = &self.seating else { return Ok(None) };
        let refused = || Violation::Seats { job: holding.job };
        let seat = seating.seat(holding.job).ok_or_else(refused)?;
        let Some(nodes) = chosen else {
            return self.seats_fed(seating, seat, holding).map(Some);
        };
        if !seating.can_have(seat, nodes) {
            return Err(refused());
        }
        self.can_feed_on(nodes, holding)?;
        Ok(Some(nodes.into()))
    }

    pub(super) fn take_seats(&mut self, job: JobId, nodes: Option<SeatNodes>) {
        let (Some(seating), Some(nodes)) = (&mut self.seating, nodes) else { return };
        let seating = Arc::make_mut(seating);
        if let Some(seat) = seating.seat(job).copied() {
            seating.take(job, &seat, nodes);
        }
    }

    #[inline(never)]
    pub(super) fn give_seats(&mut self, job: JobId) {
        if let Some(seating) = &mut self.seating {
            Arc::make_mut(seating).give(job);
        }
    }

    /// A job that is on nodes holds this from now on.
    #[inline(never)]
    pub(super) fn note_seated(&mut self, holding: Holding) {
        let Some(seating) = &mut self.seating else { return };
        let seating = Arc::make_mut(seating);
        if let Some(kind) = seating.seat(holding.job).map(|seat| seat.kind) {
            seating.running[usize::from(kind)].insert(holding);
        }
    }

    /// It does not hold that any more.
    #[inline(never)]
    pub(super) fn note_unseated(&mut self, holding: &Holding) {
        let Some(seating) = &mut self.seating else { return };
        let seating = Arc::make_mut(seating);
        if let Some(kind) = seating.seat(holding.job).map(|seat| seat.kind) {
            seating.running[usize::from(kind)].remove(holding.until, holding.job);
        }
    }

    pub(super) fn check_seats(&self) -> Result<(), String> {
        let Some(seating) = &self.seating else { return Ok(()) };
        let sorted = |running: &mut dyn Iterator<Item = &Holding>| {
            let mut holdings: Vec<Holding> = running.copied().collect();
            Holding::sort(&mut holdings);
            holdings
        };
        let by_kind = sorted(&mut seating.running.iter().flat_map(Running::iter));
        if by_kind != sorted(&mut self.running.iter()) {
            return Err("who runs on each kind of nodes is not who runs".to_owned());
        }
        seating.check(self.running.iter().map(|holding| holding.job))
    }
}

/// What jobs will have that are about to start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken {
    /// What they take of nodes.
    of_nodes: ByNode,
    /// Which nodes these are.
    nodes: Vec<NodeId>,
    /// When each gives back its nodes, soonest first.
    ends: Vec<(Instant, JobId, SeatNodes)>,
}

impl Taken {
    /// Nobody is about to start.
    pub(crate) fn clear(&mut self) {
        if !self.ends.is_empty() {
            self.of_nodes.clear();
            self.nodes.clear();
            self.ends.clear();
        }
    }

    /// Whether nobody is about to start.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The nodes of which something is taken.
    pub(crate) fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// What is taken of a node.
    #[inline]
    pub(crate) fn of(&self, node: NodeId) -> NodeSize {
        self.of_nodes.get(node).copied().unwrap_or_default()
    }

    /// What is left of a node, if so much was free.
    #[inline]
    pub(crate) fn left(&self, node: NodeId, free: &NodeSize) -> NodeSize {
        match self.ends.is_empty() {
            true => *free,
            false => free.without(&self.of(node)).unwrap_or_default(),
        }
    }

    /// A job takes so much of nodes until then.
    pub(crate) fn add(&mut self, until: Instant, job: JobId, each: &NodeSize, nodes: &[NodeId]) {
        for node in nodes {
            let before = self.of_nodes.get(*node).copied();
            if before.is_none() {
                self.nodes.push(*node);
            }
            self.of_nodes.set(*node, before.unwrap_or_default().with(each));
        }
        let place = self.ends.partition_point(|taken| taken.0 <= until);
        self.ends.insert(place, (until, job, nodes.into()));
    }
}
