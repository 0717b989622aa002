//! A run once more, from its begin to its end: who comes, who starts and who ends at each instant.
//!
//! One walk gives everything that changes over time: how many nodes are busy, how many jobs wait, and where each job
//! is drawn.

use std::num::NonZeroU32;

use super::envelope::{Envelope, Steps};
use super::lanes::{Bar, Lanes};
use super::stretches::{Stretch, changed};
use crate::job::Job;
use crate::sim::{Record, Run, State};
use crate::units::{Instant, JobId};

/// What a walk has seen.
pub(super) struct Seen {
    /// Nodes that ran a job.
    pub(super) busy: Envelope,
    /// Jobs that were submitted and had not started.
    pub(super) queue: Envelope,
}

/// Walks through a run on this many nodes. Rectangles are handed on as they are complete.
pub(super) fn walk(jobs: &[Job], run: &Run, nodes: u32, mut drawn: impl FnMut(Bar)) -> Seen {
    let waited = |(job, record): &(&Job, &Record)| waits_until(record, run.end) > job.submit;
    let mut arrivals =
        jobs.iter().zip(&run.records).filter(waited).map(|(job, _)| job.submit).peekable();
    let changed = changed(run);
    let moments = moments(run, &changed);
    let mut moments = moments.iter().peekable();
    let mut lanes = Lanes::new(nodes);

    let (mut busy, mut queue) = (0u64, 0u64);
    let mut seen = [run.begin; 2].map(|begin| Steps::between(begin, run.end));
    seen.iter_mut().for_each(|steps| steps.step(run.begin, 0));
    loop {
        let moment = moments.peek().map(|moment| moment.at);
        let next = [arrivals.peek().copied(), moment, lanes.next_end()];
        let Some(now) = next.into_iter().flatten().min() else { break };
        while lanes.next_end() == Some(now) {
            busy -= u64::from(lanes.end(&mut drawn));
        }
        while arrivals.next_if_eq(&now).is_some() {
            queue += 1;
        }
        while let Some(moment) = moments.next_if(|moment| moment.at == now) {
            let (job, record) = (&jobs[moment.job.index()], &run.records[moment.job.index()]);
            let stretch = match moment.change {
                Some(place) => Some(changed[place.get() as usize - 1]),
                None => {
                    queue -= u64::from(job.submit < now);
                    Stretch::of(moment.job, record)
                }
            };
            if let Some(stretch) = stretch {
                busy += u64::from(stretch.nodes);
                lanes.begin(stretch);
            }
        }
        seen[0].step(now, busy);
        seen[1].step(now, queue);
    }
    let [busy, queue] = seen.map(Steps::envelope);
    Seen { busy, queue }
}

/// Until when a job waits: to its start, or until it was turned away or given up. One that a failing node threw out
/// waits until it starts for the last time.
fn waits_until(record: &Record, end: Instant) -> Instant {
    if record.state == State::Waiting { end } else { record.start }
}

/// A job leaves the queue, or one that changes begins one of its stretches: there is a moment for every job, so it is
/// kept small.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    at: Instant,
    job: JobId,
    /// Which of the stretches of jobs that changed begins, counted from one.
    change: Option<NonZeroU32>,
}

/// The moments of a run, in order.
fn moments(run: &Run, changed: &[Stretch]) -> Vec<Moment> {
    let jobs = (0..).map(JobId).zip(&run.records);
    // Who waits to the end never leaves.
    let leaves = jobs.filter(|(_, record)| record.state != State::Waiting);
    let leaves = leaves.map(|(job, record)| Moment { at: record.start, job, change: None });
    let begins = (1..).map(NonZeroU32::new).zip(changed);
    let begins = begins.map(|(change, &Stretch { from: at, job, .. })| Moment { at, job, change });
    let mut moments = Vec::with_capacity(run.records.len() + changed.len());
    moments.extend(leaves.chain(begins));
    moments.sort_unstable();
    moments
}
