//! PB-guided's ground: logs on machines with frequency levels, under a power limit.

use std::path::{Path, PathBuf};

use busbar_core::budget::Budget;
use busbar_core::machine::Machine;
use busbar_core::metrics::Summary;
use busbar_core::model::{Dvfs, Knowledge, Oversized};
use busbar_core::policy::PolicySpec;
use busbar_core::scenario::Scenario;
use busbar_core::units::Share;
use busbar_core::workload::Workload;
use busbar_workloads::lublin::Lublin;
use busbar_workloads::swf;

use super::{Options, Part, Progress, ShareError, geometric, mean};
use crate::parallel::in_parallel;
use crate::{Finding, Reproduction};

/// The limits, of all processors at top frequency, each with the one frequency that suits it best.
const BUDGETS: [(u32, &str); 2] = [(80, "2GHz"), (60, "1.7GHz")];

/// One window of so many is for choosing parameters: the first ones of a log.
const CHOOSING: usize = 5;

/// How many windows a generated stand-in has.
const STAND_INS: u64 = 6;

/// The halving times that were tried.
const HALVINGS: [&str; 8] = ["30min", "1h", "2h", "4h", "8h", "16h", "32h", "64h"];

/// The policies compared under a limit; the first is the reference.
fn contenders(part: Part, gear: &str) -> Vec<(String, String)> {
    if part == Part::Choosing {
        let tried = ["aged", "history"].into_iter().flat_map(|order| {
            HALVINGS.map(|halving| {
                let name = format!("share, order={order}, halving={halving}");
                (name, format!("share(use=caps, order={order}, halving={halving})"))
            })
        });
        return [("pb-guided".to_owned(), "pb-guided".to_owned())]
            .into_iter()
            .chain(tried)
            .collect();
    }
    let fixed = format!("easy-power(gear={gear}");
    let judged = [
        ("pb-guided", "pb-guided".to_owned()),
        ("one fixed frequency", format!("{fixed})")),
        ("share", "share(use=caps)".to_owned()),
        ("pb-guided, order=aged", "pb-guided(order=aged)".to_owned()),
        ("one fixed frequency, order=aged", format!("{fixed}, order=aged)")),
        ("share, order=aged", "share(use=caps, order=aged)".to_owned()),
        ("pb-guided, order=history", "pb-guided(order=history)".to_owned()),
        ("one fixed frequency, order=history", format!("{fixed}, order=history)")),
        ("share, order=history", "share(use=caps, order=history)".to_owned()),
        ("share, use=recaps", "share(use=recaps)".to_owned()),
        ("share, use=recaps, order=aged", "share(use=recaps, order=aged)".to_owned()),
        ("share, use=recaps, order=history", "share(use=recaps, order=history)".to_owned()),
    ];
    judged.map(|(name, policy)| (name.to_owned(), policy)).to_vec()
}

/// What was to be reached: under which limit, by whom, and the slowdown in relation to PB-guided's.
const GOALS: [(u32, &str, f64); 4] = [
    (80, "share", 0.55),
    (60, "share", 0.50),
    (80, "share, order=history", 0.33),
    (60, "share, order=history", 0.27),
];

/// A part of a log, with the machine that the log is from.
pub(super) struct Window {
    pub(super) machine: Machine,
    pub(super) workload: Workload,
}

/// The figures of one run that are compared.
#[derive(Clone, Copy, Debug)]
struct Figures {
    slowdown: f64,
    wait_s: f64,
    p99_s: f64,
    longest_s: f64,
    energy: f64,
    undone: f64,
}

impl Figures {
    fn of(summary: &Summary) -> Self {
        let known = |figure: Option<f64>| figure.unwrap_or(f64::NAN);
        Figures {
            slowdown: known(summary.mean_bsld),
            wait_s: known(summary.mean_wait_s),
            p99_s: known(summary.p99_wait_s),
            longest_s: known(summary.max_wait_s),
            energy: known(summary.energy_vs_nominal),
            undone: (summary.jobs - summary.completed) as f64,
        }
    }
}

/// Runs all contenders on all windows.
pub(super) fn reproduce(
    options: &Options,
    progress: Progress<'_>,
) -> Result<Reproduction, ShareError> {
    let (windows, mut notes) = all(options)?;
    let mut tasks = Vec::new();
    for (budget, gear) in BUDGETS {
        for window in &windows {
            for (_, policy) in contenders(options.part, gear) {
                tasks.push((budget, window, policy.parse::<PolicySpec>()?));
            }
        }
    }
    let figures = in_parallel(
        &tasks,
        |(budget, window, policy)| run(window, *budget, policy.clone(), options.seed),
        progress,
    );
    let mut findings = Vec::new();
    for ((budget, gear), runs) in
        BUDGETS.into_iter().zip(figures.chunks(figures.len() / BUDGETS.len()))
    {
        let names = contenders(options.part, gear).into_iter().map(|(name, _)| name);
        let table = runs.chunks(runs.len() / windows.len()).collect();
        Comparison { budget, names: names.collect(), table }.add_to(&mut findings);
    }
    notes.push(
        "slowdowns and energy are geometric means over windows, waits are means; energy is against the same \
         jobs at nominal speed; a window is won where the figure is lower than PB-guided's or the same"
            .to_owned(),
    );
    Ok(Reproduction { findings, notes })
}

fn run(window: &Window, budget: u32, policy: PolicySpec, seed: u64) -> Figures {
    let Window { machine, workload, .. } = window;
    let limit = Share::percent(budget).of(machine.max_power());
    // PB-guided's world, for all of them alike.
    let model = Dvfs::new(machine, workload.jobs(), Knowledge::Unknown, Oversized::Slow, seed);
    let scenario = Scenario::new(machine, workload, policy, &model);
    let scenario = Scenario { budget: Budget::constant(limit), ..scenario };
    Figures::of(&scenario.run().summary)
}

/// What all contenders made of all windows under a limit.
struct Comparison<'a> {
    budget: u32,
    names: Vec<String>,
    /// For each window, the figures of each contender.
    table: Vec<&'a [Figures]>,
}

impl Comparison<'_> {
    /// The figures of a contender.
    fn of(&self, place: usize, figure: fn(&Figures) -> f64) -> impl Iterator<Item = f64> + '_ {
        self.table.iter().map(move |runs| figure(&runs[place]))
    }

    /// In how many of a hundred windows a contender's figure is no worse than PB-guided's.
    fn won(&self, place: usize, figure: fn(&Figures) -> f64) -> f64 {
        let pairs = self.of(place, figure).zip(self.of(0, figure));
        100.0 * mean(pairs.map(|(ours, theirs)| if ours <= theirs { 1.0 } else { 0.0 }))
    }

    /// Sets each contender's figures beside PB-guided's.
    fn add_to(&self, findings: &mut Vec<Finding>) {
        let experiment = match self.budget {
            80 => "Logs under 80 % of the power",
            _ => "Logs under 60 % of the power",
        };
        for (place, name) in self.names.iter().enumerate() {
            let mut row = |metric: &str, goal: Option<f64>, measured: f64, unit| {
                let (workload, metric) = (name.clone(), metric.to_owned());
                let (measured, variation) = (Some(measured), None);
                let published = goal;
                findings.push(Finding {
                    experiment,
                    workload,
                    metric,
                    published,
                    measured,
                    unit,
                    variation,
                });
            };
            let slowdown: fn(&Figures) -> f64 = |figures| figures.slowdown;
            let wait: fn(&Figures) -> f64 = |figures| figures.wait_s;
            let p99: fn(&Figures) -> f64 = |figures| figures.p99_s;
            let longest: fn(&Figures) -> f64 = |figures| figures.longest_s;
            row("slowdown", None, geometric(self.of(place, slowdown)), "");
            row("mean wait", None, mean(self.of(place, wait)), "s");
            row("99th percentile of waits", None, mean(self.of(place, p99)) / 3600.0, "h");
            row("longest wait", None, mean(self.of(place, longest)) / 3600.0, "h");
            row("energy", None, geometric(self.of(place, |figures| figures.energy)), "");
            row("jobs not completed", None, self.of(place, |figures| figures.undone).sum(), "jobs");
            if place == 0 {
                continue;
            }
            let pairs = self.of(place, slowdown).zip(self.of(0, slowdown));
            let goal = GOALS.iter().find(|(budget, of, _)| (*budget, *of) == (self.budget, name));
            let ratio = geometric(pairs.map(|(ours, theirs)| ours / theirs));
            row("slowdown / pb-guided's", goal.map(|goal| goal.2), ratio, "");
            let waits = mean(self.of(place, wait)) / mean(self.of(0, wait));
            row("mean wait / pb-guided's", None, waits, "");
            row("windows won: slowdown", None, self.won(place, slowdown), "%");
            row("windows won: mean wait", None, self.won(place, wait), "%");
            row("windows won: 99th percentile", None, self.won(place, p99), "%");
            row("windows won: longest wait", None, self.won(place, longest), "%");
        }
    }
}

/// The windows of all logs, or what stands in for them, and where they are from.
pub(super) fn all(options: &Options) -> Result<(Vec<Window>, Vec<String>), ShareError> {
    match &options.traces {
        Some(folder) => windows(folder, options),
        None => stand_ins(options),
    }
}

/// The windows of all logs in a folder, and what became of each log.
fn windows(folder: &Path, options: &Options) -> Result<(Vec<Window>, Vec<String>), ShareError> {
    let unreadable = |source| ShareError::Folder { path: folder.to_owned(), source };
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.to_string_lossy().to_lowercase();
        if name.ends_with(".swf") || name.ends_with(".swf.gz") {
            paths.push(path);
        }
    }
    paths.sort();
    let (mut windows, mut notes) = (Vec::new(), Vec::new());
    for path in paths {
        let workload = swf::read_path(&path, options.bad_records)?.workload;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let processors = workload.processors().unwrap_or_else(|| workload.largest_job());
        let machine = Machine::of_processors(processors)?;
        let whole = workload.jobs().len() / options.window;
        let first = whole.div_ceil(CHOOSING);
        let taken = match options.part {
            Part::Choosing => 0..first,
            Part::Judging => first..whole,
        };
        notes.push(format!("{name}: windows {} to {} of {whole}", taken.start + 1, taken.end));
        for window in taken {
            let mut workload = workload.clone();
            workload.slice(window * options.window..(window + 1) * options.window);
            workload.raise_estimates();
            windows.push(Window { machine: machine.clone(), workload });
        }
    }
    match windows.is_empty() {
        true => Err(ShareError::NoWindows { path: folder.to_owned(), wanted: 2 * options.window }),
        false => Ok((windows, notes)),
    }
}

/// Generated workloads, where there are no logs.
fn stand_ins(options: &Options) -> Result<(Vec<Window>, Vec<String>), ShareError> {
    let machine = Machine::of_processors(256)?;
    let windows = (0..STAND_INS).map(|number| {
        let seed = options.seed.wrapping_add(number);
        let jobs = options.window as u32;
        let lublin = Lublin { jobs, processors: 256, load: 0.8, seed, ..Lublin::default() };
        let mut workload = lublin.generate()?;
        workload.raise_estimates();
        Ok(Window { machine: machine.clone(), workload })
    });
    let note = "stand-ins: no logs were given (--traces), so generated workloads stand in; they name no \
                users, so that history has little to learn from";
    Ok((windows.collect::<Result<_, ShareError>>()?, vec![note.to_owned()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_contenders_can_be_read() {
        for (_, gear) in BUDGETS {
            for part in [Part::Judging, Part::Choosing] {
                for (_, policy) in contenders(part, gear) {
                    assert!(policy.parse::<PolicySpec>().is_ok(), "{policy}");
                }
            }
        }
    }
}
