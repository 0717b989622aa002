//! What a store keeps, refuses and tells from other files.

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
            emulated: 0,
            bound: 0,
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
    assert!(refused(&[new.clone(), profile(" ", &[])]).contains("not a valid application name"));
    assert_eq!(
        refused(&[new.clone(), profile("SP", &[measured(3, 0)])]),
        "SP on 3 nodes × 16 cores at 115W: the time must be above zero and below the maximum"
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
    let profiles: Vec<_> = (0..10).map(|n| profile(&format!("A{n}"), &[measured(1, 1)])).collect();
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
    assert!(error.contains("newer busbar: its tables have version 7"), "{error}");
    assert_eq!(created, Err(error));

    for (name, content) in [("text", "application,nodes\n".repeat(100)), ("empty", String::new())] {
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

#[test]
fn what_is_removed_leaves_the_numbers_as_they_are() {
    let (_folder, mut store) = store();
    let sp = profile("SP", &[measured(1, 1), predicted(2, 2), predicted(3, 3)]);
    let lu = profile("LU", &[measured(1, 1)]);
    store.import(&[sp.clone(), lu], Existing::Refuse).unwrap();
    let removed = store.remove("SP", Removal::Predicted).unwrap();
    assert_eq!(removed, Removed { measured: 0, predicted: 2 });
    assert_eq!(store.profile("SP").unwrap().rows, [measured(1, 1)]);
    let removed = store.remove("SP", Removal::All).unwrap();
    assert_eq!(removed, Removed { measured: 1, predicted: 0 });
    let error = store.remove("SP", Removal::All).unwrap_err().to_string();
    assert!(error.ends_with("has no profile of 'SP'; there is LU"), "{error}");
    assert_eq!(store.entry("LU").unwrap().number.get(), 2);
    store.import(&[profile("BT", &[measured(1, 1)]), sp], Existing::Refuse).unwrap();
    let numbers = ["SP", "LU", "BT"].map(|name| store.numbered(name).unwrap().0.get());
    assert_eq!(numbers, [1, 2, 3]);
}

#[test]
fn somebody_who_writes_is_waited_for_and_then_named() {
    let (folder, mut store) = store();
    store.connection.busy_timeout(std::time::Duration::ZERO).unwrap();
    let other = Connection::open(folder.path().join("profiles.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.import(&[profile("SP", &[measured(1, 1)])], Existing::Refuse).unwrap_err();
    assert!(error.to_string().starts_with("another process is writing to"), "{error}");
    assert!(error.to_string().ends_with("try again"), "{error}");
}

#[test]
fn a_folder_is_no_store() {
    let folder = tempfile::tempdir().unwrap();
    for opened in [Store::open(folder.path()), Store::open_or_create(folder.path())] {
        let error = opened.unwrap_err().to_string();
        assert!(error.ends_with("is a folder; name a file in it with --profiles"), "{error}");
    }
}

#[test]
fn a_store_knows_its_files() {
    let (folder, store) = store();
    let within = |name: &str| folder.path().join(name);
    std::fs::create_dir(within("folder")).unwrap();
    for name in ["profiles.db", "profiles.db-wal", "folder/../profiles.db-journal"] {
        assert!(store.is_made_of(&within(name)), "{name}");
    }
    for name in ["profiles.csv", "folder/profiles.db", "none/profiles.db", ""] {
        assert!(!store.is_made_of(&within(name)), "{name}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(within("profiles.db"), within("link")).unwrap();
        assert!(store.is_made_of(&within("link")));
    }
}

/// Three runs of one configuration: the middle time, and the highest power. What was only emulated does not
/// replace what was measured, and what was imported counts as a run.
#[test]
fn runs_are_summed_up() {
    let (_folder, mut store) = store();
    let run =
        |millis, watts, origin| Row { power: Watts::from_watts(watts), ..row(1, millis, origin) };
    let only = |store: &Store| store.profile("SP").unwrap().rows;
    let (one, two, three) = (
        run(10_000, 150, Origin::Emulated),
        run(9_000, 140, Origin::Emulated),
        run(30_000, 145, Origin::Emulated),
    );
    assert_eq!(store.record("SP", one).unwrap(), one);
    assert_eq!(store.record("SP", two).unwrap(), one, "of two, the slower one");
    assert_eq!(store.record("SP", three).unwrap(), one);
    assert_eq!(only(&store), [one]);
    let imported = run(20_000, 160, Origin::Measured);
    store.import(&[profile("SP", &[imported])], Existing::Refuse).unwrap();
    let run = run(40_000, 170, Origin::Measured);
    assert_eq!(store.record("SP", run).unwrap(), Row { time: run.time, ..run });
    assert_eq!(only(&store), [run]);
    assert_eq!(store.record("SP", one).unwrap(), one, "the emulated ones together");
    assert_eq!(only(&store), [run], "what was measured stays");
    let removed = store.remove("SP", Removal::All).unwrap();
    assert_eq!(removed, Removed { measured: 1, predicted: 0 });
    assert_eq!(store.record("SP", two).unwrap(), two, "nothing is left of the others");
}

/// Three runs of one configuration; importing another table in their place takes them away.
#[test]
fn imported_runs_are_kept_with_their_spread() {
    use busbar_core::profile::measured::{OtherCaps, Run, Sampled, Setting};
    let (_folder, mut store) = store();
    let sampled = |gpu: Option<u32>, millis: &[u64]| Sampled {
        setting: Setting {
            configuration: measured(1, 1).configuration,
            others: OtherCaps { memory: None, gpu: gpu.map(Watts::from_watts) },
        },
        origin: Origin::Measured,
        runs: millis
            .iter()
            .map(|millis| Run { time: Span::from_millis(*millis), power: Watts::from_watts(100) })
            .collect(),
    };
    let measured = |settings| Measured { application: "SP".to_owned(), settings };
    let plain = measured(vec![sampled(None, &[30, 10, 20])]);
    store.import_measured(&[plain], Existing::Refuse).unwrap();
    assert_eq!(store.profile("SP").unwrap().rows[0].time, Span::from_millis(20));
    let spreads = store.spreads("SP").unwrap();
    let spread = spreads.values().next().unwrap();
    assert_eq!((spread.runs, spread.longest), (3, Span::from_millis(30)));
    assert!(store.settings("SP").unwrap().is_empty());
    // One more run is summed up with them.
    let run = Row { time: Span::from_millis(40), ..store.profile("SP").unwrap().rows[0] };
    assert_eq!(store.record("SP", run).unwrap().time, Span::from_millis(30));
    let single = measured(vec![sampled(None, &[50])]);
    store.import_measured(&[single], Existing::Replace).unwrap();
    assert_eq!(store.profile("SP").unwrap().rows[0].time, Span::from_millis(50));
    assert!(store.spreads("SP").unwrap().is_empty());
    // With caps of several parts all settings are kept, and their totals are rows.
    let divided = measured(vec![sampled(Some(50), &[7]), sampled(Some(60), &[8, 9])]);
    let imported = store.import_measured(std::slice::from_ref(&divided), Existing::Refuse).unwrap();
    assert_eq!((imported.added, imported.replaced), (2, 0));
    let settings = store.settings("SP").unwrap();
    let expected: Vec<Summed> = divided.settings.iter().filter_map(Sampled::summed).collect();
    assert_eq!(settings, expected);
    store.import_measured(&[divided], Existing::Replace).unwrap();
    assert_eq!(store.settings("SP").unwrap().len(), 2);
    store.remove("SP", Removal::All).unwrap();
    assert!(store.settings("SP").unwrap().is_empty());
}
