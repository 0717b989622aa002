//! Lists of jobs that are over, in parts of a bounded size.

use std::collections::BTreeMap;

use super::error::Fault;
use super::read;
use super::schema::{EVENT, JOB};
use super::usage::{self, Sums};
use super::{Reader, StoreError, WallTimes};
use crate::job::{Entry, Event, EventKind};
use crate::wire::finished::Place;
use busbar_core::units::Joules;

/// How many of a job's last events may hold what it was measured to consume.
const LAST_EVENTS: u32 = 8;

/// Which jobs are looked at, the latest first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ended {
    /// Only jobs of this user.
    pub(crate) user: Option<u32>,
    /// Only jobs that ended at this time or later, in milliseconds since 1970.
    pub(crate) since: Option<i64>,
    /// Only jobs that ended before this time, in milliseconds since 1970.
    pub(crate) until: Option<i64>,
    /// Only this job, or the elements of this array.
    pub(crate) job: Option<u64>,
    /// Only jobs that come after this place.
    pub(crate) before: Option<Place>,
    /// The largest number of jobs that are looked at.
    pub(crate) most: u32,
}

impl Reader {
    /// Looks at jobs that are over, the latest first, until `take` says that it has enough. Returns where to go on,
    /// unless there are no more.
    pub(crate) fn ended(
        &self,
        which: &Ended,
        take: impl FnMut(Entry, WallTimes) -> bool,
    ) -> Result<Option<Place>, StoreError> {
        let numbers = match which.job {
            Some(job) => self.numbers(job)?.or(i64::try_from(job).ok().map(|job| (job, job))),
            None => None,
        };
        if which.job.is_some() && numbers.is_none() {
            return Ok(None);
        }
        ended(self, which, numbers, take).map_err(|fault| fault.at(&self.path))
    }

    /// What a job was measured to consume, and whether an emulator made some of it up.
    pub(crate) fn consumed(&self, job: u64) -> Result<Option<(Joules, bool)>, StoreError> {
        let Ok(job) = i64::try_from(job) else { return Ok(None) };
        let which = format!("WHERE job = ?1 ORDER BY line DESC LIMIT {LAST_EVENTS}");
        let found = EVENT.rows(&self.connection, &which, (job,), |row| {
            read::understood::<Event>(row, 4, || format!("an event of job {job}"))
        });
        let found = found.map_err(|fault| fault.at(&self.path))?;
        Ok(found.into_iter().find_map(|event| match event.kind {
            EventKind::Consumed { energy, emulated, .. } => Some((energy, emulated)),
            _ => None,
        }))
    }

    /// What jobs took that ended from one day to another, by user and account. Days are counted from 1970-01-01.
    pub(crate) fn usage(
        &self,
        first: i64,
        last: i64,
    ) -> Result<BTreeMap<(u32, String), Sums>, StoreError> {
        usage::read(&self.connection, first, last).map_err(|fault| fault.at(&self.path))
    }
}

fn ended(
    reader: &Reader,
    which: &Ended,
    numbers: Option<(i64, i64)>,
    mut take: impl FnMut(Entry, WallTimes) -> bool,
) -> Result<Option<Place>, Fault> {
    let mut conditions = vec!["state = 'over'".to_owned()];
    let mut parameters: Vec<i64> = Vec::new();
    let mut must = |condition: &str, values: &[i64]| {
        conditions.push(condition.to_owned());
        parameters.extend(values);
    };
    if let Some(user) = which.user {
        must("user = ?", &[user.into()]);
    }
    if let Some(since) = which.since {
        must("end_wall_ms >= ?", &[since]);
    }
    if let Some(until) = which.until {
        must("end_wall_ms < ?", &[until]);
    }
    if let Some((first, last)) = numbers {
        must("number BETWEEN ? AND ?", &[first, last]);
    }
    if let Some(Place { ended, job }) = which.before {
        let job = i64::try_from(job).unwrap_or(i64::MAX);
        must("(end_wall_ms, number) < (?, ?)", &[ended, job]);
    }
    parameters.push(which.most.into());
    // Named, so that no more rows are read than are looked at. Of an array, all elements are read and sorted.
    let index = match (numbers, which.user) {
        (Some(_), _) => "NOT INDEXED",
        (None, Some(_)) => "INDEXED BY job_ended_user",
        (None, None) => "INDEXED BY job_ended",
    };
    let which_rows = format!(
        "{index} WHERE {} ORDER BY end_wall_ms DESC, number DESC LIMIT ?",
        conditions.join(" AND ")
    );
    let (mut looked_at, mut next, mut has_enough) = (0, None, false);
    let parameters = rusqlite::params_from_iter(parameters);
    JOB.each(&reader.connection, &which_rows, parameters, |row| {
        let (entry, walls) = read::job(row)?;
        looked_at += 1;
        next = walls.end.map(|ended| Place { ended, job: entry.number });
        has_enough = !take(entry, walls);
        Ok(!has_enough)
    })?;
    Ok(next.filter(|_| has_enough || looked_at == which.most))
}
