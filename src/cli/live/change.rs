//! `busbar cancel`, `hold` and `release`: one operation on several jobs.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;

use super::names::JobName;
use super::{Daemon, unexpected};
use crate::cli::failure::{self, Audience};
use crate::live::wire::{Answer, Reply, Request};

/// Cancel jobs, whether they wait or run
#[derive(Debug, Args)]
pub(in crate::cli) struct Cancel {
    #[command(flatten)]
    change: Change,
}

/// Hold waiting jobs until they are released
#[derive(Debug, Args)]
pub(in crate::cli) struct Hold {
    #[command(flatten)]
    change: Change,
}

/// Release held jobs
#[derive(Debug, Args)]
pub(in crate::cli) struct Release {
    #[command(flatten)]
    change: Change,
}

#[derive(Debug, Args)]
#[group(skip)]
struct Change {
    /// Job numbers; the number of an array means all of it, and 12_3 is element 3 of array 12
    #[arg(value_name = "JOB", required = true)]
    jobs: Vec<JobName>,

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
    request: impl Fn(Vec<u64>) -> Request,
) -> anyhow::Result<ExitCode> {
    let number = |name: &JobName| Ok((change.daemon.number_of(*name)?, name.to_string()));
    let named = change.jobs.iter().map(number).collect::<anyhow::Result<Vec<(u64, String)>>>()?;
    let numbers: Vec<u64> = named.iter().map(|(number, _)| *number).collect();
    let named: BTreeMap<u64, String> = named.into_iter().collect();
    let name = |answer: &Answer| named.get(&answer.job).cloned().unwrap_or_default();
    let mut answers = Vec::new();
    for jobs in numbers.chunks(Request::MOST_NAMED) {
        match change.daemon.ask(&request(jobs.to_vec()))? {
            Reply::Done(done) => answers.extend(done),
            reply => return Err(unexpected(&reply)),
        }
    }
    change.daemon.show(&answers, |answers| {
        let well = answers.iter().filter(|answer| answer.refusal.is_none());
        let line = |answer: &Answer| match answer.asked {
            true => format!("asked job {} to end\n", name(answer)),
            false => format!("{done} job {}\n", name(answer)),
        };
        well.map(line).collect()
    })?;
    let refused =
        |answer: &Answer| Some(format!("job {}: {}", name(answer), answer.refusal.clone()?));
    let refused: Vec<String> = answers.iter().filter_map(refused).collect();
    if refused.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let message = format!("{} of {} jobs could not be {done}", refused.len(), answers.len());
    let audience = if change.daemon.json { Audience::Programs } else { Audience::People };
    Ok(failure::report_part(message, refused, audience))
}
