//! The jobs that the daemon knows, found by what Slurm calls them and by their attempts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;

use busbar_slurm::model::{Job, JobRef};

use super::requests::handle;
use crate::engine::Ticket;
use crate::job::Attempt;

/// A job that the daemon knows.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) job: JobRef,
    /// The last attempt to run it, as far as the daemon has told.
    pub(super) attempt: Option<Attempt>,
    pub(super) stage: Stage,
}

/// Where a job is on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The daemon knows it from before; Slurm has not been asked yet.
    Recalled,
    /// It waits under a hold.
    Waiting,
    /// Slurm has not placed it, and it waits under a hold until there may be nodes for it.
    Aside,
    /// It was released to run on these nodes, and is not seen to run yet. If it is to have parts of them, it is to have no more
    /// processors of each than that.
    Starting { ticket: Ticket, nodes: BTreeSet<u32>, cpus: Option<u32>, since: Instant },
    /// It was released, and Slurm is to choose its nodes.
    Released(Release),
    /// It runs. What the daemon orders may be about other nodes until it has heard where Slurm has placed it.
    Running { nodes: BTreeSet<u32>, limit: u32, is_told: bool },
}

/// How a job was released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Release {
    /// On how many nodes it is to run, and the time limit that it was given; not known after a restart of the daemon.
    pub(super) asked: Option<(usize, u32)>,
    pub(super) since: Instant,
}

impl Release {
    /// One by a daemon that is gone.
    pub(super) fn by_another() -> Self {
        Release { asked: None, since: Instant::now() }
    }
}

/// All of them.
#[derive(Default)]
pub(super) struct KnownJobs {
    jobs: BTreeMap<String, Known>,
    handles: HashMap<Attempt, String>,
}

impl KnownJobs {
    pub(super) fn insert(&mut self, handle: String, known: Known) {
        self.remove(&handle);
        self.handles.extend(known.attempt.map(|attempt| (attempt, handle.clone())));
        self.jobs.insert(handle, known);
    }

    pub(super) fn remove(&mut self, handle: &str) -> Option<Known> {
        let known = self.jobs.remove(handle)?;
        if let Some(attempt) = known.attempt {
            self.handles.remove(&attempt);
        }
        Some(known)
    }

    pub(super) fn get(&self, handle: &str) -> Option<&Known> {
        self.jobs.get(handle)
    }

    pub(super) fn contains(&self, handle: &str) -> bool {
        self.jobs.contains_key(handle)
    }

    /// How a job is called. One whose submit time cannot be read is the known one with its number.
    pub(super) fn handle_of(&self, reference: JobRef, job: &Job) -> String {
        let known = || self.jobs.iter().find(|(_, known)| known.job == reference);
        match job.submitted.is_none().then(known).flatten() {
            Some((handle, _)) => handle.clone(),
            None => handle(reference, job),
        }
    }

    /// The job that an attempt runs.
    pub(super) fn of_attempt(&self, attempt: Attempt) -> Option<(&str, &Known)> {
        let handle = self.handles.get(&attempt)?;
        Some((handle, self.jobs.get(handle)?))
    }

    /// The daemon has told the last attempt of a job.
    pub(super) fn set_attempt(&mut self, handle: &str, attempt: Option<Attempt>) {
        if let Some(known) = self.remove(handle) {
            self.insert(handle.to_owned(), Known { attempt, ..known });
        }
    }

    pub(super) fn set_stage(&mut self, handle: &str, stage: Stage) {
        if let Some(known) = self.jobs.get_mut(handle) {
            known.stage = stage;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Known)> {
        self.jobs.iter().map(|(handle, known)| (handle.as_str(), known))
    }

    /// The nodes of all jobs that run, or may have run since somebody looked.
    pub(super) fn nodes_in_use(&self) -> BTreeSet<u32> {
        let nodes = |known: &Known| match &known.stage {
            Stage::Running { nodes, .. } | Stage::Starting { nodes, .. } => nodes.clone(),
            _ => BTreeSet::new(),
        };
        self.jobs.values().flat_map(nodes).collect()
    }
}

impl FromIterator<(String, Known)> for KnownJobs {
    fn from_iter<I: IntoIterator<Item = (String, Known)>>(jobs: I) -> Self {
        let mut all = KnownJobs::default();
        for (handle, known) in jobs {
            all.insert(handle, known);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(job: u64, number: u32) -> Attempt {
        Attempt { job, number }
    }

    #[test]
    fn jobs_are_found_by_their_last_attempts() {
        let job = JobRef::whole(7);
        let known = Known { job, attempt: None, stage: Stage::Waiting };
        let mut all: KnownJobs = [("7@1".to_owned(), known)].into_iter().collect();
        assert!(all.of_attempt(attempt(1, 1)).is_none());
        all.set_attempt("7@1", Some(attempt(1, 1)));
        all.set_attempt("7@1", Some(attempt(1, 2)));
        assert!(all.of_attempt(attempt(1, 1)).is_none(), "another attempt has followed");
        assert_eq!(all.of_attempt(attempt(1, 2)).unwrap().0, "7@1");
        let stage = Stage::Running { nodes: BTreeSet::from([3, 4]), limit: 9, is_told: true };
        all.set_stage("7@1", stage);
        assert_eq!(all.nodes_in_use(), BTreeSet::from([3, 4]));
        all.remove("7@1");
        assert!(all.of_attempt(attempt(1, 2)).is_none() && all.nodes_in_use().is_empty());
    }
}
