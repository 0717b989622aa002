//! EASY: its speed beside the plain loop, on whole logs, among more and more jobs, and its memory.

use std::num::NonZeroU32;

use busbar::job::{Job, UserId};
use busbar::policy::{Decision, Easy, Policy, PolicySpec, View};
use busbar::sim::{Record, Simulation, State};
use busbar::units::{JobId, Span};
use busbar::workload::Workload;
use busbar::workload::lublin::Sizes;
use busbar::workload::swf::{self, BadRecords};

use super::allocator::Counting;
use super::bench::{
    ALL_SIZES, Bench, Times, generate, log_paths, machine_of, ratio_cells, simulate, timed,
};
use super::table::{Table, grouped, met, speed_goal};

/// EASY below saturation, beside the plain loop.
pub(super) fn easy(bench: &Bench) {
    let mut table = Table::new(
        "sizes | jobs | ns/job, best | median | jobs/s | plain jobs/s | ratio | goal | met",
    );
    for jobs in [100_000, 1_000_000] {
        for sizes in ALL_SIZES {
            let workload = generate(jobs, 0.85, sizes);
            let worth_it = jobs == 100_000 || (sizes == Sizes::Mixed && !bench.quick);
            let (times, plain) = if worth_it {
                bench.time_beside_plain(&workload)
            } else {
                (bench.time(PolicySpec::easy(), &workload), None)
            };
            let mut row = vec![sizes.to_string(), grouped(jobs.into())];
            row.extend(times.cells(jobs));
            row.extend(ratio_cells(jobs, &times, plain, 50.0));
            table.row(row);
        }
    }
    table.print();
}

/// EASY above saturation, where the queue grows and grows.
pub(super) fn overload(bench: &Bench) {
    let mut table = Table::new(
        "sizes | jobs | ns/job, best | median | jobs/s | plain jobs/s | ratio | goal | met",
    );
    for sizes in ALL_SIZES {
        let (times, plain) = bench.time_beside_plain(&generate(10_000, 1.5, sizes));
        let mut row = vec![sizes.to_string(), grouped(10_000)];
        row.extend(times.cells(10_000));
        row.extend(ratio_cells(10_000, &times, plain, 200.0));
        table.row(row);
    }
    table.print();
    println!();

    let mut table =
        Table::new("sizes | jobs | longest queue | ns/job, best | median | jobs/s | goal | met");
    for (sizes, goal) in ALL_SIZES.into_iter().zip([300_000.0, 1_000_000.0, 300_000.0]) {
        let workload = generate(1_000_000, 1.5, sizes);
        let times = bench.time(PolicySpec::easy(), &workload);
        let mut longest = LongestQueue::default();
        Simulation::new(&machine_of(&workload), &workload).run(&mut longest);
        let mut row = vec![sizes.to_string(), grouped(1_000_000), grouped(longest.length as u64)];
        row.extend(times.cells(1_000_000));
        row.extend(speed_goal(times.speed(1_000_000), goal));
        table.row(row);
    }
    table.print();
}

/// EASY, and the most jobs that ever waited.
#[derive(Default)]
struct LongestQueue {
    easy: Easy,
    length: usize,
}

impl Policy for LongestQueue {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        self.length = self.length.max(view.queue.len());
        self.easy.decide(view, decisions);
    }
}

/// EASY in the order of priorities, where a thousand users have jobs, beside other orders.
pub(super) fn priority(bench: &Bench) {
    let mut table = Table::new(
        "load | order | longest queue | jobs | ns/job, best | median | jobs/s | goal | met",
    );
    for load in [0.85, 1.5] {
        let workload = of_users(generate(100_000, load, Sizes::Mixed), 1000);
        let mut longest = LongestQueue::default();
        Simulation::new(&machine_of(&workload), &workload).run(&mut longest);
        for order in ["fcfs", "aged", "multifactor"] {
            let policy: PolicySpec = format!("easy(order={order})").parse().expect("a policy");
            let times = bench.time(policy, &workload);
            let mut row = vec![load.to_string(), order.to_owned()];
            row.extend([grouped(longest.length as u64), grouped(100_000)]);
            row.extend(times.cells(100_000));
            match order {
                "multifactor" => row.extend(speed_goal(times.speed(100_000), 100_000.0)),
                _ => row.extend([String::new(), String::new()]),
            }
            table.row(row);
        }
    }
    table.print();
}

/// The same jobs, of so many users, of whom the first ones have many: user k has 1/k of what the first has.
fn of_users(workload: Workload, users: u32) -> Workload {
    let all: f64 = (1..=users).map(|user| 1.0 / f64::from(user)).sum();
    // A fixed sequence that fills [0, 1) evenly.
    let draw = |job: usize| (job as f64 * 0.618_033_988_749_894_9).fract();
    let user = |job: usize| {
        let mut left = draw(job) * all;
        (1..users).find(|user| {
            left -= 1.0 / f64::from(*user);
            left < 0.0
        })
    };
    let run_times = (0..).map(JobId).map(|job| workload.run_time(job));
    let jobs = workload.jobs().iter().zip(run_times).enumerate().map(|(place, (job, run_time))| {
        let user = NonZeroU32::new(user(place).unwrap_or(users)).map(UserId);
        (Job { user, ..*job }, run_time)
    });
    Workload::new("users", jobs.collect::<Vec<_>>()).on_processors(workload.processors())
}

/// Real logs, on the machines they come from.
pub(super) fn logs(bench: &Bench) {
    let paths = log_paths();
    if paths.is_empty() {
        println!("Skipped: BUSBAR_TRACES, the folder of logs, is not set.");
        return;
    }
    let mut intakes = Table::new(
        "log | processors | records | skipped | usable | rejected | no estimate | estimate raised | out of order",
    );
    let mut table = Table::new("log | jobs | ns/job, best | median | jobs/s | goal | met");
    for path in paths {
        let log = swf::read_path(&path, BadRecords::Stop).expect("a log");
        let (mut workload, intake) = (log.workload, log.intake);
        let raised = workload.raise_estimates();
        let machine = machine_of(&workload);
        let run = simulate(PolicySpec::easy(), &machine, &workload);
        let rejected = run.records.iter().filter(|job| matches!(job.state, State::Rejected(_)));
        let mut row = vec![workload.name().to_owned()];
        row.extend(
            [
                machine.nodes.into(),
                intake.records,
                intake.skipped(),
                intake.usable,
                rejected.count() as u64,
                intake.estimate_from_run_time,
                raised as u64,
                intake.out_of_order,
            ]
            .map(grouped),
        );
        intakes.row(row);

        let jobs = workload.jobs().len() as u32;
        let times = bench.time(PolicySpec::easy(), &workload);
        let mut row = vec![workload.name().to_owned(), grouped(jobs.into())];
        row.extend(times.cells(jobs));
        row.extend(speed_goal(times.speed(jobs), 1_500_000.0));
        table.row(row);
    }
    intakes.print();
    println!();
    table.print();
}

/// What a job costs among more jobs.
pub(super) fn growth(bench: &Bench) {
    let mut table = Table::new("jobs | ns/job, best | median | jobs/s | factor | goal | met");
    let counts: &[u32] =
        if bench.quick { &[100_000, 1_000_000] } else { &[100_000, 1_000_000, 10_000_000] };
    let workloads: Vec<Workload> =
        counts.iter().map(|&jobs| generate(jobs, 0.85, Sizes::Mixed)).collect();
    // They take turns, so that the computer's own ups and downs are not taken for growth.
    let mut seconds = vec![Vec::new(); counts.len()];
    for _ in 0..if bench.quick { 3 } else { 9 } {
        for (workload, seconds) in workloads.iter().zip(&mut seconds) {
            let machine = machine_of(workload);
            seconds.push(timed(|| simulate(PolicySpec::easy(), &machine, workload)).0);
        }
    }
    let mut first = None;
    for (&jobs, seconds) in counts.iter().zip(seconds) {
        let times = Times::of(seconds);
        let cost = times.median / f64::from(jobs);
        let factor = cost / *first.get_or_insert(cost);
        let mut row = vec![grouped(jobs.into())];
        row.extend(times.cells(jobs));
        row.push(format!("{factor:.2} ×"));
        row.extend(["≤ 1.5 ×".to_owned(), met(factor <= 1.5)]);
        table.row(row);
    }
    table.print();
}

/// The most memory that is ever allocated in a simulation, beyond the workload.
pub(super) fn memory(_: &Bench) {
    let jobs = 1_000_000;
    println!(
        "The input is {} bytes a job; of what comes on top, {} are the record of what became of it.\n",
        size_of::<Job>() + size_of::<Span>(),
        size_of::<Record>()
    );
    let mut table = Table::new("load | sizes | jobs | peak, bytes/job | goal | met");
    for load in [0.85, 1.5] {
        for sizes in ALL_SIZES {
            let workload = generate(jobs, load, sizes);
            let machine = machine_of(&workload);
            let before = Counting::restart_peak();
            let run = simulate(PolicySpec::easy(), &machine, &workload);
            let bytes = (Counting::peak() - before) as f64 / f64::from(jobs);
            drop(run);
            table.row(vec![
                load.to_string(),
                sizes.to_string(),
                grouped(jobs.into()),
                format!("{bytes:.1}"),
                "≤ 100".to_owned(),
                met(bytes <= 100.0),
            ]);
        }
    }
    table.print();
}
