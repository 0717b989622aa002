//! Where a job can be that starts now, if jobs are on nodes of several kinds or share them.
//!
//! The head of the queue is promised certain nodes from a certain time on: the first that have enough left for it then. Whoever
//! is expected to be gone by that time may have anything that is free now. Whoever is not takes nothing that the head needs.

use std::sync::{Arc, OnceLock};

use super::Outlook;
use super::widths::{ByWidth, Claims};
use crate::availability::{Claim, FeedRoom};
use crate::ledger::{ByNode, Foreseen, SeatNodes, Seating, Taken, Wanted};
use crate::model::OperatingPoint;
use crate::policy::{Changes, View};
use crate::queue::Fit;
use crate::seats::Seat;
use crate::units::{Instant, JobId, NodeId};

/// What jobs of this turn may have of nodes.
#[derive(Clone, Debug)]
pub(super) struct Places {
    seating: Arc<Seating>,
    asked: Asked,
    /// When the head of the queue will find its nodes, if nobody else starts.
    ahead: Option<Instant>,
    /// What feeds have left, where they have limits.
    feeds: Option<FeedRoom>,
    notes: Box<Notes>,
}

/// Who is asked about, and the nodes for that job. They are looked for when somebody wants to know: most jobs do not get as far.
#[derive(Clone, Debug, Default)]
struct Asked {
    job: Option<(JobId, Seat)>,
    /// If it begins now and is gone by the time of the promise; or how many nodes are not there.
    passing: OnceLock<Result<SeatNodes, u32>>,
    /// If it begins now and is not.
    staying: OnceLock<Result<SeatNodes, u32>>,
}

/// What a turn finds out about nodes. It holds until some come free, because until then there is less and less.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    taken: Taken,
    /// Of the nodes promised to the head: what others may hold of them beyond that time.
    kept: ByNode,
    kept_nodes: Vec<NodeId>,
    /// The kind of these nodes.
    kept_kind: Option<u16>,
    foreseen: Foreseen,
    /// By part of a node that jobs ask for: who was refused.
    refused: Vec<Refused>,
    /// By kind: how often its nodes came free.
    rounds: Vec<u32>,
    /// How many promises were made.
    promises: u32,
    by_width: ByWidth,
}

/// The fewest nodes that were refused to jobs, and to those that stay beyond the time of the promise. Whoever wants as many is
/// refused them, too, until nodes come free, or something else is promised.
#[derive(Clone, Copy, Debug)]
struct Refused {
    passing: u32,
    staying: u32,
    round: u32,
    promise: u32,
}

impl Refused {
    const NOBODY: Refused = Refused { passing: u32::MAX, staying: u32::MAX, round: 0, promise: 0 };
}

impl Notes {
    /// Whatever was refused may be there.
    pub(super) fn forget(&mut self) {
        self.refused.clear();
        self.by_width.forget();
    }

    /// Nodes of a kind have come free.
    fn free(&mut self, seating: &Seating, kind: u16) {
        self.by_width.free(seating, kind);
        let kind = usize::from(kind);
        if self.rounds.len() <= kind {
            self.rounds.resize(kind + 1, 0);
        }
        self.rounds[kind] += 1;
    }

    /// What was refused to jobs that ask the same of a node.
    #[inline]
    fn refused(&self, seat: &Seat) -> Refused {
        let round = self.rounds.get(usize::from(seat.kind)).copied().unwrap_or(0);
        let known = self.refused.get(seat.part as usize).filter(|refused| refused.round == round);
        let known = known.copied().unwrap_or(Refused::NOBODY);
        let staying = match known.promise == self.promises {
            true => known.staying,
            false => known.passing,
        };
        Refused { staying, round, promise: self.promises, ..known }
    }

    fn note(&mut self, seat: &Seat, refused: Refused) {
        let part = seat.part as usize;
        if self.refused.len() <= part {
            self.refused.resize(part + 1, Refused::NOBODY);
        }
        self.refused[part] = refused;
    }

    /// No node is kept for the head any more.
    fn lift(&mut self) {
        self.kept.clear();
        self.kept_nodes.clear();
    }

    /// Nodes of a kind are kept from now on. Whoever could not have those of before may have them now.
    fn keep(&mut self, seating: &Seating, kind: Option<u16>) {
        if let Some(before) = std::mem::replace(&mut self.kept_kind, kind) {
            self.by_width.free(seating, before);
        }
        self.by_width.promise();
    }

    /// Whether the head leaves a job what it asks of a node.
    #[inline]
    fn may_stay(&self, seat: &Seat, node: NodeId) -> bool {
        self.kept.get(node).is_none_or(|kept| kept.has(&seat.each))
    }
}

impl Places {
    #[inline(always)]
    pub(super) fn of(view: &View<'_>, notes: Option<Box<Notes>>) -> Option<Box<Self>> {
        let seating = view.ledger.seating()?;
        Some(Places::on(seating.clone(), FeedRoom::of(view.ledger), notes))
    }

    #[inline(never)]
    fn on(seating: Arc<Seating>, feeds: Option<FeedRoom>, notes: Option<Box<Notes>>) -> Box<Self> {
        let (asked, notes) = (Asked::default(), notes.unwrap_or_default());
        Box::new(Places { seating, asked, ahead: None, feeds, notes })
    }

    /// What was found out.
    pub(super) fn into_notes(self) -> Box<Notes> {
        self.notes
    }

    /// Something is new since the turn before.
    #[inline(never)]
    pub(super) fn go_on(&mut self, changes: &Changes<'_>) {
        self.notes.taken.clear();
        self.notes.by_width.begin(self.seating.groups());
        if changes.machine {
            self.notes.forget();
        }
        for released in changes.released {
            if let Some(seat) = self.seating.seat(released.job) {
                self.notes.free(&self.seating, seat.kind);
            }
        }
    }

    /// Whatever was refused in turns before may be there.
    #[inline(never)]
    pub(super) fn forget(&mut self) {
        self.notes.by_width.forget();
    }

    /// Whether it is known that there are no nodes for a job.
    pub(super) fn is_refused(&self, job: JobId) -> bool {
        let seat = self.seating.seat(job);
        seat.is_some_and(|seat| seat.nodes >= self.notes.refused(seat).passing)
    }

    /// From now on, this job is asked about.
    #[inline(never)]
    pub(super) fn ask_about(&mut self, job: JobId) {
        self.note_refusals();
        let job = self.seating.seat(job).map(|seat| (job, *seat));
        self.asked = Asked { job, ..Asked::default() };
    }

    /// Keeps in mind what the job was refused that was asked about.
    fn note_refusals(&mut self) {
        let Some((_, seat)) = &self.asked.job else { return };
        let refused = |nodes: &OnceLock<Result<SeatNodes, u32>>| match nodes.get() {
            Some(Err(nodes)) => *nodes,
            _ => u32::MAX,
        };
        let [passing, staying] = [refused(&self.asked.passing), refused(&self.asked.staying)];
        if passing.min(staying) < u32::MAX {
            let known = self.notes.refused(seat);
            let passing = passing.min(known.passing);
            let staying = staying.min(known.staying).min(passing);
            self.notes.note(seat, Refused { passing, staying, ..known });
        }
    }

    fn found(&self, stays: bool) -> Result<SeatNodes, u32> {
        let Some((_, seat)) = &self.asked.job else { return Err(0) };
        let refused = self.notes.refused(seat);
        let refused = if stays { refused.staying } else { refused.passing };
        if seat.nodes >= refused {
            return Err(refused);
        }
        self.seating.first_for(seat, |node| self.is_free(seat, node, stays))
    }

    /// Of a node that has enough free: whether it has enough left for a job that begins now and stays beyond the time of the promise or not.
    #[inline]
    fn is_free(&self, seat: &Seat, node: NodeId, stays: bool) -> bool {
        let Notes { taken, .. } = &*self.notes;
        (taken.is_empty() || taken.left(node, self.seating.free(node)).has(&seat.each))
            && (!stays || self.notes.may_stay(seat, node))
    }

    /// Whether there are nodes for the job, if it begins now at this point and stays beyond the time of the promise or not.
    #[inline(never)]
    pub(super) fn has_nodes(&self, now: Instant, point: &OperatingPoint, stays: bool) -> bool {
        let nodes = if stays { &self.asked.staying } else { &self.asked.passing };
        nodes.get_or_init(|| self.found(stays)).is_ok()
            && self.feeds.as_ref().is_none_or(|feeds| self.fed(feeds, now, point, stays).is_some())
    }

    /// The first nodes for the job that feeds can take, too.
    fn fed(
        &self,
        feeds: &FeedRoom,
        now: Instant,
        point: &OperatingPoint,
        stays: bool,
    ) -> Option<SeatNodes> {
        let (_, seat) = self.asked.job.as_ref()?;
        let mut takes = feeds.takes(now, &Claim::of(point), seat.nodes);
        let nodes = self
            .seating
            .first_for(seat, |node| self.is_free(seat, node, stays) && takes.takes(node));
        nodes.ok()
    }

    /// The job begins now at this point and stays beyond the time of the promise or not. It was found that it can.
    #[inline(never)]
    pub(super) fn take(&mut self, now: Instant, point: &OperatingPoint, stays: bool) -> SeatNodes {
        let fed = self.feeds.as_ref().map(|feeds| self.fed(feeds, now, point, stays));
        let Asked { job, passing, staying } = std::mem::take(&mut self.asked);
        let found = if stays { staying } else { passing }.into_inner().and_then(Result::ok);
        let (Some(nodes), Some((job, seat))) = (fed.unwrap_or(found), job) else {
            return SeatNodes::new();
        };
        if let Some(feeds) = &mut self.feeds {
            feeds.take(now, &Claim::of(point), &nodes);
        }
        let Notes { taken, kept, kept_nodes, by_width, .. } = &mut *self.notes;
        let claims = Claims { seating: &self.seating, taken, kept, kept_nodes };
        by_width.take(claims, &nodes, seat.each.processors, stays);
        taken.add(now + point.time, job, &seat.each, &nodes);
        if stays {
            for node in &nodes {
                if let Some(left) = kept.get(*node) {
                    kept.set(*node, left.without(&seat.each).unwrap_or_default());
                }
            }
        }
        nodes
    }

    /// Finds out when the job that is asked about will find its nodes, if nobody else starts.
    #[inline(never)]
    pub(super) fn look_ahead(&mut self, view: &View<'_>) {
        let Notes { taken, foreseen, .. } = &mut *self.notes;
        let (job, _) = self.asked.job.unzip();
        let wanted = if self.feeds.is_some() { Wanted::All } else { Wanted::AsMany };
        self.ahead = job.and_then(|job| view.ledger.seats_ahead(job, taken, foreseen, wanted));
    }

    /// When that will be.
    #[inline]
    pub(super) fn ahead(&self) -> Option<Instant> {
        self.ahead
    }

    /// The first instant at which a point fits for its whole time on nodes that are there then, also below feeds.
    pub(super) fn earliest(
        &self,
        view: &View<'_>,
        outlook: &Outlook,
        point: &OperatingPoint,
    ) -> Option<Instant> {
        let claim = Claim::of(point);
        let mut at = outlook.earliest(self.ahead?, &claim)?;
        let Some(feeds) = &self.feeds else { return Some(at) };
        let mut foreseen = self.notes.foreseen.clone();
        while self.nodes_at(view, feeds, point, at, &mut foreseen).is_none() {
            let changes = [feeds.next_change(at), outlook.free.next_change(at)];
            at = outlook.earliest(changes.into_iter().flatten().min()?, &claim)?;
        }
        Some(at)
    }

    /// The first nodes for the job at a time to come that feeds can take.
    fn nodes_at(
        &self,
        view: &View<'_>,
        feeds: &FeedRoom,
        point: &OperatingPoint,
        at: Instant,
        foreseen: &mut Foreseen,
    ) -> Option<SeatNodes> {
        let (job, seat) = self.asked.job?;
        let mut takes = feeds.takes(at, &Claim::of(point), seat.nodes);
        let mut nodes = SeatNodes::new();
        view.ledger.seats_at(job, &self.notes.taken, at, foreseen, |node, _| {
            let is_fed = takes.takes(node);
            if is_fed {
                nodes.push(node);
            }
            is_fed
        });
        (nodes.len() == seat.nodes as usize).then_some(nodes)
    }

    /// Promises the job its nodes from then on, at this point.
    #[inline(never)]
    pub(super) fn promise(&mut self, view: &View<'_>, at: Instant, point: &OperatingPoint) {
        self.note_refusals();
        let Some((job, seat)) = self.asked.job else { return };
        self.notes.lift();
        let Notes { taken, kept, kept_nodes, foreseen, promises, .. } = &mut *self.notes;
        let claim = Claim::of(point);
        let mut takes = self.feeds.as_ref().map(|feeds| feeds.takes(at, &claim, seat.nodes));
        *promises += 1;
        view.ledger.seats_at(job, taken, at, foreseen, |node, left| {
            let is_fed = takes.as_mut().is_none_or(|takes| takes.takes(node));
            if is_fed {
                kept.set(node, left.without(&seat.each).unwrap_or_default());
                kept_nodes.push(node);
            }
            is_fed
        });
        drop(takes);
        if let Some(feeds) = &mut self.feeds {
            feeds.promise(at, &claim, kept_nodes);
        }
        self.notes.keep(&self.seating, Some(seat.kind));
    }

    /// No node is promised to anybody.
    pub(super) fn promise_nothing(&mut self) {
        self.note_refusals();
        self.notes.lift();
        self.notes.promises += 1;
        self.notes.keep(&self.seating, None);
    }

    /// Begins to look at those behind the head who ask for nodes that came free, or at all of them; says whether it can.
    #[inline(never)]
    pub(super) fn look(&mut self, view: &View<'_>, head: JobId, all: bool, fit: &Fit) -> bool {
        let Notes { taken, kept, kept_nodes, by_width, .. } = &mut *self.notes;
        let claims = Claims { seating: &self.seating, taken, kept, kept_nodes };
        by_width.look(view, claims, head, all, fit);
        view.queue.widths().is_some()
    }

    /// The next of them, in the order of the queue.
    #[inline(never)]
    pub(super) fn next(&mut self, view: &View<'_>, fit: &Fit) -> Option<JobId> {
        let Notes { taken, kept, kept_nodes, by_width, .. } = &mut *self.notes;
        let claims = Claims { seating: &self.seating, taken, kept, kept_nodes };
        by_width.next(view, claims, fit)
    }

    /// Whether two jobs are on nodes of different kinds.
    pub(super) fn are_apart(&self, one: JobId, other: JobId) -> bool {
        let kind = |job: JobId| self.seating.seat(job).map(|seat| seat.kind);
        kind(one) != kind(other)
    }
}
