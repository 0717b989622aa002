//! PARM's ground: its testbed and its projection, where nodes and caps may change while jobs run; and the same on
//! logs.

use std::sync::Arc;

use busbar_core::budget::Budget;
use busbar_core::machine::Machine;
use busbar_core::model::pass::Application;
use busbar_core::model::{Elastic, Model, NodeCaps};
use busbar_core::policy::parm::Flexibility;
use busbar_core::policy::share::Use;
use busbar_core::policy::{OrderSpec, OrderedBy, ParmSpec, ShareSpec};
use busbar_core::sim::Simulation;
use busbar_core::units::Share;
use busbar_core::workload::Workload;

use super::logs::{self, Window};
use super::{Options, Progress, ShareError, geometric, mean};
use crate::parallel::in_parallel;
use crate::parm::{self, GAMMAS, Mix, RunFigures, Scheduler, Task};
use crate::{Finding, Reproduction};

/// What was to be reached, of PARM's mean turnaround.
const TURNAROUND: f64 = 0.85;
/// And of its makespan, at most.
const MAKESPAN: f64 = 1.04;

/// One window of so many is taken, and so many of its jobs: the program takes its time.
const EVERY: usize = 5;
const OF_A_WINDOW: usize = 1000;

/// The compared policies; the first is the published one.
fn contenders() -> [(&'static str, Scheduler); 3] {
    let share = |by| {
        let order = OrderSpec { by, ..OrderSpec::FCFS };
        Scheduler::Share(ShareSpec { order, uses: Some(Use::Resizes), fair: false })
    };
    [
        ("parm", parm::parm(Flexibility::Malleable)),
        ("share, use=resizes", share(OrderedBy::Aged)),
        ("share, use=resizes, order=history", share(OrderedBy::History)),
    ]
}

/// Runs all contenders on the testbed and on the projection.
pub(super) fn reproduce(
    options: &Options,
    progress: Progress<'_>,
) -> Result<Reproduction, ShareError> {
    let sized = parm::Options {
        traces: options.traces.clone(),
        jobs: options.projection,
        seeds: options.seeds,
        first_seed: options.seed,
    };
    let (sets, source) = parm::sets(&sized)?;
    let mut tasks = Vec::new();
    for draw in 0..options.seeds {
        let seed = options.seed.wrapping_add(draw);
        for mix in [Mix::Low, Mix::High] {
            tasks.extend(contenders().map(|(_, scheduler)| Task::Testbed { seed, mix, scheduler }));
        }
    }
    let of_testbed = tasks.len();
    for set in 0..sets.len() {
        for gamma in GAMMAS {
            let of = |(_, scheduler)| Task::Projection { set, gamma, scheduler };
            tasks.extend(contenders().map(of));
        }
    }
    let figures = in_parallel(&tasks, |task| task.run(&sets, &sized), progress);
    let (testbed, projection) = figures.split_at(of_testbed);
    let mut findings = Vec::new();
    add("PARM's testbed", testbed, &mut findings);
    add("PARM's projection", projection, &mut findings);
    let on_logs = on_logs(options, progress)?;
    let cases = on_logs.len() / contenders().len();
    add("PARM's rules on logs", &on_logs, &mut findings);
    let notes = vec![format!(
        "PARM's testbed: {} seeds; its projection: three sets of {} from {source}; logs: {cases} cases, the first \
         {OF_A_WINDOW} jobs of one window of {EVERY} under 80 % and 60 % of the power; ratios are geometric means \
         against parm",
        options.seeds, options.projection
    )];
    Ok(Reproduction { findings, notes })
}

/// The first jobs of some windows of logs under two limits, by each contender.
fn on_logs(options: &Options, progress: Progress<'_>) -> Result<Vec<RunFigures>, ShareError> {
    let (windows, _) = logs::all(options)?;
    let mut tasks = Vec::new();
    for Window { machine, mut workload } in windows.into_iter().step_by(EVERY) {
        workload.slice(0..OF_A_WINDOW.min(workload.jobs().len()));
        let case = Arc::new((machine, workload));
        for percent in [80, 60] {
            tasks.extend(contenders().map(|(_, scheduler)| (case.clone(), percent, scheduler)));
        }
    }
    let run = |(case, percent, scheduler): &(Arc<(Machine, Workload)>, u32, Scheduler)| {
        let (machine, workload) = &**case;
        let limit = Share::percent(*percent).of(machine.max_power());
        // How jobs run in PARM's paper, for all alike.
        let feed = NodeCaps::of(machine, ParmSpec::default().levels);
        let (jobs, seed) = (workload.jobs(), options.seed);
        let model = Elastic::new(machine, feed, &Application::ALL, jobs, seed);
        let run = Simulation::new(machine, workload)
            .budget(Budget::constant(limit))
            .model(&model as &dyn Model)
            .run(scheduler.policy().as_mut());
        RunFigures::of(workload, &run)
    };
    Ok(in_parallel(&tasks, run, progress))
}

/// Sets the figures of all contenders beside those of the first, case by case.
fn add(experiment: &'static str, figures: &[RunFigures], findings: &mut Vec<Finding>) {
    let cases: Vec<&[RunFigures]> = figures.chunks(contenders().len()).collect();
    for (place, (name, _)) in contenders().into_iter().enumerate() {
        let of = |place: usize, figure: fn(&RunFigures) -> f64| {
            cases.iter().map(move |case| figure(&case[place]))
        };
        let mut row = |metric: &str, published: Option<f64>, measured: f64, unit| {
            findings.push(Finding {
                experiment,
                workload: name.to_owned(),
                metric: metric.to_owned(),
                published,
                measured: Some(measured),
                unit,
                variation: None,
            });
        };
        let turnaround: fn(&RunFigures) -> f64 = |figures| figures.completion;
        let longest: fn(&RunFigures) -> f64 = |figures| figures.longest_completion;
        let makespan: fn(&RunFigures) -> f64 = |figures| figures.makespan;
        row("mean turnaround", None, mean(of(place, turnaround)), "min");
        row("mean wait", None, mean(of(place, |figures| figures.response)), "min");
        row("longest turnaround", None, mean(of(place, longest)), "min");
        row("makespan", None, mean(of(place, makespan)), "min");
        row("jobs not completed", None, of(place, |figures| figures.undone).sum(), "jobs");
        if place == 0 {
            continue;
        }
        let ratio = |figure| {
            geometric(of(place, figure).zip(of(0, figure)).map(|(ours, theirs)| ours / theirs))
        };
        row("turnaround / parm's", Some(TURNAROUND), ratio(turnaround), "");
        row("longest turnaround / parm's", None, ratio(longest), "");
        row("makespan / parm's", Some(MAKESPAN), ratio(makespan), "");
        let pairs = of(place, turnaround).zip(of(0, turnaround));
        let won = pairs.map(|(ours, theirs)| if ours <= theirs { 100.0 } else { 0.0 });
        row("cases won: turnaround", None, mean(won), "%");
    }
}
