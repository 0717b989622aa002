//! The result of a turn: changes to be written to the store, and acts to be carried out afterwards.

use std::collections::{BTreeMap, BTreeSet};

use super::Controller;
use crate::engine::{Power, Signal};
use crate::job::{
    Allotment, Attempt, ChangeReason, Entry, Event, EventKind, Phase, Previous, Program, Run, Scope,
};
use crate::store::Batch;
use busbar_core::units::{Instant, Span};

/// Changes and acts that have not been taken yet.
#[derive(Default)]
pub(super) struct Unwritten {
    pub(super) submitted: Vec<(Entry, Program)>,
    pub(super) elements: Vec<Entry>,
    pub(super) changed: BTreeSet<u64>,
    /// Jobs whose last change the engine confirmed. This is written together with the next batch;
    /// until then a restart would merely repeat the change.
    pub(super) confirmed: BTreeSet<u64>,
    pub(super) over: Vec<Entry>,
    pub(super) events: Vec<Event>,
    /// Nodes that are in another state.
    pub(super) nodes: BTreeSet<u32>,
    pub(super) budget: Option<Option<String>>,
    pub(super) part_budgets: BTreeMap<Scope, Option<String>>,
    pub(super) acts: Vec<Act>,
}

/// Something for the engine to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Start an attempt to run a job.
    Start {
        /// The attempt.
        attempt: Attempt,
        /// Its nodes and power.
        allotment: Allotment,
    },
    /// Change the nodes or power of a running job.
    Set {
        /// The attempt.
        attempt: Attempt,
        /// The new nodes and power.
        allotment: Allotment,
        /// Its previous allocation.
        before: Previous,
        /// The expected pause in which the job moves to other nodes.
        pause: Span,
        /// Whether the change may have been made already, before a restart.
        again: bool,
    },
    /// Send a signal to a running job.
    Signal {
        /// The attempt.
        attempt: Attempt,
        /// The signal.
        signal: Signal,
    },
    /// Let a job go on that counts as one that runs, and may stand still: before a restart, or because a signal may have
    /// failed.
    ResumeAgain {
        /// The attempt.
        attempt: Attempt,
    },
    /// Remove what the engine keeps of an attempt.
    Forget {
        /// The attempt.
        attempt: Attempt,
    },
    /// Switch a node off or on.
    Switch {
        /// The node.
        node: u32,
        /// Its new allocation.
        to: Power,
        /// How long that is expected to take.
        expected: Span,
        /// Whether it may have been asked for already, before a restart.
        again: bool,
    },
    /// Remove a job that waited in the engine's own queue.
    Dismiss {
        /// Its last attempt.
        attempt: Attempt,
        /// How the engine knows it.
        handle: String,
    },
}

impl Act {
    /// The attempt that it is about, if it is about one.
    pub(crate) fn attempt(&self) -> Option<Attempt> {
        match self {
            Act::Start { attempt, .. }
            | Act::Set { attempt, .. }
            | Act::Signal { attempt, .. }
            | Act::ResumeAgain { attempt }
            | Act::Forget { attempt }
            | Act::Dismiss { attempt, .. } => Some(*attempt),
            Act::Switch { .. } => None,
        }
    }

    /// Whether it frees power or nodes, which others may have been given since.
    pub(crate) fn frees(&self) -> bool {
        match self {
            Act::Set { allotment, before: Previous { allotment: before, .. }, .. } => {
                allotment.power < before.power || !has_all_nodes(allotment, before)
            }
            Act::Signal { signal, .. } => *signal == Signal::Suspend,
            // A node that is to be off frees nothing before it is.
            Act::Start { .. }
            | Act::ResumeAgain { .. }
            | Act::Forget { .. }
            | Act::Dismiss { .. }
            | Act::Switch { .. } => false,
        }
    }

    /// Takes over what a later act gives the same job, if that is less on no other nodes; returns whether it did.
    pub(crate) fn is_lowered_by(&mut self, later: &Act) -> bool {
        let Act::Set { allotment: less, .. } = later else { return false };
        let (Act::Start { allotment, .. } | Act::Set { allotment, .. }) = self else {
            return false;
        };
        if less.power >= allotment.power || !has_all_nodes(allotment, less) {
            return false;
        }
        let more = std::mem::replace(allotment, less.clone());
        match self {
            // The job may have had that since before a restart.
            Act::Set { before, again: true, .. } if more.power > before.allotment.power => {
                before.allotment = more;
            }
            _ => (),
        }
        true
    }

    /// Whether it takes power or nodes, which others may have to free first.
    pub(crate) fn takes(&self) -> bool {
        match self {
            Act::Set { allotment, before: Previous { allotment: before, .. }, .. } => {
                allotment.power > before.power || !has_all_nodes(before, allotment)
            }
            Act::Signal { signal, .. } => *signal == Signal::Resume,
            // To stop may take more than to be idle.
            Act::Start { .. } | Act::ResumeAgain { .. } | Act::Switch { .. } => true,
            Act::Forget { .. } | Act::Dismiss { .. } => false,
        }
    }

    /// Whether it lets a job go on.
    pub(crate) fn resumes(&self) -> bool {
        matches!(self, Act::ResumeAgain { .. } | Act::Signal { signal: Signal::Resume, .. })
    }
}

/// Whether one allotment has all nodes of another, none of them under a lower cap.
fn has_all_nodes(one: &Allotment, other: &Allotment) -> bool {
    let cap = |node: u32| one.nodes.iter().find(|(number, _)| *number == node).map(|(_, cap)| *cap);
    other.nodes.iter().all(|(node, wanted)| cap(*node).is_some_and(|cap| cap >= *wanted))
}

/// A batch to be written and the acts that follow.
pub struct Turn {
    /// The changes to be written first.
    pub batch: Batch,
    /// What to do after that, in this order.
    pub acts: Vec<Act>,
}

impl Controller {
    pub(super) fn start(&mut self, now: Instant, number: u64, mut allotment: Allotment) {
        self.choose_places(&mut allotment);
        let Some(entry) = self.jobs.get_mut(&number) else { return };
        entry.attempts += 1;
        let attempt = entry.attempt();
        let mut run = Run::new(now, allotment.clone());
        run.unplaced = self.engine_chooses_nodes && !self.scheduler.names_nodes();
        entry.phase = Phase::Running(run);
        self.running.insert(number);
        self.unwritten.changed.insert(number);
        self.unwritten.acts.push(Act::Start { attempt, allotment: allotment.clone() });
        self.note(now, EventKind::Started { job: number, attempt: attempt.number, allotment });
    }

    pub(super) fn change(
        &mut self,
        now: Instant,
        number: u64,
        mut allotment: Allotment,
        pause: Span,
        because: ChangeReason,
    ) {
        let Some(entry) = self.jobs.get_mut(&number) else { return };
        let attempt = entry.attempt();
        let Some(run) = entry.run_mut() else { return };
        // Who has parts of nodes keeps them.
        allotment.part.clone_from(&run.allotment.part);
        let before = run.present();
        run.change(now, allotment.clone(), pause);
        match because {
            ChangeReason::Squeezed if run.squeezed_from.is_none() => {
                run.squeezed_from = Some(before.allotment.clone());
            }
            ChangeReason::Squeezed | ChangeReason::Placed => (),
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

    /// Records a message to the operator.
    pub(crate) fn notice(&mut self, now: Instant, text: String) {
        self.note(now, EventKind::notice(text));
    }

    /// Records that a daemon has started.
    pub(crate) fn began(&mut self, now: Instant) {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let policy = self.setup.decider.spec().to_string();
        self.note(now, EventKind::Began { version, policy });
    }

    /// Records that the daemon has stopped.
    pub(crate) fn stopped(&mut self, now: Instant) {
        self.note(now, EventKind::Stopped);
    }

    /// Takes the changes to be written and the acts to be carried out since the last call.
    pub fn take(&mut self, now: Instant, wall: i64) -> Turn {
        let unwritten = std::mem::take(&mut self.unwritten);
        let Unwritten { submitted, elements, mut changed, mut confirmed, .. } = unwritten;
        let Unwritten { over, events, nodes, budget, part_budgets, acts, .. } = unwritten;
        let nodes = nodes.into_iter().map(|node| (node, self.switched.get(&node).copied()));
        let nodes = nodes.collect();
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
        let part_budgets = part_budgets.into_iter().collect();
        let batch =
            Batch { submitted, elements, changed, events, nodes, budget, part_budgets, now, boot };
        Turn { batch, acts }
    }

    /// Whether there is nothing to be written or done.
    pub(crate) fn is_clean(&self) -> bool {
        let Unwritten {
            submitted,
            elements,
            changed,
            over,
            events,
            nodes,
            budget,
            part_budgets,
            acts,
            confirmed: _,
        } = &self.unwritten;
        submitted.is_empty()
            && elements.is_empty()
            && changed.is_empty()
            && over.is_empty()
            && events.is_empty()
            && nodes.is_empty()
            && budget.is_none()
            && part_budgets.is_empty()
            && acts.is_empty()
    }
}
