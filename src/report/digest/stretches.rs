//! How many nodes each job had, and from when until when; and how many jobs waited.
//!
//! Most jobs have one stretch: from start to end on the nodes of their record. A job that changed
//! while it ran has one for each number of nodes.

use std::collections::HashMap;

use crate::job::Job;
use crate::sim::{Run, State};
use crate::units::{Instant, JobId};

/// So many nodes for so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) job: JobId,
    pub(super) from: Instant,
    pub(super) until: Instant,
    pub(super) nodes: u32,
}

/// The stretches of all jobs that have run, in the order of jobs, each job's in order of time. None is
/// empty.
pub(super) fn stretches(run: &Run) -> Vec<Stretch> {
    let mut steps: HashMap<JobId, Vec<(Instant, u32)>> = HashMap::new();
    for (_, step) in run.steps() {
        let of_job = steps.entry(step.job).or_default();
        // Of several steps at one instant the last one holds.
        if of_job.last().is_some_and(|last| last.0 == step.at) {
            of_job.pop();
        }
        of_job.push((step.at, step.nodes));
    }
    let mut stretches = Vec::with_capacity(run.records.len());
    for (job, record) in (0..).map(JobId).zip(&run.records) {
        if !record.state.has_run() || record.start >= record.end {
            continue;
        }
        // A job that a failing node threw out has steps from before its last start.
        let had = steps.get(&job).map_or(&[][..], |of_job| {
            &of_job[of_job.partition_point(|step| step.0 < record.start)..]
        });
        if had.is_empty() {
            let (from, until, nodes) = (record.start, record.end, record.nodes);
            stretches.push(Stretch { job, from, until, nodes });
            continue;
        }
        let ends = had.iter().skip(1).map(|step| step.0).chain([record.end]);
        let of_job = had.iter().zip(ends);
        let of_job = of_job.map(|(&(from, nodes), until)| Stretch { job, from, until, nodes });
        stretches.extend(of_job.filter(|stretch| stretch.from < stretch.until));
    }
    stretches
}

/// How many nodes are busy, from instant to instant.
pub(super) fn busy(stretches: &[Stretch], begin: Instant) -> Vec<(Instant, u64)> {
    let mut changes: Vec<(Instant, i64)> = Vec::with_capacity(2 * stretches.len());
    for stretch in stretches {
        changes.push((stretch.from, i64::from(stretch.nodes)));
        changes.push((stretch.until, -i64::from(stretch.nodes)));
    }
    sums(changes, begin)
}

/// How many jobs wait, from instant to instant: each from its submission to its start, or until it was
/// turned away or given up. One that a failing node threw out waits until it starts for the last time.
pub(super) fn queue(jobs: &[Job], run: &Run) -> Vec<(Instant, u64)> {
    let mut changes: Vec<(Instant, i64)> = Vec::with_capacity(2 * jobs.len());
    for (job, record) in jobs.iter().zip(&run.records) {
        let until = if record.state == State::Waiting { run.end } else { record.start };
        if job.submit < until {
            changes.push((job.submit, 1));
            changes.push((until, -1));
        }
    }
    sums(changes, run.begin)
}

/// What changes add up to, from instant to instant.
fn sums(mut changes: Vec<(Instant, i64)>, begin: Instant) -> Vec<(Instant, u64)> {
    changes.sort_unstable();
    let mut steps = vec![(begin, 0)];
    let mut sum = 0i64;
    for (at, change) in changes {
        sum += change;
        match steps.last_mut() {
            Some(last) if last.0 == at => last.1 = sum.max(0) as u64,
            _ => steps.push((at, sum.max(0) as u64)),
        }
    }
    steps
}
