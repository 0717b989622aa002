//! What a job of Slurm asks of the daemon.

use busbar_core::units::Span;
use busbar_slurm::model::{Job, JobRef};
use busbar_slurm::words::Words;

use crate::job::{JobRequest, Owner};

/// The time limit of a job that has none: the longest that the daemon knows.
pub(super) const NO_LIMIT: Span = Span::from_secs(366 * 24 * 3600);

/// How the engine calls a job: by its number, and by when it was submitted, since numbers are used again on a cluster that
/// was set up anew. A job that Slurm has queued again was submitted again, and is another job.
pub(super) fn handle(reference: JobRef, job: &Job) -> String {
    format!("{reference}@{}", job.submitted.unwrap_or_default())
}

/// The job that a handle means.
pub(super) fn job_of(handle: &str) -> Option<JobRef> {
    let job = handle.split('@').next()?;
    match job.split_once('_') {
        Some((job, task)) => {
            Some(JobRef { job: job.parse().ok()?, task: Some(task.parse().ok()?) })
        }
        None => Some(JobRef::whole(job.parse().ok()?)),
    }
}

/// Who a job belongs to. Slurm does not say the group, and the engine needs none.
pub(super) fn owner(job: &Job) -> Owner {
    Owner { user: job.uid, group: job.uid }
}

/// What a job asks for with this time limit, or why that cannot be understood.
pub(super) fn request(
    job: &Job,
    minutes: Option<u32>,
    resizes: bool,
) -> Result<JobRequest, String> {
    if job.het.is_some() {
        return Err(
            "heterogeneous jobs are not supported; submit the parts as separate jobs".to_owned()
        );
    }
    let words =
        Words::read(job.comment.as_deref().unwrap_or("")).map_err(|error| error.to_string())?;
    let words = words.unwrap_or_default();
    let nodes = job.nodes_min.max(1);
    let range = words.nodes.unwrap_or((nodes, job.nodes_max.max(nodes)));
    let is_ranged = range.0 < range.1 && (words.malleable || !resizes);
    let time = minutes.map_or(NO_LIMIT, |minutes| Span::from_millis(60_000 * u64::from(minutes)));
    Ok(JobRequest {
        name: name(job),
        nodes: if is_ranged { nodes.clamp(range.0, range.1) } else { nodes },
        moldable: is_ranged.then_some(range),
        time: time.min(NO_LIMIT).max(Span::from_secs(60)),
        application: words.app,
        slowdown: words.slowdown.map(|millionths| format!("{}%", f64::from(millionths) / 10_000.0)),
        after: Vec::new(),
        held: false,
        account: job.account.as_deref().map(account).filter(|name| !name.is_empty()),
        part: Default::default(),
    })
}

/// A job's name as the daemon keeps it.
pub(super) fn name(job: &Job) -> String {
    job.name.chars().filter(|c| !c.is_control()).take(50).collect()
}

/// An account as the daemon keeps it: Slurm may have longer ones.
fn account(name: &str) -> String {
    const LONGEST: usize = 64;
    let mut kept = String::new();
    for sign in name.chars().filter(|sign| !sign.is_control()) {
        if kept.len() + sign.len_utf8() > LONGEST {
            break;
        }
        kept.push(sign);
    }
    kept
}
