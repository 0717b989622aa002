//! Rows that are taken out of a store.

use rusqlite::Connection;

use busbar_core::profile::Origin;

/// Which rows of an application to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// All of them.
    All,
    /// Those that a model predicted.
    Predicted,
}

/// The number of removed rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Rows of configurations that were run: measured, emulated and bounded ones.
    pub measured: usize,
    /// Predicted rows.
    pub predicted: usize,
}

/// Removes rows. The application keeps its entry, so that logs that name it by its number still
/// mean it when rows of it come again.
pub(super) fn remove(
    connection: &Connection,
    application: &str,
    which: Removal,
) -> rusqlite::Result<Removed> {
    let mut delete = connection.prepare(
        "DELETE FROM profile
         WHERE application = (SELECT number FROM application WHERE name = ?1) AND origin = ?2",
    )?;
    if which == Removal::All {
        for table in ["run", "setting"] {
            let question = format!(
                "DELETE FROM {table}
                 WHERE application = (SELECT number FROM application WHERE name = ?1)"
            );
            connection.execute(&question, (application,))?;
        }
    }
    let mut delete = |origin: Origin| delete.execute((application, origin.name()));
    Ok(Removed {
        measured: match which {
            Removal::All => {
                let run = Origin::ALL.into_iter().filter(|origin| origin.was_run());
                run.map(&mut delete).sum::<rusqlite::Result<usize>>()?
            }
            Removal::Predicted => 0,
        },
        predicted: delete(Origin::Predicted)?,
    })
}
