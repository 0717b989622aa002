//! Queries. Nothing here writes.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Row};
use serde::de::DeserializeOwned;

use super::connection::connect_to_read;
use super::error::Fault;
use super::schema::{EVENT, JOB, PROGRAM};
use super::state::State;
use super::{PAST_JOBS, Query, Saved, StoreError, StoredJob, WallTimes, budgets, nodes};
use crate::job::{Element, Entry, JobOutcome, Owner, Phase, Program};
use crate::wire::HistoryLine;

/// The database, opened for reading. It can be sent to another thread.
#[derive(Debug)]
pub struct Reader {
    pub(super) path: PathBuf,
    pub(super) connection: Connection,
}

impl Reader {
    /// Opens the database at a path, which a daemon may write to meanwhile.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = connect_to_read(path).map_err(|source| Fault::Sqlite(source).at(path))?;
        Ok(Reader { path: path.to_owned(), connection })
    }

    /// Reads the last jobs that ran and are over, at most so many, in the order of their submission.
    pub fn finished(&self, most: usize) -> Result<Vec<(Entry, WallTimes)>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let which = "WHERE state = 'over' AND start_ms IS NOT NULL ORDER BY number DESC LIMIT ?1";
        let found = JOB.rows(&self.connection, which, (most,), job);
        let mut finished = found.map_err(|fault| fault.at(&self.path))?;
        finished.reverse();
        Ok(finished)
    }

    /// Reads all jobs that ran and are over, in the order of their submission.
    pub(crate) fn all_finished(&self) -> Result<Vec<Entry>, StoreError> {
        let which = "WHERE state = 'over' AND start_ms IS NOT NULL ORDER BY number";
        let found = JOB.rows(&self.connection, which, (), |row| Ok(job(row)?.0));
        found.map_err(|fault| fault.at(&self.path))
    }

    /// Reads the state that a daemon starts from.
    pub fn load(&self) -> Result<Saved, StoreError> {
        load(&self.connection).map_err(|fault| fault.at(&self.path))
    }

    /// Reads a job, whether or not it is over.
    pub(crate) fn job(&self, number: u64) -> Result<Option<StoredJob>, StoreError> {
        let Some((entry, walls)) = self.entry(number)? else {
            return Ok(None);
        };
        // Programs never change. If there is none, the job was removed in between.
        Ok(self.program(number)?.map(|program| StoredJob { entry, program, walls }))
    }

    /// Reads the program of a job. Elements of an array share that of the first one.
    pub(crate) fn program(&self, number: u64) -> Result<Option<Program>, StoreError> {
        if let Some(program) = self.own_program(number)? {
            return Ok(Some(program));
        }
        let first = match self.entry(number)? {
            Some((Entry { array: Some(element), .. }, _)) => Element::first(element.array),
            _ => return Ok(None),
        };
        if first == number { Ok(None) } else { self.own_program(first) }
    }

    fn own_program(&self, number: u64) -> Result<Option<Program>, StoreError> {
        let Ok(number) = i64::try_from(number) else {
            return Ok(None);
        };
        let found = PROGRAM.rows(&self.connection, "WHERE job = ?1", (number,), |row| {
            understood(row, 1, || format!("the program of job {number}"))
        });
        Ok(found.map_err(|fault| fault.at(&self.path))?.pop())
    }

    /// How a job ended; `None` if it is not over, or not known.
    pub(crate) fn outcome(&self, number: u64) -> Result<Option<JobOutcome>, StoreError> {
        Ok(match self.entry(number)? {
            Some((Entry { phase: Phase::Over(outcome), .. }, _)) => Some(outcome),
            _ => None,
        })
    }

    /// Whether a job succeeded, or for an array whether all of its elements that are over did;
    /// `None` if nothing is over, or not known.
    pub(crate) fn succeeded(&self, number: u64) -> Result<Option<bool>, StoreError> {
        if let Some(outcome) = self.outcome(number)? {
            return Ok(Some(outcome.succeeded()));
        }
        let over = self.elements(number)?.into_iter().filter_map(|(entry, _)| match entry.phase {
            Phase::Over(outcome) => Some(outcome.succeeded()),
            _ => None,
        });
        Ok(over.reduce(|one, other| one && other))
    }

    /// The stored elements of an array in order; none if there is no such array.
    pub(crate) fn elements(&self, array: u64) -> Result<Vec<(Entry, WallTimes)>, StoreError> {
        let Some((first, last)) = self.numbers(array)? else { return Ok(Vec::new()) };
        let which = "WHERE number BETWEEN ?1 AND ?2 ORDER BY number";
        let found = JOB.rows(&self.connection, which, (first, last), job);
        found.map_err(|fault| fault.at(&self.path))
    }

    /// The first and the last number of an array's elements, if any is stored.
    pub(super) fn numbers(&self, array: u64) -> Result<Option<(i64, i64)>, StoreError> {
        let Ok(number) = i64::try_from(array) else { return Ok(None) };
        // The next job is an element of the array, unless it has none.
        let which = "WHERE number > ?1 ORDER BY number LIMIT 1";
        let found = JOB.rows(&self.connection, which, (number,), job);
        let next = found.map_err(|fault| fault.at(&self.path))?.pop();
        let element = next.and_then(|(entry, _)| entry.array).filter(|next| next.array == array);
        let last = element.and_then(|element| i64::try_from(element.numbers().end - 1).ok());
        Ok(last.map(|last| (number.saturating_add(1), last)))
    }

    /// The owner of a job, whether or not it is over.
    pub(crate) fn owner(&self, number: u64) -> Result<Option<Owner>, StoreError> {
        Ok(self.entry(number)?.map(|(entry, _)| entry.owner))
    }

    /// Lines of the history, in order.
    pub fn history(&self, query: Query) -> Result<Vec<HistoryLine>, StoreError> {
        let jobs = match query.job {
            Some(job) => self.numbers(job)?,
            None => None,
        };
        history(&self.connection, query, jobs).map_err(|fault| fault.at(&self.path))
    }

    fn entry(&self, number: u64) -> Result<Option<(Entry, WallTimes)>, StoreError> {
        let Ok(number) = i64::try_from(number) else {
            return Ok(None);
        };
        let found = JOB.rows(&self.connection, "WHERE number = ?1", (number,), job);
        Ok(found.map_err(|fault| fault.at(&self.path))?.pop())
    }
}

fn load(connection: &Connection) -> Result<Saved, Fault> {
    // All queries see the same state.
    let _moment = connection.unchecked_transaction()?;
    let jobs = JOB.rows(connection, "WHERE state <> 'over' ORDER BY number", (), job)?;
    let (jobs, walls): (Vec<Entry>, _) = jobs.into_iter().unzip();
    let program_bytes = program_bytes(connection, &jobs)?;
    let which = format!("WHERE state = 'over' ORDER BY number DESC LIMIT {PAST_JOBS}");
    let past = JOB.rows(connection, &which, (), job)?;
    let mut past: Vec<Entry> = past.into_iter().map(|(entry, _)| entry).collect();
    past.sort_by_key(|entry| (entry.end(), entry.number));
    let State { next_number, budget, last, .. } = State::read(connection)?;
    let nodes = nodes::read(connection)?;
    let (part_budgets, next) = (budgets::read(connection)?, next_number);
    Ok(Saved { jobs, walls, program_bytes, next, nodes, budget, part_budgets, last, past })
}

/// The size of each job's program, without reading it. Elements of an array share that of the first
/// one.
fn program_bytes(connection: &Connection, jobs: &[Entry]) -> Result<Vec<u64>, Fault> {
    let mut statement =
        connection.prepare("SELECT octet_length(program) FROM program WHERE job = ?1")?;
    let mut bytes = |number: u64| -> Result<Option<u64>, Fault> {
        let Ok(number) = i64::try_from(number) else { return Ok(None) };
        Ok(statement.query_row((number,), |row| row.get(0)).optional()?)
    };
    let mut of_job = |job: &Entry| match (bytes(job.number)?, job.array) {
        (None, Some(element)) => bytes(Element::first(element.array)),
        (own, _) => Ok(own),
    };
    jobs.iter().map(|job| Ok(of_job(job)?.unwrap_or_default())).collect()
}

/// Lines of the history; `elements` are the numbers of the jobs if an array is asked for.
fn history(
    connection: &Connection,
    query: Query,
    elements: Option<(i64, i64)>,
) -> Result<Vec<HistoryLine>, Fault> {
    let Query { job, after, limit } = query;
    let (Ok(job), Ok(after)) =
        (job.map(i64::try_from).transpose(), after.map(i64::try_from).transpose())
    else {
        // There are no such jobs and no such lines.
        return Ok(Vec::new());
    };
    let of_whom = match (job, elements) {
        (_, Some((first, last))) => format!("?1 > 0 AND job BETWEEN {first} AND {last}"),
        (Some(_), None) => "job = ?1".to_owned(),
        (None, None) => "?1 IS NULL".to_owned(),
    };
    let which = match after {
        Some(_) => format!("WHERE {of_whom} AND line > ?2 ORDER BY line LIMIT ?3"),
        None => format!("WHERE {of_whom} AND ?2 IS NULL ORDER BY line DESC LIMIT ?3"),
    };
    let mut lines = EVENT.rows(connection, &which, (job, after, limit), |row| {
        let line: u64 = row.get(0)?;
        let event = understood(row, 4, || format!("line {line} of the history"))?;
        Ok(HistoryLine { line, wall: row.get(2)?, event, by_name: None })
    })?;
    if after.is_none() {
        lines.reverse();
    }
    Ok(lines)
}

/// A job, with its times by the wall clock.
pub(super) fn job(row: &Row<'_>) -> Result<(Entry, WallTimes), Fault> {
    let number: i64 = row.get(0)?;
    let entry = understood(row, 10, || format!("job {number}"))?;
    Ok((entry, walls(row)?))
}

/// The times of a job by the wall clock.
pub(super) fn walls(row: &Row<'_>) -> rusqlite::Result<WallTimes> {
    Ok(WallTimes { submit: row.get(7)?, start: row.get(8)?, end: row.get(9)? })
}

/// Reads a column of JSON.
pub(super) fn understood<T: DeserializeOwned>(
    row: &Row<'_>,
    column: usize,
    what: impl Fn() -> String,
) -> Result<T, Fault> {
    let damaged = |error: &dyn std::fmt::Display| {
        Fault::Damaged(format!("{} cannot be read: {error}", what()))
    };
    let text = row.get_ref(column)?.as_str().map_err(|error| damaged(&error))?;
    serde_json::from_str(text).map_err(|error| damaged(&error))
}
