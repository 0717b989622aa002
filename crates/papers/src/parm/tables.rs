//! The published results beside ours.

use super::Options;
use super::runs::{
    ALPHAS, GAMMAS, GUARDS, LEVELS, Mix, RunFigures, Scheduler, Task, UNIFORM, parm, usual,
};
use crate::Finding;
use crate::sample::{Published, Rows, Sample};
use busbar_core::policy::parm::{Flexibility, ParmSpec};
use busbar_core::units::Span;

/// A row of Table V: the set, γ, then response, execution and nodes of baseline, wSE and noSE, and
/// the speed-ups of wSE and noSE.
struct TableFive {
    set: usize,
    gamma: f64,
    response: [f64; 3],
    execution: [f64; 3],
    nodes: [f64; 3],
    speed_up: [f64; 2],
}

const TABLE_FIVE: [TableFive; 5] = [
    TableFive {
        set: 0,
        gamma: 0.5,
        response: [90.0, 3.0, 6.0],
        execution: [80.0, 84.0, 95.0],
        nodes: [453.0, 610.0, 601.0],
        speed_up: [1.91, 1.70],
    },
    TableFive {
        set: 1,
        gamma: 0.5,
        response: [500.0, 34.0, 57.0],
        execution: [57.0, 69.0, 89.0],
        nodes: [632.0, 714.0, 721.0],
        speed_up: [5.25, 4.66],
    },
    TableFive {
        set: 2,
        gamma: 0.5,
        response: [217.0, 99.0, 88.0],
        execution: [60.0, 73.0, 90.0],
        nodes: [520.0, 662.0, 665.0],
        speed_up: [1.65, 1.61],
    },
    TableFive {
        set: 1,
        gamma: 0.7,
        response: [142.0, 12.0, 20.0],
        execution: [57.0, 66.0, 83.0],
        nodes: [596.0, 656.0, 660.0],
        speed_up: [2.36, 1.96],
    },
    TableFive {
        set: 2,
        gamma: 0.7,
        response: [194.0, 95.0, 86.0],
        execution: [60.0, 73.0, 90.0],
        nodes: [488.0, 596.0, 599.0],
        speed_up: [1.54, 1.43],
    },
];

/// How many times as soon jobs were complete as under a uniform cap, by the cap.
const TABLE_SIX: [f64; 4] = [4.32, 1.86, 2.33, 5.25];

/// The runs and what they came to.
struct Results<'a> {
    tasks: &'a [Task],
    outcomes: &'a [RunFigures],
}

impl Results<'_> {
    /// What a run came to. Every run that is asked for is among the tasks.
    fn of(&self, task: Task) -> RunFigures {
        let place = self.tasks.iter().position(|other| *other == task);
        self.outcomes[place.expect("a run that was made")]
    }

    fn projection(&self, set: usize, gamma: f64, scheduler: Scheduler) -> RunFigures {
        self.of(Task::Projection { set, gamma, scheduler })
    }
}

pub(super) fn findings(tasks: &[Task], outcomes: &[RunFigures], options: &Options) -> Vec<Finding> {
    let results = Results { tasks, outcomes };
    let mut findings = testbed(&results, options);
    findings.extend(table_five(&results));
    findings.extend(table_six(&results));
    findings.extend(figure_five(&results));
    let usual = usual();
    let fair = ALPHAS.map(|alpha| (format!("α = {alpha}"), ParmSpec { alpha, ..usual }));
    findings.extend(variants("Fig. 6: α, set 1, γ = 0.5, wSE", &results, &fair));
    let levels = LEVELS.map(|levels| (format!("{levels} levels"), ParmSpec { levels, ..usual }));
    findings.extend(variants(
        "Fig. 7: numbers of power levels, set 1, γ = 0.5, wSE",
        &results,
        &levels,
    ));
    let guards = GUARDS
        .map(|guard| (format!("{guard} s"), ParmSpec { guard: Span::from_secs(guard), ..usual }));
    findings.extend(variants(
        "Not in the paper: how long a job keeps its nodes, set 1, γ = 0.5, wSE",
        &results,
        &guards,
    ));
    findings
}

fn single(
    experiment: &'static str,
    workload: &str,
    metric: impl Into<String>,
    published: Option<f64>,
    measured: f64,
    unit: &'static str,
) -> Finding {
    let (workload, metric, measured) = (workload.to_owned(), metric.into(), Some(measured));
    Finding { experiment, workload, metric, published, measured, unit, variation: None }
}

/// Speed-ups over the baseline, and in how many draws the order is the published one.
fn testbed(results: &Results<'_>, options: &Options) -> Vec<Finding> {
    const EXPERIMENT: &str = "Testbed: 38 nodes, 3 300 W";
    let versions = [
        ("noMM", Flexibility::None),
        ("noSE", Flexibility::Moldable),
        ("wSE", Flexibility::Malleable),
    ];
    let mut findings = Vec::new();
    let mut gains = Vec::new();
    for (name, mix) in [("SetL", Mix::Low), ("SetH", Mix::High)] {
        let mut rows = Rows::new(EXPERIMENT, name.to_owned());
        let seeds = || (0..options.seeds).map(|draw| options.first_seed.wrapping_add(draw));
        let outcome =
            |seed: u64, scheduler: Scheduler| results.of(Task::Testbed { seed, mix, scheduler });
        let baseline: Vec<RunFigures> =
            seeds().map(|seed| outcome(seed, Scheduler::Baseline)).collect();
        let completion: Sample = baseline.iter().map(|run| run.completion).collect();
        rows.add("baseline: completion", Published::Nothing, &completion, "min");
        let mut before: Vec<f64> = vec![1.0; baseline.len()];
        for (version, flexibility) in versions {
            let runs: Vec<RunFigures> =
                seeds().map(|seed| outcome(seed, parm(flexibility))).collect();
            let both = || baseline.iter().zip(&runs);
            let speed_ups: Vec<f64> =
                both().map(|(before, now)| before.completion / now.completion).collect();
            let sample: Sample = speed_ups.iter().copied().collect();
            rows.add(
                format!("{version}: speed-up of completion"),
                Published::Nothing,
                &sample,
                "×",
            );
            let faster: Sample = speed_ups
                .iter()
                .zip(&before)
                .map(|(now, before)| 100.0 * (now / before - 1.0))
                .collect();
            rows.add(format!("{version}: gain over the one before"), Published::Rise, &faster, "%");
            let response: Sample = both()
                .map(|(before, now)| 100.0 * (1.0 - now.response / before.response.max(1e-9)))
                .collect();
            rows.add(format!("{version}: response shorter by"), Published::Rise, &response, "%");
            if flexibility == Flexibility::Malleable {
                gains.push(speed_ups.clone());
            }
            before = speed_ups;
        }
        findings.append(&mut rows.findings);
    }
    if let [low, high] = &gains[..] {
        let mut rows = Rows::new(EXPERIMENT, "both".to_owned());
        let larger: Sample =
            low.iter().zip(high).map(|(low, high)| 100.0 * (low / high - 1.0)).collect();
        rows.add("wSE: speed-up with SetL above that with SetH", Published::Rise, &larger, "%");
        findings.append(&mut rows.findings);
    }
    findings
}

fn table_five(results: &Results<'_>) -> Vec<Finding> {
    const EXPERIMENT: &str = "Table V: the projection to 40 960 nodes";
    let mut findings = Vec::new();
    for row in &TABLE_FIVE {
        let schedulers = [
            ("baseline", Scheduler::Baseline),
            ("wSE", parm(Flexibility::Malleable)),
            ("noSE", parm(Flexibility::Moldable)),
        ];
        let place = format!("set {}, γ = {}", row.set + 1, row.gamma);
        let runs = schedulers
            .map(|(name, scheduler)| (name, results.projection(row.set, row.gamma, scheduler)));
        let mut add = |what: &str, published: [f64; 3], figure: fn(&RunFigures) -> f64, unit| {
            for ((name, run), published) in runs.iter().zip(published) {
                let metric = format!("{what}, {name}");
                findings.push(single(
                    EXPERIMENT,
                    &place,
                    metric,
                    Some(published),
                    figure(run),
                    unit,
                ));
            }
        };
        add("response", row.response, |run| run.response, "min");
        add("execution", row.execution, |run| run.execution, "min");
        add("nodes", row.nodes, |run| run.nodes, "nodes");
        let completion = runs[0].1.completion;
        for ((name, run), published) in runs[1..].iter().zip(row.speed_up) {
            let metric = format!("speed-up of completion, {name}");
            let measured = completion / run.completion;
            findings.push(single(EXPERIMENT, &place, metric, Some(published), measured, "×"));
        }
        let moves = runs[1].1.moves;
        findings.push(single(EXPERIMENT, &place, "changes of nodes, wSE", None, moves, "moves"));
    }
    findings
}

fn table_six(results: &Results<'_>) -> Vec<Finding> {
    const EXPERIMENT: &str = "Table VI: wSE against one cap for all, set 2, γ = 0.5";
    let ours = results.projection(1, 0.5, parm(Flexibility::Malleable)).completion;
    let caps = UNIFORM.iter().zip(TABLE_SIX);
    caps.map(|(&(cap, nodes), published)| {
        let theirs = results.projection(1, 0.5, Scheduler::Uniform { cap, nodes });
        let place = format!("{cap} W, {nodes} nodes");
        let measured = theirs.completion / ours;
        single(EXPERIMENT, &place, "speed-up of completion", Some(published), measured, "×")
    })
    .collect()
}

fn figure_five(results: &Results<'_>) -> Vec<Finding> {
    const EXPERIMENT: &str = "Fig. 5: mean completion time over γ";
    let mut findings = Vec::new();
    for set in 0..3 {
        for gamma in GAMMAS {
            let place = format!("set {}, γ = {gamma}", set + 1);
            let baseline = results.projection(set, gamma, Scheduler::Baseline).completion;
            findings.push(single(EXPERIMENT, &place, "baseline", None, baseline, "min"));
            for (name, flexibility) in
                [("noSE", Flexibility::Moldable), ("wSE", Flexibility::Malleable)]
            {
                let run = results.projection(set, gamma, parm(flexibility)).completion;
                findings.push(single(EXPERIMENT, &place, name, None, run, "min"));
            }
        }
    }
    findings
}

/// Mean and longest completion of variants of PARM on set 1.
fn variants(
    experiment: &'static str,
    results: &Results<'_>,
    variants: &[(String, ParmSpec)],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, spec) in variants {
        let run = results.projection(0, 0.5, Scheduler::Parm(*spec));
        let mut add = |metric: &str, measured| {
            findings.push(single(experiment, name, metric, None, measured, "min"));
        };
        add("completion, mean", run.completion);
        add("completion, longest", run.longest_completion);
    }
    findings
}
