//! From file to file: a log is read, simulated, and what became of its jobs is written.

use std::path::Path;

use busbar::budget::Budget;
use busbar::metrics::RunContext;
use busbar::policy::PolicySpec;
use busbar::report::{write_jobs, write_whole};
use busbar::units::Span;
use busbar::workload::lublin::Sizes;
use busbar::workload::swf::{self, BadRecords};

use super::bench::{Bench, generate, machine_of, simulate, timed};
use super::table::{Table, grouped, nanos, speed_goal};

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
