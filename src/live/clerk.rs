//! The clerk: answers what needs the file or takes long, in a thread of its own, so that the daemon's
//! loop does not wait for it.

use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use super::answers;
use super::forecast::Outlook;
use super::store::{Query, Reader};
use super::wire::{Question, Refusal, RefusalKind, Reply};

/// How many errands may wait.
const MOST_WAITING: usize = 32;

/// Something that takes a while.
pub(super) enum Errand {
    /// A job that is over.
    Show { job: u64, reply: Sender<Reply> },
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
            Errand::Show { job, reply } => (show(reader, job), reply),
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

fn show(reader: &Reader, job: u64) -> Reply {
    let kept = match reader.job(job) {
        Ok(Some(kept)) => kept,
        Ok(None) => {
            let message = format!("there is no job {job}");
            return Reply::Error(Refusal { kind: RefusalKind::Unknown, message });
        }
        Err(error) => return unreadable(&error),
    };
    let walls = kept.walls;
    let entry = &kept.entry;
    let (start, end) = match &entry.phase {
        super::job::Phase::Over(outcome) => (outcome.start, Some(outcome.end)),
        _ => (None, None),
    };
    // Each of its times as it was on the wall then.
    let wall = |at| {
        let millis = if Some(at) == end {
            walls.end
        } else if Some(at) == start {
            walls.start
        } else {
            None
        };
        millis.unwrap_or(walls.submit).div_euclid(1000)
    };
    let line = answers::line(entry, end.unwrap_or(entry.submit), &wall);
    let now = end.unwrap_or(entry.submit);
    Reply::Show(Box::new(answers::details(entry, line, kept.program, now, &wall)))
}

fn unreadable(error: &dyn std::error::Error) -> Reply {
    let message = format!("the file cannot be read: {error}");
    Reply::Error(Refusal { kind: RefusalKind::Unwritten, message })
}
