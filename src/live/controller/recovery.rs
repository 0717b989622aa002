//! What became of jobs while nobody watched, and of acts that could not be carried out.

use super::{Act, Controller};
use crate::live::engine::{Allotment, Attempt, End, Found, Signal};
use crate::live::job::{Because, Course, Happening, Outcome, Phase};
use crate::units::{Instant, Joules, Span};

impl Controller {
    /// The attempts that are under way, as far as was written down.
    pub fn attempts(&self) -> Vec<Attempt> {
        let attempt = |number: &u64| {
            let entry = self.jobs.get(number)?;
            Some(Attempt { job: *number, number: entry.attempts })
        };
        self.running.iter().filter_map(attempt).collect()
    }

    /// What an engine says of an attempt that was decided before a restart.
    pub fn found(&mut self, now: Instant, attempt: Attempt, found: Found) {
        match found {
            Found::Running => (),
            Found::Ended(end) => self.ended(now, attempt, end),
            Found::NeverStarted => {
                self.never_started(now, attempt, "the daemon ended before it began", false);
            }
        }
    }

    /// Tells the engine again what every running job has: a daemon may have died between writing that
    /// down and doing it. What becomes less comes first.
    pub fn say_again(&mut self) {
        let (mut less, mut more) = (Vec::new(), Vec::new());
        let (mut stops, mut goes_on, mut asked) = (Vec::new(), Vec::new(), Vec::new());
        for number in &self.running {
            let Some(entry) = self.jobs.get(number) else { continue };
            let Phase::Running(course) = &entry.phase else { continue };
            let attempt = Attempt { job: *number, number: entry.attempts };
            match course.suspended {
                true => stops.push(Act::Signal { attempt, signal: Signal::Suspend }),
                false => goes_on.push(Act::Signal { attempt, signal: Signal::Resume }),
            }
            if let Some(ending) = course.ending {
                let signal = if ending.forced { Signal::Kill } else { Signal::Terminate };
                asked.push(Act::Signal { attempt, signal });
            }
            let allotment = course.allotment.clone();
            let is_more = allotment.power > course.previous_power;
            let (before, pause) = (allotment.clone(), Span::ZERO);
            let set = Act::Set { attempt, allotment, before, pause };
            if is_more { &mut more } else { &mut less }.push(set);
        }
        self.unwritten.acts.extend([stops, less, asked, more, goes_on].into_iter().flatten());
    }

    /// An attempt did not begin and never will: the job waits again, or is held if it is to be looked at
    /// first.
    pub fn never_started(&mut self, now: Instant, attempt: Attempt, reason: &str, hold: bool) {
        let Some(entry) = self.jobs.get_mut(&attempt.job) else { return };
        let Phase::Running(Course { ending, start, .. }) = &entry.phase else { return };
        if entry.attempts != attempt.number {
            return;
        }
        let (ending, start) = (*ending, *start);
        self.must_rebuild = true;
        if let Some(ending) = ending {
            self.roster.end(attempt.job);
            let outcome = Outcome {
                start: Some(start),
                end: now,
                how: Some(End::Failed(reason.to_owned())),
                why: Some(ending.why),
                energy: Joules::ZERO,
                nodes: Vec::new(),
                by: ending.by,
            };
            self.running.remove(&attempt.job);
            self.finish(now, attempt.job, outcome);
            return;
        }
        entry.phase = Phase::Waiting;
        self.running.remove(&attempt.job);
        self.unwritten.changed.insert(attempt.job);
        let reason = reason.to_owned();
        self.note(now, Happening::Withdrawn { job: attempt.job, reason });
        if hold {
            self.set_held(now, attempt.job, true, None);
        }
        self.unwritten.acts.push(Act::Forget { attempt });
    }

    /// Acts that were not carried out, because one before them, which was to free power, failed: what
    /// they would have changed is as it was.
    pub fn undo(&mut self, now: Instant, undone: &[Act], reason: &str) {
        // The last first: one job may have been changed twice.
        for act in undone.iter().rev() {
            match act {
                Act::Start { attempt, .. } => self.never_started(now, *attempt, reason, false),
                Act::Set { attempt, before, .. } => self.go_back(now, *attempt, before),
                // Said again when it is due again.
                Act::Signal { .. } | Act::Forget { .. } => (),
            }
        }
        self.must_rebuild = true;
    }

    fn go_back(&mut self, now: Instant, attempt: Attempt, before: &Allotment) {
        let Some(entry) = self.jobs.get_mut(&attempt.job) else { return };
        let Phase::Running(course) = &mut entry.phase else { return };
        course.change(now, before.clone(), Span::ZERO);
        self.unwritten.changed.insert(attempt.job);
        let (allotment, because) = (before.clone(), Because::Policy);
        self.note(now, Happening::Changed { job: attempt.job, allotment, because });
    }
}
