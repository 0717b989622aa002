//! The goals for the daemon under load, measured: `cargo bench --bench live`.
//!
//! `cargo bench --bench live -- --quick` is a short form of it; words choose sections, as in
//! `-- cycles`. What is timed and how is told in `benches/README.md`, beside the figures.

mod cycles;
mod served;
mod soak;
mod story;
mod web;

use std::fs;
use std::process::Command;

/// So many jobs wait.
const QUEUED: usize = 10_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        println!("not run as a benchmark; see cargo bench");
        return;
    }
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let words: Vec<&str> =
        arguments.iter().map(String::as_str).filter(|word| !word.starts_with("--")).collect();
    let is_chosen = |section: &str| words.is_empty() || words.contains(&section);
    introduce(quick);
    // First, since what others leave behind in memory would be counted.
    if is_chosen("soak") {
        soak::measure(if quick { 2_000 } else { 20_000 });
    }
    if is_chosen("cycles") {
        cycles::measure(if quick { 50 } else { 500 });
    }
    if is_chosen("served") {
        served::measure(quick);
    }
    if is_chosen("web") {
        web::measure(quick);
    }
    println!("\nLoad average after: {}", load_average());
}

fn introduce(quick: bool) {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor.lines().find_map(|line| line.strip_prefix("model name"));
    let processor = processor.map_or("unknown", |name| name.trim_start_matches(['\t', ' ', ':']));
    let compiler = Command::new("rustc").arg("--version").output();
    let compiler = compiler.map_or("unknown".to_owned(), |output| {
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    });
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("- processor: {processor}, {cores} cores");
    println!("- compiler: {compiler}");
    println!("- load average before: {}", load_average());
    println!("- form: {}", if quick { "quick" } else { "full" });
}

fn load_average() -> String {
    let averages = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    averages.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown").to_owned()
}

/// What a process has in memory, in MiB.
fn resident(process: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.map_or(f64::NAN, |kib| kib / 1024.0)
}

/// Times in milliseconds, to be looked at together.
struct Times(Vec<f64>);

impl Times {
    fn new(mut millis: Vec<f64>) -> Self {
        assert!(!millis.is_empty(), "something was timed");
        millis.sort_by(f64::total_cmp);
        Times(millis)
    }

    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// What so many percent of them do not exceed.
    fn percent(&self, percent: usize) -> f64 {
        self.0[(self.0.len() * percent).div_ceil(100).max(1) - 1]
    }

    fn worst(&self) -> f64 {
        self.percent(100)
    }
}

fn met(is_met: bool) -> &'static str {
    if is_met { "yes" } else { "NO" }
}
