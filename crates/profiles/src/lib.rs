//! Profiles kept in one SQLite file.
//!
//! A configuration of an application is kept once: measured, or else emulated, or else predicted. What was
//! measured is never overwritten by anything else. Where the same configuration was run several times, the
//! single runs are kept beside it (`runs`), and where memory or GPUs had caps of their own, all settings that
//! were tried (`settings`).

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, TransactionBehavior};

use busbar_core::profile::measured::{Measured, Spread, Summed};
use busbar_core::profile::{Configuration, Origin, Profile, Row};
use busbar_core::units::{Span, Watts};

mod error;
mod file;
mod intake;
mod removal;
mod runs;
mod settings;
#[cfg(test)]
mod tests;

pub use error::StoreError;
use intake::Incoming;
pub use intake::{Existing, Imported};
pub use removal::{Removal, Removed};
/// What SQLite says of a file.
pub use rusqlite::Error as SqliteError;

/// Profiles in a file.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
    /// How the file looked, if it is read without a lock on it.
    unlocked: Option<file::Stamp>,
}

/// An application at a glance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number, in the order in which applications came. Jobs name them by it.
    pub number: NonZeroU32,
    /// Its name.
    pub application: String,
    /// How many of its rows are measured.
    pub measured: usize,
    /// How many are emulated.
    pub emulated: usize,
    /// How many were run without a measurement of their power.
    pub bound: usize,
    /// How many are predicted.
    pub predicted: usize,
    /// From the fewest nodes to the most.
    pub nodes: RangeInclusive<u32>,
    /// From the fewest cores in a node to the most.
    pub cores: RangeInclusive<u32>,
    /// From the lowest cap to the highest.
    pub caps: RangeInclusive<Watts>,
}

impl Store {
    /// Opens a store that is there.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Store::of(path, file::open(path)?))
    }

    /// Opens a store that is there and is to be changed: its tables are brought into today's form.
    pub fn open_to_change(path: &Path) -> Result<Self, StoreError> {
        Store::open(path)?;
        Store::open_or_create(path)
    }

    /// Opens a store, or makes an empty one if there is no such file.
    pub fn open_or_create(path: &Path) -> Result<Self, StoreError> {
        Ok(Store::of(path, file::open_or_create(path)?))
    }

    fn of(path: &Path, file::Opened { connection, unlocked }: file::Opened) -> Self {
        Store { path: path.to_owned(), connection, unlocked }
    }

    /// Whether a path is the store's file or one of those that are kept beside it. To write there
    /// destroys the store.
    pub fn is_made_of(&self, path: &Path) -> bool {
        let place = place(path);
        place.is_some() && file::files(&self.path).iter().any(|file| self::place(file) == place)
    }

    /// Stores profiles: all of their rows or, if one cannot be, none. Predicted rows give way to
    /// measured ones and to later predictions.
    pub fn import(
        &mut self,
        profiles: &[Profile],
        existing: Existing,
    ) -> Result<Imported, StoreError> {
        self.take_in(&profiles.iter().map(Incoming::from).collect::<Vec<_>>(), existing)
    }

    /// Stores measurements with all their runs: a row for each configuration as policies see it, and the
    /// settings, where there are several for one row. All of them or, if one cannot be, none.
    pub fn import_measured(
        &mut self,
        measured: &[Measured],
        existing: Existing,
    ) -> Result<Imported, StoreError> {
        self.take_in(&measured.iter().map(Incoming::from).collect::<Vec<_>>(), existing)
    }

    fn take_in(
        &mut self,
        incoming: &[Incoming<'_>],
        existing: Existing,
    ) -> Result<Imported, StoreError> {
        incoming.iter().try_for_each(intake::check)?;
        let path = &self.path;
        let fail = |source| file::error(path, source);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        // What is not committed is undone.
        let imported = intake::import(&transaction, incoming, existing).map_err(fail)??;
        transaction.commit().map_err(fail)?;
        Ok(imported)
    }

    /// Adds a run that was measured or emulated, and sums up all runs of its configuration in its row, which
    /// is returned.
    pub fn record(&mut self, application: &str, run: Row) -> Result<Row, StoreError> {
        let alone = |row: Row| Incoming::alone(application, row);
        intake::check(&alone(run))?;
        let path = &self.path;
        let fail = |source| file::error(path, source);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        let row = runs::record(&transaction, application, run).map_err(fail)?;
        intake::import(&transaction, &[alone(row)], Existing::Replace).map_err(fail)??;
        transaction.commit().map_err(fail)?;
        Ok(row)
    }

    /// Removes an application's rows, or the predicted ones only. Its number is kept for it.
    pub fn remove(&mut self, application: &str, which: Removal) -> Result<Removed, StoreError> {
        // Says who is there if it is not.
        self.entry(application)?;
        let path = &self.path;
        let fail = |source| file::error(path, source);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        let removed = removal::remove(&transaction, application, which).map_err(fail)?;
        transaction.commit().map_err(fail)?;
        Ok(removed)
    }

    /// The applications at a glance, by number.
    pub fn entries(&self) -> Result<Vec<Entry>, StoreError> {
        self.collect(
            "SELECT number, name, sum(origin = 'measured'), sum(origin = 'predicted'),
                    min(nodes), max(nodes), min(cores), max(cores), min(cap_mw), max(cap_mw),
                    sum(origin = 'emulated'), sum(origin = 'bound')
             FROM application JOIN profile ON application = number
             GROUP BY number ORDER BY number",
            (),
            |row| {
                Ok(Entry {
                    number: row.get(0)?,
                    application: row.get(1)?,
                    measured: row.get(2)?,
                    emulated: row.get(10)?,
                    bound: row.get(11)?,
                    predicted: row.get(3)?,
                    nodes: row.get(4)?..=row.get(5)?,
                    cores: row.get(6)?..=row.get(7)?,
                    caps: watts(row, 8)?..=watts(row, 9)?,
                })
            },
        )
    }

    /// An application at a glance.
    fn entry(&self, application: &str) -> Result<Entry, StoreError> {
        let mut entries = self.entries()?;
        match entries.iter().position(|entry| entry.application == application) {
            Some(place) => Ok(entries.swap_remove(place)),
            None => Err(self.unknown(application, entries)),
        }
    }

    fn unknown(&self, application: &str, entries: Vec<Entry>) -> StoreError {
        StoreError::UnknownApplication {
            path: self.path.clone(),
            application: application.to_owned(),
            known: entries.into_iter().map(|entry| entry.application).collect(),
        }
    }

    /// All that is known of an application.
    pub fn profile(&self, application: &str) -> Result<Profile, StoreError> {
        self.numbered(application).map(|(_, profile)| profile)
    }

    /// All that is known of an application, and its number.
    pub fn numbered(&self, application: &str) -> Result<(NonZeroU32, Profile), StoreError> {
        let (numbers, rows): (Vec<NonZeroU32>, Vec<Row>) = self
            .collect(
                "SELECT nodes, cores, cap_mw, time_ms, power_mw, origin, number
                 FROM application JOIN profile ON application = number
                 WHERE name = ?1 ORDER BY nodes, cores, cap_mw",
                (application,),
                |found| Ok((found.get::<_, NonZeroU32>(6)?, row(found)?)),
            )?
            .into_iter()
            .unzip();
        match numbers.first() {
            Some(number) => Ok((*number, Profile { application: application.to_owned(), rows })),
            None => Err(self.unknown(application, self.entries()?)),
        }
    }

    /// All profiles by the number of the application, less one. A number that no application has any
    /// more has an empty one.
    pub fn by_number(&self) -> Result<Vec<Profile>, StoreError> {
        let mut profiles = Vec::new();
        for (number, profile) in self.profiles()? {
            let nobody = || Profile { application: String::new(), rows: Vec::new() };
            profiles.resize_with(number.get() as usize - 1, nobody);
            profiles.push(profile);
        }
        Ok(profiles)
    }

    /// All that is known of all applications, by number.
    pub fn profiles(&self) -> Result<Vec<(NonZeroU32, Profile)>, StoreError> {
        // One question, so that the answer is of one moment.
        let rows = self.collect(
            "SELECT nodes, cores, cap_mw, time_ms, power_mw, origin, number, name
             FROM application JOIN profile ON application = number
             ORDER BY number, nodes, cores, cap_mw",
            (),
            |found| Ok((row(found)?, found.get(6)?, found.get(7)?)),
        )?;
        let mut profiles: Vec<(NonZeroU32, Profile)> = Vec::new();
        for (row, number, application) in rows {
            match profiles.last_mut().filter(|last| last.0 == number) {
                Some((_, profile)) => profile.rows.push(row),
                None => profiles.push((number, Profile { application, rows: vec![row] })),
            }
        }
        Ok(profiles)
    }

    /// How far apart the runs of each configuration of an application are, where there are several.
    pub fn spreads(
        &self,
        application: &str,
    ) -> Result<BTreeMap<Configuration, Spread>, StoreError> {
        self.answer("run", |connection| runs::spreads(connection, application))
    }

    /// All settings of an application, where memory or GPUs had caps of their own; none if they had not.
    pub fn settings(&self, application: &str) -> Result<Vec<Summed>, StoreError> {
        self.answer("setting", |connection| settings::of(connection, application))
    }

    /// What a table says; nothing if the file is older than the table.
    fn answer<T: Default>(
        &self,
        table: &str,
        ask: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let is_there = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
        let known = self.collect(is_there, (table,), |row| row.get::<_, i32>(0))?;
        match known.is_empty() {
            true => Ok(T::default()),
            false => ask(&self.connection).map_err(|source| file::error(&self.path, source)),
        }
    }

    fn collect<T>(
        &self,
        question: &str,
        parameters: impl rusqlite::Params,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let answer = || -> rusqlite::Result<Vec<T>> {
            self.connection.prepare(question)?.query_map(parameters, read)?.collect()
        };
        let answer = answer();
        // What was read while somebody wrote is neither the old nor the new, nor is an error then.
        if self.unlocked.is_some() && self.unlocked != file::Stamp::of(&self.path) {
            return Err(file::changed(&self.path));
        }
        answer.map_err(|source| file::error(&self.path, source))
    }
}

/// Where a path leads, links followed, whether or not there is something.
fn place(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().or_else(|| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    })
}

/// The first six columns as a row of a profile.
fn row(found: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    let cap = watts(found, 2)?;
    Ok(Row {
        configuration: Configuration { nodes: found.get(0)?, cores: found.get(1)?, cap },
        time: Span::from_millis(found.get(3)?),
        power: watts(found, 4)?,
        // The table holds nothing but these.
        origin: Origin::named(found.get_ref(5)?.as_str()?).unwrap_or(Origin::Predicted),
    })
}

fn watts(found: &rusqlite::Row<'_>, place: usize) -> rusqlite::Result<Watts> {
    found.get(place).map(Watts::from_milliwatts)
}
