//! The nodes as the scheduler sees them: who is on which, until when, and what is left of each.
//!
//! Where nodes are of several kinds or shared, they are those of the ledger. Where all are alike and jobs have them alone, the
//! ledger only counts them: there, jobs are put on nodes of the policy's own, because Slurm's rules are about certain nodes.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use super::nodes::NodeSet;
use super::slots::{ceil, floor};
use crate::ledger::{SeatNodes, Seating};
use crate::limits::Reservation;
use crate::machine::{Kinds, NodeSize};
use crate::model::OperatingPoint;
use crate::policy::{Decision, View};
use crate::seats::Seat;
use crate::units::{Instant, JobId, NodeId, Span};

/// All nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Floor {
    /// Who is where, where the ledger knows it.
    seating: Option<Arc<Seating>>,
    sizes: Vec<NodeSize>,
    left: Vec<NodeSize>,
    /// The weight of each node; nothing where all are alike.
    weights: Vec<u32>,
    /// Nodes without a job that are in service.
    idle: NodeSet,
    /// Nodes in service.
    up: NodeSet,
    /// Jobs that run, by when they are expected to end.
    running: BTreeMap<(Instant, JobId), Tenant>,
    ends: HashMap<JobId, Instant>,
    /// The nodes of each partition; all nodes come last.
    partitions: Vec<Partition>,
    /// Certain nodes that are kept free for a while.
    reserved: Vec<Reserved>,
    /// When this was followed last.
    now: Instant,
    /// By what jobs ask of a node: the nodes that they may have.
    places: HashMap<u32, NodeSet>,
}

/// Nodes that are kept free for a while.
#[derive(Clone, Debug)]
struct Reserved {
    start: Instant,
    end: Instant,
    numbers: Vec<Range<u32>>,
    /// The same nodes, once it is known how many there are.
    nodes: NodeSet,
}

/// A job that runs.
#[derive(Clone, Debug)]
pub(super) struct Tenant {
    pub(super) nodes: SeatNodes,
    pub(super) each: NodeSize,
}

#[derive(Clone, Debug)]
struct Partition {
    nodes: NodeSet,
    is_shared: bool,
}

/// What a waiting job asks of nodes.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) job: JobId,
    pub(super) point: OperatingPoint,
    pub(super) nodes: u32,
    pub(super) each: NodeSize,
    pub(super) is_alone: bool,
    pub(super) partition: usize,
    part: u32,
    /// Its limit in whole minutes.
    pub(super) limit: Span,
}

/// What a job has of a node where all are alike.
const ONE: NodeSize = NodeSize { processors: 1, memory_mib: 0, gpus: 0 };

const SECOND: Span = Span::from_secs(1);
const MINUTE: Span = Span::from_secs(60);

/// A limit as Slurm keeps it.
fn in_minutes(limit: Span) -> Span {
    ceil(Instant::from_millis(limit.millis()), MINUTE).since(Instant::ZERO)
}

impl Floor {
    /// Nothing is known yet but what is reserved.
    pub(super) fn with(reservations: &[Reservation]) -> Self {
        let which = reservations.iter().filter(|one| !one.numbers.is_empty());
        let reserved = which.map(|one| Reserved {
            start: one.start,
            end: one.end,
            numbers: one.numbers.clone(),
            nodes: NodeSet::default(),
        });
        Floor { reserved: reserved.collect(), ..Floor::default() }
    }

    /// Leaves out the nodes that are reserved for some of a time.
    pub(super) fn leave_out_reserved(&self, nodes: &mut NodeSet, from: Instant, until: Instant) {
        for reserved in &self.reserved {
            if reserved.start < until && from < reserved.end {
                nodes.leave_out(&reserved.nodes);
            }
        }
    }

    /// When a reservation ends that a job would meet on some nodes.
    pub(super) fn reserved_until(&self, from: Instant, until: Instant) -> Option<Instant> {
        let meets = |one: &&Reserved| one.start < until && from < one.end;
        self.reserved.iter().filter(meets).map(|one| one.end).min()
    }

    /// When a reservation begins or ends next.
    pub(super) fn next_reservation(&self, now: Instant) -> Instant {
        let edges = self.reserved.iter().flat_map(|one| [one.start, one.end]);
        edges.filter(|edge| *edge > now).min().unwrap_or(Instant::NEVER)
    }

    /// Whether one began or ended since the last turn.
    pub(super) fn reserves_at(&self, now: Instant) -> bool {
        self.next_reservation(self.now) <= now
    }

    /// Takes in what happened since the last turn. `started` are the jobs that were to start then.
    pub(super) fn follow(&mut self, view: &View<'_>, started: &[JobId]) {
        let (changes, ledger) = (&view.changes, view.ledger);
        let is_new = self.sizes.is_empty();
        if is_new || !changes.changed.is_empty() || !changes.adopted.is_empty() {
            self.begin(view);
        } else {
            for released in changes.released {
                self.leave(released.job);
            }
            // Somebody may have been refused.
            for job in started.iter().filter(|job| !ledger.holds(**job)) {
                self.leave(*job);
            }
        }
        self.now = view.now;
        self.seating = ledger.seating().cloned();
        self.follow_service(view);
    }

    /// All nodes, and who is on them.
    fn begin(&mut self, view: &View<'_>) {
        let ledger = view.ledger;
        let mut reserved = std::mem::take(&mut self.reserved);
        *self = match ledger.seating() {
            Some(seating) => Floor::of_kinds(seating.kinds()),
            None => {
                let partition = |nodes| vec![(nodes, false)];
                Floor::of(vec![ONE; ledger.total_nodes() as usize], partition)
            }
        };
        for one in &mut reserved {
            let count = self.nodes();
            let inside = one.numbers.iter().map(|some| some.start..some.end.min(count));
            one.nodes = NodeSet::of(count, inside.flatten());
        }
        self.reserved = reserved;
        for holding in ledger.running().iter() {
            let seated = ledger.seating().and_then(|seating| {
                Some((SeatNodes::from(seating.nodes_of(holding.job)), seating.seat(holding.job)?))
            });
            let tenant = match seated {
                Some((nodes, seat)) => Tenant { nodes, each: seat.each },
                None => {
                    let nodes = self.idle.iter().take(holding.nodes as usize).map(NodeId);
                    Tenant { nodes: nodes.collect(), each: ONE }
                }
            };
            self.enter(holding.job, holding.until, tenant);
        }
    }

    fn of_kinds(kinds: &Kinds) -> Self {
        let nodes_of = |groups: &[usize], count: u32| {
            let nodes = groups.iter().flat_map(|group| kinds.groups()[*group].nodes.clone());
            NodeSet::of(count, nodes)
        };
        let weights =
            kinds.groups().iter().flat_map(|group| group.nodes.clone().map(|_| group.weight));
        let floor = Floor::of(kinds.sizes().collect(), |all| {
            let count = kinds.nodes();
            let own = kinds.partitions().iter();
            let own = own.map(|partition| (nodes_of(&partition.groups, count), partition.shared));
            let is_shared = kinds.partitions().iter().any(|partition| partition.shared);
            own.chain([(all, is_shared)]).collect()
        });
        Floor { weights: weights.collect(), ..floor }
    }

    fn of(sizes: Vec<NodeSize>, partitions: impl FnOnce(NodeSet) -> Vec<(NodeSet, bool)>) -> Self {
        let count = sizes.len() as u32;
        let all = NodeSet::of(count, 0..count);
        let partitions = partitions(all.clone()).into_iter();
        Floor {
            left: sizes.clone(),
            sizes,
            idle: all.clone(),
            up: all,
            partitions: partitions
                .map(|(nodes, is_shared)| Partition { nodes, is_shared })
                .collect(),
            ..Floor::default()
        }
    }

    /// Where nodes are counted only, some may be out of service: the last ones that are idle.
    fn follow_service(&mut self, view: &View<'_>) {
        if self.seating.is_some() {
            return;
        }
        let (free, mut idle) = (view.ledger.free_nodes(), self.idle.count());
        while let Some(node) = self.idle.last().filter(|_| idle > free) {
            self.idle.remove(node);
            self.up.remove(node);
            idle -= 1;
        }
        for node in 0..self.sizes.len() as u32 {
            if idle >= free {
                return;
            }
            if !self.up.has(node) {
                self.up.insert(node);
                self.idle.insert(node);
                idle += 1;
            }
        }
    }

    /// How many nodes there are.
    pub(super) fn nodes(&self) -> u32 {
        self.sizes.len() as u32
    }

    /// Nodes in service.
    pub(super) fn up(&self) -> &NodeSet {
        &self.up
    }

    /// Nodes in service without a job.
    pub(super) fn idle(&self) -> &NodeSet {
        &self.idle
    }

    pub(super) fn partitions(&self) -> usize {
        self.partitions.len()
    }

    /// The nodes of a partition.
    pub(super) fn partition_nodes(&self, partition: usize) -> &NodeSet {
        &self.partitions[partition].nodes
    }

    /// Who runs, soonest to end first.
    pub(super) fn running(&self) -> impl Iterator<Item = (Instant, &Tenant)> {
        self.running.iter().map(|((end, _), tenant)| (*end, tenant))
    }

    /// What is left of each node.
    pub(super) fn left(&self) -> &[NodeSize] {
        &self.left
    }

    /// The weight of a node: those with a low one are given out first.
    pub(super) fn weight(&self, node: u32) -> u32 {
        self.weights.get(node as usize).copied().unwrap_or(1)
    }

    /// All of a node.
    pub(super) fn size(&self, node: u32) -> &NodeSize {
        &self.sizes[node as usize]
    }

    fn partition(&self, seat: &Seat) -> usize {
        seat.partition.map_or(self.partitions.len() - 1, usize::from)
    }

    /// What a job asks for, if some node can hold it and it does not run: the main loop may have started it in this turn.
    pub(super) fn ask(&mut self, view: &View<'_>, job: JobId) -> Option<Ask> {
        if self.ends.contains_key(&job) {
            return None;
        }
        let point = view.nominal(job);
        let limit = in_minutes(point.time);
        let Some(seating) = &self.seating else {
            let (nodes, each) = (point.nodes, ONE);
            let (part, partition) = (0, 0);
            self.places.entry(part).or_insert_with(|| self.partitions[0].nodes.clone());
            return Some(Ask { job, point, nodes, each, is_alone: true, partition, part, limit });
        };
        let seat = *seating.seat(job)?;
        let count = self.sizes.len() as u32;
        let places = || NodeSet::of(count, seating.places(&seat).flatten());
        self.places.entry(seat.part).or_insert_with(places);
        let partition = self.partition(&seat);
        let is_alone = !self.partitions[partition].is_shared;
        let Seat { nodes, each, part, .. } = seat;
        Some(Ask { job, point, nodes, each, is_alone, partition, part, limit })
    }

    /// The nodes that a job may have.
    pub(super) fn places(&self, ask: &Ask) -> &NodeSet {
        &self.places[&ask.part]
    }

    /// Leaves in a set the nodes of which a job gets enough, as things are.
    pub(super) fn keep_enough(&self, ask: &Ask, nodes: &mut NodeSet) {
        if ask.is_alone {
            nodes.keep(&self.idle);
            return;
        }
        let few: SeatNodes = nodes
            .iter()
            .filter(|node| !self.left[*node as usize].has(&ask.each))
            .map(NodeId)
            .collect();
        few.iter().for_each(|node| nodes.remove(node.0));
    }

    /// When a job is expected to end that starts now, in Slurm's clock of seconds.
    fn end(now: Instant, limit: Span) -> Instant {
        floor(now, SECOND) + limit
    }

    /// Starts a job on these nodes.
    pub(super) fn start(&mut self, now: Instant, ask: &Ask, nodes: SeatNodes) -> Decision {
        let Ask { job, point, each, limit, .. } = *ask;
        let decision = match self.seating {
            None => Decision::Start { job, point },
            Some(_) => Decision::StartIn { job, point, nodes: nodes.iter().copied().collect() },
        };
        self.enter(job, Floor::end(now, limit), Tenant { nodes, each });
        decision
    }

    fn enter(&mut self, job: JobId, end: Instant, tenant: Tenant) {
        for node in &tenant.nodes {
            let left = &mut self.left[node.0 as usize];
            *left = left.without(&tenant.each).unwrap_or_default();
            self.idle.remove(node.0);
        }
        self.ends.insert(job, end);
        self.running.insert((end, job), tenant);
    }

    fn leave(&mut self, job: JobId) {
        let Some(end) = self.ends.remove(&job) else { return };
        let Some(tenant) = self.running.remove(&(end, job)) else { return };
        for node in &tenant.nodes {
            let left = &mut self.left[node.0 as usize];
            *left = left.with(&tenant.each);
            if *left == self.sizes[node.0 as usize] && self.up.has(node.0) {
                self.idle.insert(node.0);
            }
        }
    }
}
