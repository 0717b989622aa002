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
use super::{Terms, Work};
use crate::engine::{Found, Launch, Order, Report, Signal, Ticket, Wait};
use crate::job::{Allotment, Attempt, End, NodeState};

mod alone;

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
        resizes: false,
    };
    let mut worker = Worker::new(made.clone(), terms);
    worker.handle([Work::Recall { jobs: Vec::new(), done: Vec::new() }]);
    (made, worker)
}

/// What jobs say after a look, by their numbers.
fn say(made: &Made, worker: &mut Worker<Made>, waits: &[(u32, &str)]) -> Vec<String> {
    let wait = |reason: &str| Wait { reason: reason.to_owned(), expected: None };
    let waits = waits.iter().map(|(job, reason)| (format!("{job}@1"), wait(reason)));
    worker.hear(Some(waits.collect()));
    made.acts();
    worker.look();
    while worker.has_to_explain() {
        worker.explain();
    }
    made.acts().into_iter().filter(|act| act.contains("says")).collect()
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
    Allotment { nodes, cores: 1, cap, time, power, speed: Allotment::FULL_SPEED }
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

#[test]
fn jobs_that_wait_say_why_until_they_start() {
    let (made, mut worker) = begin(Mode::Steer);
    (1..=30).for_each(|id| made.job(id, |_| ()));
    assert_eq!(say(&made, &mut worker, &[]), [""; 0], "nothing is known yet");
    let power: Vec<(u32, &str)> = (1..=30).map(|id| (id, "for power")).collect();
    let text = |id| format!("{id} says busbar: waits for power");
    let first: Vec<String> = (1..=20).map(text).collect();
    assert_eq!(say(&made, &mut worker, &power), first, "the oldest, and not too many at once");
    let rest: Vec<String> = (21..=30).map(text).collect();
    assert_eq!(say(&made, &mut worker, &power), rest);
    assert_eq!(say(&made, &mut worker, &power), [""; 0], "once");
    let nodes = [(1, "for nodes")];
    assert_eq!(say(&made, &mut worker, &nodes), [""; 0], "not again before a pause");
    // The mark is still one, and a job that starts does not say any more that it waits.
    worker.handle([start(1, 3, "1@1", &[0, 1]), start_anywhere(2, 4, "2@1", &[2, 3])]);
    let comment = |id: u32| made.with(|inside| inside.jobs[&id].admin_comment.clone().unwrap());
    assert_eq!((comment(1), comment(2)), (MARK.to_owned(), MARK.to_owned()));
    assert_eq!(comment(3), "busbar: waits for power");
    for id in [1, 2] {
        made.job(id, |job| runs(job, &format!("n[{}-{}]", 2 * id - 1, 2 * id)));
    }
    assert_eq!(say(&made, &mut worker, &power), [""; 0]);
    // Somebody else has started one.
    made.job(40, |job| {
        runs(job, "n2");
        job.admin_comment = Some("busbar: waits for its turn".to_owned());
    });
    assert_eq!(say(&made, &mut worker, &power), ["40 says busbar"]);
}

/// Between a look and what it has written, orders come first.
#[test]
fn a_job_that_starts_before_it_could_say_why_it_waits_says_nothing() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(7, |_| ());
    say(&made, &mut worker, &[]);
    let wait = Wait { reason: "for power".to_owned(), expected: None };
    worker.hear(Some(BTreeMap::from([("7@1".to_owned(), wait)])));
    worker.look();
    worker.handle([start(1, 3, "7@1", &[0, 1])]);
    made.acts();
    while worker.has_to_explain() {
        worker.explain();
    }
    assert_eq!(made.acts(), [""; 0]);
}

/// What Slurm shows is what counts, and a comment of somebody else is left alone.
#[test]
fn what_jobs_say_is_not_written_again_by_another_daemon() {
    let (made, mut worker) = begin(Mode::Steer);
    for (id, comment) in [(1, "busbar: waits for power"), (2, MARK), (3, "busbar: old")] {
        made.job(id, |job| job.admin_comment = Some(comment.to_owned()));
    }
    assert_eq!(say(&made, &mut worker, &[]), [""; 0]);
    made.job(2, |job| job.admin_comment = Some("ours".to_owned()));
    let waits = [(1, "for power"), (2, "for power"), (3, "power is short")];
    assert_eq!(say(&made, &mut worker, &waits), ["3 says busbar: waits; power is short"]);
}

#[test]
fn a_job_comes_starts_where_it_is_told_and_ends() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(7, |_| ());
    assert_eq!(look(&mut worker), ["7@1 arrived"]);
    assert_eq!(made.acts(), ["hold 7"], "its user cannot release it any more");
    assert_eq!(look(&mut worker), [""; 0], "once");
    worker.handle([start(1, 3, "7@1", &[1, 2])]);
    // Ten minutes, after which Slurm ends it.
    assert_eq!(made.acts(), ["update 7 Some((2, 2)) n[2-3] Some(10) ", "release 7"]);
    made.job(7, |job| runs(job, "n[2-3]"));
    assert_eq!(look(&mut worker), ["1 confirmed"]);
    let attempt = Attempt { job: 3, number: 1 };
    assert_eq!(worker.found().get(&attempt), Some(&Found::Running));
    worker.handle([Work::Orders(vec![(
        Ticket(2),
        Order::Set { attempt, allotment: allotment(&[1, 2]), pause: Span::ZERO },
    )])]);
    assert_eq!(look(&mut worker), ["2 confirmed"]);
    assert_eq!(made.acts(), [""; 0], "caps are not Slurm's matter");
    made.job(7, |job| job.state = JobState::Completing);
    assert_eq!(look(&mut worker), [""; 0], "its nodes are not free yet");
    made.job(7, |job| {
        (job.state, job.exit) = (JobState::Failed, Some(Exit { code: 3, signal: 0 }));
    });
    assert_eq!(look(&mut worker), ["3.1 ended: Exited(3)"]);
    assert_eq!(
        worker.found().get(&attempt),
        Some(&Found::Ended { end: End::Exited(3), ago: Span::ZERO })
    );
    // A controller that died may have forgotten all that; the job does not run a second time.
    made.job(7, |job| *job = held(7));
    assert_eq!(look(&mut worker), [""; 0]);
    assert_eq!(made.acts(), ["hold 7", "cancel 7"]);
}

/// Others are not reported: without the mark, in other partitions, before their time, after others, kept back by
/// their users.
#[test]
fn only_jobs_that_may_start_arrive() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(1, |job| job.admin_comment = None);
    made.job(2, |job| job.partitions = vec!["other".to_owned()]);
    made.job(3, |job| job.eligible = Some(u64::MAX));
    made.job(4, |job| job.dependency = Some("afterok:1".to_owned()));
    made.job(5, |job| job.comment = Some(format!("busbar app=EP; {WAIT}")));
    assert_eq!(look(&mut worker), [""; 0]);
    made.job(5, |job| job.comment = Some("busbar app=EP".to_owned()));
    made.job(4, |job| job.dependency = None);
    assert_eq!(look(&mut worker), ["4@1 arrived", "5@1 arrived"]);
    made.job(5, |job| job.comment = Some(WAIT.to_owned()));
    made.with(|inside| inside.jobs.remove(&4));
    assert_eq!(look(&mut worker), ["4@1 is gone", "5@1 is gone"]);
}

#[test]
fn what_cannot_be_understood_is_refused_and_says_why() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(9, |job| job.comment = Some("busbar slowdown=soon".to_owned()));
    assert_eq!(look(&mut worker), [""; 0]);
    let acts = made.acts();
    assert!(
        acts[1].contains("busbar does not start it:  slowdown=soon  in the comment"),
        "{acts:?}"
    );
    assert_eq!(look(&mut worker), [""; 0], "once");
    // The plug-in refuses these at submission; others were there before it.
    made.job(10, |job| job.het = Some(HetPart { job: 10, offset: 0 }));
    assert_eq!(look(&mut worker), [""; 0]);
    assert!(made.acts().iter().any(|act| act.contains("heterogeneous jobs are not supported")));
}

/// Jobs are held by and by, first those that have no hold. One that somebody else has started is adopted.
#[test]
fn a_long_queue_is_held_by_and_by() {
    let (made, mut worker) = begin(Mode::Steer);
    for id in 1..=250 {
        made.job(id, |_| ());
    }
    made.job(250, |job| job.hold = None);
    assert_eq!(look(&mut worker).len(), 249, "what has no hold may start by itself");
    let acts = made.acts();
    assert_eq!((acts.len(), acts[0].as_str()), (200, "hold 250"));
    assert_eq!(look(&mut worker), ["250@1 arrived"]);
    assert_eq!(made.acts().len(), 50);
    look(&mut worker);
    assert_eq!(made.acts(), [""; 0]);
    made.job(8, |job| runs(job, "n[3-4]"));
    assert_eq!(look(&mut worker), ["8@1 is gone", "8@1 runs on [2, 3] with None"]);
    assert_eq!(made.acts(), [""; 0], "nobody cancels it");
}

/// A job that Slurm has started ends before the daemon has said which attempt that is.
#[test]
fn an_end_that_comes_early_is_reported_later() {
    let (made, mut worker) = begin(Mode::Admit);
    made.job(2, |job| runs(job, "n[3-4]"));
    assert_eq!(look(&mut worker), ["2@1 runs on [2, 3] with None"]);
    made.job(2, |job| job.state = JobState::Completed);
    assert_eq!(look(&mut worker), [""; 0]);
    let attempt = Attempt { job: 9, number: 1 };
    worker.handle([Work::Accepted { handle: "2@1".to_owned(), attempt }]);
    assert_eq!(look(&mut worker), ["9.1 ended: Exited(0)"]);
    assert_eq!(
        worker.found().get(&attempt),
        Some(&Found::Ended { end: End::Exited(0), ago: Span::ZERO })
    );
    worker.handle([Work::Forget { attempt }]);
    assert!(worker.found().is_empty());
}

/// Slurm does not start what was released: it is held again, and the daemon is told.
#[test]
fn a_job_that_does_not_start_is_held_again() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(7, |_| ());
    look(&mut worker);
    worker.handle([start(1, 3, "7@1", &[0, 1])]);
    made.acts();
    made.job(7, |job| job.reason = Some("Resources".to_owned()));
    let said = look(&mut worker);
    assert!(
        said[0].starts_with("1 failed: job 3.1: node slurm: Slurm did not start it"),
        "{said:?}"
    );
    assert_eq!(made.acts(), ["hold 7"]);
    let attempt = Attempt { job: 3, number: 1 };
    assert_eq!(worker.found().get(&attempt), Some(&Found::NeverStarted));
}

/// A short job is about to end when it is first seen, and Slurm names only those of its nodes that are not cleaned up yet.
#[test]
fn a_job_that_is_seen_at_its_end_has_run() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(7, |_| ());
    look(&mut worker);
    worker.handle([start(1, 3, "7@1", &[0, 1])]);
    made.acts();
    made.job(7, |job| {
        runs(job, "n2");
        job.state = JobState::Completing;
    });
    assert_eq!(look(&mut worker), ["1 confirmed"]);
    made.job(7, |job| job.state = JobState::Completed);
    assert_eq!(look(&mut worker), ["3.1 ended: Exited(0)"]);
    assert_eq!(made.acts(), [""; 0], "it does not run again");
}

/// Slurm starts a job elsewhere, or a job ends before it was seen to run.
#[test]
fn what_starts_elsewhere_is_queued_again() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(7, |_| ());
    look(&mut worker);
    worker.handle([start(1, 3, "7@1", &[0, 1])]);
    made.acts();
    made.job(7, |job| runs(job, "n[3-4]"));
    let said = look(&mut worker);
    assert!(
        said[0].contains("1 failed: job 3.1: node slurm: Slurm has started it on n[3-4]"),
        "{said:?}"
    );
    assert_eq!(made.acts(), ["requeue 7"]);
    made.job(7, |job| *job = held(7));
    worker.handle([start(2, 3, "7@1", &[0, 1])]);
    made.job(7, |job| job.state = JobState::Completed);
    assert_eq!(look(&mut worker), ["2 confirmed", "3.1 ended: Exited(0)"]);
}

/// A daemon that begins again is told what became of its jobs, and hears of no job twice.
#[test]
fn what_the_daemon_knows_is_found_again() {
    let (made, mut worker) = begin(Mode::Steer);
    for id in 1..=4 {
        made.job(id, |_| ());
    }
    made.job(1, |job| runs(job, "n[1-2]"));
    made.job(2, |job| (job.state, job.ended) = (JobState::Completed, Some(3600)));
    let attempt = |job: u64, number| Attempt { job, number };
    let jobs = [(1, 1), (2, 1), (3, 1), (4, 0), (5, 1)];
    let recalled =
        jobs.map(|(job, number)| (attempt(job + 10, number), format!("{job}@1"))).into_iter();
    worker.handle([Work::Recall { jobs: recalled.collect(), done: Vec::new() }]);
    assert!(worker.found().is_empty(), "nobody knows before Slurm was asked");
    // What it is to have, it is told when that is known.
    let set =
        Order::Set { attempt: attempt(11, 1), allotment: allotment(&[0, 1]), pause: Span::ZERO };
    worker.handle([Work::Orders(vec![(Ticket(5), set)])]);
    assert!(worker.take_reports().is_empty());
    assert_eq!(
        look(&mut worker),
        ["12.1 ended: Exited(0)", "15.1 ended: Lost", "11.1 is on [0, 1]", "5 confirmed"]
    );
    let found = worker.found();
    assert_eq!(found.get(&attempt(11, 1)), Some(&Found::Running));
    // It ended at one in the morning of the first day of 1970.
    let long = Span::from_secs(50 * 365 * 24 * 3600);
    let Some(Found::Ended { end: End::Exited(0), ago }) = found.get(&attempt(12, 1)) else {
        panic!()
    };
    assert!(*ago > long, "{ago:?}");
    assert_eq!(found.get(&attempt(13, 1)), Some(&Found::NeverStarted));
    assert_eq!(found.get(&attempt(15, 1)), Some(&Found::Ended { end: End::Lost, ago: Span::ZERO }));
}

/// A node fails under a job, and Slurm queues it again: the attempt is over, and the job is a new one.
#[test]
fn what_is_queued_again_is_another_job() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(7, |_| ());
    look(&mut worker);
    worker.handle([start(1, 3, "7@1", &[0, 1])]);
    made.job(7, |job| runs(job, "n[1-2]"));
    look(&mut worker);
    made.acts();
    // A controller that died may even have forgotten that the job ran.
    made.job(7, |job| (job.state, job.hold) = (JobState::Pending, Some(Hold::Admin)));
    assert_eq!(look(&mut worker), ["3.1 ended: Lost", "7@1 arrived"]);
    worker.handle([start(2, 4, "7@1", &[0, 1])]);
    made.job(7, |job| runs(job, "n[1-2]"));
    assert_eq!(look(&mut worker), ["2 confirmed"]);
    made.acts();
    made.job(7, |job| {
        (job.state, job.restarts, job.hold) = (JobState::Pending, 1, None);
        job.submitted = Some(9);
        job.nodes = HostList::new::<String>([]);
    });
    assert_eq!(look(&mut worker), ["4.1 ended: Lost"]);
    assert_eq!(made.acts(), ["hold 7"], "before it starts by itself");
    assert_eq!(look(&mut worker), ["7@9 arrived"]);
    worker.handle([Work::Dismiss { handle: "7@9".to_owned() }]);
    assert_eq!(made.acts(), ["cancel 7"]);
}

/// While slurmctld is away nothing starts, and nothing is taken for ended.
#[test]
fn a_controller_that_is_away_is_no_end() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(7, |_| ());
    look(&mut worker);
    worker.handle([start(1, 3, "7@1", &[0, 1])]);
    made.job(7, |job| runs(job, "n[1-2]"));
    look(&mut worker);
    made.with(|inside| inside.is_away = true);
    let said = look(&mut worker);
    assert_eq!(said.len(), 4, "{said:?}");
    assert!(said.iter().all(|line| line.contains("Drained") && line.contains("away")), "{said:?}");
    assert_eq!(look(&mut worker), [""; 0]);
    made.with(|inside| inside.is_away = false);
    assert_eq!(
        look(&mut worker),
        (0..4).map(|node| format!("node {node}: Up")).collect::<Vec<_>>()
    );
}

/// A job that cannot be read in full runs if it has nodes, and does not start before it is known in full. One that cannot be
/// read at all is no end, and hides nothing.
#[test]
fn what_cannot_be_read_hides_nothing_and_ends_nothing() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(7, |_| ());
    look(&mut worker);
    worker.handle([start(1, 3, "7@1", &[0, 1])]);
    made.job(7, |job| runs(job, "n[1-2]"));
    look(&mut worker);
    let unreadable = Unread { what: "job 7".to_owned(), reason: "it has 3 fields".to_owned() };
    let job = made.with(|inside| {
        inside.unread.push(unreadable);
        inside.jobs.remove(&7).unwrap()
    });
    made.job(8, |_| ());
    made.job(9, |job| job.unread.push("NumNodes".to_owned()));
    made.job(10, |job| {
        runs(job, "n3");
        (job.state, job.unread) =
            (JobState::Other("UNHEARD_OF".to_owned()), vec!["UserID".to_owned()]);
    });
    let said = look(&mut worker);
    assert_eq!(said, ["8@1 arrived", "10@1 runs on [2] with None"]);
    assert_eq!(look(&mut worker), [""; 0]);
    // It is seen again, without its submit time; then all of it, and then it is gone.
    made.with(|inside| inside.unread.clear());
    made.job(7, |seen| {
        *seen = Job { submitted: None, unread: vec!["SubmitTime".to_owned()], ..job.clone() }
    });
    made.job(9, |job| job.unread.clear());
    assert_eq!(look(&mut worker), ["9@1 arrived"]);
    made.with(|inside| inside.jobs.remove(&7));
    let said = look(&mut worker);
    assert!(said.len() == 1 && said[0].contains("Lost"), "{said:?}");
}

#[test]
fn nodes_are_what_slurm_says() {
    let (made, mut worker) = begin(Mode::Steer);
    made.with(|inside| {
        inside.nodes[1].state = State::of_words(["IDLE", "DRAIN"]);
        inside.nodes[1].reason = Some("fan".to_owned());
        inside.nodes[2].state = State::of_words(["DOWN*"]);
        inside.nodes.pop();
        // Nodes that are not the daemon's, one of which is not there yet.
        let other = Node { name: "x1".to_owned(), ..inside.nodes[0].clone() };
        let to_come =
            Node { name: "x2".to_owned(), state: State::of_words(["FUTURE"]), ..other.clone() };
        inside.nodes.extend([other, to_come]);
    });
    assert_eq!(worker.others(), 0);
    worker.look();
    assert_eq!(worker.others(), 1);
    let states: Vec<(u32, NodeState)> = worker
        .take_reports()
        .into_iter()
        .map(|report| match report {
            Report::Node { node, state } => (node, state),
            other => panic!("{other:?}"),
        })
        .collect();
    let reason = |text: &str| text.to_owned();
    let expected = [
        (1, NodeState::Drained { reason: reason("Slurm says IDLE+DRAIN (fan)") }),
        (2, NodeState::Down { reason: reason("Slurm says DOWN+NOT_RESPONDING") }),
        (3, NodeState::Down { reason: reason("Slurm has no such node") }),
    ];
    assert_eq!(states, expected);
}

/// In mode admit Slurm starts jobs: they are adopted with the watts that they were promised, and the rest of the licences
/// is reserved.
#[test]
fn what_slurm_admits_is_adopted() {
    let (made, mut worker) = begin(Mode::Admit);
    worker.handle([Work::Limit(Some(Watts::from_watts(700)))]);
    assert_eq!(
        made.with(|inside| inside.reservation.clone()),
        Some(Amounts::from([("power".to_owned(), 300)]))
    );
    made.job(1, |_| ());
    made.job(2, |job| {
        runs(job, "n[3-4]");
        job.licences = Amounts::from([("power".to_owned(), 301)]);
    });
    assert_eq!(look(&mut worker), ["2@1 runs on [2, 3] with Some(\"150.5W\")"]);
    assert_eq!(made.acts(), [""; 0], "what waits is Slurm's");
    let attempt = Attempt { job: 9, number: 1 };
    worker.handle([Work::Accepted { handle: "2@1".to_owned(), attempt }]);
    let cancel = Order::Signal { attempt, signal: Signal::Terminate };
    worker.handle([Work::Orders(vec![(Ticket(1), cancel)])]);
    assert_eq!(made.acts(), ["cancel 2"]);
    made.job(2, |job| job.state = JobState::Cancelled);
    assert_eq!(look(&mut worker), ["1 confirmed", "9.1 ended: Signalled(15)"]);
}

/// An administrator may delete or change the reservation, and Slurm may get other licences.
#[test]
fn the_licences_of_the_budget_are_put_right_at_every_look() {
    let (made, mut worker) = begin(Mode::Admit);
    let power = |licences: u64| Some(Amounts::from([("power".to_owned(), licences)]));
    worker.handle([Work::Limit(Some(Watts::from_watts(700)))]);
    assert_eq!(made.with(|inside| inside.reservation.clone()), power(300));
    let read = made.with(|inside| inside.reservations_read);
    assert_eq!(look(&mut worker), [""; 0], "nothing has changed");
    assert_eq!(made.with(|inside| inside.reservations_read), read, "one call tells that");

    made.with(|inside| inside.reservation = None);
    let notice = "the reservation 'busbar' of Slurm was removed; 300 of 1000 licences 'power' are reserved again";
    assert_eq!(look(&mut worker), [notice]);
    assert_eq!(made.with(|inside| inside.reservation.clone()), power(300));
    assert_eq!(look(&mut worker), [""; 0]);

    made.with(|inside| inside.reservation = power(10));
    let notice = "the reservation 'busbar' of Slurm had 10 licences instead of 300; 300 of 1000 licences 'power' are reserved again";
    assert_eq!(look(&mut worker), [notice]);

    made.with(|inside| inside.total = 4800);
    let notice = "Slurm has 4800 licences 'power' instead of 1000; 4100 of 4800 licences 'power' are reserved again";
    assert_eq!(look(&mut worker), [notice]);
    assert_eq!(made.with(|inside| inside.reservation.clone()), power(4100));

    // What the daemon changes itself is no news.
    worker.handle([Work::Limit(Some(Watts::from_watts(4800)))]);
    assert_eq!(look(&mut worker), [""; 0]);
    assert_eq!(made.with(|inside| inside.reservation.clone()), None);
    // Without licences Slurm starts no job that needs some, and what is reserved cannot be told.
    made.with(|inside| inside.total = 0);
    let notices = look(&mut worker);
    assert!(
        notices[0].contains("retrying: licence 'power': Slurm does not know it"),
        "{notices:?}"
    );
    assert_eq!(look(&mut worker), [""; 0], "once");
    made.with(|inside| inside.total = 4900);
    assert_eq!(look(&mut worker).len(), 1);
    assert_eq!(made.with(|inside| inside.reservation.clone()), power(100));
}

/// Slurm chooses the nodes of a job, within what its user asked for; until the daemon has heard of them, its orders are about
/// others.
#[test]
fn slurm_places_what_is_released() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(7, |job| job.required = "n4".parse().unwrap());
    look(&mut worker);
    made.acts();
    worker.handle([start_anywhere(1, 3, "7@1", &[0, 1])]);
    assert_eq!(made.acts(), ["update 7 Some((2, 2))  Some(10) ", "release 7"]);
    let attempt = Attempt { job: 3, number: 1 };
    assert_eq!(worker.found().get(&attempt), Some(&Found::Running));
    made.job(7, |job| runs(job, "n[3-4]"));
    assert_eq!(look(&mut worker), ["1 confirmed", "3.1 is on [2, 3]"]);
    let set = |ticket, nodes: &[u32]| {
        let order = Order::Set { attempt, allotment: allotment(nodes), pause: Span::ZERO };
        Work::Orders(vec![(Ticket(ticket), order)])
    };
    worker.handle([set(2, &[0, 1]), set(3, &[2, 3])]);
    assert_eq!(look(&mut worker), ["2 confirmed", "3 confirmed"]);
    assert_eq!(made.acts(), [""; 0], "it stays where it is");
    made.job(7, |job| job.state = JobState::TimedOut);
    assert_eq!(look(&mut worker), ["3.1 is out of time", "3.1 ended: Signalled(15)"]);
}

/// A short job was never seen to run. Whoever is placed where it was, is placed after it.
#[test]
fn nodes_are_left_before_others_are_placed_there() {
    let (made, mut worker) = begin(Mode::Steer);
    [7, 8, 9].iter().for_each(|id| made.job(*id, |_| ()));
    look(&mut worker);
    worker.handle([start_anywhere(2, 2, "8@1", &[2, 3])]);
    made.job(8, |job| runs(job, "n[1-2]"));
    look(&mut worker);
    made.job(8, |job| job.state = JobState::Completed);
    worker.handle([start_anywhere(1, 1, "7@1", &[0, 1])]);
    worker.take_reports();
    made.job(7, |job| runs(job, "n[1-2]"));
    worker.handle([start_anywhere(3, 3, "9@1", &[2, 3])]);
    made.job(9, |job| (job.state, job.nodes) = (JobState::Completed, "n[1-2]".parse().unwrap()));
    assert_eq!(
        look(&mut worker),
        [
            "3 confirmed",
            "2.1 ended: Exited(0)",
            "3.1 is on [0, 1]",
            "3.1 ended: Exited(0)",
            "1.1 is on [0, 1]"
        ]
    );
}

/// A job that Slurm does not place is held again, and offered when there are nodes for it.
#[test]
fn what_slurm_does_not_place_waits_beside_the_queue() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(7, |job| job.required = "n4".parse().unwrap());
    look(&mut worker);
    made.with(|inside| inside.nodes[3].state = State::of_words(["IDLE", "RESERVED"]));
    worker.handle([start_anywhere(1, 3, "7@1", &[0, 1])]);
    made.job(7, |job| job.reason = Some("ReqNodeNotAvail".to_owned()));
    made.acts();
    let aside = "3.1 is set aside: Slurm did not place it: ReqNodeNotAvail";
    assert_eq!(look(&mut worker), ["1 confirmed", aside]);
    assert_eq!(made.acts(), ["hold 7"]);
    let attempt = Attempt { job: 3, number: 1 };
    assert_eq!(worker.found().get(&attempt), Some(&Found::NeverStarted));
    assert_eq!(look(&mut worker), [""; 0], "there is no such node yet");
    made.with(|inside| inside.nodes[3].state = State::of_words(["IDLE"]));
    assert_eq!(look(&mut worker), ["7@1 is offered"]);
    assert_eq!(look(&mut worker), [""; 0], "once");
    made.job(7, |job| runs(job, "n[3-4]"));
    assert_eq!(look(&mut worker), ["7@1 is gone", "7@1 runs on [2, 3] with None"]);
}

/// The daemon does not count with it any more.
#[test]
fn what_is_not_placed_can_be_taken_back() {
    let (made, mut worker) = begin(Mode::Steer);
    [7, 8].iter().for_each(|id| made.job(*id, |_| ()));
    look(&mut worker);
    worker.handle([start_anywhere(1, 3, "7@1", &[0, 1]), start_anywhere(2, 4, "8@1", &[2, 3])]);
    worker.take_reports();
    made.acts();
    let (first, second) = (Attempt { job: 3, number: 1 }, Attempt { job: 4, number: 1 });
    worker.handle([Work::Forget { attempt: first }]);
    assert_eq!(made.acts(), ["hold 7"]);
    let suspend = Order::Signal { attempt: second, signal: Signal::Suspend };
    worker.handle([Work::Orders(vec![(Ticket(3), suspend)])]);
    assert_eq!(made.acts(), ["hold 8"]);
    let said: Vec<String> = worker.take_reports().into_iter().map(words).collect();
    assert_eq!(said, ["4.1 is set aside: power is short", "3 confirmed"]);
}

/// A job begins in the moment in which it is to be held again: it keeps its power, and is not set aside.
#[test]
fn what_begins_while_it_is_taken_back_goes_on() {
    let (made, mut worker) = begin(Mode::Steer);
    [7, 8].iter().for_each(|id| made.job(*id, |_| ()));
    look(&mut worker);
    worker.handle([start_anywhere(1, 3, "7@1", &[0, 1]), start_anywhere(2, 4, "8@1", &[2, 3])]);
    worker.take_reports();
    made.with(|inside| inside.begins = Some("n[1-2]"));
    let suspend = Order::Signal { attempt: Attempt { job: 3, number: 1 }, signal: Signal::Suspend };
    worker.handle([Work::Orders(vec![(Ticket(3), suspend)])]);
    let said: Vec<String> = worker.take_reports().into_iter().map(words).collect();
    assert!(said.len() == 1 && said[0].starts_with("3 failed"), "{said:?}");
    made.with(|inside| inside.begins = Some("n[3-4]"));
    assert_eq!(look(&mut worker), ["3.1 is on [0, 1]"]);
    assert_eq!(look(&mut worker), ["4.1 is on [2, 3]"]);
}

/// Whether a job was released is not known: it has failed to start only if it is held again.
#[test]
fn a_release_that_may_have_come_about_counts() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(7, |_| ());
    look(&mut worker);
    made.with(|inside| (inside.fails, inside.begins) = (true, Some("n[1-2]")));
    worker.handle([start_anywhere(1, 3, "7@1", &[0, 1])]);
    assert_eq!(look(&mut worker), ["1 confirmed", "3.1 is on [0, 1]"]);
    made.job(8, |_| ());
    look(&mut worker);
    worker.handle([start_anywhere(2, 4, "8@1", &[2, 3])]);
    let said = look(&mut worker);
    assert!(said.len() == 1 && said[0].starts_with("2 failed"), "{said:?}");
}

/// A job of which Slurm says nothing that can be understood is neither over nor on nodes of others.
#[test]
fn a_released_job_that_cannot_be_read_counts_as_before() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(7, |_| ());
    look(&mut worker);
    worker.handle([start_anywhere(1, 3, "7@1", &[0, 1])]);
    worker.take_reports();
    made.acts();
    made.job(7, |job| job.state = JobState::Other("UNHEARD_OF".to_owned()));
    assert_eq!(look(&mut worker), [""; 0]);
    made.job(7, |job| {
        runs(job, "");
        job.unread = vec!["NodeList".to_owned()];
    });
    assert_eq!(look(&mut worker), [""; 0]);
    assert_eq!(made.acts(), [""; 0], "it is not queued again");
    made.job(7, |job| (job.nodes, job.unread) = ("n[1-2]".parse().unwrap(), Vec::new()));
    assert_eq!(look(&mut worker), ["3.1 is on [0, 1]"]);
}

/// A user keeps a job back that a daemon has released, and that had not begun when that daemon ended.
#[test]
fn what_is_kept_back_after_its_release_has_not_run() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(7, |job| job.comment = Some(WAIT.to_owned()));
    let jobs = vec![(Attempt { job: 3, number: 1 }, "7@1".to_owned())];
    worker.handle([Work::Recall { jobs, done: Vec::new() }]);
    assert_eq!(look(&mut worker), ["3.1 is set aside: its user holds it", "7@1 is gone"]);
}

/// A daemon that begins again finds a job that was released, and hears where it was placed.
#[test]
fn a_release_is_remembered_by_slurm() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(7, |job| (job.hold, job.reason) = (None, None));
    made.job(8, |job| runs(job, "n[1-2]"));
    let jobs = [(7, 3), (8, 4)].map(|(id, job)| (Attempt { job, number: 1 }, format!("{id}@1")));
    worker.handle([Work::Recall { jobs: jobs.to_vec(), done: Vec::new() }]);
    assert_eq!(look(&mut worker), ["4.1 is on [0, 1]"]);
    assert_eq!(worker.found().len(), 2, "{:?}", worker.found());
    made.job(7, |job| runs(job, "n[3-4]"));
    assert_eq!(look(&mut worker), ["3.1 is on [2, 3]"]);
}

/// A job of another partition on a node of ours, and a node that is busy although no job says why: both count, and nobody ends
/// them.
#[test]
fn work_of_others_counts() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(5, |job| {
        job.partitions = vec!["free".to_owned()];
        runs(job, "n2,x9");
    });
    assert_eq!(look(&mut worker), ["others:5@1:n2 runs on [1] with None"]);
    assert_eq!(look(&mut worker), [""; 0], "once");
    let attempt = Attempt { job: 9, number: 1 };
    worker.handle([Work::Accepted { handle: "others:5@1:n2".to_owned(), attempt }]);
    let signal = Order::Signal { attempt, signal: Signal::Terminate };
    worker.handle([Work::Orders(vec![(Ticket(1), signal)])]);
    let said = look(&mut worker);
    assert!(
        said[0].starts_with("1 failed") && said[0].ends_with(super::others::NOT_OURS),
        "{said:?}"
    );
    assert_eq!(made.acts(), [""; 0]);
    // Another daemon hears of it no more than once, too.
    let jobs = vec![(attempt, "others:5@1:n2".to_owned())];
    worker.handle([Work::Recall { jobs, done: Vec::new() }]);
    assert_eq!(look(&mut worker), [""; 0]);
    assert_eq!(worker.found().get(&attempt), Some(&Found::Running));
    made.with(|inside| inside.nodes[3].state = State::of_words(["ALLOCATED"]));
    let mut said: Vec<String> = (0..4).flat_map(|_| look(&mut worker)).collect();
    assert_eq!(said, ["others::n4 runs on [3] with None"]);
    worker.handle([Work::Accepted {
        handle: "others::n4".to_owned(),
        attempt: Attempt { job: 10, number: 1 },
    }]);
    made.job(5, |job| job.state = JobState::Completed);
    made.with(|inside| inside.nodes[3].state = State::of_words(["IDLE"]));
    said = look(&mut worker);
    assert_eq!(said, ["9.1 ended: Exited(0)", "10.1 ended: Lost"]);
}

/// A controller that was killed may forget that it has started a job. One that may not be queued again does not begin again.
#[test]
fn a_job_that_may_not_run_twice_does_not() {
    for may_requeue in [true, false] {
        let (made, mut worker) = begin(Mode::Steer);
        made.job(7, |job| job.may_requeue = may_requeue);
        look(&mut worker);
        worker.handle([start_anywhere(1, 3, "7@1", &[0, 1])]);
        made.job(7, |job| runs(job, "n[1-2]"));
        look(&mut worker);
        made.acts();
        // Its start was not saved, and its release was.
        made.job(7, |job| {
            (job.state, job.started, job.nodes) = (JobState::Pending, None, HostList::default());
        });
        let said = look(&mut worker);
        assert!(said.contains(&"3.1 ended: Lost".to_owned()), "{said:?}");
        let is_held = made.acts().contains(&"hold 7".to_owned());
        assert!(is_held, "Slurm must not start it by itself");
        let again = look(&mut worker).contains(&"7@1 arrived".to_owned())
            || said.contains(&"7@1 arrived".to_owned());
        assert_eq!(again, may_requeue);
    }
}

/// What the daemon cannot take in is not offered at every look.
#[test]
fn work_of_others_that_was_refused_is_put_off() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(5, |job| {
        job.partitions = vec!["free".to_owned()];
        runs(job, "n2");
    });
    assert_eq!(look(&mut worker), ["others:5@1:n2 runs on [1] with None"]);
    let (handle, reason) = ("others:5@1:n2".to_owned(), "too many jobs".to_owned());
    worker.handle([Work::Refuse { handle, reason }]);
    assert_eq!(look(&mut worker), [""; 0]);
}

/// What cannot be read of the work of others, or of a node that is busy with it, has not left.
#[test]
fn work_of_others_that_cannot_be_read_counts() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(5, |job| {
        job.partitions = vec!["free".to_owned()];
        runs(job, "n2");
    });
    made.with(|inside| inside.nodes[3].state = State::of_words(["ALLOCATED"]));
    let said: Vec<String> = (0..3).flat_map(|_| look(&mut worker)).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    let handles = ["others:5@1:n2", "others::n4"].map(str::to_owned);
    for (handle, job) in handles.into_iter().zip(9..) {
        worker.handle([Work::Accepted { handle, attempt: Attempt { job, number: 1 } }]);
    }
    let job = made.with(|inside| {
        let reason = "it has 3 fields".to_owned();
        inside.unread.push(Unread { what: "job 5".to_owned(), reason });
        inside.nodes[3].state = State::of_words(["IDLE"]);
        inside.jobs.remove(&5).unwrap()
    });
    assert_eq!(look(&mut worker), [""; 0]);
    made.with(|inside| {
        inside.nodes[3].state = State::of_words(["ALLOCATED"]);
        inside.unread.clear();
    });
    let nodes = job.nodes.clone();
    for (state, nodes, submitted) in [
        (JobState::Other(String::new()), nodes.clone(), Some(1)),
        (JobState::Running, HostList::default(), Some(1)),
        (JobState::Running, nodes, None),
    ] {
        let unread = vec!["something".to_owned()];
        let seen = Job { state, nodes, submitted, unread, ..job.clone() };
        made.job(5, |job| *job = seen);
        assert_eq!(look(&mut worker), [""; 0]);
    }
    made.with(|inside| inside.jobs.remove(&5));
    assert_eq!(look(&mut worker), ["9.1 ended: Lost"]);
}

/// What its user asked for counts, however much time the daemon has given it before it was queued again.
#[test]
fn time_limits_do_not_grow() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(7, |job| job.limit_minutes = Some(8));
    look(&mut worker);
    worker.handle([start_anywhere(1, 3, "7@1", &[0, 1])]);
    made.job(7, |job| runs(job, "n[1-2]"));
    look(&mut worker);
    assert_eq!(made.with(|inside| inside.jobs[&7].limit_minutes), Some(10));
    made.job(7, |job| {
        (job.state, job.submitted, job.restarts) = (JobState::Pending, Some(9), 1);
        (job.hold, job.nodes) = (Some(Hold::Admin), HostList::default());
    });
    worker.look();
    let asked = worker.take_reports().into_iter().find_map(|report| match report {
        Report::Arrived(arrival) => Some(arrival.request.time),
        _ => None,
    });
    assert_eq!(asked, Some(Span::from_secs(8 * 60)));
}
