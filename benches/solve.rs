//! The goals for the solver, measured: `cargo bench --bench solve`.
//!
//! `cargo bench --bench solve -- --quick` is a short form of it; words choose families, as in
//! `-- tight pow2`, and `--from=101` takes the seeds from 101 on. What is timed and how is told in
//! `benches/README.md`, beside the figures.

use std::fs;
use std::process::Command;
use std::time::Instant;

use busbar::solve::knapsack::{Instance, Limits, Solution, Solver};
use busbar::solve::random::{Family, Random};

/// Near enough, for the first column of times.
const GAP: f64 = 1e-4;
/// No instance is given more time than this.
const MOST_SECONDS: f64 = 1.0;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        println!("not run as a benchmark; see cargo bench");
        return;
    }
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let from = arguments.iter().find_map(|argument| argument.strip_prefix("--from="));
    let Ok(from) = from.unwrap_or("1").parse::<u32>() else {
        println!("the solver: skipped, --from= wants the number of a seed");
        return;
    };
    let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with("--")).collect();
    let chosen: Vec<Family> = Family::ALL
        .into_iter()
        .filter(|family| words.is_empty() || words.contains(&&family.to_string()))
        .collect();
    if chosen.is_empty() {
        let valid = Family::ALL.map(|family| family.to_string()).join(", ");
        println!("the solver: skipped, none of its families is named; they are {valid}");
        return;
    }
    introduce(quick);
    println!(
        "| family | jobs | instances | to 0.01 %: median ms | worst | goal | met | to the best: \
         median ms | worst | never in 1 s | within 10 ms | goal | met |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for family in chosen {
        for jobs in [50, 500, 1000, 5000] {
            Row::measure(family, jobs, from, if quick { 2 } else { 6 }).print();
        }
    }
    println!("\nLoad average after: {}", load_average());
}

/// What came of the instances of one size and family.
struct Row {
    family: Family,
    jobs: u32,
    /// Milliseconds until the gap was small, for each instance, and until it was none.
    near: Vec<f64>,
    best: Vec<f64>,
    never: usize,
}

impl Row {
    fn measure(family: Family, jobs: u32, from: u32, seeds: usize) -> Self {
        let mut solver = Solver::default();
        let mut row = Row { family, jobs, near: Vec::new(), best: Vec::new(), never: 0 };
        for (alpha, running) in [(0.0, 0), (0.0, 50), (0.5, 0), (0.5, 50)] {
            for seed in (from.into()..).take(seeds) {
                let random = Random { jobs, configs: 60, family, alpha, running, seed };
                let program = random.generate().expect("valid parameters");
                let instance = program.instance().expect("a valid program");
                let (near, solution) = fastest(&mut solver, &instance, GAP);
                assert!(solution.gap() <= GAP, "{random} was not near enough in time");
                row.near.push(near);
                let (best, solution) = fastest(&mut solver, &instance, 0.0);
                row.never += usize::from(!solution.optimal());
                row.best.push(if solution.optimal() { best } else { f64::INFINITY });
            }
        }
        row.near.sort_by(f64::total_cmp);
        row.best.sort_by(f64::total_cmp);
        row
    }

    fn print(&self) {
        let count = self.near.len();
        let (median, last) = (count / 2, count - 1);
        let goal = if self.jobs <= 1000 { 5.0 } else { 10.0 };
        let quick = self.best.iter().filter(|ms| **ms <= 10.0).count();
        let share = quick as f64 / count as f64;
        let (share_goal, share_met) =
            if self.jobs <= 1000 { ("≥ 90 %", met(share >= 0.9)) } else { ("-", "-") };
        let slowest = self.best.iter().rev().find(|ms| ms.is_finite()).unwrap_or(&f64::NAN);
        println!(
            "| {} | {} | {count} | {:.2} | {:.2} | ≤ {goal:.0} | {} | {:.2} | {slowest:.2} | {} | \
             {:.0} % | {share_goal} | {share_met} |",
            self.family,
            self.jobs,
            self.near[median],
            self.near[last],
            met(self.near[last] <= goal),
            self.best[median],
            self.never,
            100.0 * share,
        );
    }
}

/// The fewest milliseconds of several runs, and what came of it. The fewest, because whatever else
/// the computer does only adds to them. The solver keeps its memory, but nothing it found out.
fn fastest(solver: &mut Solver, instance: &Instance, gap: f64) -> (f64, Solution) {
    let mut run = || {
        let start = Instant::now();
        let mut stop = || start.elapsed().as_secs_f64() > MOST_SECONDS;
        let limits = Limits { gap, effort: u64::MAX, stop: Some(&mut stop) };
        let solution = solver.solve(instance, limits, None).expect("an instance with a choice");
        (start.elapsed().as_secs_f64() * 1e3, solution)
    };
    let (mut least, solution) = run();
    // What takes long is not much disturbed.
    let repeats = if least > 200.0 { 0 } else { 6 };
    for _ in 0..repeats {
        least = least.min(run().0);
    }
    (least, solution)
}

fn introduce(quick: bool) {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor.lines().find_map(|line| line.strip_prefix("model name"));
    let processor = processor.map_or("unknown", |name| name.trim_start_matches(['\t', ' ', ':']));
    let compiler = Command::new("rustc").arg("--version").output();
    let compiler = compiler.map_or("unknown".to_owned(), |output| {
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    });
    println!("- processor: {processor}, one core of it in use");
    println!("- compiler: {compiler}");
    println!("- load average before: {}", load_average());
    println!("- form: {}\n", if quick { "quick" } else { "full" });
}

fn load_average() -> String {
    let averages = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    averages.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown").to_owned()
}

fn met(is_met: bool) -> &'static str {
    if is_met { "yes" } else { "NO" }
}
