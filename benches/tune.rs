//! The goals for PTune and PPartition, measured: `cargo bench --bench tune`.
//!
//! `cargo bench --bench tune -- --quick` is a short form of it. What is timed and how is told in
//! `benches/README.md`, beside the figures.

use std::fs;
use std::process::Command;
use std::time::Instant;

use busbar::budget::Budget;
use busbar::job::Job;
use busbar::machine::Machine;
use busbar::model::Varied;
use busbar::policy::{Decision, Policy, Ppartition, PpartitionSpec, View};
use busbar::sim::{Events, Simulation};
use busbar::solve::ptune::{Tuner, plain};
use busbar::units::{Instant as At, Share, Span, Watts};
use busbar::variation::catalyst::{Catalyst, Shape};
use busbar::variation::{Curve, Processors};
use busbar::workload::Workload;

/// The most that the paper's greedy is asked to do.
const MOST_PLAIN: usize = 1000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        println!("not run as a benchmark; see cargo bench");
        return;
    }
    let quick = arguments.iter().any(|argument| argument == "--quick");
    if arguments.iter().any(|word| !word.starts_with("--")) {
        println!("tuning: skipped, a section of another benchmark is named");
        return;
    }
    introduce(quick);
    println!(
        "| candidates | curves | W each | run on | tune, best ms | median | µs/candidate | goal | \
         met | retune, best ms | plain greedy, best ms |"
    );
    println!("|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let sizes: &[u32] = if quick { &[100, 1000] } else { &[100, 1000, 10_000, 100_000] };
    for processors in sizes.iter().copied() {
        for (noise, name) in [(0, "smooth"), (1, "1 % noise")] {
            let machine = machine(processors, noise);
            let curves: Vec<&Curve> = machine.applications()[0].curves.iter().collect();
            for watts in [51, 60, 75] {
                measure(&curves, name, watts, if quick { 5 } else { 25 });
            }
        }
    }
    repartitions(if quick { 1 } else { 10 });
    println!("\nLoad average after: {}", load_average());
}

/// A policy whose turns are timed.
struct Timed {
    inner: Ppartition,
    turns: Vec<Turn>,
}

/// One turn: how many jobs ran before, how many of them got other caps, and how long it took.
struct Turn {
    running: usize,
    recapped: usize,
    milliseconds: f64,
}

impl Policy for Timed {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let start = Instant::now();
        self.inner.decide(view, decisions);
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        let is_recap = |decision: &&Decision| matches!(decision, Decision::Recap { .. });
        let recapped = decisions.iter().filter(is_recap).count();
        self.turns.push(Turn { running: view.ledger.running().len(), recapped, milliseconds });
    }

    fn adjusts(&self) -> bool {
        self.inner.adjusts()
    }

    fn names_nodes(&self) -> bool {
        self.inner.names_nodes()
    }
}

/// Turns of PPartition in which power changes hands, on a full machine.
fn repartitions(repeats: u64) {
    println!(
        "\n| kW | jobs running | turns | other caps for | median ms | worst ms | goal | met |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    for kilowatts in [28, 33, 39] {
        let mut turns = Vec::new();
        for seed in 0..repeats {
            let machine = Machine::catalyst(550, seed).expect("a machine");
            // Jobs of 1 to 16 processors, all there from the beginning.
            let jobs = (0..400).map(|number| {
                let (nodes, time) = (1 + number % 16, Span::from_secs(600 + 7 * number));
                (Job::new(u64::from(number) + 1, At::ZERO, nodes, time), time)
            });
            let workload = Workload::new("queue", jobs.collect::<Vec<_>>());
            let model = Varied::on(&machine, workload.jobs(), seed);
            let run = |_| {
                let inner = Ppartition::with(PpartitionSpec::default());
                let mut policy = Timed { inner, turns: Vec::new() };
                Simulation::new(&machine, &workload)
                    .budget(Budget::constant(Watts::from_watts(1000 * kilowatts)))
                    .events(Events::Each)
                    .model(&model)
                    .run(&mut policy);
                policy.turns
            };
            // The same run again and again; the best time of each turn.
            let best = |mut best: Vec<Turn>, again: Vec<Turn>| {
                for (turn, other) in best.iter_mut().zip(again) {
                    turn.milliseconds = turn.milliseconds.min(other.milliseconds);
                }
                best
            };
            turns.extend((0..5).map(run).reduce(best).unwrap_or_default());
        }
        turns.retain(|turn| turn.running >= 60 && turn.recapped >= turn.running / 2);
        turns.sort_by(|one, other| one.milliseconds.total_cmp(&other.milliseconds));
        let Some(worst) = turns.last() else { continue };
        let median = &turns[turns.len() / 2];
        let mean = |figure: fn(&Turn) -> usize| {
            turns.iter().map(|turn| figure(turn) as f64).sum::<f64>() / turns.len() as f64
        };
        println!(
            "| {kilowatts} | {:.0} | {} | {:.0} | {:.2} | {:.2} | < 5 ms | {} |",
            mean(|turn| turn.running),
            turns.len(),
            mean(|turn| turn.recapped),
            median.milliseconds,
            worst.milliseconds,
            if worst.milliseconds < 5.0 { "yes" } else { "NO" },
        );
    }
}

fn machine(processors: u32, noise: u32) -> Processors {
    let (shape, noise) = (Shape::Continued, Share::percent(noise));
    let catalyst = Catalyst { processors, shape, noise, ..Catalyst::default() };
    catalyst.measure().processors().expect("a machine")
}

fn measure(curves: &[&Curve], name: &str, watts: u32, repeats: usize) {
    let budget = Watts::from_watts(watts) * curves.len() as u32;
    let mut tuner = Tuner::new();
    let runs_on = tuner.tune(curves, budget).expect("enough power").grants.len();
    // Short runs are timed many at a time.
    let bundle = (10_000 / curves.len()).max(1);
    let tune = timed(repeats, bundle, || {
        assert_eq!(tuner.tune(curves, budget).expect("enough power").grants.len(), runs_on);
    });
    let mut tuner = Tuner::new();
    let retune = timed(repeats, bundle, || {
        assert_eq!(tuner.retune(curves, budget).expect("enough power").grants.len(), curves.len());
    });
    let plain = (curves.len() <= MOST_PLAIN).then(|| {
        timed(3, 1, || {
            plain::tune(curves, budget, plain::DELTA).expect("enough power");
        })
    });
    let goal = match curves.len() {
        1000 => Some(1.0),
        100_000 => Some(200.0),
        _ => None,
    };
    let met = goal.map_or("-", |goal| if tune[repeats / 2] < goal { "yes" } else { "NO" });
    println!(
        "| {} | {name} | {watts} | {runs_on} | {:.3} | {:.3} | {:.2} | {} | {met} | {:.3} | {} |",
        curves.len(),
        tune[0],
        tune[repeats / 2],
        1000.0 * tune[0] / curves.len() as f64,
        goal.map_or("-".to_owned(), |goal| format!("< {goal} ms")),
        retune[0],
        plain.map_or("-".to_owned(), |times| format!("{:.1}", times[0])),
    );
}

/// Milliseconds of one call, in each of several runs of a bundle of calls, from the fewest up.
fn timed(repeats: usize, bundle: usize, mut call: impl FnMut()) -> Vec<f64> {
    let run = |_| {
        let start = Instant::now();
        (0..bundle).for_each(|_| call());
        start.elapsed().as_secs_f64() * 1e3 / bundle as f64
    };
    let mut times: Vec<f64> = (0..repeats).map(run).collect();
    times.sort_by(f64::total_cmp);
    times
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
