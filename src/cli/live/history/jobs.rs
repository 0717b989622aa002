//! `busbar history jobs`: the jobs that are over, as `sacct` lists them.

use clap::{Args, ValueEnum};

use super::moment::{self, Moment};
use crate::cli::live::names::JobName;
use crate::cli::live::table::{fitted, terminal_width};
use crate::cli::live::users::Users;
use crate::cli::live::{Daemon, unexpected, words};
use crate::cli::warn;
use crate::live::wire::finished::{FinishedJob, FinishedQuery, MOST_JOBS};
use crate::live::wire::{Reply, Request, State};
use crate::report::{Side, human_energy};

/// List finished jobs, by default today's: your own, or all if you are an operator
#[derive(Debug, Args)]
#[command(
    after_help = "Times are today, yesterday, now, 7d or 2h (ago), 14:30, 2026-11-18 or 2026-11-18T14:30.

Examples:
  busbar history jobs
  busbar history jobs --since yesterday --until today --state failed,timed-out
  busbar history jobs -a -A physics -S 7d
  busbar history jobs --job 12 --json"
)]
pub(super) struct Arguments {
    /// Only jobs of this user, by name or number
    #[arg(short, long, value_name = "USER", conflicts_with = "all")]
    user: Option<String>,

    /// Jobs of all users; names and accounts of others are shown to operators only
    #[arg(short, long)]
    all: bool,

    /// Only jobs for this account
    #[arg(short = 'A', long, value_name = "ACCOUNT")]
    account: Option<String>,

    /// Only jobs in this state; may be repeated or separated by commas
    #[arg(short, long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<EndState>,

    /// Only jobs that ended at this time or later [default: today]
    #[arg(short = 'S', long, value_name = "TIME", value_parser = moment::parse)]
    since: Option<Moment>,

    /// Only jobs that ended before this time [default: now]
    #[arg(short = 'E', long, value_name = "TIME", value_parser = moment::parse)]
    until: Option<Moment>,

    /// Only this job, or the elements of this array, whenever it ended
    #[arg(short, long, value_name = "JOB")]
    job: Option<JobName>,

    /// Show only the latest N jobs
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,

    #[command(flatten)]
    daemon: Daemon,
}

/// How a job can have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EndState {
    /// It exited with code 0
    Completed,
    /// It exited with another code or by a signal, or could not be started
    Failed,
    /// It was ended at its time limit
    #[value(alias = "timeout", alias = "timed_out")]
    TimedOut,
    /// It was cancelled, or dropped by the policy
    Cancelled,
    /// It ended in an unknown way
    Lost,
}

impl From<EndState> for State {
    fn from(state: EndState) -> State {
        match state {
            EndState::Completed => State::Completed,
            EndState::Failed => State::Failed,
            EndState::TimedOut => State::TimedOut,
            EndState::Cancelled => State::Cancelled,
            EndState::Lost => State::Lost,
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let users = Users::default();
    let query = query(arguments, &users)?;
    let (mut jobs, is_cut) = read(&arguments.daemon, query, arguments.limit as usize)?;
    // The latest stand last, beside the next prompt.
    jobs.reverse();
    for job in &mut jobs {
        job.user_name = Some(users.name(job.user)).filter(|name| name.parse::<u32>().is_err());
    }
    arguments.daemon.show(&jobs, |jobs| describe(jobs, terminal_width()))?;
    if is_cut {
        let shown = jobs.len();
        warn(&format!(
            "only the latest {shown} jobs are shown; -n shows more, --until earlier ones"
        ));
    }
    Ok(())
}

fn query(arguments: &Arguments, users: &Users) -> anyhow::Result<FinishedQuery> {
    let job = arguments.job.map(|name| arguments.daemon.number_of(name)).transpose()?;
    let today = || job.is_none().then(moment::today);
    Ok(FinishedQuery {
        user: arguments.user.as_deref().map(|name| users.number(name)).transpose()?,
        // Who names a job means that job, whosever it is.
        all: arguments.all || job.is_some(),
        account: arguments.account.clone(),
        states: arguments.state.iter().map(|state| State::from(*state)).collect(),
        since: arguments.since.map(|Moment(at)| at).or_else(today),
        until: arguments.until.map(|Moment(at)| at),
        job,
        before: None,
        limit: None,
    })
}

/// Asks for jobs in parts, until there are as many as are wanted, or no more; and whether there are more.
fn read(
    daemon: &Daemon,
    mut query: FinishedQuery,
    most: usize,
) -> anyhow::Result<(Vec<FinishedJob>, bool)> {
    let mut jobs = Vec::new();
    loop {
        let wanted = (most - jobs.len()).min(MOST_JOBS as usize);
        query.limit = Some(wanted as u32);
        let part = match daemon.ask(&Request::Finished(Box::new(query.clone())))? {
            Reply::Finished(part) => part,
            reply => return Err(unexpected(&reply)),
        };
        jobs.extend(part.jobs);
        query.before = part.next;
        if jobs.len() >= most || part.next.is_none() {
            return Ok((jobs, part.next.is_some()));
        }
    }
}

fn describe(jobs: &[FinishedJob], width: Option<usize>) -> String {
    if jobs.is_empty() {
        return "no finished jobs match; 'busbar queue' lists those that wait or run\n".to_owned();
    }
    let mut headings = vec![
        ("JOB", Side::Right),
        ("NAME", Side::Left),
        ("USER", Side::Left),
        ("ACCOUNT", Side::Left),
        ("STATE", Side::Left),
        ("EXIT", Side::Right),
        ("SUBMIT", Side::Right),
        ("START", Side::Right),
        ("END", Side::Right),
        ("ELAPSED", Side::Right),
        ("NODES", Side::Right),
        ("ENERGY", Side::Right),
    ];
    let has_handles = jobs.iter().any(|job| job.handle.is_some());
    let are_measured = jobs.iter().any(|job| job.measured.is_some());
    if has_handles {
        headings.insert(1, ("SLURM", Side::Right));
    }
    if are_measured {
        headings.push(("MEASURED", Side::Right));
    }
    let row = |job: &FinishedJob| {
        let mut row = row(job);
        if has_handles {
            let handle = job.handle.as_deref().and_then(|handle| handle.split('@').next());
            row.insert(1, handle.unwrap_or_default().to_owned());
        }
        if are_measured {
            let energy = job.measured.map(|energy| human_energy(energy.as_f64()));
            row.push(energy.unwrap_or_else(|| words::HIDDEN.to_owned()));
        }
        row
    };
    fitted(&headings, jobs.iter().map(row).collect(), width)
}

fn row(job: &FinishedJob) -> Vec<String> {
    let number = job.array.map_or(job.job.to_string(), |element| element.to_string());
    let user = job.user_name.clone().unwrap_or_else(|| job.user.to_string());
    vec![
        number,
        words::name(job.name.as_deref()),
        user,
        job.account.as_deref().map_or_else(|| words::HIDDEN.to_owned(), words::visible),
        words::state(job.state).to_owned(),
        exit(job),
        words::local_time(job.submitted),
        job.started.map_or_else(|| words::HIDDEN.to_owned(), words::local_time),
        words::local_time(job.ended),
        words::clock(job.elapsed),
        job.nodes.to_string(),
        human_energy(job.energy.as_f64()),
    ]
}

/// The exit code and the signal, as sacct writes them: `1:0`, `0:9`.
fn exit(job: &FinishedJob) -> String {
    match (job.exit_code, job.signal) {
        (None, None) => words::HIDDEN.to_owned(),
        (code, signal) => format!("{}:{}", code.unwrap_or(0), signal.unwrap_or(0)),
    }
}
