//! What the policy knows of the machines: which task runs on each, and which one is next.

use std::collections::VecDeque;

use super::plan::Assignment;
use crate::units::{Instant, JobId, NodeId};

/// A machine with what has been assigned to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Machine {
    /// The task that runs, and until when.
    pub(super) running: Option<(JobId, Instant)>,
    /// The task that is next, with the energy it was promised.
    pub(super) pending: Option<Assignment>,
    /// What is planned after it.
    pub(super) queue: VecDeque<Assignment>,
}

impl Machine {
    /// When everything that is not moved any more is complete.
    pub(super) fn available(&self, now: Instant) -> Instant {
        let after = self.running.map_or(now, |(_, until)| until.max(now));
        self.pending.map_or(after, |pending| after + pending.choice.time)
    }
}

/// The machines of a site, and where each task is.
#[derive(Clone, Debug)]
pub(super) struct Machines {
    pub(super) all: Vec<Machine>,
    /// By job: the node it runs on.
    places: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl Machines {
    pub(super) fn new(count: u32) -> Self {
        Machines { all: vec![Machine::default(); count as usize], places: Vec::new() }
    }

    /// A task runs.
    pub(super) fn start(&mut self, job: JobId, node: NodeId, until: Instant) {
        if self.places.len() <= job.index() {
            self.places.resize(job.index() + 1, NOWHERE);
        }
        self.places[job.index()] = node.0;
        self.all[node.0 as usize].running = Some((job, until));
    }

    /// A task has ended; says where it was.
    pub(super) fn end(&mut self, job: JobId) -> Option<NodeId> {
        let place = self.places.get_mut(job.index()).map(|place| std::mem::replace(place, NOWHERE));
        let node = place.filter(|place| *place != NOWHERE).map(NodeId)?;
        self.all[node.0 as usize].running = None;
        Some(node)
    }
}
