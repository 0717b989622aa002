//! Which nodes to switch now: one decision, whether they are simulated or not.
//!
//! It knows nothing of the policy: to that, a node that is off is out of service, and what the other nodes may
//! draw grows by what it no longer draws. After the policy has decided, nodes are started for the jobs that still
//! wait, in the order of the queue, as far as there is power to run something on them; the job at the head gets the
//! nodes that it needs in any case, or it would never start. What has been idle for longer than the rule says, and
//! is neither needed so nor kept in reserve, is switched off.
//!
//! It is their number that is decided. Which nodes they are, the ledger chooses.

use std::collections::VecDeque;

use super::SwitchOff;
use crate::dispatch::Dispatch;
use crate::job::Job;
use crate::machine::Machine;
use crate::model::Model;
use crate::units::{Instant, JobId, Watts};

/// Applies the rule of a site to its machine, turn after turn.
#[derive(Clone, Debug)]
pub struct Switcher {
    rule: SwitchOff,
    /// What an idle node draws more than one that is off.
    on: Watts,
    /// Nodes that are idle, since when, the longest idle first. Who needs nodes takes those that are idle for
    /// the shortest time: it is their number that counts, not which they are.
    idle: VecDeque<(Instant, u32)>,
    /// Their number.
    idle_nodes: u32,
}

/// What may be switched in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directions {
    /// Nodes may be switched off and on.
    Both,
    /// Nodes may only be switched off: somebody else waits for the power that is free.
    Off,
}

/// How many nodes were switched in a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turned {
    /// Nodes that are being started from now on.
    pub(crate) started: u32,
    /// Nodes that are being switched off from now on.
    pub(crate) stopped: u32,
}

impl Switcher {
    /// A rule for a machine on which no node was seen idle yet.
    pub fn new(rule: SwitchOff, machine: &Machine) -> Self {
        Switcher { rule, on: what_on_costs(machine), idle: VecDeque::new(), idle_nodes: 0 }
    }

    /// Another rule or machine from now on. Nodes that are idle have been so for as long as before.
    pub fn follow(&mut self, rule: SwitchOff, machine: &Machine) {
        (self.rule, self.on) = (rule, what_on_costs(machine));
    }

    /// When nodes that are idle will have been so for long enough.
    pub fn next(&self, now: Instant) -> Option<Instant> {
        // Those that have been idle for longer are kept on for a reason.
        let kept = self.idle.partition_point(|(since, _)| *since + self.rule.after <= now);
        self.idle.get(kept).map(|(since, _)| *since + self.rule.after)
    }

    /// Starts and stops nodes, now that the policy has decided.
    pub fn switch(
        &mut self,
        dispatch: &mut Dispatch,
        model: &dyn Model,
        jobs: &[Job],
        directions: Directions,
    ) -> Turned {
        let now = dispatch.ledger().now();
        self.note_idle(now, dispatch.ledger().free_nodes());
        let long_idle = self.long_idle(now);
        let off = dispatch.ledger().switched().off;
        if off == 0 && long_idle <= self.rule.spare {
            return Turned::default();
        }
        let need = Need::of(dispatch, jobs);
        let lowest = model.rungs().last().map_or(Watts::ZERO, |rung| rung.node_power);
        let started = match directions {
            Directions::Both => dispatch.start_nodes(need.to_start(dispatch, lowest, self.on)),
            Directions::Off => 0,
        };
        let kept = self.rule.spare.saturating_add(need.to_keep(dispatch, lowest));
        let free = dispatch.ledger().free_nodes();
        let stopped = dispatch.stop_nodes(long_idle.min(free.saturating_sub(kept)));
        self.forget_longest(stopped);
        Turned { started, stopped }
    }

    /// This many nodes are idle now.
    fn note_idle(&mut self, now: Instant, free: u32) {
        if free > self.idle_nodes {
            self.idle.push_back((now, free - self.idle_nodes));
        }
        let mut taken = self.idle_nodes.saturating_sub(free);
        while let Some(last) = self.idle.back_mut().filter(|_| taken > 0) {
            let from_it = last.1.min(taken);
            last.1 -= from_it;
            taken -= from_it;
            if last.1 == 0 {
                self.idle.pop_back();
            }
        }
        self.idle_nodes = free;
    }

    /// How many nodes have been idle for long enough.
    fn long_idle(&self, now: Instant) -> u32 {
        let long = self.idle.iter().take_while(|(since, _)| *since + self.rule.after <= now);
        long.map(|(_, nodes)| nodes).sum()
    }

    fn forget_longest(&mut self, mut count: u32) {
        self.idle_nodes -= count;
        while let Some(first) = self.idle.front_mut().filter(|_| count > 0) {
            let from_it = first.1.min(count);
            first.1 -= from_it;
            count -= from_it;
            if first.1 == 0 {
                self.idle.pop_front();
            }
        }
    }
}

/// What an idle node draws more than one that is off.
fn what_on_costs(machine: &Machine) -> Watts {
    machine.node().idle.saturating_sub(machine.off().power)
}

/// How many nodes those who wait could use.
struct Need {
    /// The job at the head of the queue.
    head: u32,
    /// All, as far as there are nodes.
    all: u32,
}

impl Need {
    /// Goes through the queue only until there is no node left to ask for.
    fn of(dispatch: &Dispatch, jobs: &[Job]) -> Self {
        let (queue, ledger) = (dispatch.queue(), dispatch.ledger());
        let total = ledger.total_nodes();
        let asked = |job: JobId| jobs[job.index()].nodes.min(total);
        let Some(first) = queue.head() else { return Need { head: 0, all: 0 } };
        // A policy that chooses sizes may wait for more nodes than the job asks for. While jobs run, it waits for their
        // nodes; where none runs, it would wait for ever.
        let is_stuck = ledger.running().is_empty() && ledger.nodes_in_service() >= asked(first);
        let head = if is_stuck { total } else { asked(first) };
        let (mut all, mut last) = (head, first);
        while all < total
            && let Some(job) = queue.at_or_after(JobId(last.0 + 1))
        {
            all = all.saturating_add(asked(job)).min(total);
            last = job;
        }
        Need { head, all }
    }

    /// How many nodes are to be started: those that can be fed, if a busy one adds so much at least and one that
    /// is idle draws so much more than one that is off, and those without which the head cannot start.
    fn to_start(&self, dispatch: &Dispatch, lowest: Watts, on: Watts) -> u32 {
        let ledger = dispatch.ledger();
        let starting = ledger.switched().starting;
        let coming = ledger.free_nodes() + starting;
        let for_head = self.head.saturating_sub(ledger.nodes_in_service() + starting);
        let left = ledger
            .free_power()
            .saturating_sub(lowest.checked_mul(coming).unwrap_or(Watts::UNLIMITED));
        let fed = left.milliwatts() / (lowest + on).milliwatts().max(1);
        let short = self.all.saturating_sub(coming);
        for_head.max(short.min(u32::try_from(fed).unwrap_or(u32::MAX)))
    }

    /// How many idle nodes are not to be switched off: those that the head needs, and those that can be fed.
    fn to_keep(&self, dispatch: &Dispatch, lowest: Watts) -> u32 {
        let fed = dispatch.ledger().free_power().milliwatts() / lowest.milliwatts().max(1);
        self.head.max(self.all.min(u32::try_from(fed).unwrap_or(u32::MAX)))
    }
}
