//! `busbar slurm watch`: a dry run. It records Slurm's jobs, and replays them under a budget.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant as Moment, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::Where;
use crate::budget::BudgetSpec;
use crate::cli::listed::Listed;
use crate::cli::{print, warn};
use crate::experiment::all_cores;
use crate::job::{Job, UserId};
use crate::machine::Machine;
use crate::policy::PolicySpec;
use crate::profile::counted;
use crate::report::{Side, columns, human_power, human_time};
use crate::slurm::cluster::Cluster;
use crate::slurm::listing::Reported;
use crate::slurm::model;
use crate::tuning::{Figures, Past};
use crate::units::{Instant, Length, Span};
use crate::workload::Workload;
use crate::world::Repertoire;

/// A shorter run counts as one of this many seconds in the bounded slowdown.
const BSLD_THRESHOLD: f64 = 600.0;

/// Watch the cluster, then replay its jobs under a power budget
///
/// Nothing is changed on the cluster. When the time is over, or after Ctrl-C, each policy replays the jobs that ended
/// meanwhile, from their submit times, under the budget, and the result is compared with what Slurm did. A node's
/// power is that of the machine file at full speed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar slurm watch --machine cluster.toml --budget 180kW --for 8h
  busbar slurm watch --machine cluster.toml --budget 80% --policy easy-power,share --json")]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    cluster: Where,

    /// The machine: a number of nodes, or a .toml machine file
    #[arg(short, long, value_name = "M")]
    machine: String,

    /// Power budget: watts (6500W, 4.2MW), or a share of the machine's maximum (80%)
    #[arg(short, long, value_name = "B", default_value = "80%")]
    budget: BudgetSpec,

    /// Policies to try, separated by commas; may be repeated [default: easy-power, pb-guided and share]
    #[arg(short, long, value_name = "P")]
    policy: Vec<Listed<PolicySpec>>,

    /// How long to watch [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME")]
    time: Option<Length>,

    /// Time between two polls
    #[arg(long, value_name = "TIME", default_value = "5s")]
    every: Length,

    /// Only jobs of this partition; may be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    partition: Vec<String>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A job that was seen to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ended {
    uid: u32,
    nodes: u32,
    submitted: u64,
    started: u64,
    ended: u64,
    limit: Option<u32>,
}

/// The recorded past, and the simulations.
#[derive(Serialize)]
struct Answer {
    jobs: usize,
    watched_s: u64,
    budget_w: Option<f64>,
    happened: Happened,
    /// The policies under the budget, best first; empty if there were too few jobs.
    policies: Vec<Row>,
}

/// What Slurm did.
#[derive(Debug, PartialEq, Serialize)]
struct Happened {
    mean_wait_s: f64,
    max_wait_s: f64,
    mean_bsld: f64,
    /// The most nodes that were in use at once.
    peak_nodes: u32,
    /// What the machine draws with this many nodes at full speed.
    peak_w: f64,
    /// How long it drew more than the budget, at full speed.
    over_budget_s: u64,
}

#[derive(Serialize)]
struct Row {
    policy: String,
    #[serde(flatten)]
    figures: Figures,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let repertoire = Repertoire::of(&[]);
    let machine = Machine::from_text(&arguments.machine)
        .with_context(|| format!("--machine {}", arguments.machine))?;
    let machine = repertoire.filled_in(&machine)?;
    let budget = arguments.budget.resolve(&machine)?;
    let limit = budget.at(Instant::ZERO).limited();
    let (jobs, watched) = watch(arguments)?;
    if jobs.is_empty() {
        bail!("no job ended in {}; watch longer (--for)", human_time(watched.as_secs_f64()));
    }
    let draws = |nodes: u32| {
        let node = machine.node();
        machine.floor().saturating_add(node.added(node.highest) * nodes).as_f64()
    };
    let happened = happened(&jobs, &draws, limit.map(|limit| limit.as_f64()));
    let first = jobs.iter().map(|job| job.submitted).min().unwrap_or_default();
    let workload = Workload::new(
        "what was watched",
        (1..).zip(&jobs).map(|(number, job)| {
            let at = |seconds: u64| Instant::from_millis(1000 * (seconds - first));
            let ran = Span::from_millis(1000 * (job.ended - job.started).max(1));
            let asked =
                job.limit.map_or(ran, |minutes| Span::from_millis(60_000 * u64::from(minutes)));
            let user = NonZeroU32::new(job.uid.saturating_add(1)).map(UserId);
            (Job { user, ..Job::new(number, at(job.submitted), job.nodes, asked.max(ran)) }, ran)
        }),
    );
    let count = jobs.len();
    let past = Past::new(machine, workload, count, repertoire, budget);
    let policies: Vec<PolicySpec> = match arguments.policy.is_empty() {
        true => ["easy-power", "pb-guided", "share"].iter().flat_map(|name| name.parse()).collect(),
        false => Listed::joined(&arguments.policy).collect(),
    };
    let tuned =
        past.tune(&policies[0], &policies[1..], all_cores(), &|_, _| ControlFlow::Continue(()));
    let policies = match tuned {
        Ok(tuning) => {
            for (policy, why) in &tuning.unfit {
                warn(&format!("{policy} cannot run here: {why}"));
            }
            let row = |candidate: &crate::tuning::Candidate| Row {
                policy: candidate.policy.to_string(),
                figures: candidate.all,
            };
            tuning.candidates.iter().map(row).collect()
        }
        Err(error) => {
            warn(&format!("no policy is compared: {error}"));
            Vec::new()
        }
    };
    let budget_w = limit.map(|limit| limit.as_f64());
    let answer = Answer { jobs: count, watched_s: watched.as_secs(), budget_w, happened, policies };
    match arguments.json {
        true => print(&(serde_json::to_string_pretty(&answer)? + "\n")),
        false => print(&in_words(&answer)),
    }
}

/// Looks at the cluster until the time is over. Returns the jobs that ended meanwhile, in the order of their submission.
fn watch(arguments: &Arguments) -> anyhow::Result<(Vec<Ended>, Duration)> {
    let cluster = arguments.cluster.commands();
    let (begun, since) = (Moment::now(), now());
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).context("cannot watch signals")?;
    }
    let most = arguments.time.map(|time| Duration::from_millis(time.0.millis()));
    let every = Duration::from_millis(arguments.every.0.millis()).max(Duration::from_millis(100));
    let mut ended: BTreeMap<(u64, u32, Option<u32>), Ended> = BTreeMap::new();
    // The first look shows at once whether the cluster can be read.
    let mut seen = cluster.jobs()?;
    let mut reported = Reported::default();
    // The last one comes after the end, so that whatever ended before is in it.
    let mut is_last = false;
    loop {
        for unread in reported.news(&seen.unread) {
            warn(&format!("cannot be read: {unread}"));
        }
        for job in seen.iter() {
            let is_ours = arguments.partition.is_empty()
                || job.partitions.iter().any(|name| arguments.partition.contains(name));
            if let Some(one) = of(job, since).filter(|_| is_ours) {
                let reference = job.reference();
                ended.insert((one.submitted, reference.job, reference.task), one);
            }
        }
        if is_last {
            return Ok((ended.into_values().collect(), begun.elapsed()));
        }
        let is_over =
            || stop.load(Ordering::Relaxed) || most.is_some_and(|most| begun.elapsed() >= most);
        let next = Moment::now() + every;
        while Moment::now() < next && !is_over() {
            sleep(Duration::from_millis(50));
        }
        is_last = is_over();
        match cluster.jobs() {
            Ok(jobs) => seen = jobs,
            Err(error) => warn(&format!("{error}; retrying")),
        }
    }
}

/// A job that has ended since then; `None` for others, and for those that never ran.
fn of(job: &model::Job, since: u64) -> Option<Ended> {
    let (submitted, started, ended) = (job.submitted?, job.started?, job.ended?);
    let is_sound =
        job.state.has_ended() && submitted <= started && started < ended && ended >= since;
    let nodes = u32::try_from(job.nodes.len()).ok().filter(|nodes| *nodes > 0)?;
    let (uid, limit) = (job.uid, job.limit_minutes);
    is_sound.then_some(Ended { uid, nodes, submitted, started, ended, limit })
}

fn happened(jobs: &[Ended], draws: &dyn Fn(u32) -> f64, limit: Option<f64>) -> Happened {
    let waits = jobs.iter().map(|job| (job.started - job.submitted) as f64);
    let slowdown = |job: &Ended| {
        let ran = (job.ended - job.started) as f64;
        let turnaround = (job.ended - job.submitted) as f64;
        (turnaround / ran.max(BSLD_THRESHOLD)).max(1.0)
    };
    let mean = |sum: f64| sum / jobs.len() as f64;
    // Nodes in use over time; at the same second jobs end before others start.
    let mut changes: Vec<(u64, i64)> = Vec::new();
    for job in jobs {
        changes.push((job.started, i64::from(job.nodes)));
        changes.push((job.ended, -i64::from(job.nodes)));
    }
    changes.sort_unstable();
    let (mut in_use, mut peak, mut over) = (0i64, 0, 0);
    for (place, (at, change)) in changes.iter().enumerate() {
        in_use += change;
        let nodes = u32::try_from(in_use).unwrap_or_default();
        peak = peak.max(nodes);
        let until = changes.get(place + 1).map_or(*at, |(next, _)| *next);
        if limit.is_some_and(|limit| draws(nodes) > limit) {
            over += until - at;
        }
    }
    Happened {
        mean_wait_s: mean(waits.clone().sum()),
        max_wait_s: waits.fold(0.0, f64::max),
        mean_bsld: mean(jobs.iter().map(slowdown).sum()),
        peak_nodes: peak,
        peak_w: draws(peak),
        over_budget_s: over,
    }
}

fn in_words(answer: &Answer) -> String {
    let Answer { jobs, watched_s, happened, .. } = answer;
    let limit = answer.budget_w.map_or("no limit".to_owned(), human_power);
    let time = human_time(*watched_s as f64);
    let mut text = format!("{} ended in {time} of watching.\n\n", counted(*jobs, "job"));
    let row = |name: &str, bsld: f64, mean: f64, longest: f64, run: String| {
        vec![name.to_owned(), run, format!("{bsld:.2}"), human_time(mean), human_time(longest)]
    };
    let Happened { mean_wait_s, max_wait_s, mean_bsld, .. } = happened;
    let mut rows =
        vec![row("as recorded", *mean_bsld, *mean_wait_s, *max_wait_s, jobs.to_string())];
    for Row { policy, figures } in &answer.policies {
        let ran = format!("{}", figures.completed + figures.killed);
        rows.push(row(policy, figures.mean_bsld, figures.mean_wait_s, figures.max_wait_s, ran));
    }
    let headings = [
        ("policy", Side::Left),
        ("jobs run", Side::Right),
        ("slowdown", Side::Right),
        ("mean wait", Side::Right),
        ("longest wait", Side::Right),
    ];
    text += &columns(&headings, &rows);
    text += &format!(
        "\nAs recorded, up to {} were in use, which draw {} at full speed; the machine drew more than {limit} for \
        {}.\n",
        counted(happened.peak_nodes as usize, "node"),
        human_power(happened.peak_w),
        human_time(happened.over_budget_s as f64)
    );
    text
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two jobs of two nodes that overlap for ten seconds, on nodes of 100 W under a limit of 300 W.
    #[test]
    fn what_happened_is_added_up() {
        let job = |submitted, started, ended| Ended {
            uid: 1000,
            nodes: 2,
            submitted,
            started,
            ended,
            limit: Some(10),
        };
        let jobs = [job(0, 0, 100), job(0, 90, 1290)];
        let draws = |nodes: u32| f64::from(nodes) * 100.0;
        let expected = Happened {
            mean_wait_s: 45.0,
            max_wait_s: 90.0,
            // The first runs for less than ten minutes, the second for 1200 s after a wait of 90 s.
            mean_bsld: (1.0 + 1290.0 / 1200.0) / 2.0,
            peak_nodes: 4,
            peak_w: 400.0,
            over_budget_s: 10,
        };
        assert_eq!(happened(&jobs, &draws, Some(300.0)), expected);
    }
}
