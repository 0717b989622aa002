//! Answers that need the database, prepared in a thread of their own so that the daemon's loop does not
//! wait. None of them reads more than a bounded number of rows.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use jiff::Timestamp;

use super::answers;
use super::setup::Viewer;
use crate::job::{Entry, Phase};
use crate::store::{Ended, Query, Reader, Store, StoreError, StoredJob, Sums, WallTimes};
use crate::wire::finished::{
    By, Finished, FinishedJob, FinishedQuery, MOST_DAYS, MOST_JOBS, Usage, UsageQuery, UsageSum,
};
use crate::wire::{ArrayDetails, HistoryLine, JobLine, Refusal, RefusalKind, Reply, ReplyTo};
use busbar_core::units::Instant;

/// The number of lookups that may be queued.
const MOST_WAITING: usize = 32;

/// The number of finished jobs that are looked at for one answer.
const MOST_LOOKED_AT: u32 = 4000;

/// The number of finished jobs in an answer by default.
const USUAL_JOBS: u32 = 100;

/// A question that needs the database, and who gets the answer.
pub(super) struct Lookup {
    pub(super) question: Question,
    pub(super) viewer: Viewer,
    pub(super) reply: ReplyTo,
}

/// A question that needs the database.
pub(super) enum Question {
    /// A job that is over, or an array; `present` are the elements that are not over.
    Show { job: u64, present: Vec<JobLine> },
    /// The history.
    History(Query),
    /// Jobs that are over.
    Finished(FinishedQuery),
    /// The energy of finished jobs.
    Usage(UsageQuery),
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
            let message = "too many such requests at the same time; try again".to_owned();
            // The client may be gone.
            let _ = lookup.reply.send(Reply::Error(Refusal { kind: RefusalKind::Busy, message }));
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
    while let Ok(Lookup { question, viewer, reply }) = inbox.recv() {
        let answer = match question {
            Question::Show { job, present } => Ok(show(reader, job, viewer, present)),
            Question::History(query) => history(reader, query, viewer).map(Reply::History),
            Question::Finished(query) => finished(reader, &query, viewer).map(Reply::Finished),
            Question::Usage(query) => usage(reader, query, viewer),
        };
        // The client may be gone.
        let _ = reply.send(answer.unwrap_or_else(|error| unreadable(&error)));
    }
}

/// Jobs that are over, as a viewer may see them.
fn finished(
    reader: &Reader,
    query: &FinishedQuery,
    viewer: Viewer,
) -> Result<Finished, StoreError> {
    let most = query.limit.unwrap_or(USUAL_JOBS).clamp(1, MOST_JOBS) as usize;
    let millis = |seconds: i64| seconds.saturating_mul(1000);
    let which = Ended {
        user: query.user,
        since: query.since.map(millis),
        until: query.until.map(millis),
        job: query.job,
        before: query.before,
        most: MOST_LOOKED_AT,
    };
    let mut jobs: Vec<FinishedJob> = Vec::new();
    let next = reader.ended(&which, |entry, walls| {
        // What a viewer may not see is not found either: an account that is guessed right would be told.
        let is_wanted = |job: &FinishedJob| {
            (query.states.is_empty() || query.states.contains(&job.state))
                && (query.account.is_none() || query.account == job.account)
        };
        jobs.extend(answers::finished(viewer, &entry, walls).filter(is_wanted));
        jobs.len() < most
    })?;
    for job in &mut jobs {
        if let Some((energy, emulated)) = reader.consumed(job.job)? {
            (job.measured, job.emulated) = (Some(energy), emulated);
        }
    }
    Ok(Finished { jobs, next })
}

/// What jobs took, as a viewer may see it: energy by user is what lists of jobs tell anybody, accounts are told to their
/// users.
fn usage(reader: &Reader, query: UsageQuery, viewer: Viewer) -> Result<Reply, StoreError> {
    let refused = |kind, message: &str| Ok(Reply::Error(Refusal::new(kind, message)));
    if query.by == By::Account && viewer.is_nobody() {
        let message =
            "accounts are visible to users only; use a token with the role user or operator";
        return refused(RefusalKind::Forbidden, message);
    }
    let day = |seconds: i64| Store::day_of(seconds.saturating_mul(1000));
    let now = Timestamp::now().as_second();
    let last = day(query.until.unwrap_or(now));
    let first = query.since.map_or(last - 29, day);
    if last < first || last - first >= MOST_DAYS {
        let message = format!(
            "a period has 1 to {MOST_DAYS} days, and its last day is not before its first; ask for another period"
        );
        return refused(RefusalKind::Malformed, &message);
    }
    let mut sums: BTreeMap<(Option<u32>, Option<String>), Sums> = BTreeMap::new();
    for ((user, account), taken) in reader.usage(first, last)? {
        let key = match query.by {
            By::User => (Some(user), None),
            By::Account if !viewer.sees_user(user) => continue,
            By::Account => (None, Some(account).filter(|account| !account.is_empty())),
        };
        sums.entry(key).or_default().add(&taken);
    }
    let sum = |((user, account), sums): ((Option<u32>, Option<String>), Sums)| UsageSum {
        user,
        user_name: None,
        account,
        jobs: sums.jobs,
        node_time: sums.node_time,
        energy: sums.energy,
        measured_jobs: sums.measured_jobs,
        measured: sums.measured,
    };
    let mut sums: Vec<UsageSum> = sums.into_iter().map(sum).collect();
    // The order of users and accounts stays among equals.
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.energy));
    Ok(Reply::Usage(Usage { first_day: date(first), last_day: date(last), sums }))
}

/// The date of a day that is counted from 1970-01-01.
fn date(day: i64) -> String {
    let noon = day.saturating_mul(86_400).saturating_add(43_200);
    let at = Timestamp::from_second(noon).ok();
    at.map_or_else(|| day.to_string(), |at| at.strftime("%Y-%m-%d").to_string())
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
