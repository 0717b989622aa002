//! Jobs come, start where they are told, end, are queued again and vanish; and what Slurm says of nodes.

use super::*;

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
