//! What can be asked of a cluster, through whichever door.

use crate::error::SlurmError;
use crate::hosts::HostList;
use crate::listing::Listing;
use crate::model::{Amounts, Job, JobRef, Licence, Node, Partition, Reservation, Snapshot};
use crate::version::Version;

/// The most jobs that one command names.
pub const JOBS_AT_ONCE: usize = 200;

/// What is to change about a job; what is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobUpdate {
    /// The fewest and the most nodes. Equal ones make Slurm use exactly so many.
    pub nodes: Option<(u32, u32)>,
    /// The processors of all nodes together, and the fewest of each. If they are as many on each node as there are in all, Slurm gives
    /// it just those.
    pub cpus: Option<(u32, u32)>,
    /// The nodes that the job must get; an empty list for any.
    pub required: Option<HostList>,
    /// The time limit in minutes.
    pub limit_minutes: Option<u32>,
    /// The comment; an empty one removes it.
    pub comment: Option<String>,
    /// The administrator's comment, by which jobs are marked; an empty one removes it.
    pub admin_comment: Option<String>,
    /// The licences of the job, all of them. Of a running job, what it uses changes at once.
    pub licences: Option<Amounts>,
}

impl JobUpdate {
    /// Whether nothing is to change.
    pub(crate) fn is_empty(&self) -> bool {
        *self == JobUpdate::default()
    }

    /// What a job has otherwise than the update says: the first difference in words.
    pub(crate) fn difference(&self, job: &Job) -> Option<String> {
        if !job.unread.is_empty() {
            return Some(format!("{} cannot be read", job.unread.join(", ")));
        }
        if let Some((fewest, most)) = self.nodes
            && (job.nodes_min, job.nodes_max) != (fewest, most)
        {
            return Some(format!(
                "the job has {}-{} nodes, not {fewest}-{most}",
                job.nodes_min, job.nodes_max
            ));
        }
        if let Some((in_all, _)) = self.cpus
            && job.cpus != in_all
        {
            return Some(format!("the job asks for {} processors, not {in_all}", job.cpus));
        }
        if let Some(required) = &self.required
            && !required.is_same_set(&job.required)
        {
            return Some(format!("the job asks for nodes '{}', not '{required}'", job.required));
        }
        if let Some(minutes) = self.limit_minutes
            && job.limit_minutes != Some(minutes)
        {
            let found =
                job.limit_minutes.map_or("no".to_owned(), |minutes| format!("{minutes} min as"));
            return Some(format!("the job has {found} time limit, not {minutes} min"));
        }
        if let Some(comment) = &self.comment
            && job.comment.as_deref().unwrap_or("") != comment.trim()
        {
            return Some("the job has another comment".to_owned());
        }
        if let Some(comment) = &self.admin_comment
            && job.admin_comment.as_deref().unwrap_or("") != comment.trim()
        {
            return Some("the job has another administrator's comment".to_owned());
        }
        if let Some(licences) = &self.licences
            && job.licences != *licences
        {
            return Some(format!("the job has licences {:?}, not {licences:?}", job.licences));
        }
        None
    }
}

/// A cluster, to be read and acted on. What can be read is there however much cannot be ([`Listing`]). Every call ends within a time, and nothing is taken for done
/// because it was reported as done: where it matters the cluster is read again, and
/// [`SlurmError::NotDone`] tells the difference.
///
/// After an error that [is uncertain](SlurmError::is_uncertain) nobody knows whether an act was done, so a
/// caller reads the cluster again. Every act can be repeated: what is so already is success.
pub trait Cluster: Send {
    /// The version of Slurm.
    fn version(&self) -> Result<Version, SlurmError>;

    /// All nodes.
    fn nodes(&self) -> Result<Listing<Node>, SlurmError>;

    /// All partitions.
    fn partitions(&self) -> Result<Listing<Partition>, SlurmError>;

    /// All jobs that Slurm still remembers, also ended ones.
    fn jobs(&self) -> Result<Listing<Job>, SlurmError>;

    /// The same with what they ask for, and have, of nodes that jobs share.
    fn jobs_with_parts(&self) -> Result<Listing<Job>, SlurmError> {
        self.jobs()
    }

    /// The entries of one job: several if it is an array.
    fn job(&self, job: JobRef) -> Result<Vec<Job>, SlurmError>;

    /// All licences.
    fn licences(&self) -> Result<Listing<Licence>, SlurmError>;

    /// All reservations.
    fn reservations(&self) -> Result<Listing<Reservation>, SlurmError>;

    /// Everything at once. The parts are read one after another, so jobs may have changed since nodes were
    /// read.
    fn snapshot(&self) -> Result<Snapshot, SlurmError> {
        let mut unread = Vec::new();
        Ok(Snapshot {
            nodes: self.nodes()?.into_read(&mut unread),
            partitions: self.partitions()?.into_read(&mut unread),
            jobs: self.jobs()?.into_read(&mut unread),
            licences: self.licences()?.into_read(&mut unread),
            reservations: self.reservations()?.into_read(&mut unread),
            unread,
        })
    }

    /// Holds jobs that wait, by an admin hold that their users cannot release. It is an error if one of them does not wait any
    /// more: it may have begun.
    fn hold(&self, jobs: &[JobRef]) -> Result<(), SlurmError>;

    /// The same without reading the jobs again, for callers that look at them anyway.
    fn hold_unread(&self, jobs: &[JobRef]) -> Result<(), SlurmError> {
        self.hold(jobs)
    }

    /// Releases jobs that are held, whoever held them.
    fn release(&self, jobs: &[JobRef]) -> Result<(), SlurmError>;

    /// Makes the hold of a job one that its user can release.
    fn hold_for_user(&self, job: JobRef) -> Result<(), SlurmError>;

    /// Changes a job and reads it back.
    fn update(&self, job: JobRef, update: &JobUpdate) -> Result<(), SlurmError>;

    /// Changes jobs in the same way without reading them again, for callers that look at them anyway. What cannot be done for
    /// one of them is done for the others.
    fn update_unread(&self, jobs: &[JobRef], update: &JobUpdate) -> Result<(), SlurmError> {
        let done = jobs.iter().map(|job| self.update(*job, update));
        done.fold(Ok(()), Result::and)
    }

    /// Changes a job that waits and releases it: it starts as soon as Slurm finds its nodes free.
    fn start(&self, job: JobRef, update: &JobUpdate) -> Result<(), SlurmError> {
        if !update.is_empty() {
            self.update(job, update)?;
        }
        self.release(&[job])
    }

    /// The same for many jobs, which may be done together. Whether they were released is not read again: who starts jobs
    /// looks for them anyway.
    fn start_all(&self, jobs: &[(JobRef, JobUpdate)]) -> Vec<Result<(), SlurmError>> {
        jobs.iter().map(|(job, update)| self.start(*job, update)).collect()
    }

    /// Cancels a job that waits or runs.
    fn cancel(&self, job: JobRef) -> Result<(), SlurmError>;

    /// Ends a running job and queues it again under an admin hold.
    fn requeue_hold(&self, job: JobRef) -> Result<(), SlurmError>;

    /// Lets a running job stand still. It keeps its nodes.
    fn suspend(&self, job: JobRef) -> Result<(), SlurmError>;

    /// Lets a suspended job go on.
    fn resume(&self, job: JobRef) -> Result<(), SlurmError>;

    /// Leaves a running job only these of its nodes. Without slurmdbd, Slurm resizes a job once only.
    fn shrink(&self, job: JobRef, nodes: &HostList) -> Result<(), SlurmError>;

    /// Gives a running job more nodes, which must be free.
    fn expand(&self, job: JobRef, nodes: &HostList) -> Result<(), SlurmError>;

    /// Takes nodes out of service once their jobs have ended.
    fn drain(&self, nodes: &HostList, reason: &str) -> Result<(), SlurmError>;

    /// Puts drained nodes into service again. For about a second they count as not responding.
    fn undrain(&self, nodes: &HostList) -> Result<(), SlurmError>;

    /// Reserves licences under a name, so that nobody's jobs but root's get them: the reservation is made, changed or
    /// prolonged as far as needed, and removed if the amounts are all zero.
    fn reserve(&self, name: &str, licences: &Amounts) -> Result<(), SlurmError>;

    /// Removes a reservation; it is no error if there is none.
    fn remove_reservation(&self, name: &str) -> Result<(), SlurmError>;
}
