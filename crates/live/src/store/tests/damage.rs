//! Files that are not as they were written: refused, in words that say what to do, and not touched.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::LazyLock;

use busbar_needs::needs;
use proptest::prelude::*;
use rusqlite::Connection;

use super::super::{Batch, Store, StoreError};
use super::{Everything, everything, over, submission, waiting};
use busbar_core::units::Instant;

const DATABASE: &str = "busbar.db";
const LOG: &str = "busbar.db-wal";

/// The files of a state by their names.
type Files = BTreeMap<String, Vec<u8>>;

/// All files of a folder. The lock and the reserve are not part of the state.
fn files(folder: &Path) -> Files {
    let mut files = Files::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_file() && !["lock", "reserve"].contains(&&*name) {
            files.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    files
}

fn put(files: &Files, folder: &Path) {
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).unwrap();
        fs::set_permissions(folder.join(name), PermissionsExt::from_mode(0o600)).unwrap();
    }
}

/// A state, as files and as what can be asked of it.
struct Image {
    files: Files,
    everything: Everything,
    /// The same before the last batch.
    before: Everything,
}

/// Four hundred jobs, some of them over, some removed so that there are pages without use.
fn fill(store: &mut Store) {
    for round in 0..8 {
        let numbers = round * 50 + 1..=(round + 1) * 50;
        store.commit(&submission(numbers.clone())).unwrap();
        let ended = numbers.filter(|number| number % 3 == 0);
        let changed = ended.map(|number| over(&waiting(number), Instant::from_millis(number)));
        store.commit(&Batch { changed: changed.collect(), ..submission(1..1) }).unwrap();
    }
    store.prune(Instant::from_millis(90), 1000).unwrap();
}

/// A state that was closed properly: all in one file.
static CLOSED: LazyLock<Image> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    fill(&mut store);
    let everything = everything(&store);
    store.close().unwrap();
    let files = files(folder.path());
    assert_eq!(files.keys().collect::<Vec<_>>(), [DATABASE]);
    let before = self::everything(&Store::open(folder.path()).unwrap());
    Image { files, everything, before }
});

/// A state whose daemon was killed: half of it is in the log.
static KILLED: LazyLock<Image> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    fill(&mut store);
    store.close().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    for first in 401..=410 {
        store.commit(&submission(first..=first)).unwrap();
    }
    let before = everything(&store);
    store.commit(&submission(411..=430)).unwrap();
    let mut files = files(folder.path());
    // It is made anew by whoever opens the database.
    files.remove("busbar.db-shm");
    Image { files, everything: everything(&store), before }
});

/// Opens the files: what is in them, or the error. Then nothing may have been touched.
fn opened(files: &Files) -> Result<Everything, StoreError> {
    let folder = tempfile::tempdir().unwrap();
    put(files, folder.path());
    let opened = Store::open(folder.path());
    if opened.is_err() {
        assert!(self::files(folder.path()) == *files, "it was touched");
    }
    opened.map(|store| everything(&store))
}

/// The files with some bytes overwritten.
fn overwritten(files: &Files, name: &str, at: usize, bytes: &[u8]) -> Files {
    let mut files = files.clone();
    let file = files.get_mut(name).unwrap();
    let end = file.len().min(at + bytes.len());
    file[at..end].copy_from_slice(&bytes[..end - at]);
    files
}

#[track_caller]
fn assert_damaged(files: &Files, what: &str) {
    match opened(files) {
        Err(error @ StoreError::Damaged { .. }) => {
            let text = error.to_string();
            for part in [what, "does not start", "backup", ".recover", "Running jobs continue"] {
                assert!(text.contains(part), "{text}");
            }
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was opened"),
    }
}

#[test]
fn what_is_whole_is_opened_also_after_a_kill() {
    assert_eq!(opened(&CLOSED.files).unwrap(), CLOSED.everything);
    assert_eq!(CLOSED.before, CLOSED.everything);
    assert!(KILLED.files[LOG].len() > 30 * 4096);
    assert_eq!(opened(&KILLED.files).unwrap(), KILLED.everything);
    assert_ne!(KILLED.before, KILLED.everything);
}

#[test]
fn damage_in_each_place_is_refused() {
    let garbage = [0xa5; 600];
    let middle = CLOSED.files[DATABASE].len() / 2;
    assert_damaged(&overwritten(&CLOSED.files, DATABASE, 0, &garbage), "its first bytes");
    // The size of a page; the middle of the file; a page of zeros.
    assert_damaged(&overwritten(&CLOSED.files, DATABASE, 16, &[0x7b]), "");
    assert_damaged(&overwritten(&CLOSED.files, DATABASE, middle, &garbage), "");
    assert_damaged(&overwritten(&CLOSED.files, DATABASE, 3 * 4096, &[0; 4096]), "");
    // One letter inside of a value, which SQLite does not notice; also where it stood earlier.
    let text = b"job-400";
    let database = &CLOSED.files[DATABASE];
    let places = (0..database.len()).filter(|place| database[*place..].starts_with(text));
    let letter = places
        .fold(CLOSED.files.clone(), |files, place| overwritten(&files, DATABASE, place + 2, b"y"));
    assert_damaged(
        &letter,
        "a row of the table 'job' has changed since it was written (number 400)",
    );
}

#[test]
fn a_file_that_is_cut_short_is_refused() {
    let whole = &CLOSED.files[DATABASE];
    for (length, what) in
        [(0, "it is empty"), (10, "its first bytes"), (4096, ""), (whole.len() - 4096, "")]
    {
        let files = Files::from([(DATABASE.to_owned(), whole[..length].to_vec())]);
        assert_damaged(&files, what);
    }
    // An empty database with a log: SQLite would begin anew and remove the log.
    let mut files = KILLED.files.clone();
    files.insert(DATABASE.to_owned(), Vec::new());
    assert_damaged(&files, "it is empty");
    files.remove(DATABASE);
    assert_damaged(&files, "it is missing, but its log still exists");
}

#[test]
fn a_log_that_is_not_one_is_refused() {
    let log = |bytes: &[u8]| {
        let mut files = CLOSED.files.clone();
        files.insert(LOG.to_owned(), bytes.to_vec());
        files
    };
    assert_damaged(&log(&[0xa5; 5000]), "the header of the log");
    assert_damaged(&log(b"This is a text that somebody saved under the name of a log."), "header");
    // These hold nothing that was ever committed.
    assert_eq!(opened(&log(b"")).unwrap(), CLOSED.everything);
    assert_eq!(opened(&log(b"half a header")).unwrap(), CLOSED.everything);
}

#[test]
fn a_log_that_breaks_off_in_its_last_commit_is_good() {
    // As if the daemon had been killed in it: what was committed before is there.
    let log = &KILLED.files[LOG];
    for cut in [1, 4096, 5000] {
        let mut files = KILLED.files.clone();
        files.insert(LOG.to_owned(), log[..log.len() - cut].to_vec());
        assert_eq!(opened(&files).unwrap(), KILLED.before, "{cut}");
    }
    // A frame in the middle is another matter: commits after it would be gone.
    assert_damaged(&overwritten(&KILLED.files, LOG, log.len() / 2, &[0xa5; 64]), "before its end");
}

/// The number of pages in the header of a frame says that a commit ends there. Without it, two commits look like one.
#[test]
fn the_header_of_the_last_frame_of_a_commit_is_missed() {
    let log = &KILLED.files[LOG];
    let frames = (32..log.len()).step_by(24 + 4096);
    let commits: Vec<usize> = frames.filter(|at| log[at + 4..at + 8] != [0; 4]).collect();
    let [.., last_but_one, _] = commits[..] else { panic!("{commits:?}") };
    assert_damaged(&overwritten(&KILLED.files, LOG, last_but_one, &[0xa5; 24]), "before its end");
}

#[test]
fn what_is_not_a_state_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(DATABASE);
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE pear (weight)").unwrap();
    let error = opened(&files(folder.path())).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");

    // The form of the tables is at byte 60 of the header.
    let error = opened(&overwritten(&CLOSED.files, DATABASE, 60, &[0, 0, 0, 9])).unwrap_err();
    assert!(matches!(error, StoreError::TooNew { version: 9, known: 4, .. }), "{error}");

    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let error = Store::open(folder.path()).unwrap_err();
    assert!(matches!(error, StoreError::NotAFile { .. }), "{error}");
    assert!(path.is_dir());

    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Store::open(&file).unwrap_err();
    assert!(matches!(error, StoreError::Unwritable { .. }), "{error}");
}

#[needs(ordinary)]
#[test]
fn a_file_that_may_not_be_used_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    put(&CLOSED.files, folder.path());
    let path = folder.path().join(DATABASE);
    let allow = |mode| fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    allow(0);
    let error = Store::open(folder.path()).unwrap_err();
    assert!(matches!(error, StoreError::Unreadable { .. }), "{error}");
    allow(0o400);
    let error = Store::open(folder.path()).unwrap_err();
    assert!(matches!(error, StoreError::Unwritable { .. }), "{error}");
    assert!(files(folder.path()) == CLOSED.files);
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 50, ..ProptestConfig::with_cases(96) })]

    // Wherever bytes change: the file is refused and not touched, or they were of no use to anybody.
    #[test]
    fn no_damage_goes_unnoticed(
        place in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let length = CLOSED.files[DATABASE].len();
        let files = overwritten(&CLOSED.files, DATABASE, place.index(length), &bytes);
        if let Ok(found) = opened(&files) {
            prop_assert!(found == CLOSED.everything);
        }
    }

    // In the log too, except in the last commit: that may be missing as a whole.
    #[test]
    fn no_damage_to_the_log_goes_unnoticed(
        in_log in any::<bool>(),
        place in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let name = if in_log { LOG } else { DATABASE };
        let length = KILLED.files[name].len();
        let files = overwritten(&KILLED.files, name, place.index(length), &bytes);
        if let Ok(found) = opened(&files) {
            prop_assert!(found == KILLED.everything || found == KILLED.before);
        }
    }
}
