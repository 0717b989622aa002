//! `busbar submit`: submits a command or a script as a job.

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;

use super::options::{JobOptions, Places};
use super::wait::Ended;
use super::{Daemon, script, unexpected, wait};
use crate::cli::{print, warn};
use crate::live::job::{ArraySpec, Program};
use crate::live::server::socket::Limits;
use crate::live::wire::{Reply, Request, Sent, Submission};

/// Submit a job to the daemon
///
/// It runs as soon as nodes and power are available, in the current folder and with the current
/// environment. A script may contain options in lines such as '#BUSBAR -N 2 -t 10m'; options on the
/// command line override them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar submit -N 2 -t 10m -- ./solve input.dat
  busbar submit -J sweep --moldable 2-8 --slowdown 10% --wait -- make run
  busbar submit --after 12 script.sh argument
  busbar submit --array 1-50%4 -- ./sweep    50 jobs, four at once; each has $BUSBAR_ARRAY_INDEX")]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    job: JobOptions,

    #[command(flatten)]
    places: Places,

    /// Submit an array with one job per index: 1-50, 1,3,7-9 or 0-20:5; with %4 at most four run at
    /// once
    #[arg(long, value_name = "INDICES")]
    array: Option<ArraySpec>,

    /// Wait for the end of the job and exit with its code; for an array with 0 if all elements
    /// succeeded, otherwise 1
    #[arg(long)]
    wait: bool,

    #[command(flatten)]
    daemon: Daemon,

    /// Script with its arguments; or, after --, any command
    #[arg(value_name = "SCRIPT or -- COMMAND", required = true, trailing_var_arg = true)]
    words: Vec<String>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let submission = submission(arguments)?;
    let elements = submission.array.as_ref().map(|array| array.indices().len());
    let request = Request::Submit(Box::new(submission));
    let written = serde_json::to_vec(&Sent::new(&request)).context("the job cannot be sent")?;
    let (size, most) = (written.len(), Limits::default().request);
    if size > most {
        bail!(
            "the job has {size} bytes, probably because of its environment; the maximum is {most}; submit it with \
            a smaller one: env -i PATH=\"$PATH\" busbar submit …"
        );
    }
    let daemon = &arguments.daemon;
    let (job, remark) = match daemon.ask(&request)? {
        Reply::Submitted { job, remark } => (job, remark),
        reply => return Err(unexpected(&reply)),
    };
    if let Some(remark) = &remark {
        warn(&format!("job {job} {remark}"));
    }
    let submitted = match elements {
        Some(count) => format!("submitted array {job} of {count} jobs\n"),
        None => format!("submitted job {job}\n"),
    };
    if !arguments.wait {
        let answer = match &remark {
            Some(remark) => json!({ "job": job, "remark": remark }),
            None => json!({ "job": job }),
        };
        daemon.show(&answer, |_| submitted)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !daemon.json {
        print(&submitted)?;
    }
    Ok(ExitCode::from(match wait::until_over(daemon, job)? {
        Ended::Job(details) => {
            daemon.show(&details, |details| wait::outcome(details))?;
            wait::exit_code(&details)
        }
        Ended::Array(array) => {
            daemon.show(&array, wait::outcomes)?;
            u8::from(!wait::all_completed(&array))
        }
    }))
}

fn submission(arguments: &Arguments) -> anyhow::Result<Submission> {
    let Some((first, others)) = arguments.words.split_first() else {
        bail!("there is nothing to submit; name a script, or a command after --");
    };
    let (mut job, mut places) = (arguments.job.clone(), arguments.places.clone());
    let mut array = arguments.array.clone();
    let mut command = match is_after_dashes(arguments.words.len(), std::env::args_os()) {
        true => vec![first.clone()],
        false => {
            let script = script::read(Path::new(first))?;
            script.warnings.iter().for_each(|text| warn(text));
            job = job.over(script.job);
            places = places.over(script.places);
            array = array.or(script.array);
            script.command
        }
    };
    command.extend_from_slice(others);
    let here = std::env::current_dir().context("cannot find the current folder")?;
    let folder = places.folder.map_or_else(|| here.clone(), |folder| here.join(folder));
    let usual = if array.is_some() { "busbar-%A_%a.out" } else { "busbar-%j.out" };
    let output = places.output.unwrap_or_else(|| usual.into());
    if array.is_some() && !tells_elements_apart(&output) {
        warn("all elements of the array write to the same file; %a in its name is the index");
    }
    let program = Program {
        command,
        environment: environment(),
        output: folder.join(output),
        errors: places.errors.map(|errors| folder.join(errors)),
        folder,
    };
    let request =
        job.request(&script::base_name(first), |name| arguments.daemon.number_of(name))?;
    Ok(Submission { request, program, array })
}

/// Whether a file name differs between the elements of an array.
fn tells_elements_apart(name: &Path) -> bool {
    let name = name.to_string_lossy();
    name.contains("%a") || name.contains("%j") || name == "/dev/null"
}

/// Whether the last `words` words of a command line come after `--`, so that they are a command and
/// not a script. The parser does not distinguish the two.
fn is_after_dashes<W: AsRef<OsStr>>(words: usize, line: impl Iterator<Item = W>) -> bool {
    let line: Vec<W> = line.collect();
    let before = line.len().checked_sub(words + 1).and_then(|place| line.get(place));
    before.is_some_and(|word| word.as_ref() == "--")
}

/// The environment; variables that are not UTF-8 are left out.
fn environment() -> Vec<(String, String)> {
    let mut environment = Vec::new();
    for (name, value) in std::env::vars_os() {
        match (name.to_str(), value.to_str()) {
            (Some(name), Some(value)) => environment.push((name.to_owned(), value.to_owned())),
            _ => warn(&format!("the variable {} is not UTF-8 and is left out", name.display())),
        }
    }
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_comes_after_dashes() {
        let is_command = |words, line: &str| is_after_dashes(words, line.split(' '));
        assert!(is_command(2, "busbar submit -N 2 -- echo x"));
        assert!(is_command(3, "busbar submit -- echo -- x"));
        assert!(!is_command(2, "busbar submit -N 2 script.sh x"));
        assert!(!is_command(3, "busbar submit script.sh -- x"));
        assert!(!is_command(9, "busbar"));
    }
}
