//! Share and its orders, in stories.

use std::num::NonZeroU32;

use busbar::job::{Job, UserId};
use busbar::machine::Machine;
use busbar::policy::{BuildContext, PolicySpec};
use busbar::sim::{Run, Simulation};
use busbar::units::{Instant, Span};
use busbar::workload::Workload;

const HOUR: u64 = 3600;

fn run(policy: &str, nodes: u32, jobs: Vec<(Job, Span)>) -> Run {
    let machine = Machine::of_processors(nodes).unwrap();
    let workload = Workload::new("story", jobs);
    let policy: PolicySpec = policy.parse().unwrap();
    Simulation::new(&machine, &workload).run(policy.build(&BuildContext::default()).as_mut())
}

/// A job that takes exactly what it asks for.
fn job(number: u64, submit_s: u64, nodes: u32, seconds: u32) -> (Job, Span) {
    let time = Span::from_secs(seconds);
    (Job::new(number, Instant::from_millis(1000 * submit_s), nodes, time), time)
}

/// Four nodes are kept busy for twenty days by jobs that cost far less than one large job, of four
/// nodes for ten hours. It costs 120 times as much as each of them, so after seven halving times no
/// newcomer stands before it.
#[test]
fn an_endless_stream_of_cheaper_jobs_does_not_starve_a_dear_one() {
    let stream = |number: u64| job(number + 2, number * 150, 1, 600);
    let count = 20 * 24 * HOUR / 150;
    let jobs = || {
        let mut jobs: Vec<(Job, Span)> = (0..count).map(stream).collect();
        jobs.insert(40, job(1, 39 * 150, 4, 10 * 3600));
        jobs
    };
    let waits = |policy: &str| {
        let run = run(policy, 4, jobs());
        assert_eq!(run.unfinished, 0, "{policy}");
        run.records[40].start.since(Instant::from_secs(39 * 150)).secs_f64() / HOUR as f64
    };
    for policy in
        ["easy(", "easy-power(", "share(use=caps, ", "share(use=sizes, ", "share(use=recaps, "]
    {
        let waited = waits(&format!("{policy}order=aged, halving=1h)"));
        assert!((6.0..9.0).contains(&waited), "{policy}: {waited} h");
        // Without any ageing to speak of it waits for the end of the stream.
        assert!(waits(&format!("{policy}order=aged, halving=9999h)")) > 19.0 * 24.0, "{policy}");
    }
    // The program has no order, but nobody who waited for a halving time is passed by one who would delay it:
    // those that run end within ten minutes.
    let waited = waits("share(use=resizes, halving=1h)");
    assert!((1.0..1.5).contains(&waited), "{waited} h");
    assert!(waits("share(use=resizes, halving=9999h)") > 19.0 * 24.0);
}

/// Two users ask for the same: one always uses a tenth of it, the other all. Once each has ended jobs,
/// those of the first go first.
#[test]
fn history_knows_who_asks_for_too_much() {
    let of = |user: u32, (mut job, _): (Job, Span), took: u32| {
        job.user = NonZeroU32::new(user).map(UserId);
        (job, Span::from_secs(took))
    };
    let hour = 3600;
    let mut jobs = Vec::new();
    // One after the other on one node: ten of each user.
    for number in 0..10 {
        jobs.push(of(1, job(2 * number + 1, 0, 1, 10 * hour), hour));
        jobs.push(of(2, job(2 * number + 2, 0, 1, 10 * hour), 10 * hour));
    }
    // All of them have ended after 110 h. While a job of another user runs, one of each comes.
    jobs.push(of(3, job(21, 200 * HOUR, 1, hour), hour));
    jobs.push(of(2, job(22, 200 * HOUR + 1, 1, 10 * hour), 10 * hour));
    jobs.push(of(1, job(23, 200 * HOUR + 2, 1, 10 * hour), hour));
    let starts = |policy: &str| {
        let run = run(policy, 1, jobs.clone());
        [run.records[21].start, run.records[22].start]
    };
    let [greedy, modest] = starts("share(order=history)");
    assert!(modest < greedy);
    let [greedy, modest] = starts("share");
    assert!(greedy < modest);
}
