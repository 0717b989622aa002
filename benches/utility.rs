//! How long mapping events take, for each heuristic in each environment, with and without the filter.
//!
//! `cargo bench --bench utility` runs the paper's day; `-- --machines 1000` ten times the machines
//! and tasks; `-- --seed 2` another day; `-- --repeats 1` makes each run once instead of five times.

use std::time::{Duration, Instant as Clock};

use busbar::budget::EnergyBudget;
use busbar::model::Heterogeneous;
use busbar::policy::utility::spec::{Heuristic, Measure};
use busbar::policy::utility::{Environment, UtilityMapper, UtilitySpec};
use busbar::policy::{Decision, Policy, View};
use busbar::sim::Simulation;
use busbar::units::Joules;
use busbar::workload::essc::{Essc, Tasks};

/// A policy with a stopwatch.
struct Timed {
    policy: UtilityMapper,
    every: u64,
    events: usize,
    /// Nanoseconds of each turn.
    turns: Vec<u64>,
}

impl Policy for Timed {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let began = Clock::now();
        self.policy.decide(view, decisions);
        self.turns.push(began.elapsed().as_nanos() as u64);
        self.events += usize::from(view.now.millis().is_multiple_of(self.every));
    }

    fn names_nodes(&self) -> bool {
        true
    }
}

/// What several runs of the same came to.
struct Measured {
    /// All turns together, over the mapping events.
    mean_us: f64,
    /// The longest turn.
    worst_us: f64,
    /// The whole run, the best of all.
    run: Duration,
    consumed: Joules,
}

/// Runs the same so many times. Turns do the same every time, so the best time of each counts.
fn measure(tasks: &Tasks, spec: UtilitySpec, energy: Joules, repeats: u64) -> Measured {
    let (begin, end) = tasks.period.expect("a generated day has its period");
    let machine = Heterogeneous::machine(&tasks.site.tables);
    let model = Heterogeneous::new(tasks.site.tables.clone());
    let simulation = Simulation::new(&machine, &tasks.workload)
        .model(&model)
        .energy(EnergyBudget { energy, begin, end });
    let (mut best, mut shortest) = (Vec::new(), Duration::MAX);
    let (mut events, mut consumed) = (0, Joules::ZERO);
    for _ in 0..repeats {
        let policy = UtilityMapper::new(spec, &tasks.site);
        let (every, turns) = (spec.every.millis(), Vec::with_capacity(1 << 20));
        let mut timed = Timed { policy, every, events: 0, turns };
        let began = Clock::now();
        let run = simulation.run(&mut timed);
        shortest = shortest.min(began.elapsed());
        assert_eq!(run.violations, 0, "{:?}", run.first_violations);
        (events, consumed) = (timed.events, run.consumed.unwrap_or(Joules::ZERO));
        best.resize(timed.turns.len(), u64::MAX);
        for (best, turn) in best.iter_mut().zip(timed.turns) {
            *best = turn.min(*best);
        }
    }
    Measured {
        mean_us: best.iter().sum::<u64>() as f64 / 1e3 / events.max(1) as f64,
        worst_us: best.iter().max().map_or(0.0, |nanos| *nanos as f64 / 1e3),
        run: shortest,
        consumed,
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |key: &str, usual: u64| {
        let place = arguments.iter().position(|argument| argument == key);
        let value = place.and_then(|place| arguments.get(place + 1));
        value.and_then(|value| value.parse().ok()).unwrap_or(usual)
    };
    let machines = number("--machines", 100) as u32;
    let repeats = number("--repeats", 5).max(1);
    let mut essc = Essc { seed: number("--seed", 1), ..Essc::default() };
    essc.machines.machines = machines;
    essc.tasks = (u64::from(essc.tasks) * u64::from(machines) / 100) as u32;
    let tasks = essc.draw().expect("parameters that are fine");
    println!("{} tasks on {machines} machines", tasks.workload.jobs().len());

    let unlimited = UtilitySpec {
        heuristic: Heuristic::Greedy(Measure::PerTime),
        environment: Environment::Queued,
        filter: false,
        ..UtilitySpec::default()
    };
    let consumed = measure(&tasks, unlimited, Joules::UNLIMITED, 1).consumed;
    let energy = Joules::from_microjoules(consumed.microjoules() * 7 / 10);
    println!(
        "energy: {:.3} GJ, of {:.3} GJ unlimited",
        energy.as_f64() / 1e9,
        consumed.as_f64() / 1e9
    );
    println!(
        "{:22} {:7} {:6} {:>10} {:>10} {:>10}",
        "heuristic", "", "filter", "mean µs", "worst µs", "run ms"
    );
    let mut all: Vec<Measured> = Vec::new();
    for heuristic in Heuristic::ALL {
        for environment in [Environment::Queued, Environment::Polled] {
            for filter in [false, true] {
                let spec = UtilitySpec { heuristic, environment, filter, ..UtilitySpec::default() };
                let measured = measure(&tasks, spec, energy, repeats);
                println!(
                    "{:22} {:7} {:6} {:10.1} {:10.0} {:10.1}",
                    heuristic.name(),
                    environment.to_string(),
                    if filter { "on" } else { "off" },
                    measured.mean_us,
                    measured.worst_us,
                    measured.run.as_secs_f64() * 1e3,
                );
                all.push(measured);
            }
        }
    }
    let mean = all.iter().map(|measured| measured.mean_us).sum::<f64>() / all.len() as f64;
    let worst = all.iter().map(|measured| measured.worst_us).fold(0.0, f64::max);
    let runs: Duration = all.iter().map(|measured| measured.run).sum();
    println!(
        "mean of all: {mean:.1} µs; worst of all: {worst:.0} µs; 48 runs in {:.2} s",
        runs.as_secs_f64()
    );
    if let Ok(load) = std::fs::read_to_string("/proc/loadavg") {
        println!("load average: {}", load.trim());
    }
}
