//! The waiting jobs that may run below nominal speed, indexed apart.
//!
//! A slower point needs less power but more time. Most jobs of a deep queue cannot use it (they
//! waited too long to be slowed, or are fed at nominal speed), so asking the one index of the
//! queue what fits at the slowest point would name nearly all of them, again and again. A policy
//! keeps those that can use it here.

use smallvec::SmallVec;

use crate::model::Rung;
use crate::policy::{Order, Room, View};
use crate::queue::{Fit, Queue};
use crate::units::{JobId, Span, Watts};

/// Waiting jobs that may run slower.
///
/// Which jobs these are depends on the limits of the budget. A policy that cannot tell them while limits are to come
/// keeps nobody here until then, and looks through the whole queue ([`every_candidate`]).
#[derive(Clone, Default)]
pub(super) struct Slowable {
    jobs: Option<Queue>,
    /// The limit for which all waiting jobs were looked at, and since then every one that arrived.
    complete_for: Option<Watts>,
}

impl Slowable {
    /// Takes in the jobs that arrived and are `wanted`, or all that wait, the first time and whenever the limit is
    /// another on which it depends who is wanted. Without one, nobody is kept.
    #[inline]
    pub(super) fn welcome(
        &mut self,
        view: &View<'_>,
        limit: Option<Watts>,
        wanted: impl Fn(JobId) -> bool,
    ) {
        if limit.is_none() {
            *self = Slowable::default();
        } else if self.complete_for == limit {
            let arrived = view.changes.arrived.iter().copied();
            arrived.filter(|job| wanted(*job)).for_each(|job| self.insert(view, job));
        } else {
            let waiting = view.queue.iter();
            *self = Slowable { jobs: None, complete_for: limit };
            waiting.filter(|job| wanted(*job)).for_each(|job| self.insert(view, job));
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.jobs.as_ref().is_none_or(|jobs| jobs.is_empty())
    }

    fn insert(&mut self, view: &View<'_>, job: JobId) {
        let footprint = view.model.footprint(job, view.job(job));
        let new = || view.queue.like(view.jobs.len());
        let jobs = self.jobs.get_or_insert_with(new);
        // A job may have come and gone and come again within one turn.
        if !jobs.contains(job) {
            jobs.insert(job, &footprint);
        }
    }

    /// The job starts, or cannot be slowed any more.
    #[inline]
    pub(super) fn remove(&mut self, job: JobId) {
        if let Some(jobs) = &mut self.jobs {
            jobs.remove(job);
        }
    }

    /// The first of them submitted after this one that may fit at one of these points.
    #[inline]
    pub(super) fn candidate(&self, after: JobId, slower: &[Fit]) -> Option<JobId> {
        self.jobs.as_ref()?.next_fit_of(JobId(after.0 + 1), slower)
    }
}

/// Whether the limit in force stays for ever, and is the only one.
#[inline]
pub(super) fn is_steady(view: &View<'_>) -> bool {
    view.ledger.is_steady()
}

/// The limit in force, if it stays for ever.
#[inline]
pub(super) fn steady_limit(view: &View<'_>) -> Option<Watts> {
    is_steady(view).then(|| view.ledger.limit())
}

/// The first waiting job after this one that may fit at any point.
pub(super) fn every_candidate<O: Order>(
    view: &View<'_>,
    order: &O,
    after: JobId,
    room: &Room,
) -> Option<JobId> {
    order.next_fit(view, after, &room.fits(view.model.rungs().iter()))
}

/// Whether a room counts power by itself, and not only as the nodes it can feed.
#[inline]
pub(super) fn knows_power(fit: &Fit) -> bool {
    fit.power != Watts::UNLIMITED
}

/// The room as it can be used at nominal speed.
#[inline]
pub(super) fn nominal_fit(view: &View<'_>, room: &Room) -> Fit {
    room.fit(&view.model.rungs()[0])
}

/// The room as it can be used at slower points, where that lets in anybody who does not fit at a
/// faster one: a slower point takes longer, so it has to feed more nodes, or jobs that draw more at nominal speed.
#[inline]
pub(super) fn slower_fits(
    view: &View<'_>,
    room: &Room,
    nominal: &Fit,
    useful: impl Fn(&Rung, &Fit) -> bool,
) -> SmallVec<[Fit; 8]> {
    let mut fits: SmallVec<[Fit; 8]> = SmallVec::new();
    let has_all_nodes = |fit: &Fit| (fit.free, fit.extra) == room.most_nodes() && !knows_power(fit);
    for rung in &view.model.rungs()[1..] {
        if has_all_nodes(fits.last().unwrap_or(nominal)) {
            break;
        }
        let fit = room.fit(rung);
        // It is slower than those: that it lets in longer jobs cannot be.
        let offered = Fit { window: Span::ZERO, ..fit };
        let is_new = !fits.iter().chain([nominal]).any(|other| offered.is_within(other));
        if is_new && useful(rung, &fit) {
            fits.push(fit);
        }
    }
    fits
}
