//! Jobs whose nodes the engine chooses.
//!
//! A policy that does not name nodes decides when a job starts, with how much power, and on how many nodes. The ledger sets as
//! many aside for it, any that are free. The engine chooses the nodes, within what the job's user asked for, and when it has
//! said which they are the ledger has these instead ([`placed`](Controller::placed)). Until then the job holds its power and
//! draws none of it: its nodes stand at the lowest cap, wherever they are.
//!
//! What other jobs were given and is taken now, they get back elsewhere: they are not placed either. What another job really has
//! stays its own.

use std::collections::{BTreeMap, BTreeSet};

use super::recovery::set_again;
use super::{Act, Controller};
use crate::engine::Signal;
use crate::job::{Allotment, Attempt, ChangeReason, Entry, EventKind, Phase, Previous, Run};
use busbar_core::units::{Instant, Span, Watts};

/// After which time a job that was placed begins only then, and not when that was decided.
const LATE: Span = Span::from_secs(60);

/// What has to change so that nodes are free.
#[derive(Default)]
pub(super) struct Room {
    /// Jobs that are not placed, with other nodes than they were given.
    moves: Vec<(u64, Vec<u32>)>,
    /// Jobs that are not placed, and for which there are no other nodes.
    without: Vec<u64>,
}

impl Controller {
    /// Says whether the engine chooses the nodes of jobs where the policy does not.
    pub(crate) fn let_engine_choose(&mut self, chooses: bool) {
        self.engine_chooses_nodes = chooses;
    }

    /// The engine has chosen the nodes of an attempt. Returns whether that is news, and was taken in.
    pub(crate) fn placed(&mut self, now: Instant, attempt: Attempt, nodes: &[u32]) -> bool {
        let Some(entry) = self.jobs.get(&attempt.job) else { return false };
        let is_meant = |run: &&Run| run.unplaced && entry.attempts == attempt.number;
        let Some(run) = entry.run().filter(is_meant).filter(|_| !nodes.is_empty()) else {
            return false;
        };
        let wanted: BTreeSet<u32> = nodes.iter().copied().collect();
        let given: BTreeSet<u32> = run.allotment.node_numbers().into_iter().collect();
        let left = given.difference(&wanted).copied().collect();
        let Some(room) = self.room_for(attempt.job, &wanted, &left) else {
            if self.misplaced.insert(attempt.job, nodes.to_vec()).is_none() {
                let text = format!(
                    "job {} was placed on nodes that another job seems to have; it runs under their caps",
                    attempt.job
                );
                self.note(now, EventKind::notice(text));
            }
            return false;
        };
        let former = run.allotment.clone();
        self.misplaced.remove(&attempt.job);
        let is_same = given == wanted;
        if !is_same {
            self.exchange(now, attempt.job, wanted, room);
        }
        let Some(entry) = self.jobs.get_mut(&attempt.job) else { return false };
        let Some(run) = entry.run_mut() else { return false };
        run.unplaced = false;
        if now.since(run.start) > LATE {
            run.begin_later(now);
            let until = run.until;
            self.scheduler.extend(attempt.job, until);
        }
        let (mut act, allotment) = (set_again(attempt, run), run.allotment.clone());
        // What it has more than it was given waits like any other raise.
        if let Act::Set { before, .. } = &mut act
            && allotment.power > former.power
        {
            *before = Previous { allotment: former, squeezed_from: None };
        }
        self.unwritten.changed.insert(attempt.job);
        self.unwritten.acts.push(act);
        if !is_same {
            let (job, reason) = (attempt.job, ChangeReason::Placed);
            self.note(now, EventKind::Changed { job, allotment, reason });
        }
        true
    }

    /// A job that is not placed has these nodes from now on.
    fn exchange(&mut self, now: Instant, number: u64, wanted: BTreeSet<u32>, room: Room) {
        let wanted: Vec<u32> = wanted.into_iter().collect();
        let Some(run) = self.jobs.get_mut(&number).and_then(Entry::run_mut) else { return };
        let count = run.allotment.nodes.len();
        if count == wanted.len() {
            let moves = room.moves.iter().cloned().chain([(number, wanted.clone())]);
            // What names nodes has caps for each of them; and a refusal means that the ledger does not match the jobs.
            self.must_rebuild |= self.scheduler.relocate(&moves.collect::<Vec<_>>()).is_err();
            self.must_rebuild |= self.scheduler.names_nodes();
            run.relocate(&wanted);
        } else {
            // The power of each node that it has, and never less than it was given.
            let Allotment { cap, power, .. } = run.allotment;
            let each = power.milliwatts().div_ceil(count.max(1) as u64);
            run.allotment.power = power.max(Watts::from_milliwatts(each * wanted.len() as u64));
            run.allotment.nodes = wanted.iter().map(|node| (*node, cap)).collect();
            self.must_rebuild = true;
        }
        self.make(now, room);
    }

    /// What has to change so that a job can have these nodes, if others get what it leaves and what is free; nothing if another
    /// job really has one of them, or if there is no such node.
    pub(super) fn room_for(
        &self,
        number: u64,
        wanted: &BTreeSet<u32>,
        left: &BTreeSet<u32>,
    ) -> Option<Room> {
        if wanted.iter().any(|node| *node >= self.setup.machine.nodes) {
            return None;
        }
        let runs = self.running.iter().filter(|other| **other != number);
        let runs: Vec<_> = runs.filter_map(|other| Some((*other, self.run_of(*other)?))).collect();
        let mut taken: BTreeSet<u32> = wanted.clone();
        for (_, run) in &runs {
            taken.extend(run.allotment.nodes.iter().map(|(node, _)| *node));
        }
        let is_free = |node: &u32| {
            let is_on = !self.nodes.contains_key(node) && !self.switched.contains_key(node);
            is_on && !taken.contains(node)
        };
        let mut free = left.iter().copied().chain(
            (0..self.setup.machine.nodes).filter(|node| !left.contains(node) && is_free(node)),
        );
        let mut room = Room::default();
        for (other, run) in runs {
            let has = run.allotment.nodes.iter().map(|(node, _)| *node);
            if !has.clone().any(|node| wanted.contains(&node)) {
                continue;
            }
            if !run.unplaced {
                return None;
            }
            let others: Option<Vec<u32>> = has
                .map(|node| if wanted.contains(&node) { free.next() } else { Some(node) })
                .collect();
            match others {
                Some(mut nodes) => {
                    nodes.sort_unstable();
                    room.moves.push((other, nodes));
                }
                None => room.without.push(other),
            }
        }
        Some(room)
    }

    /// Gives jobs that are not placed other nodes; those for which there are none wait again. The engine may place such a job until
    /// it has confirmed that it will not, and nobody gets the job's power before.
    pub(super) fn make(&mut self, now: Instant, room: Room) {
        for (number, nodes) in room.moves {
            if let Some(run) = self.jobs.get_mut(&number).and_then(Entry::run_mut) {
                run.relocate(&nodes);
                self.unwritten.changed.insert(number);
            }
        }
        for number in room.without {
            if let Some(attempt) = self.jobs.get(&number).map(Entry::attempt) {
                self.unwritten.acts.push(Act::Signal { attempt, signal: Signal::Suspend });
                self.never_started(now, attempt, "others have its nodes", false);
            }
        }
    }

    /// Tries again to take in where jobs were placed.
    pub(super) fn place_again(&mut self, now: Instant) {
        let misplaced: BTreeMap<u64, Vec<u32>> = self.misplaced.clone();
        for (number, nodes) in misplaced {
            match self.jobs.get(&number).filter(|entry| entry.run().is_some()).map(Entry::attempt) {
                Some(attempt) => _ = self.placed(now, attempt, &nodes),
                None => _ = self.misplaced.remove(&number),
            }
        }
    }

    /// An attempt has not begun, because the engine has no nodes for it now. The job waits beside the queue.
    pub(crate) fn set_aside(&mut self, now: Instant, attempt: Attempt, reason: String) {
        self.never_started(now, attempt, &reason, false);
        let waits = |entry: &&Entry| entry.phase == Phase::Waiting && entry.attempt() == attempt;
        if self.jobs.get(&attempt.job).filter(waits).is_some() {
            self.aside.insert(attempt.job, reason);
            // It may be in the queue already.
            self.must_rebuild = true;
        }
    }

    /// The engine may have nodes now for a job that was set aside.
    pub(crate) fn offered(&mut self, handle: &str) {
        if let Some(number) = self.by_handle.get(handle).copied()
            && self.aside.remove(&number).is_some()
        {
            self.enqueue(number);
        }
    }

    /// Lets the nodes of jobs that the daemon found running have their caps. Until now they may have the lowest, so that this
    /// takes power, and waits for those that are to have less.
    pub(super) fn cap_others(&mut self) {
        for number in std::mem::take(&mut self.uncapped) {
            let Some(entry) = self.jobs.get(&number) else { continue };
            let Some(run) = entry.run() else { continue };
            let mut lowest = run.allotment.clone();
            (lowest.cap, lowest.power) = (Watts::ZERO, Watts::ZERO);
            lowest.nodes.iter_mut().for_each(|(_, cap)| *cap = Watts::ZERO);
            let before = Previous { allotment: lowest, squeezed_from: None };
            let (attempt, allotment) = (entry.attempt(), run.allotment.clone());
            let (pause, again) = (Span::ZERO, true);
            self.unwritten.acts.push(Act::Set { attempt, allotment, before, pause, again });
        }
    }
}
