//! The file of a store: made, opened, and told from other people's files.

use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::StoreError;

const SCHEMA: &str = include_str!("schema.sql");

/// The form of the tables. It goes up by one whenever they change.
const VERSION: i32 = 1;

/// Marks the file as ours, whatever its name: 'Busb'.
const MARK: i32 = 0x4275_7362;

/// What a file turns out to be.
enum Kind {
    /// Nothing was ever stored in it.
    Fresh,
    /// Profiles, in this form.
    Profiles { version: i32 },
    /// Something else.
    Foreign,
}

/// Opens a store that is there.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    if !path.exists() {
        return Err(StoreError::Missing { path: path.to_owned() });
    }
    let fail = |source| error(path, source);
    let opened = connect(path, OpenFlags::default() - OpenFlags::SQLITE_OPEN_CREATE)
        .and_then(|connection| Ok((kind(&connection)?, connection)));
    let (kind, connection) = match opened {
        Err(error) if is_unchanging(path, &error) => unchanging(path).map_err(fail)?,
        opened => opened.map_err(fail)?,
    };
    checked(kind, path)?;
    Ok(connection)
}

/// Opens a store, or makes an empty one if there is no such file.
pub(super) fn open_or_create(path: &Path) -> Result<Connection, StoreError> {
    // The system says more clearly than SQLite why it cannot be written to.
    File::options()
        .append(true)
        .create(true)
        .open(path)
        .map_err(|source| StoreError::Unwritable { path: path.to_owned(), source })?;
    let fail = |source| error(path, source);
    let mut connection = connect(path, OpenFlags::default()).map_err(fail)?;
    if let Kind::Fresh = kind(&connection).map_err(fail)? {
        create(&mut connection).map_err(fail)?;
    }
    checked(kind(&connection).map_err(fail)?, path)?;
    Ok(connection)
}

/// What SQLite says, in our words where we have better ones.
pub(super) fn error(path: &Path, source: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => StoreError::NotAStore { path },
        _ => StoreError::Database { path, source },
    }
}

fn checked(kind: Kind, path: &Path) -> Result<(), StoreError> {
    let path = path.to_owned();
    match kind {
        Kind::Profiles { version } if version > VERSION => {
            Err(StoreError::TooNew { path, version, known: VERSION })
        }
        Kind::Profiles { .. } => Ok(()),
        Kind::Fresh | Kind::Foreign => Err(StoreError::NotAStore { path }),
    }
}

fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = flags - OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(plain(path), flags)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// The path as one that has no meaning of its own to SQLite, as ':memory:' has.
fn plain(path: &Path) -> PathBuf {
    Path::new(".").join(path)
}

/// Whether the file is in a folder that nothing can be written to. The write-ahead log cannot be
/// kept there, and there must be none: what it holds is not in the file yet.
fn is_unchanging(path: &Path, error: &rusqlite::Error) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let code = error.sqlite_error_code();
    let is_closed = matches!(code, Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly));
    is_closed && path.is_file() && !Path::new(&log).exists()
}

/// Opens a file that nobody can change meanwhile, without a write-ahead log.
fn unchanging(path: &Path) -> rusqlite::Result<(Kind, Connection)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let name = plain(path).to_string_lossy().into_owned();
    let name = name.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let connection = Connection::open_with_flags(format!("file:{name}?immutable=1"), flags)?;
    Ok((kind(&connection)?, connection))
}

fn kind(connection: &Connection) -> rusqlite::Result<Kind> {
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    if number("application_id")? == MARK {
        return Ok(Kind::Profiles { version: number("user_version")? });
    }
    let tables =
        connection.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))?;
    let is_fresh = (0, 0) == (tables, number("user_version")?);
    Ok(if is_fresh { Kind::Fresh } else { Kind::Foreign })
}

/// Makes the tables, all of them or none.
fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    // Readers and a writer do not wait for each other. It is a property of the file.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Somebody else may have made them meanwhile.
    if let Kind::Fresh = kind(&transaction)? {
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "application_id", MARK)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_change_needs_no_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("100% of #1?.db");
        drop(open_or_create(&path).unwrap());
        let (kind, connection) = unchanging(&path).unwrap();
        assert!(matches!(kind, Kind::Profiles { version: VERSION }));
        let count = "SELECT count(*) FROM profile";
        assert_eq!(connection.query_row(count, (), |row| row.get(0)), Ok(0));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(connection.execute("DELETE FROM profile", ()).is_err());
    }
}
