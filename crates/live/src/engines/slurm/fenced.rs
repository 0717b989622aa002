//! A cluster that only the daemon that leads may change.

use busbar_slurm::cluster::{Cluster, JobUpdate};
use busbar_slurm::error::SlurmError;
use busbar_slurm::hosts::HostList;
use busbar_slurm::listing::Listing;
use busbar_slurm::model::{Amounts, Job, JobRef, Licence, Node, Partition, Reservation};
use busbar_slurm::version::Version;

use crate::store::Lease;

/// A cluster with the lease that is looked at before each change. Slurm cannot tell two daemons apart.
pub(crate) struct Fenced<C> {
    cluster: C,
    lease: Lease,
}

impl<C> Fenced<C> {
    /// A cluster for whoever has this lease.
    pub(crate) fn new(cluster: C, lease: Lease) -> Self {
        Fenced { cluster, lease }
    }

    fn change(&self) -> &C {
        self.lease.ensure();
        &self.cluster
    }
}

impl<C: Cluster> Cluster for Fenced<C> {
    fn version(&self) -> Result<Version, SlurmError> {
        self.cluster.version()
    }

    fn nodes(&self) -> Result<Listing<Node>, SlurmError> {
        self.cluster.nodes()
    }

    fn partitions(&self) -> Result<Listing<Partition>, SlurmError> {
        self.cluster.partitions()
    }

    fn jobs(&self) -> Result<Listing<Job>, SlurmError> {
        self.cluster.jobs()
    }

    fn jobs_with_parts(&self) -> Result<Listing<Job>, SlurmError> {
        self.cluster.jobs_with_parts()
    }

    fn job(&self, job: JobRef) -> Result<Vec<Job>, SlurmError> {
        self.cluster.job(job)
    }

    fn licences(&self) -> Result<Listing<Licence>, SlurmError> {
        self.cluster.licences()
    }

    fn reservations(&self) -> Result<Listing<Reservation>, SlurmError> {
        self.cluster.reservations()
    }

    fn hold(&self, jobs: &[JobRef]) -> Result<(), SlurmError> {
        self.change().hold(jobs)
    }

    fn hold_unread(&self, jobs: &[JobRef]) -> Result<(), SlurmError> {
        self.change().hold_unread(jobs)
    }

    fn release(&self, jobs: &[JobRef]) -> Result<(), SlurmError> {
        self.change().release(jobs)
    }

    fn hold_for_user(&self, job: JobRef) -> Result<(), SlurmError> {
        self.change().hold_for_user(job)
    }

    fn update(&self, job: JobRef, update: &JobUpdate) -> Result<(), SlurmError> {
        self.change().update(job, update)
    }

    fn update_unread(&self, jobs: &[JobRef], update: &JobUpdate) -> Result<(), SlurmError> {
        self.change().update_unread(jobs, update)
    }

    fn start(&self, job: JobRef, update: &JobUpdate) -> Result<(), SlurmError> {
        self.change().start(job, update)
    }

    fn start_all(&self, jobs: &[(JobRef, JobUpdate)]) -> Vec<Result<(), SlurmError>> {
        self.change().start_all(jobs)
    }

    fn cancel(&self, job: JobRef) -> Result<(), SlurmError> {
        self.change().cancel(job)
    }

    fn requeue_hold(&self, job: JobRef) -> Result<(), SlurmError> {
        self.change().requeue_hold(job)
    }

    fn suspend(&self, job: JobRef) -> Result<(), SlurmError> {
        self.change().suspend(job)
    }

    fn resume(&self, job: JobRef) -> Result<(), SlurmError> {
        self.change().resume(job)
    }

    fn shrink(&self, job: JobRef, nodes: &HostList) -> Result<(), SlurmError> {
        self.change().shrink(job, nodes)
    }

    fn expand(&self, job: JobRef, nodes: &HostList) -> Result<(), SlurmError> {
        self.change().expand(job, nodes)
    }

    fn drain(&self, nodes: &HostList, reason: &str) -> Result<(), SlurmError> {
        self.change().drain(nodes, reason)
    }

    fn undrain(&self, nodes: &HostList) -> Result<(), SlurmError> {
        self.change().undrain(nodes)
    }

    fn reserve(&self, name: &str, licences: &Amounts) -> Result<(), SlurmError> {
        self.change().reserve(name, licences)
    }

    fn remove_reservation(&self, name: &str) -> Result<(), SlurmError> {
        self.change().remove_reservation(name)
    }
}
