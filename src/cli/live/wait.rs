//! Waits for the end of a job, even if the daemon is restarted meanwhile.

use std::thread::sleep;
use std::time::{Duration, Instant as Clock};

use super::again::may_come_back;
use super::users::Users;
use super::{Daemon, unexpected, words};
use crate::live::job::End;
use crate::live::wire::{ArrayDetails, JobDetails, JobLine, Reply, Request, State};

/// The shortest and the longest pause between two requests.
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// How long to wait for a daemon that does not answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A job or an array that is over.
pub(super) enum Ended {
    Job(Box<JobDetails>),
    Array(ArrayDetails),
}

/// Asks about a job or an array, with growing pauses, until it is over.
pub(super) fn until_over(daemon: &Daemon, job: u64) -> anyhow::Result<Ended> {
    let is_over = |line: &JobLine| words::is_over(line.state);
    let mut pause = SHORTEST;
    let mut heard = Clock::now();
    loop {
        match daemon.ask(&Request::Show { job }) {
            Ok(Reply::Show(details)) if is_over(&details.line) => return Ok(Ended::Job(details)),
            Ok(Reply::Array(array)) if array.elements.iter().all(is_over) => {
                return Ok(Ended::Array(array));
            }
            Ok(Reply::Show(_) | Reply::Array(_)) => heard = Clock::now(),
            Ok(reply) => return Err(unexpected(&reply)),
            Err(error) if may_come_back(&error) && heard.elapsed() < PATIENCE => {}
            Err(error) => return Err(error),
        }
        sleep(pause);
        pause = (pause * 3 / 2).min(LONGEST);
    }
}

/// How a job ended, in a line.
pub(super) fn outcome(details: &JobDetails) -> String {
    let state = words::state(details.line.state);
    let end = details.end.as_ref().filter(|end| **end != End::Exited(0)).map(words::end);
    let why = details.end_reason.map(|reason| reason.to_string()).filter(|why| why != state);
    let by = details.by.map(|user| format!("by {}", Users::default().name(user)));
    let reasons: Vec<String> = why.into_iter().chain(by).chain(end).collect();
    let job = details.line.job;
    match reasons.is_empty() {
        true => format!("job {job} {state}\n"),
        false => format!("job {job} {state}: {}\n", reasons.join(", ")),
    }
}

/// How an array ended, in a line.
pub(super) fn outcomes(array: &ArrayDetails) -> String {
    format!("array {}: {}\n", array.array, words::states(&array.elements))
}

/// Whether all elements of an array succeeded.
pub(super) fn all_completed(array: &ArrayDetails) -> bool {
    array.elements.iter().all(|line| line.state == State::Completed)
}

/// The exit code of a job as in a shell. A job that was ended has not succeeded, whatever its code.
pub(super) fn exit_code(details: &JobDetails) -> u8 {
    let code = match details.end {
        Some(End::Exited(code)) => code as u8,
        Some(End::Signalled(signal)) => 128u8.saturating_add(signal as u8),
        Some(End::Failed(_)) => 127,
        Some(End::Lost) | None => 1,
    };
    if details.end_reason.is_some() { code.max(1) } else { code }
}
