//! Creates, opens and closes the database. It is created under another name and then renamed, so a file
//! under its final name is always complete, unless it was damaged later.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rusqlite::Connection;

use super::connection::{beside, connect, plain};
use super::error::Fault;
use super::inspection::inspect;
use super::upgrade::{STEPS, migrate};
use super::{StoreError, shrink};

/// Creates an empty state.
pub(super) fn create(path: &Path) -> Result<Connection, StoreError> {
    // A log without its database means that the database was lost; it must not become part of a new
    // one.
    if beside(path, "-wal").exists() {
        return Err(Fault::Damaged("it is missing, but its log still exists".to_owned()).at(path));
    }
    let new = beside(path, ".new");
    make(&new, path).map_err(|source| StoreError::Unwritable { path: new.clone(), source })?;
    let fail = |source| Fault::Sqlite(source).at(&new);
    let mut connection = connect(&new).map_err(fail)?;
    migrate(&mut connection, STEPS).map_err(|fault| fault.at(&new))?;
    close(connection).map_err(fail)?;
    fs::rename(&new, path)
        .and_then(|()| File::open(plain(path).parent().unwrap_or(Path::new(".")))?.sync_all())
        .map_err(|source| StoreError::Unwritable { path: path.to_owned(), source })?;
    open(path)
}

/// Creates an empty file that only its owner can read, since environments of jobs may contain
/// secrets. SQLite creates its other files with the same permissions.
fn make(new: &Path, path: &Path) -> io::Result<()> {
    // Leftovers of an interrupted creation, or of a database that was moved away.
    let left_behind = ["", "-wal", "-shm", "-journal"].map(|ending| beside(new, ending));
    for file in left_behind.iter().chain(&[beside(path, "-shm")]) {
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    File::options().write(true).create_new(true).mode(0o600).open(new)?;
    Ok(())
}

/// Opens an existing state, if nothing is wrong with it.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    inspect(path)?;
    let fail = |source| Fault::Sqlite(source).at(path);
    let mut connection = connect(path).map_err(fail)?;
    migrate(&mut connection, STEPS).map_err(|fault| fault.at(path))?;
    // If the disk is too full for that, the database can still be used.
    let _ = shrink::enable(&connection);
    // After this the log holds only what this daemon writes. On a full disk this fails, which the
    // first commit will report.
    let _ = empty_log(&connection);
    Ok(connection)
}

/// Closes the file after merging the log into the database.
pub(super) fn close(connection: Connection) -> rusqlite::Result<()> {
    empty_log(&connection)?;
    connection.close().map_err(|(_, error)| error)
}

fn empty_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))
}
