//! The tables, and how a database is known to have them.

use rusqlite::{Connection, Params, Row};

use super::error::Fault;
use super::seal;

/// The SQLite application ID that marks the state of a daemon: 'Busd'.
pub(super) const MARK: i32 = 0x4275_7364;

/// The version that this program writes.
pub(super) const VERSION: i32 = 4;

/// A table whose rows are sealed.
pub(super) struct Table {
    name: &'static str,
    /// The columns that are sealed, in order.
    sealed: &'static [&'static str],
}

/// The single row of data that is not about a job.
pub(super) const STATE: Table = Table {
    name: "state",
    sealed: &[
        "only",
        "next_number",
        "next_line",
        "budget",
        "now_ms",
        "wall_ms",
        "boot",
        "origin_ms",
    ],
};
/// Jobs.
pub(super) const JOB: Table = Table {
    name: "job",
    sealed: &[
        "number",
        "user",
        "name",
        "state",
        "submit_ms",
        "start_ms",
        "end_ms",
        "submit_wall_ms",
        "start_wall_ms",
        "end_wall_ms",
        "entry",
    ],
};
/// The programs of jobs.
pub(super) const PROGRAM: Table = Table { name: "program", sealed: &["job", "program"] };
/// The history.
pub(super) const EVENT: Table =
    Table { name: "event", sealed: &["line", "at_ms", "wall_ms", "job", "event"] };
/// Nodes that are not on.
pub(super) const NODE: Table = Table { name: "node", sealed: &["node", "state"] };

/// Limits that operators have set of parts of the machine.
pub(super) const PART_BUDGET: Table =
    Table { name: "part_budget", sealed: &["kind", "name", "budget"] };

/// Sums of what jobs took.
pub(super) const USAGE: Table = Table {
    name: "usage",
    sealed: &[
        "day",
        "user",
        "account",
        "jobs",
        "node_ms",
        "energy_j",
        "energy_uj",
        "measured_jobs",
        "measured_j",
        "measured_uj",
    ],
};

/// All tables whose rows are sealed.
pub(super) const TABLES: [Table; 7] = [STATE, JOB, PROGRAM, EVENT, NODE, USAGE, PART_BUDGET];

impl Table {
    /// A query for rows: the sealed columns, then the seal.
    pub(super) fn question(&self, which: &str) -> String {
        format!("SELECT {}, seal FROM {} {which}", self.sealed.join(", "), self.name)
    }

    /// An error if a row is not as it was written.
    pub(super) fn check(&self, row: &Row<'_>) -> Result<(), Fault> {
        seal::check(row, self.sealed.len(), self.name)
    }

    /// Reads rows, and checks their seals.
    pub(super) fn rows<T>(
        &self,
        connection: &Connection,
        which: &str,
        parameters: impl Params,
        mut read: impl FnMut(&Row<'_>) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let mut answer = Vec::new();
        self.each(connection, which, parameters, |row| {
            answer.push(read(row)?);
            Ok(true)
        })?;
        Ok(answer)
    }

    /// Reads rows one by one, and checks their seals, until `read` says that it has enough.
    pub(super) fn each(
        &self,
        connection: &Connection,
        which: &str,
        parameters: impl Params,
        mut read: impl FnMut(&Row<'_>) -> Result<bool, Fault>,
    ) -> Result<(), Fault> {
        let mut statement = connection.prepare(&self.question(which))?;
        let mut rows = statement.query(parameters)?;
        while let Some(row) = rows.next()? {
            self.check(row)?;
            if !read(row)? {
                break;
            }
        }
        Ok(())
    }

    /// A statement that inserts a row: the sealed columns, then the seal.
    pub(super) fn insert(&self) -> String {
        let (columns, places) = self.columns_and_places();
        format!("INSERT INTO {} ({columns}) VALUES ({places})", self.name)
    }

    /// A statement that inserts a row in place of one with the same key.
    pub(super) fn replace(&self) -> String {
        let (columns, places) = self.columns_and_places();
        format!("INSERT OR REPLACE INTO {} ({columns}) VALUES ({places})", self.name)
    }

    /// A statement that updates a row, selected by its first column.
    pub(super) fn update(&self) -> String {
        let (columns, places) = self.columns_and_places();
        format!("UPDATE {} SET ({columns}) = ({places}) WHERE {} = ?1", self.name, self.sealed[0])
    }

    fn columns_and_places(&self) -> (String, String) {
        let places: Vec<String> =
            (1..=self.sealed.len() + 1).map(|place| format!("?{place}")).collect();
        (format!("{}, seal", self.sealed.join(", ")), places.join(", "))
    }
}

/// The kind of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The state of a daemon, with tables of this version.
    State { version: i32 },
    /// A database of another program.
    Foreign,
}

impl Kind {
    pub(super) fn of(connection: &Connection) -> rusqlite::Result<Self> {
        let number =
            |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
        Ok(match (number("application_id")?, number("user_version")?) {
            (MARK, version) if version > 0 => Kind::State { version },
            _ => Kind::Foreign,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_without_our_mark_is_somebody_elses() {
        let connection = Connection::open_in_memory().unwrap();
        assert_eq!(Kind::of(&connection).unwrap(), Kind::Foreign);
        connection.pragma_update(None, "user_version", 1).unwrap();
        assert_eq!(Kind::of(&connection).unwrap(), Kind::Foreign);
    }
}
