//! Waiting for a job's end. A daemon that is started again meanwhile is waited for, too: jobs run on
//! without it.

use std::thread::sleep;
use std::time::{Duration, Instant as Clock};

use super::again::may_come_back;
use super::users::Users;
use super::{Daemon, unexpected, words};
use crate::live::End;
use crate::live::wire::{JobDetails, Reply, Request};

/// Between two questions: first and last.
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// How long a daemon may be away.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks about a job, less and less often, until it is over.
pub(super) fn until_over(daemon: &Daemon, job: u64) -> anyhow::Result<JobDetails> {
    let mut pause = SHORTEST;
    let mut heard = Clock::now();
    loop {
        match daemon.ask(&Request::Show { job }) {
            Ok(Reply::Show(details)) if words::is_over(details.line.state) => return Ok(*details),
            Ok(Reply::Show(_)) => heard = Clock::now(),
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
    let why = details.why.map(|why| words::why(why).to_owned()).filter(|why| why != state);
    let by = details.by.map(|user| format!("by {}", Users::of_this_machine().name(user)));
    let reasons: Vec<String> = why.into_iter().chain(by).chain(end).collect();
    let job = details.line.job;
    match reasons.is_empty() {
        true => format!("job {job} {state}\n"),
        false => format!("job {job} {state}: {}\n", reasons.join(", ")),
    }
}

/// The exit code of a job, as a shell would have it. One that did not end by itself has not ended well,
/// whatever it says.
pub(super) fn exit_code(details: &JobDetails) -> u8 {
    let code = match details.end {
        Some(End::Exited(code)) => code as u8,
        Some(End::Signalled(signal)) => 128u8.saturating_add(signal as u8),
        Some(End::Failed(_)) => 127,
        Some(End::Lost) | None => 1,
    };
    if details.why.is_some() { code.max(1) } else { code }
}
