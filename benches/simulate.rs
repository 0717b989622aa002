//! The goals for speed and memory, measured: `cargo bench`.
//!
//! `cargo bench -- --quick` is a short form of it; words choose sections, as in
//! `cargo bench -- overload logs`. The tables are printed as Markdown. What is timed and how is
//! told in `benches/README.md`, beside the figures.

// For the allocator that counts, and nothing else.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::hint::black_box;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use busbar::budget::Budget;
use busbar::job::Job;
use busbar::machine::Machine;
use busbar::metrics::RunContext;
use busbar::model::{Beliefs, Model, Profiled};
use busbar::policy::{BuildContext, Decision, Easy, Policy, PolicySpec, View};
use busbar::profile::Profile;
use busbar::profile::cab::{self, Preset};
use busbar::report::{write_jobs, write_whole};
use busbar::reproduce::papers;
use busbar::reproduce::pb_guided::{Options, reproduce};
use busbar::scenario::Scenario;
use busbar::sim::{Record, Run, Simulation, State};
use busbar::units::{self, Share, Span, Watts};
use busbar::workload::Workload;
use busbar::workload::lublin::{Lublin, Sizes};
use busbar::workload::records::{Importer, Options as ImportOptions};
use busbar::workload::rmap::{Trace, UsualTimes};
use busbar::workload::swf::{self, BadRecords};
use tempfile::TempDir;

#[path = "simulate/calendar.rs"]
mod calendar;

/// Processors of the machine that synthetic workloads run on.
const PROCESSORS: u32 = 1024;
const ALL_SIZES: [Sizes; 3] = [Sizes::Mixed, Sizes::PowersOfTwo, Sizes::Any];

/// The word that chooses a section, its title, and what runs it.
type Section = (&'static str, &'static str, fn(&Bench));

const SECTIONS: [Section; 14] = [
    ("easy", "EASY at load 0.85", easy),
    ("overload", "EASY at load 1.5", overload),
    ("files", "From file to file at load 0.85", files),
    ("records", "Import of records of Slurm", records),
    ("logs", "Whole logs, EASY", logs),
    ("growth", "Growth with the number of jobs, EASY at load 0.85", growth),
    ("memory", "Memory, EASY", memory),
    ("conservative", "Conservative backfilling at load 0.85", conservative),
    ("guided", "Under a power limit, beside EASY without one", guided),
    ("binding", "Whole logs under a limit that binds, beside EASY under the same", binding),
    ("calendar", "A queue that only grows, while limits are to come", calendar::calendar),
    ("malleable", "PARM on 40 960 nodes", malleable),
    ("moldable", "RMAP with 10 000 jobs in the queue", moldable),
    ("share", "Share with 10 000 jobs in the queue", share),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        println!("not run as a benchmark; see cargo bench");
        return;
    }
    let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with("--")).collect();
    if let Some(word) = words.iter().find(|word| SECTIONS.iter().all(|section| section.0 != **word))
    {
        let valid = SECTIONS.map(|section| section.0).join(", ");
        eprintln!("no section '{word}'; valid: {valid}");
        std::process::exit(2);
    }
    let bench = Bench::new(arguments.iter().any(|argument| argument == "--quick"));
    bench.introduce();
    for (word, title, run) in SECTIONS {
        if words.is_empty() || words.contains(&&word.to_owned()) {
            println!("\n## {title}\n");
            run(&bench);
        }
    }
    println!("\nLoad average after: {}", load_average());
}

/// EASY below saturation, beside the plain loop.
fn easy(bench: &Bench) {
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
                (bench.time(PolicySpec::EASY, &workload), None)
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
fn overload(bench: &Bench) {
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
        let times = bench.time(PolicySpec::EASY, &workload);
        let mut longest = LongestQueue::default();
        Simulation::new(&machine_of(&workload), &workload).run(&mut longest);
        let mut row = vec![sizes.to_string(), grouped(1_000_000), grouped(longest.length as u64)];
        row.extend(times.cells(1_000_000));
        row.extend(speed_goal(times.speed(1_000_000), goal));
        table.row(row);
    }
    table.print();
}

/// Reading a log, simulating it and writing what became of its jobs.
fn files(bench: &Bench) {
    let mut table =
        Table::new("jobs | run | read, ns/job | simulate | write | together | jobs/s | goal | met");
    for jobs in [100_000, 1_000_000] {
        let log = bench.write_log(&generate(jobs, 0.85, Sizes::Mixed));
        let csv = bench.folder.path().join("jobs.csv");
        let runs = bench.repeat(|| from_file_to_file(&log, &csv));
        for (name, parts) in [("best", runs[0]), ("median", runs[runs.len() / 2])] {
            let whole: f64 = parts.iter().sum();
            let speed = f64::from(jobs) / whole;
            let mut row = vec![grouped(jobs.into()), name.to_owned()];
            row.extend([parts[0], parts[1], parts[2], whole].map(|part| nanos(part, jobs)));
            row.push(grouped(speed as u64));
            row.extend(speed_goal(speed, 2_000_000.0));
            table.row(row);
        }
    }
    table.print();
}

/// Lines of `sacct` in a file, to a log in another; the peak of memory is that of the import alone.
fn records(bench: &Bench) {
    let mut table = Table::new("lines | what | run | s | lines/s | bytes/line | goal | met");
    let counts = if bench.quick { &[100_000u32][..] } else { &[100_000, 1_000_000] };
    for (lines, steps) in counts.iter().flat_map(|lines| [(*lines, 0), (*lines, 2)]) {
        let folder = bench.folder.path();
        let (dump, log) = (folder.join("dump.txt"), folder.join("dump.swf"));
        write_whole(&dump, &|out| write_sacct(out, lines, steps)).expect("a dump");
        let mut peak = 0;
        let runs = bench.repeat(|| {
            let before = Counting::restart_peak();
            let (seconds, ()) = timed(|| import(&dump, &log));
            peak = Counting::peak() - before;
            [seconds]
        });
        let bytes = peak as f64 / f64::from(lines);
        for (run, [seconds]) in [("best", runs[0]), ("median", runs[runs.len() / 2])] {
            let speed = f64::from(lines) / seconds;
            table.row(vec![
                grouped(lines.into()),
                if steps == 0 { "jobs" } else { "jobs and steps" }.to_owned(),
                run.to_owned(),
                format!("{seconds:.2}"),
                grouped(speed as u64),
                format!("{bytes:.0}"),
                "≥ 200 000 lines/s, ≤ 200 bytes".to_owned(),
                met(speed >= 200_000.0 && bytes <= 200.0),
            ]);
        }
    }
    table.print();
}

fn import(dump: &Path, log: &Path) {
    let mut importer = Importer::new(ImportOptions::default()).expect("UTC");
    importer.read_path(dump).expect("a dump");
    let import = importer.finish().expect("runs");
    let comments = import.comments(None);
    let write = |mut out: &mut dyn Write| swf::write(&mut out, &comments, import.records());
    write_whole(log, &write).expect("a log");
}

/// A dump of jobs with so many steps each, and the columns that the documentation recommends.
fn write_sacct(out: &mut dyn Write, lines: u32, steps: u32) -> io::Result<()> {
    writeln!(
        out,
        "JobIDRaw|JobID|User|Account|Partition|QOS|State|Submit|Start|End|Timelimit|NNodes|AllocCPUS|ConsumedEnergyRaw|\
         JobName"
    )?;
    for line in 0..lines {
        let (job, step) = (line / (1 + steps), line % (1 + steps));
        let (day, hour, minute) = (1 + job / 1440 % 28, job / 60 % 24, job % 60);
        let time = |second: u32| format!("2024-03-{day:02}T{hour:02}:{minute:02}:{second:02}");
        let id = format!("{}{}", 1000 + job, ["", ".batch", ".extern"][step as usize]);
        let (submit, start, end) = (time(1), time(7), time(7 + job % 50));
        let (user, account) = (job * 7 % 400, job * 7 % 60);
        let (nodes, state) = (1 + job % 8, ["COMPLETED", "FAILED", "TIMEOUT"][(job % 3) as usize]);
        let (cpus, energy) = (48 * nodes, 20_000 + job % 9000);
        writeln!(
            out,
            "{id}|{id}|user{user}|account{account}|main|normal|{state}|{submit}|{start}|{end}|1-00:00:00|{nodes}|{cpus}|\
             {energy}|run_{job}"
        )?;
    }
    Ok(())
}

/// Seconds for reading, simulating and writing.
fn from_file_to_file(log: &Path, csv: &Path) -> [f64; 3] {
    let (read, workload) = timed(|| {
        let mut workload = swf::read_path(log, BadRecords::Stop).expect("a log").workload;
        workload.raise_estimates();
        workload
    });
    let machine = machine_of(&workload);
    let (simulate, run) = timed(|| simulate(PolicySpec::EASY, &machine, &workload));
    let subject = RunContext {
        policy: PolicySpec::EASY.name(),
        machine: &machine,
        workload: &workload,
        budget: &Budget::unlimited(),
        bsld_threshold: Span::from_secs(600),
        has_gears: true,
        has_reference: true,
        freedoms: None,
        world: None,
        windows: None,
    };
    let (write, result) = timed(|| write_whole(csv, &|out| write_jobs(out, &subject, &run)));
    result.expect("a file that can be written");
    [read, simulate, write]
}

/// Real logs, on the machines they come from.
fn logs(bench: &Bench) {
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
        let run = simulate(PolicySpec::EASY, &machine, &workload);
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
        let times = bench.time(PolicySpec::EASY, &workload);
        let mut row = vec![workload.name().to_owned(), grouped(jobs.into())];
        row.extend(times.cells(jobs));
        row.extend(speed_goal(times.speed(jobs), 1_500_000.0));
        table.row(row);
    }
    intakes.print();
    println!();
    table.print();
}

/// The logs in the folder that `BUSBAR_TRACES` names, if it does.
fn log_paths() -> Vec<PathBuf> {
    let Some(folder) = std::env::var_os("BUSBAR_TRACES") else { return Vec::new() };
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    let is_log = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.ends_with(".swf") || name.ends_with(".swf.gz")
    };
    let mut paths: Vec<PathBuf> = files.filter(is_log).collect();
    paths.sort();
    paths
}

/// What a job costs among more jobs.
fn growth(bench: &Bench) {
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
            seconds.push(timed(|| simulate(PolicySpec::EASY, &machine, workload)).0);
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
fn memory(_: &Bench) {
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
            let run = simulate(PolicySpec::EASY, &machine, &workload);
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

/// A reservation for every job.
fn conservative(bench: &Bench) {
    let jobs = 100_000;
    let mut table = Table::new("sizes | jobs | ns/job, best | median | jobs/s | goal | met");
    let times = bench.time(PolicySpec::Conservative, &generate(jobs, 0.85, Sizes::Mixed));
    let mut row = vec![Sizes::Mixed.to_string(), grouped(jobs.into())];
    row.extend(times.cells(jobs));
    row.extend(speed_goal(times.speed(jobs), 100_000.0));
    table.row(row);
    table.print();
}

/// The policies that mind power, under 80 % of the machine's. Each scenario is timed whole: random
/// numbers about jobs, the run of plain EASY that PB-guided takes its bounds from, the figures.
fn guided(bench: &Bench) {
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
        let models = policies.map(|policy| model_of(&policy, &machine, workload));
        let mut ways = policies.iter().zip(&models);
        let scenarios = [(); 4].map(|()| {
            let (policy, model) = ways.next().expect("as many models as policies");
            let scenario = Scenario::new(&machine, workload, *policy, model.as_ref());
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
            row.extend(match scenario.policy {
                PolicySpec::PbGuided(_) => ["≥ 25 %".to_owned(), met(share >= 0.25)],
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
fn binding(_: &Bench) {
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

/// RMAP's policies on the 64 nodes of cab, with 10 000 jobs that all come at once: how long a turn
/// takes. Users ask for the time their application takes, or for up to twice that, each for another.
fn moldable(bench: &Bench) {
    let mut table =
        Table::new("requests | policy | turns | µs/turn, best | median | jobs/s | goal | met");
    let machine = Machine::cab();
    let profiles = cab::generate(Preset::Cab, 1);
    let usual = UsualTimes(profiles.iter().map(Profile::usual_times).collect());
    let trace = Trace { jobs: 10_000, gaps: 0.0, ..Trace::default() };
    let alike = trace.draw(&usual, 1).expect("a trace");
    let jobs =
        alike.jobs().iter().zip(alike.run_times()).zip(0u64..).map(|((job, time), place)| {
            // A different share of the time for each job, in no order.
            let more = job.requested.millis() * (place * 7919 % 10_007) / 10_007;
            let requested = Span::from_millis(job.requested.millis() + more);
            (Job { requested, ..*job }, *time)
        });
    let different = Workload::new("different", jobs);
    for (name, workload) in [("alike", &alike), ("all different", &different)] {
        let model = Profiled::new(&machine, &profiles, workload.jobs(), Beliefs::default());
        let model = model.expect("applications with profiles");
        for policy in ["rmap-traditional", "rmap-naive", "rmap-adaptive(slowdown=10%)"] {
            let scenario = Scenario {
                budget: Budget::constant(Watts::from_watts(8000)),
                ..Scenario::new(&machine, workload, policy.parse().expect("a policy"), &model)
            };
            let (times, turns) = bench.time_turns(&scenario);
            let micros = |seconds: f64| seconds * 1e6 / turns as f64;
            table.row(vec![
                name.to_owned(),
                policy.to_owned(),
                grouped(turns),
                format!("{:.1}", micros(times.best)),
                format!("{:.1}", micros(times.median)),
                grouped(times.speed(10_000) as u64),
                "< 20".to_owned(),
                met(micros(times.median) < 20.0),
            ]);
        }
    }
    table.print();
}

/// Share beside EASY on 256 nodes with 10 000 jobs that all come at once, under 60 % of the power: how long a turn
/// takes.
fn share(bench: &Bench) {
    let mut table = Table::new("policy | turns | µs/turn, best | median | of EASY's | goal | met");
    let machine = Machine::of_processors(256).expect("a machine");
    let lublin = Lublin { jobs: 10_000, processors: 256, load: 1.0, ..Lublin::default() };
    let drawn = lublin.generate().expect("a workload");
    let at_once = drawn.jobs().iter().zip(drawn.run_times());
    let at_once = at_once.map(|(job, time)| (Job { submit: units::Instant::ZERO, ..*job }, *time));
    let workload = Workload::new("at once", at_once.collect::<Vec<_>>());
    let mut easy = None;
    for (policy, goal) in [
        ("easy", None),
        ("easy(order=history)", None),
        ("share(use=caps)", Some(5.0)),
        ("share(use=caps, order=aged)", Some(5.0)),
        ("share(use=caps, order=history)", Some(5.0)),
        ("share(use=recaps)", None),
        ("share(use=sizes)", None),
        ("share(use=resizes)", None),
    ] {
        let spec = policy.parse().expect("a policy");
        let model = model_of(&spec, &machine, &workload);
        let scenario = Scenario {
            budget: Budget::constant(Share::percent(60).of(machine.max_power())),
            ..Scenario::new(&machine, &workload, spec, model.as_ref())
        };
        let (times, turns) = bench.time_turns(&scenario);
        let micros = |seconds: f64| seconds * 1e6 / turns as f64;
        let median = micros(times.median);
        let mut row = vec![policy.to_owned(), grouped(turns), format!("{:.1}", micros(times.best))];
        row.push(format!("{median:.1}"));
        row.push(format!("{:.1}", median / *easy.get_or_insert(median)));
        row.extend(match goal {
            Some(goal) => [format!("≤ {goal}"), met(median <= goal)],
            None => ["-".to_owned(), "-".to_owned()],
        });
        table.row(row);
    }
    table.print();
}

/// How jobs run in the paper of a policy.
fn model_of(policy: &PolicySpec, machine: &Machine, workload: &Workload) -> Box<dyn Model> {
    papers::model(policy, machine, workload.jobs(), 1).expect("a policy whose paper has a model")
}

/// PARM on a machine of the size of the paper's projection under 80 % of its power, which is not
/// enough for the load.
fn malleable(bench: &Bench) {
    let mut table = Table::new("policy | jobs | turns | s, best | median | ms/turn | goal | met");
    let machine = Machine::of_processors(40_960).expect("a machine");
    let lublin = Lublin { jobs: 1000, processors: 40_960, load: 1.0, ..Lublin::default() };
    let workload = lublin.generate().expect("a workload");
    for policy in ["parm(flex=none)", "parm(flex=moldable)", "parm"] {
        let spec = policy.parse().expect("a policy");
        let model = model_of(&spec, &machine, &workload);
        let scenario = Scenario {
            budget: Budget::constant(Share::percent(80).of(machine.max_power())),
            ..Scenario::new(&machine, &workload, spec, model.as_ref())
        };
        let (times, turns) = bench.time_turns(&scenario);
        table.row(vec![
            policy.to_owned(),
            grouped(1000),
            grouped(turns),
            format!("{:.2}", times.best),
            format!("{:.2}", times.median),
            format!("{:.3}", times.median * 1e3 / turns as f64),
            "< 10 s".to_owned(),
            met(times.median < 10.0),
        ]);
    }
    table.print();
}

/// How to measure, and where to put files.
struct Bench {
    quick: bool,
    folder: TempDir,
    /// The Python that runs the plain loop, if there is one.
    python: Option<String>,
}

impl Bench {
    fn new(quick: bool) -> Self {
        let folder = TempDir::new().expect("a folder for files");
        Bench { quick, folder, python: version("python3") }
    }

    /// Says what this is measured on.
    fn introduce(&self) {
        let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = processor.lines().find_map(|line| line.strip_prefix("model name"));
        let processor =
            processor.map_or("unknown", |name| name.trim_start_matches(['\t', ' ', ':']));
        println!("- processor: {processor}, one core of it in use");
        println!("- compiler: {}", version("rustc").as_deref().unwrap_or("unknown"));
        println!(
            "- plain loop: {}",
            self.python.as_deref().unwrap_or("left out, there is no python3")
        );
        println!("- load average before: {}", load_average());
        println!("- form: {}", if self.quick { "quick" } else { "full" });
    }

    /// Calls `work`, which says how many seconds each of its parts took, several times: the
    /// answers from the fastest to the slowest.
    fn repeat<const N: usize>(&self, mut work: impl FnMut() -> [f64; N]) -> Vec<[f64; N]> {
        let (least, most, seconds) = if self.quick { (3, 9, 0.5) } else { (5, 25, 5.0) };
        let began = Instant::now();
        let mut runs = Vec::new();
        while runs.len() < least || (runs.len() < most && began.elapsed().as_secs_f64() < seconds) {
            runs.push(work());
        }
        runs.sort_by(|a, b| a.iter().sum::<f64>().total_cmp(&b.iter().sum()));
        runs
    }

    /// The time that a simulation takes, with everything it sets up and keeps.
    fn time(&self, policy: PolicySpec, workload: &Workload) -> Times {
        let machine = machine_of(workload);
        let runs = self.repeat(|| [timed(|| simulate(policy, &machine, workload)).0]);
        Times::of(runs.into_iter().flatten().collect())
    }

    /// The time that EASY takes, and the median time of the plain loop for the same workload if
    /// there is a Python. They take turns, so that both get their share of whatever else the
    /// computer does; and they have to come to the same mean wait, or are not to be compared.
    fn time_beside_plain(&self, workload: &Workload) -> (Times, Option<f64>) {
        if self.python.is_none() {
            return (self.time(PolicySpec::EASY, workload), None);
        }
        let log = self.write_log(workload);
        let machine = machine_of(workload);
        let (mut ours, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..if self.quick { 1 } else { 5 } {
            let mut wait = 0.0;
            for _ in 0..5 {
                let (seconds, run) = timed(|| simulate(PolicySpec::EASY, &machine, workload));
                ours.push(seconds);
                wait = mean_wait(workload, &run);
            }
            let (seconds, plain_wait) = plain_loop(&log);
            plain.push(seconds);
            let same = (plain_wait - wait).abs() <= 1e-9 * wait;
            assert!(same, "mean wait {wait}, but {plain_wait} in the plain loop");
        }
        (Times::of(ours), Some(Times::of(plain).median))
    }

    /// The time that a scenario takes, and how many turns its policy has in it.
    fn time_turns(&self, scenario: &Scenario<'_>) -> (Times, u64) {
        let mut turns = 0;
        let runs = self.repeat(|| {
            let (seconds, simulated) = timed(|| scenario.simulate());
            turns = simulated.run.turns;
            [seconds]
        });
        (Times::of(runs.into_iter().flatten().collect()), turns)
    }

    fn write_log(&self, workload: &Workload) -> PathBuf {
        let path = self.folder.path().join("workload.swf");
        let jobs = || workload.jobs().iter().zip(workload.run_times());
        let records = || jobs().map(|(job, run_time)| swf::Record::new(job, *run_time));
        let comments = swf::describe(workload);
        write_whole(&path, &|mut out| swf::write(&mut out, &comments, records()))
            .expect("a file that can be written");
        path
    }
}

/// Runs the plain loop on a log: the seconds its simulation took, and the mean wait.
fn plain_loop(log: &Path) -> (f64, f64) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/plain_easy.py");
    let output = Command::new("python3").arg(script).arg(log).arg(PROCESSORS.to_string()).output();
    let output = output.expect("python3 was there a moment ago");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the plain loop failed: {errors}");
    let answer: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("one JSON object");
    let figure = |key: &str| answer[key].as_f64().expect(key);
    (figure("simulate_s"), figure("mean_wait_s"))
}

fn mean_wait(workload: &Workload, run: &Run) -> f64 {
    let jobs = workload.jobs().iter().zip(&run.records);
    let waits = jobs.map(|(job, record)| record.start.since(job.submit).secs_f64());
    waits.sum::<f64>() / run.records.len() as f64
}

/// How long the same thing took, in seconds.
struct Times {
    best: f64,
    median: f64,
}

impl Times {
    fn of(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        Times { best: seconds[0], median: seconds[seconds.len() / 2] }
    }

    /// Jobs a second, by the median.
    fn speed(&self, jobs: u32) -> f64 {
        f64::from(jobs) / self.median
    }

    fn cells(&self, jobs: u32) -> [String; 3] {
        [nanos(self.best, jobs), nanos(self.median, jobs), grouped(self.speed(jobs) as u64)]
    }
}

/// Seconds that something takes. What comes out of it is thrown away later.
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let began = Instant::now();
    let result = black_box(work());
    (began.elapsed().as_secs_f64(), result)
}

fn generate(jobs: u32, load: f64, sizes: Sizes) -> Workload {
    let lublin = Lublin { jobs, load, sizes, processors: PROCESSORS, ..Lublin::default() };
    lublin.generate().expect("valid parameters")
}

/// The machine a workload comes from, or one its largest job just fits on.
fn machine_of(workload: &Workload) -> Machine {
    let processors = workload.processors().unwrap_or(workload.largest_job());
    Machine::of_processors(processors).expect("a machine")
}

fn simulate(policy: PolicySpec, machine: &Machine, workload: &Workload) -> Run {
    let run =
        Simulation::new(machine, workload).run(policy.build(&BuildContext::default()).as_mut());
    assert_eq!((run.unfinished, run.violations), (0, 0), "not a sound run");
    run
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

/// How busy the computer was in the last minute. Its other work makes ours slower.
fn load_average() -> String {
    let averages = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    averages.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown").to_owned()
}

/// What `program --version` says.
fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The plain loop's speed, how many times faster we are (median against median), and the goal.
fn ratio_cells(jobs: u32, times: &Times, plain: Option<f64>, goal: f64) -> [String; 4] {
    let goal_cell = format!("≥ {goal} × plain");
    let Some(plain) = plain else {
        return ["-".to_owned(), "-".to_owned(), goal_cell, "not measured".to_owned()];
    };
    let ratio = plain / times.median;
    let speed = f64::from(jobs) / plain;
    [grouped(speed as u64), format!("{ratio:.1} ×"), goal_cell, met(ratio >= goal)]
}

fn speed_goal(speed: f64, goal: f64) -> [String; 2] {
    [format!("≥ {} jobs/s", grouped(goal as u64)), met(speed >= goal)]
}

fn met(is_met: bool) -> String {
    if is_met { "yes" } else { "NO" }.to_owned()
}

fn nanos(seconds: f64, jobs: u32) -> String {
    format!("{:.1}", seconds * 1e9 / f64::from(jobs))
}

/// A number with a gap after every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8(groups.join(&b' ')).expect("digits")
}

/// A Markdown table: the first column to the left, the others to the right.
struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(head: &str) -> Self {
        Table { rows: vec![head.split(" | ").map(str::to_owned).collect()] }
    }

    fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.rows[0].len(), "a cell for every column");
        self.rows.push(cells);
    }

    fn print(&self) {
        let width = |column: usize| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        for (i, row) in self.rows.iter().enumerate() {
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                match column {
                    0 => print!("| {cell:<width$} |"),
                    _ => print!(" {cell:>width$} |"),
                }
            }
            println!();
            if i == 0 {
                print!("|{}|", "-".repeat(widths[0] + 2));
                widths[1..].iter().for_each(|width| print!("{}:|", "-".repeat(width + 1)));
                println!();
            }
        }
    }
}

/// The system's allocator, counting what is allocated and the most that ever was.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

impl Counting {
    /// Forgets the peak until now; returns what is allocated.
    fn restart_peak() -> usize {
        let allocated = ALLOCATED.load(Relaxed);
        PEAK.store(allocated, Relaxed);
        allocated
    }

    fn peak() -> usize {
        PEAK.load(Relaxed)
    }

    fn more(bytes: usize) {
        PEAK.fetch_max(ALLOCATED.fetch_add(bytes, Relaxed) + bytes, Relaxed);
    }

    fn less(bytes: usize) {
        ALLOCATED.fetch_sub(bytes, Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator as it came; counting touches no memory of
// theirs and does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Counting::more(layout.size());
        // SAFETY: the caller's promises are those the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Counting::more(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        Counting::less(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // For a moment both may be there.
        Counting::more(size);
        Counting::less(layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, size) }
    }
}
