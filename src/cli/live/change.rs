//! `busbar cancel`, `hold` and `release`: the same thing to each of several jobs.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;

use super::{Daemon, unexpected};
use crate::live::wire::{Answer, Reply, Request};

/// End jobs, or never start them
#[derive(Debug, Args)]
pub(in crate::cli) struct Cancel {
    #[command(flatten)]
    change: Change,
}

/// Do not start jobs until they are released
#[derive(Debug, Args)]
pub(in crate::cli) struct Hold {
    #[command(flatten)]
    change: Change,
}

/// Let jobs start that were held
#[derive(Debug, Args)]
pub(in crate::cli) struct Release {
    #[command(flatten)]
    change: Change,
}

#[derive(Debug, Args)]
#[group(skip)]
struct Change {
    /// Their numbers
    #[arg(value_name = "JOB", required = true)]
    jobs: Vec<u64>,

    #[command(flatten)]
    daemon: Daemon,
}

pub(super) fn cancel(arguments: &Cancel) -> anyhow::Result<ExitCode> {
    apply(&arguments.change, "cancelled", |jobs| Request::Cancel { jobs })
}

pub(super) fn hold(arguments: &Hold) -> anyhow::Result<ExitCode> {
    apply(&arguments.change, "held", |jobs| Request::Hold { jobs })
}

pub(super) fn release(arguments: &Release) -> anyhow::Result<ExitCode> {
    apply(&arguments.change, "released", |jobs| Request::Release { jobs })
}

fn apply(
    change: &Change,
    done: &str,
    request: impl FnOnce(Vec<u64>) -> Request,
) -> anyhow::Result<ExitCode> {
    let answers = match change.daemon.ask(&request(change.jobs.clone()))? {
        Reply::Done(answers) => answers,
        reply => return Err(unexpected(&reply)),
    };
    change.daemon.show(&answers, |answers| {
        let well = answers.iter().filter(|answer| answer.refusal.is_none());
        well.map(|answer| format!("{done} job {}\n", answer.job)).collect()
    })?;
    let refused = |answer: &Answer| Some((answer.job, answer.refusal.clone()?));
    let mut code = ExitCode::SUCCESS;
    for (job, refusal) in answers.iter().filter_map(refused) {
        // That it cannot be told changes nothing.
        let _ = writeln!(io::stderr(), "error: job {job}: {refusal}");
        code = ExitCode::from(2);
    }
    Ok(code)
}
