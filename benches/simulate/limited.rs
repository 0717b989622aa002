//! Policies under a power limit, beside EASY; and conservative backfilling.

use std::path::PathBuf;

use busbar::budget::Budget;
use busbar::policy::PolicySpec;
use busbar::reproduce::pb_guided::{Options, reproduce};
use busbar::scenario::Scenario;
use busbar::units::Share;
use busbar::workload::Workload;
use busbar::workload::lublin::Sizes;
use busbar::workload::swf::{self, BadRecords};

use super::bench::{Bench, Times, generate, log_paths, machine_of, model_of, timed};
use super::table::{Table, grouped, met, speed_goal};

/// A reservation for every job.
pub(super) fn conservative(bench: &Bench) {
    let jobs = 100_000;
    let mut table = Table::new("sizes | jobs | ns/job, best | median | jobs/s | goal | met");
    let times =
        bench.time("conservative".parse().expect("a policy"), &generate(jobs, 0.85, Sizes::Mixed));
    let mut row = vec![Sizes::Mixed.to_string(), grouped(jobs.into())];
    row.extend(times.cells(jobs));
    row.extend(speed_goal(times.speed(jobs), 100_000.0));
    table.row(row);
    table.print();
}

/// The policies that mind power, under 80 % of the machine's. Each scenario is timed whole: random
/// numbers about jobs, the run of plain EASY that PB-guided takes its bounds from, the figures.
pub(super) fn guided(bench: &Bench) {
    let mut table = Table::new(
        "workload | jobs | policy | ns/job, best | median | jobs/s | of EASY's speed | goal | met",
    );
    let mut workloads = vec![
        ("load 0.85".to_owned(), generate(100_000, 0.85, Sizes::Mixed)),
        ("load 1.5".to_owned(), generate(100_000, 1.5, Sizes::Mixed)),
    ];
    for path in log_paths() {
        let mut workload = swf::read_path(&path, BadRecords::Stop).expect("a log").workload;
        workload.raise_estimates();
        workloads.push((workload.name().to_owned(), workload));
    }
    for (name, workload) in &workloads {
        let jobs = workload.jobs().len() as u32;
        let machine = machine_of(workload);
        let limit = Share::percent(80).of(machine.max_power());
        let policies = ["easy", "easy-power", "pb-guided", "pb-guided(beta=known)"];
        let policies: [PolicySpec; 4] = policies.map(|policy| policy.parse().expect("a policy"));
        let models = policies.each_ref().map(|policy| model_of(policy, &machine, workload));
        let mut ways = policies.iter().zip(&models);
        let scenarios = [(); 4].map(|()| {
            let (policy, model) = ways.next().expect("as many models as policies");
            let scenario = Scenario::new(&machine, workload, policy.clone(), model.as_ref());
            let budget = Budget::constant(limit);
            if policy.name() == "easy" { scenario } else { Scenario { budget, ..scenario } }
        });
        // They take turns, so that the computer's own ups and downs are not taken for a difference.
        let mut seconds = [const { Vec::new() }; 4];
        for _ in 0..if bench.quick { 3 } else { 15 } {
            for (scenario, seconds) in scenarios.iter().zip(&mut seconds) {
                seconds.push(timed(|| scenario.run()).0);
            }
        }
        let times = seconds.map(Times::of);
        for (scenario, ours) in scenarios.iter().zip(&times) {
            let mut row = vec![name.clone(), grouped(jobs.into()), scenario.policy.to_string()];
            row.extend(ours.cells(jobs));
            let share = times[0].median / ours.median;
            row.push(format!("{:.0} %", 100.0 * share));
            row.extend(match scenario.policy.name() {
                "pb-guided" => ["≥ 25 %".to_owned(), met(share >= 0.25)],
                _ => ["-".to_owned(), "-".to_owned()],
            });
            table.row(row);
        }
    }
    table.print();
    let traces = std::env::var_os("BUSBAR_TRACES").map(PathBuf::from);
    let options = Options { traces, seed: 1, ..Options::default() };
    let (seconds, _) = timed(|| reproduce(&options, &mut |_| {}).map(|done| done.findings.len()));
    println!("\nThe whole reproduction of the PB-guided paper: {seconds:.2} s.");
}

/// Whole logs under 60 % of the machine's power, where queues grow to thousands of jobs: the policies that
/// look at many of them at each turn. PARM runs on the smallest log alone.
pub(super) fn binding(_: &Bench) {
    let mut table = Table::new("workload | jobs | policy | seconds | of EASY's speed | goal | met");
    let mut workloads: Vec<Workload> = log_paths()
        .iter()
        .map(|path| swf::read_path(path, BadRecords::Stop).expect("a log").workload)
        .collect();
    workloads.iter_mut().for_each(|workload| _ = workload.raise_estimates());
    let smallest = workloads.iter().map(|workload| workload.jobs().len()).min();
    for workload in &workloads {
        let machine = machine_of(workload);
        let limit = Share::percent(60).of(machine.max_power());
        let mut easy = None;
        for (name, goal) in [("easy", None), ("conservative", Some(2.0)), ("parm", Some(3.0))] {
            if name == "parm" && Some(workload.jobs().len()) != smallest {
                continue;
            }
            let policy = name.parse().expect("a policy");
            let budget = Budget::constant(limit);
            let model = model_of(&policy, &machine, workload);
            let new = Scenario::new(&machine, workload, policy, model.as_ref());
            let scenario = Scenario { budget, ..new };
            let (seconds, _) = timed(|| scenario.run());
            let share = *easy.get_or_insert(seconds) / seconds;
            let mut row = vec![workload.name().to_owned(), grouped(workload.jobs().len() as u64)];
            row.extend([
                name.to_owned(),
                format!("{seconds:.2}"),
                format!("{:.1} %", 100.0 * share),
            ]);
            row.extend(match goal {
                Some(goal) => [format!("≤ {goal} s"), met(seconds <= goal)],
                None => ["-".to_owned(), "-".to_owned()],
            });
            table.row(row);
        }
    }
    table.print();
}
