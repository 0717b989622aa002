//! The single row of data that is not about a job.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::error::Fault;
use super::schema::STATE;
use super::seal::{identity, millis, sealed};
use super::{Batch, Stamp};
use busbar_core::units::Instant;

/// Data that is not about a job.
#[derive(Debug)]
pub(super) struct State {
    pub(super) next_number: u64,
    pub(super) next_line: u64,
    pub(super) budget: Option<String>,
    pub(super) last: Option<Stamp>,
}

impl State {
    /// Reads the row; in a new file, the initial values.
    pub(super) fn read(connection: &Connection) -> Result<Self, Fault> {
        let mut found = STATE.rows(connection, "", (), |row| {
            Ok(State {
                next_number: row.get(1)?,
                next_line: row.get(2)?,
                budget: row.get(3)?,
                last: Some(Stamp {
                    now: Instant::from_millis(row.get(4)?),
                    wall: row.get(5)?,
                    boot: row.get::<_, Option<String>>(6)?.unwrap_or_default(),
                    origin: row.get(7)?,
                }),
            })
        })?;
        Ok(found.pop().unwrap_or(State { next_number: 1, next_line: 1, budget: None, last: None }))
    }

    /// Applies a batch.
    pub(super) fn take(&mut self, batch: &Batch) {
        if let Some(budget) = &batch.budget {
            self.budget.clone_from(budget);
        }
        let (now, wall) = batch.now;
        let (boot, origin) = match (&batch.boot, self.last.take()) {
            (Some(boot), _) => (boot.id.clone(), boot.origin),
            (None, Some(last)) => (last.boot, last.origin),
            (None, None) => (String::new(), 0),
        };
        self.last = Some(Stamp { now, wall, boot, origin });
    }

    pub(super) fn write(self, connection: &Connection) -> Result<(), Fault> {
        let last = self.last.unwrap_or(Stamp {
            now: Instant::ZERO,
            wall: 0,
            boot: String::new(),
            origin: 0,
        });
        let row = sealed([
            Value::Integer(1),
            Value::Integer(identity(self.next_number)?),
            Value::Integer(identity(self.next_line)?),
            self.budget.into(),
            Value::Integer(millis(last.now)),
            Value::Integer(last.wall),
            Value::Text(last.boot),
            Value::Integer(last.origin),
        ]);
        if connection.execute(&STATE.update(), params_from_iter(&row))? == 0 {
            connection.execute(&STATE.insert(), params_from_iter(&row))?;
        }
        Ok(())
    }
}
