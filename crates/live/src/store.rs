//! What a daemon knows, in one SQLite file. What it decides is written here before it is acted on, so the
//! file is the truth, and what a daemon has in memory can be made from it again at any time.
//!
//! A [`Batch`] is written as a whole or not at all, and is on the disk when [`Store::commit`] returns. The
//! file is `busbar.db` in the folder of the state, `busbar.db-wal` is what was written last, and `lock` is
//! held by the one daemon that may write. The tables:
//!
//! | table | row | columns |
//! |---|---|---|
//! | `state` | the only one | `next_number`, `next_line`; `budget` as an operator wrote it; the last stamp: `now_ms`, `wall_ms`, `boot`, `origin_ms` |
//! | `job` | a job | `number`, `user`, `name`, `state` (`waiting`, `running`, `over`), `submit_ms`, `start_ms`, `end_ms` and the same by the clock on the wall (`submit_wall_ms`, …); `entry`: all of it, as JSON |
//! | `program` | what a job does; for an array, that of its first element alone | `job`, `program` as JSON |
//! | `dependency` | a job that another one waits for, or whose program it has | `job`, `needs` |
//! | `event` | a line of the history | `line`, `at_ms`, `wall_ms`, `job` if it is about one, `event` as JSON |
//!
//! What the daemon reads is sealed: in `seal`, a row carries a checksum of itself. SQLite alone would not
//! notice a byte that changed inside a value. A file that is damaged is refused, and nothing of it is
//! touched. What cannot be told is a log whose end is missing: it looks like one that was never written.
//!
//! Jobs that have been over for long are [pruned](Store::prune). Their pages are used again, and if there
//! are many of them [given back](Store::shrink).

use std::path::{Path, PathBuf};

use super::job::{Entry, Event, JobOutcome, Program};
use super::trusted_folder::TrustedFolder;
use super::wire::HistoryLine;
use busbar_core::units::Instant;

mod error;
mod file;
mod inspection;
mod lock;
mod log;
mod opened_files;
mod prune;
mod read;
mod schema;
mod seal;
mod shrink;
mod state;
#[cfg(test)]
mod tests;
mod write;

pub use error::StoreError;
pub use read::Reader;

/// What the file is called.
const DATABASE: &str = "busbar.db";

/// The file, for the one who writes to it.
#[derive(Debug)]
pub struct Store {
    /// Closed before the lock is given up: fields are dropped in order.
    file: Reader,
    presence: opened_files::OpenedFiles,
    _lock: lock::Lock,
}

/// What is written together, or not at all.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Jobs that are new, with what they are to do.
    pub submitted: Vec<(Entry, Program)>,
    /// Elements of arrays that are new; what they are to do is what the first one does, which is in
    /// `submitted`.
    pub elements: Vec<Entry>,
    /// Jobs that are as follows from now on.
    pub changed: Vec<Entry>,
    /// What happened, in order. A job that is named must be in the file, or in `submitted`.
    pub events: Vec<Event>,
    /// The budget that an operator has set: as written; `Some(None)` if the configured one holds again.
    pub budget: Option<Option<String>>,
    /// When this is: by the daemon's clock, and by the clock on the wall in milliseconds since 1970.
    pub now: (Instant, i64),
    /// The boot of the machine that the daemon's clock counts from; as before if that is not said.
    pub boot: Option<Boot>,
}

/// What a daemon has to know when it begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// The jobs that are not over, by their numbers.
    pub jobs: Vec<Entry>,
    /// The times of each of them by the clock on the wall, in the same order.
    pub walls: Vec<WallTimes>,
    /// How many bytes the program of each of them has, in the same order.
    pub program_bytes: Vec<u64>,
    /// The number of the next job.
    pub next: u64,
    /// The budget that an operator has set.
    pub budget: Option<String>,
    /// When the last batch was written, by both clocks, and in which boot of the machine.
    pub last: Option<Stamp>,
}

/// A boot of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    /// Which.
    pub id: String,
    /// What the daemon's clock said when the machine was booted; may be before its beginning.
    pub origin: i64,
}

/// An instant by all clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// By the daemon's clock.
    pub now: Instant,
    /// By the clock on the wall, in milliseconds since 1970.
    pub wall: i64,
    /// Which boot of the machine this was; empty if nobody ever said.
    pub boot: String,
    /// What the daemon's clock said when the machine was booted; may be before its beginning.
    pub origin: i64,
}

/// The times of a job by the clock on the wall, in milliseconds since 1970. They are kept as they were
/// when they were written, since that clock may be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WallTimes {
    /// When it was submitted.
    pub submit: i64,
    /// When it started, if it did.
    pub start: Option<i64>,
    /// When it was over, if it is.
    pub end: Option<i64>,
}

/// All that is kept of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredJob {
    /// The job.
    pub entry: Entry,
    /// What it is to do.
    pub program: Program,
    /// Its times by the clock on the wall.
    pub walls: WallTimes,
}

/// What is asked of the history.
#[derive(Clone, Copy, Debug, Default)]
pub struct Query {
    /// Of this job alone, or of the elements of this array.
    pub job: Option<u64>,
    /// After this line. Otherwise the last lines are meant.
    pub after: Option<u64>,
    /// At most so many.
    pub limit: u32,
}

/// Lines of the history.
pub type Lines = Vec<HistoryLine>;

impl Store {
    /// Opens the state in a folder, or makes an empty one if there is none. Until it is dropped nobody
    /// else can open it.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        Store::open_in(&TrustedFolder::of(folder, 0o700)?)
    }

    /// The same in a folder that is known to be the daemon's.
    pub fn open_in(folder: &TrustedFolder) -> Result<Self, StoreError> {
        let path = Store::path_in(folder.path());
        for ending in ["", "-wal", "-shm", "-journal", ".new", ".new-wal", ".new-shm"] {
            folder.check(format!("{DATABASE}{ending}"))?;
        }
        let lock = lock::Lock::take(folder)?;
        let connection = match path.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => file::create(&path)?,
            _ => file::open(&path)?,
        };
        let presence = opened_files::OpenedFiles::now(folder.path(), &path);
        Ok(Store { file: Reader { path, connection }, presence, _lock: lock })
    }

    /// The file of a state in a folder.
    pub fn path_in(folder: &Path) -> PathBuf {
        folder.join(DATABASE)
    }

    /// A connection for those who only read, in a thread of their own: they never keep the one who
    /// writes waiting. It is to be dropped before the store is.
    pub fn reader(&self) -> Result<Reader, StoreError> {
        Reader::open(&self.file.path)
    }

    /// Writes a batch: all of it, or if there is an error nothing. When this returns it is on the disk.
    /// After an error the next batch can be tried.
    pub fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.is_in_place()?;
        let Reader { path, connection } = &mut self.file;
        write::commit(connection, batch).map_err(|fault| fault.at(path))?;
        // What was written while the file was being removed is gone, too.
        self.is_in_place()
    }

    /// An error if the folder or one of its files was removed or replaced: then nothing can be kept.
    pub fn is_in_place(&self) -> Result<(), StoreError> {
        self.presence.check()
    }

    /// Removes jobs that have been over since before an instant, with all that is kept of them, and
    /// other events from before: at most so many rows, the oldest first. Jobs that somebody waits for
    /// stay. Says how many rows were removed; if that is `at_most` there may be more.
    pub fn prune(&mut self, before: Instant, at_most: u32) -> Result<u32, StoreError> {
        self.is_in_place()?;
        let Reader { path, connection } = &mut self.file;
        prune::prune(connection, before, at_most).map_err(|fault| fault.at(path))
    }

    /// Gives pages back to the disk that nothing is in any more, if there are many: at most so many. Says
    /// whether there are more. The file is smaller when the log is next taken into it.
    pub fn shrink(&mut self, at_most: u32) -> Result<bool, StoreError> {
        self.is_in_place()?;
        let Reader { path, connection } = &self.file;
        shrink::shrink(connection, at_most).map_err(|source| error::Fault::Sqlite(source).at(path))
    }

    /// What a daemon has to know when it begins.
    pub fn load(&self) -> Result<Saved, StoreError> {
        self.file.load()
    }

    /// All that is kept of a job, whether or not it is over.
    pub fn job(&self, number: u64) -> Result<Option<StoredJob>, StoreError> {
        self.file.job(number)
    }

    /// What a job is to do.
    pub fn program(&self, number: u64) -> Result<Option<Program>, StoreError> {
        self.file.program(number)
    }

    /// How a job ended; nothing if it is not over, or not known.
    pub fn outcome(&self, number: u64) -> Result<Option<JobOutcome>, StoreError> {
        self.file.outcome(number)
    }

    /// Whether a job ended well, or of an array all that is over; nothing if it is not over, or not known.
    pub fn ended_well(&self, number: u64) -> Result<Option<bool>, StoreError> {
        self.file.ended_well(number)
    }

    /// Lines of the history, in order.
    pub fn history(&self, query: Query) -> Result<Lines, StoreError> {
        self.file.history(query)
    }

    /// Closes the file properly: all that is in the log goes into the database.
    pub fn close(self) -> Result<(), StoreError> {
        let Reader { path, connection } = self.file;
        file::close(connection).map_err(|source| error::Fault::Sqlite(source).at(&path))
    }

    #[cfg(test)]
    fn connection(&self) -> &rusqlite::Connection {
        &self.file.connection
    }
}

impl Stamp {
    /// What the clock on the wall said, or will say, at an instant, if nobody sets it in between.
    pub fn wall_at(&self, instant: Instant) -> i64 {
        wall_at((self.now, self.wall), instant)
    }
}

/// What the clock on the wall says at an instant, from what both clocks say now.
fn wall_at((now, wall): (Instant, i64), instant: Instant) -> i64 {
    let distance =
        |span: busbar_core::units::Span| i64::try_from(span.millis()).unwrap_or(i64::MAX);
    // One of them is nothing.
    wall.saturating_sub(distance(now.since(instant))).saturating_add(distance(instant.since(now)))
}
