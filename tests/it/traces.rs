//! Whole logs of the Parallel Workloads Archive, where `BUSBAR_TRACES` says they are.

use std::io::Read;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::Command;

use busbar::budget::Budget;
use busbar::job::{ApplicationId, Job};
use busbar::machine::Machine;
use busbar::model::{Beliefs, Profiled};
use busbar::policy::{PolicySpec, RmapSpec};
use busbar::profile::Row;
use busbar::profile::cab::{self, Preset};
use busbar::reproduce::papers;
use busbar::reproduce::pb_guided::{Options, ReproduceError, reproduce};
use busbar::scenario::Scenario;
use busbar::sim::State;
use busbar::units::Share;
use busbar::workload::Workload;
use busbar::workload::lublin::Lublin;
use busbar::workload::swf::{self, BadRecords};
use busbar_needs::needs;
use flate2::read::MultiGzDecoder;

fn logs() -> Vec<PathBuf> {
    let folder = std::env::var("BUSBAR_TRACES").expect("BUSBAR_TRACES names a folder of logs");
    let mut logs: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("BUSBAR_TRACES={folder}: {error}"))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains(".swf"))
        .collect();
    logs.sort();
    assert!(!logs.is_empty(), "BUSBAR_TRACES={folder} has no .swf file");
    logs
}

/// A log that is always there: generated, and written and read like any other.
fn generated() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("generated.swf");
    let workload = Lublin { jobs: 400, ..Lublin::default() }.generate().unwrap();
    let jobs = workload.jobs().iter().zip(workload.run_times());
    let records = jobs.map(|(job, run_time)| swf::Record::new(job, *run_time));
    let mut out = std::fs::File::create(&path).unwrap();
    swf::write(&mut out, swf::describe(&workload), records).unwrap();
    (folder, path)
}

#[test]
fn every_record_is_accounted_for() {
    let (_folder, generated) = generated();
    account_for_every_record(&[generated]);
}

#[needs(logs)]
#[test]
fn every_record_of_every_log_is_accounted_for() {
    account_for_every_record(&logs());
}

fn account_for_every_record(logs: &[PathBuf]) {
    for path in logs {
        let mut log = swf::read_path(path, BadRecords::Stop).unwrap();
        let mut lines = Vec::new();
        let packed = std::fs::File::open(path).unwrap();
        match path.extension().is_some_and(|ending| ending == "gz") {
            true => MultiGzDecoder::new(packed).read_to_end(&mut lines).unwrap(),
            false => (&packed).read_to_end(&mut lines).unwrap(),
        };
        let lines = String::from_utf8_lossy(&lines).into_owned();
        let records = lines.lines().filter(|l| !l.trim().is_empty() && !l.starts_with(';')).count();
        assert_eq!(log.intake.records, records as u64, "{}", path.display());
        assert_eq!(log.intake.usable + log.intake.skipped(), log.intake.records);
        log.workload.raise_estimates();
        let machine = Machine::of_processors(log.workload.processors().unwrap()).unwrap();
        // PARM solves a program at every turn, and others tune processors one by one; they have tests of
        // their own on less. RMAP needs profiles, and has the next test. A log has no tasks with machines
        // of their own.
        let is_quick = |policy: &PolicySpec| {
            ["fcfs", "easy", "conservative", "easy-power", "pb-guided"].contains(&policy.name())
        };
        for policy in PolicySpec::all().into_iter().filter(is_quick) {
            let model = papers::model(&policy, &machine, log.workload.jobs(), 1).unwrap();
            let run =
                Scenario::new(&machine, &log.workload, policy.clone(), model.as_ref()).run().run;
            let count = |wanted: fn(&State) -> bool| {
                run.records.iter().filter(|record| wanted(&record.state)).count() as u64
            };
            let completed = count(|state| *state == State::Completed);
            let rejected = count(|state| matches!(state, State::Rejected(_)));
            let skipped = log.intake.skipped();
            assert_eq!(
                completed + rejected + skipped,
                log.intake.records,
                "{policy} on {}",
                path.display()
            );
            assert_eq!(run.violations, 0);
        }
    }
}

/// The jobs of each log, which run the applications of Cab by turns, under RMAP's policies at 80 % of the
/// power: every job completes in a configuration of its application's profile, in the time and with the
/// power that the profile says.
#[test]
fn moldable_jobs_run_as_their_profiles_say() {
    let (_folder, generated) = generated();
    run_as_profiles_say(&[generated]);
}

#[needs(logs)]
#[test]
fn moldable_jobs_of_every_log_run_as_their_profiles_say() {
    run_as_profiles_say(&logs());
}

fn run_as_profiles_say(logs: &[PathBuf]) {
    let profiles = cab::generate(Preset::Cab, 1);
    for path in logs {
        let log = swf::read_path(path, BadRecords::Stop).unwrap().workload;
        let nodes = log.processors().unwrap();
        let machine = Machine { nodes, ..Machine::cab() };
        let jobs = log.jobs().iter().zip(log.run_times()).zip((1..=profiles.len() as u32).cycle());
        let jobs = jobs.map(|((job, run_time), number)| {
            let application = NonZeroU32::new(number).map(ApplicationId);
            (Job { application, ..*job }, *run_time)
        });
        let workload = Workload::new(log.name(), jobs);
        let model = Profiled::new(&machine, &profiles, workload.jobs(), Beliefs::default());
        let model = model.unwrap();
        let limit = Share::percent(80).of(machine.max_power());
        for policy in RmapSpec::ALL.map(PolicySpec::of) {
            let scenario = Scenario {
                budget: Budget::constant(limit),
                ..Scenario::new(&machine, &workload, policy.clone(), &model)
            };
            let run = scenario.run().run;
            let place = format!("{policy} on {}", path.display());
            assert_eq!(run.violations, 0, "{place}");
            assert!(run.peak <= limit, "{place}");
            for (job, record) in workload.jobs().iter().zip(&run.records) {
                assert_eq!(record.state, State::Completed, "{place}: job {}", job.number);
                let application = job.application.unwrap().0.get() as usize - 1;
                let is_it = |row: &Row| {
                    row.configuration.nodes == record.nodes
                        && row.configuration.cores == record.cores
                        && row.power == record.power
                        && row.time == record.end.since(record.start)
                };
                let rows = &profiles[application].rows;
                assert!(rows.iter().any(is_it), "{place}: job {} as {record:?}", job.number);
            }
        }
    }
}

/// The first 2000 jobs of each log under PARM at 80 % of the power: every job is accounted for, and the
/// power handed out and drawn stays within the budget although jobs change all the time.
#[needs(logs)]
#[test]
fn malleable_jobs_stay_within_the_budget() {
    for path in logs() {
        let mut workload = swf::read_path(&path, BadRecords::Stop).unwrap().workload;
        workload.slice(0..2000);
        workload.raise_estimates();
        let machine = Machine::of_processors(workload.processors().unwrap()).unwrap();
        let limit = Share::percent(80).of(machine.max_power());
        for policy in ["parm(flex=none)", "parm(flex=moldable)", "parm"] {
            let budget = Budget::constant(limit);
            let spec = policy.parse().unwrap();
            let model = papers::model(&spec, &machine, workload.jobs(), 1).unwrap();
            let scenario = Scenario::new(&machine, &workload, spec, model.as_ref());
            let trial = Scenario { budget, ..scenario }.run();
            let summary = &trial.summary;
            let place = format!("{policy} on {}", path.display());
            assert_eq!(summary.completed + summary.rejected, summary.jobs, "{place}");
            assert_eq!((summary.violations, summary.excursions), (0, 0), "{place}");
            assert!(trial.run.peak <= limit && trial.run.peak_held <= limit, "{place}");
        }
    }
}

/// Processors that are made up, no two alike, in place of those of the log.
#[needs(logs)]
#[test]
fn processors_with_caps_of_their_own_stay_within_the_budget() {
    for path in logs() {
        let mut workload = swf::read_path(&path, BadRecords::Stop).unwrap().workload;
        workload.slice(0..300);
        workload.raise_estimates();
        let machine = Machine::of_processors(workload.processors().unwrap()).unwrap();
        if machine.nodes > 5000 {
            continue;
        }
        let limit = Share::percent(70).of(machine.max_power());
        for policy in ["ppartition", "ppartition(sharing=paper, fewest=0%)", "uniform(cap=75W)"] {
            let budget = Budget::constant(limit);
            let spec = policy.parse().unwrap();
            let model = papers::model(&spec, &machine, workload.jobs(), 1).unwrap();
            let scenario = Scenario::new(&machine, &workload, spec, model.as_ref());
            let trial = Scenario { budget, ..scenario }.run();
            let summary = &trial.summary;
            let place = format!("{policy} on {}", path.display());
            let over = summary.completed + summary.rejected + summary.dropped;
            assert_eq!(over, summary.jobs, "{place}");
            assert_eq!((summary.violations, summary.excursions), (0, 0), "{place}");
            assert!(trial.run.peak <= limit && trial.run.peak_held <= limit, "{place}");
        }
    }
}

/// At every instant of every whole log the power drawn is within the budget, and every job is
/// accounted for.
#[needs(logs)]
#[test]
fn power_stays_within_the_budget() {
    for path in logs() {
        let mut workload = swf::read_path(&path, BadRecords::Stop).unwrap().workload;
        workload.raise_estimates();
        let machine = Machine::of_processors(workload.processors().unwrap()).unwrap();
        let limit = Share::percent(80).of(machine.max_power());
        for policy in ["easy-power", "pb-guided", "pb-guided(beta=known)"] {
            let spec = policy.parse().unwrap();
            let model = papers::model(&spec, &machine, workload.jobs(), 1).unwrap();
            let trial = Scenario {
                budget: Budget::constant(limit),
                keep_power: true,
                ..Scenario::new(&machine, &workload, spec, model.as_ref())
            }
            .run();
            let whom = format!("{policy} on {}", path.display());
            assert!(trial.run.power.iter().all(|sample| sample.power <= limit), "{whom}");
            assert!(trial.run.peak <= limit, "{whom}");
            let summary = trial.summary;
            assert_eq!(summary.completed, summary.jobs, "{whom}");
            assert_eq!((summary.violations, summary.over_budget_s), (0, 0.0), "{whom}");
        }
    }
}

/// What the PB-guided paper's slices come to, as far as the logs are there: plain EASY is where
/// it was published to be, and PB-guided beats the baseline.
#[needs(logs)]
#[test]
fn the_slices_of_the_pb_guided_paper() {
    let folder = std::env::var("BUSBAR_TRACES").unwrap();
    let options = Options { traces: Some(folder.into()), seed: 1, ..Options::default() };
    let findings = match reproduce(&options, &mut |_| {}) {
        Err(ReproduceError::NoLogs { .. }) => return,
        other => other.unwrap().findings,
    };
    let measured = |workload: &str, experiment: &str, metric: &str| {
        let found = findings.iter().find(|finding| {
            finding.workload == workload
                && finding.experiment.starts_with(experiment)
                && finding.metric == metric
        });
        found.map(|finding| finding.measured.unwrap())
    };
    if let Some(bsld) = measured("SDSC", "Table III", "mean BSLD") {
        assert!((bsld / 24.91 - 1.0).abs() < 0.04, "{bsld}");
        assert!(measured("SDSC", "Table IV", "BSLD / baseline, β unknown").unwrap() < 1.0);
        // The command by which the page shows single jobs of it.
        let log = logs().into_iter().find(|path| path.to_string_lossy().contains("SDSC-SP2"));
        let words = "--jobs 40000..45000 --policy pb-guided --budget 80% --enlarge 20% --world paper --json";
        let output = Command::new(env!("CARGO_BIN_EXE_busbar"))
            .args(["simulate", "--workload", log.unwrap().to_str().unwrap()])
            .args(words.split(' '))
            .output()
            .unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let same = measured("SDSC", "Oversizing", "mean BSLD, +20%, β unknown");
        assert_eq!(answer["mean_bsld"].as_f64(), same);
        let saved = measured("SDSC", "Oversizing", "energy saved, +20%, β unknown").unwrap();
        assert!(
            (100.0 * (1.0 - answer["energy_vs_nominal"].as_f64().unwrap()) - saved).abs() < 1e-9
        );
    }
    if let Some(bsld) = measured("LLNL Thunder", "Table III", "mean BSLD") {
        assert_eq!(bsld, 1.0);
        assert_eq!(measured("LLNL Thunder", "Table III", "mean wait"), Some(0.0));
        assert!(measured("LLNL Thunder", "Table IV", "BSLD / baseline, β unknown").unwrap() < 1.0);
    }
}

/// Facts about the logs that were counted by other means.
#[needs(logs)]
#[test]
fn the_logs_are_read_as_they_are() {
    for path in logs() {
        let log = swf::read_path(&path, BadRecords::Stop).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let facts = (log.intake.records, log.workload.processors());
        match name.split('-').next().unwrap() {
            "KTH" => assert_eq!(facts, (28_476, Some(100))),
            "SDSC" if name.contains("SP2") => assert_eq!(facts, (59_715, Some(128))),
            "LLNL" if name.contains("Thunder") => {
                assert_eq!(facts, (121_039, Some(4008)));
                assert_eq!(log.intake.skipped_no_size, 2_248);
            }
            _ => {}
        }
    }
}
