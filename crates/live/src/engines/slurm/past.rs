//! What became of a job, as Slurm remembers it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use busbar_core::units::Span;
use busbar_slurm::model::{Exit, Job, JobState};

use crate::engine::{Found, ago};
use crate::job::End;

/// How and when a job ended.
#[derive(Clone, Debug)]
pub(super) struct Past {
    pub(super) end: End,
    /// Whether Slurm has ended it at its time limit.
    pub(super) is_out_of_time: bool,
    /// By the wall clock, if the daemon was away then and Slurm says it.
    at: Option<SystemTime>,
}

impl Past {
    /// What became of a job that Slurm has forgotten.
    pub(super) const FORGOTTEN: Past = Past { end: End::Lost, is_out_of_time: false, at: None };

    /// What became of a job that has just ended. It counts until now: its nodes were not free before.
    pub(super) fn seen(job: &Job) -> Self {
        Past { end: end(job), is_out_of_time: job.state == JobState::TimedOut, at: None }
    }

    /// What became of a job that ended while the daemon was away.
    pub(super) fn missed(job: &Job) -> Self {
        let at = job.ended.and_then(|ended| UNIX_EPOCH.checked_add(Duration::from_secs(ended)));
        Past { at, ..Past::seen(job) }
    }

    /// How long ago it ended, as far as that is known.
    pub(super) fn ago(&self) -> Span {
        self.at.map(ago).unwrap_or_default()
    }

    /// The same for a daemon that was away.
    pub(super) fn found(&self) -> Found {
        Found::Ended { end: self.end.clone(), ago: self.ago() }
    }
}

/// How a job ended.
fn end(job: &Job) -> End {
    const TERMINATED: i32 = 15;
    match job.state {
        JobState::Completed => End::Exited(0),
        JobState::Cancelled | JobState::TimedOut | JobState::Preempted => {
            End::Signalled(TERMINATED)
        }
        JobState::Failed => match job.exit {
            Some(Exit { signal: 0, code }) => End::Exited(code as i32),
            Some(Exit { signal, .. }) => End::Signalled(signal as i32),
            None => End::Failed("Slurm does not say how it failed".to_owned()),
        },
        JobState::OutOfMemory => End::Failed("out of memory".to_owned()),
        JobState::NodeFailed => End::Failed("one of its nodes failed".to_owned()),
        _ => End::Lost,
    }
}
