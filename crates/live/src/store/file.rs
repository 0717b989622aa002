//! The file: made, opened and closed. A file under its name is always a whole one. It is made under
//! another name first, so one that is empty or half made has not always been like that.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::error::Fault;
use super::inspection::inspect;
use super::schema::{STEPS, migrate};
use super::{StoreError, shrink};

/// How long somebody else's hold on the file is waited for, such as that of a shell of SQLite.
const PATIENCE: Duration = Duration::from_secs(5);

/// The log is taken into the database when it has so many pages of 4 KiB,
const LOG_PAGES: u32 = 1000;

/// and is cut down to this when it had to grow meanwhile.
const LOG_BYTES: u32 = 16 << 20;

/// Makes an empty state.
pub(super) fn create(path: &Path) -> Result<Connection, StoreError> {
    // A log without its database is somebody's loss already; it must not become part of a new one.
    if beside(path, "-wal").exists() {
        return Err(Fault::Damaged("it is gone, and its log is still there".to_owned()).at(path));
    }
    let new = beside(path, ".new");
    make(&new, path).map_err(|source| StoreError::Unwritable { path: new.clone(), source })?;
    let fail = |source| Fault::Sqlite(source).at(&new);
    let mut connection = connect(&new).map_err(fail)?;
    migrate(&mut connection, STEPS).map_err(fail)?;
    close(connection).map_err(fail)?;
    fs::rename(&new, path)
        .and_then(|()| File::open(plain(path).parent().unwrap_or(Path::new(".")))?.sync_all())
        .map_err(|source| StoreError::Unwritable { path: path.to_owned(), source })?;
    open(path)
}

/// An empty file for nobody else to read: environments of jobs may hold secrets. What SQLite makes beside
/// it has the same permissions.
fn make(new: &Path, path: &Path) -> io::Result<()> {
    // What is left of one who was stopped while making it, or of a database that was moved away.
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

/// Opens a state that is there, if nothing is wrong with it.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    inspect(path)?;
    let fail = |source| Fault::Sqlite(source).at(path);
    let mut connection = connect(path).map_err(fail)?;
    migrate(&mut connection, STEPS).map_err(fail)?;
    // One that is too large for its disk cannot be made to shrink, and can be used all the same.
    let _ = shrink::enable(&connection);
    // So that the log holds nothing but what this daemon writes. On a full disk it stays as it is, and
    // the first who wants to write will be told.
    let _ = empty_log(&connection);
    Ok(connection)
}

/// Closes the file. All that is in the log goes into the database.
pub(super) fn close(connection: Connection) -> rusqlite::Result<()> {
    empty_log(&connection)?;
    connection.close().map_err(|(_, error)| error)
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(plain(path), flags)?;
    connection.busy_timeout(PATIENCE)?;
    // Before anything is in the file; later it only says what `VACUUM` is to do.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // A commit is on the disk when it is said to be done.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
    Ok(connection)
}

/// A connection that cannot write, while the one who can has the file open.
pub(super) fn connect_to_read(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(plain(path), flags)?;
    connection.busy_timeout(PATIENCE)?;
    Ok(connection)
}

fn empty_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))
}

/// The path as one that has no meaning of its own to SQLite, as `file:x` has.
pub(super) fn plain(path: &Path) -> PathBuf {
    Path::new(".").join(path)
}

/// A file beside another one.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
