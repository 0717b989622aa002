//! Where a job can be that starts now, if jobs are on nodes of several kinds or share them.
//!
//! The head of the queue is promised certain nodes from a certain time on: the first that have enough left for it then. Whoever
//! is expected to be gone by that time may have anything that is free now. Whoever is not takes nothing that the head needs.

use std::sync::Arc;

use crate::ledger::{SeatNodes, Seating, Taken};
use crate::machine::NodeSize;
use crate::policy::View;
use crate::seats::Seat;
use crate::units::{Instant, JobId, NodeId};

/// What jobs of this turn may have of nodes.
#[derive(Clone, Debug)]
pub(super) struct Places {
    seating: Arc<Seating>,
    /// Who is asked about.
    job: JobId,
    taken: Taken,
    /// Of the nodes promised to the head, in order: what others may hold beyond that time.
    kept: Vec<(NodeId, NodeSize)>,
    /// By shape of what jobs ask for: who was refused in this turn. There is less and less, so they still are.
    refused: Vec<Refused>,
    /// The nodes for the job, if it begins now and is gone by the time of the promise, and if it is not.
    passing: Option<SeatNodes>,
    staying: Option<SeatNodes>,
}

/// Which jobs of a shape were refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Refused {
    /// Nobody.
    #[default]
    None,
    /// Those that stay beyond the time of the promise.
    Staying,
    /// All of them.
    All,
}

impl Places {
    #[inline]
    pub(super) fn of(view: &View<'_>) -> Option<Box<Self>> {
        let seating = view.ledger.seating()?;
        Some(Places::on(seating.clone()))
    }

    #[inline(never)]
    fn on(seating: Arc<Seating>) -> Box<Self> {
        let (job, taken) = (JobId(0), Taken::default());
        let (kept, refused) = (Vec::new(), Vec::new());
        Box::new(Places { seating, job, taken, kept, refused, passing: None, staying: None })
    }

    /// From now on, this job is asked about.
    #[inline(never)]
    pub(super) fn ask_about(&mut self, job: JobId) {
        (self.job, self.passing, self.staying) = (job, None, None);
        let Some(seat) = self.seating.seat(job).copied() else { return };
        let shape = seat.shape as usize;
        if self.refused.len() <= shape {
            self.refused.resize(shape + 1, Refused::None);
        }
        if self.refused[shape] == Refused::All {
            return;
        }
        self.passing = self.found(&seat, false);
        let Some(nodes) = &self.passing else {
            self.refused[shape] = Refused::All;
            return;
        };
        // Whoever takes nothing of what is promised may stay there.
        self.staying = match nodes.iter().all(|node| self.may_stay(&seat, *node)) {
            true => Some(nodes.clone()),
            false if self.refused[shape] == Refused::Staying => None,
            false => self.found(&seat, true),
        };
        if self.staying.is_none() {
            self.refused[shape] = Refused::Staying;
        }
    }

    /// What others may hold of a node beyond the time of the promise, if it is one of those promised.
    fn kept(&self, node: NodeId) -> Option<&NodeSize> {
        let place = self.kept.binary_search_by_key(&node, |kept| kept.0).ok()?;
        Some(&self.kept[place].1)
    }

    /// Whether the head leaves a job what it asks of a node.
    fn may_stay(&self, seat: &Seat, node: NodeId) -> bool {
        self.kept(node).is_none_or(|kept| kept.has(&seat.each))
    }

    fn found(&self, seat: &Seat, stays: bool) -> Option<SeatNodes> {
        self.seating.first_for(seat, |node| {
            let left = self.seating.free(node).without(&self.taken.of(node));
            left.is_some_and(|left| left.has(&seat.each)) && (!stays || self.may_stay(seat, node))
        })
    }

    /// Whether there are nodes for the job, if it begins now and stays beyond the time of the promise or not.
    #[inline]
    pub(super) fn has_nodes(&self, stays: bool) -> bool {
        if stays { self.staying.is_some() } else { self.passing.is_some() }
    }

    /// The job begins now, until then, and stays beyond the time of the promise or not. It was found that it can.
    #[inline(never)]
    pub(super) fn take(&mut self, until: Instant, stays: bool) -> SeatNodes {
        let nodes = if stays { self.staying.take() } else { self.passing.take() };
        let (Some(nodes), Some(seat)) = (nodes, self.seating.seat(self.job)) else {
            return SeatNodes::new();
        };
        self.taken.add(until, seat.each, &nodes);
        if stays {
            for node in &nodes {
                if let Ok(place) = self.kept.binary_search_by_key(node, |kept| kept.0) {
                    let kept = &mut self.kept[place].1;
                    *kept = kept.without(&seat.each).unwrap_or_default();
                }
            }
        }
        nodes
    }

    /// When the job will find its nodes, if nobody else starts.
    #[inline(never)]
    pub(super) fn earliest(&self, view: &View<'_>) -> Option<Instant> {
        view.ledger.seats_ahead(self.job, &self.taken)
    }

    /// Promises the job its nodes from then on.
    #[inline(never)]
    pub(super) fn promise(&mut self, view: &View<'_>, at: Instant) {
        let Some(seat) = self.seating.seat(self.job) else { return };
        let free = view.ledger.free_seats(self.job, &self.taken, at);
        self.kept = free
            .into_iter()
            .filter_map(|(node, free)| Some((node, free.without(&seat.each)?)))
            .collect();
        self.kept.sort_unstable_by_key(|kept| kept.0);
    }

    /// No node is promised to anybody.
    pub(super) fn promise_nothing(&mut self) {
        self.kept.clear();
    }
}
