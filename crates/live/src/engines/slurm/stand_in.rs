//! Mode `steer` while no daemon is there, and none comes: Slurm goes on by itself within the last budget, as in mode `admit`.
//!
//! The daemon has left the budget in Slurm, as a reservation of the licences that its jobs may not draw. So what runs gets its
//! licences first, as many as it can draw at most; then the plug-in is switched over, so that new jobs bring theirs; and then the
//! jobs that wait are released, and the plug-in gives each its licences in the same step. A daemon that comes back switches the
//! plug-in on again, and holds what waits.

use std::path::PathBuf;

use busbar_slurm::cluster::{Cluster, JOBS_AT_ONCE, JobUpdate};
use busbar_slurm::error::SlurmError;
use busbar_slurm::listing::Listing;
use busbar_slurm::model::{Hold, Job, JobRef};
use busbar_slurm::setup::{self, Switch};

use super::reserved::Reserved;

/// How often what Slurm has started meanwhile is counted in one pass.
const ROUNDS: u32 = 5;

/// What stands in for a daemon.
#[derive(Clone, Debug)]
pub(crate) struct StandInTerms {
    /// The partitions that are Busbar's; all if none is named.
    pub(crate) partitions: Vec<String>,
    /// The licence that stands for watts.
    pub(crate) licence: String,
    /// What a node can draw at most, in whole watts.
    pub(crate) node_watts: u64,
    /// The file that says what the plug-in does.
    pub(crate) switch: PathBuf,
}

/// What was done in one pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passed {
    /// Jobs that run and count from now on.
    pub(crate) counted: usize,
    /// Jobs that Slurm may start from now on.
    pub(crate) released: usize,
    /// What else there is to say.
    pub(crate) notices: Vec<String>,
}

/// Stands in for a daemon.
pub(crate) struct StandIn {
    terms: StandInTerms,
    reserved: Reserved,
    has_budget: bool,
}

impl StandIn {
    /// Nothing is done before the first [pass](Self::pass).
    pub(crate) fn new(terms: StandInTerms) -> Self {
        let reserved = Reserved::new(terms.licence.clone());
        StandIn { terms, reserved, has_budget: false }
    }

    /// Lets Slurm go on by itself, and counts what it has started. To be repeated now and then: jobs may have come that the plug-in
    /// has held a moment before it was switched over.
    pub(crate) fn pass(&mut self, cluster: &dyn Cluster) -> Result<Passed, SlurmError> {
        let mut passed = Passed::default();
        let switch = Switch::read(&self.terms.switch);
        if switch == Switch::Off {
            // The cluster was given back to Slurm, without a budget.
            return Ok(passed);
        }
        if !self.has_budget {
            self.reserved.adopt(cluster)?;
            self.has_budget = true;
        }
        passed.notices.extend(self.reserved.look(cluster));
        if self.reserved.total() == 0 {
            let what = "the budget in Slurm".to_owned();
            return Err(SlurmError::NotFound { what, text: passed.notices.join("; ") });
        }
        let jobs = self.count(cluster, &mut passed)?;
        if switch == Switch::On {
            Switch::Admit.write(&self.terms.switch).map_err(|error| SlurmError::Refused {
                what: "switch job_submit.lua over".to_owned(),
                text: format!("{}: {error}", self.terms.switch.display()),
            })?;
        }
        self.release(cluster, &jobs, &mut passed);
        Ok(passed)
    }

    fn is_ours(&self, job: &Job) -> bool {
        let ours = &self.terms.partitions;
        ours.is_empty() || job.partitions.iter().any(|partition| ours.contains(partition))
    }

    fn is_counted(&self, job: &Job) -> bool {
        job.licences.get(&self.terms.licence).is_some_and(|watts| *watts > 0)
    }

    /// Gives what runs its licences, and holds what may begin without any. Returns the jobs when there is no such job left.
    fn count(
        &self,
        cluster: &dyn Cluster,
        passed: &mut Passed,
    ) -> Result<Listing<Job>, SlurmError> {
        let mut failure = None;
        for _ in 0..ROUNDS {
            let jobs = cluster.jobs()?;
            let uncounted = || jobs.iter().filter(|job| self.is_ours(job) && !self.is_counted(job));
            let running: Vec<&Job> = uncounted().filter(|job| job.has_nodes()).collect();
            let is_loose =
                |job: &&Job| job.state.is_waiting() && setup::is_marked(job) && job.hold.is_none();
            let loose: Vec<JobRef> = uncounted().filter(is_loose).map(Job::reference).collect();
            if running.is_empty() && loose.is_empty() {
                return Ok(jobs);
            }
            for job in running {
                let mut licences = job.licences.clone();
                // Slurm knows no job with more licences than there are. With all of them, nothing else starts.
                let watts = self.terms.node_watts * job.nodes.names().len().max(1) as u64;
                let watts = watts.min(self.reserved.total());
                licences.insert(self.terms.licence.clone(), watts);
                let update = JobUpdate { licences: Some(licences), ..JobUpdate::default() };
                match cluster.update(job.reference(), &update) {
                    Ok(()) => passed.counted += 1,
                    // It has ended, or the next round tells.
                    Err(error) => failure = Some(error),
                }
            }
            if !loose.is_empty() {
                // One of them may have begun.
                let _ = cluster.hold_unread(&loose);
            }
        }
        Err(failure.unwrap_or_else(|| SlurmError::NotDone {
            what: "count what Slurm has started".to_owned(),
            found: "there is always more".to_owned(),
        }))
    }

    /// Releases what waits for a daemon. Jobs that their users keep back stay held, and their users can release them.
    fn release(&self, cluster: &dyn Cluster, jobs: &[Job], passed: &mut Passed) {
        let waits = |job: &&Job| {
            job.state.is_waiting()
                && setup::is_marked(job)
                && job.hold.is_some()
                && self.is_ours(job)
        };
        let (kept, free): (Vec<&Job>, Vec<&Job>) =
            jobs.iter().filter(waits).partition(|job| setup::is_kept_back(job));
        for job in kept.into_iter().filter(|job| job.hold != Some(Hold::User)) {
            if let Err(error) = cluster.hold_for_user(job.reference()) {
                passed.notices.push(error.to_string());
            }
        }
        let silent =
            JobUpdate { admin_comment: Some(setup::MARK.to_owned()), ..JobUpdate::default() };
        for some in free.chunks(JOBS_AT_ONCE) {
            let tell = some.iter().filter(|job| setup::has_remark(job)).map(|job| job.reference());
            let tell: Vec<JobRef> = tell.collect();
            if !tell.is_empty() {
                // They do not wait for Busbar any more. What says so all the same starts as well.
                let _ = cluster.update_unread(&tell, &silent);
            }
            let some: Vec<JobRef> = some.iter().map(|job| job.reference()).collect();
            match cluster.release(&some) {
                Ok(()) => passed.released += some.len(),
                // One of them is in the way: which, shows one by one.
                Err(_) => {
                    for job in some {
                        match cluster.release(&[job]) {
                            Ok(()) => passed.released += 1,
                            Err(SlurmError::NoSuchJob { .. }) => (),
                            Err(error) => passed.notices.push(error.to_string()),
                        }
                    }
                }
            }
        }
    }
}
