//! The state of a daemon, in one SQLite file. Decisions are written here before they are carried out, so
//! the file is the truth, and the daemon's state in memory can be rebuilt from it at any time.
//!
//! A [`Batch`] is written completely or not at all, and is on the disk when [`Store::commit`] returns. The
//! file is `busbar.db` in the state folder, `busbar.db-wal` is SQLite's write-ahead log, `lock` is held
//! by the one daemon that may write, and `reserve` holds space for opening the file on a full disk. The tables:
//!
//! | table | row | columns |
//! |---|---|---|
//! | `state` | the only one | `next_number`, `next_line`; `budget` as an operator wrote it; the last stamp: `now_ms`, `wall_ms`, `boot`, `origin_ms` |
//! | `job` | a job | `number`, `user`, `name`, `state` (`waiting`, `running`, `over`), `submit_ms`, `start_ms`, `end_ms` and the same by the wall clock (`submit_wall_ms`, …); `entry`: the whole job as JSON |
//! | `program` | the program of a job; for an array, that of its first element only | `job`, `program` as JSON |
//! | `dependency` | a job that another one waits for, or whose program it shares | `job`, `needs` |
//! | `node` | a node that is not on | `node`, `state` (`stopping`, `off`, `starting`) |
//! | `part_budget` | a limit that an operator has set of a part of the machine | `kind` (`feed`), `name`, `budget` as it was written |
//! | `usage` | what jobs took that ended on a day | `day`, `user`, `account`, and sums: `jobs`, `node_ms`, predicted energy, and that of jobs that were measured |
//! | `event` | a line of the history | `line`, `at_ms`, `wall_ms`, `job` if it is about one, `event` as JSON |
//!
//! # Versions
//!
//! The number in `user_version` covers the tables and the JSON in them. A file of an older version is
//! upgraded when it is opened, and one of a newer version is refused without touching it
//! ([`StoreError::TooNew`]). The JSON is that of [`Entry`], [`Program`] and [`Event`]. To keep files
//! readable, changes to these types and the types inside them must follow two rules:
//!
//! - A field that is added has a `#[serde(default)]`. If an older program must not lose it, a new step in
//!   `upgrade` raises the version.
//! - Names in JSON never change: a Rust name that changes gets a `#[serde(rename)]`. Anything else, such
//!   as a field with another meaning, needs a step in `upgrade` that rewrites the rows.
//!
//! Version 2 has the table `node`, version 3 the table `usage`, version 4 the table `part_budget`. `tests/form-1.db.gz` is a file of version 1. A test opens it, and checks that its JSON is read and
//! written again without a change.
//!
//! # Damage
//!
//! Rows that the daemon reads are sealed: the column `seal` is a checksum of the others, because SQLite
//! alone would not notice a changed byte inside a value. A damaged file is refused and not touched. Only a
//! log whose end is missing cannot be recognised: it looks like one that was never written.
//!
//! Jobs that have been over for long are pruned. Their pages are used again, or
//! given back to the disk if there are many.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::job::{Entry, Event, Program, Scope};
use busbar_core::ledger::SwitchState;
use busbar_core::units::Instant;
use busbar_trust::{Setting, TrustedFolder};

mod budgets;
mod connection;
mod error;
mod file;
mod finished;
mod inspection;
mod lease;
mod lock;
mod lock_file;
mod log;
mod nodes;
mod opened_files;
mod prune;
mod read;
mod reserve;
mod schema;
mod seal;
mod shrink;
mod state;
#[cfg(test)]
mod tests;
mod upgrade;
mod usage;
mod write;

pub use error::StoreError;
pub use finished::Ended;
pub use lease::Lease;
pub use read::Reader;
pub(crate) use usage::Sums;

/// What names the state folder.
pub(crate) const STATE: Setting = Setting("'state = …' in the configuration, or --state");

/// The name of the database file.
const DATABASE: &str = "busbar.db";

/// The database, opened for writing.
#[derive(Debug)]
pub struct Store {
    /// Closed before the lock is released: fields are dropped in order.
    file: Reader,
    presence: opened_files::OpenedFiles,
    reserve: reserve::Reserve,
    lease: Lease,
}

/// Changes that are written together, or not at all.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// New jobs with their programs.
    pub(crate) submitted: Vec<(Entry, Program)>,
    /// New elements of arrays. Their program is that of the first element, which is in `submitted`.
    pub(crate) elements: Vec<Entry>,
    /// Jobs that have changed.
    pub(crate) changed: Vec<Entry>,
    /// Events in order. A job that is named must exist, or be in `submitted`.
    pub(crate) events: Vec<Event>,
    /// Nodes that are switched, each with its state from now on; `None` if it is on.
    pub(crate) nodes: Vec<(u32, Option<SwitchState>)>,
    /// The budget as an operator wrote it; `Some(None)` if the configured one applies again.
    pub(crate) budget: Option<Option<String>>,
    /// The same of parts of the machine.
    pub(crate) part_budgets: Vec<(Scope, Option<String>)>,
    /// The time by the daemon's clock, and by the wall clock in milliseconds since 1970.
    pub(crate) now: (Instant, i64),
    /// The boot that the daemon's clock counts from; unchanged if `None`.
    pub(crate) boot: Option<Boot>,
}

/// The state that a daemon starts from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// The jobs that are not over, by number.
    pub jobs: Vec<Entry>,
    /// Their times by the wall clock, in the same order.
    pub walls: Vec<WallTimes>,
    /// The size of their programs in bytes, in the same order.
    pub program_bytes: Vec<u64>,
    /// The number of the next job.
    pub next: u64,
    /// The nodes that are not on.
    pub nodes: BTreeMap<u32, SwitchState>,
    /// The budget that an operator has set.
    pub budget: Option<String>,
    /// Those that operators have set of parts of the machine.
    pub part_budgets: BTreeMap<Scope, String>,
    /// When the last batch was written, by all clocks.
    pub last: Option<Stamp>,
    /// The last jobs that are over, in the order of their ends: a policy may learn from them.
    pub past: Vec<Entry>,
}

/// How many jobs that are over a policy is told about when a daemon starts.
pub(crate) const PAST_JOBS: usize = 2000;

/// A boot of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Boot {
    /// The ID of the boot.
    pub(crate) id: String,
    /// The value of the daemon's clock at boot; may be negative.
    pub(crate) origin: i64,
}

/// A time by all clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The time by the daemon's clock.
    pub(crate) now: Instant,
    /// The time by the wall clock, in milliseconds since 1970.
    pub(crate) wall: i64,
    /// The ID of the boot; empty if it is not known.
    pub(crate) boot: String,
    /// The value of the daemon's clock at boot; may be negative.
    pub(crate) origin: i64,
}

/// The times of a job by the wall clock, in milliseconds since 1970, as they were when they were
/// written, since that clock may be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WallTimes {
    /// When the job was submitted.
    pub(crate) submit: i64,
    /// When the job started, if it did.
    pub(crate) start: Option<i64>,
    /// When the job ended, if it has.
    pub(crate) end: Option<i64>,
}

/// A job as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredJob {
    /// The job.
    pub(crate) entry: Entry,
    /// Its program.
    pub(crate) program: Program,
    /// Its times by the wall clock.
    pub(crate) walls: WallTimes,
}

/// A query of the history.
#[derive(Clone, Copy, Debug, Default)]
pub struct Query {
    /// Only events of this job, or of the elements of this array.
    pub job: Option<u64>,
    /// Only lines after this one; without it, the last lines.
    pub after: Option<u64>,
    /// The largest number of lines.
    pub limit: u32,
}

impl Store {
    /// Opens the state in a folder, and creates an empty one if there is none. Nobody else can open
    /// it until the store is dropped.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        Store::open_in(&TrustedFolder::of(folder, 0o700, STATE)?)
    }

    /// The same in a folder that was checked already.
    fn open_in(folder: &TrustedFolder) -> Result<Self, StoreError> {
        Store::lead(folder, lock::take(folder, lease::USUAL)?)
    }

    /// The lease of a daemon that takes the state now, or an error if another one has it. It may act for so long without a sign
    /// of life.
    pub(crate) fn lease_in(folder: &TrustedFolder, length: Duration) -> Result<Lease, StoreError> {
        lock::take(folder, length)
    }

    /// The same for a daemon that stands by until no other one leads. `rest` is called at each look.
    pub(crate) fn stand_by(
        folder: &TrustedFolder,
        length: Duration,
        mut rest: impl FnMut(&str),
    ) -> Result<Lease, StoreError> {
        lock::stand_by(folder, length, |said| {
            let host = lease::Holder::read(said).map(|holder| holder.host);
            rest(&host.unwrap_or_else(|| "this host".to_owned()));
        })
    }

    /// The last sign of life that a daemon has given in this folder, whatever it says; nothing if none was ever there.
    pub(crate) fn last_sign(folder: &TrustedFolder) -> Result<String, StoreError> {
        lock::last_sign(folder)
    }

    /// The lease of somebody who stands in for a daemon that has given no sign of life since this one; nothing if one leads after
    /// all. One that stands still is ended if `may_end` says so; the lease is there at a later call then.
    pub(crate) fn take_after(
        folder: &TrustedFolder,
        length: Duration,
        last: &str,
        may_end: bool,
    ) -> Result<Option<Lease>, StoreError> {
        lock::take_after(folder, length, last, may_end)
    }

    /// Opens the state of a daemon that leads.
    pub(crate) fn lead(folder: &TrustedFolder, lease: Lease) -> Result<Self, StoreError> {
        let path = Store::path_in(folder.path());
        for ending in ["", "-wal", "-shm", "-journal", ".new", ".new-wal", ".new-shm"] {
            folder.check(format!("{DATABASE}{ending}"))?;
        }
        let mut reserve = reserve::Reserve::of(folder)?;
        let open = || match path.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => file::create(&path),
            _ => file::open(&path),
        };
        let connection = match open() {
            Err(StoreError::Full { .. } | StoreError::Disk { .. }) if reserve.give_up() => {
                open().inspect_err(|_| reserve.take_what_is_there())?
            }
            opened => opened?,
        };
        reserve.restore();
        let presence = opened_files::OpenedFiles::now(folder.path(), &path);
        Ok(Store { file: Reader { path, connection }, presence, reserve, lease })
    }

    /// The day of a time in milliseconds since 1970, in this machine's time zone, counted from 1970-01-01.
    pub(crate) fn day_of(wall: i64) -> i64 {
        usage::day_of(wall)
    }

    /// The path of the database in a state folder.
    pub fn path_in(folder: &Path) -> PathBuf {
        folder.join(DATABASE)
    }

    /// A connection for reading in another thread, which never blocks the writer. It must be
    /// dropped before the store.
    pub(crate) fn reader(&self) -> Result<Reader, StoreError> {
        Reader::open(&self.file.path)
    }

    /// Writes a batch completely, or not at all if there is an error. It is on the disk when this
    /// returns. After an error, further batches can be tried.
    pub fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.lease.ensure();
        self.is_in_place()?;
        let Reader { path, connection } = &mut self.file;
        write::commit(connection, batch).map_err(|fault| fault.at(path))?;
        self.reserve.restore();
        // A batch written while the file was removed is lost, too.
        self.is_in_place()
    }

    /// The right to lead; see [`Lease::ensure`].
    pub(crate) fn lease(&self) -> &Lease {
        &self.lease
    }

    /// An error if the folder or one of its files was removed or replaced.
    pub(crate) fn is_in_place(&self) -> Result<(), StoreError> {
        self.presence.check()
    }

    /// Removes jobs that ended before a time, with everything about them, and other events from
    /// before: at most `at_most` rows, the oldest first. Jobs that others depend on stay. Returns
    /// the number of removed rows; if it is `at_most` there may be more.
    pub(crate) fn prune(&mut self, before: Instant, at_most: u32) -> Result<u32, StoreError> {
        self.is_in_place()?;
        let Reader { path, connection } = &mut self.file;
        prune::prune(connection, before, at_most).map_err(|fault| fault.at(path))
    }

    /// Gives unused pages back to the disk, if there are many: at most `at_most`. Returns whether
    /// there are more. The file shrinks at the next checkpoint.
    pub(crate) fn shrink(&mut self, at_most: u32) -> Result<bool, StoreError> {
        self.is_in_place()?;
        let Reader { path, connection } = &self.file;
        shrink::shrink(connection, at_most).map_err(|source| error::Fault::Sqlite(source).at(path))
    }

    /// Closes the file properly: the write-ahead log is merged into the database. On a full disk the
    /// log stays, which is as good: the next one to open the file reads it.
    pub(crate) fn close(mut self) -> Result<(), StoreError> {
        let Reader { path, connection } = self.file;
        let closed = file::close(connection).map_err(|fault| error::Fault::Sqlite(fault).at(&path));
        self.reserve.take_what_is_there();
        match closed {
            Err(StoreError::Full { .. }) => Ok(()),
            closed => closed,
        }
    }

    #[cfg(test)]
    fn connection(&self) -> &rusqlite::Connection {
        &self.file.connection
    }
}

/// What can be read can be read from an open store, too.
impl Deref for Store {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        &self.file
    }
}

/// The wall clock at a time, from the current values of both clocks.
fn wall_at((now, wall): (Instant, i64), instant: Instant) -> i64 {
    let distance =
        |span: busbar_core::units::Span| i64::try_from(span.millis()).unwrap_or(i64::MAX);
    // One of the two is zero.
    wall.saturating_sub(distance(now.since(instant))).saturating_add(distance(instant.since(now)))
}
