//! Connections to the database, and the paths of the files beside it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::shrink;

/// How long to wait for a lock on the file, such as that of an SQLite shell.
const PATIENCE: Duration = Duration::from_secs(5);

/// The size of the write-ahead log at which it is merged into the database, in pages of 4 KiB.
const LOG_PAGES: u32 = 1000;

/// The size to which a larger log is cut afterwards, in bytes.
const LOG_BYTES: u32 = 16 << 20;

/// A connection for the daemon that writes.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(plain(path), flags)?;
    connection.busy_timeout(PATIENCE)?;
    // Takes effect in an empty file, and otherwise at the next `VACUUM`. It is written each time, for which there may be
    // no space.
    if !shrink::is_enabled(&connection)? {
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // Commits return only when the data is on the disk.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
    Ok(connection)
}

/// A read-only connection while another one writes.
pub(super) fn connect_to_read(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(plain(path), flags)?;
    connection.busy_timeout(PATIENCE)?;
    Ok(connection)
}

/// The path in a form that SQLite cannot take for a URI such as `file:x`.
pub(super) fn plain(path: &Path) -> PathBuf {
    Path::new(".").join(path)
}

/// The path with a suffix.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
