//! How jobs end: by themselves, at their time limits, or because they were asked to.

use super::Controller;
use super::outcome::Act;
use crate::engine::Signal;
use crate::job::{Attempt, End, EndReason, Ending, Entry, EventKind, JobOutcome, Phase};
use crate::store::PAST_JOBS;
use busbar_core::model::OperatingPoint;
use busbar_core::units::{Instant, Joules, Span};

impl Controller {
    /// Records that an attempt ends now.
    pub fn ended(&mut self, now: Instant, attempt: Attempt, end: End) {
        self.has_ended(now, attempt, end, Span::ZERO);
    }

    /// Records that an attempt ended some time ago, while nobody looked. It is charged until then. Anything but the job's
    /// current attempt is ignored.
    pub(crate) fn has_ended(&mut self, now: Instant, attempt: Attempt, end: End, ago: Span) {
        let Some(entry) = self.jobs.get(&attempt.job) else {
            self.unwritten.acts.push(Act::Forget { attempt });
            return;
        };
        let Some(run) = entry.run() else { return };
        if entry.attempts != attempt.number {
            return;
        }
        let at = Instant::from_millis(now.millis().saturating_sub(ago.millis())).max(run.start);
        let outcome = JobOutcome {
            start: Some(run.start),
            end: at,
            how: Some(end),
            reason: run.ending.map(|ending| ending.reason),
            energy: run.energy_at(at),
            nodes: run.allotment.node_numbers(),
            by: run.ending.and_then(|ending| ending.by),
            full_speed: Some(run.full_speed_at(at, entry.request.time)),
        };
        self.scheduler.end(attempt.job);
        self.keep_out();
        self.running.remove(&attempt.job);
        self.must_ask = true;
        self.finish(now, attempt.job, outcome);
        self.unwritten.acts.push(Act::Forget { attempt });
    }

    /// Records that a job is over. Jobs that depend on it are queued or dropped.
    pub(super) fn finish(&mut self, now: Instant, number: u64, outcome: JobOutcome) {
        let Some(mut entry) = self.jobs.remove(&number) else { return };
        if let Some(handle) = &entry.handle {
            self.by_handle.remove(handle);
        }
        let bytes = self.bytes.remove(&number).unwrap_or_default();
        if let Some(own) = self.of_user.get_mut(&entry.owner.user) {
            own.jobs = own.jobs.saturating_sub(1);
            own.bytes = own.bytes.saturating_sub(bytes);
        }
        self.unwritten.changed.remove(&number);
        self.failures.remove(&number);
        self.stuck.remove(&number);
        self.aside.remove(&number);
        self.misplaced.remove(&number);
        self.unmanaged.remove(&number);
        let is_good = outcome.succeeded();
        self.note(now, EventKind::Ended { job: number, outcome: outcome.clone() });
        entry.phase = Phase::Over(outcome);
        if let Some(past) = self.setup.past(&entry) {
            self.past.push_back(past);
            self.past.drain(..self.past.len().saturating_sub(PAST_JOBS));
        }
        let element = entry.array;
        self.unwritten.over.push(entry);
        self.notify_dependents(now, number, is_good);
        if let Some(element) = element {
            self.arrays.remove(element, number);
            self.fill_places(element.array);
            self.notify_dependents(now, element.array, is_good);
        }
    }

    /// Queues or drops the jobs that depend on a job or an array of which something has just ended.
    pub(super) fn notify_dependents(&mut self, now: Instant, needed: u64, is_good: bool) {
        let is_over = !self.is_present(needed);
        let dependents = match (is_over, is_good) {
            (true, _) => self.dependents.remove(&needed),
            (false, true) => None,
            (false, false) => self.dependents.get(&needed).cloned(),
        };
        for dependent in dependents.unwrap_or_default() {
            let Some(entry) = self.jobs.get(&dependent) else { continue };
            let mut needs = entry.request.after.iter().filter(|after| after.job == needed);
            if !is_good && !needs.all(|after| after.any) {
                self.abandon(now, dependent, EndReason::Dependency, None);
            } else if is_over {
                self.enqueue(dependent);
            }
        }
    }

    /// Removes a job from the queue, if it is there.
    pub(super) fn withdraw(&mut self, number: u64) {
        self.must_rebuild |= !self.scheduler.withdraw(number);
        self.must_ask = true;
        self.leave_place(number);
    }

    /// Ends a waiting job without running it; `by` is the user who asked for that, if one did. The engine need not keep
    /// it any longer.
    pub(super) fn abandon(&mut self, now: Instant, number: u64, why: EndReason, by: Option<u32>) {
        if let Some((attempt, handle)) = self.jobs.get(&number).and_then(Entry::in_engine) {
            self.unwritten.acts.push(Act::Dismiss { attempt, handle });
        }
        self.never_runs(now, number, why, by);
    }

    /// Records that a waiting job will not run.
    pub(super) fn never_runs(
        &mut self,
        now: Instant,
        number: u64,
        why: EndReason,
        by: Option<u32>,
    ) {
        self.withdraw(number);
        self.scheduler.remove(number);
        let outcome = JobOutcome {
            start: None,
            end: now,
            how: None,
            reason: Some(why),
            energy: Joules::ZERO,
            nodes: Vec::new(),
            by,
            full_speed: None,
        };
        self.finish(now, number, outcome);
    }

    /// Asks jobs past their time limit to end, and kills those that were asked in vain.
    pub(super) fn enforce_times(&mut self, now: Instant) {
        let due = |number: &u64| self.due(self.jobs.get(number)?);
        let is_due = |number: &&u64| due(number).is_some_and(|at| at <= now);
        let due: Vec<u64> = self.running.iter().filter(is_due).copied().collect();
        for number in due {
            self.ask_to_end(now, number, EndReason::TimeLimit, None);
        }
    }

    /// When a running job is to be asked to end, or to be killed. The engine ends those that came through it at the limits
    /// that it knows, and says that it did.
    pub(super) fn due(&self, entry: &Entry) -> Option<Instant> {
        let run = entry.run()?;
        match run.ending {
            None => entry.handle.is_none().then_some(run.until),
            Some(ending) => Some(ending.asked + self.setup.kill_after),
        }
    }

    /// Records that the engine ends an attempt at its time limit.
    pub(crate) fn out_of_time(&mut self, now: Instant, attempt: Attempt) {
        let Some(entry) = self.jobs.get_mut(&attempt.job) else { return };
        let is_this = entry.attempts == attempt.number;
        let Some(run) = entry.run_mut().filter(|run| is_this && run.ending.is_none()) else {
            return;
        };
        let reason = EndReason::TimeLimit;
        run.ending = Some(Ending { reason, asked: now, forced: false, by: None });
        self.unwritten.changed.insert(attempt.job);
        self.note(now, EventKind::Ending { job: attempt.job, reason, forced: false, by: None });
    }

    /// Asks a running job to end. Kills it if it was asked long enough ago, or if it is suspended
    /// and could not react.
    pub(super) fn ask_to_end(
        &mut self,
        now: Instant,
        number: u64,
        why: EndReason,
        by: Option<u32>,
    ) {
        let Some(entry) = self.jobs.get_mut(&number) else { return };
        let attempt = entry.attempt();
        let Some(run) = entry.run_mut() else { return };
        let is_overdue = |before: Ending| before.asked + self.setup.kill_after <= now;
        if run.ending.is_some_and(|before| !is_overdue(before)) {
            return;
        }
        let forced = run.ending.is_some() || run.suspended;
        let (why, by) = run.ending.map_or((why, by), |ending| (ending.reason, ending.by));
        run.ending = Some(Ending { reason: why, asked: now, forced, by });
        self.unwritten.changed.insert(number);
        self.must_ask = true;
        let signal = if forced { Signal::Kill } else { Signal::Terminate };
        self.unwritten.acts.push(Act::Signal { attempt, signal });
        self.note(now, EventKind::Ending { job: number, reason: why, forced, by });
    }

    /// Policies assume that every running job ends later than now; extends those that did not.
    pub(super) fn extend_overdue(&mut self, now: Instant) {
        for number in self.scheduler.overdue() {
            let ending = self.run_of(number).and_then(|run| run.ending);
            let asked = ending.map_or(now, |ending| ending.asked);
            let until = (asked + self.setup.kill_after).max(now + OperatingPoint::SHORTEST);
            self.scheduler.extend(number, until);
        }
    }
}
