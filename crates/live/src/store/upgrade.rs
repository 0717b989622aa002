//! The upgrade of the tables from each version to the next.

use rusqlite::{Connection, TransactionBehavior};

use super::error::Fault;
use super::schema::{MARK, VERSION};
use super::usage;

/// A step from a version to the next: a script, and what follows from rows that are there already.
pub(super) struct Step {
    script: &'static str,
    then: fn(&Connection) -> Result<(), Fault>,
}

impl Step {
    /// A step that leaves rows as they are.
    const fn of(script: &'static str) -> Self {
        Step { script, then: |_| Ok(()) }
    }
}

/// The steps that lead to version 1, version 2, and so on. Released scripts must not change,
/// since files of that version exist.
pub(super) const STEPS: &[Step] = &[
    Step::of(include_str!("schema.sql")),
    Step::of(include_str!("schema-2.sql")),
    Step { script: include_str!("schema-3.sql"), then: usage::begin },
    Step::of(include_str!("schema-4.sql")),
];

const _: () = assert!(STEPS.len() as i32 == VERSION);

/// Upgrades the tables to the latest version, with one transaction for each step, so that a failed
/// step leaves the version before it.
pub(super) fn migrate(connection: &mut Connection, steps: &[Step]) -> Result<(), Fault> {
    let version: i32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for (place, step) in steps.iter().enumerate().skip(usize::try_from(version).unwrap_or(0)) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(step.script)?;
        (step.then)(&transaction)?;
        transaction.pragma_update(None, "application_id", MARK)?;
        transaction.pragma_update(None, "user_version", place as i32 + 1)?;
        transaction.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::schema::Kind;
    use super::*;

    fn version(connection: &Connection) -> i32 {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }

    #[test]
    fn each_step_is_taken_once_and_a_failing_one_leaves_the_form_before_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        let migrate = |connection: &mut Connection, scripts: &[&'static str]| {
            super::migrate(
                connection,
                &scripts.iter().map(|text| Step::of(text)).collect::<Vec<_>>(),
            )
        };
        let first = "CREATE TABLE pear (weight INTEGER); INSERT INTO pear VALUES (7)";
        migrate(&mut connection, &[first]).unwrap();
        assert_eq!(version(&connection), 1);
        assert_eq!(Kind::of(&connection).unwrap(), Kind::State { version: 1 });

        let second = "ALTER TABLE pear ADD COLUMN color TEXT";
        let broken = "CREATE TABLE half (one INTEGER); INSERT INTO nowhere VALUES (1)";
        assert!(migrate(&mut connection, &[first, second, broken]).is_err());
        assert_eq!(version(&connection), 2, "the second was taken and the third was not");
        let tables: u32 = connection
            .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'half'", (), |row| {
                row.get(0)
            })
            .unwrap();
        assert_eq!(tables, 0);

        let third = "UPDATE pear SET color = 'green'";
        migrate(&mut connection, &[first, second, third]).unwrap();
        migrate(&mut connection, &[first, second, third]).unwrap();
        let pears: Vec<(i64, String)> = connection
            .prepare("SELECT weight, color FROM pear")
            .unwrap()
            .query_map((), |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<rusqlite::Result<_>>()
            .unwrap();
        assert_eq!((version(&connection), pears), (3, vec![(7, "green".to_owned())]));
    }
}
