//! From file to file: a log is read, simulated, and what became of its jobs is written.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use busbar::budget::Budget;
use busbar::metrics::RunContext;
use busbar::policy::PolicySpec;
use busbar::report::{write_jobs, write_whole};
use busbar::units::Span;
use busbar::workload::lublin::Sizes;
use busbar::workload::swf::{self, BadRecords};

use super::bench::{Bench, generate, machine_of, simulate, timed};
use super::table::{Table, grouped, met, nanos, speed_goal};

/// Reading a log, simulating it and writing what became of its jobs.
pub(super) fn files(bench: &Bench) {
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

/// Seconds for reading, simulating and writing.
fn from_file_to_file(log: &Path, csv: &Path) -> [f64; 3] {
    let (read, workload) = timed(|| {
        let mut workload = swf::read_path(log, BadRecords::Stop).expect("a log").workload;
        workload.raise_estimates();
        workload
    });
    let machine = machine_of(&workload);
    let (simulate, run) = timed(|| simulate(PolicySpec::easy(), &machine, &workload));
    let subject = RunContext {
        policy: "easy",
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

/// `busbar simulate LOG --out DIR` with all its files: by the clock, on all cores, with the most memory that the
/// process had and the size of its page.
pub(super) fn folder(bench: &Bench) {
    const MOST_MEMORY: u64 = 250_000_000;
    const MOST_PAGE: u64 = 3_000_000;
    let mut table =
        Table::new("jobs | s | jobs/s | goal | met | memory, MB | met | page, MB | met");
    for jobs in if bench.quick { vec![100_000] } else { vec![100_000, 1_000_000] } {
        let log = bench.write_log(&generate(jobs, 0.85, Sizes::Mixed));
        let out = bench.folder.path().join("out");
        let runs = (0..if bench.quick { 1 } else { 5 }).map(|_| with_files(&log, &out));
        let (seconds, memory) = runs.min_by(|one, other| one.0.total_cmp(&other.0)).expect("a run");
        let page = fs::metadata(out.join("report.html")).expect("a page").len();
        let speed = f64::from(jobs) / seconds;
        let mut row = vec![grouped(jobs.into()), format!("{seconds:.2}"), grouped(speed as u64)];
        row.extend(speed_goal(speed, 1_000_000.0));
        let megabytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
        row.extend([megabytes(memory), met(memory <= MOST_MEMORY)]);
        row.extend([megabytes(page), met(page <= MOST_PAGE)]);
        table.row(row);
    }
    table.print();
}

/// The seconds that a command took, and the most bytes that it had in memory; none where the system does not say.
fn with_files(log: &Path, out: &Path) -> (f64, u64) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_busbar"));
    command.arg("simulate").arg(log).arg("--out").arg(out);
    let began = Instant::now();
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program runs");
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    let ended = loop {
        if let Some(ended) = child.try_wait().expect("a child of ours") {
            break ended;
        }
        // The system keeps the peak, so that it is enough to look now and then.
        let status = fs::read_to_string(&status).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok());
        most = most.max(kibibytes.unwrap_or(0) * 1024);
        sleep(Duration::from_millis(5));
    };
    assert!(ended.success(), "a sound run");
    (began.elapsed().as_secs_f64(), most)
}
