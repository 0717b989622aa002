//! What a machine does that is not simulated: jobs run already when the books are opened, stay longer
//! than they said and are suspended, and somebody gives the machine another budget.
//!
//! What is so is written down, whether there is room for it or not: a job that is found running draws
//! its power, within the limit or beyond it. Only what is still to be granted can be refused. So the
//! ledger may come to hold more than the limit here, as it may when a limit falls; then nothing more is
//! granted, and it is the driver's business to ask for less.
//!
//! Where energy is counted, a suspension ends the charge and a resumption must be paid for. What is
//! restored or extended is charged without being asked whether it can be paid: an account may be
//! overdrawn by it, and [`Ledger::check`] then says so.

use std::ops::Range;

use super::{Holding, Ledger, Violation};
use crate::budget::Budget;
use crate::model::Caps;
use crate::units::{Instant, JobId, NodeId, Watts};

#[cfg(test)]
mod tests;

/// The nodes on which a job is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoundOn<'a> {
    /// So many; which of them does not matter.
    Any(u32),
    /// These, in ascending order.
    These(&'a [NodeId]),
    /// These, each under a cap of its own.
    Capped(&'a Caps),
}

impl FoundOn<'_> {
    /// Their number.
    pub(crate) fn count(&self) -> u32 {
        match self {
            FoundOn::Any(count) => *count,
            FoundOn::These(nodes) => u32::try_from(nodes.len()).unwrap_or(u32::MAX),
            FoundOn::Capped(caps) => caps.count(),
        }
    }

    /// Those that are named.
    fn named(&self) -> impl Iterator<Item = NodeId> + '_ {
        let (nodes, caps) = match self {
            FoundOn::Any(_) => (None, None),
            FoundOn::These(nodes) => (Some(nodes.iter().copied()), None),
            FoundOn::Capped(caps) => (None, Some(caps.nodes())),
        };
        nodes.into_iter().flatten().chain(caps.into_iter().flatten())
    }
}

impl Ledger {
    /// Another budget from now on. What jobs hold they keep, even if it is more than that.
    pub(crate) fn set_budget(&mut self, budget: Budget) {
        self.set_feed_limits(&budget);
        self.budget = budget;
        self.next_limit = self.now;
        self.set_clock(self.now);
    }

    /// Takes over what a job holds already, and is expected to give back then. It is refused if the job
    /// holds something already, or if one of the nodes does not exist or is not free; never for power,
    /// because that is drawn, whatever the budget says.
    pub(crate) fn restore(
        &mut self,
        job: JobId,
        found: FoundOn<'_>,
        power: Watts,
        until: Instant,
    ) -> Result<(), Violation> {
        if self.holds(job) {
            return Err(Violation::AlreadyRunning { job });
        }
        let nodes = found.count();
        if nodes == 0 {
            return Err(Violation::HoldsNothing { job });
        }
        if self.seating.is_some() {
            return self.restore_seated(job, found, power, until);
        }
        let mut before = None;
        for node in found.named() {
            let is_there = match &self.placement {
                Some(placement) => placement.is_free(node),
                None => node.0 < self.total_nodes,
            };
            // A node that is named twice is taken by the first.
            if !is_there || before.replace(node).is_some_and(|before| before >= node) {
                return Err(Violation::NodeTaken { job, node });
            }
        }
        if nodes > self.free_nodes {
            return Err(Violation::Nodes { job, asked: nodes, free: self.free_nodes });
        }
        if let Some(placement) = &mut self.placement {
            match found {
                FoundOn::Any(count) => placement.take(job, count),
                _ => placement.take_these(job, found.named()),
            }
            if let FoundOn::Capped(caps) = found {
                placement.set_caps(job, caps);
            }
        }
        self.hold_found(job, nodes, power, until);
        Ok(())
    }

    /// A job that was found holds this.
    fn hold_found(&mut self, job: JobId, nodes: u32, power: Watts, until: Instant) {
        // No model says that a job draws more; sums of it stay far from overflow.
        let power = power.min(Watts::LARGEST);
        self.hold(Holding { until: until.min(Instant::LAST), job, nodes, power });
    }

    /// A job that was found on parts of nodes has all that it asks of each of these.
    fn restore_seated(
        &mut self,
        job: JobId,
        found: FoundOn<'_>,
        power: Watts,
        until: Instant,
    ) -> Result<(), Violation> {
        let nodes: Vec<NodeId> = found.named().collect();
        let nodes = self.found_seats(job, &nodes)?;
        let seat = self.seating().and_then(|seating| seating.seat(job));
        let processors = seat.map_or(0, |seat| seat.nodes * seat.each.processors);
        self.take_seats(job, Some(nodes));
        self.hold_found(job, processors, power, until);
        Ok(())
    }

    /// A job stays longer than was expected: until then, if that is later. It is not refused, because
    /// the job holds what it has.
    pub(crate) fn extend(&mut self, job: JobId, until: Instant) -> Result<(), Violation> {
        let before = self.take_back(job)?;
        self.hold(Holding { until: before.until.max(until.min(Instant::LAST)), ..before });
        Ok(())
    }

    /// A job stands still: it keeps its nodes and draws nothing until it is resumed. When that will be
    /// nobody knows, so its nodes are not expected back before [`Instant::LAST`].
    pub(crate) fn suspend(&mut self, job: JobId) -> Result<(), Violation> {
        self.goes_on(job)?;
        let before = self.take_back(job)?;
        self.hold(Holding { until: Instant::LAST, power: Watts::ZERO, ..before });
        self.suspended.insert(job, before.power);
        self.keep(job, before.power, true);
        Ok(())
    }

    /// A job that was suspended goes on with the power it had, and is expected to end then. It stays
    /// suspended if there is too little power.
    pub(crate) fn resume(&mut self, job: JobId, until: Instant) -> Result<(), Violation> {
        let Some(&power) = self.suspended.get(&job) else {
            return Err(Violation::NotSuspended { job });
        };
        let before = self.take_back(job)?;
        self.keep(job, power, false);
        let until = until.min(Instant::LAST);
        let room = self.find_room(job, before.nodes, power, until);
        let room = room.and_then(|()| self.can_resume(&before, power, until));
        match room.and_then(|()| self.can_pay(job, power, until)) {
            Ok(()) => {
                self.suspended.remove(&job);
                self.hold(Holding { until, power, ..before });
                Ok(())
            }
            Err(violation) => {
                self.hold(before);
                self.keep(job, power, true);
                Err(violation)
            }
        }
    }

    /// The power that a suspended job had and will claim when it is resumed; `None` if it is not
    /// suspended.
    pub fn suspended(&self, job: JobId) -> Option<Watts> {
        self.suspended.get(&job).copied()
    }

    /// The power that all suspended jobs will claim.
    pub fn claimed(&self) -> Watts {
        self.suspended.values().copied().sum()
    }

    /// Whether any job is suspended.
    pub fn has_suspended(&self) -> bool {
        !self.suspended.is_empty()
    }

    /// Refuses what cannot be done to a job that is suspended.
    pub(super) fn goes_on(&self, job: JobId) -> Result<(), Violation> {
        match self.suspended.contains_key(&job) {
            true => Err(Violation::Suspended { job }),
            false => Ok(()),
        }
    }

    /// Whether a job holds what a suspended one does: nodes to the end of time, and no power.
    pub(super) fn stands_still(&self, job: JobId) -> bool {
        let mut holdings = self.running.iter();
        holdings.any(|holding| {
            (holding.job, holding.until, holding.power) == (job, Instant::LAST, Watts::ZERO)
        })
    }

    /// The nodes that a job holds, in ascending order; none where nodes are not kept track of.
    pub fn nodes_of(&self, job: JobId) -> Vec<NodeId> {
        if let Some(seating) = &self.seating {
            let mut nodes = seating.nodes_of(job).to_vec();
            nodes.sort_unstable();
            return nodes;
        }
        let stretches = self.stretches_of(job).iter().cloned();
        let mut nodes: Vec<NodeId> = stretches.flatten().map(NodeId).collect();
        nodes.sort_unstable();
        nodes
    }

    /// The same nodes in stretches of neighbours, which are few; in any order.
    #[inline]
    pub(crate) fn stretches_of(&self, job: JobId) -> &[Range<u32>] {
        self.placement.as_ref().map_or(&[], |placement| placement.stretches_of(job))
    }

    /// By node: the job that holds it, where nodes are kept track of.
    pub fn holders(&self) -> Vec<Option<JobId>> {
        let mut holders = vec![None; self.total_nodes as usize];
        for (job, stretches) in self.placement.iter().flat_map(|placement| placement.held()) {
            for stretch in stretches {
                holders[stretch.start as usize..stretch.end as usize].fill(Some(job));
            }
        }
        holders
    }
}
