//! The engine against a simulated cluster: jobs that come, start, end, are queued again and vanish.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use busbar_core::units::{Span, Watts};
use busbar_slurm::cluster::{Cluster, JobUpdate};
use busbar_slurm::error::SlurmError;
use busbar_slurm::hosts::HostList;
use busbar_slurm::listing::Listing;
use busbar_slurm::model::{
    Amounts, Exit, HetPart, Hold, Job, JobRef, JobState, Licence, Node, NodeState as State,
    Partition, Reservation,
};
use busbar_slurm::release_all::RESERVATION;
use busbar_slurm::setup::{MARK, Mode, WAIT};
use busbar_slurm::unread::Unread;
use busbar_slurm::version::Version;

use super::worker::Worker;
use super::{Placing, Terms, Work};
use crate::engine::{Found, Launch, Order, Report, Signal, Ticket, Wait};
use crate::job::{Allotment, Attempt, End, NodeState};

mod admitted;
mod alone;
mod explained;
mod others;
mod parts;
mod placed;
mod started;

/// A cluster of which a test says what happens.
#[derive(Clone, Default)]
struct Made(Arc<Mutex<Inside>>);

#[derive(Default)]
struct Inside {
    jobs: BTreeMap<u32, Job>,
    nodes: Vec<Node>,
    unread: Vec<Unread>,
    is_away: bool,
    /// Whether jobs cannot be changed, as far as is known.
    fails: bool,
    /// Where a job begins just before it is held.
    begins: Option<&'static str>,
    /// What the plug-in counts for a job that is released, while no daemon is there.
    counts: Option<u64>,
    /// What was asked for, in words.
    acts: Vec<String>,
    total: u64,
    reservation: Option<Amounts>,
    /// How often reservations were read.
    reservations_read: u32,
}

impl Made {
    fn with<T>(&self, change: impl FnOnce(&mut Inside) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }

    fn acts(&self) -> Vec<String> {
        self.with(|inside| std::mem::take(&mut inside.acts))
    }

    fn act(&self, text: String) -> Result<(), SlurmError> {
        self.with(|inside| inside.acts.push(text));
        Ok(())
    }

    fn job(&self, id: u32, change: impl FnOnce(&mut Job)) {
        self.with(|inside| change(inside.jobs.entry(id).or_insert_with(|| held(id))));
    }

    fn read<T>(&self, what: impl FnOnce(&Inside) -> T) -> Result<T, SlurmError> {
        self.with(|inside| match inside.is_away {
            true => {
                Err(SlurmError::Unreachable { what: "squeue".to_owned(), text: "away".to_owned() })
            }
            false => Ok(what(inside)),
        })
    }
}

/// A job on two nodes under the hold of the plug-in.
pub(super) fn held(id: u32) -> Job {
    Job {
        id,
        array: None,
        het: None,
        name: format!("job {id}"),
        user: "ada".to_owned(),
        uid: 1000,
        account: None,
        partitions: vec!["main".to_owned()],
        state: JobState::Pending,
        reason: Some("JobHeldUser".to_owned()),
        hold: Some(Hold::User),
        priority: 0,
        nodes_min: 2,
        nodes_max: 2,
        cpus: 2,
        part: None,
        held: None,
        nodes: HostList::new::<String>([]),
        required: HostList::new::<String>([]),
        dependency: None,
        submitted: Some(1),
        eligible: Some(1),
        started: None,
        ended: None,
        limit_minutes: Some(10),
        licences: Amounts::new(),
        exit: Some(Exit::default()),
        restarts: 0,
        may_requeue: true,
        reservation: None,
        comment: None,
        admin_comment: Some(MARK.to_owned()),
        unread: Vec::new(),
    }
}

fn waits(job: &Job) -> bool {
    job.state == JobState::Pending
}

fn runs(job: &mut Job, nodes: &str) {
    (job.state, job.hold, job.started) = (JobState::Running, None, Some(100));
    job.nodes = nodes.parse().unwrap();
}

impl Cluster for Made {
    fn version(&self) -> Result<Version, SlurmError> {
        unreachable!("nobody asks")
    }
    fn nodes(&self) -> Result<Listing<Node>, SlurmError> {
        self.read(|inside| inside.nodes.clone().into())
    }
    fn partitions(&self) -> Result<Listing<Partition>, SlurmError> {
        Ok(Listing::default())
    }
    fn jobs(&self) -> Result<Listing<Job>, SlurmError> {
        self.read(|inside| Listing {
            read: inside.jobs.values().cloned().collect(),
            unread: inside.unread.clone(),
            lost: inside.unread.len() as u32,
        })
    }
    fn job(&self, _job: JobRef) -> Result<Vec<Job>, SlurmError> {
        Ok(Vec::new())
    }
    fn licences(&self) -> Result<Listing<Licence>, SlurmError> {
        let name = "power".to_owned();
        self.read(|inside| {
            let reserved = inside.reservation.as_ref().map_or(0, |amounts| amounts["power"]);
            vec![Licence { name, total: inside.total, reserved, ..Licence::default() }].into()
        })
    }
    fn reservations(&self) -> Result<Listing<Reservation>, SlurmError> {
        self.with(|inside| inside.reservations_read += 1);
        self.read(|inside| {
            let ours = |licences: &Amounts| Reservation {
                name: RESERVATION.to_owned(),
                licences: licences.clone(),
                ..Reservation::default()
            };
            inside.reservation.iter().map(ours).collect::<Vec<_>>().into()
        })
    }
    fn hold(&self, jobs: &[JobRef]) -> Result<(), SlurmError> {
        for job in jobs {
            let begins = self.with(|inside| inside.begins.take());
            begins.into_iter().for_each(|nodes| self.job(job.job, |job| runs(job, nodes)));
            let waits = self.with(|inside| inside.jobs.get(&job.job).is_none_or(waits));
            self.act(format!("hold {job}"))?;
            if !waits {
                let (what, found) = (format!("hold {job}"), "it runs".to_owned());
                return Err(SlurmError::NotDone { what, found });
            }
            self.job(job.job, |job| job.hold = Some(Hold::Admin));
        }
        Ok(())
    }
    fn release(&self, jobs: &[JobRef]) -> Result<(), SlurmError> {
        for job in jobs {
            let counts = self.with(|inside| inside.counts);
            self.job(job.job, |job| {
                (job.hold, job.reason) = (None, None);
                job.licences.extend(counts.map(|watts| ("power".to_owned(), watts)));
            });
            self.act(format!("release {job}"))?;
        }
        Ok(())
    }
    fn hold_for_user(&self, job: JobRef) -> Result<(), SlurmError> {
        self.act(format!("hold {job} for its user"))
    }
    fn update(&self, job: JobRef, update: &JobUpdate) -> Result<(), SlurmError> {
        if let Some(mark) = &update.admin_comment {
            self.job(job.job, |job| job.admin_comment = Some(mark.clone()));
            if update.nodes.is_none() {
                return self.act(format!("{job} says {mark}"));
            }
        }
        let required = update.required.as_ref().map(HostList::to_string).unwrap_or_default();
        let comment = update.comment.clone().unwrap_or_default();
        let (nodes, minutes) = (update.nodes, update.limit_minutes);
        if self.with(|inside| inside.fails) {
            let (what, found) = (format!("update {job}"), "nobody answers".to_owned());
            return Err(SlurmError::NotDone { what, found });
        }
        if let Some(licences) = &update.licences {
            self.job(job.job, |job| job.licences.clone_from(licences));
            self.act(format!("{job} has {licences:?}"))?;
            if nodes.is_none() {
                return Ok(());
            }
        }
        if let Some((in_all, of_node)) = update.cpus {
            self.act(format!("{job} gets {of_node} of {in_all} processors"))?;
        }
        self.job(job.job, |job| job.limit_minutes = minutes.or(job.limit_minutes));
        self.act(format!("update {job} {nodes:?} {required} {minutes:?} {comment}"))
    }
    fn cancel(&self, job: JobRef) -> Result<(), SlurmError> {
        self.act(format!("cancel {job}"))
    }
    fn requeue_hold(&self, job: JobRef) -> Result<(), SlurmError> {
        self.act(format!("requeue {job}"))
    }
    fn suspend(&self, job: JobRef) -> Result<(), SlurmError> {
        self.act(format!("suspend {job}"))
    }
    fn resume(&self, job: JobRef) -> Result<(), SlurmError> {
        self.act(format!("resume {job}"))
    }
    fn shrink(&self, job: JobRef, nodes: &HostList) -> Result<(), SlurmError> {
        self.act(format!("shrink {job} to {nodes}"))
    }
    fn expand(&self, job: JobRef, nodes: &HostList) -> Result<(), SlurmError> {
        self.act(format!("expand {job} by {nodes}"))
    }
    fn drain(&self, nodes: &HostList, _reason: &str) -> Result<(), SlurmError> {
        self.act(format!("drain {nodes}"))
    }
    fn undrain(&self, nodes: &HostList) -> Result<(), SlurmError> {
        self.act(format!("undrain {nodes}"))
    }
    fn reserve(&self, _name: &str, licences: &Amounts) -> Result<(), SlurmError> {
        self.with(|inside| {
            inside.reservation = (licences["power"] > 0).then(|| licences.clone());
        });
        Ok(())
    }
    fn remove_reservation(&self, _name: &str) -> Result<(), SlurmError> {
        Ok(())
    }
}

/// Four nodes, n1 to n4, and a daemon that knows no job yet.
fn begin(mode: Mode) -> (Made, Worker<Made>) {
    begin_with(mode, false)
}

fn begin_with(mode: Mode, fails_to_admit: bool) -> (Made, Worker<Made>) {
    begin_placing(mode, fails_to_admit, Placing::BySlurm)
}

fn begin_placing(mode: Mode, fails_to_admit: bool, placing: Placing) -> (Made, Worker<Made>) {
    let made = Made::default();
    let names: Vec<String> = (1..=4).map(|number| format!("n{number}")).collect();
    let state = State::of_words(["IDLE"]);
    made.with(|inside| {
        let node =
            |name: &String| Node { name: name.clone(), state: state.clone(), ..Node::default() };
        inside.nodes = names.iter().map(node).collect();
        inside.total = 1000;
    });
    let terms = Terms {
        mode,
        partitions: vec!["main".to_owned()],
        nodes: names,
        others: 0,
        licence: "power".to_owned(),
        fails_to_admit,
        period: Duration::from_secs(1),
        patience: Duration::ZERO,
        placing,
        resizes: false,
    };
    let mut worker = Worker::new(made.clone(), terms);
    worker.handle([Work::Recall { jobs: Vec::new(), done: Vec::new() }]);
    (made, worker)
}

/// What the worker reports when it looks, in words.
fn look(worker: &mut Worker<Made>) -> Vec<String> {
    worker.look();
    worker.take_reports().into_iter().map(words).collect()
}

fn words(report: Report) -> String {
    match report {
        Report::Arrived(arrival) => match arrival.running {
            Some(running) => format!(
                "{} runs on {:?} with {:?}",
                arrival.handle,
                running.nodes,
                running.node_power.map(|power| power.to_string())
            ),
            None => format!("{} arrived", arrival.handle),
        },
        Report::Gone { handle } => format!("{handle} is gone"),
        Report::Ended { attempt, end, .. } => format!("{attempt} ended: {end:?}"),
        Report::Confirmed { ticket } => format!("{} confirmed", ticket.0),
        Report::Failed { ticket, error } => format!("{} failed: {error}", ticket.0),
        Report::Placed { attempt, nodes } => format!("{attempt} is on {nodes:?}"),
        Report::SetAside { attempt, reason } => format!("{attempt} is set aside: {reason}"),
        Report::Offered { handle } => format!("{handle} is offered"),
        Report::Notice { text } => text,
        Report::OutOfTime { attempt } => format!("{attempt} is out of time"),
        Report::Node { node, state } => format!("node {node}: {state:?}"),
        other => format!("{other:?}"),
    }
}

fn allotment(nodes: &[u32]) -> Allotment {
    let cap = Watts::from_watts(100);
    let power = cap * nodes.len() as u32;
    let nodes = nodes.iter().map(|node| (*node, cap)).collect();
    let time = Span::from_secs(600);
    Allotment { nodes, cores: 1, cap, time, power, speed: Allotment::FULL_SPEED, part: None }
}

/// A start on exactly these nodes.
fn start(ticket: u64, job: u64, handle: &str, nodes: &[u32]) -> Work {
    starts(ticket, job, handle, nodes, false)
}

/// A start on as many nodes as these, which Slurm chooses.
fn start_anywhere(ticket: u64, job: u64, handle: &str, nodes: &[u32]) -> Work {
    starts(ticket, job, handle, nodes, true)
}

fn starts(ticket: u64, job: u64, handle: &str, nodes: &[u32], is_free: bool) -> Work {
    let launch = Launch {
        attempt: Attempt { job, number: 1 },
        command: Vec::new(),
        folder: "/".into(),
        environment: Vec::new(),
        output: "out".into(),
        errors: "out".into(),
        owner: None,
        allotment: allotment(nodes),
        handle: Some(handle.to_owned()),
        is_free,
    };
    Work::Orders(vec![(Ticket(ticket), Order::Start(Box::new(launch)))])
}
