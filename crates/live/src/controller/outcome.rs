//! What came of a turn: what is to be written down, and what is then to be done.

use std::collections::BTreeSet;

use super::Controller;
use crate::engine::{Allotment, Attempt, Signal};
use crate::job::{ChangeReason, Entry, Event, EventKind, Phase, Previous, Program, Run};
use crate::store::Batch;
use busbar_core::units::{Instant, Span};

/// What came of the last turn and is to be written down and done.
#[derive(Default)]
pub(super) struct Unwritten {
    pub(super) submitted: Vec<(Entry, Program)>,
    pub(super) elements: Vec<Entry>,
    pub(super) changed: BTreeSet<u64>,
    /// Jobs whose last change was confirmed. That is written with whatever is written next: until then a
    /// restart would only say it again.
    pub(super) confirmed: BTreeSet<u64>,
    pub(super) over: Vec<Entry>,
    pub(super) events: Vec<Event>,
    pub(super) budget: Option<Option<String>>,
    pub(super) acts: Vec<Act>,
}

/// Something to be done in the real world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Start an attempt of a job.
    Start {
        /// Which.
        attempt: Attempt,
        /// What it has.
        allotment: Allotment,
    },
    /// Give a running job something else.
    Set {
        /// Which.
        attempt: Attempt,
        /// What it has from now on.
        allotment: Allotment,
        /// What it had.
        before: Previous,
        /// For how long it stands still, because it has to move.
        pause: Span,
        /// Whether it may have that already: nobody knows whether this was done before a restart.
        again: bool,
    },
    /// Send a signal.
    Signal {
        /// To whom.
        attempt: Attempt,
        /// Which.
        signal: Signal,
    },
    /// Whatever is kept of it may go.
    Forget {
        /// Of what.
        attempt: Attempt,
    },
}

/// What is to be written down, and then done.
pub struct Turn {
    /// To be written first.
    pub batch: Batch,
    /// To be done then, in this order.
    pub acts: Vec<Act>,
}

impl Controller {
    pub(super) fn start(&mut self, now: Instant, number: u64, allotment: Allotment) {
        let Some(entry) = self.jobs.get_mut(&number) else { return };
        entry.attempts += 1;
        let attempt = Attempt { job: number, number: entry.attempts };
        entry.phase = Phase::Running(Run::new(now, allotment.clone()));
        self.running.insert(number);
        self.unwritten.changed.insert(number);
        self.unwritten.acts.push(Act::Start { attempt, allotment: allotment.clone() });
        self.note(now, EventKind::Started { job: number, attempt: attempt.number, allotment });
    }

    pub(super) fn change(
        &mut self,
        now: Instant,
        number: u64,
        allotment: Allotment,
        pause: Span,
        because: ChangeReason,
    ) {
        let Some(entry) = self.jobs.get_mut(&number) else { return };
        let attempt = Attempt { job: number, number: entry.attempts };
        let Phase::Running(run) = &mut entry.phase else { return };
        let before = run.present();
        run.change(now, allotment.clone(), pause);
        match because {
            ChangeReason::Squeezed if run.squeezed_from.is_none() => {
                run.squeezed_from = Some(before.allotment.clone());
            }
            ChangeReason::Squeezed => (),
            ChangeReason::Policy | ChangeReason::Restored => run.squeezed_from = None,
        }
        self.unwritten.changed.insert(number);
        let set = Act::Set { attempt, allotment: allotment.clone(), before, pause, again: false };
        self.unwritten.acts.push(set);
        self.note(now, EventKind::Changed { job: number, allotment, reason: because });
    }

    pub(super) fn note(&mut self, at: Instant, kind: EventKind) {
        self.unwritten.events.push(Event { at, kind });
    }

    /// Writes down something an operator should know.
    pub fn notice(&mut self, now: Instant, text: String) {
        self.note(now, EventKind::Notice { text });
    }

    /// Writes down that a daemon begins its work.
    pub fn began(&mut self, now: Instant) {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let policy = self.setup.decider.spec().to_string();
        self.note(now, EventKind::Began { version, policy });
    }

    /// Writes down that it ends its work.
    pub fn stopped(&mut self, now: Instant) {
        self.note(now, EventKind::Stopped);
    }

    /// What is to be written down and then done.
    pub fn take(&mut self, now: Instant, wall: i64) -> Turn {
        let unwritten = std::mem::take(&mut self.unwritten);
        let Unwritten { submitted, elements, mut changed, mut confirmed, .. } = unwritten;
        let Unwritten { over, events, budget, acts, .. } = unwritten;
        changed.append(&mut confirmed);
        let as_it_is = |entry: Entry| self.jobs.get(&entry.number).cloned().unwrap_or(entry);
        let submitted: Vec<_> =
            submitted.into_iter().map(|(entry, program)| (as_it_is(entry), program)).collect();
        let elements: Vec<Entry> = elements.into_iter().map(as_it_is).collect();
        let new = submitted.iter().map(|(entry, _)| entry).chain(&elements);
        let new: BTreeSet<u64> = new.map(|entry| entry.number).collect();
        let alive = changed.iter().filter(|number| !new.contains(number));
        let mut changed: Vec<Entry> =
            alive.filter_map(|number| self.jobs.get(number).cloned()).collect();
        changed.extend(over);
        let (now, boot) = ((now, wall), None);
        let batch = Batch { submitted, elements, changed, events, budget, now, boot };
        Turn { batch, acts }
    }

    /// Whether there is nothing to be written down.
    pub fn is_clean(&self) -> bool {
        let Unwritten { submitted, elements, changed, over, events, budget, acts, confirmed: _ } =
            &self.unwritten;
        submitted.is_empty()
            && elements.is_empty()
            && changed.is_empty()
            && over.is_empty()
            && events.is_empty()
            && budget.is_none()
            && acts.is_empty()
    }
}
