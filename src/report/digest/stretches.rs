//! How many nodes each job had, and from when until when.
//!
//! Most jobs have one stretch: from start to end on the nodes of their record. A job that changed
//! while it ran has one for each number of nodes.

use std::collections::HashMap;

use crate::sim::{Record, Run};
use crate::units::{Instant, JobId};

/// This many nodes for so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) from: Instant,
    pub(super) until: Instant,
    pub(super) job: JobId,
    pub(super) nodes: u32,
    /// How many nodes the job goes on with when this stretch ends; none if that is its end.
    pub(super) then: u32,
}

impl Stretch {
    /// The one stretch of a job that ran and did not change.
    pub(super) fn of(job: JobId, record: &Record) -> Option<Self> {
        (runs(record) && record.changes == 0).then(|| Stretch::whole(job, record))
    }

    fn whole(job: JobId, record: &Record) -> Self {
        let (from, until, nodes) = (record.start, record.end, record.nodes);
        Stretch { from, until, job, nodes, then: 0 }
    }
}

fn runs(record: &Record) -> bool {
    record.state.has_run() && record.start < record.end
}

/// The stretches of all jobs that have changed, each job's in order of time. None is empty.
pub(super) fn changed(run: &Run) -> Vec<Stretch> {
    let mut steps: HashMap<JobId, Vec<(Instant, u32)>> = HashMap::new();
    for (_, step) in run.steps() {
        let of_job = steps.entry(step.job).or_default();
        // Of several steps at one instant the last one holds.
        if of_job.last().is_some_and(|last| last.0 == step.at) {
            of_job.pop();
        }
        of_job.push((step.at, step.nodes));
    }
    let mut stretches = Vec::new();
    for (job, record) in (0..).map(JobId).zip(&run.records) {
        if record.changes == 0 || !runs(record) {
            continue;
        }
        // A job that a failing node threw out has steps from before its last start.
        let had = steps.get(&job).map_or(&[][..], |of_job| {
            &of_job[of_job.partition_point(|step| step.0 < record.start)..]
        });
        if had.is_empty() {
            stretches.push(Stretch::whole(job, record));
            continue;
        }
        let first = stretches.len();
        let ends = had.iter().skip(1).map(|step| step.0).chain([record.end]);
        for (&(from, nodes), until) in had.iter().zip(ends).filter(|(step, end)| step.0 < *end) {
            if let Some(before) = stretches[first..].last_mut() {
                before.then = nodes;
            }
            stretches.push(Stretch { from, until, job, nodes, then: 0 });
        }
    }
    stretches
}
