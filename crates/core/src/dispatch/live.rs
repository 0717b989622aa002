//! What a driver of a real machine does by itself: it finds jobs running, extends, suspends, resumes and
//! withdraws them, sets another budget, and takes decisions of its own.
//!
//! A policy hears of all this as of a machine that changed.

use super::{Applied, Dispatch, apply};
use crate::budget::Budget;
use crate::job::Job;
use crate::ledger::{FoundOn, SwitchState, Violation};
use crate::model::Model;
use crate::policy::{Adopted, Decision};
use crate::units::{Instant, JobId, NodeId};

impl Dispatch {
    /// When somebody had to wait last, as far as is known.
    pub fn waited(&self) -> Option<Instant> {
        self.waited
    }

    /// Somebody had to wait, at this time last, before this dispatch was made.
    pub fn remember_wait(&mut self, at: Option<Instant>) {
        self.waited = self.waited.max(at);
    }

    /// Another budget from now on.
    pub fn set_budget(&mut self, budget: Budget) {
        self.ledger.set_budget(budget);
        self.machine_changed = true;
    }

    /// Takes over a job that runs in the real world, with what it holds and is expected to give back
    /// then. Where nodes are kept track of, `nodes` are those it is on, in ascending order; if it has
    /// caps, those name them already.
    pub fn restore(
        &mut self,
        found: Adopted,
        nodes: Option<&[NodeId]>,
        until: Instant,
    ) -> Result<(), Violation> {
        let Adopted { job, point, .. } = found;
        let on = match (&found.caps, nodes) {
            (Some(caps), _) => FoundOn::Capped(caps),
            (None, Some(nodes)) => FoundOn::These(nodes),
            (None, None) => FoundOn::Any(point.nodes),
        };
        // A job on parts of nodes has so many processors of them, which the ledger knows.
        if self.ledger.seating().is_none() && on.count() != point.nodes {
            return Err(Violation::OtherNodes { job });
        }
        self.ledger.restore(job, on, point.power, until)?;
        self.adopted.push(found);
        self.machine_changed = true;
        Ok(())
    }

    /// Jobs are found on other nodes than they were given, as many of them, because whoever starts them chose these. A policy
    /// that does not name nodes need not hear of it.
    pub fn relocate(&mut self, moves: &[(JobId, Vec<NodeId>)]) -> Result<(), Violation> {
        self.ledger.relocate(moves)
    }

    /// A node is found in a state; if it is in none, it is on. Says whether that can be: a node that a job holds is on.
    pub fn note_switched(&mut self, node: NodeId, state: Option<SwitchState>) -> bool {
        self.machine_changed = true;
        self.ledger.note_switched(node, state)
    }

    /// A job that runs is expected to end later. A driver calls this for jobs that are over their
    /// time, before it asks the policy: policies take it that what is held ends after now.
    pub fn extend(&mut self, job: JobId, until: Instant) -> Result<(), Violation> {
        self.ledger.extend(job, until)?;
        self.machine_changed = true;
        Ok(())
    }

    /// A job that runs stands still from now on: it keeps its nodes and draws nothing. The policy is to
    /// be asked at once, as it keeps track of how far jobs have got.
    pub fn suspend(&mut self, job: JobId) -> Result<(), Violation> {
        self.ledger.suspend(job)?;
        self.machine_changed = true;
        Ok(())
    }

    /// A job that was suspended goes on with the power it had, if that is free, and is expected to end
    /// then. The policy is to be asked at once.
    pub fn resume(&mut self, job: JobId, until: Instant) -> Result<(), Violation> {
        self.ledger.resume(job, until)?;
        self.machine_changed = true;
        Ok(())
    }

    /// A waiting job leaves the queue; says whether it waited. A policy that does not
    /// [forget](crate::policy::Policy::forget) it remembers it: then the caller has to go on with a new
    /// one, which hears of all that wait and run from the beginning.
    pub fn withdraw(&mut self, job: JobId) -> bool {
        self.arrived.retain(|arrived| *arrived != job);
        self.ledger.withdraw(job);
        // Whoever waited behind it may start.
        self.machine_changed = true;
        self.queue.remove(job)
    }

    /// The policy is to look at all that wait, and not only at those who have just come.
    pub fn look_at_all(&mut self) {
        self.machine_changed = true;
    }

    /// Carries out a decision of the driver itself, such as less power for a running job when the
    /// budget falls. It goes through the same checks as a policy's, but for those of what policies may
    /// do. The policy is to be asked at once.
    pub fn carry_out(
        &mut self,
        decision: Decision,
        model: &dyn Model,
        jobs: &[Job],
    ) -> Result<Applied, Violation> {
        let applied = apply(decision, model, &mut self.queue, &mut self.ledger, jobs)?;
        if let Applied::Changed { job, .. } = applied {
            self.changed.push(job);
        }
        self.machine_changed = true;
        Ok(applied)
    }
}
