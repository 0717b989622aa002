//! The program as people run it: `busbar simulate`, with the jobs a second that it reports itself.

use std::path::Path;
use std::process::Command;

use super::bench::{Bench, log_paths};
use super::table::{Table, grouped, met, speed_goal};

/// What a command reports of itself.
pub(super) struct Reported {
    pub(super) jobs: u64,
    seconds: f64,
}

impl Reported {
    pub(super) fn speed(&self) -> f64 {
        self.jobs as f64 / self.seconds
    }
}

/// The fastest of several runs.
pub(super) fn simulate(log: &Path, arguments: &[&str], runs: usize) -> Reported {
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_busbar"));
        let output = command.arg("simulate").arg(log).args(arguments).arg("--json").output();
        let output = output.expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let seconds = answer["simulate_s"].as_f64().expect("a time");
        Reported { jobs: answer["jobs"].as_u64().expect("a number"), seconds }
    };
    (0..runs).map(|_| run()).min_by(|a, b| a.seconds.total_cmp(&b.seconds)).expect("a run")
}

fn name(log: &Path) -> String {
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// `busbar simulate LOG`: the world of unlike nodes that all policies share, without a budget.
pub(super) fn command(bench: &Bench) {
    let mut table = Table::new("log | jobs | jobs/s | goal | met");
    for log in log_paths() {
        let best = simulate(&log, &["--policy", "easy"], if bench.quick { 3 } else { 15 });
        let mut row = vec![name(&log), grouped(best.jobs), grouped(best.speed() as u64)];
        row.extend(speed_goal(best.speed(), 1_500_000.0));
        table.row(row);
    }
    table.print();
}

/// Every policy on the first jobs of each log under 60 % of the power, and on four times as many.
pub(super) fn scale(bench: &Bench) {
    const POLICIES: [(&str, f64, u32); 11] = [
        ("easy-power", 250_000.0, 5_000),
        ("pb-guided", 250_000.0, 5_000),
        ("rmap-traditional", 250_000.0, 5_000),
        ("rmap-adaptive", 250_000.0, 5_000),
        ("utility", 200_000.0, 5_000),
        ("conservative", 150_000.0, 5_000),
        ("uniform", 100_000.0, 5_000),
        ("share", 50_000.0, 5_000),
        ("share(order=history)", 50_000.0, 5_000),
        ("parm", 40_000.0, 5_000),
        ("ppartition", 5_000.0, 1_000),
    ];
    const MOST_GROWTH: f64 = 4.5;
    let mut table = Table::new(
        "policy | log | jobs | jobs/s | four times as many | goal | met | growth | goal | met",
    );
    for (policy, goal, jobs) in POLICIES {
        for log in log_paths() {
            let measure = |jobs: u32| {
                let window = format!("0..{jobs}");
                let arguments = ["--policy", policy, "--budget", "60%", "--jobs", &window];
                simulate(&log, &arguments, if bench.quick { 1 } else { 3 })
            };
            let [few, many] = [jobs, 4 * jobs].map(measure);
            let slower = few.speed().min(many.speed());
            let growth = many.seconds / few.seconds;
            let mut row = vec![policy.to_owned(), name(&log), grouped(few.jobs)];
            row.extend([few.speed(), many.speed()].map(|speed| grouped(speed as u64)));
            row.extend(speed_goal(slower, goal));
            row.extend([
                format!("{growth:.1} ×"),
                format!("≤ {MOST_GROWTH} ×"),
                met(growth <= MOST_GROWTH),
            ]);
            table.row(row);
        }
    }
    table.print();
}
