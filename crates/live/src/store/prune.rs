//! Removes jobs that have been over for long, with their events, and sums of what jobs took years ago.

use rusqlite::{Connection, Statement, TransactionBehavior, params};

use super::error::Fault;
use super::seal::millis;
use super::state::State;
use super::usage;
use busbar_core::units::Instant;

/// Removes data from before a time: at most `at_most` rows.
pub(super) fn prune(
    connection: &mut Connection,
    before: Instant,
    at_most: u32,
) -> Result<u32, Fault> {
    let before = millis(before);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut room = Room(at_most);
    room.delete(
        &mut transaction.prepare(
            "DELETE FROM event WHERE line IN
                (SELECT line FROM event WHERE job IS NULL AND at_ms < ?1 ORDER BY line LIMIT ?2)",
        )?,
        before,
    )?;
    let jobs: Vec<i64> = transaction
        .prepare(
            "SELECT number FROM job
             WHERE state = 'over' AND end_ms < ?1 AND NOT EXISTS
                (SELECT 1 FROM dependency JOIN job AS other ON other.number = dependency.job
                 WHERE dependency.needs = job.number AND (other.state <> 'over'
                    -- An element of an array has its program from the first one.
                    OR other.end_ms >= ?1 AND NOT EXISTS
                        (SELECT 1 FROM program WHERE program.job = other.number)))
             ORDER BY end_ms, number LIMIT ?2",
        )?
        .query_map(params![before, room.0], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut events = transaction.prepare(
        "DELETE FROM event WHERE line IN
            (SELECT line FROM event WHERE job = ?1 ORDER BY line LIMIT ?2)",
    )?;
    let mut whole = transaction.prepare(
        "DELETE FROM job WHERE number IN (SELECT number FROM job WHERE number = ?1 LIMIT ?2)",
    )?;
    for job in jobs {
        // A job may have many events; it is removed with its program when they are gone.
        room.delete(&mut events, job)?;
        room.delete(&mut whole, job)?;
    }
    drop((events, whole));
    if let Some(last) = State::read(&transaction)?.last {
        let removed = usage::prune(&transaction, last.wall, room.0)?;
        room.0 = room.0.saturating_sub(removed);
    }
    transaction.commit()?;
    Ok(at_most - room.0)
}

/// The number of rows that may still be removed.
struct Room(u32);

impl Room {
    /// Removes rows selected by a number, within the limit.
    fn delete(&mut self, statement: &mut Statement<'_>, number: i64) -> Result<(), Fault> {
        if self.0 > 0 {
            let removed = statement.execute(params![number, self.0])?;
            self.0 = self.0.saturating_sub(u32::try_from(removed).unwrap_or(u32::MAX));
        }
        Ok(())
    }
}
