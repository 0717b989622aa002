//! The daemon's web interface under load: what many readers do to the control cycles.
//!
//! `wrk` reads as fast as it can, while jobs are submitted and withdrawn one after another, each of which takes
//! a cycle. The same without readers stands beside it.

use std::process::Command;
use std::thread::scope;
use std::time::Duration;

use busbar::live::wire::{CycleTimes, Status};

use crate::served::Served;
use crate::{QUEUED, met};

pub(crate) fn measure(quick: bool) {
    if Command::new("wrk").arg("--version").output().is_err() {
        println!("\n### The web interface\n\nnot measured: there is no wrk; install it");
        return;
    }
    let seconds = if quick { 5 } else { 20 };
    let daemon = Served::start();
    println!("\n### The web interface\n");
    println!(
        "| jobs | what is read | clients | reads a second | cycles | mean ms | longer than 10 ms | without readers | \
         longest of the last thousand, ms | later than without readers, ms | met |\n\
         |---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    daemon.submit_one_by_one(1);
    let mut ahead = 1;
    for (jobs, path, clients) in [
        (1_000, "/api/v2/status", 16),
        (1_000, "/api/v2/jobs/2", 16),
        (1_000, "/metrics", 16),
        (QUEUED, "/api/v2/jobs", 16),
    ] {
        daemon.pour(jobs + 1 - ahead);
        ahead = jobs + 1;
        let alone = Load::of(&daemon, seconds, None);
        let url = format!("http://{}{path}", daemon.web());
        let read = Load::of(&daemon, seconds, Some((&url, clients)));
        let (longest, later) = (read.longest, read.longest - alone.longest);
        println!(
            "| {jobs} | `{path}` | {clients} | {:.0} | {} | {:.2} | {} | {} of {} | {longest:.1} | {later:.1} | {} |",
            read.rate,
            read.cycles,
            read.mean,
            read.long,
            alone.long,
            alone.cycles,
            met(later <= 10.0)
        );
    }
}

/// What happened in some seconds.
struct Load {
    /// Reads a second, if anybody read.
    rate: f64,
    cycles: u64,
    /// How long a cycle took, in milliseconds.
    mean: f64,
    /// Cycles that took longer than ten milliseconds.
    long: u64,
    /// The longest of them, in milliseconds.
    longest: f64,
}

impl Load {
    fn of(daemon: &Served, seconds: u64, readers: Option<(&str, u32)>) -> Self {
        // The longest of the last thousand is remembered: those before are to be forgotten.
        daemon.submit_and_cancel(Duration::ZERO, 600);
        let before = daemon.status();
        let rate = scope(|threads| {
            let readers =
                readers.map(|(url, clients)| threads.spawn(move || read(url, clients, seconds)));
            daemon.submit_and_cancel(Duration::from_secs(seconds), 0);
            readers.map_or(0.0, |readers| readers.join().expect("readers"))
        });
        let after = daemon.status();
        let cycles = after.cycles - before.cycles;
        let time = after.cycle_times.sum - before.cycle_times.sum;
        let in_time = within(&after, 10_000) - within(&before, 10_000);
        Load {
            rate,
            cycles,
            mean: time as f64 / 1e3 / cycles.max(1) as f64,
            long: cycles.saturating_sub(in_time),
            longest: after.longest_cycle as f64 / 1e3,
        }
    }
}

/// How many cycles took at most so many microseconds.
fn within(status: &Status, micros: u64) -> u64 {
    let CycleTimes { at_most, .. } = &status.cycle_times;
    at_most.iter().find(|within| within.time == micros).map_or(0, |within| within.cycles)
}

/// Reads as fast as it can; says how often a second.
fn read(url: &str, clients: u32, seconds: u64) -> f64 {
    let mut command = Command::new("wrk");
    command.args(["-t1", &format!("-c{clients}"), &format!("-d{seconds}s"), url]);
    let output = command.output().expect("wrk");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!text.contains("Non-2xx"), "{text}");
    let rate = text.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:"));
    rate.and_then(|rate| rate.trim().parse().ok()).unwrap_or_else(|| panic!("{text}"))
}
