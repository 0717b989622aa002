//! The file of a store: made, opened, and told from other people's files.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::StoreError;

const SCHEMA: &str = include_str!("schema.sql");

/// The form of the tables. It goes up by one whenever they change.
const VERSION: i32 = 3;

/// Marks the file as ours, whatever its name: 'Busb'.
const MARK: i32 = 0x4275_7362;

/// What a file turns out to be.
enum Kind {
    /// Nothing was ever stored in it.
    Fresh,
    /// Profiles, in this form.
    Profiles { version: i32 },
    /// A file that is no profile database.
    Foreign,
}

/// A file that was opened.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) connection: Connection,
    /// How the file looked, if it is read without a lock on it.
    pub(super) unlocked: Option<Stamp>,
}

/// How a file looks from outside. Whoever changes it changes this.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    pub(super) fn of(path: &Path) -> Option<Self> {
        let metadata = path.metadata().ok()?;
        Some(Stamp { length: metadata.len(), modified: metadata.modified().ok() })
    }
}

/// Opens a store that is there.
pub(super) fn open(path: &Path) -> Result<Opened, StoreError> {
    if !path.exists() {
        return Err(StoreError::Missing { path: path.to_owned() });
    }
    only_files(path)?;
    // The system says more clearly than SQLite why it cannot be read.
    File::open(path).map_err(|source| StoreError::Unreadable { path: path.to_owned(), source })?;
    let fail = |source| error(path, source);
    // SQLite opens for reading what cannot be written, and then leaves files of ours beside it.
    let is_writable = File::options().append(true).open(path).is_ok();
    let opened = match is_writable {
        true => with_log(path),
        false => look(path),
    };
    let (kind, opened) = match opened {
        Err(error) if is_unchanging(path, &error) => unchanging(path).map_err(fail)?,
        opened => opened.map_err(fail)?,
    };
    checked(kind, path)?;
    Ok(opened)
}

/// Opens a store, or makes an empty one if there is no such file.
pub(super) fn open_or_create(path: &Path) -> Result<Opened, StoreError> {
    only_files(path)?;
    // The system says more clearly than SQLite why it cannot be written to.
    File::options()
        .append(true)
        .create(true)
        .open(path)
        .map_err(|source| StoreError::Unwritable { path: path.to_owned(), source })?;
    let fail = |source| error(path, source);
    let mut connection = connect(path, OpenFlags::default()).map_err(fail)?;
    match kind(&connection).map_err(fail)? {
        Kind::Fresh => create(&mut connection).map_err(fail)?,
        Kind::Profiles { version } if version < VERSION => renew(&mut connection).map_err(fail)?,
        Kind::Profiles { .. } | Kind::Foreign => (),
    }
    checked(kind(&connection).map_err(fail)?, path)?;
    Ok(Opened { connection, unlocked: None })
}

/// What SQLite says, in our words where we have better ones.
pub(super) fn error(path: &Path, source: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => StoreError::NotAStore { path },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Busy { path, source }
        }
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { path, source },
        _ => StoreError::Database { path, source },
    }
}

/// The file changed while it was read without a lock.
pub(super) fn changed(path: &Path) -> StoreError {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
    error(path, rusqlite::Error::SqliteFailure(code, Some("it changed in the meantime".to_owned())))
}

/// The database and the files that SQLite keeps beside it.
pub(super) fn files(path: &Path) -> [PathBuf; 4] {
    ["", "-wal", "-shm", "-journal"].map(|ending| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        name.into()
    })
}

/// What is there must be a file.
fn only_files(path: &Path) -> Result<(), StoreError> {
    match path.metadata() {
        Ok(found) if found.is_dir() => Err(StoreError::Folder { path: path.to_owned() }),
        Ok(found) if !found.is_file() => Err(StoreError::NotAStore { path: path.to_owned() }),
        _ => Ok(()),
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

/// Opens a file that may be written, with its log. The last to close it takes the log away.
fn with_log(path: &Path) -> rusqlite::Result<(Kind, Opened)> {
    let connection = connect(path, OpenFlags::default() - OpenFlags::SQLITE_OPEN_CREATE)?;
    Ok((kind(&connection)?, Opened { connection, unlocked: None }))
}

/// Opens a file that may be read and not written, such as somebody else's. No file is made beside
/// it: it would belong to us, and its owner could not write to it.
fn look(path: &Path) -> rusqlite::Result<(Kind, Opened)> {
    match has_log(path) {
        // Somebody has it open, or was stopped; what the log holds is not in the file yet.
        true => {
            let connection = connect_by_name(path, "readonly_shm=1")?;
            Ok((kind(&connection)?, Opened { connection, unlocked: None }))
        }
        false => unchanging(path),
    }
}

fn has_log(path: &Path) -> bool {
    files(path)[1].exists()
}

/// Whether the file is in a folder that nothing can be written to. The write-ahead log cannot be
/// kept there, and there must be none: what it holds is not in the file yet.
fn is_unchanging(path: &Path, error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    let is_closed = matches!(code, Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly));
    is_closed && !has_log(path)
}

/// Opens a file that has no log, without making one. Nothing keeps others from changing it: that
/// has to be noticed by its stamp.
fn unchanging(path: &Path) -> rusqlite::Result<(Kind, Opened)> {
    let unlocked = Stamp::of(path);
    let connection = connect_by_name(path, "immutable=1")?;
    Ok((kind(&connection)?, Opened { connection, unlocked }))
}

/// Opens a file to read it, with an option that can be given in a name only.
fn connect_by_name(path: &Path, option: &str) -> rusqlite::Result<Connection> {
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
    Connection::open_with_flags(format!("{name}?{option}"), flags)
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

/// Brings the tables of an older version into today's form, all of them or none. Version 1 had no runs, version
/// 2 no settings.
fn renew(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Kind::Profiles { version: before @ 1..VERSION } = kind(&transaction)? else {
        // Somebody else has done that meanwhile.
        return transaction.commit();
    };
    let old_tables = &["application", "profile", "run"][..if before == 1 { 2 } else { 3 }];
    for table in old_tables {
        transaction.execute_batch(&format!("ALTER TABLE {table} RENAME TO old_{table}"))?;
    }
    transaction.execute_batch("DROP INDEX IF EXISTS run_by_configuration")?;
    transaction.execute_batch(SCHEMA)?;
    for table in old_tables {
        transaction.execute_batch(&format!("INSERT INTO {table} SELECT * FROM old_{table}"))?;
    }
    for table in old_tables.iter().rev() {
        transaction.execute_batch(&format!("DROP TABLE old_{table}"))?;
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(opened: &Opened) -> rusqlite::Result<u32> {
        opened.connection.query_row("SELECT count(*) FROM application", (), |row| row.get(0))
    }

    fn beside(path: &Path) -> usize {
        std::fs::read_dir(path.parent().unwrap()).unwrap().count() - 1
    }

    const ENTER: &str = "INSERT INTO application (name) VALUES ('SP')";

    #[test]
    fn looking_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("100% of #1?é.db");
        drop(open_or_create(&path).unwrap());
        let (kind, opened) = look(&path).unwrap();
        assert!(matches!(kind, Kind::Profiles { version: VERSION }));
        assert_eq!(count(&opened), Ok(0));
        assert_eq!(beside(&path), 0, "while it is open");
        assert!(opened.connection.execute(ENTER, ()).is_err());
        drop(opened);
        assert_eq!(beside(&path), 0, "afterwards");
    }

    #[test]
    fn what_is_in_the_log_only_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profiles.db");
        let owner = open_or_create(&path).unwrap();
        owner.connection.execute(ENTER, ()).unwrap();
        let (_, opened) = look(&path).unwrap();
        assert_eq!(count(&opened), Ok(1));
        assert!(opened.connection.execute("DELETE FROM application", ()).is_err());
        assert_eq!(beside(&path), 2, "the log and its index are the owner's");
        drop(opened);
        drop(owner);
        let (_, opened) = look(&path).unwrap();
        assert_eq!((count(&opened), beside(&path)), (Ok(1), 0));
    }

    #[test]
    fn a_log_without_its_index_is_not_read_nor_given_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profiles.db");
        drop(open_or_create(&path).unwrap());
        std::fs::write(&files(&path)[1], "half a log").unwrap();
        let looked = look(&path).and_then(|(_, opened)| count(&opened));
        assert!(looked.is_err(), "{looked:?}");
        assert_eq!(beside(&path), 1);
    }

    /// Files of versions 1 and 2, with their tables as they were.
    #[test]
    fn older_files_are_brought_up_to_date() {
        let runs = "CREATE TABLE run (
                 application INTEGER NOT NULL REFERENCES application (number),
                 nodes INTEGER NOT NULL, cores INTEGER NOT NULL, cap_mw INTEGER NOT NULL,
                 time_ms INTEGER NOT NULL, power_mw INTEGER NOT NULL, origin TEXT NOT NULL) STRICT;
             CREATE INDEX run_by_configuration ON run (application, nodes, cores, cap_mw, origin);
             INSERT INTO run VALUES (3, 1, 8, 60000, 5000, 110000, 'measured');";
        for (version, more, expected_runs) in [(1, "", 0), (2, runs, 1)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("profiles.db");
            let old = Connection::open(&path).unwrap();
            old.execute_batch(&format!(
                "CREATE TABLE application (
                     number INTEGER PRIMARY KEY AUTOINCREMENT,
                     name TEXT NOT NULL UNIQUE CHECK (name <> '')) STRICT;
                 CREATE TABLE profile (
                     application INTEGER NOT NULL REFERENCES application (number),
                     nodes INTEGER NOT NULL, cores INTEGER NOT NULL, cap_mw INTEGER NOT NULL,
                     time_ms INTEGER NOT NULL, power_mw INTEGER NOT NULL, origin TEXT NOT NULL,
                     PRIMARY KEY (application, nodes, cores, cap_mw)) STRICT, WITHOUT ROWID;
                 INSERT INTO application (number, name) VALUES (3, 'SP');
                 INSERT INTO profile VALUES (3, 1, 8, 60000, 5000, 110000, 'measured');
                 {more}
                 PRAGMA application_id = {MARK}; PRAGMA user_version = {version};"
            ))
            .unwrap();
            drop(old);
            // Whoever only looks can do so as before.
            assert_eq!(count(&open(&path).unwrap()), Ok(1));
            let opened = open_or_create(&path).unwrap();
            assert!(matches!(kind(&opened.connection), Ok(Kind::Profiles { version: VERSION })));
            let kept = opened.connection.query_row(
                "SELECT name, time_ms, origin FROM application JOIN profile ON application = number
                 WHERE number = 3",
                (),
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            );
            assert_eq!(kept, Ok(("SP".to_owned(), 5000, "measured".to_owned())));
            let number = |table: &str| {
                let question = format!("SELECT count(*) FROM {table}");
                opened.connection.query_row(&question, (), |row| row.get::<_, u32>(0))
            };
            assert_eq!((number("run"), number("setting")), (Ok(expected_runs), Ok(0)));
        }
    }

    #[test]
    fn a_change_without_a_lock_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profiles.db");
        drop(open_or_create(&path).unwrap());
        let (_, opened) = look(&path).unwrap();
        assert_eq!(opened.unlocked, Stamp::of(&path));
        let file = File::options().append(true).open(&path).unwrap();
        file.set_len(path.metadata().unwrap().len() + 1).unwrap();
        assert_ne!(opened.unlocked, Stamp::of(&path));
    }
}
