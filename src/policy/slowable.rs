//! The waiting jobs that may run below nominal speed, indexed apart.
//!
//! A slower point needs less power but more time. Most jobs of a deep queue cannot use it (they
//! waited too long to be slowed, or are fed at nominal speed), so asking the one index of the
//! queue what fits at the slowest point would name nearly all of them, again and again. A policy
//! keeps those that can use it here.

use smallvec::SmallVec;

use crate::model::Rung;
use crate::policy::{Room, View};
use crate::queue::{Fit, Queue};
use crate::units::{JobId, Watts};

/// Waiting jobs that may run slower.
#[derive(Clone, Default)]
pub(super) struct Slowable {
    jobs: Option<Queue>,
    /// The most jobs could hold in all when it was last looked at.
    most_for_jobs: Option<Watts>,
}

impl Slowable {
    /// Takes in the jobs that arrived and are `wanted`. If the largest limit there is from now on
    /// has changed, all waiting jobs are looked at again: who is oversized depends on it.
    #[inline]
    pub(super) fn welcome(&mut self, view: &View<'_>, wanted: impl Fn(JobId) -> bool) {
        let most = view.ledger.most_for_jobs();
        if self.most_for_jobs.replace(most).is_some_and(|before| before != most) {
            self.jobs = None;
            view.queue.iter().filter(|job| wanted(*job)).for_each(|job| self.insert(view, job));
            return;
        }
        for &job in view.changes.arrived {
            if wanted(job) {
                self.insert(view, job);
            }
        }
    }

    fn insert(&mut self, view: &View<'_>, job: JobId) {
        let footprint = view.model.footprint(job, view.job(job));
        let new = || Queue::new(view.queue.classes().clone(), view.jobs.len());
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

    /// The first of them at or after a place that may fit at one of the slower points for which
    /// `useful` holds.
    #[inline]
    pub(super) fn candidate(
        &self,
        view: &View<'_>,
        from: JobId,
        room: &Room,
        useful: impl Fn(&Rung, &Fit) -> bool,
    ) -> Option<JobId> {
        let jobs = self.jobs.as_ref().filter(|jobs| !jobs.is_empty())?;
        let slower = view.model.rungs()[1..].iter().map(|rung| (rung, room.fit(rung)));
        let ways = slower.filter(|(rung, fit)| useful(rung, fit)).map(|(_, fit)| fit);
        jobs.next_fit_of(from, &ways.collect::<SmallVec<[Fit; 8]>>())
    }
}
