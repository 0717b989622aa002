//! How far the jobs have got that the program started, so that it may change them while they run.
//!
//! A change says how long the job goes on to hold what it has. A program need not work that out: it follows from
//! the points the job had, each for its time.

use std::collections::{BTreeMap, BTreeSet};

use crate::ledger::Violation;
use crate::model::pass::Resizing;
use crate::model::{OperatingPoint, Progress};
use crate::policy::{Decision, View};
use crate::units::{JobId, Span};

/// A job that runs.
#[derive(Clone, Copy)]
struct Course {
    point: OperatingPoint,
    progress: Progress,
}

/// The jobs that run, as far as it was the program that started them.
#[derive(Default)]
pub(super) struct Courses {
    running: BTreeMap<JobId, Course>,
    /// What was decided in the last turn: it has come to be unless it was refused.
    decided: Vec<(JobId, Course)>,
    refused: BTreeSet<JobId>,
}

impl Courses {
    /// A decision was refused.
    pub(super) fn refused(&mut self, violation: &Violation) {
        self.refused.extend(violation.job());
    }

    /// Takes in what became of the last decisions, and who has ended.
    pub(super) fn note(&mut self, view: &View<'_>) {
        for (job, course) in self.decided.drain(..) {
            if !self.refused.contains(&job) {
                self.running.insert(job, course);
            }
        }
        self.refused.clear();
        for holding in view.changes.released {
            self.running.remove(&holding.job);
        }
    }

    /// A job is to start at a point.
    pub(super) fn start(&mut self, view: &View<'_>, job: JobId, point: OperatingPoint) {
        let progress = Progress::start(view.now, point.time, point.time);
        self.decided.push((job, Course { point, progress }));
    }

    /// The decision to let a running job go on at another point; nothing, if it does not run.
    pub(super) fn change(
        &mut self,
        view: &View<'_>,
        job: JobId,
        point: OperatingPoint,
    ) -> Option<Decision> {
        let mut course = *self.running.get(&job)?;
        let (from, to) = (course.point.nodes, point.nodes);
        let pause = match from == to {
            true => Span::ZERO,
            false => Resizing::delay([view.model.moving_time(job, view.job(job), from, to)]),
        };
        course.progress.change(view.now, point.time, point.time, pause);
        course.point = point;
        self.decided.push((job, course));
        let left = course.progress.up().since(view.now);
        Some(Decision::Change { job, point, pause, left })
    }
}
