//! The clerk: answers what needs the file or takes long, in a thread of its own, so that the daemon's
//! loop does not wait for it.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use super::answers;
use super::forecast::Outlook;
use super::job::{Entry, Phase};
use super::store::{Kept, Query, Reader, StoreError, Walls};
use super::wire::{ArrayDetails, JobLine, Question, Refusal, RefusalKind, Reply};
use crate::units::Instant;

/// How many errands may wait.
const MOST_WAITING: usize = 32;

/// Something that takes a while.
pub(super) enum Errand {
    /// A job that is over, or an array: of whose elements these are present, and others may be over.
    Show { job: u64, present: Vec<JobLine>, reply: Sender<Reply> },
    /// What happened.
    History { query: Query, reply: Sender<Reply> },
    /// What will happen.
    Forecast { outlook: Box<Outlook>, question: Box<Question>, reply: Sender<Reply> },
}

/// A thread that runs errands one after another.
pub(super) struct Clerk {
    errands: SyncSender<Errand>,
    thread: JoinHandle<()>,
}

impl Clerk {
    pub(super) fn begin(reader: Reader) -> Self {
        let (errands, inbox) = sync_channel(MOST_WAITING);
        Clerk { errands, thread: std::thread::spawn(move || work(&reader, &inbox)) }
    }

    /// Has it done some time, or refuses if there is too much to do.
    pub(super) fn run(&self, errand: Errand) {
        if let Err(TrySendError::Full(errand) | TrySendError::Disconnected(errand)) =
            self.errands.try_send(errand)
        {
            let (Errand::Show { reply, .. }
            | Errand::History { reply, .. }
            | Errand::Forecast { reply, .. }) = errand;
            let message = "too many ask for such things at the same time; try again".to_owned();
            // Who does not wait for the answer need not get it.
            let _ = reply.send(Reply::Error(Refusal { kind: RefusalKind::Busy, message }));
        }
    }

    /// Waits until it has done what it was given.
    pub(super) fn close(self) {
        drop(self.errands);
        // What made it end otherwise has been said.
        let _ = self.thread.join();
    }
}

fn work(reader: &Reader, inbox: &Receiver<Errand>) {
    while let Ok(errand) = inbox.recv() {
        let (answer, reply) = match errand {
            Errand::Show { job, present, reply } => (show(reader, job, present), reply),
            Errand::History { query, reply } => {
                let lines = reader.history(query).map(Reply::History);
                (lines.unwrap_or_else(|error| unreadable(&error)), reply)
            }
            Errand::Forecast { outlook, question, reply } => {
                let forecast = outlook.forecast(&question);
                (forecast.map_or_else(Reply::Error, Reply::Forecast), reply)
            }
        };
        // Who does not wait for the answer need not get it.
        let _ = reply.send(answer);
    }
}

fn show(reader: &Reader, job: u64, present: Vec<JobLine>) -> Reply {
    let answer = reader.job(job).and_then(|kept| match kept {
        Some(kept) => Ok(Some(details(kept))),
        None => array(reader, job, present),
    });
    answer.map_or_else(
        |error| unreadable(&error),
        |answer| {
            answer.unwrap_or_else(|| {
                let message = format!("there is no job {job}");
                Reply::Error(Refusal { kind: RefusalKind::Unknown, message })
            })
        },
    )
}

/// An array, if there is one with this number.
fn array(reader: &Reader, array: u64, present: Vec<JobLine>) -> Result<Option<Reply>, StoreError> {
    let mut lines: BTreeMap<u64, JobLine> = BTreeMap::new();
    for (entry, walls) in reader.elements(array)? {
        lines.insert(entry.number, line(&entry, walls).0);
    }
    // What is known of them here is newer.
    lines.extend(present.into_iter().map(|line| (line.job, line)));
    let elements: Vec<JobLine> = lines.into_values().collect();
    Ok((!elements.is_empty()).then_some(Reply::Array(ArrayDetails { array, elements })))
}

/// All that is known of a job that is over.
fn details(kept: Kept) -> Reply {
    let Kept { entry, program, walls } = kept;
    let (line, now, wall) = line(&entry, walls);
    Reply::Show(Box::new(answers::details(&entry, line, program, now, &wall)))
}

/// What a list says of a job that is over, when that was, and each of its times as it was on the wall then.
fn line(entry: &Entry, walls: Walls) -> (JobLine, Instant, impl Fn(Instant) -> i64 + use<>) {
    let (start, end) = match &entry.phase {
        Phase::Over(outcome) => (outcome.start, Some(outcome.end)),
        _ => (None, None),
    };
    let now = end.unwrap_or(entry.submit);
    let wall = move |at| {
        let millis = if Some(at) == end {
            walls.end
        } else if Some(at) == start {
            walls.start
        } else {
            None
        };
        millis.unwrap_or(walls.submit).div_euclid(1000)
    };
    (answers::line(entry, now, &wall), now, wall)
}

fn unreadable(error: &dyn std::error::Error) -> Reply {
    let message = format!("the file cannot be read: {error}");
    Reply::Error(Refusal { kind: RefusalKind::Unwritten, message })
}
