//! Work that is none of Busbar's counts.

use super::*;

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
        said[0].starts_with("1 failed")
            && said[0].ends_with(crate::engines::slurm::others::NOT_OURS),
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
