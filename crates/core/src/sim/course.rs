//! The courses of jobs whose operating points may change while they run.
//!
//! Kept only for policies that [adjust](crate::policy::Policy::adjusts) running jobs: how far each of
//! them has got, and what it had until now.

use std::collections::HashMap;

use crate::model::{OperatingPoint, Outcome, Progress};
use crate::units::{Instant, JobId, Joules, Span, Watts};

/// A job's operating point changed while it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// When it happens.
    pub at: Instant,
    /// The job that draws it.
    pub job: JobId,
    /// Nodes it has from then on.
    pub nodes: u32,
    /// What each of them may draw.
    pub cap: Watts,
    /// Their total power.
    pub power: Watts,
    /// For how long it does not go on.
    pub pause: Span,
}

/// What a job had in all, where that is not what it had at its end for all of its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Nodes times milliseconds.
    pub node_millis: u128,
    /// Energy drawn.
    pub energy: Joules,
}

/// Where a job stands.
#[derive(Clone, Copy, Debug)]
struct Course {
    progress: Progress,
    /// Since when it has what it has.
    had_since: Instant,
    nodes: u32,
    power: Watts,
    total: Total,
    has_changed: bool,
}

impl Course {
    /// When it ends if nothing changes, and whether that is because its time is up.
    fn end(&self) -> (Instant, bool) {
        let (done, up) = (self.progress.done(), self.progress.up());
        (done.min(up), up < done)
    }

    /// What it had until now.
    fn charge(&mut self, now: Instant) {
        let elapsed = now.since(self.had_since);
        self.total.node_millis += u128::from(self.nodes) * u128::from(elapsed.millis());
        self.total.energy += self.power.over(elapsed);
        self.had_since = now;
    }
}

/// The courses of all jobs that run.
#[derive(Clone, Debug, Default)]
pub(super) struct Courses {
    running: HashMap<JobId, Course>,
}

impl Courses {
    /// A job starts.
    pub(super) fn start(
        &mut self,
        job: JobId,
        now: Instant,
        point: &OperatingPoint,
        outcome: Outcome,
    ) {
        let course = Course {
            progress: Progress::start(now, outcome.run_time, point.time),
            had_since: now,
            nodes: point.nodes,
            power: outcome.power,
            total: Total::default(),
            has_changed: false,
        };
        self.running.insert(job, course);
    }

    /// A job goes on at another point after a pause. When it ends now, and whether that is because
    /// its time is up; `None` if it does not run.
    pub(super) fn change(
        &mut self,
        job: JobId,
        now: Instant,
        point: &OperatingPoint,
        outcome: Outcome,
        pause: Span,
    ) -> Option<(Instant, bool)> {
        let course = self.running.get_mut(&job)?;
        course.charge(now);
        course.progress.change(now, outcome.run_time, point.time, pause);
        (course.nodes, course.power) = (point.nodes, outcome.power);
        course.has_changed = true;
        Some(course.end())
    }

    /// Whether no course is kept.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// A job ends. What it had in all, if that ever changed.
    pub(super) fn end(&mut self, job: JobId, now: Instant) -> Option<Total> {
        let mut course = self.running.remove(&job)?;
        course.charge(now);
        course.has_changed.then_some(course.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(nodes: u32, seconds: u32) -> (OperatingPoint, Outcome) {
        let power = Watts::from_watts(100 * nodes);
        let cap = Watts::from_watts(100);
        let point = OperatingPoint { nodes, cores: 1, cap, time: Span::from_secs(seconds), power };
        (point, Outcome { run_time: Span::from_secs(seconds / 2), power })
    }

    /// 100 s of work on 2 nodes that takes 50 s on 4, and may take twice as long. After 40 s there
    /// are 60 % left: 30 s on 4 nodes, after 10 s of moving. 5 s into the move it is to move back:
    /// 60 s on 2 nodes, 5 + 20 s later.
    #[test]
    fn a_course_by_hand() {
        let (job, at, seconds) = (JobId(3), Instant::from_secs, Span::from_secs);
        let ((few, slow), (many, fast)) = (point(2, 200), point(4, 100));
        let mut courses = Courses::default();
        courses.start(job, at(1000), &few, slow);
        let end = courses.change(job, at(1040), &many, fast, seconds(10));
        assert_eq!(end, Some((at(1080), false)));
        let end = courses.change(job, at(1045), &few, slow, seconds(20));
        assert_eq!(end, Some((at(1130), false)));
        // 40 s and 85 s on 2 nodes, 5 s on 4.
        let total = courses.end(job, at(1130)).unwrap();
        assert_eq!(total.node_millis, 270_000);
        assert_eq!(total.energy.as_f64(), 27_000.0);
        assert_eq!(courses.end(job, at(1130)), None);
    }

    /// A job that would take 50 s on 4 nodes is allowed 100 s there; at a point where it would take
    /// 50 s and is allowed 20 s, its time is up.
    #[test]
    fn the_allowance_goes_with_the_point() {
        let (job, at) = (JobId(3), Instant::from_secs);
        let ((many, outcome), (short, _)) = (point(4, 100), point(4, 20));
        let mut courses = Courses::default();
        courses.start(job, at(0), &many, outcome);
        // Half of the work and a quarter of the allowance are used up.
        let end = courses.change(job, at(25), &short, outcome, Span::ZERO);
        assert_eq!(end, Some((at(40), true)));
        assert_eq!(courses.change(JobId(9), at(25), &short, outcome, Span::ZERO), None);
    }
}
