//! How to measure, and what on.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use busbar::machine::Machine;
use busbar::model::Model;
use busbar::policy::{BuildContext, PolicySpec};
use busbar::report::write_whole;
use busbar::reproduce::papers;
use busbar::scenario::Scenario;
use busbar::sim::{Run, Simulation};
use busbar::workload::Workload;
use busbar::workload::lublin::{Lublin, Sizes};
use busbar::workload::swf;
use tempfile::TempDir;

use super::table::{grouped, met, nanos};

/// Processors of the machine that synthetic workloads run on.
const PROCESSORS: u32 = 1024;
pub(super) const ALL_SIZES: [Sizes; 3] = [Sizes::Mixed, Sizes::PowersOfTwo, Sizes::Any];

/// How to measure, and where to put files.
pub(super) struct Bench {
    pub(super) quick: bool,
    pub(super) folder: TempDir,
    /// The Python that runs the plain loop, if there is one.
    python: Option<String>,
}

impl Bench {
    pub(super) fn new(quick: bool) -> Self {
        let folder = TempDir::new().expect("a folder for files");
        Bench { quick, folder, python: version("python3") }
    }

    /// Says what this is measured on.
    pub(super) fn introduce(&self) {
        let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = processor.lines().find_map(|line| line.strip_prefix("model name"));
        let processor =
            processor.map_or("unknown", |name| name.trim_start_matches(['\t', ' ', ':']));
        println!("- processor: {processor}, one core of it in use");
        println!("- compiler: {}", version("rustc").as_deref().unwrap_or("unknown"));
        println!(
            "- plain loop: {}",
            self.python.as_deref().unwrap_or("left out, there is no python3")
        );
        println!("- load average before: {}", load_average());
        println!("- form: {}", if self.quick { "quick" } else { "full" });
    }

    /// Calls `work`, which says how many seconds each of its parts took, several times: the
    /// answers from the fastest to the slowest.
    pub(super) fn repeat<const N: usize>(
        &self,
        mut work: impl FnMut() -> [f64; N],
    ) -> Vec<[f64; N]> {
        let (least, most, seconds) = if self.quick { (3, 9, 0.5) } else { (5, 25, 5.0) };
        let began = Instant::now();
        let mut runs = Vec::new();
        while runs.len() < least || (runs.len() < most && began.elapsed().as_secs_f64() < seconds) {
            runs.push(work());
        }
        runs.sort_by(|a, b| a.iter().sum::<f64>().total_cmp(&b.iter().sum()));
        runs
    }

    /// The time that a simulation takes, with everything it sets up and keeps.
    pub(super) fn time(&self, policy: PolicySpec, workload: &Workload) -> Times {
        let machine = machine_of(workload);
        let runs = self.repeat(|| [timed(|| simulate(policy.clone(), &machine, workload)).0]);
        Times::of(runs.into_iter().flatten().collect())
    }

    /// The time that EASY takes, and the median time of the plain loop for the same workload if
    /// there is a Python. They take turns, so that both get their share of whatever else the
    /// computer does; and they have to come to the same mean wait, or are not to be compared.
    pub(super) fn time_beside_plain(&self, workload: &Workload) -> (Times, Option<f64>) {
        if self.python.is_none() {
            return (self.time(PolicySpec::easy(), workload), None);
        }
        let log = self.write_log(workload);
        let machine = machine_of(workload);
        let (mut ours, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..if self.quick { 1 } else { 5 } {
            let mut wait = 0.0;
            for _ in 0..5 {
                let (seconds, run) = timed(|| simulate(PolicySpec::easy(), &machine, workload));
                ours.push(seconds);
                wait = mean_wait(workload, &run);
            }
            let (seconds, plain_wait) = plain_loop(&log);
            plain.push(seconds);
            let same = (plain_wait - wait).abs() <= 1e-9 * wait;
            assert!(same, "mean wait {wait}, but {plain_wait} in the plain loop");
        }
        (Times::of(ours), Some(Times::of(plain).median))
    }

    /// The time that a scenario takes, and how many turns its policy has in it.
    pub(super) fn time_turns(&self, scenario: &Scenario<'_>) -> (Times, u64) {
        let mut turns = 0;
        let runs = self.repeat(|| {
            let (seconds, simulated) = timed(|| scenario.simulate());
            turns = simulated.run.turns;
            [seconds]
        });
        (Times::of(runs.into_iter().flatten().collect()), turns)
    }

    pub(super) fn write_log(&self, workload: &Workload) -> PathBuf {
        let path = self.folder.path().join("workload.swf");
        let jobs = || workload.jobs().iter().zip(workload.run_times());
        let records = || jobs().map(|(job, run_time)| swf::Record::new(job, *run_time));
        let comments = swf::describe(workload);
        write_whole(&path, &|mut out| swf::write(&mut out, &comments, records()))
            .expect("a file that can be written");
        path
    }
}

/// Runs the plain loop on a log: the seconds its simulation took, and the mean wait.
fn plain_loop(log: &Path) -> (f64, f64) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/plain_easy.py");
    let output = Command::new("python3").arg(script).arg(log).arg(PROCESSORS.to_string()).output();
    let output = output.expect("python3 was there a moment ago");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the plain loop failed: {errors}");
    let answer: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("one JSON object");
    let figure = |key: &str| answer[key].as_f64().expect(key);
    (figure("simulate_s"), figure("mean_wait_s"))
}

fn mean_wait(workload: &Workload, run: &Run) -> f64 {
    let jobs = workload.jobs().iter().zip(&run.records);
    let waits = jobs.map(|(job, record)| record.start.since(job.submit).secs_f64());
    waits.sum::<f64>() / run.records.len() as f64
}

/// How long the same thing took, in seconds.
pub(super) struct Times {
    pub(super) best: f64,
    pub(super) median: f64,
}

impl Times {
    pub(super) fn of(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        Times { best: seconds[0], median: seconds[seconds.len() / 2] }
    }

    /// Jobs a second, by the median.
    pub(super) fn speed(&self, jobs: u32) -> f64 {
        f64::from(jobs) / self.median
    }

    pub(super) fn cells(&self, jobs: u32) -> [String; 3] {
        [nanos(self.best, jobs), nanos(self.median, jobs), grouped(self.speed(jobs) as u64)]
    }
}

/// Seconds that something takes. What comes out of it is thrown away later.
pub(super) fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let began = Instant::now();
    let result = black_box(work());
    (began.elapsed().as_secs_f64(), result)
}

pub(super) fn generate(jobs: u32, load: f64, sizes: Sizes) -> Workload {
    let lublin = Lublin { jobs, load, sizes, processors: PROCESSORS, ..Lublin::default() };
    lublin.generate().expect("valid parameters")
}

/// The machine a workload comes from, or one its largest job just fits on.
pub(super) fn machine_of(workload: &Workload) -> Machine {
    let processors = workload.processors().unwrap_or(workload.largest_job());
    Machine::of_processors(processors).expect("a machine")
}

/// How jobs run in the paper of a policy.
pub(super) fn model_of(
    policy: &PolicySpec,
    machine: &Machine,
    workload: &Workload,
) -> Box<dyn Model> {
    papers::model(policy, machine, workload.jobs(), 1).expect("a policy whose paper has a model")
}

pub(super) fn simulate(policy: PolicySpec, machine: &Machine, workload: &Workload) -> Run {
    let run =
        Simulation::new(machine, workload).run(policy.build(&BuildContext::default()).as_mut());
    assert_eq!((run.unfinished, run.violations), (0, 0), "not a sound run");
    run
}

/// The logs in the folder that `BUSBAR_TRACES` names, if it does.
pub(super) fn log_paths() -> Vec<PathBuf> {
    let Some(folder) = std::env::var_os("BUSBAR_TRACES") else { return Vec::new() };
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    let is_log = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.ends_with(".swf") || name.ends_with(".swf.gz")
    };
    let mut paths: Vec<PathBuf> = files.filter(is_log).collect();
    paths.sort();
    paths
}

/// How busy the computer was in the last minute. Its other work makes ours slower.
pub(super) fn load_average() -> String {
    let averages = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    averages.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown").to_owned()
}

/// What `program --version` says.
fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The plain loop's speed, how many times faster we are (median against median), and the goal.
pub(super) fn ratio_cells(jobs: u32, times: &Times, plain: Option<f64>, goal: f64) -> [String; 4] {
    let goal_cell = format!("≥ {goal} × plain");
    let Some(plain) = plain else {
        return ["-".to_owned(), "-".to_owned(), goal_cell, "not measured".to_owned()];
    };
    let ratio = plain / times.median;
    let speed = f64::from(jobs) / plain;
    [grouped(speed as u64), format!("{ratio:.1} ×"), goal_cell, met(ratio >= goal)]
}
