//! PB-guided (Etinski, Corbalan, Labarta, Valero: Optimizing job performance under a given power
//! constraint in HPC centers, IGCC 2010): Tables III and IV and the section on oversizing.
//!
//! Four logs of the Parallel Workloads Archive, 5 000 jobs each, under 80 % of the power of all
//! processors at top frequency. Plain EASY without a limit gives the bounds; EASY under the limit
//! is the baseline; PB-guided runs with β known and unknown, on the machine as it was and on larger
//! ones under the same watts.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::{Finding, Reproduction};
use busbar_core::budget::Budget;
use busbar_core::machine::{Machine, MachineError};
use busbar_core::metrics::Summary;
use busbar_core::model::{Dvfs, Knowledge, Oversized, Rigid};
use busbar_core::policy::pb_guided::{BsldLower, PbGuidedSpec};
use busbar_core::policy::{EasyPowerSpec, PolicySpec};
use busbar_core::scenario::Scenario;
use busbar_core::sim::Run;
use busbar_core::units::{Share, Span, Watts};
use busbar_core::workload::Workload;
use busbar_workloads::lublin::{Lublin, LublinError};
use busbar_workloads::swf::{self, BadRecords, SwfError};

/// The budget, of all processors at top frequency.
const BUDGET: Share = Share::percent(80);

/// How much larger the machine gets under the same watts.
const ENLARGEMENTS: [u32; 4] = [0, 20, 50, 75];

/// What the paper says of one workload.
struct Published {
    name: &'static str,
    /// What the log's file is called, up to its version.
    archive: &'static str,
    /// Which jobs, in the order of the log.
    jobs: Range<usize>,
    processors: u32,
    /// Under EASY without a limit, in per cent.
    utilisation: f64,
    over_budget: f64,
    /// The same, mean bounded slowdown and mean wait in seconds.
    easy_bsld: f64,
    easy_wait: Option<f64>,
    baseline_wait: Option<f64>,
    /// PB-guided with β unknown, and known.
    unknown: Guided,
    known: Guided,
    /// Energy saved on a machine larger by a fifth, in per cent: more than that, or just that
    /// for Thunder.
    saved: f64,
}

/// PB-guided on the original machine; slowdown and wait are relative to the baseline, energy to
/// everything at nominal speed.
struct Guided {
    bsld: f64,
    wait: f64,
    ghz: f64,
    energy: f64,
    backfilled: u32,
}

const fn guided(bsld: f64, wait: f64, ghz: f64, energy: f64, backfilled: u32) -> Guided {
    Guided { bsld, wait, ghz, energy, backfilled }
}

const WORKLOADS: [Published; 4] = [
    Published {
        name: "CTC",
        archive: "CTC-SP2-1996",
        jobs: 20_000..25_000,
        processors: 430,
        utilisation: 70.0,
        over_budget: 72.0,
        easy_bsld: 4.66,
        easy_wait: Some(7107.0),
        baseline_wait: Some(26_630.0),
        unknown: guided(0.80, 0.63, 1.5, 0.740, 3924),
        known: guided(0.79, 0.75, 1.4, 0.738, 3923),
        saved: 30.0,
    },
    Published {
        name: "LLNL Thunder",
        archive: "LLNL-Thunder-2007",
        jobs: 20_000..25_000,
        processors: 4008,
        utilisation: 80.0,
        over_budget: 89.0,
        easy_bsld: 1.00,
        easy_wait: Some(0.0),
        baseline_wait: Some(7037.0),
        unknown: guided(0.33, 0.28, 2.07, 0.884, 3830),
        known: guided(0.51, 0.47, 1.9, 0.865, 3651),
        saved: 20.0,
    },
    Published {
        name: "SDSC",
        archive: "SDSC-SP2-1998",
        jobs: 40_000..45_000,
        processors: 128,
        utilisation: 85.0,
        over_budget: 95.0,
        easy_bsld: 24.91,
        easy_wait: None,
        baseline_wait: None,
        unknown: guided(0.62, 0.53, 1.6, 0.755, 4103),
        known: guided(0.76, 0.70, 1.5, 0.744, 3944),
        saved: 30.0,
    },
    Published {
        name: "SDSC Blue",
        archive: "SDSC-BLUE-2000",
        jobs: 20_000..25_000,
        processors: 1152,
        utilisation: 69.0,
        over_budget: 74.0,
        easy_bsld: 5.15,
        easy_wait: None,
        baseline_wait: None,
        unknown: guided(0.86, 0.73, 1.5, 0.727, 3611),
        known: guided(0.75, 0.76, 1.4, 0.724, 3550),
        saved: 30.0,
    },
];

/// Mean bounded slowdown on larger machines, where the paper gives a number: CTC. It does not say
/// with which β the first two were measured; they stand beside β known.
const ENLARGED_CTC: [(u32, Knowledge, f64); 4] = [
    (0, Knowledge::Known, 11.23),
    (20, Knowledge::Known, 6.38),
    (75, Knowledge::Known, 2.15),
    (75, Knowledge::Unknown, 1.79),
];

/// How the 5 000 jobs are counted off; the paper does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Slice {
    /// By their place among the usable records, in submit order.
    #[default]
    Position,
    /// By the numbers the log gives them.
    Number,
}

/// Where the workloads come from, and how they are taken.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A folder of logs; without it generated workloads stand in.
    pub traces: Option<PathBuf>,
    /// How the jobs are counted off.
    pub slice: Slice,
    /// What to do about lines of a log that are not records.
    pub bad_records: BadRecords,
    /// Where random numbers start.
    pub seed: u64,
}

/// Why the experiments could not be repeated.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// The folder cannot be read.
    #[error("cannot read the folder of logs {}", path.display())]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// The reason that the system or the library gives.
        source: std::io::Error,
    },
    /// The folder has none of the logs.
    #[error(
        "{} has none of the paper's logs; valid names, each .swf or .swf.gz: {names}; leave out \
         --traces to use generated workloads", path.display()
    )]
    NoLogs {
        /// The folder.
        path: PathBuf,
        /// What is looked for.
        names: String,
    },
    /// A log cannot be used.
    #[error(transparent)]
    Log(#[from] SwfError),
    /// A log has fewer jobs than the paper used.
    #[error(
        "{} has {found} of the jobs {from}..{to} that the paper used; give the whole log",
        path.display()
    )]
    TooShort {
        /// The log.
        path: PathBuf,
        /// How many of the jobs it has.
        found: usize,
        /// The first job of the paper.
        from: usize,
        /// The one after the last.
        to: usize,
    },
    /// A machine cannot be made.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// A stand-in cannot be made.
    #[error(transparent)]
    Lublin(#[from] LublinError),
}

/// Runs the paper's experiments; `progress` hears which workload is next.
pub fn reproduce(
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> Result<Reproduction, ReproduceError> {
    let mut notes = Vec::new();
    let mut subjects = Vec::new();
    for published in &WORKLOADS {
        let path = match &options.traces {
            None => {
                let workload = stand_in(published, options.seed)?;
                subjects.push((published, format!("{} (stand-in)", published.name), workload));
                continue;
            }
            Some(folder) => find_log(folder, published.archive)?,
        };
        match path {
            None => notes.push(format!(
                "{} is left out: no {}-*.swf or .swf.gz in the folder",
                published.name, published.archive
            )),
            Some(path) => {
                let workload = slice_of(&path, published, options)?;
                notes.push(format!(
                    "{} is {}, {} jobs by {}",
                    published.name,
                    path.file_name().unwrap_or_default().to_string_lossy(),
                    workload.jobs().len(),
                    if options.slice == Slice::Number { "number" } else { "position" }
                ));
                subjects.push((published, published.name.to_owned(), workload));
            }
        }
    }
    if let (Some(path), true) = (&options.traces, subjects.is_empty()) {
        let names = WORKLOADS.map(|published| published.archive.to_owned() + "-*").join(", ");
        return Err(ReproduceError::NoLogs { path: path.clone(), names });
    }
    if options.traces.is_none() {
        notes.push(
            "stand-ins: no logs were given (--traces), so generated workloads of the same number \
             of jobs, processors and load stand in; published numbers are about the real logs"
                .to_owned(),
        );
    }
    notes.push(
        "energy saved at +20 %: the paper says more than 30 % (20 % on Thunder) and not for which β"
            .to_owned(),
    );
    notes.push(
        "slowdowns are (wait + run) / max(600 s, run), at least 1, with the run time at the chosen \
         frequency; 'nominal' in a name: with the run time at the nominal frequency below the line"
            .to_owned(),
    );

    let mut experiments: Vec<Experiments> = Vec::new();
    for (published, name, workload) in subjects {
        progress(&name);
        experiments.push(Experiments::run(published, name, &workload, options.seed)?);
    }
    let mut findings = Vec::new();
    let parts = [
        Experiments::easy,
        Experiments::baseline,
        Experiments::table_four,
        Experiments::oversizing,
    ];
    for part in parts {
        experiments.iter().for_each(|done| part(done, &mut findings));
    }
    Ok(Reproduction { findings, notes })
}

/// The log of a name: the cleaned one if there is one, and of those the latest version.
fn find_log(folder: &Path, archive: &str) -> Result<Option<PathBuf>, ReproduceError> {
    let unreadable = |source| ReproduceError::Folder { path: folder.to_owned(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let stem = name.strip_suffix(".gz").unwrap_or(&name).strip_suffix(".swf");
        let version = stem.and_then(|stem| stem.strip_prefix(&archive.to_lowercase()));
        if let Some(version) = version.filter(|_| !path.is_dir()) {
            let numbers: Vec<u32> =
                version.split(['-', '.']).filter_map(|n| n.parse().ok()).collect();
            found.push((version.ends_with("-cln"), numbers, path));
        }
    }
    Ok(found.into_iter().max().map(|(_, _, path)| path))
}

/// The paper's part of a log.
fn slice_of(
    path: &Path,
    published: &Published,
    options: &Options,
) -> Result<Workload, ReproduceError> {
    let mut workload = swf::read_path(path, options.bad_records)?.workload;
    let Range { start, end } = published.jobs;
    // Cleaning took numbers away, so by number there are fewer.
    let least = match options.slice {
        Slice::Position => {
            workload.slice(start..end);
            end - start
        }
        Slice::Number => {
            let range = start as u64..end as u64;
            workload = workload.keep(|job| range.contains(&job.number));
            1
        }
    };
    let found = workload.jobs().len();
    if found < least {
        let path = path.to_owned();
        return Err(ReproduceError::TooShort { path, found, from: start, to: end });
    }
    workload.raise_estimates();
    Ok(workload)
}

/// A generated workload of the size and the load of a log.
fn stand_in(published: &Published, seed: u64) -> Result<Workload, ReproduceError> {
    let lublin = Lublin {
        jobs: published.jobs.len() as u32,
        processors: published.processors,
        load: published.utilisation / 100.0,
        seed,
        ..Lublin::default()
    };
    let mut workload = lublin.generate()?;
    workload.raise_estimates();
    Ok(workload)
}

/// All runs on one workload.
struct Experiments<'p> {
    published: &'p Published,
    name: String,
    easy: Summary,
    /// For how much of the time plain EASY draws more than the budget, in per cent.
    over_budget: f64,
    baseline: Summary,
    /// PB-guided, by enlargement and knowledge.
    guided: Vec<(u32, Knowledge, Summary)>,
}

impl<'p> Experiments<'p> {
    fn run(
        published: &'p Published,
        name: String,
        workload: &Workload,
        seed: u64,
    ) -> Result<Self, ReproduceError> {
        let machine = Machine::of_processors(published.processors)?;
        let larger = ENLARGEMENTS.map(|percent| machine.enlarged(Share::percent(percent)));
        let larger = larger.into_iter().collect::<Result<Vec<Machine>, _>>()?;
        let limit = BUDGET.of(machine.max_power());
        let jobs = workload.jobs();
        let rigid = Rigid::on(&machine);
        let plain = Scenario::new(&machine, workload, PolicySpec::easy(), &rigid);
        let easy = Scenario { keep_power: true, ..plain.clone() }.run();
        let over_budget = 100.0 * share_of_time_above(limit, &easy.run);
        let limited = |machine, policy, beta| {
            let budget = Budget::constant(limit);
            let model = &Dvfs::new(machine, jobs, beta, Oversized::Slow, seed);
            Scenario { machine, budget, policy, model, ..plain.clone() }.run().summary
        };
        let baseline = PolicySpec::of(EasyPowerSpec::default());
        let baseline = limited(&machine, baseline, Knowledge::Unknown);
        let mut guided = Vec::new();
        for (percent, machine) in ENLARGEMENTS.into_iter().zip(&larger) {
            for beta in [Knowledge::Unknown, Knowledge::Known] {
                // The bound is that of the workload on its own machine, however large this one is.
                let bsld_lower = easy.summary.mean_bsld.map_or(BsldLower::Auto, BsldLower::Fixed);
                let spec = PbGuidedSpec { beta, bsld_lower, ..Default::default() };
                let policy = PolicySpec::of(spec);
                guided.push((percent, beta, limited(machine, policy, beta)));
            }
        }
        Ok(Experiments { published, name, easy: easy.summary, over_budget, baseline, guided })
    }

    fn guided(&self, percent: u32, beta: Knowledge) -> Option<&Summary> {
        let found = self.guided.iter().find(|run| (run.0, run.1) == (percent, beta));
        found.map(|run| &run.2)
    }

    /// Table III.
    fn easy(&self, findings: &mut Vec<Finding>) {
        let mut row = self.rows("Table III: EASY without a power limit", findings);
        let Published { utilisation, over_budget, easy_bsld, easy_wait, .. } = *self.published;
        let percent = |share: Option<f64>| share.map(|share| 100.0 * share);
        row("utilisation", Some(utilisation), percent(self.easy.utilisation), "%");
        row("time over the budget", Some(over_budget), Some(self.over_budget), "%");
        row("mean BSLD", Some(easy_bsld), self.easy.mean_bsld, "");
        row("mean wait", easy_wait, self.easy.mean_wait_s, "s");
    }

    /// What the text says of EASY under the limit.
    fn baseline(&self, findings: &mut Vec<Finding>) {
        let mut row = self.rows("Baseline: EASY under the power limit", findings);
        let Published { baseline_wait, .. } = *self.published;
        row("mean wait", baseline_wait, self.baseline.mean_wait_s, "s");
        row("mean BSLD", None, self.baseline.mean_bsld, "");
        row("oversized, run slower", None, Some(self.baseline.oversized as f64), "jobs");
    }

    /// Table IV: PB-guided on the original machine.
    fn table_four(&self, findings: &mut Vec<Finding>) {
        let mut row = self.rows("Table IV: PB-guided on the machine as it was", findings);
        let modes = [
            (Knowledge::Unknown, &self.published.unknown),
            (Knowledge::Known, &self.published.known),
        ];
        for (beta, published) in modes {
            let Some(guided) = self.guided(0, beta) else { continue };
            let over = |figure: fn(&Summary) -> Option<f64>| {
                Some(figure(guided)? / figure(&self.baseline).filter(|baseline| *baseline > 0.0)?)
            };
            let name = |metric: &str| format!("{metric}, β {beta}");
            row(&name("BSLD / baseline"), Some(published.bsld), over(|s| s.mean_bsld), "");
            let nominal = over(|summary| summary.mean_bsld_nominal);
            row(&name("nominal BSLD / baseline"), None, nominal, "");
            row(&name("wait / baseline"), Some(published.wait), over(|s| s.mean_wait_s), "");
            row(&name("mean frequency"), Some(published.ghz), guided.mean_frequency_ghz, "GHz");
            row(&name("energy / nominal"), Some(published.energy), guided.energy_vs_nominal, "");
            let backfilled = (f64::from(published.backfilled), guided.backfilled as f64);
            row(&name("backfilled"), Some(backfilled.0), Some(backfilled.1), "jobs");
        }
    }

    /// More processors under the same watts.
    fn oversizing(&self, findings: &mut Vec<Finding>) {
        let mut row = self.rows("Oversizing: PB-guided on more processors, same watts", findings);
        for (percent, beta, summary) in &self.guided {
            let size = if *percent == 0 { "as it was".to_owned() } else { format!("+{percent}%") };
            let name = |metric: &str| format!("{metric}, {size}, β {beta}");
            let ctc = ENLARGED_CTC.iter().filter(|_| self.published.name == "CTC");
            let published = ctc.clone().find(|known| (known.0, known.1) == (*percent, *beta));
            row(&name("mean BSLD"), published.map(|known| known.2), summary.mean_bsld, "");
            row(&name("mean frequency"), None, summary.mean_frequency_ghz, "GHz");
            let saved = summary.energy_vs_nominal.map(|energy| 100.0 * (1.0 - energy));
            let published = (*percent == 20).then_some(self.published.saved);
            row(&name("energy saved"), published, saved, "%");
        }
    }

    fn rows<'f>(
        &'f self,
        experiment: &'static str,
        findings: &'f mut Vec<Finding>,
    ) -> impl FnMut(&str, Option<f64>, Option<f64>, &'static str) {
        move |metric, published, measured, unit| {
            let (workload, metric) = (self.name.clone(), metric.to_owned());
            let variation = None;
            findings.push(Finding {
                experiment,
                workload,
                metric,
                published,
                measured,
                unit,
                variation,
            });
        }
    }
}

/// For what share of the time, from the first submission to the last end, more was drawn.
fn share_of_time_above(limit: Watts, run: &Run) -> f64 {
    let ends = run.power.iter().skip(1).map(|sample| sample.at).chain([run.end]);
    let above = run.power.iter().zip(ends).filter(|(sample, _)| sample.power > limit);
    let above: Span = above.map(|(sample, end)| end.since(sample.at)).sum();
    above.secs_f64() / run.end.since(run.begin).secs_f64().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use busbar_core::sim::{PowerSample, Simulation};
    use busbar_core::units::Instant;

    #[test]
    fn the_cleaned_log_of_the_latest_version_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let found = || {
            let path = find_log(folder.path(), "SDSC-SP2-1998").unwrap()?;
            Some(path.file_name()?.to_string_lossy().into_owned())
        };
        assert_eq!(found(), None);
        for (file, best) in [
            ("SDSC-SP2-1998-4.swf", "SDSC-SP2-1998-4.swf"),
            ("SDSC-SP2-1998-4.2-cln.swf.gz", "SDSC-SP2-1998-4.2-cln.swf.gz"),
            ("SDSC-SP2-1998-4.3.swf", "SDSC-SP2-1998-4.2-cln.swf.gz"),
            ("sdsc-sp2-1998-4.10-cln.swf", "sdsc-sp2-1998-4.10-cln.swf"),
            ("SDSC-SP2-1998-9-cln.txt", "sdsc-sp2-1998-4.10-cln.swf"),
            ("SDSC-SP2-1999-9-cln.swf", "sdsc-sp2-1998-4.10-cln.swf"),
        ] {
            std::fs::write(folder.path().join(file), "").unwrap();
            assert_eq!(found().as_deref(), Some(best), "after {file}");
        }
        std::fs::create_dir(folder.path().join("SDSC-SP2-1998-99-cln.swf")).unwrap();
        assert_eq!(found().as_deref(), Some("sdsc-sp2-1998-4.10-cln.swf"));
    }

    /// A log that was cut short is not passed off as the paper's 5 000 jobs.
    #[test]
    fn a_short_log_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("SDSC-SP2-1998-4.2-cln.swf");
        let lines = (1..=40_010).map(|number| {
            format!("{number} {number} -1 10 1 -1 -1 1 10 -1 1 1 -1 -1 -1 -1 -1 -1\n")
        });
        std::fs::write(&path, lines.collect::<String>()).unwrap();
        let options = Options { traces: Some(folder.path().to_owned()), ..Options::default() };
        let error = reproduce(&options, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("has 10 of the jobs 40000..45000"), "{error}");
    }

    /// 30 s of 100 s are above the limit.
    #[test]
    fn time_above_a_limit_by_hand() {
        let machine = Machine::of_processors(1).unwrap();
        let workload = Workload::default();
        let empty = Simulation::new(&machine, &workload);
        let sample = |at, watts| PowerSample {
            at: Instant::from_secs(at),
            power: Watts::from_watts(watts),
            limit: Watts::UNLIMITED,
        };
        let run = Run {
            begin: Instant::from_secs(100),
            end: Instant::from_secs(200),
            power: vec![sample(100, 0), sample(120, 90), sample(140, 80), sample(190, 81)],
            ..empty.run(&mut busbar_core::policy::Easy::default())
        };
        assert_eq!(share_of_time_above(Watts::from_watts(80), &run), 0.3);
    }
}
