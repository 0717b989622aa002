//! RMAP (Patki and others: Practical resource management in power-constrained high performance
//! computing, HPDC 2015): three policies on 64 overprovisioned nodes under bounds from 6 500 to
//! 14 000 W.
//!
//! The paper's measurements and traces were never published. Both generated machines stand in for
//! the first and many draws for the second, each draw with its own measurement noise; what is
//! reported is the mean over the draws, their spread, and in how many of them the sign is the
//! published one.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::budget::Budget;
use crate::job::Tolerance;
use crate::machine::Machine;
use crate::metrics::wait;
use crate::model::{Beliefs, Profiled, ProfiledError};
use crate::policy::PolicySpec;
use crate::policy::rmap::{RmapSpec, Rule};
use crate::profile::Profile;
use crate::profile::cab::{self, Preset};
use crate::profile::fit::{self, FitError, Training};
use crate::reproduce::{Finding, Reproduction};
use crate::scenario::Scenario;
use crate::units::{Share, Watts};
use crate::workload::Workload;
use crate::workload::rmap::{Kind, Trace, TraceError, UsualTimes};

const BOUNDS: [u32; 5] = [6500, 8000, 10_000, 12_000, 14_000];
const STRETCHES: [f64; 3] = [1.0, 2.0, 4.0];
const TOLERANCES: [Tolerance; 5] = [
    Tolerance::Slowdown(Share::percent(0)),
    Tolerance::Slowdown(Share::percent(10)),
    Tolerance::Slowdown(Share::percent(20)),
    Tolerance::Slowdown(Share::percent(30)),
    Tolerance::Unbounded,
];

/// How many draws, and from where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Draws of traces and of measurement noise.
    pub seeds: u64,
    /// The first seed.
    pub first_seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { seeds: 100, first_seed: 1 }
    }
}

/// Why the experiments could not be repeated.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// The profiles do not serve.
    #[error(transparent)]
    Profiles(#[from] ProfiledError),
    /// No trace can be drawn from them.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// They cannot be fitted.
    #[error(transparent)]
    Fit(#[from] FitError),
}

/// One draw: mean turnaround in seconds of each policy under each bound, with measured tables for
/// everybody (`even`), and with predicted ones for adaptive.
struct Draw {
    preset: Preset,
    kind: Kind,
    stretch: usize,
    traditional: [f64; BOUNDS.len()],
    /// Traditional that sets 230 W a node aside.
    worst_case: [f64; BOUNDS.len()],
    naive: [f64; BOUNDS.len()],
    even: [[f64; TOLERANCES.len()]; BOUNDS.len()],
    predicted: [[f64; TOLERANCES.len()]; BOUNDS.len()],
    /// Jobs that are better off with adaptive(0 %) than with traditional at the highest bound.
    bettered: f64,
    /// Watts handed out at the highest bound, mean over time: traditional, adaptive(0 %).
    allocated: [f64; 2],
    /// Jobs that do not wait under traditional at the highest bound.
    unhindered: f64,
    /// Runs in which the true power passed the bound, with predicted tables; with a guard band.
    excursions: f64,
    guarded_excursions: f64,
}

/// Runs the paper's experiments; `progress` hears how many draws are done, of how many.
pub fn reproduce(
    options: &Options,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Reproduction, ReproduceError> {
    let tasks: Vec<(Preset, u64)> = Preset::ALL
        .into_iter()
        .flat_map(|preset| (0..options.seeds).map(move |draw| (preset, options.first_seed + draw)))
        .collect();
    let next = AtomicU64::new(0);
    let done = Mutex::new(Vec::new());
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed) as usize;
            let Some(&(preset, seed)) = tasks.get(index) else { return };
            let drawn = draw(preset, seed);
            // A worker that panicked took its draws with it; the others are sound.
            let mut done = done.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            done.push((index, drawn));
            progress(done.len() as u64, tasks.len() as u64);
        }
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        for _ in 1..cores.min(tasks.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    let mut drawn = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    drawn.sort_by_key(|(index, _)| *index);
    let mut draws = Vec::new();
    for (_, drawn) in drawn {
        draws.extend(drawn?);
    }
    let mut findings = model_errors(options.first_seed)?;
    for preset in Preset::ALL {
        for (stretch, factor) in STRETCHES.iter().enumerate() {
            let of = |kinds: &'static [Kind]| {
                draws.iter().filter(move |draw| {
                    draw.preset == preset && draw.stretch == stretch && kinds.contains(&draw.kind)
                })
            };
            let place = format!("{preset}, gaps × {factor}");
            summarise(&place, &of, &mut findings);
        }
    }
    let notes = vec![
        format!(
            "{} draws of each trace; ± is the standard deviation over the draws",
            options.seeds
        ),
        "turnaround: from submission to end, mean over the 30 jobs; better: less of it".to_owned(),
        "the published comparison gives adaptive predicted tables and the others measured ones; \
         'even' gives everybody measured ones"
            .to_owned(),
    ];
    Ok(Reproduction { findings, notes })
}

/// All runs of one draw of measurements and traces.
fn draw(preset: Preset, seed: u64) -> Result<Vec<Draw>, ReproduceError> {
    let machine = Machine::cab();
    let measured = cab::generate(preset, seed);
    let predicted = predict(&measured, seed)?;
    let usual = UsualTimes(measured.iter().map(Profile::usual_times).collect());
    let mut draws = Vec::new();
    for kind in Kind::ALL {
        for (stretch, factor) in STRETCHES.into_iter().enumerate() {
            let trace = Trace { kind, gaps: factor, seed, ..Trace::default() };
            let workload = trace.draw(&usual, 1)?;
            let table = |profiles: &[Profile], node_power| {
                let beliefs = Beliefs { node_power, ..Beliefs::default() };
                Profiled::new(&machine, profiles, workload.jobs(), beliefs)
            };
            let models = Models {
                machine: &machine,
                workload: &workload,
                measured: table(&measured, None)?,
                predicted: table(&predicted, None)?,
                worst_case: table(&measured, Some(Watts::from_watts(230)))?,
            };
            draws.push(models.run(preset, kind, stretch));
        }
    }
    Ok(draws)
}

/// Every row as a model says that was fitted to a tenth of them.
fn predict(measured: &[Profile], seed: u64) -> Result<Vec<Profile>, FitError> {
    let training = Training::Random { share: Share::percent(10), seed };
    measured.iter().map(|profile| fit::predicted(profile, &training)).collect()
}

struct Models<'a> {
    machine: &'a Machine,
    workload: &'a Workload,
    measured: Profiled,
    predicted: Profiled,
    worst_case: Profiled,
}

/// What one run came to.
struct Outcome {
    turnaround: f64,
    turnarounds: Vec<f64>,
    unhindered: usize,
    /// Watts drawn from the first submission to the last end, mean over time.
    drawn: f64,
    has_excursions: bool,
}

impl Models<'_> {
    fn simulate(&self, spec: RmapSpec, believed: &Profiled, bound: u32) -> Outcome {
        let simulated = Scenario {
            model: Some(believed),
            truth: Some(&self.measured),
            budget: Budget::constant(Watts::from_watts(bound)),
            ..Scenario::new(self.machine, self.workload, PolicySpec::Rmap(spec))
        }
        .simulate(&mut |_| {});
        let jobs = || self.workload.jobs().iter().zip(&simulated.run.records);
        let turnarounds: Vec<f64> =
            jobs().map(|(job, record)| record.end.since(job.submit).secs_f64()).collect();
        Outcome {
            turnaround: mean(&turnarounds),
            unhindered: jobs().filter(|(job, record)| wait(job, record).millis() == 0).count(),
            drawn: {
                let run = &simulated.run;
                run.energy.as_f64() / run.end.since(run.begin).secs_f64().max(1e-3)
            },
            has_excursions: simulated.run.excursions.count > 0,
            turnarounds,
        }
    }

    fn run(&self, preset: Preset, kind: Kind, stretch: usize) -> Draw {
        let rule = RmapSpec::of;
        let adaptive = |tolerance| rule(Rule::Adaptive(tolerance));
        let each = |spec: RmapSpec, believed: &Profiled| {
            BOUNDS.map(|bound| self.simulate(spec, believed, bound).turnaround)
        };
        let tolerances = |believed: &Profiled| {
            BOUNDS.map(|bound| {
                TOLERANCES.map(|t| self.simulate(adaptive(t), believed, bound).turnaround)
            })
        };
        let highest = BOUNDS[BOUNDS.len() - 1];
        let traditional = self.simulate(rule(Rule::Traditional), &self.measured, highest);
        let adapted = self.simulate(adaptive(TOLERANCES[0]), &self.predicted, highest);
        let both = traditional.turnarounds.iter().zip(&adapted.turnarounds);
        let guarded = RmapSpec { guard: Share::percent(15), ..adaptive(TOLERANCES[0]) };
        let excursions = |spec| {
            let runs = BOUNDS.map(|bound| self.simulate(spec, &self.predicted, bound));
            runs.iter().filter(|run| run.has_excursions).count() as f64 / BOUNDS.len() as f64
        };
        Draw {
            preset,
            kind,
            stretch,
            traditional: each(rule(Rule::Traditional), &self.measured),
            worst_case: each(rule(Rule::Traditional), &self.worst_case),
            naive: each(rule(Rule::Naive), &self.measured),
            even: tolerances(&self.measured),
            predicted: tolerances(&self.predicted),
            bettered: both.filter(|(before, after)| after < before).count() as f64,
            allocated: [traditional.drawn, adapted.drawn],
            unhindered: traditional.unhindered as f64,
            excursions: excursions(adaptive(TOLERANCES[0])),
            guarded_excursions: excursions(guarded),
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn deviation(values: &[f64]) -> f64 {
    let middle = mean(values);
    mean(&values.iter().map(|value| (value - middle).powi(2)).collect::<Vec<_>>()).sqrt()
}

/// How much less the second is, in per cent of the first; averaged over the bounds.
fn gain(before: &[f64; BOUNDS.len()], after: impl Fn(usize) -> f64) -> f64 {
    let gains: Vec<f64> =
        before.iter().enumerate().map(|(i, before)| 100.0 * (1.0 - after(i) / before)).collect();
    mean(&gains)
}

/// The numbers of one machine and one load.
fn summarise<'d, I: Iterator<Item = &'d Draw>>(
    place: &str,
    of: &impl Fn(&'static [Kind]) -> I,
    findings: &mut Vec<Finding>,
) {
    let mut row = |experiment, metric: String, published, measured, unit| {
        let workload = place.to_owned();
        findings.push(Finding { experiment, workload, metric, published, measured, unit });
    };
    const GAINS: &str = "Turnaround: adaptive(0 %) against the others, mean of the bounds";
    let random: &'static [Kind] = &[Kind::RandomEarly, Kind::Random];
    let traces = [
        ("random", random, Some(18.5), Some(36.1)),
        ("large", &[Kind::Large], Some(14.3), Some(21.7)),
        ("small", &[Kind::Small], Some(-16.6), None),
    ];
    for (name, kinds, over_traditional, over_naive) in traces {
        type Gain = fn(&Draw) -> f64;
        let predicted: [(&str, Option<f64>, Gain); 3] = [
            ("over traditional", over_traditional, |d| gain(&d.traditional, |i| d.predicted[i][0])),
            ("over naive", over_naive, |d| gain(&d.naive, |i| d.predicted[i][0])),
            ("over traditional, 230 W a node", None, |d| {
                gain(&d.worst_case, |i| d.predicted[i][0])
            }),
        ];
        let even: [(&str, Option<f64>, Gain); 2] = [
            ("over traditional, even", None, |d| gain(&d.traditional, |i| d.even[i][0])),
            ("over naive, even", None, |d| gain(&d.naive, |i| d.even[i][0])),
        ];
        for (what, published, gain) in predicted.into_iter().chain(even) {
            let gains: Vec<f64> = of(kinds).map(gain).collect();
            row(GAINS, format!("{name}: better {what}"), published, Some(mean(&gains)), "%");
            row(GAINS, format!("{name}: ± {what}"), None, Some(deviation(&gains)), "%");
            if let Some(published) = published {
                let agree = gains.iter().filter(|gain| gain.signum() == published.signum());
                let share = 100.0 * agree.count() as f64 / gains.len().max(1) as f64;
                row(
                    GAINS,
                    format!("{name}: draws whose sign is the published, {what}"),
                    None,
                    Some(share),
                    "%",
                );
            }
        }
    }
    const LARGE: &str = "Large trace at 6 500 W: mean turnaround";
    let large =
        |figure: fn(&Draw) -> f64| Some(mean(&of(&[Kind::Large]).map(figure).collect::<Vec<_>>()));
    row(LARGE, "traditional".to_owned(), Some(684.0), large(|d| d.traditional[0]), "s");
    row(LARGE, "traditional, 230 W a node".to_owned(), None, large(|d| d.worst_case[0]), "s");
    row(LARGE, "naive".to_owned(), Some(990.0), large(|d| d.naive[0]), "s");
    let published = [Some(636.0), Some(613.0), Some(536.0), Some(536.0), None];
    let figures: [fn(&Draw) -> f64; 5] = [
        |d| d.predicted[0][0],
        |d| d.predicted[0][1],
        |d| d.predicted[0][2],
        |d| d.predicted[0][3],
        |d| d.predicted[0][4],
    ];
    for ((tolerance, published), figure) in TOLERANCES.iter().zip(published).zip(figures) {
        row(LARGE, format!("adaptive({tolerance})"), published, large(figure), "s");
    }
    const OTHER: &str = "Other statements";
    let over_unbounded =
        large(|d| mean(&d.predicted.map(|bound| 100.0 * (1.0 - bound[0] / bound[4]))));
    let name = "large: adaptive(0 %) better than unbounded".to_owned();
    row(OTHER, name, Some(33.8), over_unbounded, "%");
    let random_two =
        |figure: fn(&Draw) -> f64| Some(mean(&of(&[Kind::Random]).map(figure).collect::<Vec<_>>()));
    let name = "random 2 at 14 000 W: of 30 jobs, better off than under traditional".to_owned();
    row(OTHER, name, Some(28.0), random_two(|d| d.bettered), "jobs");
    for (place, policy) in ["traditional", "adaptive(0 %)"].into_iter().enumerate() {
        let watts: Vec<f64> = of(&[Kind::Random]).map(|draw| draw.allocated[place]).collect();
        let name = format!("random 2 at 14 000 W: mean power drawn, {policy}");
        row(OTHER, name, None, Some(mean(&watts)), "W");
    }
    let raised = random_two(|d| if d.allocated[1] > d.allocated[0] { 100.0 } else { 0.0 });
    let name = "random 2 at 14 000 W: draws in which adaptive(0 %) draws more".to_owned();
    row(OTHER, name, None, raised, "%");
    let name =
        "random 2 at 14 000 W: of 30 jobs, those that do not wait under traditional".to_owned();
    row(OTHER, name, None, random_two(|d| d.unhindered), "jobs");
    let all: &'static [Kind] = &Kind::ALL;
    let share =
        |figure: fn(&Draw) -> f64| Some(100.0 * mean(&of(all).map(figure).collect::<Vec<_>>()));
    let name = "runs in which true power passes the bound, predicted tables".to_owned();
    row(OTHER, name, None, share(|d| d.excursions), "%");
    let name = "the same with a guard band of 15 %".to_owned();
    row(OTHER, name, None, share(|d| d.guarded_excursions), "%");
}

/// How well a tenth of the rows predicts the others; the worst of the eight applications.
fn model_errors(seed: u64) -> Result<Vec<Finding>, FitError> {
    let mut findings = Vec::new();
    for preset in Preset::ALL {
        let profiles = cab::generate(preset, seed);
        let share = Share::percent(10);
        for (how, training) in [
            ("random rows", Training::Random { share, seed }),
            ("designed rows", Training::Designed { share }),
        ] {
            let mut worst = [0.0f64; 6];
            for profile in &profiles {
                let fit = fit::train(profile, &training)?;
                let Some(errors) = fit::errors(&fit, &profile.rows) else { continue };
                let figures = [
                    errors.time.mean,
                    errors.time.median,
                    errors.time.upper_quartile,
                    errors.time.maximum,
                    errors.power_far_too_low,
                    errors.worst_power_too_low,
                ];
                for (worst, figure) in worst.iter_mut().zip(figures) {
                    *worst = worst.max(100.0 * figure);
                }
            }
            let metrics = [
                ("time, mean error", 10.0),
                ("time, median error", 7.7),
                ("time, third quartile", 13.2),
                ("time, largest error", 33.0),
                ("power more than 10 % too low, share of rows", 4.0),
                ("power, worst under-prediction", 15.0),
            ];
            for ((metric, published), measured) in metrics.into_iter().zip(worst) {
                findings.push(Finding {
                    experiment: "Model: worst of the eight applications (published: below)",
                    workload: format!("{preset}, {how}"),
                    metric: metric.to_owned(),
                    published: Some(published),
                    measured: Some(measured),
                    unit: "%",
                });
            }
        }
    }
    Ok(findings)
}
