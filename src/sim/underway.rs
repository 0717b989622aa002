//! Jobs that run already when a simulation begins: a forecast starts from what is.
//!
//! They do not arrive but hold what they hold from the beginning, and end when their work is done, or when
//! they are expected to end at the latest. A job that is suspended is to be left out: nobody resumes it
//! in a simulation.

use std::cmp::Reverse;

use super::{End, Engine, Record, State};
use crate::ledger::Violation;
use crate::model::Outcome;
use crate::policy::Adopted;
use crate::units::{Instant, NodeId, Span};

/// A job that runs already when a simulation begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Underway {
    /// Which job of the workload, how it runs, and how far it has got. Its real work and the time it is
    /// allowed are taken to have gone on alike.
    pub running: Adopted,
    /// The nodes it is on, in ascending order, where that is known.
    pub nodes: Option<Vec<NodeId>>,
    /// When it is expected to end at the latest.
    pub until: Instant,
    /// When it started.
    pub start: Instant,
}

impl Underway {
    /// When it ends, and whether that is because its time is up. If its work should have been done
    /// before now, it ends when it is expected to end at the latest: nobody knows better.
    fn end(&self, now: Instant, outcome: Outcome, until: Instant) -> (Instant, bool) {
        let Adopted { since, work, .. } = self.running;
        let done = since + work.time(outcome.run_time);
        if done > now { (done.min(until), done > until) } else { (until, false) }
    }
}

impl Engine<'_> {
    /// Takes over what runs already. What the ledger refuses waits like any other job.
    pub(super) fn take_over(&mut self, underway: &[Underway], adjusts: bool) {
        for job in underway {
            if let Err(violation) = self.take_over_one(job, adjusts) {
                self.run.note(self.dispatch.ledger().now(), violation);
            }
        }
    }

    fn take_over_one(&mut self, underway: &Underway, adjusts: bool) -> Result<(), Violation> {
        let Adopted { job, point, ref caps, since, work, .. } = underway.running;
        let now = self.dispatch.ledger().now();
        let Some(asked) = self.workload.jobs().get(job.index()) else {
            return Err(Violation::NotWaiting { job });
        };
        // What is held ends after now.
        let until = underway.until.max(now + Span::from_millis(1));
        self.dispatch.restore(underway.running.clone(), underway.nodes.as_deref(), until)?;
        let run_time = self.workload.run_time(job);
        let ledger = self.dispatch.ledger();
        let outcome = self.truth.outcome(job, asked, run_time, &point, caps.as_ref(), ledger);
        let (end, killed) = underway.end(now, outcome, until);
        let record = Record {
            start: underway.start,
            end,
            nodes: point.nodes,
            cores: point.cores,
            cap: point.cap,
            power: outcome.power,
            state: State::Running,
            ..Record::WAITING
        };
        self.known = self.known.max(job.index() + 1);
        self.records.resize(self.records.len().max(self.known), Record::WAITING);
        self.records[job.index()] = record;
        self.underway.insert(job);
        self.meter.add(outcome.power);
        self.ends.push(Reverse(End::new(end, job, record.generation(), killed)));
        if adjusts {
            self.courses.go_on(job, now, (since, work), &point, outcome);
        }
        Ok(())
    }
}
