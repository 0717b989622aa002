//! The engine against a cluster that is made up: jobs that come, start, end, are queued again and vanish.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use busbar_core::units::{Span, Watts};
use busbar_slurm::cluster::{Cluster, JobUpdate};
use busbar_slurm::error::SlurmError;
use busbar_slurm::hosts::HostList;
use busbar_slurm::model::{
    Amounts, Exit, HetPart, Hold, Job, JobRef, JobState, Licence, Node, NodeState as State,
    Partition, Reservation,
};
use busbar_slurm::setup::{MARK, Mode, WAIT};
use busbar_slurm::version::Version;

use super::worker::Worker;
use super::{Terms, Work};
use crate::engine::{
    Allotment, Attempt, End, Found, Launch, NodeState, Order, Report, Signal, Ticket,
};

/// A cluster of which a test says what happens.
#[derive(Clone, Default)]
struct Made(Arc<Mutex<Inside>>);

#[derive(Default)]
struct Inside {
    jobs: BTreeMap<u32, Job>,
    nodes: Vec<Node>,
    is_away: bool,
    /// What was asked for, in words.
    acts: Vec<String>,
    reserved: Amounts,
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
fn held(id: u32) -> Job {
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
        exit: Exit::default(),
        restarts: 0,
        may_requeue: true,
        reservation: None,
        comment: None,
        admin_comment: Some(MARK.to_owned()),
    }
}

fn runs(job: &mut Job, nodes: &str) {
    (job.state, job.hold, job.started) = (JobState::Running, None, Some(100));
    job.nodes = nodes.parse().unwrap();
}

impl Cluster for Made {
    fn version(&self) -> Result<Version, SlurmError> {
        unreachable!("nobody asks")
    }
    fn nodes(&self) -> Result<Vec<Node>, SlurmError> {
        self.read(|inside| inside.nodes.clone())
    }
    fn partitions(&self) -> Result<Vec<Partition>, SlurmError> {
        Ok(Vec::new())
    }
    fn jobs(&self) -> Result<Vec<Job>, SlurmError> {
        self.read(|inside| inside.jobs.values().cloned().collect())
    }
    fn job(&self, _job: JobRef) -> Result<Vec<Job>, SlurmError> {
        Ok(Vec::new())
    }
    fn licences(&self) -> Result<Vec<Licence>, SlurmError> {
        let name = "power".to_owned();
        Ok(vec![Licence { name, total: 1000, ..Licence::default() }])
    }
    fn reservations(&self) -> Result<Vec<Reservation>, SlurmError> {
        Ok(Vec::new())
    }
    fn hold(&self, jobs: &[JobRef]) -> Result<(), SlurmError> {
        for job in jobs {
            self.job(job.job, |job| job.hold = Some(Hold::Admin));
            self.act(format!("hold {job}"))?;
        }
        Ok(())
    }
    fn release(&self, jobs: &[JobRef]) -> Result<(), SlurmError> {
        for job in jobs {
            self.job(job.job, |job| job.hold = None);
            self.act(format!("release {job}"))?;
        }
        Ok(())
    }
    fn hold_for_user(&self, job: JobRef) -> Result<(), SlurmError> {
        self.act(format!("hold {job} for its user"))
    }
    fn update(&self, job: JobRef, update: &JobUpdate) -> Result<(), SlurmError> {
        let required = update.required.as_ref().map(HostList::to_string).unwrap_or_default();
        let comment = update.comment.clone().unwrap_or_default();
        let (nodes, minutes) = (update.nodes, update.limit_minutes);
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
        self.with(|inside| inside.reserved = licences.clone());
        Ok(())
    }
    fn remove_reservation(&self, _name: &str) -> Result<(), SlurmError> {
        Ok(())
    }
}

/// Four nodes, n1 to n4, and a daemon that knows no job yet.
fn begin(mode: Mode) -> (Made, Worker<Made>) {
    let made = Made::default();
    let names: Vec<String> = (1..=4).map(|number| format!("n{number}")).collect();
    let state = State::of_words(["IDLE"]);
    made.with(|inside| {
        let node =
            |name: &String| Node { name: name.clone(), state: state.clone(), ..Node::default() };
        inside.nodes = names.iter().map(node).collect();
    });
    let terms = Terms {
        mode,
        partitions: vec!["main".to_owned()],
        nodes: names,
        others: 0,
        licence: "power".to_owned(),
        period: Duration::from_secs(1),
        patience: Duration::ZERO,
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

fn start(ticket: u64, job: u64, handle: &str, nodes: &[u32]) -> Work {
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
    };
    Work::Orders(vec![(Ticket(ticket), Order::Start(Box::new(launch)))])
}

#[test]
fn a_job_comes_starts_where_it_is_told_and_ends() {
    let (made, mut worker) = begin(Mode::Steer);
    made.job(7, |_| ());
    assert_eq!(look(&mut worker), ["7@1 arrived"]);
    assert_eq!(made.acts(), ["hold 7"], "its user cannot release it any more");
    assert_eq!(look(&mut worker), [""; 0], "once");
    worker.handle([start(1, 3, "7@1", &[1, 2])]);
    // Ten minutes, and one more, so that the daemon's limit comes first.
    assert_eq!(made.acts(), ["update 7 Some((2, 2)) n[2-3] Some(11) ", "release 7"]);
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
        (job.state, job.exit) = (JobState::Failed, Exit { code: 3, signal: 0 });
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
    assert!(made.acts().iter().any(|act| act.contains("heterogeneous jobs are not handled")));
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
        said[0].contains("1 failed: job 3.1: node slurm: Slurm started it on n[3-4]"),
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
    assert_eq!(look(&mut worker), ["12.1 ended: Exited(0)", "15.1 ended: Lost", "5 confirmed"]);
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
        made.with(|inside| inside.reserved.clone()),
        Amounts::from([("power".to_owned(), 300)])
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
