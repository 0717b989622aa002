//! What jobs took, summed by day, user and account. A sum is written with the end of its job, and stays when the job is
//! pruned, so that a year of energy costs a few thousand rows.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};

use super::error::Fault;
use super::read;
use super::schema::{JOB, USAGE};
use super::seal::sealed;
use crate::job::{Entry, Event, EventKind, Phase};
use busbar_core::units::{Joules, Span};

/// The most accounts of a user that are told apart on one day: users name their accounts as they like.
const MOST_ACCOUNTS: u32 = 100;

/// The account of those beyond.
const OTHERS: &str = "others";

/// For how many days sums are kept.
const KEPT_DAYS: i64 = 3 * 366;

const MICROJOULES: u128 = 1_000_000;

/// What some jobs took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// How many jobs ended.
    pub(crate) jobs: u64,
    /// Nodes times milliseconds.
    pub(crate) node_time: Span,
    /// The predicted energy.
    pub(crate) energy: Joules,
    /// How many of the jobs were measured.
    pub(crate) measured_jobs: u64,
    /// The measured energy of those.
    pub(crate) measured: Joules,
}

impl Sums {
    /// Adds other jobs.
    pub(crate) fn add(&mut self, other: &Sums) {
        self.jobs += other.jobs;
        self.node_time = self.node_time + other.node_time;
        self.energy += other.energy;
        self.measured_jobs += other.measured_jobs;
        self.measured += other.measured;
    }

    /// What a job took, if it is over.
    fn of(entry: &Entry) -> Option<Self> {
        let Phase::Over(outcome) = &entry.phase else { return None };
        let ran = outcome.start.map_or(Span::ZERO, |start| outcome.end.since(start));
        let nodes = outcome.nodes.len() as u64;
        Some(Sums {
            jobs: 1,
            node_time: Span::from_millis(ran.millis().saturating_mul(nodes)),
            energy: outcome.energy,
            ..Sums::default()
        })
    }
}

/// Whose jobs, on which day.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    day: i64,
    user: u32,
    account: String,
}

/// Sums that are to be added to those in the file.
#[derive(Default)]
pub(super) struct Additions(BTreeMap<Key, Sums>);

impl Additions {
    /// Adds a job that has just ended, at a time by the wall clock.
    pub(super) fn ended(&mut self, entry: &Entry, ended: Option<i64>) {
        if let (Some(sums), Some(ended)) = (Sums::of(entry), ended) {
            self.add(entry, ended, &sums);
        }
    }

    fn add(&mut self, entry: &Entry, at: i64, sums: &Sums) {
        let key = Key {
            day: day_of(at),
            user: entry.owner.user,
            account: entry.request.account.clone().unwrap_or_default(),
        };
        self.0.entry(key).or_default().add(sums);
    }

    /// Adds what jobs were measured to consume.
    pub(super) fn measured(
        &mut self,
        connection: &Connection,
        events: &[Event],
        wall: impl Fn(&Event) -> i64,
    ) -> Result<(), Fault> {
        for event in events {
            let EventKind::Consumed { job, energy, .. } = event.kind else { continue };
            let Ok(number) = i64::try_from(job) else { continue };
            let found = JOB.rows(connection, "WHERE number = ?1", (number,), read::job)?;
            let Some((entry, _)) = found.first() else { continue };
            let sums = Sums { measured_jobs: 1, measured: energy, ..Sums::default() };
            self.add(entry, wall(event), &sums);
        }
        Ok(())
    }

    pub(super) fn write(self, connection: &Connection) -> Result<(), Fault> {
        for (mut key, added) in self.0 {
            let before = match stored(connection, &key)? {
                None if !key.account.is_empty() && is_full(connection, &key)? => {
                    OTHERS.clone_into(&mut key.account);
                    stored(connection, &key)?
                }
                before => before,
            };
            let mut sums = before.unwrap_or_default();
            sums.add(&added);
            let row = row(&key, &sums);
            connection.execute(&USAGE.replace(), params_from_iter(row))?;
        }
        Ok(())
    }
}

/// Adds the jobs that ended before there were sums.
pub(super) fn begin(connection: &Connection) -> Result<(), Fault> {
    let mut additions = Additions::default();
    JOB.each(connection, "WHERE state = 'over'", (), |row| {
        let (entry, walls) = read::job(row)?;
        additions.ended(&entry, walls.end);
        Ok(true)
    })?;
    additions.write(connection)
}

/// The sums of a period, by user and account.
pub(super) fn read(
    connection: &Connection,
    first: i64,
    last: i64,
) -> Result<BTreeMap<(u32, String), Sums>, Fault> {
    let mut all = BTreeMap::new();
    USAGE.each(connection, "WHERE day BETWEEN ?1 AND ?2", (first, last), |row| {
        let sums: &mut Sums = all.entry((row.get(1)?, row.get(2)?)).or_default();
        sums.add(&sums_in(row)?);
        Ok(true)
    })?;
    Ok(all)
}

/// Removes sums that are older than they are kept: at most so many.
pub(super) fn prune(connection: &Connection, wall: i64, at_most: u32) -> Result<u32, Fault> {
    let before = day_of(wall) - KEPT_DAYS;
    let removed = connection.execute(
        "DELETE FROM usage WHERE (day, user, account) IN
            (SELECT day, user, account FROM usage WHERE day < ?1 LIMIT ?2)",
        params![before, at_most],
    )?;
    Ok(u32::try_from(removed).unwrap_or(u32::MAX))
}

/// The day of a time in milliseconds since 1970, in this machine's time zone, counted from 1970-01-01.
pub(super) fn day_of(wall: i64) -> i64 {
    let seconds = wall.div_euclid(1000);
    let ahead =
        Timestamp::from_second(seconds).map_or(0, |at| TimeZone::system().to_offset(at).seconds());
    seconds.saturating_add(ahead.into()).div_euclid(86_400)
}

fn stored(connection: &Connection, key: &Key) -> Result<Option<Sums>, Fault> {
    let which = "WHERE day = ?1 AND user = ?2 AND account = ?3";
    let parameters = params![key.day, key.user, key.account];
    Ok(USAGE.rows(connection, which, parameters, sums_in)?.pop())
}

/// Whether a user has as many accounts on a day as are told apart.
fn is_full(connection: &Connection, key: &Key) -> Result<bool, Fault> {
    let accounts: u32 = connection.query_row(
        "SELECT count(*) FROM usage WHERE day = ?1 AND user = ?2 AND account <> ''",
        params![key.day, key.user],
        |row| row.get(0),
    )?;
    Ok(accounts >= MOST_ACCOUNTS)
}

fn row(key: &Key, sums: &Sums) -> Vec<Value> {
    let count = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    let whole = |energy: Joules| {
        count(u64::try_from(energy.microjoules() / MICROJOULES).unwrap_or(u64::MAX))
    };
    let rest = |energy: Joules| count((energy.microjoules() % MICROJOULES) as u64);
    sealed([
        Value::Integer(key.day),
        Value::Integer(key.user.into()),
        Value::Text(key.account.clone()),
        count(sums.jobs),
        count(sums.node_time.millis()),
        whole(sums.energy),
        rest(sums.energy),
        count(sums.measured_jobs),
        whole(sums.measured),
        rest(sums.measured),
    ])
}

fn sums_in(row: &Row<'_>) -> Result<Sums, Fault> {
    let energy = |whole: usize| -> rusqlite::Result<Joules> {
        let (joules, microjoules): (u64, u64) = (row.get(whole)?, row.get(whole + 1)?);
        Ok(Joules::from_microjoules(u128::from(joules) * MICROJOULES + u128::from(microjoules)))
    };
    Ok(Sums {
        jobs: row.get(3)?,
        node_time: Span::from_millis(row.get(4)?),
        energy: energy(5)?,
        measured_jobs: row.get(7)?,
        measured: energy(8)?,
    })
}
