//! How many nodes each job had, and from when until when.
//!
//! Most jobs have one stretch: from start to end on the nodes of their record. A job that changed
//! while it ran has one for each number of nodes. What it had first is nowhere written down, but what it
//! had in all is, and so is what it had later.

use std::collections::HashMap;

use crate::sim::Run;
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
    let mut changes: HashMap<JobId, Vec<(Instant, u32)>> = HashMap::new();
    for change in &run.changes {
        let steps = changes.entry(change.job).or_default();
        // Of several steps at one instant the last one holds.
        if steps.last().is_some_and(|last| last.0 == change.at) {
            steps.pop();
        }
        steps.push((change.at, change.nodes));
    }
    let mut stretches = Vec::with_capacity(run.records.len());
    for (job, record) in (0..).map(JobId).zip(&run.records) {
        if !record.state.has_run() || record.start >= record.end {
            continue;
        }
        let whole = Stretch { job, from: record.start, until: record.end, nodes: record.nodes };
        // A job that a failing node threw out has changes from before its last start.
        let later = changes.get(&job).map_or(&[][..], |steps| {
            &steps[steps.partition_point(|step| step.0 <= record.start)..]
        });
        let Some(&(first_change, _)) = later.first() else {
            stretches.push(whole);
            continue;
        };
        let ends = later.iter().skip(1).map(|step| step.0).chain([record.end]);
        let rest: Vec<Stretch> = later
            .iter()
            .zip(ends)
            .map(|(&(from, nodes), until)| Stretch { job, from, until, nodes })
            .filter(|stretch| stretch.from < stretch.until)
            .collect();
        let node_millis = |stretch: &Stretch| {
            u128::from(stretch.nodes) * u128::from(stretch.until.since(stretch.from).millis())
        };
        let later_nodes: u128 = rest.iter().map(node_millis).sum();
        let before = run.total(job).node_millis.saturating_sub(later_nodes);
        let nodes = before / u128::from(first_change.since(record.start).millis().max(1));
        let nodes = u32::try_from(nodes).unwrap_or(record.nodes);
        stretches.push(Stretch { until: first_change, nodes, ..whole });
        stretches.extend(rest);
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
    changes.sort_unstable();
    let mut steps = vec![(begin, 0)];
    let mut nodes = 0i64;
    for (at, change) in changes {
        nodes += change;
        match steps.last_mut() {
            Some(last) if last.0 == at => last.1 = nodes.max(0) as u64,
            _ => steps.push((at, nodes.max(0) as u64)),
        }
    }
    steps
}
