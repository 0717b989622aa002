//! When waiting jobs are to start, by job and by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::policy::View;
use crate::units::{Instant, JobId};

/// When waiting jobs are to start.
#[derive(Clone, Debug, Default)]
pub(super) struct Promises {
    /// When each waiting job is to start; [`Instant::NEVER`] if it cannot be told, or if the job
    /// does not wait.
    starts: Vec<Instant>,
    /// The reservations by time. Those that were moved since are still there, and known by being
    /// different from `starts`.
    order: BinaryHeap<Reverse<(Instant, JobId)>>,
}

impl Promises {
    pub(super) fn of(&self, job: JobId) -> Instant {
        self.starts.get(job.index()).map_or(Instant::NEVER, |start| *start)
    }

    pub(super) fn promise(&mut self, job: JobId, start: Instant) {
        self.starts[job.index()] = start;
        self.order.push(Reverse((start, job)));
    }

    /// A job that has just arrived gets its promise, if it can have one.
    pub(super) fn welcome(&mut self, view: &View<'_>, job: JobId, start: Option<Instant>) {
        if self.starts.len() <= job.index() {
            self.starts.resize(view.jobs.len().max(job.index() + 1), Instant::NEVER);
        }
        self.starts[job.index()] = Instant::NEVER;
        if let Some(start) = start {
            self.promise(job, start);
        }
        // Moved reservations are dropped before they outnumber the others by far.
        if self.order.len() > 4 * view.queue.len() + 1024 {
            self.order.retain(|Reverse((start, job))| self.starts[job.index()] == *start);
        }
    }

    /// Adds the waiting jobs whose time has come; says when that of the next comes.
    pub(super) fn due(&mut self, now: Instant, due: &mut Vec<JobId>) -> Option<Instant> {
        let Promises { starts, order } = self;
        while let Some(&Reverse((start, job))) = order.peek() {
            let moved = starts[job.index()] != start;
            if !moved && start > now {
                return Some(start);
            }
            order.pop();
            // It may be there twice.
            if !moved && !due.contains(&job) {
                due.push(job);
            }
        }
        None
    }

    /// A job whose time has come starts, or goes on waiting.
    pub(super) fn settle(&mut self, job: JobId, starts: bool) {
        match starts {
            true => self.starts[job.index()] = Instant::NEVER,
            false => self.promise(job, self.of(job)),
        }
    }
}
