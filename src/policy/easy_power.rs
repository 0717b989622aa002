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
use crate::policy::slowable::Slowable;
use crate::policy::{Ahead, Backfill, Chooser, Room, View};
use crate::units::JobId;

/// EASY backfilling with every job at the fastest point that can be fed.
pub type EasyPower = Backfill<Fastest>;

/// Every job at the fastest point of its menu that can ever be fed.
#[derive(Clone, Default)]
pub struct Fastest {
    oversized: Slowable,
}

/// Whether no limit of the budget can feed a job at nominal speed, from now on.
#[inline]
pub(super) fn is_oversized(view: &View<'_>, job: JobId) -> bool {
    view.nominal(job).power > view.ledger.most_for_jobs()
}

impl Fastest {
    fn point(view: &View<'_>, job: JobId) -> Option<OperatingPoint> {
        let nominal = view.nominal(job);
        let most = view.ledger.most_for_jobs();
        if nominal.power <= most {
            return Some(nominal);
        }
        view.menu(job).iter().copied().find(|point| point.power <= most)
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
        let nominal = view.queue.next_fit(from, &room.fit(&view.model.rungs()[0]));
        let oversized = self.oversized.candidate(view, from, room, |_, _| true);
        nominal.into_iter().chain(oversized).min()
    }

    #[inline]
    fn begin(&mut self, view: &View<'_>) {
        self.oversized.welcome(view, |job| is_oversized(view, job));
    }

    #[inline]
    fn started(&mut self, job: JobId) {
        self.oversized.remove(job);
    }
}
