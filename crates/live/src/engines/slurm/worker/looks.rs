//! A look at the cluster: nodes, jobs, and what has to be put right.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;

use busbar_slurm::cluster::{Cluster, JOBS_AT_ONCE};
use busbar_slurm::error::SlurmError;
use busbar_slurm::listing::Listing;
use busbar_slurm::model::{Hold, Job, JobRef, JobState, Node};
use busbar_slurm::setup::{self, Mode};

use super::Worker;
use crate::engine::{EngineError, Order, Report};
use crate::engines::slurm::count_others;
use crate::engines::slurm::known::Stage;
use crate::job::NodeState;

impl<C: Cluster> Worker<C> {
    /// Looks at the cluster, and reports what has changed.
    pub(in crate::engines::slurm) fn look(&mut self) {
        let begun = Instant::now();
        self.look_around();
        self.efforts.looks.note(begun.elapsed(), self.cluster.take_spent());
    }

    pub(super) fn look_around(&mut self) {
        let mut seen = self.read();
        // Until what Slurm could start by itself is held, and what it has started is known, nothing else starts.
        let is_taking_over = match &seen {
            Ok((_, jobs)) => self.hold_loose(jobs),
            Err(_) => false,
        };
        if is_taking_over {
            seen = self.read();
        }
        let (nodes, jobs) = match seen {
            Ok(seen) => seen,
            Err(error) => return self.lost(&error),
        };
        if self.failure.take().is_some() {
            tracing::info!("Slurm answers again");
        }
        self.reserve();
        for unread in self.reported.news(nodes.unread.iter().chain(&jobs.unread)) {
            tracing::warn!(%unread, "part of Slurm's answer cannot be read; the rest is used");
        }
        self.look_at_nodes(&nodes);
        if self.is_recalled {
            self.look_at_jobs(&jobs, &nodes);
            self.look_at_others(&jobs, &nodes);
            for (ticket, order) in std::mem::take(&mut self.deferred) {
                match order {
                    Order::Start(launch) if is_taking_over => {
                        let (node, reason) =
                            ("slurm".to_owned(), "Slurm has started jobs by itself".to_owned());
                        let error = EngineError::Node { attempt: launch.attempt, node, reason };
                        self.reports.push(Report::Failed { ticket, error });
                    }
                    order => self.order(ticket, order),
                }
            }
        }
    }

    fn read(&self) -> Result<(Listing<Node>, Listing<Job>), SlurmError> {
        let is_in_parts = self.terms.placing.is_in_parts();
        self.cluster.ask(|cluster| {
            let nodes = cluster.nodes()?;
            let jobs = if is_in_parts { cluster.jobs_with_parts() } else { cluster.jobs() };
            Ok((nodes, jobs?))
        })
    }

    /// Holds all jobs that Slurm may start by itself, as it did while no daemon was there. Returns whether there are some.
    fn hold_loose(&self, jobs: &[Job]) -> bool {
        if !(self.terms.fails_to_admit && self.is_recalled) {
            return false;
        }
        let is_loose = |job: &&Job| {
            let is_ours = self.is_ours(job) && job.state.is_waiting() && setup::is_marked(job);
            is_ours && job.hold.is_none() && self.has_watts(job)
        };
        let loose: Vec<JobRef> = jobs.iter().filter(is_loose).map(Job::reference).collect();
        if !loose.is_empty()
            && let Err(error) = self.cluster.ask(|cluster| cluster.hold_unread(&loose))
        {
            tracing::warn!(%error, "not all jobs that Slurm may start by itself are held");
        }
        !loose.is_empty()
    }

    /// Whether Slurm counts the watts of a job.
    fn has_watts(&self, job: &Job) -> bool {
        job.licences.get(&self.terms.licence).is_some_and(|watts| *watts > 0)
    }

    /// Slurm does not answer: nothing starts, and nothing is taken for ended.
    pub(super) fn lost(&mut self, error: &SlurmError) {
        let text = error.to_string();
        if self.failure.as_ref() != Some(&text) {
            tracing::error!(error = text, "Slurm cannot be read");
        }
        let reason = format!("Slurm cannot be read: {text}");
        self.failure = Some(text);
        for node in 0..self.nodes.len() {
            self.set_node(node, NodeState::Drained { reason: reason.clone() });
        }
    }

    pub(super) fn look_at_nodes(&mut self, nodes: &Listing<Node>) {
        let seen: HashMap<&str, &Node> =
            nodes.iter().map(|node| (node.name.as_str(), node)).collect();
        // One whose name cannot be read counts as somebody else's.
        self.terms.others = count_others(nodes, |name| self.places.contains_key(name)) + nodes.lost;
        let in_use = self.known.nodes_in_use();
        for place in 0..self.nodes.len() {
            let state = match seen.get(self.terms.nodes[place].as_str()) {
                None if nodes.lost > 0 => {
                    let reason = "Slurm's answer about it cannot be read".to_owned();
                    NodeState::Drained { reason }
                }
                None => NodeState::Down { reason: "Slurm has no such node".to_owned() },
                // What is being cleaned up after a job that nobody here knows is not free yet.
                Some(node) if node.state.is_usable() && node.state.has("COMPLETING") => {
                    match in_use.contains(&(place as u32)) {
                        true => NodeState::Up,
                        false => NodeState::Awaited,
                    }
                }
                Some(node) if node.state.is_usable() => NodeState::Up,
                Some(node) => {
                    let why =
                        node.reason.as_deref().map_or(String::new(), |why| format!(" ({why})"));
                    let reason = format!("Slurm says {}{why}", node.state);
                    match node.state.base.as_str() {
                        "DOWN" => NodeState::Down { reason },
                        _ => NodeState::Drained { reason },
                    }
                }
            };
            self.set_node(place, state);
        }
    }

    pub(super) fn set_node(&mut self, place: usize, state: NodeState) {
        if self.nodes[place] != state {
            self.nodes[place] = state.clone();
            self.reports.push(Report::Node { node: place as u32, state });
        }
    }

    pub(super) fn look_at_jobs(&mut self, jobs: &Listing<Job>, nodes: &[Node]) {
        let mut seen: BTreeMap<String, (JobRef, &Job)> = BTreeMap::new();
        for job in jobs.iter().filter(|job| self.is_ours(job)) {
            let tasks = job.array.as_ref().map(|array| (array.job, &array.tasks));
            match tasks {
                // Elements that wait together are one entry.
                Some((array, tasks)) => seen.extend(tasks.numbers().map(|task| {
                    let element = JobRef { job: array, task: Some(task) };
                    (self.known.handle_of(element, job), (element, job))
                })),
                None => {
                    let whole = JobRef::whole(job.id);
                    seen.insert(self.known.handle_of(whole, job), (whole, job));
                }
            }
        }
        let is_complete = jobs.lost == 0;
        // What Slurm does not remember any more, it does not run again either.
        if is_complete {
            self.done.retain(|handle| seen.contains_key(handle));
            self.refused.retain(|handle| seen.contains_key(handle));
            self.setbacks.retain(|handle| seen.contains_key(handle));
            let is_there: BTreeSet<JobRef> = seen.values().map(|(job, _)| *job).collect();
            self.limits.retain(|job, _| is_there.contains(job));
        }
        let has_whole = |job: &Job| job.part.is_none_or(|part| part.is_whole());
        let whole = seen.iter().filter(|(_, (_, job))| has_whole(job));
        self.whole = whole.map(|(handle, _)| handle.clone()).collect();
        let stands_still = seen.values().filter(|(_, job)| job.state == JobState::Suspended);
        self.suspended = stands_still.map(|(job, _)| *job).collect();
        if self.terms.fails_to_admit {
            let waits =
                seen.iter().filter(|(_, (_, job))| job.state.is_waiting() && self.has_watts(job));
            let others = waits.map(|(handle, (_, job))| {
                let mut licences = job.licences.clone();
                licences.remove(&self.terms.licence);
                (handle.clone(), licences)
            });
            self.licensed = others.collect();
        }
        self.hold_some(&seen);
        self.look_for_known(&seen, is_complete);
        self.offer(&seen, nodes);
        if self.terms.mode == Mode::Steer {
            self.explained.look(&seen, &self.known, is_complete);
        }
        // In the order in which they were submitted.
        let mut seen: Vec<(String, (JobRef, &Job))> = seen.into_iter().collect();
        seen.sort_by_key(|(_, (reference, _))| *reference);
        for (handle, (reference, job)) in seen {
            if !self.known.contains(&handle) {
                self.look_at_new(handle, reference, job, jobs);
            }
        }
    }

    /// Makes the holds of jobs that wait an administrator's, first of those that have none. Until then the plug-in sees to
    /// it that users do not release them, so there is no hurry, and a long queue does not delay everything else.
    pub(super) fn hold_some(&self, seen: &BTreeMap<String, (JobRef, &Job)>) {
        if self.terms.mode != Mode::Steer {
            return;
        }
        let may_start = |handle: &str| {
            let stage = self.known.get(handle).map(|known| &known.stage);
            matches!(stage, Some(Stage::Starting { .. } | Stage::Released(_) | Stage::Recalled))
        };
        let is_free = |job: &Job| {
            let is_ours = job.state.is_waiting() && setup::is_marked(job);
            is_ours && matches!(job.hold, None | Some(Hold::User))
        };
        let to_hold = seen.iter().filter(|(handle, (_, job))| is_free(job) && !may_start(handle));
        let mut to_hold: Vec<(bool, JobRef)> =
            to_hold.map(|(_, (reference, job))| (job.hold.is_some(), *reference)).collect();
        to_hold.sort_unstable();
        let to_hold: Vec<JobRef> =
            to_hold.into_iter().map(|(_, reference)| reference).take(JOBS_AT_ONCE).collect();
        if !to_hold.is_empty()
            && let Err(error) = self.cluster.ask(|cluster| cluster.hold_unread(&to_hold))
        {
            tracing::warn!(%error, "jobs that wait are not held; users may release them");
        }
    }

    /// Whether a job is in a partition of ours.
    pub(super) fn is_ours(&self, job: &Job) -> bool {
        let ours = &self.terms.partitions;
        ours.is_empty() || job.partitions.iter().any(|partition| ours.contains(partition))
    }

    /// Offers jobs again for which there may be nodes now.
    pub(super) fn offer(&mut self, seen: &BTreeMap<String, (JobRef, &Job)>, nodes: &[Node]) {
        let aside = self.known.iter().filter(|(_, known)| known.stage == Stage::Aside);
        let may_start = |handle: &&str| {
            let job = seen.get(*handle).map(|(_, job)| *job);
            job.is_some_and(|job| match self.terms.placing.is_in_parts() {
                // There may be room on nodes that others share.
                true => self.setbacks.has_paused(handle),
                false => self.setbacks.may_start(handle, job, nodes),
            })
        };
        let offered: Vec<String> =
            aside.map(|(handle, _)| handle).filter(may_start).map(str::to_owned).collect();
        for handle in offered {
            self.known.set_stage(&handle, Stage::Waiting);
            self.reports.push(Report::Offered { handle });
        }
    }

    /// Reports work of others that came to nodes of ours, or has left them.
    pub(super) fn look_at_others(&mut self, jobs: &Listing<Job>, nodes: &Listing<Node>) {
        let known = &self.known;
        let is_known = |job: &Job| known.contains(&known.handle_of(job.reference(), job));
        let reports = self.others.look(jobs, nodes, &self.places, is_known);
        for (handle, attempt, past) in reports.gone {
            self.is_over(&handle, attempt, past);
        }
        let arrived = reports.arrived.into_iter();
        self.reports.extend(arrived.map(|arrival| Report::Arrived(Box::new(arrival))));
    }
}
