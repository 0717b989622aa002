//! Nodes that are claimed by name, each with a cap of its own.
//!
//! Where nodes are not alike it matters which of them a job gets and what each may draw. What is
//! refused changes nothing, as everywhere in the ledger.

use super::free_nodes::FreeNodes;
use super::placement::Placement;
use super::{Ledger, Violation};
use crate::model::{Caps, OperatingPoint};
use crate::units::{JobId, NodeId, Span, Watts};
use std::collections::BTreeSet;

impl Ledger {
    /// Gives a job these nodes under these caps. The point says what that means in all.
    pub fn start_on(
        &mut self,
        job: JobId,
        point: &OperatingPoint,
        caps: &Caps,
    ) -> Result<(), Violation> {
        let holding = self.claim(job, point)?;
        let Some(placement) = &self.placement else {
            return Err(Violation::NodesUnannounced { job });
        };
        if point.nodes != caps.count() {
            return Err(Violation::NotOffered { job });
        }
        if let Some(node) = caps.nodes().find(|node| !placement.is_free(*node)) {
            return Err(Violation::NodeTaken { job, node });
        }
        self.can_feed(job, caps, holding.power, holding.until)?;
        if let Some(placement) = &mut self.placement {
            placement.take_these(job, caps.nodes());
            placement.set_caps(job, caps);
        }
        self.hold(holding);
        Ok(())
    }

    /// Gives the nodes of a job that runs other caps. The point says what that means in all, and it
    /// is held for so long from now on. Who comes to hold no more is never refused.
    pub fn recap(
        &mut self,
        job: JobId,
        point: &OperatingPoint,
        caps: &Caps,
        left: Span,
    ) -> Result<(), Violation> {
        let Some(placement) = &self.placement else {
            return Err(Violation::NodesUnannounced { job });
        };
        if !self.holds(job) {
            return Err(Violation::HoldsNothing { job });
        }
        let same = placement.caps(job).is_some_and(|held| held.nodes().eq(caps.nodes()));
        if !(same && point.nodes == caps.count()) {
            return Err(Violation::OtherNodes { job });
        }
        if self.feeds.is_some() {
            return self.recap_fed(job, point, caps, left);
        }
        self.change(job, point, left)?;
        if let Some(placement) = &mut self.placement {
            placement.set_caps(job, caps);
        }
        Ok(())
    }

    /// The same where feeds have limits: what they carry depends on the caps of single nodes.
    fn recap_fed(
        &mut self,
        job: JobId,
        point: &OperatingPoint,
        caps: &Caps,
        left: Span,
    ) -> Result<(), Violation> {
        let Some(before) = self.caps(job).cloned() else {
            return Err(Violation::OtherNodes { job });
        };
        let holding = self.take_back(job)?;
        let mut pairs = before.iter().zip(caps.iter());
        let is_less =
            point.power <= holding.power && pairs.all(|(before, after)| after.cap <= before.cap);
        let until = self.until(left);
        let fed = if is_less { Ok(()) } else { self.can_feed(job, caps, point.power, until) };
        self.hold(holding);
        fed?;
        let set = |ledger: &mut Self, caps: &Caps| {
            if let Some(placement) = &mut ledger.placement {
                placement.set_caps(job, caps);
            }
        };
        set(self, caps);
        let changed = self.change(job, point, left);
        if changed.is_err() {
            set(self, &before);
        }
        changed.map(|_| ())
    }

    /// Jobs are found on other nodes than they were given, as many of them: each has these from now on, in ascending order. No
    /// node may be one of another job, and one that was out of service is in service with its job. Power and times stay.
    /// Where nodes are not kept track of, there is nothing to be done.
    pub(crate) fn relocate(&mut self, moves: &[(JobId, Vec<NodeId>)]) -> Result<(), Violation> {
        let Some(placement) = &self.placement else { return Ok(()) };
        let mut moving: BTreeSet<JobId> = BTreeSet::new();
        let mut given: BTreeSet<NodeId> = BTreeSet::new();
        for (job, nodes) in moves {
            let holding = self.held_by(*job).ok_or(Violation::HoldsNothing { job: *job })?;
            let has_caps = placement.caps(*job).is_some();
            if !moving.insert(*job) || has_caps || holding.nodes as usize != nodes.len() {
                return Err(Violation::OtherNodes { job: *job });
            }
        }
        for (job, nodes) in moves {
            for node in nodes {
                let is_on = node.0 < self.total_nodes && placement.switched(*node).is_none();
                let is_anothers =
                    placement.holder(*node).is_some_and(|holder| !moving.contains(&holder));
                if !is_on || is_anothers || !given.insert(*node) {
                    return Err(Violation::NodeTaken { job: *job, node: *node });
                }
            }
        }
        let suspended = |(job, _): &(JobId, Vec<NodeId>)| Some((*job, self.suspended(*job)?));
        let suspended: Vec<(JobId, Watts)> = moves.iter().filter_map(suspended).collect();
        suspended.iter().for_each(|(job, power)| self.keep(*job, *power, false));
        if let Some(placement) = &mut self.placement {
            moving.iter().for_each(|job| placement.give(*job));
        }
        for (job, nodes) in moves {
            nodes.iter().for_each(|node| _ = self.bring_up(*node));
            if let Some(placement) = &mut self.placement {
                placement.take_these(*job, nodes.iter().copied());
            }
            if self.feeds.is_some()
                && let Some(power) = self.held_by(*job).map(|holding| holding.power)
            {
                self.note_fed(*job, power);
            }
        }
        suspended.iter().for_each(|(job, power)| self.keep(*job, *power, true));
        Ok(())
    }

    /// The caps of the nodes that a job was given by name.
    pub fn caps(&self, job: JobId) -> Option<&Caps> {
        self.placement.as_ref()?.caps(job)
    }

    /// Whether a node is in service and nobody holds it; only where nodes are kept track of.
    pub fn is_free(&self, node: NodeId) -> bool {
        self.placement.as_ref().is_some_and(|placement| placement.is_free(node))
    }

    /// The nodes that are in service and that nobody holds, where nodes are kept track of.
    pub(crate) fn free_set(&self) -> Option<&FreeNodes> {
        self.placement.as_ref().map(Placement::free)
    }

    /// The job that holds a node, where nodes are kept track of.
    pub fn holder(&self, node: NodeId) -> Option<JobId> {
        self.placement.as_ref()?.holder(node)
    }

    /// Takes a free node out of service; says whether it was in service. A node that a job holds
    /// stays: release the job first.
    pub(crate) fn take_down(&mut self, node: NodeId) -> bool {
        let taken = self.placement.as_mut().is_some_and(|placement| placement.take_down(node));
        if taken {
            self.free_nodes -= 1;
            self.down_nodes += 1;
        }
        taken
    }

    /// Puts a node back into service; says whether it was out.
    pub(crate) fn bring_up(&mut self, node: NodeId) -> bool {
        let brought = self.placement.as_mut().is_some_and(|placement| placement.bring_up(node));
        if brought {
            self.free_nodes += 1;
            self.down_nodes -= 1;
        }
        brought
    }
}
