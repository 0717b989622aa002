//! Checks the database before it is used, without changing it or the files beside it. Opening an SQLite
//! database normally, even for reading, may change them. So this connection takes no locks and creates
//! no files; the lock of the folder keeps other daemons away.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::StoreError;
use super::connection::{beside, plain};
use super::error::Fault;
use super::log;
use super::schema::{Kind, TABLES, VERSION};

const BEGINNING: &[u8] = b"SQLite format 3\0";

/// Refuses a file that is not the state of a daemon, is damaged, or may not be read or written.
pub(super) fn inspect(path: &Path) -> Result<(), StoreError> {
    let damaged = |what: &str| Fault::Damaged(what.to_owned()).at(path);
    let unreadable = |source| StoreError::Unreadable { path: path.to_owned(), source };
    let found = path.metadata().map_err(unreadable)?;
    if !found.is_file() {
        return Err(StoreError::NotAFile { path: path.to_owned() });
    }
    let mut file = File::open(path).map_err(unreadable)?;
    // Nothing is written; the system's error is clearer than that of SQLite.
    File::options()
        .append(true)
        .open(path)
        .map_err(|source| StoreError::Unwritable { path: path.to_owned(), source })?;
    // SQLite would take an empty file for a new database, and remove the log beside it.
    let mut beginning = Vec::new();
    file.by_ref().take(BEGINNING.len() as u64).read_to_end(&mut beginning).map_err(unreadable)?;
    if beginning.is_empty() {
        return Err(damaged("it is empty"));
    }
    if beginning != BEGINNING {
        return Err(damaged("its first bytes are not those of an SQLite database"));
    }
    let log = beside(path, "-wal");
    let unreadable = |source| StoreError::Unreadable { path: log.clone(), source };
    let has_log = match File::open(&log) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) => return Err(unreadable(error)),
        Ok(file) => {
            let length = file.metadata().map_err(unreadable)?.len();
            if let Some(what) = log::damage(file).map_err(unreadable)? {
                return Err(damaged(what));
            }
            length > 0
        }
    };
    let version = look(path, has_log).map_err(|fault| at_a_look(fault, path))?;
    match version {
        Kind::State { version } if version > VERSION => {
            Err(StoreError::TooNew { path: path.to_owned(), version, known: VERSION })
        }
        Kind::State { .. } => Ok(()),
        Kind::Foreign => Err(StoreError::Foreign { path: path.to_owned() }),
    }
}

/// A file that the system can read but SQLite cannot is damaged.
fn at_a_look(fault: Fault, path: &Path) -> StoreError {
    use rusqlite::ErrorCode::{OutOfMemory, SystemIoFailure};
    match fault {
        Fault::Sqlite(error)
            if !matches!(error.sqlite_error_code(), Some(OutOfMemory | SystemIoFailure)) =>
        {
            Fault::Damaged(error.to_string()).at(path)
        }
        other => other.at(path),
    }
}

fn look(path: &Path, has_log: bool) -> Result<Kind, Fault> {
    let connection = if has_log { with_log(path)? } else { without_log(path)? };
    let kind = Kind::of(&connection)?;
    let Kind::State { version } = kind else {
        return Ok(kind);
    };
    let finding: String =
        connection.query_row("PRAGMA integrity_check(1)", (), |row| row.get(0))?;
    if finding != "ok" {
        return Err(Fault::Damaged(finding.replace('\n', " ")));
    }
    // The sealed columns of older versions are not known here.
    if version == VERSION {
        for table in TABLES {
            table.rows(&connection, "", (), |_| Ok(()))?;
        }
    }
    Ok(kind)
}

/// A connection without locks and with the index of the log in memory: it sees the log and writes
/// nothing.
fn with_log(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = Connection::open_with_flags_and_vfs(plain(path), flags, "unix-none")?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    Ok(connection)
}

/// A connection to an immutable file, which only a URI can request.
fn without_log(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let mut name = String::from("file:");
    for byte in plain(path).as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                name.push(char::from(*byte));
            }
            other => name += &format!("%{other:02x}"),
        }
    }
    Connection::open_with_flags(name + "?immutable=1", flags)
}
