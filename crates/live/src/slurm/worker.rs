//! The engine's part that speaks to Slurm: it looks at the cluster, and changes it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use busbar_core::units::{Span, Watts};
use busbar_slurm::cluster::{Cluster, JOBS_AT_ONCE, JobUpdate};
use busbar_slurm::error::SlurmError;
use busbar_slurm::hosts::HostList;
use busbar_slurm::model::{Amounts, Hold, Job, JobRef, JobState, Node};
use busbar_slurm::release_all::RESERVATION;
use busbar_slurm::setup::{self, Mode};

use super::known::{Known, KnownJobs, Stage};
use super::past::Past;
use super::requests::{handle, job_of, owner, request};
use super::timed::{Efforts, Timed};
use super::{Terms, Work, count_others};
use crate::engine::{
    Allotment, Arrival, Attempt, End, EngineError, EnginePace, Found, Launch, NodeState, Order,
    Report, Signal, Ticket, Underway,
};

/// What speaks to Slurm.
pub(super) struct Worker<C> {
    cluster: Timed<C>,
    terms: Terms,
    places: HashMap<String, u32>,
    known: KnownJobs,
    /// Orders about jobs that Slurm has not been asked about yet.
    deferred: Vec<(Ticket, Order)>,
    /// Jobs that are to be started together.
    to_start: Vec<(Ticket, Launch)>,
    /// Jobs that cannot be taken in; they stay in Slurm's queue.
    refused: BTreeSet<String>,
    /// Jobs that have run to their ends. A controller that died may have forgotten that, and would run them again.
    done: BTreeSet<String>,
    /// What became of attempts that are over, until the daemon has recorded that.
    ended: BTreeMap<Attempt, Past>,
    /// What became of jobs that ran before the daemon has said which attempt that is.
    unclaimed: BTreeMap<String, Past>,
    nodes: Vec<NodeState>,
    /// Whether the daemon has said which jobs it knows.
    is_recalled: bool,
    /// Why the cluster could not be read the last time.
    failure: Option<String>,
    /// The licences that are to be reserved for nobody; nothing if that is done.
    to_reserve: Option<Option<Watts>>,
    reports: Vec<Report>,
    efforts: Efforts,
}

impl<C: Cluster> Worker<C> {
    pub(super) fn new(cluster: C, terms: Terms) -> Self {
        let places = (0..).zip(&terms.nodes).map(|(place, name)| (name.clone(), place)).collect();
        let nodes = vec![NodeState::Up; terms.nodes.len()];
        Worker {
            cluster: Timed::new(cluster),
            terms,
            places,
            known: KnownJobs::default(),
            deferred: Vec::new(),
            to_start: Vec::new(),
            refused: BTreeSet::new(),
            done: BTreeSet::new(),
            ended: BTreeMap::new(),
            unclaimed: BTreeMap::new(),
            nodes,
            is_recalled: false,
            failure: None,
            to_reserve: None,
            reports: Vec::new(),
            efforts: Efforts::default(),
        }
    }

    /// How long everything takes.
    pub(super) fn pace(&self) -> EnginePace {
        self.efforts.pace()
    }

    /// How many nodes Slurm has besides those of the daemon.
    pub(super) fn others(&self) -> u32 {
        self.terms.others
    }

    /// What is to be reported.
    pub(super) fn take_reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }

    /// What is known of the attempts of all jobs.
    pub(super) fn found(&self) -> BTreeMap<Attempt, Found> {
        let mut found: BTreeMap<Attempt, Found> =
            self.ended.iter().map(|(attempt, past)| (*attempt, past.found())).collect();
        for (_, known) in self.known.iter() {
            let state = match known.stage {
                Stage::Recalled | Stage::Starting { .. } => continue,
                Stage::Waiting => Found::NeverStarted,
                Stage::Running { .. } => Found::Running,
            };
            found.extend(known.attempt.map(|attempt| (attempt, state)));
        }
        found
    }

    /// Does what the daemon asks for. Jobs that are to be started are started together, since that takes Slurm less time.
    pub(super) fn handle(&mut self, work: impl IntoIterator<Item = Work>) {
        let begun = Instant::now();
        for work in work {
            self.take_in(work);
        }
        self.start_all();
        self.efforts.acts.note(begun.elapsed(), self.cluster.take_spent());
    }

    fn take_in(&mut self, work: Work) {
        match work {
            Work::Orders(orders) => {
                for (ticket, order) in orders {
                    self.order(ticket, order);
                }
            }
            Work::Recall { jobs, done } => {
                self.start_all();
                self.done.extend(done);
                let recalled = jobs.into_iter().filter_map(|(attempt, handle)| {
                    let job = job_of(&handle)?;
                    let attempt = (attempt.number > 0).then_some(attempt);
                    Some((handle, Known { job, attempt, stage: Stage::Recalled }))
                });
                self.known = recalled.collect();
                self.is_recalled = true;
            }
            Work::Accepted { handle, attempt } => {
                self.known.set_attempt(&handle, (attempt.number > 0).then_some(attempt));
                if let Some(past) = self.unclaimed.remove(&handle) {
                    self.is_over(&handle, attempt, past);
                }
            }
            Work::Refuse { handle, reason } => self.refuse(&handle, &reason),
            Work::Dismiss { handle } => {
                if let Some(known) = self.known.remove(&handle) {
                    match self.cluster.ask(|cluster| cluster.cancel(known.job)) {
                        Ok(()) | Err(SlurmError::NoSuchJob { .. }) => (),
                        Err(error) => tracing::warn!(handle, %error, "a job is not cancelled"),
                    }
                }
            }
            Work::Forget { attempt } => {
                self.ended.remove(&attempt);
            }
            Work::Limit(limit) => {
                self.to_reserve = Some(limit);
                self.reserve();
            }
        }
    }

    fn order(&mut self, ticket: Ticket, order: Order) {
        let attempt = order.attempt();
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

    /// Releases jobs, each on exactly the nodes that it was given.
    fn start_all(&mut self) {
        let (mut starts, mut updates) = (Vec::new(), Vec::new());
        for (ticket, launch) in std::mem::take(&mut self.to_start) {
            let Launch { attempt, allotment, handle, .. } = launch;
            let known = handle.as_ref().and_then(|handle| self.known.get(handle));
            let (Some(job), Some(handle)) = (known.map(|known| known.job), handle) else {
                let error = EngineError::Unknown { attempt };
                self.reports.push(Report::Failed { ticket, error });
                continue;
            };
            let count = allotment.nodes.len() as u32;
            let update = JobUpdate {
                nodes: Some((count, count)),
                required: Some(self.hosts(&allotment)),
                limit_minutes: Some(minutes(allotment.time)),
                ..JobUpdate::default()
            };
            updates.push((job, update));
            starts.push((ticket, attempt, handle, allotment));
        }
        if starts.is_empty() {
            return;
        }
        let done = self.cluster.ask(|cluster| cluster.start_all(&updates));
        let mut to_hold = Vec::new();
        for (((ticket, attempt, handle, allotment), (job, _)), done) in
            starts.into_iter().zip(updates).zip(done)
        {
            if let Err(error) = done {
                to_hold.push(job);
                // Whatever it is, the job waits again, or is gone at the next look.
                let (node, reason) = ("slurm".to_owned(), error.to_string());
                let error = EngineError::Node { attempt, node, reason };
                self.reports.push(Report::Failed { ticket, error });
                continue;
            }
            let nodes = allotment.node_numbers().into_iter().collect();
            let stage = Stage::Starting { order: Some((ticket, nodes)), since: Instant::now() };
            self.known.insert(handle, Known { job, attempt: Some(attempt), stage });
        }
        if !to_hold.is_empty() {
            // They may have been released all the same. If this fails, the next look tries again.
            let _ = self.cluster.ask(|cluster| cluster.hold(&to_hold));
        }
    }

    /// Gives a running job other nodes, and never less time than the daemon gives it. Its caps are not Slurm's matter.
    fn set(&mut self, attempt: Attempt, allotment: &Allotment) -> Result<(), EngineError> {
        let wanted: BTreeSet<u32> = allotment.node_numbers().into_iter().collect();
        let Some((handle, known)) = self.known.of_attempt(attempt) else {
            return Err(EngineError::Unknown { attempt });
        };
        let handle = handle.to_owned();
        let Stage::Running { nodes, limit } = known.stage.clone() else {
            let reason = "it does not run yet".to_owned();
            return Err(EngineError::Node { attempt, node: "slurm".to_owned(), reason });
        };
        let job = known.job;
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
        let mut enough = limit;
        if allotment.time.millis().div_ceil(60_000) > limit.into() {
            enough = minutes(allotment.time);
            let update = JobUpdate { limit_minutes: Some(enough), ..JobUpdate::default() };
            self.cluster.ask(|cluster| cluster.update(job, &update)).map_err(refused)?;
        }
        self.known.set_stage(&handle, Stage::Running { nodes: wanted, limit: enough });
        Ok(())
    }

    fn signal(&self, attempt: Attempt, signal: Signal) -> Result<(), EngineError> {
        let known = self.known.of_attempt(attempt);
        let job = known.ok_or(EngineError::Unknown { attempt })?.1.job;
        let done = self.cluster.ask(|cluster| match signal {
            Signal::Terminate | Signal::Kill => cluster.cancel(job),
            Signal::Suspend => cluster.suspend(job),
            Signal::Resume => cluster.resume(job),
        });
        done.map_err(|error| not_done(attempt, &error))
    }

    /// A job stays in Slurm's queue under its hold, with the reason in its comment.
    fn refuse(&mut self, handle: &str, reason: &str) {
        self.refused.insert(handle.to_owned());
        self.unclaimed.remove(handle);
        let Some(known) = self.known.remove(handle) else { return };
        let text = |c: char| if c.is_control() || "\"'`".contains(c) { ' ' } else { c };
        let reason: String = reason.chars().map(text).take(300).collect();
        let comment = Some(format!("busbar does not start it: {reason}"));
        let update = JobUpdate { comment, ..JobUpdate::default() };
        if let Err(error) = self.cluster.ask(|cluster| cluster.update(known.job, &update)) {
            tracing::warn!(handle, %error, "the user of a job cannot be told why it does not start");
        }
    }

    /// Reserves the licences that the limit does not allow.
    fn reserve(&mut self) {
        let Some(limit) = self.to_reserve else { return };
        let reserved = self.cluster.ask(|cluster| {
            let licences = cluster.licences()?;
            let licence = licences.iter().find(|licence| licence.name == self.terms.licence);
            let total = licence.map_or(0, |licence| licence.total);
            // Whole watts, rounded down: what is not quite there is not handed out.
            let allowed = limit.map_or(total, |limit| limit.milliwatts() / 1000);
            let name = self.terms.licence.clone();
            cluster.reserve(RESERVATION, &Amounts::from([(name, total.saturating_sub(allowed))]))
        });
        match reserved {
            Ok(()) => self.to_reserve = None,
            Err(error) => {
                tracing::error!(%error, "the budget of Slurm cannot be moved; it is tried again")
            }
        }
    }

    /// Looks at the cluster, and reports what has changed.
    pub(super) fn look(&mut self) {
        let begun = Instant::now();
        self.reserve();
        self.look_around();
        self.efforts.looks.note(begun.elapsed(), self.cluster.take_spent());
    }

    fn look_around(&mut self) {
        let seen = self.cluster.ask(|cluster| Ok((cluster.nodes()?, cluster.jobs()?)));
        let (nodes, jobs) = match seen {
            Ok(seen) => seen,
            Err(error) => return self.lost(&error),
        };
        if self.failure.take().is_some() {
            tracing::info!("Slurm answers again");
        }
        self.look_at_nodes(&nodes);
        if self.is_recalled {
            self.look_at_jobs(&jobs);
            for (ticket, order) in std::mem::take(&mut self.deferred) {
                self.order(ticket, order);
            }
        }
    }

    /// Slurm does not answer: nothing starts, and nothing is taken for ended.
    fn lost(&mut self, error: &SlurmError) {
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

    fn look_at_nodes(&mut self, nodes: &[Node]) {
        let seen: HashMap<&str, &Node> =
            nodes.iter().map(|node| (node.name.as_str(), node)).collect();
        self.terms.others = count_others(nodes, |name| self.places.contains_key(name));
        let in_use = self.known.nodes_in_use();
        for place in 0..self.nodes.len() {
            let state = match seen.get(self.terms.nodes[place].as_str()) {
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

    fn set_node(&mut self, place: usize, state: NodeState) {
        if self.nodes[place] != state {
            self.nodes[place] = state.clone();
            self.reports.push(Report::Node { node: place as u32, state });
        }
    }

    fn look_at_jobs(&mut self, jobs: &[Job]) {
        let mut seen: BTreeMap<String, (JobRef, &Job)> = BTreeMap::new();
        for job in jobs.iter().filter(|job| self.is_ours(job)) {
            let tasks = job.array.as_ref().map(|array| (array.job, &array.tasks));
            match tasks {
                // Elements that wait together are one entry.
                Some((array, tasks)) => seen.extend(tasks.numbers().map(|task| {
                    let element = JobRef { job: array, task: Some(task) };
                    (handle(element, job), (element, job))
                })),
                None => {
                    let whole = JobRef::whole(job.id);
                    seen.insert(handle(whole, job), (whole, job));
                }
            }
        }
        // What Slurm does not remember any more, it does not run again either.
        self.done.retain(|handle| seen.contains_key(handle));
        self.refused.retain(|handle| seen.contains_key(handle));
        self.hold_some(&seen);
        self.look_for_known(&seen);
        // In the order in which they were submitted.
        let mut seen: Vec<(String, (JobRef, &Job))> = seen.into_iter().collect();
        seen.sort_by_key(|(_, (reference, _))| *reference);
        for (handle, (reference, job)) in seen {
            if !self.known.contains(&handle) {
                self.look_at_new(handle, reference, job);
            }
        }
    }

    /// Makes the holds of jobs that wait an administrator's, first of those that have none. Until then the plug-in sees to
    /// it that users do not release them, so there is no hurry, and a long queue does not delay everything else.
    fn hold_some(&self, seen: &BTreeMap<String, (JobRef, &Job)>) {
        if self.terms.mode != Mode::Steer {
            return;
        }
        let may_start = |handle: &str| {
            let stage = self.known.get(handle).map(|known| &known.stage);
            matches!(stage, Some(Stage::Starting { .. } | Stage::Recalled))
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
    fn is_ours(&self, job: &Job) -> bool {
        let ours = &self.terms.partitions;
        ours.is_empty() || job.partitions.iter().any(|partition| ours.contains(partition))
    }

    /// What became of the jobs that the daemon knows.
    fn look_for_known(&mut self, seen: &BTreeMap<String, (JobRef, &Job)>) {
        let all: Vec<(String, Known)> =
            self.known.iter().map(|(handle, known)| (handle.to_owned(), known.clone())).collect();
        for (handle, Known { job: reference, attempt, stage }) in all {
            let job = seen.get(&handle).map(|(_, job)| *job);
            match (stage.clone(), job) {
                (Stage::Starting { order, .. }, Some(job)) if job.state.has_nodes() => {
                    self.has_started(&handle, reference, order, attempt, job);
                }
                (Stage::Starting { order, since }, Some(job)) if job.state.is_waiting() => {
                    let lost = order.as_ref().and_then(|(_, nodes)| self.out_of_service(nodes));
                    let is_late = since.elapsed() >= self.terms.patience;
                    if lost.is_some() || is_late {
                        let reason = job.reason.as_deref().unwrap_or("no reason");
                        let why = lost.unwrap_or_else(|| {
                            format!(
                                "Slurm did not start it within {:?}: {reason}",
                                self.terms.patience
                            )
                        });
                        let held = self.cluster.ask(|cluster| cluster.hold(&[reference]));
                        self.give_up(&handle, held, order, attempt, why);
                    }
                }
                (Stage::Waiting | Stage::Recalled, Some(job)) if job.state.is_waiting() => {
                    if setup::is_kept_back(job) {
                        // Its user holds it; when it is released, it is a new one.
                        self.known.remove(&handle);
                        self.reports.push(Report::Gone { handle });
                    } else if attempt.is_some() && stage == Stage::Recalled && job.hold.is_none() {
                        // A daemon may have released it and ended then.
                        let since = Instant::now();
                        self.known.set_stage(&handle, Stage::Starting { order: None, since });
                    } else {
                        self.known.set_stage(&handle, Stage::Waiting);
                    }
                }
                (Stage::Waiting | Stage::Recalled, Some(job))
                    if job.state.has_nodes() && (attempt.is_none() || stage == Stage::Waiting) =>
                {
                    // Somebody else started it: it is adopted as a job that runs.
                    self.known.remove(&handle);
                    self.reports.push(Report::Gone { handle });
                }
                (Stage::Recalled, Some(job)) if job.state.has_nodes() => self.runs(&handle, job),
                (Stage::Running { .. }, Some(job)) if job.state.has_nodes() => (),
                (Stage::Running { .. }, Some(job)) if matches!(job.state, JobState::Other(_)) => {
                    tracing::warn!(handle, state = ?job.state, "a job is in an unknown state; it counts as running");
                }
                (Stage::Waiting, _) => {
                    self.known.remove(&handle);
                    self.reports.push(Report::Gone { handle });
                }
                // It has ended, was queued again, or Slurm has forgotten that it ran, which a controller does that died a
                // moment after it started the job.
                (
                    stage @ (Stage::Starting { .. } | Stage::Running { .. } | Stage::Recalled),
                    job,
                ) => {
                    if let Stage::Starting { order: Some((ticket, _)), .. } = &stage {
                        self.reports.push(Report::Confirmed { ticket: *ticket });
                    }
                    let how = match (job, &stage) {
                        (None, _) => Past::FORGOTTEN,
                        (Some(job), Stage::Recalled) => Past::missed(job),
                        (Some(job), _) => Past::seen(job),
                    };
                    self.known.remove(&handle);
                    match (attempt, stage) {
                        (Some(attempt), _) => self.is_over(&handle, attempt, how),
                        // The daemon has heard that it runs, and has not answered yet.
                        (None, Stage::Running { .. }) => _ = self.unclaimed.insert(handle, how),
                        (None, _) => self.reports.push(Report::Gone { handle }),
                    }
                }
            }
        }
    }

    fn is_over(&mut self, handle: &str, attempt: Attempt, past: Past) {
        if matches!(past.end, End::Exited(_)) {
            self.done.insert(handle.to_owned());
        }
        self.reports.push(Report::Ended { attempt, end: past.end.clone(), ago: past.ago() });
        self.ended.insert(attempt, past);
    }

    /// A job that was released runs. On other nodes than it was given it may not stay, since others may be given those.
    fn has_started(
        &mut self,
        handle: &str,
        job: JobRef,
        order: Option<(Ticket, BTreeSet<u32>)>,
        attempt: Option<Attempt>,
        seen: &Job,
    ) {
        let nodes: BTreeSet<u32> = self.places(seen).unwrap_or_default().into_iter().collect();
        // Of a job that is about to end, Slurm names only the nodes that are not cleaned up yet.
        let is_ending = seen.state == JobState::Completing;
        match order {
            Some((ticket, given)) if given != nodes && !is_ending => {
                let queued = self.cluster.ask(|cluster| cluster.requeue_hold(job));
                let why = format!("Slurm started it on {}", seen.nodes);
                self.give_up(handle, queued, Some((ticket, given)), attempt, why);
            }
            Some((ticket, nodes)) => {
                let limit = seen.limit_minutes.unwrap_or(u32::MAX);
                self.known.set_stage(handle, Stage::Running { nodes, limit });
                self.reports.push(Report::Confirmed { ticket });
            }
            None => self.runs(handle, seen),
        }
    }

    /// Which of these nodes can run nothing, and why: a job that was given it would wait for it in vain.
    fn out_of_service(&self, nodes: &BTreeSet<u32>) -> Option<String> {
        nodes.iter().find_map(|node| match self.nodes.get(*node as usize)? {
            NodeState::Drained { reason } | NodeState::Down { reason } => {
                Some(format!("node {}: {reason}", self.terms.nodes[*node as usize]))
            }
            NodeState::Up | NodeState::Awaited => None,
        })
    }

    /// A job that was released waits under a hold again, if that could be done.
    fn give_up(
        &mut self,
        handle: &str,
        held: Result<(), SlurmError>,
        order: Option<(Ticket, BTreeSet<u32>)>,
        attempt: Option<Attempt>,
        reason: String,
    ) {
        if let Err(error) = held {
            // It may start at any moment; the next look tells.
            return tracing::warn!(handle, %error, "a job that does not start cannot be held");
        }
        self.known.set_stage(handle, Stage::Waiting);
        if let (Some((ticket, _)), Some(attempt)) = (order, attempt) {
            let error = EngineError::Node { attempt, node: "slurm".to_owned(), reason };
            self.reports.push(Report::Failed { ticket, error });
        }
    }

    fn runs(&mut self, handle: &str, job: &Job) {
        let nodes = self.places(job).unwrap_or_default();
        let limit = job.limit_minutes.unwrap_or(u32::MAX);
        self.known.set_stage(handle, Stage::Running { nodes: nodes.into_iter().collect(), limit });
    }

    /// A job that the daemon does not know.
    fn look_at_new(&mut self, handle: String, reference: JobRef, job: &Job) {
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
            && job.dependency.is_none()
            && job.eligible.is_none_or(|eligible| eligible <= now());
        let running = match job.state.has_nodes() && job.state != JobState::Completing {
            true => self.places(job).map(|nodes| Underway {
                node_power: self.promised(job, nodes.len()),
                nodes,
                ran: Span::from_millis(
                    1000 * now().saturating_sub(job.started.unwrap_or_else(now)),
                ),
            }),
            false => None,
        };
        if !is_ready && running.is_none() {
            return;
        }
        let asked = match request(job, self.terms.resizes) {
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
            },
            None => Stage::Waiting,
        };
        self.known.insert(handle.clone(), Known { job: reference, attempt: None, stage });
        let owner = owner(job);
        let arrival = Arrival { handle, owner, request: asked, running };
        self.reports.push(Report::Arrived(Box::new(arrival)));
    }

    /// What each node of a job may draw, by its licences.
    fn promised(&self, job: &Job, nodes: usize) -> Option<Watts> {
        let watts = *job.licences.get(&self.terms.licence)?;
        let milliwatts = (watts * 1000).div_ceil(nodes.max(1) as u64);
        (self.terms.mode == Mode::Admit).then(|| Watts::from_milliwatts(milliwatts))
    }

    /// The numbers of a job's nodes; `None` if one of them is not ours.
    fn places(&self, job: &Job) -> Option<Vec<u32>> {
        let places = job.nodes.names().iter().map(|name| self.places.get(name).copied());
        let mut places = places.collect::<Option<Vec<u32>>>()?;
        places.sort_unstable();
        Some(places)
    }

    fn hosts(&self, allotment: &Allotment) -> HostList {
        let names =
            allotment.nodes.iter().filter_map(|(node, _)| self.terms.nodes.get(*node as usize));
        HostList::new(names.cloned())
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

/// Whole minutes, which is what Slurm takes, with one to spare: the daemon ends a job at its limit, and Slurm not before.
fn minutes(time: Span) -> u32 {
    u32::try_from(time.millis().div_ceil(60_000).saturating_add(1)).unwrap_or(u32::MAX)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
