//! One day, run in every way.

use super::Cell;
use busbar_core::budget::EnergyBudget;
use busbar_core::metrics::{TaskFigures, counts};
use busbar_core::model::Heterogeneous;
use busbar_core::policy::utility::spec::{Heuristic, Measure};
use busbar_core::policy::utility::{Environment, UtilityMapper, UtilitySpec};
use busbar_core::policy::{Decision, Policy, View};
use busbar_core::sim::{Run, Simulation, State};
use busbar_core::units::{Instant, Joules, Span};
use busbar_workloads::essc::{Essc, EsscError, Tasks};

/// The result of one run.
#[derive(Clone, Debug)]
pub(crate) struct TrialFigures {
    pub(crate) utility: f64,
    /// By starting utility, the largest first.
    pub(super) portions: [f64; 4],
    /// Joules consumed in the period.
    pub(crate) consumed: f64,
    /// The hours of the period after which 99 % of the energy was consumed, if that was before the
    /// last half hour.
    pub(crate) ran_out_after_h: Option<f64>,
    /// By the end of each hour of the period.
    pub(super) utility_by_hour: Vec<f64>,
    /// By the end of each hour of the period, in joules.
    pub(super) energy_by_hour: Vec<f64>,
    pub(super) completed: u64,
    pub(super) dropped: u64,
    pub(super) left: u64,
    /// Mapping events, and nanoseconds spent in the policy: in all, and in its longest turn.
    pub(super) events: u64,
    pub(super) nanos: u64,
    pub(super) worst_nanos: u64,
}

const HOUR: u64 = 3_600_000;

/// A policy with somebody's clock.
struct Timed<'a> {
    policy: UtilityMapper,
    clock: &'a dyn Fn() -> u64,
    every: u64,
    events: u64,
    nanos: u64,
    worst_nanos: u64,
}

impl Policy for Timed<'_> {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let is_event = view.now.millis().is_multiple_of(self.every);
        if !is_event && view.changes.released.is_empty() {
            // Tasks only arrive: that costs less than to read the clock.
            return self.policy.decide(view, decisions);
        }
        let began = (self.clock)();
        self.policy.decide(view, decisions);
        let taken = (self.clock)().saturating_sub(began);
        self.nanos += taken;
        self.worst_nanos = self.worst_nanos.max(taken);
        self.events += u64::from(is_event);
    }

    fn names_nodes(&self) -> bool {
        self.policy.names_nodes()
    }
}

/// What Max UPT consumes in the queued environment without a limit.
pub(super) fn unlimited(essc: &Essc) -> Result<Joules, EsscError> {
    let cell = Cell {
        heuristic: Heuristic::Greedy(Measure::PerTime),
        environment: Environment::Queued,
        filter: false,
    };
    let (run, _, _) = simulate(&essc.draw()?, cell, Joules::UNLIMITED, &|| 0);
    Ok(run.consumed.unwrap_or(Joules::ZERO))
}

/// A day in each of these ways.
pub(super) fn run(
    essc: &Essc,
    cells: &[Cell],
    energy: Joules,
    clock: &dyn Fn() -> u64,
) -> Result<Vec<TrialFigures>, EsscError> {
    let tasks = essc.draw()?;
    Ok(cells.iter().map(|cell| outcome(&tasks, *cell, energy, clock)).collect())
}

fn simulate<'a>(
    tasks: &Tasks,
    cell: Cell,
    energy: Joules,
    clock: &'a dyn Fn() -> u64,
) -> (Run, EnergyBudget, Timed<'a>) {
    let Cell { heuristic, environment, filter } = cell;
    let spec = UtilitySpec { heuristic, environment, filter, ..UtilitySpec::default() };
    let (begin, end) = tasks.period.unwrap_or((Instant::ZERO, Instant::NEVER));
    let budget = EnergyBudget { energy, begin, end };
    let machine = Heterogeneous::machine(&tasks.site.tables);
    let model = Heterogeneous::new(tasks.site.tables.clone());
    let mut timed = Timed {
        policy: UtilityMapper::new(spec, &tasks.site),
        clock,
        every: spec.every.millis(),
        events: 0,
        nanos: 0,
        worst_nanos: 0,
    };
    let simulation = Simulation::new(&machine, &tasks.workload).model(&model).energy(budget);
    let run = simulation.run(&mut timed);
    (run, budget, timed)
}

fn outcome(tasks: &Tasks, cell: Cell, energy: Joules, clock: &dyn Fn() -> u64) -> TrialFigures {
    let (run, budget, timed) = simulate(tasks, cell, energy, clock);
    let figures = TaskFigures::of(&tasks.workload, &tasks.site.utilities, &budget, &run);
    let mut portions = [0.0; 4];
    for (portion, found) in portions.iter_mut().zip(&figures.portions) {
        *portion = found.share();
    }
    let (utility_by_hour, energy_by_hour) = by_hour(tasks, &run, &budget);
    let summed = |count: fn(&TaskFigures) -> u64| count(&figures);
    let left = summed(|figures| figures.left_running + figures.left_waiting);
    let dropped = summed(|it| it.dropped_utility + it.dropped_machine + it.dropped_energy);
    let completed = run.records.iter().filter(|record| record.state == State::Completed).count();
    debug_assert_eq!(completed as u64 + dropped + left, run.records.len() as u64);
    TrialFigures {
        utility: figures.utility,
        portions,
        consumed: figures.energy_consumed_j,
        ran_out_after_h: ran_out(&run, &budget),
        utility_by_hour,
        energy_by_hour,
        completed: completed as u64,
        dropped,
        left,
        events: timed.events,
        nanos: timed.nanos,
        worst_nanos: timed.worst_nanos,
    }
}

/// Utility earned and joules consumed by the end of each hour of the period.
fn by_hour(tasks: &Tasks, run: &Run, budget: &EnergyBudget) -> (Vec<f64>, Vec<f64>) {
    let hours = budget.length().millis().div_ceil(HOUR) as usize;
    let (mut utility, mut energy) = (vec![0.0; hours], vec![0.0; hours]);
    let hour_of = |at: Instant| (at.since(budget.begin).millis() / HOUR) as usize;
    for (job, record) in tasks.workload.jobs().iter().zip(&run.records) {
        if record.nodes == 0 || record.end <= budget.begin {
            continue;
        }
        let function = job.terms.utility.and_then(|id| tasks.site.utilities.get(id));
        if let Some(function) = function.filter(|_| counts(record, budget)) {
            // Complete just at the end of an hour is complete by its end.
            let hour = hour_of(Instant::from_millis(record.end.millis() - 1));
            utility[hour] += function.at(record.end.since(job.submit)).as_f64();
        }
        let last = record.end.min(budget.end);
        let first = hour_of(record.start.max(budget.begin));
        for (hour, energy) in energy.iter_mut().enumerate().skip(first) {
            let begin = budget.begin + Span::from_millis(hour as u64 * HOUR);
            if begin >= last {
                break;
            }
            let end = last.min(begin + Span::from_millis(HOUR));
            *energy += budget.charge(record.power, record.start.max(begin), end).as_f64();
        }
    }
    let cumulative = |values: Vec<f64>| {
        let mut sum = 0.0;
        values.into_iter().map(|value| (sum += value, sum).1).collect::<Vec<f64>>()
    };
    (cumulative(utility), cumulative(energy))
}

/// After how many hours of the period 99 % of the energy was consumed, unless that is in its last
/// half hour or never.
fn ran_out(run: &Run, budget: &EnergyBudget) -> Option<f64> {
    // Power that starts and stops being drawn, in the order of time.
    let mut steps: Vec<(Instant, i128)> = Vec::new();
    for record in run.records.iter().filter(|record| record.nodes > 0) {
        let (from, until) = (record.start.max(budget.begin), record.end.min(budget.end));
        if from < until {
            let power = i128::from(record.power.milliwatts());
            steps.extend([(from, power), (until, -power)]);
        }
    }
    steps.sort_unstable();
    let most = budget.energy.microjoules() as i128 / 100 * 99;
    let (mut consumed, mut drawn, mut now) = (0i128, 0i128, budget.begin);
    for (at, change) in steps {
        consumed += drawn * i128::from(at.since(now).millis());
        if consumed >= most {
            // As far back as the excess takes.
            let back = if drawn > 0 { (consumed - most) / drawn } else { 0 };
            let passed = at.since(budget.begin).millis() as f64 - back as f64;
            let last = budget.length().millis() as f64 - 0.5 * HOUR as f64;
            return (passed < last).then_some(passed / HOUR as f64);
        }
        drawn += change;
        now = at;
    }
    None
}
