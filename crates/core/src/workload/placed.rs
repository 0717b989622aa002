//! On which nodes jobs really ran, as far as their log says it.

use std::sync::Arc;

use super::Workload;
use crate::job::Job;
use crate::units::JobId;

/// The nodes that a job really had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// How many; 0 if nobody knows.
    pub nodes: u32,
    /// Which ones: a place in the [lists](Workload::set_placed), if they have names.
    pub list: Option<u32>,
    /// Its memory on all of them together, in MiB; 0 if nobody knows.
    pub memory_mib: u64,
    /// Its GPUs on all of them together.
    pub gpus: u32,
}

/// The nodes of all jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct AllPlaced {
    /// By job; empty if nothing is known of any.
    pub(super) of_jobs: Vec<Placed>,
    /// Nodes, by numbers that stand for their names. Many jobs have the same ones.
    lists: Arc<[Box<[u32]>]>,
}

impl Workload {
    /// Says of each job which nodes it had. Nodes are numbers from 0, and lists of them have each node once.
    pub fn set_placed(&mut self, lists: Vec<Box<[u32]>>, placed: impl Fn(&Job) -> Placed) {
        let of_jobs = self.jobs.iter().map(placed).collect();
        self.placed = AllPlaced { of_jobs, lists: lists.into() };
    }

    /// What `job` had when it really ran, as far as its log says so.
    pub(crate) fn placed(&self, job: JobId) -> Placed {
        self.placed.of_jobs.get(job.index()).copied().unwrap_or_default()
    }

    /// How many nodes `job` had when it really ran, if its log says so.
    pub(crate) fn recorded_nodes(&self, job: JobId) -> Option<u32> {
        let placed = self.placed.of_jobs.get(job.index())?;
        (placed.nodes > 0).then_some(placed.nodes)
    }

    /// Which nodes these were, if its log names them.
    pub(crate) fn recorded_node_list(&self, job: JobId) -> Option<&[u32]> {
        let list = self.placed.of_jobs.get(job.index())?.list?;
        self.placed.lists.get(list as usize).map(|nodes| &**nodes)
    }
}
