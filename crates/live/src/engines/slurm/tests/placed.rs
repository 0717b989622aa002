//! Jobs for which Slurm chooses the nodes: released, placed, and taken back where it does not.

use super::*;

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
