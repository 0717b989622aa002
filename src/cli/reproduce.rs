//! `busbar reproduce`: repeats a paper's experiments, and prints published and measured results side by side.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Instant as Clock;

use clap::{Args, Subcommand, ValueEnum};
use indicatif::ProgressBar;
use serde::Serialize;

use crate::cli::{curves, print, tables};
use crate::reproduce::{Reproduction, describe, parm, pb_guided, ptune, rmap, share, utility};
use crate::workload::swf::BadRecords;

/// Repeat a paper's experiments, and compare the published results with ours
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    PbGuided(PbGuided),
    Ptune(Ptune),
    Rmap(Rmap),
    Parm(Parm),
    Utility(Utility),
    Share(Share),
}

/// Compare share, Busbar's own policy, with each published policy in the experiments of its paper
///
/// Every log in a folder is cut into consecutive windows. The first fifth of each log does not count, because the
/// halving times of the orders were chosen on it. The experiments of the other papers follow.
#[derive(Debug, Args)]
pub(super) struct Share {
    /// Folder with logs (.swf or .swf.gz) [default: generated workloads]
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,

    /// Jobs per window
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    window: u32,

    /// Use the first fifth of each log instead, and compare halving times on it
    #[arg(long, requires = "traces")]
    choosing: bool,

    /// Run only the experiments of one paper: logs (PB-guided's), rmap, parm, ptune or utility; or compare with all policies: safety
    #[arg(long, value_name = "GROUND")]
    ground: Option<share::Ground>,

    /// Random repetitions of the other papers' experiments
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,

    /// Skip lines of a log that are not records, instead of stopping at the first
    #[arg(long, requires = "traces")]
    skip_bad_records: bool,

    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Print one JSON object: {paper, findings, notes}
    #[arg(long)]
    json: bool,
}

/// Utility under an energy budget, by twelve heuristics (Khemka and others, 2015)
///
/// The paper's tables and tasks were never published; synthetic days replace them.
#[derive(Debug, Args)]
pub(super) struct Utility {
    /// Number of synthetic days
    #[arg(long, value_name = "N", default_value_t = 48, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    trials: u64,

    /// The first random seed; after the largest number comes 0
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Print one JSON object: {paper, findings, notes}, and the whole grid
    #[arg(long)]
    json: bool,
}

/// Nodes and watts for moldable and malleable jobs, by an integer program (Sarood and others, 2014)
///
/// Without Intrepid's log, generated jobs of the same mean size and run time replace it.
#[derive(Debug, Args)]
pub(super) struct Parm {
    /// Folder with ANL-Intrepid-2009 (.swf or .swf.gz) of the Parallel Workloads Archive
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,

    /// Jobs in each of the three sets of the projection
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    jobs: u32,

    /// Random repetitions of the testbed's jobs
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,

    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Print one JSON object: {paper, findings, notes}
    #[arg(long)]
    json: bool,
}

/// Power-aware backfilling on overprovisioned machines (Patki and others, 2015)
///
/// The paper's measurements were never published; synthetic machines replace them. With --profiles, the same traces
/// run on measured tables instead.
#[derive(Debug, Args)]
pub(super) struct Rmap {
    /// Use the tables of this profile database (see busbar profile); policies know them exactly
    #[arg(long, value_name = "FILE")]
    profiles: Option<PathBuf>,

    /// Nodes of the measured machine [default: as many as the largest configuration]
    #[arg(long, value_name = "N", requires = "profiles", value_parser = clap::value_parser!(u32).range(1..))]
    nodes: Option<u32>,

    /// Random repetitions of traces and measurements
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,

    /// The first random seed; after the largest number comes 0
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Print one JSON object: {paper, findings, notes}
    #[arg(long)]
    json: bool,
}

/// Power tuning for HPC jobs under manufacturing variations (Gholkar and others)
///
/// The paper's measurements were never published; synthetic machines replace them. With --machine, the experiments
/// with one job run on measured processors instead, if the measurements cover them.
#[derive(Debug, Args)]
pub(super) struct Ptune {
    /// Measured processors: a .csv file of curves; 'busbar machine import' makes one
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,

    /// Number of synthetic machines for each shape of curves; or random choices of a job's processors
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,

    /// The first random seed; after the largest number comes 0
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Print one JSON object: {paper, findings, notes}
    #[arg(long)]
    json: bool,
}

/// DVFS scheduling under a power budget (Etinski and others, 2010)
///
/// Without --traces, generated workloads of the same size and load replace the paper's logs.
#[derive(Debug, Args)]
pub(super) struct PbGuided {
    /// Folder with logs of the Parallel Workloads Archive, by their archive names: CTC-SP2-1996, LLNL-Thunder-2007,
    /// SDSC-SP2-1998, SDSC-BLUE-2000 (.swf or .swf.gz)
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,

    /// How to count the paper's 5000 jobs in a log, which the paper does not say [default: position]
    #[arg(long, value_name = "HOW", value_enum, requires = "traces")]
    slice: Option<Slice>,

    /// Skip lines of a log that are not records, instead of stopping at the first
    #[arg(long, requires = "traces")]
    skip_bad_records: bool,

    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Print one JSON object: {paper, findings, notes}
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Slice {
    /// By position among the usable records, in submit order
    Position,
    /// By job number
    Number,
}

pub(super) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::PbGuided(arguments) => pb_guided(arguments),
        Command::Ptune(arguments) => ptune(arguments),
        Command::Rmap(arguments) => rmap(arguments),
        Command::Parm(arguments) => parm(arguments),
        Command::Utility(arguments) => utility(arguments),
        Command::Share(arguments) => share(arguments),
    }
}

/// A progress bar, if a person is watching.
fn bar() -> ProgressBar {
    match io::stderr().is_terminal() {
        true => ProgressBar::new(1),
        false => ProgressBar::hidden(),
    }
}

/// Runs experiments, with a progress bar on a terminal, and returns the results.
fn watched<E: Into<anyhow::Error>>(
    paper: &str,
    json: bool,
    reproduce: impl FnOnce(&(dyn Fn(u64, u64) + Sync)) -> Result<Reproduction, E>,
) -> anyhow::Result<()> {
    let bar = bar();
    let reproduction = reproduce(&|done, all| {
        bar.set_length(all);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    tell(paper, &reproduction.map_err(Into::into)?, json)
}

fn utility(arguments: &Utility) -> anyhow::Result<()> {
    let options = utility::Options {
        trials: arguments.trials,
        first_seed: arguments.seed,
        ..utility::Options::default()
    };
    let began = Clock::now();
    let clock = || began.elapsed().as_nanos() as u64;
    let bar = bar();
    let report = utility::reproduce(
        &options,
        &|done, all| {
            bar.set_length(all);
            bar.set_position(done);
        },
        &clock,
    );
    bar.finish_and_clear();
    let report = report?;
    if !arguments.json {
        return print(&utility::describe(&report));
    }
    let (findings, notes) = (report.findings(), Vec::new());
    show("utility", &Reproduction { findings, notes }, serde_json::to_value(&report)?)
}

fn parm(arguments: &Parm) -> anyhow::Result<()> {
    let options = parm::Options {
        traces: arguments.traces.clone(),
        jobs: arguments.jobs,
        seeds: arguments.seeds,
        first_seed: arguments.seed,
    };
    watched("parm", arguments.json, |progress| parm::reproduce(&options, progress))
}

fn rmap(arguments: &Rmap) -> anyhow::Result<()> {
    if let Some(path) = &arguments.profiles {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let options = rmap::OnTables {
            profiles: tables::open(path)?,
            name: stem.into_owned(),
            nodes: arguments.nodes,
            seeds: arguments.seeds,
            first_seed: arguments.seed,
        };
        return watched("rmap", arguments.json, |progress| rmap::reproduce_on(&options, progress));
    }
    let options = rmap::Options { seeds: arguments.seeds, first_seed: arguments.seed };
    watched("rmap", arguments.json, |progress| rmap::reproduce(&options, progress))
}

fn ptune(arguments: &Ptune) -> anyhow::Result<()> {
    if let Some(path) = &arguments.machine {
        let (processors, _) = curves::load(Some(path))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (seeds, first_seed) = (arguments.seeds, arguments.seed);
        let options = ptune::OnCurves { processors, name, seeds, first_seed };
        return tell("ptune", &ptune::reproduce_on(&options)?, arguments.json);
    }
    let options = ptune::Options { seeds: arguments.seeds, first_seed: arguments.seed };
    watched("ptune", arguments.json, |progress| ptune::reproduce(&options, progress))
}

fn share(arguments: &Share) -> anyhow::Result<()> {
    let options = share::Options {
        traces: arguments.traces.clone(),
        bad_records: bad_records(arguments.skip_bad_records),
        window: arguments.window as usize,
        part: if arguments.choosing { share::Part::Choosing } else { share::Part::Judging },
        ground: arguments.ground,
        seeds: arguments.seeds,
        seed: arguments.seed,
        ..share::Options::default()
    };
    watched("share", arguments.json, |progress| share::reproduce(&options, progress))
}

fn bad_records(skips: bool) -> BadRecords {
    if skips { BadRecords::Skip } else { BadRecords::Stop }
}

fn pb_guided(arguments: &PbGuided) -> anyhow::Result<()> {
    let options = pb_guided::Options {
        traces: arguments.traces.clone(),
        slice: match arguments.slice {
            None | Some(Slice::Position) => pb_guided::Slice::Position,
            Some(Slice::Number) => pb_guided::Slice::Number,
        },
        bad_records: bad_records(arguments.skip_bad_records),
        seed: arguments.seed,
    };
    let is_watched = io::stderr().is_terminal();
    let reproduction = pb_guided::reproduce(&options, &mut |workload| {
        if is_watched {
            // That nobody may read this changes nothing.
            let _ = writeln!(io::stderr(), "simulating {workload} ...");
        }
    })?;
    tell("pb-guided", &reproduction, arguments.json)
}

/// The findings as text, or as JSON.
fn tell(paper: &str, reproduction: &Reproduction, json: bool) -> anyhow::Result<()> {
    match json {
        true => show(paper, reproduction, serde_json::json!({})),
        // Nobody has published anything of our own policy.
        false if paper == "share" => print(&describe(reproduction, "goal")),
        false => print(&describe(reproduction, "published")),
    }
}

/// Prints the JSON answer.
fn show(paper: &str, reproduction: &Reproduction, more: serde_json::Value) -> anyhow::Result<()> {
    let answer = Answer { paper, reproduction, more };
    print(&(serde_json::to_string_pretty(&answer)? + "\n"))
}

/// The object that all reproductions print: which paper, the findings and the notes; and beside them
/// whatever else a paper has.
#[derive(Serialize)]
struct Answer<'a> {
    paper: &'a str,
    #[serde(flatten)]
    reproduction: &'a Reproduction,
    #[serde(flatten)]
    more: serde_json::Value,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::{Finding, Variation};
    use crate::workload::essc::Essc;

    fn keys(value: &serde_json::Value) -> Vec<&str> {
        let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        keys
    }

    /// A paper with draws, one without, and the one that has a grid of its own: the same object.
    #[test]
    fn all_reproductions_have_one_shape() {
        let mut essc = Essc { tasks: 1600, hours: 3, warm_up: 1, ..Essc::default() };
        essc.machines.machines = 10;
        let options = utility::Options { trials: 1, first_seed: 1, essc };
        let report = utility::reproduce(&options, &|_, _| {}, &|| 0).unwrap();
        let variation = Some(Variation { deviation: 1.5, agreeing: None });
        let plain = Finding { published: Some(1.0), ..report.findings()[0].clone() };
        let findings = vec![Finding { variation, ..plain.clone() }, plain];
        let few = Reproduction { findings, notes: vec!["stand-ins".to_owned()] };
        let many = Reproduction { findings: report.findings(), notes: Vec::new() };
        let grid = serde_json::to_value(&report).unwrap();
        let none = serde_json::json!({});
        for (reproduction, more) in [(&few, none), (&many, grid.clone())] {
            let answer = Answer { paper: "x", reproduction, more };
            let answer = serde_json::to_value(&answer).unwrap();
            assert_eq!(answer["paper"], "x");
            assert!(answer["notes"].is_array());
            let findings = answer["findings"].as_array().unwrap();
            assert_eq!(findings.len(), reproduction.findings.len());
            let expected = "agreeing deviation experiment measured metric published unit workload";
            assert!(findings.iter().all(|finding| keys(finding).join(" ") == expected));
        }
        let answer = Answer { paper: "x", reproduction: &many, more: grid.clone() };
        let answer = serde_json::to_value(&answer).unwrap();
        assert!(keys(&grid).into_iter().all(|key| answer[key] == grid[key]));
    }
}
