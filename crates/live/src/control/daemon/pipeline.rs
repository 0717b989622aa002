//! Acts on their way: written down, and not yet confirmed by the engine.
//!
//! Acts are ordered in the order in which they were decided, with one exception and one rule. The exception: an
//! act that takes nothing may overtake others that wait, unless they are about the same job. The rule: an act that
//! takes power or nodes is ordered only when every act before it that frees some was confirmed, and everything that
//! the engine had [begun to lower](crate::engine::Lowered) by itself. So whatever an engine has not confirmed counts
//! at its old, higher draw.
//!
//! What was decided is overtaken by what is decided later: if a job is to get less before it was ordered to get more,
//! it gets the less at once. Otherwise a start that waits for its power would exceed a limit that has fallen meanwhile.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::control::controller::Act;
use crate::engine::{Signal, Ticket};
use crate::job::Attempt;
use busbar_core::units::Instant;

/// Acts that were written down and are not finished.
#[derive(Default)]
pub(super) struct Pipeline {
    next: u64,
    /// Acts that were not ordered yet, each with the number of what the engine had begun to lower by itself before.
    waiting: VecDeque<(Act, u64)>,
    /// Acts that were ordered, and when an answer is due.
    ordered: BTreeMap<Ticket, (Act, Instant)>,
}

impl Pipeline {
    /// Takes in acts that were written down, when the engine had begun to lower so much by itself. Returns the attempts
    /// that are to be suspended before they were ordered to start, and are not started.
    pub(super) fn extend(&mut self, acts: Vec<Act>, begun: u64) -> Vec<Attempt> {
        let mut unstarted = Vec::new();
        for act in acts {
            if let Act::Signal { attempt, signal: Signal::Suspend } = &act {
                let goes_on = |other: &Act| other.resumes() && other.attempt() == Some(*attempt);
                self.waiting.retain(|(other, _)| !goes_on(other));
                if self.takes_start(*attempt) {
                    unstarted.push(*attempt);
                    continue;
                }
            }
            if let Some(act) = self.overtake(act) {
                self.waiting.push_back((act, begun));
            }
        }
        unstarted
    }

    /// Takes everything about an attempt out that was not ordered to start; returns whether there was such a start.
    fn takes_start(&mut self, attempt: Attempt) -> bool {
        let is_start = |act: &Act| matches!(act, Act::Start { attempt: of, .. } if *of == attempt);
        let is_there = self.waiting.iter().any(|(act, _)| is_start(act));
        if is_there {
            self.waiting.retain(|(act, _)| act.attempt() != Some(attempt));
        }
        is_there
    }

    /// Lets an act that gives a job less change the last one about that job that waits, and that one those before it.
    /// Returns the act if it changed none.
    fn overtake(&mut self, act: Act) -> Option<Act> {
        let is_earlier = |(other, _): &(Act, u64)| {
            let gives = matches!(other, Act::Start { .. } | Act::Set { .. });
            gives && other.attempt() == act.attempt()
        };
        let Some(place) = self.waiting.iter().rposition(is_earlier) else { return Some(act) };
        if !self.waiting[place].0.is_lowered_by(&act) {
            return Some(act);
        }
        // It may give less now than one before it.
        let (changed, begun) = self.waiting.remove(place)?;
        if let Some(changed) = self.overtake(changed) {
            self.waiting.insert(place, (changed, begun));
        }
        None
    }

    /// Takes all waiting changes of an attempt out, because one before them failed.
    pub(super) fn withdraw_changes(&mut self, attempt: Attempt) -> Vec<Act> {
        let is_meant = |act: &Act| matches!(act, Act::Set { .. }) && act.attempt() == Some(attempt);
        self.withdraw(is_meant)
    }

    fn withdraw(&mut self, is_meant: impl Fn(&Act) -> bool) -> Vec<Act> {
        let (meant, others): (VecDeque<_>, _) =
            self.waiting.drain(..).partition(|(act, _)| is_meant(act));
        self.waiting = others;
        meant.into_iter().map(|(act, _)| act).collect()
    }

    /// The nodes of an attempt are known now: what waits to be ordered is about these.
    pub(super) fn relocate(&mut self, attempt: Attempt, nodes: &[u32]) {
        for (act, _) in &mut self.waiting {
            if let Act::Set { attempt: of, allotment, before, .. } = act
                && *of == attempt
            {
                for allotment in [allotment, &mut before.allotment] {
                    if allotment.nodes.len() == nodes.len() {
                        let cap = allotment.cap;
                        allotment.nodes = nodes.iter().map(|node| (*node, cap)).collect();
                    }
                }
            }
        }
    }

    /// How many acts are not finished.
    pub(super) fn unfinished(&self) -> usize {
        self.waiting.len() + self.ordered.len()
    }

    /// Forgets everything: what was ordered is found out again from the engine.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.ordered.clear();
    }

    /// A number for an order whose answer nobody waits for.
    pub(super) fn ticket(&mut self) -> Ticket {
        self.next += 1;
        Ticket(self.next)
    }

    /// Takes the acts that may be ordered now, when so much of what the engine lowers by itself is over.
    pub(super) fn ready(&mut self, over: u64) -> Vec<Act> {
        let mut busy: BTreeSet<Attempt> =
            self.ordered.values().filter_map(|(act, _)| act.attempt()).collect();
        let mut is_freeing = self.ordered.values().any(|(act, _)| act.frees());
        let (mut ready, mut waiting) = (Vec::new(), VecDeque::new());
        for (act, begun) in self.waiting.drain(..) {
            let is_busy = act.attempt().is_some_and(|attempt| busy.contains(&attempt));
            let is_blocked = is_busy || (act.takes() && (is_freeing || over < begun));
            // Also those that wait free what later ones may count on.
            is_freeing |= act.frees();
            // What takes nothing need not wait for a job to go on.
            let waits_alone = is_blocked && act.resumes();
            let is_short = matches!(act, Act::Forget { .. } | Act::Dismiss { .. });
            if !waits_alone && (is_blocked || !is_short) {
                busy.extend(act.attempt());
            }
            match is_blocked {
                true => waiting.push_back((act, begun)),
                false => ready.push(act),
            }
        }
        self.waiting = waiting;
        ready
    }

    /// An act was ordered, and is to be answered by then.
    pub(super) fn ordered(&mut self, act: Act, until: Instant) -> Ticket {
        let ticket = self.ticket();
        self.ordered.insert(ticket, (act, until));
        ticket
    }

    /// The act with this ticket is answered; `None` if nobody waits for that any more.
    pub(super) fn answered(&mut self, ticket: Ticket) -> Option<Act> {
        self.ordered.remove(&ticket).map(|(act, _)| act)
    }

    /// Orders that were not answered in time.
    pub(super) fn late(&self, now: Instant) -> Vec<Ticket> {
        let late = self.ordered.iter().filter(|(_, (_, until))| *until <= now);
        late.map(|(ticket, _)| *ticket).collect()
    }

    /// Takes out all acts that take power or nodes and were not ordered yet, because something that should
    /// have been freed for them was not.
    pub(super) fn withdraw_takers(&mut self) -> Vec<Act> {
        // Whoever is to go on again counts as one that runs.
        self.withdraw(|act| act.takes() && !matches!(act, Act::ResumeAgain { .. }))
    }

    /// When the next answer is due.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.ordered.values().map(|(_, until)| *until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Power;
    use crate::job::{Allotment, Previous};
    use busbar_core::units::{Span, Watts};

    fn allotment(watts: u32) -> Allotment {
        let power = Watts::from_watts(watts);
        let time = Span::from_secs(60);
        Allotment {
            nodes: vec![(0, power)],
            cores: 1,
            cap: power,
            time,
            power,
            speed: 1_000_000,
            part: None,
        }
    }

    fn attempt(job: u64) -> Attempt {
        Attempt { job, number: 1 }
    }

    fn set(job: u64, from: u32, to: u32) -> Act {
        let before = Previous { allotment: allotment(from), squeezed_from: None };
        let (attempt, allotment) = (attempt(job), allotment(to));
        Act::Set { attempt, allotment, before, pause: Span::ZERO, again: false }
    }

    fn start(job: u64) -> Act {
        Act::Start { attempt: attempt(job), allotment: allotment(100) }
    }

    fn jobs(acts: &[Act]) -> Vec<u64> {
        acts.iter().filter_map(|act| act.attempt()).map(|attempt| attempt.job).collect()
    }

    /// Job 1 and 2 give up watts, 3 starts with them, 4 is raised, 5 is to end. Only when both have given up
    /// theirs do 3 and 4 get any; 5 need not wait.
    #[test]
    fn nobody_takes_what_was_not_confirmed_to_be_free() {
        let mut pipeline = Pipeline::default();
        let end = Act::Signal { attempt: attempt(5), signal: Signal::Terminate };
        pipeline.extend(vec![set(1, 100, 50), set(2, 90, 40), start(3), set(4, 50, 60), end], 0);
        let ready = pipeline.ready(0);
        assert_eq!(jobs(&ready), [1, 2, 5]);
        let due = Instant::from_secs(30);
        let tickets: Vec<Ticket> =
            ready.into_iter().map(|act| pipeline.ordered(act, due)).collect();
        assert!(pipeline.ready(0).is_empty());
        pipeline.answered(tickets[0]);
        assert!(pipeline.ready(0).is_empty());
        assert_eq!(pipeline.late(Instant::from_secs(29)), []);
        assert_eq!(pipeline.late(due), &tickets[1..]);
        pipeline.answered(tickets[1]);
        assert_eq!(jobs(&pipeline.ready(0)), [3, 4]);
        assert!(pipeline.answered(tickets[1]).is_none(), "it was answered already");
    }

    /// What is about one job keeps its order, whatever it is.
    #[test]
    fn a_job_is_told_one_thing_after_the_other() {
        let mut pipeline = Pipeline::default();
        let kill = Act::Signal { attempt: attempt(1), signal: Signal::Kill };
        pipeline.extend(vec![start(1)], 0);
        assert_eq!(jobs(&pipeline.ready(0)), [1]);
        let ticket = pipeline.ordered(start(1), Instant::from_secs(1));
        // The lowering of job 1 frees what job 2 may have been given.
        pipeline.extend(vec![set(1, 100, 50), kill, set(2, 50, 60)], 0);
        assert!(pipeline.ready(0).is_empty());
        pipeline.answered(ticket);
        assert_eq!(jobs(&pipeline.ready(0)), [1]);
    }

    /// A node is switched only when what was freed for it is confirmed to be free.
    #[test]
    fn nodes_wait_for_what_is_to_be_freed() {
        let mut pipeline = Pipeline::default();
        let switch =
            Act::Switch { node: 3, to: Power::On, expected: Span::from_secs(60), again: false };
        pipeline.extend(vec![set(1, 100, 50), switch.clone()], 0);
        let lowered = pipeline.ready(0);
        assert_eq!(jobs(&lowered), [1]);
        let ticket = pipeline.ordered(lowered[0].clone(), Instant::from_secs(30));
        assert!(pipeline.ready(0).is_empty());
        pipeline.answered(ticket);
        assert_eq!(pipeline.ready(0), [switch]);
    }

    /// Two nodes are being left when job 2 is to start, and a third one later. Job 2 waits for the first two alone, and
    /// what lowers a job for nobody.
    #[test]
    fn nobody_takes_what_the_engine_has_not_lowered() {
        let mut pipeline = Pipeline::default();
        pipeline.extend(vec![set(1, 100, 50)], 2);
        let ready = pipeline.ready(0);
        assert_eq!(jobs(&ready), [1]);
        pipeline.extend(vec![start(2)], 2);
        pipeline.extend(vec![start(3)], 3);
        assert!(pipeline.ready(1).is_empty());
        assert_eq!(jobs(&pipeline.ready(2)), [2]);
        assert_eq!(jobs(&pipeline.ready(3)), [3]);
    }

    /// A start waits for what another job gives up, and the limit falls: it starts with what is left for it. A raise
    /// that waits is forgotten likewise; what is more comes after what frees it.
    #[test]
    fn less_is_not_waited_for() {
        let mut pipeline = Pipeline::default();
        pipeline.extend(vec![set(1, 100, 50), start(2), set(3, 50, 100)], 0);
        pipeline.extend(vec![set(2, 100, 60), set(3, 100, 70), set(2, 60, 80)], 0);
        for act in pipeline.ready(0) {
            assert_eq!(act, set(1, 100, 50));
            pipeline.ordered(act, Instant::from_secs(30));
        }
        pipeline.answered(Ticket(1));
        let lowered = Act::Start { attempt: attempt(2), allotment: allotment(60) };
        assert_eq!(pipeline.ready(0), [lowered.clone(), set(3, 50, 70)]);
        let ticket = pipeline.ordered(lowered, Instant::from_secs(30));
        assert_eq!(pipeline.unfinished(), 2);
        pipeline.answered(ticket);
        assert_eq!(pipeline.ready(0), [set(2, 60, 80)]);
    }

    /// The limit rises and falls while a start waits: it gets the least that was decided, whatever came between.
    #[test]
    fn a_start_gets_no_more_than_was_decided_last() {
        let mut pipeline = Pipeline::default();
        pipeline.extend(vec![set(1, 100, 50), start(2)], 0);
        pipeline.extend(vec![set(2, 100, 140)], 0);
        pipeline.extend(vec![set(2, 140, 60)], 0);
        let first = pipeline.ready(0).remove(0);
        let ticket = pipeline.ordered(first, Instant::from_secs(30));
        pipeline.answered(ticket);
        let lowered = Act::Start { attempt: attempt(2), allotment: allotment(60) };
        assert_eq!(pipeline.ready(0), [lowered]);
        assert_eq!(pipeline.unfinished(), 0);
    }

    /// A job that is to be suspended before it started does not start, and one that is to go on need not be told first.
    #[test]
    fn a_suspension_overtakes_starts_and_resumptions() {
        let signal = |job, signal| Act::Signal { attempt: attempt(job), signal };
        let mut pipeline = Pipeline::default();
        pipeline.extend(vec![set(1, 100, 50), start(2), signal(3, Signal::Resume)], 0);
        let stops = vec![signal(2, Signal::Suspend), signal(3, Signal::Suspend)];
        assert_eq!(pipeline.extend(stops, 0), [attempt(2)]);
        assert_eq!(pipeline.ready(0), [set(1, 100, 50), signal(3, Signal::Suspend)]);
        assert_eq!(pipeline.unfinished(), 0);
    }

    /// A job that waits for its power to go on can be given less, and be ended.
    #[test]
    fn a_resumption_that_waits_holds_up_nothing_that_frees() {
        let signal = |signal| Act::Signal { attempt: attempt(3), signal };
        let mut pipeline = Pipeline::default();
        let acts = vec![signal(Signal::Resume), set(3, 100, 50), signal(Signal::Terminate)];
        pipeline.extend(acts, 1);
        assert_eq!(pipeline.ready(0), [set(3, 100, 50)]);
        pipeline.ordered(set(3, 100, 50), Instant::from_secs(30));
        pipeline.answered(Ticket(1));
        assert_eq!(pipeline.ready(0), [signal(Signal::Terminate)]);
        assert_eq!(pipeline.ready(1), [signal(Signal::Resume)]);
    }

    #[test]
    fn takers_are_withdrawn_and_others_stay() {
        let mut pipeline = Pipeline::default();
        let lower = set(1, 100, 50);
        pipeline.extend(vec![lower.clone(), start(2), set(3, 80, 40)], 0);
        for act in pipeline.ready(0) {
            pipeline.ordered(act, Instant::from_secs(1));
        }
        assert_eq!(jobs(&pipeline.withdraw_takers()), [2]);
        assert_eq!(pipeline.next_deadline(), Some(Instant::from_secs(1)));
        pipeline.clear();
        assert_eq!(pipeline.next_deadline(), None);
    }
}
