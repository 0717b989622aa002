//! The energy of jobs with their parts of what their nodes draw when they are idle.
//!
//! A node draws its idle power once, however many jobs it has. While several jobs share it, each counts with a part of that in
//! proportion to the processors it holds; what the division leaves over, in microjoules, goes to the job that came first. So the
//! energies of all jobs add up to what was drawn by nodes that ran jobs, if no job was stopped by a failing node.

use std::collections::BTreeMap;
use std::ops::Range;

use super::RunContext;
use crate::sim::Run;
use crate::units::{Instant, JobId, Joules, Watts};

/// By job: the energy it drew, with its part of what its nodes draw when they are idle. Nothing for a job that did not run, and
/// for jobs that may have shared nodes if the run did not keep who was on which.
pub fn energy_totals(context: &RunContext<'_>, run: &Run) -> Vec<Option<Joules>> {
    let RunContext { machine, workload, .. } = *context;
    let has_run = |id: &JobId| run.records[id.index()].state.has_run();
    let ids = (0..run.records.len() as u32).map(JobId);
    let (Some(kinds), Some(seats)) = (&machine.kinds, workload.seats()) else {
        let idle = u128::from(machine.node().idle.milliwatts());
        let total = |id: JobId| {
            let total = run.total(id);
            total.energy + Joules::from_microjoules(total.node_millis * idle)
        };
        return ids.map(|id| has_run(&id).then(|| total(id))).collect();
    };
    let mut parts: Vec<Option<Joules>> = vec![None; run.records.len()];
    let mut shared: BTreeMap<u32, Vec<Stay>> = BTreeMap::new();
    for placed in run.placed.iter().filter(|placed| has_run(&placed.job)) {
        let record = &run.records[placed.job.index()];
        // A job that a failing node stopped was on other nodes before.
        let seat = seats.of(placed.job).ok().filter(|_| record.start == placed.at);
        let Some(seat) = seat else { continue };
        let (from, until) = (record.start, record.end);
        let kind = kinds.kinds().get(usize::from(seat.kind));
        let idle = kind.map_or(Watts::ZERO, |kind| kind.node().node().idle);
        let processors = seat.each.processors;
        let part = parts[placed.job.index()].get_or_insert(Joules::ZERO);
        for node in placed.nodes.iter().cloned().flatten() {
            match seat.is_whole {
                true => *part += idle.over(until.since(from)),
                false if from < until => {
                    let stay = Stay { job: placed.job, from, until, processors, idle };
                    shared.entry(node).or_default().push(stay);
                }
                false => (),
            }
        }
    }
    shared.into_values().for_each(|stays| split(stays, &mut parts));
    let all = ids.zip(parts);
    all.map(|(id, part)| Some(run.total(id).energy + part?)).collect()
}

/// A job on a node that it shares.
#[derive(Clone, Debug)]
struct Stay {
    job: JobId,
    from: Instant,
    until: Instant,
    processors: u32,
    /// What the node draws when it is idle.
    idle: Watts,
}

/// Splits the idle energy of a node among the jobs that shared it, which are in the order in which they came.
fn split(stays: Vec<Stay>, parts: &mut [Option<Joules>]) {
    let mut present: Vec<Stay> = Vec::new();
    let mut now = Instant::ZERO;
    let ends: Vec<Instant> = stays.iter().map(|stay| stay.until).collect();
    let mut times: Vec<Instant> = stays.iter().map(|stay| stay.from).chain(ends).collect();
    times.sort_unstable();
    times.dedup();
    let mut coming = stays.into_iter().peekable();
    for time in times {
        share(&present, now..time, parts);
        present.retain(|stay| stay.until > time);
        while let Some(stay) = coming.next_if(|stay| stay.from == time) {
            present.push(stay);
        }
        now = time;
    }
}

/// Shares the idle energy of a while among the jobs that were on the node.
fn share(present: &[Stay], during: Range<Instant>, parts: &mut [Option<Joules>]) {
    let Some(first) = present.first() else { return };
    let all = first.idle.over(during.end.since(during.start)).microjoules();
    let held: u128 = present.iter().map(|stay| u128::from(stay.processors)).sum();
    let of = |stay: &Stay| all * u128::from(stay.processors) / held.max(1);
    let rest = all - present.iter().map(of).sum::<u128>();
    for (place, stay) in present.iter().enumerate() {
        let more = if place == 0 { rest } else { 0 };
        let part = &mut parts[stay.job.index()];
        *part.get_or_insert(Joules::ZERO) += Joules::from_microjoules(of(stay) + more);
    }
}
