//! The job array: its command, its submission, and how it ends.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::cli::warn;
use crate::slurm::cluster::Cluster;
use crate::slurm::commands::Commands;
use crate::slurm::error::SlurmError;
use crate::slurm::model::{JobRef, JobState};
use crate::slurm::program::Programs;

/// How often Slurm is asked how far the array is.
const LOOK: Duration = Duration::from_secs(1);

/// Makes the runs in this many elements, and those that fail once more.
pub(super) fn run(tasks: u32, cache: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(cache)
        .with_context(|| format!("cannot make the folder {}", cache.display()))?;
    let cluster = Commands::new(Programs::default());
    let own = own_arguments(std::env::args_os().skip(1), tasks, cache)?;
    let mut left: BTreeSet<u32> = (1..=tasks).collect();
    for is_again in [false, true] {
        let failed = make(&cluster, &own, &left, cache)?;
        if failed.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = failed.iter().map(u32::to_string).collect();
        let names = names.join(",");
        warn(&match is_again {
            false => format!("elements {names} of the array failed; they are tried once more"),
            true => format!("elements {names} of the array failed twice; their runs are made here"),
        });
        left = failed;
    }
    Ok(())
}

/// Submits elements of the array, and waits until all have ended. Returns those that failed.
fn make(
    cluster: &Commands,
    command: &str,
    elements: &BTreeSet<u32>,
    cache: &Path,
) -> anyhow::Result<BTreeSet<u32>> {
    let list: Vec<String> = elements.iter().map(u32::to_string).collect();
    let errors = cache.join("sweep-%A_%a.err");
    let errors = errors.to_str().context("the folder of the cache must be readable as text")?;
    let folder = std::env::current_dir().context("cannot find the current folder")?;
    let folder = folder.to_str().context("the current folder must be readable as text")?;
    let array = format!("--array={}", list.join(","));
    let all = [
        "--parsable",
        "--job-name=busbar-compare",
        "-n1",
        &array,
        "-D",
        folder,
        "-o",
        "/dev/null",
        "-e",
        errors,
        "--wrap",
        command,
    ];
    let printed = cluster.submit(&all)?;
    let number = printed.trim().split(';').next().unwrap_or_default();
    let Ok(number) = number.parse::<u32>() else { bail!("sbatch printed '{}'", printed.trim()) };
    eprintln!("job array {number} makes the runs on Slurm; 'scancel {number}' ends it");
    loop {
        sleep(LOOK);
        let entries = match cluster.job(JobRef::whole(number)) {
            Ok(entries) => entries,
            // Slurm forgets jobs some minutes after their end. What failed shows in the cache.
            Err(SlurmError::NoSuchJob { .. }) => return Ok(BTreeSet::new()),
            Err(error) => {
                warn(&format!("{error}; it is tried again"));
                continue;
            }
        };
        if entries.iter().any(|entry| !entry.state.has_ended()) {
            continue;
        }
        let failed = entries.iter().filter(|entry| entry.state != JobState::Completed);
        let tasks = failed.filter_map(|entry| entry.array.as_ref());
        return Ok(tasks.flat_map(|array| array.tasks.numbers().collect::<Vec<_>>()).collect());
    }
}

/// The command of an element: this one, without what sends it to Slurm, for its own shard. Slurm's own count of elements is not
/// the number of shards when those that failed are tried once more.
fn own_arguments(
    arguments: impl Iterator<Item = OsString>,
    tasks: u32,
    cache: &Path,
) -> anyhow::Result<String> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut words = vec![program.into_os_string()];
    let mut is_value = false;
    for argument in arguments {
        let text = argument.to_string_lossy();
        let is_ours = text == "--slurm" || text == "--tasks" || text.starts_with("--tasks=");
        if !is_value && !is_ours {
            words.push(argument.clone());
        }
        is_value = !is_value && text == "--tasks";
    }
    if !words.iter().any(|word| word.to_string_lossy().starts_with("--cache")) {
        words.extend(["--cache".into(), cache.as_os_str().to_owned()]);
    }
    let quoted = words.iter().map(|word| {
        let text = word.to_str().context("arguments must be readable as text")?;
        anyhow::Ok(format!("'{}'", text.replace('\'', "'\\''")))
    });
    let quoted = quoted.collect::<anyhow::Result<Vec<String>>>()?;
    Ok(format!("exec {} --shard \"$SLURM_ARRAY_TASK_ID/{tasks}\"", quoted.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_does_the_same_without_slurm() {
        let arguments = ["compare", "--slurm", "--tasks", "4", "--policy", "it's", "--tasks=4"];
        let made = own_arguments(arguments.iter().map(OsString::from), 4, Path::new("/c")).unwrap();
        let end =
            "'compare' '--policy' 'it'\\''s' '--cache' '/c' --shard \"$SLURM_ARRAY_TASK_ID/4\"";
        assert!(made.starts_with("exec '/") && made.ends_with(end), "{made}");
    }
}
