//! How long mapping events take, for each heuristic in each environment, with and without the filter.
//!
//! `cargo bench --bench utility` runs the paper's day; `-- --machines 1000` ten times the machines
//! and tasks; `-- --seed 2` another day.

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
    events: u32,
    all: Duration,
    worst: Duration,
}

impl Policy for Timed {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let began = Clock::now();
        self.policy.decide(view, decisions);
        let taken = began.elapsed();
        self.all += taken;
        self.worst = self.worst.max(taken);
        self.events += u32::from(view.now.millis().is_multiple_of(self.every));
    }

    fn names_nodes(&self) -> bool {
        true
    }
}

fn run(tasks: &Tasks, spec: UtilitySpec, energy: Joules) -> (Timed, Duration, Joules) {
    let (begin, end) = tasks.period.expect("a generated day has its period");
    let machine = Heterogeneous::machine(&tasks.site.tables);
    let model = Heterogeneous::new(tasks.site.tables.clone());
    let policy = UtilityMapper::new(spec, &tasks.site);
    let every = spec.every.millis();
    let mut timed = Timed { policy, every, events: 0, all: Duration::ZERO, worst: Duration::ZERO };
    let simulation = Simulation::new(&machine, &tasks.workload)
        .model(&model)
        .energy(EnergyBudget { energy, begin, end });
    let began = Clock::now();
    let run = simulation.run(&mut timed);
    assert_eq!(run.violations, 0, "{:?}", run.first_violations);
    (timed, began.elapsed(), run.consumed.unwrap_or(Joules::ZERO))
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |key: &str, usual: u64| {
        let place = arguments.iter().position(|argument| argument == key);
        let value = place.and_then(|place| arguments.get(place + 1));
        value.and_then(|value| value.parse().ok()).unwrap_or(usual)
    };
    let machines = number("--machines", 100) as u32;
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
    let (_, _, consumed) = run(&tasks, unlimited, Joules::UNLIMITED);
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
    let (mut all, mut events) = (Duration::ZERO, 0);
    let began = Clock::now();
    for heuristic in Heuristic::ALL {
        for environment in [Environment::Queued, Environment::Polled] {
            for filter in [false, true] {
                let spec = UtilitySpec { heuristic, environment, filter, ..UtilitySpec::default() };
                let (timed, run, _) = run(&tasks, spec, energy);
                let micros = |time: Duration| time.as_secs_f64() * 1e6;
                println!(
                    "{:22} {:7} {:6} {:10.1} {:10.0} {:10.1}",
                    heuristic.name(),
                    environment.to_string(),
                    if filter { "on" } else { "off" },
                    micros(timed.all) / f64::from(timed.events),
                    micros(timed.worst),
                    run.as_secs_f64() * 1e3,
                );
                all += timed.all;
                events += timed.events;
            }
        }
    }
    let mean = all.as_secs_f64() * 1e6 / f64::from(events);
    println!("mean of all: {mean:.1} µs; 48 runs in {:.2} s", began.elapsed().as_secs_f64());
}
