//! Whether share is safe to switch on: beside every other policy and its own variants, in the world that all policies
//! share, under budgets from half of the power to all of it, and under two calendars.
//!
//! A rival counts in a case if it completed as many jobs as ours: whoever leaves jobs out shortens the waits of others.

use std::fmt;

use busbar_core::budget::Budget;
use busbar_core::machine::Machine;
use busbar_core::policy::PolicySpec;
use busbar_core::prepared::{PreparedWorkload, Rules, SharedWorld};
use busbar_core::units::{Instant, Share, Span};
use busbar_core::workload::Workload;
use busbar_core::world::Repertoire;

use super::logs::{self, Window};
use super::{Options, Progress, ShareError, geometric, mean};
use crate::parallel::in_parallel;
use crate::{Finding, Reproduction};

const EXPERIMENT: &str = "Never worse than";

/// One window of so many is taken: the policies that solve programs take their time.
const EVERY: usize = 4;

/// What runs; the first is ours where the site allows everything, the second where it allows caps alone.
const CONTENDERS: [&str; 14] = [
    "share",
    "share(use=caps)",
    "share(use=recaps)",
    "share(use=sizes)",
    "fcfs",
    "easy",
    "easy-power",
    "pb-guided",
    "rmap-traditional",
    "rmap-naive",
    "rmap-adaptive",
    "parm",
    "ppartition",
    "utility",
];

/// Ours, and the rivals that may do no more.
const COMPARISONS: [(usize, &[usize]); 2] =
    [(0, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]), (1, &[4, 5, 6, 7])];

/// What was to be reached: cases within 5 % of the best, in per cent, and the worst case.
const WITHIN: f64 = 95.0;
const WORST: f64 = 1.15;

const DAY: Span = Span::from_secs(24 * 3600);

/// A limit.
#[derive(Clone, Copy, Debug)]
enum Limit {
    /// The same at all times, in per cent of the highest power.
    Always(u32),
    /// So much from one hour to another, on as many days of the week as come first, and another limit otherwise.
    Hours { from: u32, until: u32, days: u64, low: u32, high: u32 },
}

const LIMITS: [Limit; 8] = [
    Limit::Always(50),
    Limit::Always(60),
    Limit::Always(70),
    Limit::Always(80),
    Limit::Always(90),
    Limit::Always(100),
    Limit::Hours { from: 14, until: 18, days: 5, low: 60, high: 100 },
    Limit::Hours { from: 8, until: 20, days: 7, low: 60, high: 90 },
];

impl Limit {
    /// The budget for a workload, and for as long again.
    fn budget(self, machine: &Machine, workload: &Workload) -> Budget {
        let of = |percent| Share::percent(percent).of(machine.max_power());
        let Limit::Hours { from, until, days, low, high } = self else {
            let Limit::Always(percent) = self else { return Budget::unlimited() };
            return Budget::constant(of(percent));
        };
        let last = workload.jobs().last().map_or(Instant::ZERO, |job| job.submit);
        let whole = 2 * (last.millis() / DAY.millis() + 30);
        let cut = (0..whole).filter(|day| day % 7 < days).flat_map(|day| {
            let hour = |hour: u32| Span::from_secs(hour * 3600).millis();
            let at = |of_day| Instant::from_millis(day * DAY.millis() + hour(of_day));
            [(at(from), of(low)), (at(until), of(high))]
        });
        let steps = [(Instant::ZERO, of(high))].into_iter().chain(cut).collect();
        Budget::from_steps(steps).unwrap_or(Budget::unlimited())
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Always(percent) => write!(f, "{percent} %"),
            Limit::Hours { from, until, days, low, high } => {
                let days = if *days == 7 { "each day" } else { "weekdays" };
                write!(f, "{low} % {days} from {from} to {until} o'clock, else {high} %")
            }
        }
    }
}

/// What became of the jobs of a case under every contender that could decide there: the mean slowdown, and how many jobs
/// were completed.
type Case = Vec<Option<(f64, u64)>>;

/// Runs all contenders in all cases.
pub(super) fn reproduce(
    options: &Options,
    progress: Progress<'_>,
) -> Result<Reproduction, ShareError> {
    let (windows, mut notes) = logs::all(options)?;
    let windows: Vec<Window> = windows.into_iter().step_by(EVERY).collect();
    let mut tasks = Vec::new();
    for window in &windows {
        for limit in LIMITS {
            for contender in CONTENDERS {
                tasks.push((window, limit, contender.parse::<PolicySpec>()?));
            }
        }
    }
    let results = in_parallel(
        &tasks,
        |(window, limit, policy)| result(window, *limit, policy, options.seed),
        progress,
    );
    let cases: Vec<Case> = results.chunks(CONTENDERS.len()).map(<[_]>::to_vec).collect();
    let mut findings = Vec::new();
    let places: Vec<String> = windows.iter().flat_map(Window::under_each_limit).collect();
    for (ours, rivals) in COMPARISONS {
        compare(&cases, ours, rivals, &mut findings);
        notes.extend(losses(&places, &cases, ours, rivals));
    }
    notes.push(format!(
        "never worse than: {} windows, one of {EVERY}, each under 50 to 100 % of the power and two calendars (60 % on \
         weekday afternoons, else 100 %; 60 % by day, else 90 %), all freedoms but drops; slowdowns are ours over \
         theirs, geometric means over the cases in which theirs completed as many jobs",
        windows.len()
    ));
    Ok(Reproduction { findings, notes })
}

/// What a policy makes of a window; nothing where it cannot decide.
fn result(window: &Window, limit: Limit, policy: &PolicySpec, seed: u64) -> Option<(f64, u64)> {
    let applications = Repertoire::BuiltIn;
    let machine = applications.filled_in(&window.machine).ok()?;
    let prepared = PreparedWorkload::new(machine, window.workload.clone(), true);
    let PreparedWorkload { machine, workload, .. } = &prepared;
    let shared =
        SharedWorld::new(machine, workload, &applications, &Rules::default(), seed).ok()?;
    let belief = shared.belief(policy, machine, workload.jobs()).ok()?;
    let budget = limit.budget(machine, workload);
    let run = prepared.in_shared_world(policy.clone(), budget, &shared, belief.as_ref()).run();
    let summary = run.summary;
    Some((summary.mean_bsld?, summary.completed))
}

impl Window {
    /// What a case of it is called, under each limit.
    fn under_each_limit(&self) -> impl Iterator<Item = String> {
        let first = self.workload.jobs().first().map_or(0, |job| job.number);
        let name = format!("{} from job {first} on", self.workload.name());
        LIMITS.iter().map(move |limit| format!("{name}, {limit}"))
    }
}

/// The slowdown of a rival, if it completed as many jobs as ours.
fn slowdown(case: &Case, ours: usize, rival: usize) -> Option<f64> {
    let (slowdown, completed) = case[rival]?;
    (completed >= case[ours]?.1).then_some(slowdown)
}

/// The best of the rivals in a case, and its slowdown.
fn best(case: &Case, ours: usize, rivals: &[usize]) -> Option<(usize, f64)> {
    let known = rivals.iter().filter_map(|rival| Some((*rival, slowdown(case, ours, *rival)?)));
    known.min_by(|one, other| one.1.total_cmp(&other.1))
}

/// The cases that ours lost by more than 5 %, the worst first.
fn losses(places: &[String], cases: &[Case], ours: usize, rivals: &[usize]) -> Vec<String> {
    let lost = places.iter().zip(cases).filter_map(|(place, case)| {
        let (rival, theirs) = best(case, ours, rivals)?;
        let ratio = case[ours]?.0 / theirs;
        (ratio > 1.05).then_some((ratio, place, CONTENDERS[rival]))
    });
    let mut lost: Vec<(f64, &String, &str)> = lost.collect();
    lost.sort_by(|one, other| other.0.total_cmp(&one.0));
    let line = |(ratio, place, rival): (f64, &String, &str)| {
        format!("{} loses to {rival} by a factor of {ratio:.2}: {place}", CONTENDERS[ours])
    };
    lost.into_iter().map(line).collect()
}

/// Ours beside each rival, and beside the best of them.
fn compare(cases: &[Case], ours: usize, rivals: &[usize], findings: &mut Vec<Finding>) {
    let slowdown = |case: &Case, rival: usize| slowdown(case, ours, rival);
    let best = |case: &Case| best(case, ours, rivals).map(|(_, slowdown)| slowdown);
    let beside = |theirs: &dyn Fn(&Case) -> Option<f64>| -> Vec<f64> {
        cases.iter().filter_map(|case| Some(case[ours]?.0 / theirs(case)?)).collect()
    };
    let mut add = |rival: &str, goals: [Option<f64>; 3], ratios: &[f64]| {
        let within = ratios.iter().map(|ratio| if *ratio <= 1.05 { 100.0 } else { 0.0 });
        let worst = ratios.iter().copied().fold(f64::NAN, f64::max);
        let figures = [
            ("slowdown of theirs", goals[0], geometric(ratios.iter().copied()), ""),
            ("cases within 5 %", goals[1], mean(within), "%"),
            ("worst case", goals[2], worst, ""),
            ("cases", None, ratios.len() as f64, ""),
        ];
        for (metric, goal, measured, unit) in figures {
            findings.push(Finding {
                experiment: EXPERIMENT,
                workload: format!("{} against {rival}", CONTENDERS[ours]),
                metric: metric.to_owned(),
                published: goal,
                measured: Some(measured),
                unit,
                variation: None,
            });
        }
    };
    add("the best", [None, Some(WITHIN), Some(WORST)], &beside(&best));
    for rival in rivals {
        let ratios = beside(&|case: &Case| slowdown(case, *rival));
        if !ratios.is_empty() {
            add(CONTENDERS[*rival], [Some(1.0), None, None], &ratios);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_contenders_can_be_read() {
        for contender in CONTENDERS {
            assert!(contender.parse::<PolicySpec>().is_ok(), "{contender}");
        }
    }

    /// Two cases by hand: in the first the rival is twice as good, in the second it left jobs out, and another is as good.
    #[test]
    fn whoever_leaves_jobs_out_does_not_count() {
        let cases = vec![
            vec![Some((4.0, 9)), Some((2.0, 9)), Some((8.0, 10))],
            vec![Some((3.0, 9)), Some((1.0, 8)), Some((3.0, 9))],
        ];
        let mut findings = Vec::new();
        compare(&cases, 0, &[1, 2], &mut findings);
        let measured: Vec<f64> = findings.iter().filter_map(|finding| finding.measured).collect();
        let root = 2f64.sqrt();
        let expected = [root, 50.0, 2.0, 2.0, 2.0, 0.0, 2.0, 1.0, 1.0 / root, 100.0, 1.0, 2.0];
        let is_close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12;
        assert!(measured.iter().zip(&expected).all(is_close), "{measured:?}");
        assert_eq!(measured.len(), expected.len());
    }
}
