//! The engine's part that speaks to Slurm: it looks at the cluster, and changes it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use busbar_core::units::{Span, Watts};
use busbar_slurm::cluster::{Cluster, JOBS_AT_ONCE, JobUpdate};
use busbar_slurm::error::SlurmError;
use busbar_slurm::hosts::HostList;
use busbar_slurm::listing::{Listing, Reported};
use busbar_slurm::model::{Hold, Job, JobRef, JobState, Node};
use busbar_slurm::setup::{self, Mode};

use super::explained::Explained;
use super::known::{Known, KnownJobs, Release, Stage};
use super::others::Others;
use super::past::Past;
use super::requests::{job_of, owner, request};
use super::reserved::Reserved;
use super::setbacks::{Decision, Setbacks};
use super::timed::{Efforts, Timed};
use super::{Terms, Work, count_others, dependencies, others};
use crate::engine::{
    Arrival, EngineError, EnginePace, Found, Launch, Order, Report, Signal, Ticket, Underway, Wait,
};
use crate::job::{Allotment, Attempt, End, NodeState};

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
    /// Jobs that Slurm did not place.
    setbacks: Setbacks,
    /// Work of others on nodes of ours.
    others: Others,
    /// Jobs that stand still.
    suspended: BTreeSet<JobRef>,
    /// The time limits that jobs were submitted with, and those that the daemon gave them.
    limits: BTreeMap<JobRef, Limit>,
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
    /// What of it could not be read, and was reported.
    reported: Reported,
    /// The licences that no job gets, in mode `admit`.
    reserved: Reserved,
    /// What jobs that wait say to those who look at them in Slurm.
    explained: Explained,
    reports: Vec<Report>,
    efforts: Efforts,
}

/// The time limit of a job, in minutes.
#[derive(Clone, Copy, Debug)]
struct Limit {
    /// What it was submitted with.
    asked: Option<u32>,
    /// What the daemon has given it.
    given: u32,
}

impl<C: Cluster> Worker<C> {
    pub(super) fn new(cluster: C, terms: Terms) -> Self {
        let places = (0..).zip(&terms.nodes).map(|(place, name)| (name.clone(), place)).collect();
        let nodes = vec![NodeState::Up; terms.nodes.len()];
        let reserved = Reserved::new(terms.licence.clone());
        Worker {
            cluster: Timed::new(cluster),
            places,
            known: KnownJobs::default(),
            deferred: Vec::new(),
            to_start: Vec::new(),
            setbacks: Setbacks::new(terms.patience),
            terms,
            others: Others::default(),
            suspended: BTreeSet::new(),
            limits: BTreeMap::new(),
            refused: BTreeSet::new(),
            done: BTreeSet::new(),
            ended: BTreeMap::new(),
            unclaimed: BTreeMap::new(),
            nodes,
            is_recalled: false,
            failure: None,
            reported: Reported::default(),
            reserved,
            explained: Explained::default(),
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

    /// Whether no job runs or is about to, so that a new one need not be seen at once.
    pub(super) fn is_idle(&self) -> bool {
        let rests = |known: &Known| matches!(known.stage, Stage::Waiting | Stage::Aside);
        self.is_recalled && self.known.iter().all(|(_, known)| rests(known))
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
                Stage::Waiting | Stage::Aside => Found::NeverStarted,
                // It may begin at any time, and has its power.
                Stage::Released(_) | Stage::Running { .. } => Found::Running,
            };
            found.extend(known.attempt.map(|attempt| (attempt, state)));
        }
        found.extend(self.others.attempts().map(|attempt| (attempt, Found::Running)));
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
                let jobs = self.others.recall(jobs);
                let recalled = jobs.into_iter().filter_map(|(attempt, handle)| {
                    let job = job_of(&handle)?;
                    let attempt = (attempt.number > 0).then_some(attempt);
                    Some((handle, Known { job, attempt, stage: Stage::Recalled }))
                });
                self.known = recalled.collect();
                self.is_recalled = true;
            }
            Work::Accepted { handle, attempt } => {
                if let Some(past) = self.others.accepted(&handle, attempt) {
                    return self.is_over(&handle, attempt, past);
                }
                self.known.set_attempt(&handle, (attempt.number > 0).then_some(attempt));
                if let Some(past) = self.unclaimed.remove(&handle) {
                    self.is_over(&handle, attempt, past);
                }
            }
            // What cannot be taken in now is found again at the next look.
            Work::Refuse { handle, .. } if self.others.forget(&handle) => (),
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
                self.withdraw(attempt);
            }
            Work::Limit(limit) => {
                self.reserved.set_limit(limit);
                self.reserve();
            }
        }
    }

    fn order(&mut self, ticket: Ticket, order: Order) {
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
    fn start_all(&mut self) {
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
            let update = JobUpdate {
                nodes: Some((count, count)),
                required: (!is_free).then(|| self.hosts(&allotment)),
                limit_minutes: Some(minutes),
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
                false => Stage::Starting { ticket, nodes, since },
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

    /// Gives a running job other nodes, and never less time than the daemon gives it. Its caps are not Slurm's matter.
    fn set(&mut self, attempt: Attempt, allotment: &Allotment) -> Result<(), EngineError> {
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
    fn give_time(
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

    fn signal(&mut self, attempt: Attempt, signal: Signal) -> Result<(), EngineError> {
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
    fn withdraw(&mut self, attempt: Attempt) {
        let Err(error) = self.take_back(attempt) else { return };
        tracing::warn!(%attempt, %error, "a job that is not to start cannot be held");
        if let Some((handle, _)) = self.known.of_attempt(attempt) {
            // If it begins, it is adopted as one that somebody else has started.
            let handle = handle.to_owned();
            self.known.set_stage(&handle, Stage::Waiting);
        }
    }

    /// Holds a job again that was released, and that Slurm has not placed.
    fn take_back(&mut self, attempt: Attempt) -> Result<(), SlurmError> {
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
    fn refuse(&mut self, handle: &str, reason: &str) {
        self.refused.insert(handle.to_owned());
        self.unclaimed.remove(handle);
        let Some(known) = self.known.remove(handle) else { return };
        let comment = Some(format!("busbar does not start it: {}", setup::plain(reason)));
        let update = JobUpdate { comment, ..JobUpdate::default() };
        if let Err(error) = self.cluster.ask(|cluster| cluster.update(known.job, &update)) {
            tracing::warn!(handle, %error, "the user of a job cannot be told why it does not start");
        }
    }

    /// Sees to it that the licences which the limit does not allow are reserved.
    fn reserve(&mut self) {
        let Worker { cluster, reserved, reports, .. } = self;
        if let Some(text) = cluster.ask(|cluster| reserved.look(cluster)) {
            reports.push(Report::Notice { text });
        }
    }

    /// Takes in why jobs wait, if that is news.
    pub(super) fn hear(&mut self, waits: Option<BTreeMap<String, Wait>>) {
        if let Some(waits) = waits {
            self.explained.hear(waits);
        }
    }

    /// Whether jobs that wait are to say something else than they do.
    pub(super) fn has_to_explain(&self) -> bool {
        self.explained.has_news()
    }

    /// Writes into Slurm why some jobs wait, by one command.
    pub(super) fn explain(&mut self) {
        let Worker { cluster, explained, .. } = self;
        cluster.ask(|cluster| explained.write(cluster));
        // It is no part of a look or of what was ordered.
        self.cluster.take_spent();
    }

    /// Looks at the cluster, and reports what has changed.
    pub(super) fn look(&mut self) {
        let begun = Instant::now();
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
        self.reserve();
        for unread in self.reported.news(nodes.unread.iter().chain(&jobs.unread)) {
            tracing::warn!(%unread, "part of Slurm's answer cannot be read; the rest is used");
        }
        self.look_at_nodes(&nodes);
        if self.is_recalled {
            self.look_at_jobs(&jobs, &nodes);
            self.look_at_others(&jobs, &nodes);
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

    fn look_at_nodes(&mut self, nodes: &Listing<Node>) {
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

    fn set_node(&mut self, place: usize, state: NodeState) {
        if self.nodes[place] != state {
            self.nodes[place] = state.clone();
            self.reports.push(Report::Node { node: place as u32, state });
        }
    }

    fn look_at_jobs(&mut self, jobs: &Listing<Job>, nodes: &[Node]) {
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
        let stands_still = seen.values().filter(|(_, job)| job.state == JobState::Suspended);
        self.suspended = stands_still.map(|(job, _)| *job).collect();
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
    fn hold_some(&self, seen: &BTreeMap<String, (JobRef, &Job)>) {
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
    fn is_ours(&self, job: &Job) -> bool {
        let ours = &self.terms.partitions;
        ours.is_empty() || job.partitions.iter().any(|partition| ours.contains(partition))
    }

    /// What became of the jobs that the daemon knows: first of those that leave their nodes, so that others are placed there
    /// afterwards. If not all jobs could be read, one that is not there is as it was.
    fn look_for_known(&mut self, seen: &BTreeMap<String, (JobRef, &Job)>, is_complete: bool) {
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
    fn look_for(&mut self, handle: &str, known: Known, job: Option<&Job>) {
        let Known { job: reference, attempt, stage } = known;
        match (stage.clone(), job) {
            (Stage::Starting { ticket, nodes, .. }, Some(job)) if job.has_nodes() => {
                self.has_started(handle, reference, (ticket, nodes), attempt, job);
            }
            (Stage::Starting { ticket, nodes, since }, Some(job)) if job.state.is_waiting() => {
                let lost = self.out_of_service(&nodes);
                let is_late = since.elapsed() >= self.terms.patience;
                if lost.is_some() || is_late {
                    let reason = job.reason.as_deref().unwrap_or("no reason");
                    let why = lost.unwrap_or_else(|| {
                        format!("Slurm did not start it within {:?}: {reason}", self.terms.patience)
                    });
                    let held = self.cluster.ask(|cluster| cluster.hold(&[reference]));
                    self.give_up(handle, held, ticket, attempt, why);
                }
            }
            (Stage::Released(_), Some(job)) if job.has_nodes() => {
                self.is_placed(handle, reference, attempt, job);
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
                self.is_placed(handle, reference, attempt, job);
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
                self.known.remove(handle);
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

    /// Slurm has placed a job that was released.
    fn is_placed(&mut self, handle: &str, job: JobRef, attempt: Option<Attempt>, seen: &Job) {
        let nodes = self.places_of_ours(seen);
        let Some(attempt) = attempt else { return };
        // Of a job that is about to end, Slurm names only the nodes that are not cleaned up yet.
        if nodes.is_empty() && !seen.unread.is_empty() {
            return tracing::warn!(
                handle,
                "the nodes on which Slurm started a job are unknown; its last known state counts"
            );
        }
        if nodes.is_empty() && seen.state != JobState::Completing {
            let queued = self.cluster.ask(|cluster| cluster.requeue_hold(job));
            let reason = format!("Slurm has started it on {}, which is not Busbar's", seen.nodes);
            return self.set_aside(handle, queued, attempt, reason);
        }
        self.setbacks.forget(handle);
        let limit = seen.limit_minutes.unwrap_or(u32::MAX);
        if seen.state != JobState::Completing {
            self.reports.push(Report::Placed { attempt, nodes: nodes.clone() });
        }
        let nodes = nodes.into_iter().collect();
        self.known.set_stage(handle, Stage::Running { nodes, limit, is_told: false });
    }

    /// Slurm has not placed a job yet that was released. When it has said why, or has not within its time, the job is held
    /// again and waits beside the queue; one that has waited so too often stays released, so that Slurm keeps nodes for it.
    fn is_not_placed(
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
    fn set_aside(
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

    /// Offers jobs again for which there may be nodes now.
    fn offer(&mut self, seen: &BTreeMap<String, (JobRef, &Job)>, nodes: &[Node]) {
        let aside = self.known.iter().filter(|(_, known)| known.stage == Stage::Aside);
        let may_start = |handle: &&str| {
            let job = seen.get(*handle).map(|(_, job)| *job);
            job.is_some_and(|job| self.setbacks.may_start(handle, job, nodes))
        };
        let offered: Vec<String> =
            aside.map(|(handle, _)| handle).filter(may_start).map(str::to_owned).collect();
        for handle in offered {
            self.known.set_stage(&handle, Stage::Waiting);
            self.reports.push(Report::Offered { handle });
        }
    }

    /// Reports work of others that came to nodes of ours, or has left them.
    fn look_at_others(&mut self, jobs: &Listing<Job>, nodes: &Listing<Node>) {
        let known = &self.known;
        let is_known = |job: &Job| known.contains(&known.handle_of(job.reference(), job));
        let reports = self.others.look(jobs, nodes, &self.places, is_known);
        for (handle, attempt, past) in reports.gone {
            self.is_over(&handle, attempt, past);
        }
        let arrived = reports.arrived.into_iter();
        self.reports.extend(arrived.map(|arrival| Report::Arrived(Box::new(arrival))));
    }

    fn is_over(&mut self, handle: &str, attempt: Attempt, past: Past) {
        if matches!(past.end, End::Exited(_)) {
            self.done.insert(handle.to_owned());
        }
        if past.is_out_of_time {
            self.reports.push(Report::OutOfTime { attempt });
        }
        self.reports.push(Report::Ended { attempt, end: past.end.clone(), ago: past.ago() });
        self.ended.insert(attempt, past);
    }

    /// A job that was released runs. On other nodes than it was given it may not stay, since others may be given those.
    fn has_started(
        &mut self,
        handle: &str,
        job: JobRef,
        (ticket, given): (Ticket, BTreeSet<u32>),
        attempt: Option<Attempt>,
        seen: &Job,
    ) {
        let nodes: BTreeSet<u32> = self.places(seen).unwrap_or_default().into_iter().collect();
        if given != nodes && !seen.unread.is_empty() {
            return tracing::warn!(
                handle,
                "the nodes on which Slurm started a job are unknown; its last known state counts"
            );
        }
        // Of a job that is about to end, Slurm names only the nodes that are not cleaned up yet.
        if given != nodes && seen.state != JobState::Completing {
            let queued = self.cluster.ask(|cluster| cluster.requeue_hold(job));
            let why = format!("Slurm started it on {}", seen.nodes);
            return self.give_up(handle, queued, ticket, attempt, why);
        }
        let limit = seen.limit_minutes.unwrap_or(u32::MAX);
        self.known.set_stage(handle, Stage::Running { nodes: given, limit, is_told: true });
        self.reports.push(Report::Confirmed { ticket });
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

    /// A job that the daemon does not know.
    fn look_at_new(&mut self, handle: String, reference: JobRef, job: &Job, jobs: &[Job]) {
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
    fn promised(&self, job: &Job, nodes: usize) -> Option<Watts> {
        let watts = *job.licences.get(&self.terms.licence)?;
        let milliwatts = (watts * 1000).div_ceil(nodes.max(1) as u64);
        (self.terms.mode == Mode::Admit).then(|| Watts::from_milliwatts(milliwatts))
    }

    /// The numbers of those of a job's nodes that are ours.
    fn places_of_ours(&self, job: &Job) -> Vec<u32> {
        let names = job.nodes.names().iter();
        let places: BTreeSet<u32> =
            names.filter_map(|name| self.places.get(name).copied()).collect();
        places.into_iter().collect()
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

/// Whole minutes, which is what Slurm takes. It ends the job then; the daemon does not.
fn minutes(time: Span) -> u32 {
    u32::try_from(time.millis().div_ceil(60_000)).unwrap_or(u32::MAX)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
