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

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Measured and emulated rows.
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
        connection.execute(
            "DELETE FROM run WHERE application = (SELECT number FROM application WHERE name = ?1)",
            (application,),
        )?;
    }
    let mut delete = |origin: Origin| delete.execute((application, origin.name()));
    Ok(Removed {
        measured: match which {
            Removal::All => delete(Origin::Measured)? + delete(Origin::Emulated)?,
            Removal::Predicted => 0,
        },
        predicted: delete(Origin::Predicted)?,
    })
}
