//! What the daemon orders: jobs are started, changed, and taken back.

use std::collections::BTreeSet;
use std::time::Instant;

use busbar_core::units::Span;
use busbar_slurm::cluster::{Cluster, JobUpdate};
use busbar_slurm::error::SlurmError;
use busbar_slurm::hosts::HostList;
use busbar_slurm::model::JobRef;
use busbar_slurm::setup;

use super::Worker;
use crate::engine::{EngineError, Launch, Order, Report, Signal, Ticket};
use crate::engines::slurm::known::{Known, Release, Stage};
use crate::engines::slurm::others;
use crate::job::{Allotment, Attempt};

impl<C: Cluster> Worker<C> {
    pub(super) fn order(&mut self, ticket: Ticket, order: Order) {
        let attempt = order.attempt();
        if self.others.has(attempt) {
            return self.reports.push(match order {
                Order::Signal { signal: Signal::Resume, .. } | Order::Set { .. } => {
                    Report::Confirmed { ticket }
                }
                Order::Signal { .. } | Order::Start(_) => {
                    let (node, reason) = ("slurm".to_owned(), others::NOT_OURS.to_owned());
                    Report::Failed { ticket, error: EngineError::Node { attempt, node, reason } }
                }
            });
        }
        let is_recalled = |(_, known): (&str, &Known)| known.stage == Stage::Recalled;
        if self.known.of_attempt(attempt).is_some_and(is_recalled) {
            // What it has is not known before the next look.
            return self.deferred.push((ticket, order));
        }
        let done = match order {
            // It is confirmed when the job is seen to run.
            Order::Start(launch) => return self.to_start.push((ticket, *launch)),
            Order::Set { allotment, .. } => self.set(attempt, &allotment),
            Order::Signal { signal, .. } => self.signal(attempt, signal),
        };
        self.reports.push(match done {
            Ok(()) => Report::Confirmed { ticket },
            Err(error) => Report::Failed { ticket, error },
        });
    }

    /// Releases jobs. Slurm chooses their nodes, unless they are to run on exactly those that they were given.
    pub(super) fn start_all(&mut self) {
        let (mut starts, mut updates) = (Vec::new(), Vec::new());
        for (ticket, launch) in std::mem::take(&mut self.to_start) {
            let Launch { attempt, allotment, handle, is_free, .. } = launch;
            let known = handle.as_ref().and_then(|handle| self.known.get(handle));
            let (Some(job), Some(handle)) = (known.map(|known| known.job), handle) else {
                let error = EngineError::Unknown { attempt };
                self.reports.push(Report::Failed { ticket, error });
                continue;
            };
            let (count, minutes) = (allotment.nodes.len() as u32, minutes(allotment.time));
            let cpus = self.cpus_of_each(&handle, &allotment);
            let update = JobUpdate {
                nodes: Some((count, count)),
                // What it asks for in all, Slurm could give to it unevenly.
                cpus: cpus.filter(|_| count > 1).map(|each| (each.saturating_mul(count), each)),
                required: (!is_free).then(|| self.hosts(&allotment)),
                limit_minutes: Some(minutes),
                // Slurm does not count its watts any more, since the daemon does.
                licences: self.licensed.remove(&handle),
                // A job that runs does not say that it waits.
                admin_comment: self.explained.take_back(&handle).then(|| setup::MARK.to_owned()),
                ..JobUpdate::default()
            };
            if let Some(limit) = self.limits.get_mut(&job) {
                limit.given = minutes;
            }
            updates.push((job, update));
            let nodes: BTreeSet<u32> = allotment.node_numbers().into_iter().collect();
            let since = Instant::now();
            let stage = match is_free {
                true => Stage::Released(Release { asked: Some((nodes.len(), minutes)), since }),
                false => Stage::Starting { ticket, nodes, cpus, since },
            };
            starts.push((ticket, handle, Known { job, attempt: Some(attempt), stage }));
        }
        if starts.is_empty() {
            return;
        }
        let done = self.cluster.ask(|cluster| cluster.start_all(&updates));
        let failed = starts.iter().zip(&done).filter(|(_, done)| done.is_err());
        let to_hold: Vec<JobRef> = failed.map(|((_, _, known), _)| known.job).collect();
        // They may have been released all the same. Unless they are held, they count as released, and the next look tells.
        let held = match to_hold.is_empty() {
            true => Ok(()),
            false => self.cluster.ask(|cluster| cluster.hold(&to_hold)),
        };
        if let Err(error) = &held {
            tracing::warn!(%error, "jobs that could not be released cannot be held");
        }
        for ((ticket, handle, known), done) in starts.into_iter().zip(done) {
            if let (Err(error), Some(attempt), Ok(())) = (done, known.attempt, &held) {
                // Whatever it is, the job waits again, or is gone at the next look.
                let (node, reason) = ("slurm".to_owned(), error.to_string());
                let error = EngineError::Node { attempt, node, reason };
                self.reports.push(Report::Failed { ticket, error });
                continue;
            }
            if matches!(known.stage, Stage::Released(_)) {
                self.reports.push(Report::Confirmed { ticket });
            }
            self.known.insert(handle, known);
        }
    }

    /// How many processors a job is to have of each node, if it is to have a part of them.
    fn cpus_of_each(&self, handle: &str, allotment: &Allotment) -> Option<u32> {
        let is_part = self.terms.placing.is_in_parts() && !self.whole.contains(handle);
        is_part.then_some(allotment.cores)
    }

    /// Gives a running job other nodes, and never less time than the daemon gives it. Its caps are not Slurm's matter.
    pub(super) fn set(
        &mut self,
        attempt: Attempt,
        allotment: &Allotment,
    ) -> Result<(), EngineError> {
        let wanted: BTreeSet<u32> = allotment.node_numbers().into_iter().collect();
        let Some((handle, known)) = self.known.of_attempt(attempt) else {
            return Err(EngineError::Unknown { attempt });
        };
        let (handle, job) = (handle.to_owned(), known.job);
        let not_yet = || {
            let reason = "it does not run yet".to_owned();
            Err(EngineError::Node { attempt, node: "slurm".to_owned(), reason })
        };
        let (nodes, limit, is_told) = match known.stage.clone() {
            Stage::Running { nodes, limit, is_told } => (nodes, limit, is_told),
            Stage::Released(Release { asked, since }) => {
                let count = wanted.len();
                let Some((_, limit)) = asked.filter(|(asked, _)| *asked == count) else {
                    return not_yet();
                };
                let limit = self.give_time(attempt, job, allotment, limit)?;
                let asked = Some((count, limit));
                self.known.set_stage(&handle, Stage::Released(Release { asked, since }));
                return Ok(());
            }
            _ => return not_yet(),
        };
        // Before the daemon has heard where the job was placed, it speaks of as many other nodes.
        let is_told = is_told || wanted == nodes;
        let wanted = if !is_told && wanted.len() == nodes.len() { nodes.clone() } else { wanted };
        let refused = |error: SlurmError| not_done(attempt, &error);
        let names = |nodes: &BTreeSet<u32>| {
            HostList::new(nodes.iter().map(|node| self.terms.nodes[*node as usize].clone()))
        };
        let kept: BTreeSet<u32> = nodes.intersection(&wanted).copied().collect();
        if kept.is_empty() {
            let reason = "Slurm cannot move a job to other nodes".to_owned();
            return Err(EngineError::Node { attempt, node: "slurm".to_owned(), reason });
        }
        if kept.len() < nodes.len() {
            self.cluster.ask(|cluster| cluster.shrink(job, &names(&kept))).map_err(refused)?;
        }
        let more: BTreeSet<u32> = wanted.difference(&nodes).copied().collect();
        if !more.is_empty() {
            self.cluster.ask(|cluster| cluster.expand(job, &names(&more))).map_err(refused)?;
        }
        let limit = self.give_time(attempt, job, allotment, limit)?;
        self.known.set_stage(&handle, Stage::Running { nodes: wanted, limit, is_told });
        Ok(())
    }

    /// Gives a job more time, if it is to have more than its limit; returns the limit that it has then.
    pub(super) fn give_time(
        &mut self,
        attempt: Attempt,
        job: JobRef,
        allotment: &Allotment,
        limit: u32,
    ) -> Result<u32, EngineError> {
        let enough = minutes(allotment.time);
        if enough <= limit {
            return Ok(limit);
        }
        let update = JobUpdate { limit_minutes: Some(enough), ..JobUpdate::default() };
        let done = self.cluster.ask(|cluster| cluster.update(job, &update));
        done.map_err(|error| not_done(attempt, &error))?;
        if let Some(limit) = self.limits.get_mut(&job) {
            limit.given = enough;
        }
        Ok(enough)
    }

    pub(super) fn signal(&mut self, attempt: Attempt, signal: Signal) -> Result<(), EngineError> {
        let known = self.known.of_attempt(attempt);
        let Known { job, stage, .. } = known.ok_or(EngineError::Unknown { attempt })?.1;
        let (job, is_released) = (*job, matches!(stage, Stage::Released(_)));
        let done = match signal {
            Signal::Terminate | Signal::Kill => self.cluster.ask(|cluster| cluster.cancel(job)),
            // It does not run yet, and is not to begin.
            Signal::Suspend if is_released => self.take_back(attempt).map(|()| {
                let reason = "power is short".to_owned();
                self.reports.push(Report::SetAside { attempt, reason });
            }),
            Signal::Suspend => {
                self.suspended.insert(job);
                self.cluster.ask(|cluster| cluster.suspend(job))
            }
            // What does not stand still goes on already.
            Signal::Resume if !self.suspended.contains(&job) => Ok(()),
            Signal::Resume => self.cluster.ask(|cluster| cluster.resume(job)),
        };
        done.map_err(|error| not_done(attempt, &error))
    }

    /// The daemon does not count with an attempt any more: if Slurm has not placed it, it is not to.
    pub(super) fn withdraw(&mut self, attempt: Attempt) {
        let Err(error) = self.take_back(attempt) else { return };
        tracing::warn!(%attempt, %error, "a job that is not to start cannot be held");
        if let Some((handle, _)) = self.known.of_attempt(attempt) {
            // If it begins, it is adopted as one that somebody else has started.
            let handle = handle.to_owned();
            self.known.set_stage(&handle, Stage::Waiting);
        }
    }

    /// Holds a job again that was released, and that Slurm has not placed.
    pub(super) fn take_back(&mut self, attempt: Attempt) -> Result<(), SlurmError> {
        let released = self.known.of_attempt(attempt);
        let released = released.filter(|(_, known)| matches!(known.stage, Stage::Released(_)));
        let Some((handle, known)) = released else { return Ok(()) };
        let (handle, job) = (handle.to_owned(), known.job);
        self.cluster.ask(|cluster| cluster.hold(&[job]))?;
        self.known.set_stage(&handle, Stage::Aside);
        self.setbacks.note(&handle);
        Ok(())
    }

    /// A job stays in Slurm's queue under its hold, with the reason in its comment.
    pub(super) fn refuse(&mut self, handle: &str, reason: &str) {
        self.refused.insert(handle.to_owned());
        self.unclaimed.remove(handle);
        let Some(known) = self.known.remove(handle) else { return };
        let comment = Some(format!("busbar does not start it: {}", setup::plain(reason)));
        let update = JobUpdate { comment, ..JobUpdate::default() };
        if let Err(error) = self.cluster.ask(|cluster| cluster.update(known.job, &update)) {
            tracing::warn!(handle, %error, "the user of a job cannot be told why it does not start");
        }
    }
}

/// Why something could not be done to a job.
fn not_done(attempt: Attempt, error: &SlurmError) -> EngineError {
    match error.is_over() {
        true => EngineError::Unknown { attempt },
        false => {
            let (node, reason) = ("slurm".to_owned(), error.to_string());
            EngineError::Node { attempt, node, reason }
        }
    }
}

/// Whole minutes, which is what Slurm takes. It ends the job then; the daemon does not.
fn minutes(time: Span) -> u32 {
    u32::try_from(time.millis().div_ceil(60_000)).unwrap_or(u32::MAX)
}
