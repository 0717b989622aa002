//! RMAP's ground: its traces on its machine, where sizes may be chosen at the start.

use busbar_core::machine::Machine;
use busbar_core::policy::PolicySpec;
use busbar_core::profile::cab::{self, Preset};
use busbar_core::sim::State;

use super::{Options, Progress, ShareError, geometric, mean};
use crate::parallel::in_parallel;
use crate::rmap::ReproduceError;
use crate::rmap::experiment::{BOUNDS, trials};
use crate::{Finding, Reproduction};

/// Who takes part, all with measured tables; the first two are the published ones that others are compared
/// with, any slowdown allowed and none.
const CONTENDERS: [(&str, &str); 6] = [
    ("rmap-adaptive, any slowdown", "rmap-adaptive(slowdown=unbounded)"),
    ("rmap-adaptive, no slowdown", "rmap-adaptive"),
    ("share, use=sizes", "share(use=sizes)"),
    ("share, use=sizes, fair=on", "share(use=sizes, fair=on)"),
    ("share, use=sizes, order=aged", "share(use=sizes, order=aged)"),
    ("share, use=sizes, order=aged, fair=on", "share(use=sizes, order=aged, fair=on)"),
];

/// What was to be reached, of adaptive's mean turnaround with any slowdown allowed.
const GOALS: [(&str, f64); 2] = [("share, use=sizes", 0.75), ("share, use=sizes, fair=on", 0.97)];

/// What one contender made of one case: a trace under a bound. Times are in seconds.
#[derive(Clone, Copy, Debug)]
struct Figures {
    turnaround: f64,
    longest: f64,
    undone: f64,
}

/// The figures of each contender in each case of one seed on one machine.
fn cases(
    preset: Preset,
    seed: u64,
    policies: &[PolicySpec],
) -> Result<Vec<Vec<Figures>>, ReproduceError> {
    let machine = Machine::cab();
    let measured = cab::generate(preset, seed);
    let mut cases = Vec::new();
    for trial in trials(&machine, &measured, seed)? {
        for bound in BOUNDS {
            let figures = policies.iter().map(|policy| {
                let run = trial.run_informed(policy.clone(), bound);
                let times = trial.turnarounds(&run);
                let times = || times.iter().map(|time| time.secs_f64());
                let done = run.records.iter().filter(|record| record.state == State::Completed);
                Figures {
                    turnaround: mean(times()),
                    longest: times().fold(0.0, f64::max),
                    undone: (run.records.len() - done.count()) as f64,
                }
            });
            cases.push(figures.collect());
        }
    }
    Ok(cases)
}

/// Runs all contenders on all traces of all seeds.
pub(super) fn reproduce(
    options: &Options,
    progress: Progress<'_>,
) -> Result<Reproduction, ShareError> {
    let policies: Vec<PolicySpec> =
        CONTENDERS.iter().map(|(_, policy)| policy.parse()).collect::<Result<_, _>>()?;
    let seeds = (0..options.seeds).map(|draw| options.seed.wrapping_add(draw));
    let tasks: Vec<(Preset, u64)> =
        seeds.flat_map(|seed| Preset::ALL.map(|preset| (preset, seed))).collect();
    let mut table = Vec::new();
    for done in in_parallel(&tasks, |(preset, seed)| cases(*preset, *seed, &policies), progress) {
        table.extend(done?);
    }
    let mut findings = Vec::new();
    for (place, (name, _)) in CONTENDERS.iter().enumerate() {
        let of = |place: usize, figure: fn(&Figures) -> f64| {
            table.iter().map(move |case| figure(&case[place]))
        };
        let mut row = |metric: &str, published: Option<f64>, measured: f64, unit| {
            findings.push(Finding {
                experiment: "RMAP's traces",
                workload: (*name).to_owned(),
                metric: metric.to_owned(),
                published,
                measured: Some(measured),
                unit,
                variation: None,
            });
        };
        let turnaround: fn(&Figures) -> f64 = |figures| figures.turnaround;
        let longest: fn(&Figures) -> f64 = |figures| figures.longest;
        row("mean turnaround", None, mean(of(place, turnaround)), "s");
        row("longest turnaround", None, mean(of(place, longest)), "s");
        row("jobs not completed", None, of(place, |figures| figures.undone).sum(), "jobs");
        if place == 0 {
            continue;
        }
        let ratio = |figure| {
            geometric(of(place, figure).zip(of(0, figure)).map(|(ours, theirs)| ours / theirs))
        };
        let goal = GOALS.iter().find(|(of, _)| of == name).map(|(_, goal)| *goal);
        row("turnaround / rmap-adaptive's", goal, ratio(turnaround), "");
        row("longest turnaround / rmap-adaptive's", None, ratio(longest), "");
        let pairs = of(place, turnaround).zip(of(0, turnaround));
        let won = pairs.map(|(ours, theirs)| if ours <= theirs { 100.0 } else { 0.0 });
        row("cases won: turnaround", None, mean(won), "%");
    }
    let notes = vec![format!(
        "RMAP's traces: {} seeds, two generated machines, {} cases; all know the measured tables; ratios are \
         geometric means against rmap-adaptive with any slowdown allowed",
        options.seeds,
        table.len()
    )];
    Ok(Reproduction { findings, notes })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everybody finishes, under every bound: a rule that leaves jobs out would look brilliant.
    #[test]
    fn nobody_is_left_out() {
        let policies: Vec<PolicySpec> =
            CONTENDERS.iter().map(|(_, policy)| policy.parse().unwrap()).collect();
        for case in cases(Preset::Cab, 7, &policies).unwrap() {
            assert!(case.iter().all(|figures| figures.undone == 0.0), "{case:?}");
        }
    }
}
