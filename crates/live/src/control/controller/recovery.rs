//! Recovery: jobs after a restart of the daemon, and acts that could not be carried out.

use super::{Act, Controller};
use crate::engine::{Found, Signal};
use crate::job::{
    Allotment, Attempt, ChangeReason, End, EventKind, JobOutcome, Phase, Previous, Run,
};
use busbar_core::units::{Instant, Joules, Span};

/// The pause before a failed change is tried again.
const BETWEEN_TRIES: Span = Span::from_secs(1);

/// The number of tries after which a job counts as one that cannot be changed.
const MOST_TRIES: u32 = 3;

/// Failed changes of a job.
#[derive(Debug, Default)]
pub(super) struct Failure {
    /// The number of failures in a row.
    tries: u32,
    /// When the change may be tried again, if that is due.
    pub(super) again: Option<Instant>,
    /// Whether the job may have something else than is written down, so that it must be told again.
    is_unclear: bool,
    /// Whether the job may still be suspended although it is to go on.
    is_stopped: bool,
    /// Whether the job runs on although it was to be suspended.
    is_unstoppable: bool,
}

impl Controller {
    /// The attempts that are running according to the store.
    pub fn attempts(&self) -> Vec<Attempt> {
        let attempt = |number: &u64| {
            let entry = self.jobs.get(number)?;
            Some(entry.attempt())
        };
        self.running.iter().filter_map(attempt).collect()
    }

    /// Whether an attempt is running according to the store.
    pub(crate) fn is_running_attempt(&self, attempt: Attempt) -> bool {
        let entry = self.jobs.get(&attempt.job).filter(|entry| entry.run().is_some());
        entry.is_some_and(|entry| entry.attempt() == attempt)
    }

    /// What an attempt may have: its present settings, and those before as long as the last change is not confirmed. Nothing if
    /// its nodes are not known.
    pub(crate) fn may_have(&self, attempt: Attempt) -> Vec<Allotment> {
        let Some(run) = self.run_of(attempt.job).filter(|run| !run.unplaced) else {
            return Vec::new();
        };
        let before = run.before.iter().map(|before| before.allotment.clone());
        std::iter::once(run.allotment.clone()).chain(before).collect()
    }

    /// Takes in what the engine found out about an attempt after a restart.
    pub(crate) fn found(&mut self, now: Instant, attempt: Attempt, found: Found) {
        match found {
            Found::Running => (),
            Found::Ended { end, ago } => self.has_ended(now, attempt, end, ago),
            Found::NeverStarted => {
                self.never_started(now, attempt, "the daemon ended before the job began", false);
            }
            Found::NotBegun(reason) => self.never_started(now, attempt, &reason, true),
        }
    }

    /// Sends the current settings of all running jobs and of nodes that are being switched to the engine again, since a
    /// daemon may have died between writing and applying them. Settings that reduce power come first, then those
    /// that were confirmed.
    pub(crate) fn resend_settings(&mut self) {
        let (mut less, mut same, mut more) = (Vec::new(), Vec::new(), Vec::new());
        let (mut stops, mut goes_on, mut asked) = (Vec::new(), Vec::new(), Vec::new());
        for number in &self.running {
            let Some(entry) = self.jobs.get(number) else { continue };
            let Some(run) = entry.run() else { continue };
            let attempt = entry.attempt();
            match run.suspended {
                true => stops.push(Act::Signal { attempt, signal: Signal::Suspend }),
                false => goes_on.push(Act::ResumeAgain { attempt }),
            }
            if let Some(ending) = run.ending {
                let signal = if ending.forced { Signal::Kill } else { Signal::Terminate };
                asked.push(Act::Signal { attempt, signal });
            }
            if run.unplaced {
                continue;
            }
            let order = match &run.before {
                None => &mut same,
                Some(before) if run.allotment.power > before.allotment.power => &mut more,
                Some(_) => &mut less,
            };
            order.push(set_again(attempt, run));
        }
        self.unwritten.acts.extend([stops, less, same, asked, more, goes_on].into_iter().flatten());
        self.resend_switches();
    }

    /// Records that the engine has applied the last change, or that the attempt is over.
    pub(crate) fn confirmed(&mut self, attempt: Attempt, allotment: &Allotment) {
        let Some(entry) = self.jobs.get_mut(&attempt.job) else { return };
        let Phase::Running(run) = &mut entry.phase else { return };
        if entry.attempts != attempt.number {
            return;
        }
        if run.allotment != *allotment {
            // It has something else than before its next change.
            if let Some(before) = &mut run.before {
                before.allotment = allotment.clone();
                self.unwritten.confirmed.insert(attempt.job);
            }
            return;
        }
        self.failures.retain(|number, failure| *number != attempt.job || failure.is_stopped);
        if run.before.take().is_some() {
            self.unwritten.confirmed.insert(attempt.job);
        }
    }

    /// Records that a change of a job failed, or may have failed if that is not clear. It is tried again later, a
    /// limited number of times before the last resort acts.
    pub(crate) fn failed(&mut self, now: Instant, attempt: Attempt, is_unclear: bool) {
        let failure = self.failures.entry(attempt.job).or_default();
        failure.tries += 1;
        failure.again = Some(now + BETWEEN_TRIES);
        failure.is_unclear |= is_unclear;
    }

    /// Records that a job could not be resumed. It counts as one that runs, and is told again.
    pub(crate) fn not_resumed(&mut self, now: Instant, attempt: Attempt) {
        self.failed(now, attempt, false);
        self.failures.entry(attempt.job).or_default().is_stopped = true;
    }

    /// Records that the engine has resumed a job.
    pub(crate) fn resumed(&mut self, attempt: Attempt) {
        let Some(failure) = self.failures.get_mut(&attempt.job) else { return };
        failure.is_stopped = false;
        if failure.again.is_none() && !failure.is_unclear {
            self.failures.remove(&attempt.job);
        }
    }

    /// Records that a job could not be suspended, as far as is known: it runs on, and counts with what it has.
    pub(crate) fn not_suspended(&mut self, now: Instant, attempt: Attempt) {
        let Some(entry) = self.jobs.get_mut(&attempt.job) else { return };
        let is_this = entry.attempts == attempt.number;
        let Some(run) = entry.run_mut().filter(|run| is_this && run.suspended) else { return };
        run.resume(now);
        self.must_rebuild = true;
        self.unwritten.changed.insert(attempt.job);
        self.note(now, EventKind::Resumed { job: attempt.job });
        self.failed(now, attempt, false);
        let failure = self.failures.entry(attempt.job).or_default();
        // It may have been suspended all the same, and is told to go on unless it is to be suspended again.
        (failure.is_unstoppable, failure.is_stopped) = (true, true);
    }

    /// A job that was to go on stays suspended, because the power for it was not freed.
    fn stays_suspended(&mut self, now: Instant, attempt: Attempt) {
        let Some(entry) = self.jobs.get_mut(&attempt.job) else { return };
        let is_this = entry.attempts == attempt.number;
        let Some(run) = entry.run_mut().filter(|run| is_this && !run.suspended) else { return };
        run.suspend(now);
        self.unwritten.changed.insert(attempt.job);
        self.note(now, EventKind::Suspended { job: attempt.job });
    }

    /// Whether a change of this job has just failed.
    pub(super) fn has_just_failed(&self, number: u64) -> bool {
        self.failures.get(&number).is_some_and(|failure| failure.again.is_some())
    }

    /// Whether this job could not be suspended just now.
    pub(super) fn is_unstoppable(&self, number: u64) -> bool {
        let failure = self.failures.get(&number);
        failure.is_some_and(|failure| failure.is_unstoppable && failure.again.is_some())
    }

    /// Whether a change of any job has just failed.
    pub(super) fn is_about_to_try_again(&self) -> bool {
        self.failures.values().any(|failure| failure.again.is_some())
    }

    /// Whether a failed change may still succeed when it is tried again.
    pub(super) fn may_still_succeed(&self) -> bool {
        let may = |failure: &Failure| failure.again.is_some() && failure.tries < MOST_TRIES;
        self.failures.values().any(may)
    }

    /// Allows failed changes to be tried again when they are due. Unconfirmed ones are sent again, and so is what the
    /// job has, if nobody knows whether it has that; the others are decided anew.
    pub(super) fn try_again(&mut self, now: Instant) {
        for (number, failure) in &mut self.failures {
            if failure.again.is_none_or(|again| again > now) {
                continue;
            }
            failure.again = None;
            self.must_ask = true;
            let Some(entry) = self.jobs.get(number) else { continue };
            let Some(run) = entry.run() else { continue };
            let attempt = entry.attempt();
            if run.before.is_some() || std::mem::take(&mut failure.is_unclear) {
                self.unwritten.acts.push(set_again(attempt, run));
            }
            if failure.is_stopped && !run.suspended {
                self.unwritten.acts.push(Act::ResumeAgain { attempt });
            }
        }
    }

    /// Records that an attempt did not begin and never will. The job waits again, or is held if a
    /// person should look at it first.
    pub(crate) fn never_started(
        &mut self,
        now: Instant,
        attempt: Attempt,
        reason: &str,
        hold: bool,
    ) {
        let Some(entry) = self.jobs.get_mut(&attempt.job) else { return };
        let Some(&Run { ending, start, .. }) = entry.run() else { return };
        if entry.attempts != attempt.number {
            return;
        }
        self.must_rebuild = true;
        if let Some(ending) = ending {
            self.scheduler.end(attempt.job);
            let outcome = JobOutcome {
                start: Some(start),
                end: now,
                how: Some(End::Failed(reason.to_owned())),
                reason: Some(ending.reason),
                energy: Joules::ZERO,
                nodes: Vec::new(),
                by: ending.by,
                full_speed: None,
            };
            self.running.remove(&attempt.job);
            self.finish(now, attempt.job, outcome);
            return;
        }
        entry.phase = Phase::Waiting;
        self.running.remove(&attempt.job);
        self.unwritten.changed.insert(attempt.job);
        let reason = reason.to_owned();
        self.note(now, EventKind::Withdrawn { job: attempt.job, reason });
        if hold {
            self.set_held(now, attempt.job, true, None);
        }
        self.unwritten.acts.push(Act::Forget { attempt });
    }

    /// Reverts acts that were not carried out because an earlier act failed that should have freed
    /// power.
    pub(crate) fn undo(&mut self, now: Instant, undone: &[&Act], reason: &str) {
        // In reverse order: one job may have been changed twice.
        for act in undone.iter().rev() {
            match act {
                Act::Start { attempt, .. } => self.never_started(now, *attempt, reason, false),
                Act::Set { attempt, before, .. } => self.go_back(now, *attempt, before),
                Act::Switch { node, to, again, .. } => {
                    self.not_switched(now, *node, *to, *again);
                }
                Act::Signal { attempt, signal: Signal::Resume } => {
                    self.stays_suspended(now, *attempt);
                }
                // Sent again when it is due.
                Act::Signal { .. }
                | Act::ResumeAgain { .. }
                | Act::Forget { .. }
                | Act::Dismiss { .. } => (),
            }
        }
        self.must_rebuild = true;
    }

    fn go_back(&mut self, now: Instant, attempt: Attempt, before: &Previous) {
        let Some(entry) = self.jobs.get_mut(&attempt.job) else { return };
        let Some(run) = entry.run_mut() else { return };
        let Previous { mut allotment, squeezed_from } = before.clone();
        if !self.scheduler.names_nodes() && allotment.nodes.len() == run.allotment.nodes.len() {
            // They may have been chosen since.
            let cap = allotment.cap;
            allotment.nodes = run.allotment.nodes.iter().map(|(node, _)| (*node, cap)).collect();
        }
        if run.allotment == allotment {
            return;
        }
        run.change(now, allotment.clone(), Span::ZERO);
        (run.squeezed_from, run.before) = (squeezed_from, None);
        self.unwritten.changed.insert(attempt.job);
        let because = ChangeReason::Policy;
        self.note(now, EventKind::Changed { job: attempt.job, allotment, reason: because });
    }
}

/// An act that sends the current settings of a job to the engine again.
pub(super) fn set_again(attempt: Attempt, run: &Run) -> Act {
    let before = run.before.as_deref().cloned().unwrap_or_else(|| run.present());
    let allotment = run.allotment.clone();
    Act::Set { attempt, allotment, before, pause: Span::ZERO, again: true }
}
