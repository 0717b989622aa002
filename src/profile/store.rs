//! Profiles kept in one SQLite file.
//!
//! A configuration of an application is kept once: measured, or else predicted. What was measured
//! is never overwritten by what was predicted.

use std::io;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, TransactionBehavior};

use crate::profile::{Configuration, Origin, Profile, Row};
use crate::units::{Span, Watts};

mod file;
mod intake;

pub use intake::{Existing, Imported};

/// Profiles in a file.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
}

/// Why profiles could not be kept or found.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such file.
    #[error(
        "there is no profile database {}; make one with 'busbar profile import FILE.csv' or \
         'busbar profile generate cab', or name another with --profiles",
        path.display()
    )]
    Missing {
        /// Which file.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("{} is not a profile database; name another file with --profiles", path.display())]
    NotAStore {
        /// Which file.
        path: PathBuf,
    },
    /// A later version of the program made it.
    #[error(
        "{} was made by a newer busbar: its tables have form {version}, and this busbar knows forms \
         up to {known}; use the newer one, or export with it and import the table here",
        path.display()
    )]
    TooNew {
        /// Which file.
        path: PathBuf,
        /// The form it has.
        version: i32,
        /// The last form that is known.
        known: i32,
    },
    /// Nothing is known of an application.
    #[error("{} has no profile of '{application}'; {}", path.display(), there_are(known))]
    UnknownApplication {
        /// Which file.
        path: PathBuf,
        /// Who was asked for.
        application: String,
        /// Who is there.
        known: Vec<String>,
    },
    /// The configuration was measured before.
    #[error("{application} on {configuration} is already measured")]
    AlreadyMeasured {
        /// Which application.
        application: String,
        /// In which configuration.
        configuration: Configuration,
    },
    /// An application may not be called this.
    #[error("{application:?} is no name for an application; write a word or more on one line")]
    BadName {
        /// What it was called.
        application: String,
    },
    /// A row says what cannot be.
    #[error("{application} on {configuration}: the {field} must be above zero, and not absurd")]
    BadRow {
        /// Which application.
        application: String,
        /// In which configuration.
        configuration: Configuration,
        /// Which field.
        field: &'static str,
    },
    /// The file cannot be made or written to.
    #[error("cannot write to the profile database {}", path.display())]
    Unwritable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What is in the file cannot be read or changed.
    #[error("cannot use the profile database {}", path.display())]
    Database {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
}

/// The first few names of those there are.
fn there_are(known: &[String]) -> String {
    const FEW: usize = 8;
    match known.len() {
        0 => "it is empty: 'busbar profile import FILE.csv' fills it".to_owned(),
        count if count > FEW => {
            format!("there are {}, and {} more", known[..FEW].join(", "), count - FEW)
        }
        _ => format!("there are {}", known.join(", ")),
    }
}

/// An application at a glance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number, in the order in which applications came. Jobs name them by it.
    pub number: NonZeroU32,
    /// What it is called.
    pub application: String,
    /// How many of its rows are measured.
    pub measured: usize,
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
        Ok(Store { path: path.to_owned(), connection: file::open(path)? })
    }

    /// Opens a store, or makes an empty one if there is no such file.
    pub fn open_or_create(path: &Path) -> Result<Self, StoreError> {
        Ok(Store { path: path.to_owned(), connection: file::open_or_create(path)? })
    }

    /// Stores profiles: all of their rows or, if one cannot be, none. Predicted rows give way to
    /// measured ones and to later predictions.
    pub fn import(
        &mut self,
        profiles: &[Profile],
        existing: Existing,
    ) -> Result<Imported, StoreError> {
        profiles.iter().try_for_each(intake::check)?;
        let path = &self.path;
        let fail = |source| file::error(path, source);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fail)?;
        // What is not committed is undone.
        let imported = intake::import(&transaction, profiles, existing).map_err(fail)??;
        transaction.commit().map_err(fail)?;
        Ok(imported)
    }

    /// The applications at a glance, by number.
    pub fn entries(&self) -> Result<Vec<Entry>, StoreError> {
        self.collect(
            "SELECT number, name, sum(origin = 'measured'), sum(origin = 'predicted'),
                    min(nodes), max(nodes), min(cores), max(cores), min(cap_mw), max(cap_mw)
             FROM application JOIN profile ON application = number
             GROUP BY number ORDER BY number",
            (),
            |row| {
                Ok(Entry {
                    number: row.get(0)?,
                    application: row.get(1)?,
                    measured: row.get(2)?,
                    predicted: row.get(3)?,
                    nodes: row.get(4)?..=row.get(5)?,
                    cores: row.get(6)?..=row.get(7)?,
                    caps: watts(row, 8)?..=watts(row, 9)?,
                })
            },
        )
    }

    /// An application at a glance.
    pub fn entry(&self, application: &str) -> Result<Entry, StoreError> {
        let mut entries = self.entries()?;
        match entries.iter().position(|entry| entry.application == application) {
            Some(place) => Ok(entries.swap_remove(place)),
            None => Err(StoreError::UnknownApplication {
                path: self.path.clone(),
                application: application.to_owned(),
                known: entries.into_iter().map(|entry| entry.application).collect(),
            }),
        }
    }

    /// All that is known of an application.
    pub fn profile(&self, application: &str) -> Result<Profile, StoreError> {
        let rows = self.collect(
            "SELECT nodes, cores, cap_mw, time_ms, power_mw, origin
             FROM application JOIN profile ON application = number
             WHERE name = ?1 ORDER BY nodes, cores, cap_mw",
            (application,),
            row,
        )?;
        if rows.is_empty() {
            // Says who is there instead.
            self.entry(application)?;
        }
        Ok(Profile { application: application.to_owned(), rows })
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

    fn collect<T>(
        &self,
        question: &str,
        parameters: impl rusqlite::Params,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let answer = || -> rusqlite::Result<Vec<T>> {
            self.connection.prepare(question)?.query_map(parameters, read)?.collect()
        };
        answer().map_err(|source| file::error(&self.path, source))
    }
}

/// The first six columns as a row of a profile.
fn row(found: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    let cap = watts(found, 2)?;
    Ok(Row {
        configuration: Configuration { nodes: found.get(0)?, cores: found.get(1)?, cap },
        time: Span::from_millis(found.get(3)?),
        power: watts(found, 4)?,
        // The table holds nothing but these two.
        origin: match found.get_ref(5)?.as_str()? {
            "measured" => Origin::Measured,
            _ => Origin::Predicted,
        },
    })
}

fn watts(found: &rusqlite::Row<'_>, place: usize) -> rusqlite::Result<Watts> {
    found.get(place).map(Watts::from_milliwatts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn row(nodes: u32, millis: u64, origin: Origin) -> Row {
        Row {
            configuration: Configuration { nodes, cores: 16, cap: Watts::from_watts(115) },
            time: Span::from_millis(millis),
            power: Watts::from_watts(nodes * 150),
            origin,
        }
    }

    fn measured(nodes: u32, millis: u64) -> Row {
        row(nodes, millis, Origin::Measured)
    }

    fn predicted(nodes: u32, millis: u64) -> Row {
        row(nodes, millis, Origin::Predicted)
    }

    fn profile(application: &str, rows: &[Row]) -> Profile {
        Profile { application: application.to_owned(), rows: rows.to_vec() }
    }

    fn store() -> (TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(&folder.path().join("profiles.db")).unwrap();
        (folder, store)
    }

    #[test]
    fn what_is_stored_is_there_when_it_is_opened_again() {
        let (folder, mut store) = store();
        let sp = profile("SP-MZ", &[measured(6, 447_900), predicted(8, 415_300)]);
        let lu = profile("LU-MZ", &[measured(6, 1)]);
        let imported = store.import(&[sp.clone(), lu.clone()], Existing::Refuse).unwrap();
        assert_eq!(imported, Imported { new_applications: 2, added: 3, ..Imported::default() });
        drop(store);
        let files = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files, 1, "the write-ahead log is gone when nobody needs it");

        let store = Store::open(&folder.path().join("profiles.db")).unwrap();
        assert_eq!(store.profile("SP-MZ").unwrap(), sp);
        let numbers = [1, 2].map(|number| NonZeroU32::new(number).unwrap());
        assert_eq!(store.profiles().unwrap(), [(numbers[0], sp), (numbers[1], lu)]);
        let mode = store.connection.pragma_query_value(None, "journal_mode", |row| row.get(0));
        assert_eq!(mode, Ok("wal".to_owned()));
        assert_eq!(
            store.entries().unwrap()[0],
            Entry {
                number: numbers[0],
                application: "SP-MZ".to_owned(),
                measured: 1,
                predicted: 1,
                nodes: 6..=8,
                cores: 16..=16,
                caps: Watts::from_watts(115)..=Watts::from_watts(115),
            }
        );
    }

    #[test]
    fn what_was_measured_gives_way_only_to_what_was_measured() {
        let (_folder, mut store) = store();
        let mut import = |rows: &[Row], existing| {
            let imported = store.import(&[profile("SP", rows)], existing);
            (imported.map(|i| (i.added, i.replaced, i.left_out)), store.profile("SP").unwrap().rows)
        };
        let (first, second) = (predicted(1, 10), predicted(1, 20));
        assert_eq!(import(&[first], Existing::Refuse).1, [first]);
        assert_eq!(import(&[second], Existing::Refuse).1, [second]);
        let (first, second) = (measured(1, 30), measured(1, 40));
        assert_eq!(import(&[first], Existing::Refuse).1, [first]);
        let (imported, rows) = import(&[predicted(1, 50), predicted(2, 50)], Existing::Replace);
        assert_eq!(imported.unwrap(), (1, 0, 1));
        assert_eq!(rows, [first, predicted(2, 50)]);
        let (imported, rows) = import(&[second, measured(2, 60)], Existing::Replace);
        assert_eq!(imported.unwrap(), (0, 2, 0));
        assert_eq!(rows, [second, measured(2, 60)]);
    }

    #[test]
    fn all_or_nothing() {
        let (_folder, mut store) = store();
        store.import(&[profile("SP", &[measured(2, 10)])], Existing::Refuse).unwrap();
        let before = store.profiles().unwrap();
        let mut refused = |profiles: &[Profile]| {
            let error = store.import(profiles, Existing::Refuse).unwrap_err().to_string();
            assert_eq!(store.profiles().unwrap(), before);
            error
        };
        let new = profile("LU", &[measured(1, 10)]);
        assert_eq!(
            refused(&[new.clone(), profile("SP", &[measured(1, 10), measured(2, 10)])]),
            "SP on 2 nodes × 16 cores at 115W is already measured"
        );
        assert!(refused(&[new.clone(), profile(" ", &[])]).contains("no name for an application"));
        assert_eq!(
            refused(&[new.clone(), profile("SP", &[measured(3, 0)])]),
            "SP on 3 nodes × 16 cores at 115W: the time must be above zero, and not absurd"
        );
        // Nor is a number used up by what was undone, or by nothing.
        let nothing = profile("nothing", &[]);
        store.import(&[nothing, new], Existing::Refuse).unwrap();
        let entries = store.entries().unwrap();
        assert_eq!((entries[1].application.as_str(), entries[1].number.get()), ("LU", 2));
    }

    #[test]
    fn an_application_without_a_profile_is_named() {
        let (_folder, mut store) = store();
        let error = |store: &Store| store.profile("XY").unwrap_err().to_string();
        assert!(error(&store).contains("has no profile of 'XY'; it is empty"));
        let profiles: Vec<_> =
            (0..10).map(|n| profile(&format!("A{n}"), &[measured(1, 1)])).collect();
        store.import(&profiles, Existing::Refuse).unwrap();
        assert!(
            error(&store).ends_with("there are A0, A1, A2, A3, A4, A5, A6, A7, and 2 more"),
            "{}",
            error(&store)
        );
    }

    #[test]
    fn other_files_are_told_from_ours() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profiles.db");
        let both = |path: &Path| {
            let error = Store::open(path).unwrap_err().to_string();
            (error, Store::open_or_create(path).map(drop).map_err(|error| error.to_string()))
        };
        let (error, created) = both(&path);
        assert!(error.contains("make one with 'busbar profile import FILE.csv'"), "{error}");
        assert_eq!(created, Ok(()));

        Connection::open(&path).unwrap().pragma_update(None, "user_version", 7).unwrap();
        let (error, created) = both(&path);
        assert!(error.contains("newer busbar: its tables have form 7"), "{error}");
        assert_eq!(created, Err(error));

        for (name, content) in
            [("text", "application,nodes\n".repeat(100)), ("empty", String::new())]
        {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        let (error, created) = both(&folder.path().join("text"));
        assert!(error.contains("text is not a profile database"), "{error}");
        assert_eq!(created, Err(error));
        // Nothing is in the way of making a store of an empty file.
        let (error, created) = both(&folder.path().join("empty"));
        assert!(error.contains("empty is not a profile database"), "{error}");
        assert_eq!(created, Ok(()));

        let foreign = folder.path().join("foreign");
        Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE profile (a)").unwrap();
        let (error, created) = both(&foreign);
        assert!(error.contains("foreign is not a profile database"), "{error}");
        assert_eq!(created, Err(error));

        assert!(matches!(
            Store::open_or_create(&folder.path().join("no/such/folder")),
            Err(StoreError::Unwritable { .. })
        ));
    }

    #[test]
    fn many_may_come_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profiles.db");
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    let mut store = Store::open_or_create(path).unwrap();
                    let profile = profile(&format!("A{thread}"), &[measured(1, 1)]);
                    store.import(&[profile], Existing::Refuse).unwrap();
                });
            }
        });
        let store = Store::open(&path).unwrap();
        let numbers: Vec<u32> =
            store.entries().unwrap().iter().map(|entry| entry.number.get()).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    /// The tables hold what they should, whoever writes to them.
    #[test]
    fn the_tables_mind_what_they_are_given() {
        let (_folder, mut store) = store();
        store.import(&[profile("SP", &[measured(1, 1)])], Existing::Refuse).unwrap();
        for wrong in [
            "UPDATE profile SET time_ms = 0",
            "UPDATE profile SET time_ms = 1.5",
            "UPDATE profile SET power_mw = 'much'",
            "UPDATE profile SET origin = 'guessed'",
            "UPDATE profile SET application = 2",
            "DELETE FROM application",
            "INSERT INTO application (name) VALUES ('SP')",
        ] {
            assert!(store.connection.execute(wrong, ()).is_err(), "{wrong}");
        }
    }
}
