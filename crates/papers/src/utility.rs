//! Utility under an energy budget (Khemka, Friese, Pasricha, Maciejewski, Siegel, Koenig, Powers,
//! Hilton, Rambharos, Wright and Poole: Comparison of energy-constrained resource allocation
//! heuristics under different task management environments, 2015): twelve heuristics in two
//! environments, with and without an energy filter.
//!
//! The paper's tables and tasks were never published; each trial draws a day of its own, machines and
//! tasks ([`Essc`]). The energy is 70 % of what Max UPT consumes without a limit, on the mean of the
//! trials, as in the paper. `trial` runs one day, `statements` holds what comes out against what the
//! paper says, `text` sets it in tables.

use serde::Serialize;

use crate::Finding;
use crate::parallel::in_parallel;
use busbar_core::policy::utility::{Environment, Heuristic};
use busbar_core::units::Joules;
use busbar_workloads::essc::{Essc, EsscError};

mod interval;
mod statements;
mod text;
mod trial;

pub use interval::Interval;
pub use statements::{Part, Statement, Verdict};
pub use text::describe;
pub(crate) use trial::TrialFigures;

/// How much to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// How many days are drawn.
    pub trials: u64,
    /// The seed of the first; after the largest number comes 0.
    pub first_seed: u64,
    /// What days are drawn from.
    pub essc: Essc,
}

impl Default for Options {
    fn default() -> Self {
        Options { trials: 48, first_seed: 1, essc: Essc::default() }
    }
}

/// One way to run a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// How tasks are mapped.
    pub heuristic: Heuristic,
    /// What a mapping event may touch.
    pub environment: Environment,
    /// Whether there is a filter.
    pub filter: bool,
}

impl Cell {
    /// All 48: by heuristic, then queued before polled, then without before with the filter.
    pub fn all() -> impl Iterator<Item = Cell> {
        Heuristic::ALL.into_iter().flat_map(|heuristic| {
            [Environment::Queued, Environment::Polled].into_iter().flat_map(move |environment| {
                [false, true].map(|filter| Cell { heuristic, environment, filter })
            })
        })
    }

    fn place(self) -> usize {
        Cell::all().position(|cell| cell == self).unwrap_or(0)
    }
}

/// What one way to run days comes to, on the mean of all trials.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// The heuristic's name.
    pub heuristic: &'static str,
    /// The environment's name.
    pub environment: String,
    /// Whether there is a filter.
    pub filter: bool,
    /// Utility earned in the period.
    pub utility: Interval,
    /// By starting utility (8, 4, 2, 1): the portion of what was offered that was earned.
    pub portions: Vec<Interval>,
    /// Energy consumed, in per cent of the budget.
    pub consumed: Interval,
    /// In how many trials energy ran out before the last half hour, in per cent.
    pub ran_out: f64,
    /// After how many hours of the period 99 % of the energy was consumed, in those.
    pub ran_out_after_h: Option<Interval>,
    /// Utility earned by the end of each hour of the period.
    pub utility_by_hour: Vec<Interval>,
    /// Energy consumed by the end of each hour, in gigajoules.
    pub energy_by_hour_gj: Vec<Interval>,
    /// Tasks completed in the simulated time, on average.
    pub completed: f64,
    /// Tasks dropped.
    pub dropped: f64,
    /// Tasks that ran or waited at the end.
    pub left: f64,
    /// Mean time of a mapping event, with all that the policy did until the next, in microseconds.
    pub event_mean_us: f64,
    /// The longest single turn of the policy, in microseconds.
    pub event_worst_us: f64,
}

/// The results of the repeated experiments.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// How many days were drawn.
    pub trials: u64,
    /// The seed of the first.
    pub first_seed: u64,
    /// What Max UPT consumes in the queued environment without a limit, in gigajoules.
    pub unlimited_gj: Interval,
    /// The energy budget: 70 % of that.
    pub energy_gj: f64,
    /// The whole grid.
    pub grid: Vec<Figures>,
    /// What the paper states, and whether it holds here.
    pub statements: Vec<Statement>,
}

impl Report {
    /// The comparisons behind the statements, in the form that all reproductions share. The paper says on
    /// which side of zero a difference is, and no number.
    pub fn findings(&self) -> Vec<Finding> {
        let of = |statement: &Statement| {
            let finding = |part: &Part| Finding {
                experiment: statement.statement,
                workload: format!("{} made-up days", self.trials),
                metric: part.what.clone(),
                published: None,
                measured: Some(part.difference.mean),
                unit: part.unit,
                variation: None,
            };
            statement.parts.iter().map(finding).collect::<Vec<_>>()
        };
        self.statements.iter().flat_map(of).collect()
    }
}

/// Runs the experiments. `progress` hears how much is done, of how much; `clock` is asked for
/// nanoseconds around every turn of the policy.
pub fn reproduce(
    options: &Options,
    progress: &(dyn Fn(u64, u64) + Sync),
    clock: &(dyn Fn() -> u64 + Sync),
) -> Result<Report, EsscError> {
    let cells: Vec<Cell> = Cell::all().collect();
    let Days { unlimited, energy, outcomes } = run_days(options, &cells, progress, clock)?;
    let results = Results { outcomes: &outcomes };
    Ok(Report {
        trials: outcomes.len() as u64,
        first_seed: options.first_seed,
        unlimited_gj: unlimited.iter().map(|energy| energy.as_f64() / 1e9).collect(),
        energy_gj: energy.as_f64() / 1e9,
        grid: Cell::all().map(|cell| results.figures(cell, energy)).collect(),
        statements: statements::all(&results),
    })
}

/// Days that were run, with the energy they had.
pub(crate) struct Days {
    /// What Max UPT consumes in the queued environment without a limit, by day.
    unlimited: Vec<Joules>,
    /// The energy of each day: 70 % of the mean of that.
    pub(crate) energy: Joules,
    /// By day and cell.
    pub(crate) outcomes: Vec<Vec<TrialFigures>>,
}

/// Runs days in each of these ways, all with the same energy.
pub(crate) fn run_days(
    options: &Options,
    cells: &[Cell],
    progress: &(dyn Fn(u64, u64) + Sync),
    clock: &(dyn Fn() -> u64 + Sync),
) -> Result<Days, EsscError> {
    let seeds: Vec<u64> =
        (0..options.trials.max(1)).map(|trial| options.first_seed.wrapping_add(trial)).collect();
    let essc = |seed: u64| Essc { seed, ..options.essc };
    // A run without a limit is about a fiftieth of a trial.
    let all = seeds.len() as u64;
    let first = |done, _| progress(done, 50 * all);
    let unlimited = in_parallel(&seeds, |seed| trial::unlimited(&essc(*seed)), &first);
    let unlimited: Vec<Joules> = unlimited.into_iter().collect::<Result<_, _>>()?;
    let mean = unlimited.iter().map(|energy| energy.microjoules()).sum::<u128>() / u128::from(all);
    let energy = Joules::from_microjoules(mean * 7 / 10);
    let then = |done, _| progress(all + 49 * done, 50 * all);
    let run = |seed: &u64| trial::run(&essc(*seed), cells, energy, clock);
    let outcomes = in_parallel(&seeds, run, &then);
    let outcomes = outcomes.into_iter().collect::<Result<_, _>>()?;
    Ok(Days { unlimited, energy, outcomes })
}

/// The outcomes by trial and cell.
struct Results<'a> {
    outcomes: &'a [Vec<TrialFigures>],
}

impl Results<'_> {
    /// A figure of a cell in each trial.
    fn each<'b>(
        &'b self,
        cell: Cell,
        figure: impl Fn(&TrialFigures) -> f64 + 'b,
    ) -> impl Iterator<Item = f64> + 'b {
        let place = cell.place();
        self.outcomes.iter().map(move |trial| figure(&trial[place]))
    }

    fn figures(&self, cell: Cell, energy: Joules) -> Figures {
        let mean =
            |figure: &dyn Fn(&TrialFigures) -> f64| self.each(cell, figure).collect::<Interval>();
        let place = cell.place();
        let hours = self.outcomes.first().map_or(0, |trial| trial[place].utility_by_hour.len());
        let gone: Vec<f64> =
            self.outcomes.iter().filter_map(|trial| trial[place].ran_out_after_h).collect();
        let events: f64 = self.each(cell, |outcome| outcome.events as f64).sum();
        let nanos: f64 = self.each(cell, |outcome| outcome.nanos as f64).sum();
        let worst = self.each(cell, |outcome| outcome.worst_nanos as f64).fold(0.0, f64::max);
        Figures {
            heuristic: cell.heuristic.name(),
            environment: cell.environment.to_string(),
            filter: cell.filter,
            utility: mean(&|outcome| outcome.utility),
            portions: (0..4).map(|level| mean(&move |outcome| outcome.portions[level])).collect(),
            consumed: mean(&|outcome| 100.0 * outcome.consumed / energy.as_f64()),
            ran_out: 100.0 * gone.len() as f64 / self.outcomes.len().max(1) as f64,
            ran_out_after_h: (!gone.is_empty()).then(|| gone.into_iter().collect()),
            utility_by_hour: (0..hours)
                .map(|hour| mean(&move |outcome| outcome.utility_by_hour[hour]))
                .collect(),
            energy_by_hour_gj: (0..hours)
                .map(|hour| mean(&move |outcome| outcome.energy_by_hour[hour] / 1e9))
                .collect(),
            completed: mean(&|outcome| outcome.completed as f64).mean,
            dropped: mean(&|outcome| outcome.dropped as f64).mean,
            left: mean(&|outcome| outcome.left as f64).mean,
            event_mean_us: nanos / events.max(1.0) / 1000.0,
            event_worst_us: worst / 1000.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small form of everything: each cell is there, nothing is missing in it, and what must hold
    /// in every run does.
    #[test]
    fn every_cell_is_run() {
        let mut essc = Essc { tasks: 1600, hours: 3, warm_up: 1, ..Essc::default() };
        essc.machines.machines = 10;
        let options = Options { trials: 2, first_seed: u64::MAX, essc };
        let report = reproduce(&options, &|_, _| {}, &|| 0).unwrap();
        assert_eq!(report.grid.len(), 48);
        for figures in &report.grid {
            assert!(figures.utility.mean > 0.0, "{figures:?}");
            assert!(figures.consumed.mean <= 100.0, "{figures:?}");
            assert_eq!(figures.utility_by_hour.len(), 2);
            let last = figures.utility_by_hour[1].mean;
            assert!((last - figures.utility.mean).abs() < 1e-6, "{figures:?}");
            assert!(figures.portions.iter().all(|portion| (0.0..=1.0).contains(&portion.mean)));
        }
        assert!((report.energy_gj - 0.7 * report.unlimited_gj.mean).abs() < 1e-6);
        let parts: usize = report.statements.iter().map(|statement| statement.parts.len()).sum();
        assert_eq!((report.findings().len(), parts > 20), (parts, true));
        let text = describe(&report);
        for heuristic in Heuristic::ALL {
            assert!(text.contains(heuristic.name()), "{text}");
        }
        let again = reproduce(&options, &|_, _| {}, &|| 0).unwrap();
        assert_eq!(report, again);
    }
}
