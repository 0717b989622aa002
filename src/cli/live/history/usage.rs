//! `busbar history users` and `busbar history accounts`: the energy of finished jobs.

use clap::Args;

use super::moment::{self, Moment};
use crate::cli::live::table::{fitted, terminal_width};
use crate::cli::live::{Daemon, unexpected, users, words};
use crate::live::wire::finished::{By, Usage, UsageQuery, UsageSum};
use crate::live::wire::{Reply, Request};
use crate::report::{Side, human_energy};

/// Sum up the energy of finished jobs by user
#[derive(Debug, Args)]
#[command(after_help = "A job counts on the day it ended. Sums are kept for three years.

Examples:
  busbar history users
  busbar history users --since 2026-10-01 --until 2026-10-31 --json")]
pub(super) struct Users {
    #[command(flatten)]
    period: Period,
}

/// Sum up the energy of finished jobs by account: of your own jobs, or of all if you are an operator
#[derive(Debug, Args)]
#[command(after_help = "A job counts on the day it ended. Sums are kept for three years.

Examples:
  busbar history accounts --since 7d")]
pub(super) struct Accounts {
    #[command(flatten)]
    period: Period,
}

/// The days that count.
#[derive(Debug, Args)]
#[group(skip)]
struct Period {
    /// First day: today, yesterday, 7d (ago) or 2026-11-18 [default: thirty days up to the last one]
    #[arg(short = 'S', long, value_name = "DAY", value_parser = moment::parse)]
    since: Option<Moment>,

    /// Last day [default: today]
    #[arg(short = 'E', long, value_name = "DAY", value_parser = moment::parse)]
    until: Option<Moment>,

    #[command(flatten)]
    daemon: Daemon,
}

pub(super) fn by_user(arguments: &Users) -> anyhow::Result<()> {
    run(&arguments.period, By::User)
}

pub(super) fn by_account(arguments: &Accounts) -> anyhow::Result<()> {
    run(&arguments.period, By::Account)
}

fn run(period: &Period, by: By) -> anyhow::Result<()> {
    let at = |moment: Option<Moment>| moment.map(|Moment(at)| at);
    let query = UsageQuery { by, since: at(period.since), until: at(period.until) };
    let mut usage = match period.daemon.ask(&Request::Usage(query))? {
        Reply::Usage(usage) => usage,
        reply => return Err(unexpected(&reply)),
    };
    let users = users::Users::default();
    for sum in &mut usage.sums {
        let name = sum.user.map(|user| users.name(user));
        sum.user_name = name.filter(|name| name.parse::<u32>().is_err());
    }
    period.daemon.show(&usage, |usage| describe(usage, by, terminal_width()))
}

fn describe(usage: &Usage, by: By, width: Option<usize>) -> String {
    let Usage { first_day, last_day, sums } = usage;
    if sums.is_empty() {
        return format!("no job ended from {first_day} to {last_day}\n");
    }
    let whose = match by {
        By::User => "USER",
        By::Account => "ACCOUNT",
    };
    let are_measured = sums.iter().any(|sum| sum.measured_jobs > 0);
    let mut headings = vec![
        (whose, Side::Left),
        ("JOBS", Side::Right),
        ("NODE TIME", Side::Right),
        ("ENERGY", Side::Right),
        ("SHARE", Side::Right),
    ];
    if are_measured {
        headings.extend([("MEASURED JOBS", Side::Right), ("MEASURED", Side::Right)]);
    }
    let all = UsageSum {
        jobs: sums.iter().map(|sum| sum.jobs).sum(),
        node_time: sums.iter().map(|sum| sum.node_time).sum(),
        energy: sums.iter().map(|sum| sum.energy).sum(),
        measured_jobs: sums.iter().map(|sum| sum.measured_jobs).sum(),
        measured: sums.iter().map(|sum| sum.measured).sum(),
        ..UsageSum::default()
    };
    let row = |name: String, sum: &UsageSum| {
        let share = match all.energy.as_f64() {
            0.0 => words::HIDDEN.to_owned(),
            whole => format!("{:.1} %", 100.0 * sum.energy.as_f64() / whole),
        };
        let energy = human_energy(sum.energy.as_f64());
        let mut row = vec![name, sum.jobs.to_string(), words::clock(sum.node_time), energy, share];
        if are_measured {
            let energy = human_energy(sum.measured.as_f64());
            row.extend([sum.measured_jobs.to_string(), energy]);
        }
        row
    };
    let name = |sum: &UsageSum| match (sum.user, &sum.user_name, &sum.account) {
        (_, Some(name), _) => words::visible(name),
        (Some(user), None, _) => user.to_string(),
        (None, None, Some(account)) => words::visible(account),
        (None, None, None) => words::HIDDEN.to_owned(),
    };
    let mut rows: Vec<Vec<String>> = sums.iter().map(|sum| row(name(sum), sum)).collect();
    if rows.len() > 1 {
        rows.push(row("all".to_owned(), &all));
    }
    let table = fitted(&headings, rows, width);
    format!("{table}jobs that ended from {first_day} to {last_day}; energy as predicted\n")
}
