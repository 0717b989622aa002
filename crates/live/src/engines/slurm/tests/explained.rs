//! Jobs that wait say why, in a comment that people can read.

use super::*;

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
