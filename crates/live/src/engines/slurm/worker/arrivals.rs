//! Jobs that the daemon does not know yet.

use busbar_core::units::{Span, Watts};
use busbar_slurm::cluster::Cluster;
use busbar_slurm::model::{Job, JobRef, JobState};
use busbar_slurm::setup::{self, Mode};

use super::{Limit, Worker, now};
use crate::engine::{Arrival, Report, Underway};
use crate::engines::slurm::dependencies;
use crate::engines::slurm::known::{Known, Stage};
use crate::engines::slurm::requests::{owner, request};

impl<C: Cluster> Worker<C> {
    /// A job that the daemon does not know.
    pub(super) fn look_at_new(
        &mut self,
        handle: String,
        reference: JobRef,
        job: &Job,
        jobs: &[Job],
    ) {
        if self.refused.contains(&handle) {
            return;
        }
        if self.done.contains(&handle) {
            if job.state.is_waiting() {
                tracing::warn!(handle, "Slurm has forgotten that a job has run; it is cancelled");
                if let Err(error) = self.cluster.ask(|cluster| cluster.cancel(reference)) {
                    tracing::warn!(handle, %error, "a job that has run is not cancelled; it is tried again");
                }
            }
            return;
        }
        let is_ready = self.terms.mode == Mode::Steer
            && job.state.is_waiting()
            && setup::is_ready(job)
            && job.unread.is_empty()
            && job.dependency.as_ref().is_none_or(|text| dependencies::are_fulfilled(text, jobs))
            && job.eligible.is_none_or(|eligible| eligible <= now());
        let running = match job.has_nodes() && job.state != JobState::Completing {
            true => self.places(job).map(|nodes| Underway {
                node_power: self.promised(job, nodes.len()),
                nodes,
                of_others: false,
                ran: Span::from_millis(
                    1000 * now().saturating_sub(job.started.unwrap_or_else(now)),
                ),
            }),
            false => None,
        };
        if !is_ready && running.is_none() {
            return;
        }
        let limit =
            self.limits.get(&reference).filter(|limit| Some(limit.given) == job.limit_minutes);
        let minutes = limit.map_or(job.limit_minutes, |limit| limit.asked);
        self.limits.insert(reference, Limit { asked: minutes, given: 0 });
        let asked = match request(job, minutes, self.terms.resizes) {
            Ok(asked) => asked,
            Err(reason) => {
                self.known.insert(
                    handle.clone(),
                    Known { job: reference, attempt: None, stage: Stage::Waiting },
                );
                return self.refuse(&handle, &reason);
            }
        };
        let stage = match &running {
            Some(underway) => Stage::Running {
                nodes: underway.nodes.iter().copied().collect(),
                limit: job.limit_minutes.unwrap_or(u32::MAX),
                is_told: true,
            },
            None => Stage::Waiting,
        };
        self.known.insert(handle.clone(), Known { job: reference, attempt: None, stage });
        let owner = owner(job);
        let arrival = Arrival { handle, owner, request: asked, running };
        self.reports.push(Report::Arrived(Box::new(arrival)));
    }

    /// What each node of a job may draw, by its licences.
    pub(super) fn promised(&self, job: &Job, nodes: usize) -> Option<Watts> {
        let watts = *job.licences.get(&self.terms.licence)?;
        let milliwatts = (watts * 1000).div_ceil(nodes.max(1) as u64);
        let counts = self.terms.mode == Mode::Admit || self.terms.fails_to_admit;
        counts.then(|| Watts::from_milliwatts(milliwatts))
    }
}
