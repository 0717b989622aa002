//! The engine's part that speaks to Slurm: it looks at the cluster, and changes it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use busbar_slurm::cluster::Cluster;
use busbar_slurm::error::SlurmError;
use busbar_slurm::hosts::HostList;
use busbar_slurm::listing::Reported;
use busbar_slurm::model::{Amounts, Job, JobRef};

use super::explained::Explained;
use super::known::{Known, KnownJobs, Stage};
use super::others::Others;
use super::past::Past;
use super::requests::job_of;
use super::reserved::Reserved;
use super::setbacks::Setbacks;
use super::timed::{Efforts, Timed};
use super::{Terms, Work};
use crate::engine::{EnginePace, Found, Launch, Order, Report, Ticket, Wait};
use crate::job::{Allotment, Attempt, End, NodeState};

mod arrivals;
mod fates;
mod looks;
mod orders;

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
    /// Jobs that have their nodes for themselves, where others share them.
    whole: BTreeSet<String>,
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
    /// The licences of jobs that wait, besides those for watts, where Slurm could have started them by itself until now.
    licensed: BTreeMap<String, Amounts>,
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
            whole: BTreeSet::new(),
            refused: BTreeSet::new(),
            done: BTreeSet::new(),
            ended: BTreeMap::new(),
            unclaimed: BTreeMap::new(),
            nodes,
            is_recalled: false,
            failure: None,
            reported: Reported::default(),
            reserved,
            licensed: BTreeMap::new(),
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

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
