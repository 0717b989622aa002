//! Answers that need the database, prepared in a thread of their own so that the daemon's loop does not
//! wait.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use super::answers;
use super::job::{Entry, Phase};
use super::setup::Viewer;
use super::store::{Query, Reader, StoreError, StoredJob, WallTimes};
use super::wire::{ArrayDetails, HistoryLine, JobLine, Refusal, RefusalKind, Reply};
use busbar_core::units::Instant;

/// The number of lookups that may be queued.
const MOST_WAITING: usize = 32;

/// A question that needs the database.
pub(super) enum Lookup {
    /// A job that is over, or an array; `present` are the elements that are not over.
    Show { job: u64, viewer: Viewer, present: Vec<JobLine>, reply: Sender<Reply> },
    /// The history.
    History { query: Query, viewer: Viewer, reply: Sender<Reply> },
}

/// A thread that answers lookups one after another.
pub(super) struct LookupThread {
    lookups: SyncSender<Lookup>,
    thread: JoinHandle<()>,
}

impl LookupThread {
    pub(super) fn begin(reader: Reader) -> Self {
        let (lookups, inbox) = sync_channel(MOST_WAITING);
        LookupThread { lookups, thread: std::thread::spawn(move || work(&reader, &inbox)) }
    }

    /// Queues a lookup, or refuses it if too many are queued.
    pub(super) fn run(&self, lookup: Lookup) {
        if let Err(TrySendError::Full(lookup) | TrySendError::Disconnected(lookup)) =
            self.lookups.try_send(lookup)
        {
            let (Lookup::Show { reply, .. } | Lookup::History { reply, .. }) = lookup;
            let message = "too many such requests at the same time; try again".to_owned();
            // The client may be gone.
            let _ = reply.send(Reply::Error(Refusal { kind: RefusalKind::Busy, message }));
        }
    }

    /// Waits until all queued lookups are answered.
    pub(super) fn close(self) {
        drop(self.lookups);
        // A panic has been reported already.
        let _ = self.thread.join();
    }
}

fn work(reader: &Reader, inbox: &Receiver<Lookup>) {
    while let Ok(lookup) = inbox.recv() {
        let (answer, reply) = match lookup {
            Lookup::Show { job, viewer, present, reply } => {
                (show(reader, job, viewer, present), reply)
            }
            Lookup::History { query, viewer, reply } => {
                let lines = history(reader, query, viewer).map(Reply::History);
                (lines.unwrap_or_else(|error| unreadable(&error)), reply)
            }
        };
        // The client may be gone.
        let _ = reply.send(answer);
    }
}

/// Lines of the history as a viewer may see them.
fn history(reader: &Reader, query: Query, viewer: Viewer) -> Result<Vec<HistoryLine>, StoreError> {
    let mut lines = reader.history(query)?;
    for line in &mut lines {
        if !answers::is_private(&line.event.kind) {
            continue;
        }
        let owner = line.event.kind.job().map(|job| reader.owner(job)).transpose()?.flatten();
        // The owner of a job that was pruned is not known.
        if !owner.is_some_and(|owner| viewer.sees(owner)) {
            line.event.kind = answers::event_for_others(line.event.kind.clone());
        }
    }
    Ok(lines)
}

fn show(reader: &Reader, job: u64, viewer: Viewer, present: Vec<JobLine>) -> Reply {
    let answer = reader.job(job).and_then(|kept| match kept {
        Some(kept) => Ok(Some(details(kept, viewer))),
        None => array(reader, job, viewer, present),
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
fn array(
    reader: &Reader,
    array: u64,
    viewer: Viewer,
    present: Vec<JobLine>,
) -> Result<Option<Reply>, StoreError> {
    let mut lines: BTreeMap<u64, JobLine> = BTreeMap::new();
    for (entry, walls) in reader.elements(array)? {
        lines.insert(entry.number, answers::line_for(viewer, line(&entry, walls).0, &entry));
    }
    // The daemon's own lines are newer than those in the database.
    lines.extend(present.into_iter().map(|line| (line.job, line)));
    let elements: Vec<JobLine> = lines.into_values().collect();
    Ok((!elements.is_empty()).then_some(Reply::Array(ArrayDetails { array, elements })))
}

/// The details of a job that is over, as a viewer may see them.
fn details(kept: StoredJob, viewer: Viewer) -> Reply {
    let StoredJob { entry, program, walls } = kept;
    let (line, now, wall) = line(&entry, walls);
    Reply::Show(Box::new(answers::details(viewer, &entry, line, program, now, &wall)))
}

/// The line of a job that is over, the time of its end, and a conversion of its times to those
/// stored by the wall clock.
fn line(entry: &Entry, walls: WallTimes) -> (JobLine, Instant, impl Fn(Instant) -> i64 + use<>) {
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
