//! `busbar slurm jobs`: the jobs of a cluster as Busbar sees them.

use clap::Args;

use super::Where;
use crate::cli::{print, warn};
use crate::report::{Side, columns};
use crate::slurm::cluster::Cluster;
use crate::slurm::model::{Hold, Job, JobState};
use crate::slurm::setup;
use crate::slurm::unread::UNKNOWN;
use crate::slurm::words::Words;

/// Show the jobs of the cluster, with their hints for Busbar
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    cluster: Where,

    /// Show finished jobs, too
    #[arg(long)]
    ended: bool,

    /// Print a JSON array with all values
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut unread = Vec::new();
    let mut jobs = arguments.cluster.commands().jobs()?.into_read(&mut unread);
    unread.iter().for_each(|unread| warn(&format!("cannot be read: {unread}")));
    jobs.retain(|job| arguments.ended || !job.state.has_ended());
    match arguments.json {
        true => print(&(serde_json::to_string_pretty(&jobs)? + "\n")),
        false => print(&in_words(&jobs)),
    }
}

fn in_words(jobs: &[Job]) -> String {
    let row = |job: &Job| {
        let id = match &job.array {
            Some(array) => format!("{}_{}", array.job, array.tasks),
            None => job.id.to_string(),
        };
        let nodes = match (job.nodes_min, job.nodes_max) {
            (UNKNOWN, _) => "?".to_owned(),
            (fewest, most) if fewest == most => fewest.to_string(),
            (fewest, UNKNOWN) => format!("{fewest}-?"),
            (fewest, most) => format!("{fewest}-{most}"),
        };
        let state = match &job.state {
            JobState::Other(word) => word.to_lowercase(),
            state => format!("{state:?}").to_lowercase(),
        };
        let minutes =
            job.limit_minutes.map_or("none".to_owned(), |minutes| format!("{minutes} min"));
        vec![
            id,
            plain(&job.user),
            state,
            held(job),
            nodes,
            minutes,
            job.nodes.to_string(),
            told(job),
        ]
    };
    let headings = [
        ("JOB", Side::Left),
        ("USER", Side::Left),
        ("STATE", Side::Left),
        ("HELD", Side::Left),
        ("NODES", Side::Right),
        ("LIMIT", Side::Right),
        ("WHICH", Side::Left),
        ("TELLS BUSBAR", Side::Left),
    ];
    columns(&headings, &jobs.iter().map(row).collect::<Vec<_>>())
}

/// Who holds a job.
fn held(job: &Job) -> String {
    match job.hold {
        None => "",
        Some(_) if setup::is_ready(job) => "for Busbar",
        Some(_) if setup::is_marked(job) => "by its user",
        Some(Hold::User) => "by its user",
        Some(Hold::Admin) => "by an admin",
        Some(Hold::Slurm) => "by Slurm",
    }
    .to_owned()
}

/// What a job's comment says to Busbar.
fn told(job: &Job) -> String {
    match Words::read(job.comment.as_deref().unwrap_or("")) {
        Ok(Some(words)) => words.to_string().trim_start_matches("busbar").trim().to_owned(),
        Ok(None) => String::new(),
        Err(error) => plain(&error.to_string()),
    }
}

/// Text from a user, without control characters.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
