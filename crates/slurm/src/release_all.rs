//! Gives a cluster back to Slurm: what Busbar holds is released, what it reserved and drained is free again.

use serde::Serialize;

use crate::cluster::{Cluster, JobUpdate};
use crate::error::SlurmError;
use crate::hosts::HostList;
use crate::model::{Hold, Job, JobRef};
use crate::setup;

/// The reservation by which the daemon moves the budget.
pub const RESERVATION: &str = "busbar";

/// The beginning of the reason with which Busbar drains a node.
const DRAIN_REASON: &str = "busbar:";

/// The released jobs and nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Released {
    /// The jobs that were released.
    pub jobs: Vec<String>,
    /// The jobs that stay held because their users want it.
    pub kept_back: Vec<String>,
    /// The nodes that are in service again.
    pub nodes: Vec<String>,
    /// Whether there was a reservation.
    pub had_reservation: bool,
    /// What could not be done; the rest was.
    pub failures: Vec<String>,
}

/// Releases every job that Busbar holds and removes what Busbar has set up while it ran. Jobs that run go
/// on. A failure of one part does not keep the others.
///
/// The plug-in holds new jobs until it is switched off ([`setup::Switch::Off`]), so that comes first.
pub fn release_all(cluster: &dyn Cluster) -> Result<Released, SlurmError> {
    let jobs = cluster.jobs()?;
    let mut released = Released::default();
    let is_ours = |job: &&Job| setup::is_marked(job) && job.hold.is_some();
    let tells = |job: &&Job| setup::has_remark(job) && !job.state.has_ended();
    let said: Vec<JobRef> = jobs.iter().filter(tells).map(Job::reference).collect();
    if !said.is_empty() {
        // They do not wait for Busbar any more.
        let admin_comment = Some(setup::MARK.to_owned());
        let silent = JobUpdate { admin_comment, ..JobUpdate::default() };
        if let Err(error) = cluster.update_unread(&said, &silent) {
            released.failures.push(error.to_string());
        }
    }
    let (kept, free): (Vec<&Job>, Vec<&Job>) =
        jobs.iter().filter(is_ours).partition(|job| setup::is_kept_back(job));
    for job in kept {
        let name = job.reference();
        // An admin hold becomes one that the user can release.
        let done = if job.hold == Some(Hold::User) { Ok(()) } else { cluster.hold_for_user(name) };
        released.note(done, &name.to_string(), |released| &mut released.kept_back);
    }
    let (pinned, loose): (Vec<&Job>, Vec<&Job>) =
        free.into_iter().partition(|job| !job.required.is_empty());
    let all: Vec<JobRef> = loose.iter().map(|job| job.reference()).collect();
    match cluster.release(&all) {
        Ok(()) => released.jobs.extend(all.iter().map(JobRef::to_string)),
        // One of them is in the way: which, shows one by one.
        Err(_) => {
            for job in all {
                released
                    .note(release(cluster, job), &job.to_string(), |released| &mut released.jobs);
            }
        }
    }
    for job in pinned {
        let name = job.reference();
        // Nodes that Busbar chose must not keep the job from starting elsewhere.
        let anywhere = JobUpdate { required: Some(HostList::default()), ..JobUpdate::default() };
        let done = cluster.update(name, &anywhere).and_then(|()| release(cluster, name));
        released.note(done, &name.to_string(), |released| &mut released.jobs);
    }
    match cluster.reservations() {
        Ok(all) if all.iter().any(|one| one.name == RESERVATION) => {
            match cluster.remove_reservation(RESERVATION) {
                Ok(()) => released.had_reservation = true,
                Err(error) => released.failures.push(error.to_string()),
            }
        }
        Ok(_) => (),
        Err(error) => released.failures.push(error.to_string()),
    }
    for node in cluster.nodes()? {
        let is_drained_by_us = node.state.has("DRAIN")
            && node.reason.is_some_and(|reason| reason.starts_with(DRAIN_REASON));
        if is_drained_by_us {
            let done = cluster.undrain(&HostList::new([node.name.as_str()]));
            released.note(done, &node.name, |released| &mut released.nodes);
        }
    }
    Ok(released)
}

/// Releases one job; that it has ended meanwhile is fine.
fn release(cluster: &dyn Cluster, job: JobRef) -> Result<(), SlurmError> {
    match cluster.release(&[job]) {
        Err(SlurmError::NoSuchJob { .. }) => Ok(()),
        done => done,
    }
}

impl Released {
    fn note(
        &mut self,
        done: Result<(), SlurmError>,
        name: &str,
        list: impl Fn(&mut Released) -> &mut Vec<String>,
    ) {
        match done {
            Ok(()) => list(self).push(name.to_owned()),
            Err(error) => self.failures.push(error.to_string()),
        }
    }
}
