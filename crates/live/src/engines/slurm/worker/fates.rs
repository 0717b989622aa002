//! What became of the jobs that the daemon knows.

use std::collections::{BTreeMap, BTreeSet};

use busbar_slurm::cluster::Cluster;
use busbar_slurm::error::SlurmError;
use busbar_slurm::model::{Job, JobRef, JobState};
use busbar_slurm::setup::{self, Mode};
use busbar_slurm::unread::UNKNOWN;

use super::Worker;
use crate::engine::{EngineError, Report, Ticket};
use crate::engines::slurm::Placing;
use crate::engines::slurm::known::{Known, Release, Stage};
use crate::engines::slurm::past::Past;
use crate::engines::slurm::setbacks::Decision;
use crate::job::{Attempt, NodeState};

/// Why a job does not start a second time.
const BEGUN_BEFORE: &str =
    "it has begun before, Slurm has forgotten that, and it may not be queued again (--no-requeue)";

impl<C: Cluster> Worker<C> {
    /// What became of the jobs that the daemon knows: first of those that leave their nodes, so that others are placed there
    /// afterwards. If not all jobs could be read, one that is not there is as it was.
    pub(super) fn look_for_known(
        &mut self,
        seen: &BTreeMap<String, (JobRef, &Job)>,
        is_complete: bool,
    ) {
        let all = self.known.iter().map(|(handle, known)| (handle.to_owned(), known.clone()));
        let is_placed = |(handle, known): &(String, Known)| {
            let has_nodes = seen.get(handle).is_some_and(|(_, job)| job.has_nodes());
            has_nodes && matches!(known.stage, Stage::Released(_) | Stage::Recalled)
        };
        let (placed, others): (Vec<_>, Vec<_>) = all.partition(is_placed);
        for (handle, known) in others.into_iter().chain(placed) {
            let job = seen.get(&handle).map(|(_, job)| *job);
            if job.is_some() || is_complete {
                self.look_for(&handle, known, job);
            }
        }
    }

    /// What became of a job that the daemon knows.
    pub(super) fn look_for(&mut self, handle: &str, known: Known, job: Option<&Job>) {
        let Known { job: reference, attempt, stage } = known;
        match (stage.clone(), job) {
            (Stage::Starting { ticket, nodes, cpus, .. }, Some(job)) if job.has_nodes() => {
                self.has_begun(handle, reference, attempt, Some((ticket, nodes, cpus)), job);
            }
            (Stage::Starting { ticket, nodes, since, .. }, Some(job)) if job.state.is_waiting() => {
                let lost = self.out_of_service(&nodes);
                let is_late = since.elapsed() >= self.terms.patience;
                if lost.is_none() && !is_late {
                    return;
                }
                let held = self.cluster.ask(|cluster| cluster.hold(&[reference]));
                let reason = job.reason.as_deref().unwrap_or("no reason");
                match (lost, attempt) {
                    (Some(lost), _) => self.give_up(handle, held, ticket, attempt, lost),
                    // Its user may ask for what the daemon does not know. Others go on, and it is tried again after a while.
                    (None, Some(attempt)) if self.terms.placing != Placing::BySlurm => {
                        if held.is_ok() {
                            self.reports.push(Report::Confirmed { ticket });
                        }
                        let reason = format!("Slurm did not place it: {reason}");
                        self.set_aside(handle, held, attempt, reason);
                    }
                    (None, _) => {
                        let why = format!(
                            "Slurm did not start it within {:?}: {reason}",
                            self.terms.patience
                        );
                        self.give_up(handle, held, ticket, attempt, why);
                    }
                }
            }
            (Stage::Released(_), Some(job)) if job.has_nodes() => {
                self.has_begun(handle, reference, attempt, None, job);
            }
            (Stage::Released(release), Some(job)) if job.state.is_waiting() => {
                self.is_not_placed(handle, reference, attempt, job, &release);
            }
            (Stage::Waiting | Stage::Aside | Stage::Recalled, Some(job))
                if job.state.is_waiting() =>
            {
                if setup::is_kept_back(job) {
                    // Slurm had not started it when the daemon that released it ended.
                    if let (Stage::Recalled, Some(attempt)) = (&stage, attempt) {
                        let reason = "its user holds it".to_owned();
                        self.reports.push(Report::SetAside { attempt, reason });
                    }
                    // Its user holds it; when it is released, it is a new one.
                    self.known.remove(handle);
                    self.reports.push(Report::Gone { handle: handle.to_owned() });
                } else if attempt.is_some() && stage == Stage::Recalled && job.hold.is_none() {
                    // A daemon may have released it and ended then.
                    self.known.set_stage(handle, Stage::Released(Release::by_another()));
                } else if stage != Stage::Aside {
                    self.known.set_stage(handle, Stage::Waiting);
                }
            }
            (Stage::Waiting | Stage::Aside | Stage::Recalled, Some(job))
                if job.has_nodes() && (attempt.is_none() || stage != Stage::Recalled) =>
            {
                // Somebody else started it: it is adopted as a job that runs.
                self.known.remove(handle);
                self.reports.push(Report::Gone { handle: handle.to_owned() });
            }
            (Stage::Recalled, Some(job)) if job.has_nodes() => {
                self.has_begun(handle, reference, attempt, None, job);
            }
            (Stage::Running { .. }, Some(job)) if job.has_nodes() => (),
            (
                Stage::Running { .. }
                | Stage::Released(_)
                | Stage::Starting { .. }
                | Stage::Recalled,
                Some(job),
            ) if matches!(job.state, JobState::Other(_)) => {
                tracing::warn!(handle, state = ?job.state, "a job is in an unknown state; its last known state counts");
            }
            (Stage::Waiting | Stage::Aside, _) => {
                self.known.remove(handle);
                self.reports.push(Report::Gone { handle: handle.to_owned() });
            }
            // It has ended, was queued again, or Slurm has forgotten that it ran, which a controller does that died a
            // moment after it started the job.
            (stage, job) => {
                if let Stage::Starting { ticket, .. } = stage {
                    self.reports.push(Report::Confirmed { ticket });
                }
                let how = match (job, &stage) {
                    (None, _) => Past::FORGOTTEN,
                    (Some(job), Stage::Recalled) => Past::missed(job),
                    (Some(job), _) => Past::seen(job),
                };
                let has_begun = matches!(stage, Stage::Running { .. });
                match job {
                    Some(job) if has_begun && self.may_not_begin_again(job) => {
                        if let Err(error) = self.cluster.ask(|cluster| cluster.hold(&[reference])) {
                            tracing::warn!(handle, %error, "a job that may not run twice cannot be held");
                        }
                        self.refuse(handle, BEGUN_BEFORE);
                    }
                    _ => _ = self.known.remove(handle),
                }
                let ran_unseen = matches!(stage, Stage::Released(_) | Stage::Recalled);
                match (attempt, stage) {
                    (Some(attempt), _) => {
                        let nodes = job.map(|job| self.places_of_ours(job)).unwrap_or_default();
                        if ran_unseen && !nodes.is_empty() {
                            self.reports.push(Report::Placed { attempt, nodes });
                        }
                        self.is_over(handle, attempt, how);
                    }
                    // The daemon has heard that it runs, and has not answered yet.
                    (None, Stage::Running { .. }) => {
                        _ = self.unclaimed.insert(handle.to_owned(), how);
                    }
                    (None, _) => self.reports.push(Report::Gone { handle: handle.to_owned() }),
                }
            }
        }
    }

    /// Whether Slurm has forgotten that a job has begun, and its user does not want it to begin again (`--no-requeue`). One that was
    /// queued again has another submit time.
    fn may_not_begin_again(&self, job: &Job) -> bool {
        self.terms.mode == Mode::Steer && job.state.is_waiting() && !job.may_requeue
    }

    /// A job that was released runs. If the daemon has named its nodes, it may not stay on others, since others may be given those.
    pub(super) fn has_begun(
        &mut self,
        handle: &str,
        job: JobRef,
        attempt: Option<Attempt>,
        named: Option<(Ticket, BTreeSet<u32>, Option<u32>)>,
        seen: &Job,
    ) {
        let nodes: BTreeSet<u32> = self.places_of_ours(seen).into_iter().collect();
        let is_wrong = match &named {
            Some((_, named, cpus)) => {
                // What Slurm does not say is what was asked for.
                let held = seen.held.iter().flatten();
                let most = held.map(|held| held.cpus).filter(|cpus| *cpus != UNKNOWN).max();
                let has_more = cpus.zip(most).is_some_and(|(cpus, most)| most > cpus);
                has_more || *named != nodes || nodes.len() != seen.nodes.names().len()
            }
            None => nodes.is_empty(),
        };
        // Of a job that is about to end, Slurm names only the nodes that are not cleaned up yet.
        let is_ending = seen.state == JobState::Completing;
        if is_wrong && !seen.unread.is_empty() {
            return tracing::warn!(
                handle,
                "the nodes on which Slurm started a job are unknown; its last known state counts"
            );
        }
        if is_wrong && !is_ending {
            let queued = self.cluster.ask(|cluster| cluster.requeue_hold(job));
            let wrong = format!("Slurm has started it on {}", seen.nodes);
            return match (named, attempt) {
                (Some((ticket, ..)), _) => self.give_up(handle, queued, ticket, attempt, wrong),
                (None, Some(attempt)) => {
                    let reason = format!("{wrong}, which is not Busbar's");
                    self.set_aside(handle, queued, attempt, reason);
                }
                (None, None) => (),
            };
        }
        self.setbacks.forget(handle);
        let limit = seen.limit_minutes.unwrap_or(u32::MAX);
        let (nodes, is_told) = match named {
            Some((ticket, named, _)) => {
                self.reports.push(Report::Confirmed { ticket });
                (named, true)
            }
            None => {
                if let Some(attempt) = attempt.filter(|_| !is_ending) {
                    let nodes = nodes.iter().copied().collect();
                    self.reports.push(Report::Placed { attempt, nodes });
                }
                (nodes, false)
            }
        };
        self.known.set_stage(handle, Stage::Running { nodes, limit, is_told });
    }

    /// Slurm has not placed a job yet that was released. When it has said why, or has not within its time, the job is held
    /// again and waits beside the queue; one that has waited so too often stays released, so that Slurm keeps nodes for it.
    pub(super) fn is_not_placed(
        &mut self,
        handle: &str,
        job: JobRef,
        attempt: Option<Attempt>,
        seen: &Job,
        release: &Release,
    ) {
        let Some(attempt) = attempt else { return };
        match self.setbacks.decide(handle, seen, release.since.elapsed()) {
            Decision::Wait => (),
            Decision::Stay => self.reports.push(Report::Notice {
                text: format!(
                    "job {} ({job} in Slurm) could not be placed for the last time: it stays released, with its power, until \
                     Slurm has nodes for it ({})",
                    attempt.job,
                    seen.reason.as_deref().unwrap_or("Slurm does not say why")
                ),
            }),
            Decision::TakeBack(reason) => {
                let held = self.cluster.ask(|cluster| cluster.hold(&[job]));
                self.set_aside(handle, held, attempt, reason);
            }
        }
    }

    /// A job waits beside the daemon's queue, if it is held.
    pub(super) fn set_aside(
        &mut self,
        handle: &str,
        held: Result<(), SlurmError>,
        attempt: Attempt,
        reason: String,
    ) {
        if let Err(error) = held {
            // It may start at any moment; the next look tells.
            return tracing::warn!(handle, %error, "a job that is not placed cannot be held");
        }
        self.setbacks.note(handle);
        self.known.set_stage(handle, Stage::Aside);
        self.reports.push(Report::SetAside { attempt, reason });
    }

    /// Which of these nodes can run nothing, and why: a job that was given it would wait for it in vain.
    pub(super) fn out_of_service(&self, nodes: &BTreeSet<u32>) -> Option<String> {
        nodes.iter().find_map(|node| match self.nodes.get(*node as usize)? {
            NodeState::Drained { reason } | NodeState::Down { reason } => {
                Some(format!("node {}: {reason}", self.terms.nodes[*node as usize]))
            }
            NodeState::Up | NodeState::Awaited => None,
        })
    }

    /// A job that was released waits under a hold again, if that could be done.
    pub(super) fn give_up(
        &mut self,
        handle: &str,
        held: Result<(), SlurmError>,
        ticket: Ticket,
        attempt: Option<Attempt>,
        reason: String,
    ) {
        if let Err(error) = held {
            // It may start at any moment; the next look tells.
            return tracing::warn!(handle, %error, "a job that does not start cannot be held");
        }
        self.known.set_stage(handle, Stage::Waiting);
        if let Some(attempt) = attempt {
            let error = EngineError::Node { attempt, node: "slurm".to_owned(), reason };
            self.reports.push(Report::Failed { ticket, error });
        }
    }
}
