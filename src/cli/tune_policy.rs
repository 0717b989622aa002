//! `busbar tune-policy`: a policy's parameters, chosen by replaying a site's recent past.

use std::num::NonZeroUsize;
#[cfg(feature = "live")]
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use crate::budget::{Budget, BudgetSpec};
use crate::cli::listed::Listed;
use crate::cli::{bar, host, load, print, rules, tables, warn, wrong_kind};
use crate::experiment::{all_cores, file};
#[cfg(feature = "live")]
use crate::live::control::active_budget::ActiveBudget;
#[cfg(feature = "live")]
use crate::live::control::past::replayed_past;
#[cfg(feature = "live")]
use crate::live::server::config::Config;
#[cfg(feature = "live")]
use crate::live::store::{Reader, Store};
use crate::machine::Machine;
use crate::policy::PolicySpec;
use crate::prepared::{self, machine_of};
use crate::report::{Facts, Side, Versioned, columns, human_power, human_time};
use crate::tuning::{Advice, Candidate, Figures, Past, Tuning, USUAL_JOBS, usual_candidates};
use crate::units::{Span, Watts};
use crate::world::Repertoire;

/// Choose a policy's parameters by replaying the recent past of a site
///
/// It replays the last finished jobs of a log, or of a daemon, under each candidate, and ranks the candidates that
/// run all jobs by mean bounded slowdown. The choice is cross-checked: the best candidate of the first half of the
/// jobs is compared with the present policy on the second half. Nothing is changed. Without arguments, it uses the
/// built-in workload under 60 % of its machine's maximum power.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar tune-policy
  busbar tune-policy log.swf.gz --machine cluster.toml --budget 1.2MW --present easy
  busbar tune-policy --policy 'share(order=aged, halving=4h),pb-guided,easy-power(gear=2.0GHz)'
  busbar tune-policy --daemon --last 2000 --json")]
pub(super) struct Arguments {
    #[command(flatten)]
    load: load::Arguments,

    /// Replay the finished jobs of the daemon with this configuration [default: the configuration that busbar serve
    /// would read]
    ///
    /// The machine and the budget are the daemon's.
    #[cfg(feature = "live")]
    #[arg(long, value_name = "CONFIG", num_args = 0..=1,
          conflicts_with_all = ["file", "workload", "jobs", "skip_bad_records", "machine", "profiles", "budget"])]
    daemon: Option<Option<PathBuf>>,

    /// Number of most recent finished jobs to replay
    #[arg(long, value_name = "N", default_value_t = USUAL_JOBS)]
    last: usize,

    /// The present policy [default: share; the daemon's with --daemon]
    #[arg(long, value_name = "P")]
    present: Option<PolicySpec>,

    /// Candidates, separated by commas; may be repeated [default: share and the present policy with the orders fcfs,
    /// aged and history, and halving times from 2h to 64h]
    #[arg(short, long, value_name = "P")]
    policy: Vec<Listed<PolicySpec>>,

    /// A number of processors, a .toml machine file, or cab (64 nodes of two sockets) [default: from the log's
    /// header]
    #[arg(short, long, value_name = "M", allow_hyphen_values = true)]
    machine: Option<String>,

    /// Power budget: watts (6500W, 4.2MW), a share of the machine's maximum (80%), rules, a file, or none [default:
    /// 60%]
    ///
    /// Rules are by the calendar, such as 'weekdays 14:00-18:00 nov..feb: 80%, else 100%'. A file has rules, or
    /// time,budget rows (.csv).
    #[arg(short, long, value_name = "B", allow_hyphen_values = true)]
    budget: Option<BudgetSpec>,

    #[command(flatten)]
    rules: rules::Arguments,

    #[command(flatten)]
    tables: tables::Arguments,

    /// Threshold of the bounded slowdown, in seconds or with a unit (10min)
    #[arg(long, value_name = "S", default_value = "600", value_parser = file::parse_threshold,
          allow_hyphen_values = true, help_heading = "Results")]
    bsld_threshold: Span,

    /// Number of threads [default: one per core]
    #[arg(long, value_name = "N", help_heading = "Threads")]
    threads: Option<NonZeroUsize>,

    /// Print one JSON object
    #[arg(long, help_heading = "Results")]
    json: bool,
}

/// What is replayed.
struct Input {
    past: Past,
    present: PolicySpec,
    assumed: Vec<String>,
}

/// The answer as JSON.
#[derive(Serialize)]
struct Answer<'a> {
    workload: &'a str,
    machine: &'a str,
    nodes: u32,
    jobs: usize,
    /// The limit at the beginning; `None` if there is none.
    budget_w: Option<f64>,
    present: String,
    /// The best candidate, which may be the present policy.
    proposed: String,
    advice: Advice,
    /// By which share the mean bounded slowdown of the best candidate is lower than that of the present
    /// policy, on the jobs by which it was chosen.
    gain: f64,
    check: Check,
    cautions: Vec<String>,
    /// Best first.
    candidates: Vec<Row>,
    unfit: Vec<Unfit<'a>>,
    assumed: &'a [String],
}

/// The choice of the first half of the jobs, on the second half.
#[derive(Serialize)]
struct Check {
    chosen: String,
    gain: f64,
}

#[derive(Serialize)]
struct Row {
    policy: String,
    all: Figures,
    first_half: Figures,
    second_half: Figures,
}

#[derive(Serialize)]
struct Unfit<'a> {
    policy: String,
    reason: &'a str,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Input { past, present, assumed } = arguments.read()?;
    let candidates: Vec<PolicySpec> = match arguments.policy.is_empty() {
        true => usual_candidates(&present),
        false => Listed::joined(&arguments.policy).collect(),
    };
    let bar = bar::with_estimate("replays", 0, || None);
    let goes_on = host::goes_on();
    let progress = |done, all| {
        bar.set_length(all);
        bar.set_position(done);
        goes_on()
    };
    let threads = arguments.threads.unwrap_or_else(all_cores);
    let tuning = past.tune(&present, &candidates, threads, &progress)?;
    bar.finish_and_clear();
    match arguments.json {
        true => {
            let answer = answer(&past, &tuning, &assumed);
            print(&(serde_json::to_string_pretty(&Versioned::new(&answer))? + "\n"))
        }
        false => print(&describe(&past, &tuning, &assumed)),
    }
}

impl Arguments {
    fn read(&self) -> anyhow::Result<Input> {
        if self.last == 0 {
            bail!("--last 0 replays nothing; write a number of jobs, such as {USUAL_JOBS}");
        }
        #[cfg(feature = "live")]
        if let Some(path) = &self.daemon {
            return self.of_daemon(path.as_deref());
        }
        self.of_workload()
    }

    /// The last jobs of a log, or of what else `--workload` names.
    fn of_workload(&self) -> anyhow::Result<Input> {
        let source = self.load.source("demo")?;
        let named = match &self.machine {
            Some(text) => Some(wrong_kind::machine(text, &self.load.partition)?),
            None => source.needs_applications().then(Machine::cab),
        };
        let profiles = match self.tables.were_given() || source.needs_applications() {
            true => self.tables.load()?,
            false => Vec::new(),
        };
        let usual = tables::usual_times(&profiles);
        let workload = self.load.load(&source, named.as_ref(), Some(&usual), true)?.workload;
        let described = named.map_or_else(|| machine_of(&workload), Ok)?;
        described.remarks.iter().chain(workload.remarks()).for_each(|remark| warn(remark));
        let repertoire = Repertoire::of(&profiles);
        let rules = self.rules.rules(&repertoire.names(&described))?;
        let machine = repertoire.filled_in(&described)?;
        let budget = match &self.budget {
            Some(budget) => budget.resolve_on(&machine, &workload.dates())?,
            None => "60%".parse::<BudgetSpec>()?.resolve(&machine)?,
        };
        let mut assumed = prepared::assumed(&described, &repertoire, &rules);
        assumed.extend(workload.about_partitions());
        let past = Past::new(machine, workload, self.last, repertoire, budget);
        let seed = self.load.seed.unwrap_or(past.seed);
        Ok(Input {
            past: Past { rules, seed, bsld_threshold: self.bsld_threshold, ..past },
            present: self.present.clone().unwrap_or_else(PolicySpec::recommended),
            assumed,
        })
    }

    /// The last jobs that a daemon has finished. It may run meanwhile.
    #[cfg(feature = "live")]
    fn of_daemon(&self, path: Option<&Path>) -> anyhow::Result<Input> {
        let config = Config::find(path)?;
        let resolved = config.resolve()?;
        let state = Store::path_in(&config.state);
        if !state.exists() {
            bail!("{} has no state of a daemon; has the daemon run?", config.state.display());
        }
        let reader = Reader::open(&state)?;
        let setup = &resolved.setup;
        let mut budget = ActiveBudget::new(resolved.schedule, &setup.machine);
        let saved = reader.load()?;
        budget.restore_override(saved.budget.as_deref(), &saved.part_budgets, &setup.machine);
        let past = replayed_past(setup, &budget, reader.finished(self.last)?);
        let said = Machine::from_text(&config.machine)?;
        let rules = self.rules.rules(&past.repertoire.names(&said))?;
        let assumed = prepared::assumed(&said, &past.repertoire, &rules);
        let seed = self.load.seed.unwrap_or(past.seed);
        Ok(Input {
            past: Past { rules, seed, bsld_threshold: self.bsld_threshold, ..past },
            present: self.present.clone().unwrap_or(config.policy),
            assumed,
        })
    }
}

/// The limit at the beginning, if there is one.
fn limit(past: &Past) -> Option<Watts> {
    let begin = past.prepared.workload.jobs().first()?.submit;
    past.budget.at(begin).limited()
}

fn answer<'a>(past: &'a Past, tuning: &'a Tuning, assumed: &'a [String]) -> Answer<'a> {
    let (best, present, chosen) = (tuning.best(), tuning.present(), tuning.best_of_first_half());
    let row = |candidate: &Candidate| {
        let &Candidate { ref policy, all, first, second } = candidate;
        Row { policy: policy.to_string(), all, first_half: first, second_half: second }
    };
    let unfit =
        |(policy, reason): &'a (PolicySpec, String)| Unfit { policy: policy.to_string(), reason };
    Answer {
        workload: past.prepared.workload.name(),
        machine: &past.prepared.machine.name,
        nodes: past.prepared.machine.nodes,
        jobs: past.prepared.workload.jobs().len(),
        budget_w: limit(past).map(Watts::as_f64),
        present: present.policy.to_string(),
        proposed: best.policy.to_string(),
        advice: tuning.advice(),
        gain: best.all.gain_over(&present.all),
        check: Check {
            chosen: chosen.policy.to_string(),
            gain: chosen.second.gain_over(&present.second),
        },
        cautions: tuning.cautions(),
        candidates: tuning.candidates.iter().map(row).collect(),
        unfit: tuning.unfit.iter().map(unfit).collect(),
        assumed,
    }
}

fn describe(past: &Past, tuning: &Tuning, assumed: &[String]) -> String {
    let mut facts = Facts::default();
    let (workload, machine) = (&past.prepared.workload, &past.prepared.machine);
    facts.add(
        "replayed",
        format_args!("{}, the last {} jobs", workload.name(), workload.jobs().len()),
    );
    facts.add("machine", &machine.name);
    facts.add("budget", described_budget(past, &past.budget));
    facts.add("present", &tuning.present().policy);
    let mut text = facts.text() + "\n" + &table(tuning) + "\n";
    let mut facts = Facts::default();
    facts.add("proposed", tuning.sentence());
    let [best, present] = [tuning.best(), tuning.present()].map(|candidate| candidate.all);
    let [p99, longest] =
        [[best.p99_wait_s, present.p99_wait_s], [best.max_wait_s, present.max_wait_s]]
            .map(|pair| pair.map(human_time).join(" instead of "));
    if tuning.advice() != Advice::Keep {
        facts.add("waits", format_args!("99th percentile {p99}, longest {longest}"));
    }
    facts.add("checked", tuning.check());
    tuning.cautions().iter().for_each(|caution| facts.add("caution", caution));
    assumed.iter().for_each(|each| facts.add("assumed", each));
    text += &facts.text();
    text
}

fn described_budget(past: &Past, budget: &Budget) -> String {
    let begin = past.prepared.workload.jobs().first().map(|job| job.submit);
    let changes = begin.map_or(0, |begin| budget.changes_after(begin).len());
    match (limit(past), changes) {
        (None, 0) => "none".to_owned(),
        (Some(limit), 0) => human_power(limit.as_f64()),
        (None, changes) => format!("none at first, {changes} changes"),
        (Some(limit), changes) => {
            format!("{} at first, {changes} changes", human_power(limit.as_f64()))
        }
    }
}

/// The candidates, best first; the present policy is marked.
fn table(tuning: &Tuning) -> String {
    let headings = [
        ("", Side::Right),
        ("policy", Side::Left),
        ("completed", Side::Right),
        ("slowdown", Side::Right),
        ("first half", Side::Right),
        ("second half", Side::Right),
        ("mean wait", Side::Right),
        ("99th percentile", Side::Right),
        ("longest wait", Side::Right),
        ("", Side::Left),
    ];
    let present = &tuning.present().policy;
    let row = |(place, candidate): (usize, &Candidate)| {
        let Candidate { policy, all, first, second } = candidate;
        let completed = match all.completed == all.jobs {
            true => "all".to_owned(),
            false => format!("{}/{}", all.completed, all.jobs),
        };
        let [slowdown, first, second] =
            [all, first, second].map(|figures| format!("{:.2}", figures.mean_bsld));
        let [mean, p99, longest] =
            [all.mean_wait_s, all.p99_wait_s, all.max_wait_s].map(human_time);
        let mark = if policy == present { "present" } else { "" };
        let (place, policy) = ((place + 1).to_string(), policy.to_string());
        let mark = mark.to_owned();
        vec![place, policy, completed, slowdown, first, second, mean, p99, longest, mark]
    };
    let rows: Vec<Vec<String>> = tuning.candidates.iter().enumerate().map(row).collect();
    let mut text = columns(&headings, &rows);
    for (policy, why) in &tuning.unfit {
        text += &format!("  {policy} cannot run: {why}\n");
    }
    text
}
