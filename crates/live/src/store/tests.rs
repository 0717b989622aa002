//! What is written, what is refused, and who may look: values by hand.

use super::*;
use crate::job::{EndReason, EventKind, JobOutcome, JobRequest, Owner, Phase};
use crate::wire::HistoryLine;
use busbar_core::units::{Joules, Span};

mod arrays;
mod crash;
mod damage;
mod figures;
mod finished;
mod pruning;
mod round_trip;
mod strategies;
mod versions;

/// A job that waits.
pub(super) fn waiting(number: u64) -> Entry {
    Entry {
        number,
        owner: Owner { user: 1000, group: 100 },
        request: JobRequest {
            name: format!("job-{number}"),
            nodes: 2,
            moldable: None,
            time: Span::from_secs(60),
            application: None,
            slowdown: None,
            after: Vec::new(),
            held: false,
            account: None,
            part: Default::default(),
        },
        submit: Instant::from_millis(number),
        attempts: 0,
        phase: Phase::Waiting,
        array: None,
        handle: None,
    }
}

/// The same job, over since an instant.
pub(super) fn over(entry: &Entry, end: Instant) -> Entry {
    let outcome = JobOutcome {
        start: None,
        end,
        how: None,
        reason: Some(EndReason::Cancelled),
        energy: Joules::ZERO,
        nodes: Vec::new(),
        by: None,
        full_speed: None,
    };
    Entry { phase: Phase::Over(outcome), ..entry.clone() }
}

/// What a job does.
pub(super) fn program(number: u64) -> Program {
    Program {
        command: vec!["sleep".to_owned(), number.to_string()],
        folder: "/home/ada".into(),
        environment: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
        output: "out-%j".into(),
        errors: None,
    }
}

/// Jobs that are submitted together, each with its event.
pub(super) fn submission(numbers: impl Iterator<Item = u64>) -> Batch {
    let mut batch = Batch::default();
    for number in numbers {
        let at = Instant::from_millis(number);
        batch.submitted.push((waiting(number), program(number)));
        batch.events.push(Event { at, kind: EventKind::Submitted { job: number, element: None } });
        batch.now = (at, 1_000_000 + number as i64);
    }
    batch
}

/// All that can be asked of a store.
#[derive(Debug, PartialEq)]
pub(super) struct Everything {
    saved: Saved,
    jobs: Vec<Option<StoredJob>>,
    history: Vec<HistoryLine>,
}

pub(super) fn everything(store: &Store) -> Everything {
    let saved = store.load().unwrap();
    let jobs = (0..=saved.next).map(|number| store.job(number).unwrap()).collect();
    let history = store.history(Query { limit: u32::MAX, ..Query::default() }).unwrap();
    Everything { saved, jobs, history }
}

#[test]
fn a_new_store_is_empty_and_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let outside = tempfile::tempdir().unwrap();
    let folder = outside.path().join("100% of #1?é").join("state");
    let store = Store::open(&folder).unwrap();
    assert_eq!(store.load().unwrap(), Saved { next: 1, ..Saved::default() });
    for file in ["busbar.db", "busbar.db-wal", "busbar.db-shm"] {
        let mode = folder.join(file).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    store.close().unwrap();
    let mut left: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["busbar.db", "lock", "reserve"]);
    assert_eq!(Store::open(&folder).unwrap().load().unwrap().next, 1);
}

#[test]
fn the_wall_clock_is_remembered_as_it_was() {
    // A job is submitted at 10 s, which is 500 000 on the wall. Then the wall is set back by an hour.
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let mut entry = Entry { submit: Instant::from_secs(10), ..waiting(1) };
    let batch = Batch {
        submitted: vec![(entry.clone(), program(1))],
        now: (Instant::from_secs(11), 501_000),
        ..Batch::default()
    };
    store.commit(&batch).unwrap();
    entry = over(&entry, Instant::from_secs(20));
    let batch = Batch {
        changed: vec![entry],
        now: (Instant::from_secs(21), 511_000 - 3_600_000),
        ..Batch::default()
    };
    store.commit(&batch).unwrap();
    let walls = store.job(1).unwrap().unwrap().walls;
    assert_eq!(walls, WallTimes { submit: 500_000, start: None, end: Some(510_000 - 3_600_000) });
    let stamp = store.load().unwrap().last.unwrap();
    let last = (stamp.now, stamp.wall);
    assert_eq!(wall_at(last, Instant::from_secs(31)), 521_000 - 3_600_000);
    assert_eq!(wall_at(last, Instant::from_secs(1)), 491_000 - 3_600_000);
}

#[test]
fn numbers_beyond_all_jobs_are_nobodys() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    store.commit(&submission(1..=3)).unwrap();
    assert_eq!(store.job(u64::MAX).unwrap(), None);
    assert_eq!(store.program(u64::MAX).unwrap(), None);
    let query = Query { limit: 9, ..Query::default() };
    assert_eq!(store.history(Query { job: Some(u64::MAX), ..query }).unwrap(), []);
    assert_eq!(store.history(Query { after: Some(u64::MAX), ..query }).unwrap(), []);
}

#[test]
fn a_batch_that_cannot_be_written_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    store.commit(&submission(1..=3)).unwrap();
    let before = everything(&store);

    let mut unknown = submission(4..=5);
    unknown.changed.push(waiting(99));
    let error = store.commit(&unknown).unwrap_err();
    assert!(matches!(error, StoreError::UnknownJob { job: 99, .. }), "{error}");
    assert_eq!(everything(&store), before);

    // Twice the same number; an event about nobody.
    assert!(store.commit(&submission([4, 4].into_iter())).is_err());
    assert_eq!(everything(&store), before);
    let what = EventKind::Suspended { job: 77 };
    let event = Event { at: Instant::ZERO, kind: what };
    assert!(store.commit(&Batch { events: vec![event], ..submission(4..=4) }).is_err());
    assert_eq!(everything(&store), before);

    store.commit(&submission(4..=5)).unwrap();
    assert_eq!(store.load().unwrap().next, 6);
}

#[test]
fn a_full_disk_leaves_nothing_and_the_next_try_works() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    store.commit(&submission(1..=50)).unwrap();
    let before = everything(&store);
    let pages: i64 =
        store.connection().pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    let limit = |store: &Store, pages: i64| {
        let set = format!("PRAGMA max_page_count = {pages}");
        store.connection().query_row(&set, (), |_| Ok(())).unwrap();
    };
    limit(&store, pages + 5);
    for _ in 0..3 {
        let error = store.commit(&submission(51..=1000)).unwrap_err();
        assert!(matches!(error, StoreError::Full { .. }), "{error}");
        assert!(error.to_string().contains("is full; nothing was written"), "{error}");
        assert_eq!(everything(&store), before);
    }
    limit(&store, 1 << 20);
    store.commit(&submission(51..=1000)).unwrap();
    drop(store);
    assert_eq!(Store::open(folder.path()).unwrap().load().unwrap().jobs.len(), 1000);
}

#[test]
fn one_daemon_for_each_state() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let error = Store::open(folder.path()).unwrap_err();
    let me = std::process::id();
    assert!(matches!(error, StoreError::InUse { process: Some(who), .. } if who == me), "{error}");
    assert!(error.to_string().contains(&format!("another daemon, process {me};")), "{error}");
    drop(store);
    Store::open(folder.path()).unwrap();
}

/// As after a daemon that was killed while it started a process: somebody has the lock a little longer.
#[test]
fn a_lock_that_is_about_to_be_given_back_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    // No process has this number.
    std::fs::write(folder.path().join("lock"), format!("{}\n", i32::MAX)).unwrap();
    std::thread::scope(|scope| {
        let next = scope.spawn(|| Store::open(folder.path()).map(|store| store.close()));
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert!(!next.is_finished(), "it waits");
        drop(store);
        next.join().unwrap().unwrap().unwrap();
    });
}

#[test]
fn readers_see_what_is_committed_and_keep_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    store.commit(&submission(1..=2)).unwrap();
    let reader = store.reader().unwrap();
    let thread = std::thread::spawn(move || {
        let first = reader.load().unwrap().next;
        // A question that is not finished yet, for as long as the store writes.
        let mut statement = reader.connection.prepare("SELECT number FROM job").unwrap();
        let mut rows = statement.query(()).unwrap();
        rows.next().unwrap();
        store.commit(&submission(3..=4)).unwrap();
        drop(rows);
        drop(statement);
        (first, reader.load().unwrap().next, store)
    });
    let (first, second, _store) = thread.join().unwrap();
    assert_eq!((first, second), (3, 5));
}
