//! `busbar queue`: the jobs that wait or run.

use std::cmp::Reverse;
use std::io::{IsTerminal, stdout};
use std::thread::sleep;
use std::time::Duration;

use clap::Args;

use super::again::Watcher;
use super::table::{fitted, terminal_width};
use super::users::Users;
use super::{Daemon, unexpected, words};
use crate::cli::print;
use crate::live::job::Element;
use crate::live::wire::{JobLine, Priority, Reply, Request, State};
use crate::report::{Side, human_power};

/// The number of waiting jobs shown on a terminal.
const WAITING_SHOWN: usize = 50;

/// List the jobs that wait or run
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar queue
  busbar queue -u ada --watch
  busbar queue --long
  busbar queue --json")]
pub(in crate::cli) struct Arguments {
    /// Only jobs of this user, by name or number
    #[arg(short, long, value_name = "USER")]
    user: Option<String>,

    /// Show all waiting jobs; on a terminal the default is the first 50
    #[arg(long)]
    all: bool,

    /// Show what gives waiting jobs their priorities, the highest first, where the policy has order=multifactor
    #[arg(short, long)]
    long: bool,

    /// Repeat every S seconds, even if the daemon is restarted
    #[arg(short, long, value_name = "S", num_args = 0..=1, default_missing_value = "2",
          value_parser = clap::value_parser!(u64).range(1..))]
    watch: Option<u64>,

    #[command(flatten)]
    daemon: Daemon,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let users = Users::default();
    let only = arguments.user.as_deref().map(|name| users.number(name)).transpose()?;
    let most = (!arguments.all && stdout().is_terminal()).then_some(WAITING_SHOWN);
    let mut watcher = Watcher::of(&arguments.daemon);
    loop {
        let mut jobs = match watcher.ask(&Request::Queue)? {
            Reply::Queue(jobs) => jobs,
            reply => return Err(unexpected(&reply)),
        };
        jobs.retain(|job| only.is_none_or(|user| job.user == user));
        if arguments.watch.is_some() && stdout().is_terminal() {
            // Clear the terminal.
            print("\u{1b}[H\u{1b}[2J")?;
        }
        if arguments.long {
            // Who runs keeps the place.
            let points = |job: &JobLine| job.priority.as_ref().map(|priority| priority.all);
            jobs.sort_by_key(|job| (is_waiting(job), Reverse(points(job))));
        }
        arguments.daemon.show(&jobs, |jobs| match arguments.long {
            true => describe_long(jobs, &users, most, terminal_width()),
            false => describe(jobs, &users, most, terminal_width()),
        })?;
        match arguments.watch {
            Some(seconds) => sleep(Duration::from_secs(seconds)),
            None => return Ok(()),
        }
    }
}

fn describe(jobs: &[JobLine], users: &Users, most: Option<usize>, width: Option<usize>) -> String {
    match jobs.is_empty() {
        true => "no jobs\n".to_owned(),
        false => table(jobs, users, most, width),
    }
}

/// The waiting jobs with their priorities, at most so many.
fn describe_long(
    jobs: &[JobLine],
    users: &Users,
    most: Option<usize>,
    width: Option<usize>,
) -> String {
    const HEADINGS: [(&str, Side); 11] = [
        ("JOB", Side::Right),
        ("NAME", Side::Left),
        ("USER", Side::Left),
        ("STATE", Side::Left),
        ("NODES", Side::Right),
        ("PRIORITY", Side::Right),
        ("AGE", Side::Right),
        ("FAIR SHARE", Side::Right),
        ("SIZE", Side::Right),
        ("ASSOCIATION", Side::Right),
        ("RESOURCES", Side::Right),
    ];
    let waiting: Vec<&JobLine> = jobs.iter().filter(|job| is_waiting(job)).collect();
    if waiting.is_empty() {
        return "no waiting jobs\n".to_owned();
    }
    let shown = waiting.len().min(most.unwrap_or(usize::MAX));
    let row = |job: &&JobLine| {
        let mut row = vec![
            name(std::slice::from_ref(*job)),
            words::name(job.name.as_deref()),
            users.name(job.user),
            words::state(job.state).to_owned(),
            job.nodes.to_string(),
        ];
        let points = |thousandths: u64| format!("{:.1}", thousandths as f64 / 1000.0);
        match &job.priority {
            Some(Priority { all, age, fair_share, association, job_size, resources }) => {
                let parts = [all, age, fair_share, job_size, association, resources];
                row.extend(parts.map(|part| points(*part)));
            }
            None => row.extend(std::iter::repeat_n("-".to_owned(), 6)),
        }
        row
    };
    let mut text = fitted(&HEADINGS, waiting[..shown].iter().map(row).collect(), width);
    if waiting.iter().all(|job| job.priority.is_none()) {
        text += "jobs have no priorities: the policy has no order=multifactor\n";
    }
    if shown < waiting.len() {
        text += &format!("{} more jobs wait; --all shows them\n", waiting.len() - shown);
    }
    text
}

fn is_waiting(job: &JobLine) -> bool {
    matches!(job.state, State::Waiting | State::Blocked | State::Held)
}

/// A table of jobs, with at most `most` waiting ones. Elements of an array that wait for the same
/// reason share a row.
pub(super) fn table(
    jobs: &[JobLine],
    users: &Users,
    most: Option<usize>,
    width: Option<usize>,
) -> String {
    let has_handles = jobs.iter().any(|job| job.handle.is_some());
    let mut headings = vec![
        ("JOB", Side::Right),
        ("NAME", Side::Left),
        ("USER", Side::Left),
        ("STATE", Side::Left),
        ("TIME/LIMIT", Side::Right),
        ("NODES", Side::Right),
        ("ON", Side::Left),
        ("POWER", Side::Right),
        ("REASON", Side::Left),
    ];
    if has_handles {
        headings.insert(1, ("SLURM", Side::Right));
    }
    let mut room = most.unwrap_or(usize::MAX);
    let (mut rows, mut left_out) = (Vec::new(), 0);
    let are_alike = |one: &JobLine, other: &JobLine| {
        let array = |job: &JobLine| job.array.map(|element| element.array);
        let waits = is_waiting(one) && one.state == other.state && one.reason == other.reason;
        waits && array(one).is_some() && array(one) == array(other)
    };
    for alike in jobs.chunk_by(are_alike) {
        let Some(job) = alike.first() else { continue };
        if is_waiting(job) && room == 0 {
            left_out += alike.len();
            continue;
        }
        room -= usize::from(is_waiting(job));
        let mut row = row(job, &name(alike), users);
        if has_handles {
            let handle = job.handle.as_deref().and_then(|handle| handle.split('@').next());
            row.insert(1, handle.unwrap_or_default().to_owned());
        }
        rows.push(row);
    }
    let mut text = fitted(&headings, rows, width);
    if left_out > 0 {
        text += &format!("{left_out} more jobs wait; --all shows them\n");
    }
    text
}

/// The name of the jobs in a row: `7`, `12_3`, `12_[4-50]`.
fn name(jobs: &[JobLine]) -> String {
    let elements: Vec<&Element> = jobs.iter().filter_map(|job| job.array.as_ref()).collect();
    match (jobs, elements.as_slice()) {
        (_, [element]) => element.to_string(),
        (_, [first, ..]) => {
            let indices: Vec<u32> = elements.iter().map(|element| element.index).collect();
            format!("{}_[{}]", first.array, words::node_list(&indices))
        }
        ([job, ..], []) => job.job.to_string(),
        ([], []) => String::new(),
    }
}

fn row(job: &JobLine, name: &str, users: &Users) -> Vec<String> {
    let limit = words::clock(job.time);
    let speed = job.speed.filter(|speed| *speed != 1_000_000);
    let slowed = speed.map(|speed| format!("at {:.0} % of its speed", f64::from(speed) / 1e4));
    vec![
        name.to_owned(),
        words::name(job.name.as_deref()),
        users.name(job.user),
        words::state(job.state).to_owned(),
        job.ran.map_or_else(|| limit.clone(), |ran| format!("{}/{limit}", words::clock(ran))),
        job.nodes.to_string(),
        words::node_list(&job.on),
        job.power.map(|power| human_power(power.as_f64())).unwrap_or_default(),
        job.reason.as_deref().map(words::visible).or(slowed).unwrap_or_default(),
    ]
}
