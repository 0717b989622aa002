//! Share and its orders, in stories.

use std::num::NonZeroU32;

use busbar::budget::Budget;
use busbar::job::{Job, UserId};
use busbar::machine::{Details, Machine};
use busbar::policy::share::Use;
use busbar::policy::{Believe, BuildContext, OrderedBy, PolicySpec};
use busbar::prepared::{PreparedWorkload, Rules, SharedWorld};
use busbar::reproduce::papers;
use busbar::sim::{Outages, Run, Simulation};
use busbar::units::{Instant, Share, Span};
use busbar::workload::Workload;
use busbar::workload::demo::demo;
use busbar::world::Repertoire;

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
        // Somebody has to wait at the beginning, so that it is not calm.
        jobs.insert(0, job(count + 2, 0, 4, 1800));
        jobs
    };
    let waits = |policy: &str| {
        let run = run(policy, 4, jobs());
        assert_eq!(run.unfinished, 0, "{policy}");
        run.records[41].start.since(Instant::from_secs(39 * 150)).secs_f64() / HOUR as f64
    };
    for policy in
        ["easy(", "easy-power(", "share(use=caps, ", "share(use=sizes, ", "share(use=recaps, "]
    {
        let waited = waits(&format!("{policy}order=aged, halving=1h)"));
        assert!((6.0..9.0).contains(&waited), "{policy}: {waited} h");
        // Without any ageing to speak of it waits for the end of the stream.
        assert!(waits(&format!("{policy}order=aged, halving=9999h)")) > 19.0 * 24.0, "{policy}");
    }
    // The program has no order. Waiting makes a job worth more there, too, and nobody who waited for eight halving times
    // is passed by one who would delay it: those that run end within ten minutes.
    let waited = waits("share(use=resizes, halving=1h)");
    assert!((4.0..8.2).contains(&waited), "{waited} h");
    assert!(waits("share(use=resizes, halving=9999h)") > 19.0 * 24.0);
}

/// Whatever it makes use of, in whatever order: under 60 % of the power everybody is served in the end.
#[test]
fn nobody_is_left_out() {
    let workload = demo();
    let machine = Machine::of_processors(256).unwrap();
    let budget = Budget::constant(Share::percent(60).of(machine.max_power()));
    for uses in Use::ALL {
        for order in OrderedBy::ALL {
            let policy = format!("share(use={uses}, order={order}, halving=1h)");
            let policy: PolicySpec = policy.parse().unwrap();
            let model = papers::model(&policy, &machine, workload.jobs(), 1).unwrap();
            let run = Simulation::new(&machine, &workload)
                .budget(budget.clone())
                .model(model.as_ref())
                .run(policy.build(&BuildContext::default()).as_mut());
            let ran = run.records.iter().filter(|record| record.state.has_run()).count();
            assert_eq!((ran, run.violations), (workload.jobs().len(), 0), "{policy}");
        }
    }
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
    // Who learns nothing believes both.
    for policy in ["share", "share(order=history, predict=off)"] {
        let [greedy, modest] = starts(policy);
        assert!(greedy < modest, "{policy}");
    }
}

/// A user asks for ten times what the jobs take, one job after the other. The first is predicted by what the
/// user asks for; all others by those before them.
fn modest_jobs(count: u64) -> Vec<(Job, Span)> {
    let modest = |number: u64| {
        let (mut job, _) = job(number + 1, number * 2 * HOUR, 1, 36_000);
        job.user = NonZeroU32::new(1).map(UserId);
        (job, Span::from_secs(3600))
    };
    (0..count).map(modest).collect()
}

#[test]
fn predictions_come_with_their_errors() {
    let predictions = |policy: &str| run(policy, 1, modest_jobs(20)).predictions;
    let time = predictions("share(order=history)").unwrap().time.unwrap();
    assert_eq!(time.jobs, 20);
    // One of twenty is off, by the ten that users are always off.
    assert!(time.predicted.median < 1.001 && time.predicted.p90 < 1.001, "{time:?}");
    let close = |found: f64| (found - 10.0).abs() < 1e-3;
    assert!(close(time.baseline.median) && close(time.baseline.p90), "{time:?}");
    // With two jobs, half of them are off.
    let two = run("easy(order=history)", 1, modest_jobs(2)).predictions.unwrap().time.unwrap();
    assert!(two.predicted.median < 1.001 && close(two.predicted.p90), "{two:?}");
    for silent in ["share", "share(order=aged)", "share(order=history, predict=off)"] {
        assert_eq!(predictions(silent), None, "{silent}");
    }
}

/// All jobs run the same application. Its nodes are believed to draw what they are rated at, and draw less: that is
/// learned from the first job, or not at all.
#[test]
fn power_is_learned_where_it_is_measured() {
    let machine = Machine { details: Details::ideal(), ..Machine::of_processors(1).unwrap() };
    let applications = Repertoire::BuiltIn;
    let machine = applications.filled_in(&machine).unwrap();
    let prepared = PreparedWorkload::new(machine, Workload::new("story", modest_jobs(20)), true);
    let rules = Rules { believe: Some(Believe::Rated), ..Rules::default() };
    let PreparedWorkload { machine, workload, .. } = &prepared;
    let shared = SharedWorld::new(machine, workload, &applications, &rules, 1).unwrap();
    let run = |policy: &str| {
        let policy: PolicySpec = policy.parse().unwrap();
        let belief = shared.belief(&policy, machine, workload.jobs()).unwrap();
        prepared.in_shared_world(policy, Budget::unlimited(), &shared, belief.as_ref()).run().run
    };
    let learned = run("easy(order=history)");
    let power = learned.predictions.unwrap().power.unwrap();
    let too_much = machine.added_power().as_f64() / learned.records[0].power.as_f64();
    assert!(too_much > 1.05, "{too_much}");
    let is_always_off = |error: f64| (error - too_much).abs() < 1e-3;
    assert!(is_always_off(power.baseline.median) && is_always_off(power.baseline.p90), "{power:?}");
    assert_eq!(power.jobs, 20);
    assert!(power.predicted.p90 < 1.001, "{power:?}");
    let without = run("easy(order=history, predict=time)").predictions.unwrap();
    assert!(without.power.is_none() && without.time.is_some());
}

/// A node fails again and again, one minute after each start, until the third: that says nothing about how long
/// the job runs.
#[test]
fn a_job_that_is_thrown_out_has_not_ended() {
    let outages = "node,down,up\n0,60,120\n0,180,240\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("outages.csv");
    std::fs::write(&path, outages).unwrap();
    let machine = Machine::of_processors(1).unwrap();
    let workload = Workload::new("story", modest_jobs(3));
    let policy: PolicySpec = "easy(order=history)".parse().unwrap();
    let simulation = Simulation::new(&machine, &workload);
    let simulation = simulation.outages(Outages::from_file(&path, 1).unwrap());
    let run = simulation.run(policy.build(&BuildContext::default()).as_mut());
    assert_eq!(run.records[0].restarts, 2);
    let time = run.predictions.unwrap().time.unwrap();
    assert_eq!(time.jobs, 3);
    assert!(time.predicted.median < 1.001, "{time:?}");
}
