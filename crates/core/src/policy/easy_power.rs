//! EASY backfilling under a power budget: the baseline of the PB-guided paper (Etinski, Corbalan,
//! Labarta, Valero 2010).
//!
//! Rule: EASY at nominal speed; a job that would break the budget waits, as it would for nodes. A
//! job that no limit of the budget could ever feed at nominal speed runs at the fastest point
//! that can be fed, instead of waiting for ever (or is turned away at the door:
//! `oversized=reject`).
//!
//! What it deliberately does not do: lower the speed of a job that could run at nominal speed.

use crate::ledger::Vacancy;
use crate::model::OperatingPoint;
use crate::policy::slowable::{Slowable, every_candidate, is_steady, nominal_fit, slower_fits};
use crate::policy::{Ahead, Backfill, Chooser, Room, View};
use crate::queue::Fit;
use crate::units::{JobId, Span};

/// EASY backfilling with every job at the fastest point that can be fed.
pub type EasyPower = Backfill<Fastest>;

/// Every job at the fastest point of its menu that can ever be fed.
#[derive(Clone, Default)]
pub struct Fastest {
    oversized: Slowable,
}

/// Whether a point can be fed for its whole time, now or under the limits to come, if nobody else
/// runs.
#[inline]
pub(super) fn is_fed(view: &View<'_>, point: &OperatingPoint) -> bool {
    point.power <= view.ledger.most_for_jobs(point.time)
}

/// Whether a job can never be fed at nominal speed.
#[inline]
pub(super) fn is_oversized(view: &View<'_>, job: JobId) -> bool {
    !is_fed(view, &view.nominal(job))
}

/// The first job at or after a place that is oversized and may fit at a slower point.
#[inline]
pub(super) fn oversized_candidate(
    oversized: &Slowable,
    view: &View<'_>,
    from: JobId,
    room: &Room,
    nominal: &Fit,
) -> Option<JobId> {
    if oversized.is_empty() {
        return None;
    }
    // An oversized job has more nodes than are ever fed at nominal speed.
    let node_power = view.model.rungs()[0].node_power;
    let most = view.ledger.most_for_jobs(Span::ZERO);
    let slower = slower_fits(view, room, nominal, |_, fit| node_power * fit.free > most);
    oversized.candidate(from, &slower)
}

impl Fastest {
    fn point(view: &View<'_>, job: JobId) -> Option<OperatingPoint> {
        let nominal = view.nominal(job);
        if is_fed(view, &nominal) {
            return Some(nominal);
        }
        view.menu(job).iter().copied().find(|point| is_fed(view, point))
    }
}

impl Chooser for Fastest {
    #[inline]
    fn choose(&mut self, view: &View<'_>, job: JobId, room: &Room) -> Option<OperatingPoint> {
        Fastest::point(view, job).filter(|point| room.admits(point))
    }

    #[inline]
    fn reserve(
        &mut self,
        view: &View<'_>,
        job: JobId,
        ahead: &Ahead<'_>,
    ) -> Option<(OperatingPoint, Vacancy)> {
        let point = Fastest::point(view, job)?;
        Some((point, ahead.vacancy(&point)?))
    }

    #[inline]
    fn candidate(&mut self, view: &View<'_>, from: JobId, room: &Room) -> Option<JobId> {
        if !is_steady(view) {
            return every_candidate(view, from, room);
        }
        let fit = nominal_fit(view, room);
        let nominal = view.queue.next_fit(from, &fit);
        nominal
            .into_iter()
            .chain(oversized_candidate(&self.oversized, view, from, room, &fit))
            .min()
    }

    #[inline]
    fn begin(&mut self, view: &View<'_>) {
        self.oversized.welcome(view, |job| is_oversized(view, job));
    }

    #[inline]
    fn left(&mut self, job: JobId) {
        self.oversized.remove(job);
    }
}
