//! Digests of runs that can be followed by hand, and of one with everything in it.

use proptest::prelude::*;

use super::*;
use crate::budget::{Budget, BudgetSpec};
use crate::job::Job;
use crate::machine::Machine;
use crate::metrics::By;
use crate::policy::Easy;
use crate::reproduce::papers;
use crate::scenario::Scenario;
use crate::sim::Simulation;
use crate::units::{JobId, Span};
use crate::workload::Workload;
use crate::workload::demo::demo;

/// Two nodes of 100 W and a budget of 250 W. Job 7 has both for 1000 s; job 8 waits 900 s for one of
/// them, and runs for 100 s; job 9 is too large.
#[test]
fn a_small_run_by_hand() {
    let machine = Machine::of_processors(2).unwrap();
    let job = |number, submit, nodes, seconds| {
        let requested = Span::from_secs(seconds);
        (Job::new(number, Instant::from_secs(submit), nodes, requested), requested)
    };
    let jobs = [job(7, 100, 2, 1000), job(8, 200, 1, 100), job(9, 300, 3, 1)];
    let workload = Workload::new("hand", jobs);
    let budget = Budget::constant(Watts::from_watts(250));
    let simulation = Simulation::new(&machine, &workload).budget(budget.clone()).keep_power(true);
    let run = simulation.run(&mut Easy::default());
    let subject = RunContext {
        policy: "easy",
        machine: &machine,
        workload: &workload,
        budget: &budget,
        bsld_threshold: Span::from_secs(600),
        has_gears: true,
        has_reference: true,
        freedoms: None,
        world: None,
        windows: None,
    };
    let digest = Digest::of(&subject, &run, &Summary::of(&subject, &run));

    assert_eq!((digest.begin, digest.end), (100_000, 1_200_000));
    assert_eq!(digest.power.from.values(), [100_000, 1_100_000]);
    assert_eq!(digest.power.mean.values(), [200_000, 100_000]);
    assert_eq!(digest.limit.mean.values(), [250_000]);
    assert_eq!(digest.busy.mean.values(), [2, 1]);
    // Job 8 waits from 200 s to 1100 s; job 9 is turned away when it comes.
    assert_eq!(digest.queue.from.values(), [100_000, 200_000, 1_100_000]);
    assert_eq!(digest.queue.mean.values(), [0, 1, 0]);
    assert_eq!(digest.waits.values.values(), [0, 900_000]);
    // By size and by length; nobody said whose jobs they are.
    assert_eq!(digest.waits_by.iter().map(|by| by.by).collect::<Vec<_>>(), [By::Size, By::Length]);
    // 1 and (900 + 100) / 600.
    assert_eq!(digest.slowdowns.values.values(), [10_000, 16_667]);
    let jobs = &digest.jobs;
    assert_eq!(jobs.number.values(), [7, 8, 9]);
    assert_eq!(jobs.submit.values(), [100_000, 200_000, 300_000]);
    let states = jobs.state.values().iter().map(|state| STATES[*state as usize]);
    assert_eq!(states.collect::<Vec<_>>(), ["completed", "completed", "rejected"]);
    assert_eq!(jobs.wait.values(), [0, 900_000, 0]);
    assert_eq!(jobs.run.values(), [1_000_000, 100_000, 0]);
    assert_eq!(jobs.nodes.values(), [2, 1, 0]);
    assert_eq!(jobs.cap.values(), [100_000, 100_000, 0]);
    assert_eq!(digest.bars.job.values(), [0, 1]);
    assert_eq!(digest.bars.lanes.values(), [2, 1]);
    assert_eq!(digest.bars.late.values(), [0, 0]);
}

fn simulated(policy: &str, budget: &str, jobs: usize) -> (Digest, Run) {
    simulated_with(usize::MAX, policy, budget, jobs)
}

fn simulated_with(most: usize, policy: &str, budget: &str, jobs: usize) -> (Digest, Run) {
    let machine = Machine::of_processors(256).unwrap();
    let mut workload = demo();
    workload.slice(0..jobs);
    let budget = budget.parse::<BudgetSpec>().unwrap().resolve(&machine).unwrap();
    let policy = policy.parse().unwrap();
    let model = papers::model(&policy, &machine, workload.jobs(), 1).unwrap();
    let new = Scenario::new(&machine, &workload, policy.clone(), model.as_ref());
    let scenario = Scenario { budget, keep_power: true, ..new };
    let run = scenario.simulate().run;
    let name = policy.to_string();
    (Digest::with(most, &scenario.context(&name), &run, &scenario.summary(&run)), run)
}

/// What is written down is what is read, to the last digit of the figures.
#[test]
fn a_digest_survives_json() {
    let (digest, _) = simulated("pb-guided", "60%", 2000);
    let text = serde_json::to_string(&digest).unwrap();
    assert_eq!(serde_json::from_str::<Digest>(&text).unwrap(), digest);
}

/// What an older version wrote down can still be read: it says nothing of queues and classes.
#[test]
fn a_digest_of_an_older_version_is_read() {
    let (digest, _) = simulated("easy", "60%", 50);
    let mut value = serde_json::to_value(&digest).unwrap();
    let object = value.as_object_mut().unwrap();
    assert!(object.remove("queue").is_some() && object.remove("waits_by").is_some());
    let read: Digest = serde_json::from_value(value).unwrap();
    assert_eq!((read.queue, read.waits_by), (Envelope::default(), Vec::new()));
    assert_eq!(read.jobs, digest.jobs);
}

/// Jobs of `parm` change their nodes while they run. The rectangles have just the node time that the
/// jobs had, and so has the curve of busy nodes.
#[test]
fn node_time_is_kept_where_jobs_change() {
    let (digest, run) = simulated("parm", "60%", 120);
    assert!(run.changes.len() > 10, "{} changes", run.changes.len());
    let of_jobs: u128 = (0..)
        .zip(&run.records)
        .filter(|(_, record)| record.state.has_run())
        .map(|(id, _)| run.total(JobId(id)).node_millis)
        .sum();
    let Bars { job, late, early, lanes, .. } = &digest.bars;
    let bars = job.values().iter().zip(late.values()).zip(early.values()).zip(lanes.values());
    let of_bars: u128 = bars
        .map(|(((job, late), early), lanes)| {
            let length = digest.jobs.run.values()[*job as usize] - late - early;
            u128::from(length) * u128::from(*lanes)
        })
        .sum();
    assert_eq!(of_bars, of_jobs);
    let from = digest.busy.from.values();
    let ends = from.iter().skip(1).chain([&digest.end]);
    let of_busy: u128 = from
        .iter()
        .zip(ends)
        .zip(digest.busy.mean.values())
        .map(|((from, end), nodes)| u128::from(end - from) * u128::from(*nodes))
        .sum();
    assert!(from.len() < MOST_PARTS, "nothing was condensed");
    assert_eq!(of_busy, of_jobs);
}

/// A digest that was made with few single jobs is the one that comes of a whole digest when they are taken out of it,
/// also where jobs change their nodes. All node time is in it, in rectangles or in tiles.
#[test]
fn few_single_jobs_at_once_or_afterwards() {
    for (policy, jobs, most) in [("parm", 120, 40), ("easy-power", 2000, 300)] {
        let (whole, run) = simulated(policy, "60%", jobs);
        let (few, _) = simulated_with(most, policy, "60%", jobs);
        let kept = largest(&whole.sizes().collect::<Vec<_>>(), most);
        assert_eq!(whole.lighter(&kept, MOST_PARTS, TILES), few);
        assert_eq!((whole.rest.as_ref(), few.singles()), (None, most));
        let rest = few.rest.as_ref().unwrap();
        assert_eq!(rest.jobs as usize, jobs - most);
        let sum = |column: &Column| column.values().iter().sum::<u64>();
        let others: Vec<u64> = [&rest.wait, &rest.slowdown, &rest.cap]
            .map(|classes| classes.iter().map(sum).sum())
            .to_vec();
        let of_jobs: u128 =
            (0..).zip(&run.records).map(|(id, _)| run.total(JobId(id)).node_millis).sum();
        assert!(others.iter().all(|covered| *covered == others[0]));
        assert_eq!(u128::from(sum(&rest.singles) + others[0]), of_jobs);
        // What is taken out twice is taken out once.
        let fewer = largest(&whole.sizes().collect::<Vec<_>>(), most / 2);
        let again = largest(&few.sizes().collect::<Vec<_>>(), most / 2);
        let twice = few.lighter(&again, MOST_PARTS, TILES);
        assert_eq!(twice, whole.lighter(&fewer, MOST_PARTS, TILES));
    }
}

/// This many nodes and jobs as they can be counted at any one instant, job by job.
fn counted(jobs: &[Job], run: &Run, at: Instant) -> (u64, u64) {
    let rows = || jobs.iter().zip(&run.records);
    let busy = rows().filter(|(_, record)| record.start <= at && record.end > at);
    let waits = rows().filter(|(job, record)| job.submit <= at && record.start > at);
    (busy.map(|(_, record)| u64::from(record.nodes)).sum(), waits.count() as u64)
}

/// What a curve says at an instant.
fn value_at(curve: &Envelope, at: Instant) -> u64 {
    let place = curve.from.values().partition_point(|from| *from <= at.millis());
    curve.mean.values()[place - 1]
}

proptest! {
    /// The walk against a count at every instant at which anything happens, and distributions against sorted lists.
    #[test]
    fn a_digest_says_what_can_be_counted(
        asked in prop::collection::vec((0u32..400, 1u32..10, 0u32..90), 1..60),
    ) {
        let machine = Machine::of_processors(8).unwrap();
        let job = |(number, &(submit, nodes, seconds)): (u64, &(u32, u32, u32))| {
            let time = Span::from_secs(seconds);
            (Job::new(number, Instant::from_secs(submit), nodes, time), time)
        };
        let workload = Workload::new("random", (1..).zip(&asked).map(job));
        let budget = Budget::unlimited();
        let run = Simulation::new(&machine, &workload).keep_power(true).run(&mut Easy::default());
        let subject = RunContext {
            policy: "easy",
            machine: &machine,
            workload: &workload,
            budget: &budget,
            bsld_threshold: Span::from_secs(10),
            has_gears: true,
            has_reference: true,
            freedoms: None,
            world: None,
            windows: None,
        };
        let digest = Digest::of(&subject, &run, &Summary::of(&subject, &run));
        let jobs = workload.jobs();
        let times = jobs.iter().map(|job| job.submit);
        let times = times.chain(run.records.iter().flat_map(|record| [record.start, record.end]));
        for at in times.filter(|at| *at < run.end) {
            let (busy, waiting) = counted(jobs, &run, at);
            prop_assert_eq!(value_at(&digest.busy, at), busy, "busy at {}", at);
            prop_assert_eq!(value_at(&digest.queue, at), waiting, "waiting at {}", at);
        }
        let ran = || jobs.iter().zip(&run.records).filter(|(_, record)| record.state.has_run());
        let mut waits: Vec<u64> = ran().map(|(job, record)| wait(job, record).millis()).collect();
        waits.sort_unstable();
        prop_assert_eq!(digest.waits.values.values(), waits);
        // Every job that ran for some time has its node time in rectangles.
        let Bars { job, late, early, lanes, .. } = &digest.bars;
        let mut times = vec![0; jobs.len()];
        for place in 0..job.values().len() {
            let who = job.values()[place] as usize;
            let length = digest.jobs.run.values()[who] - late.values()[place] - early.values()[place];
            times[who] += length * lanes.values()[place];
        }
        prop_assert_eq!(times, digest.sizes().collect::<Vec<_>>());
    }
}
