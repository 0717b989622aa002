//! Errors of the store, with advice.

use std::io;
use std::path::{Path, PathBuf};

use busbar_trust::TrustError;
use rusqlite::ErrorCode;

/// Why the state of a daemon cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another daemon uses it.
    #[error(
        "the state in {} is used by another daemon{}; stop that one, or name another folder",
        folder.display(),
        process.map(|number| format!(", process {number}")).unwrap_or_default()
    )]
    InUse {
        /// The folder.
        folder: PathBuf,
        /// The daemon's process ID, if it is known.
        process: Option<u32>,
    },
    /// Another user could change it.
    #[error(transparent)]
    Untrusted(TrustError),
    /// The path is not that of a file.
    #[error(
        "{} is not a file; move it away, or name another folder for the state",
        path.display()
    )]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file is a database of something else.
    #[error(
        "{} is an SQLite database, but not the state of a daemon, or its header is damaged; it was not changed: \
        name another folder for the state, or check the file",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A newer version of the program wrote it.
    #[error(
        "{} was written by a newer busbar: its tables have version {version}, and this busbar supports versions \
        up to {known}; it was not changed: use the newer busbar",
        path.display()
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// The version of its tables.
        version: i32,
        /// The latest version that is known.
        known: i32,
    },
    /// The file is not as it was written.
    #[error(
        "the state {path} is damaged: {what}. 'busbar serve' does not start with it, and has changed \
         nothing. Restore a backup of it; or salvage what can be read, with 'sqlite3 {path} .recover'; \
         or move it aside together with {path}-wal and {path}-shm, and begin with an empty state. Running jobs \
         continue, but a daemon with an empty state does not know them: manage them yourself",
        path = path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        what: String,
    },
    /// The folder or a file was removed or replaced while it was used.
    #[error(
        "{} was {what} while the daemon ran: anything written now would be lost. Restore it; or stop the daemon, \
        and check the running jobs before you start it again",
        path.display()
    )]
    Gone {
        /// The file or folder.
        path: PathBuf,
        /// Whether it was removed or replaced.
        what: &'static str,
    },
    /// The disk is full.
    #[error(
        "the disk of {} is full; nothing was written: make room there, and try again",
        path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// The disk does not work.
    #[error("the disk of {} does not work; nothing was written", path.display())]
    Disk {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// The file cannot be read.
    #[error("cannot read {}; check its owner, and the daemon's user", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file cannot be created or written.
    #[error("cannot write to {}; check its owner, and the daemon's user", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A job that should be changed does not exist.
    #[error("there is no job {job} in {}", path.display())]
    UnknownJob {
        /// The file.
        path: PathBuf,
        /// The job's number.
        job: u64,
    },
    /// A value cannot be written as JSON.
    #[error("cannot store {what}")]
    Unsayable {
        /// What it belongs to.
        what: String,
        /// The error of the conversion to JSON.
        source: serde_json::Error,
    },
    /// Another error of SQLite.
    #[error("cannot use the state {}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}

impl From<TrustError> for StoreError {
    fn from(error: TrustError) -> Self {
        match error {
            TrustError::File { path, source, .. } => StoreError::Unwritable { path, source },
            other => StoreError::Untrusted(other),
        }
    }
}

/// An error without the path of the file.
#[derive(Debug)]
pub(super) enum Fault {
    Sqlite(rusqlite::Error),
    /// A row is not as it was written.
    Damaged(String),
    UnknownJob(u64),
    Unsayable {
        what: String,
        source: serde_json::Error,
    },
}

impl From<rusqlite::Error> for Fault {
    fn from(source: rusqlite::Error) -> Self {
        Fault::Sqlite(source)
    }
}

impl Fault {
    pub(super) fn at(self, path: &Path) -> StoreError {
        let path = path.to_owned();
        match self {
            Fault::Damaged(what) => StoreError::Damaged { path, what },
            Fault::UnknownJob(job) => StoreError::UnknownJob { path, job },
            Fault::Unsayable { what, source } => StoreError::Unsayable { what, source },
            Fault::Sqlite(source) => match source.sqlite_error_code() {
                Some(ErrorCode::DiskFull) => StoreError::Full { path, source },
                Some(ErrorCode::SystemIoFailure) => StoreError::Disk { path, source },
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                    StoreError::Damaged { path, what: source.to_string() }
                }
                _ => StoreError::Database { path, source },
            },
        }
    }
}
