//! What is old is removed, and the file stays as large as what is kept.

use std::path::Path;

use super::super::{Batch, Query, Store};
use super::{over, submission, waiting};
use crate::job::{After, Event, EventKind, Phase};
use busbar_core::units::Instant;

#[test]
fn old_jobs_go_with_all_that_is_kept_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    // Ten jobs. 1 to 8 are over, since 1 s to 8 s; 9 and 10 wait, 9 for 2 and 10 for nobody.
    let mut batch = submission(1..=10);
    batch.submitted[8].0.request.after.push(After { job: 2, any: true });
    let notice = |second| Event {
        at: Instant::from_secs(second),
        kind: EventKind::notice(format!("second {second}")),
    };
    batch.events.push(notice(3));
    batch.events.push(notice(30));
    store.commit(&batch).unwrap();
    let ends = (1..=8).map(|job| over(&waiting(job), Instant::from_secs(job as u32)));
    let mut batch = Batch { changed: ends.collect(), ..Batch::default() };
    for entry in &batch.changed {
        let Phase::Over(outcome) = &entry.phase else { unreachable!() };
        let what = EventKind::Ended { job: entry.number, outcome: outcome.clone() };
        batch.events.push(Event { at: outcome.end, kind: what });
    }
    store.commit(&batch).unwrap();

    let left = |store: &Store| -> Vec<u64> {
        (0..=10).filter(|number| store.job(*number).unwrap().is_some()).collect()
    };
    let count = |table: &str, store: &Store| -> u32 {
        let count = format!("SELECT count(*) FROM {table}");
        store.connection().query_row(&count, (), |row| row.get(0)).unwrap()
    };
    assert_eq!(store.prune(Instant::ZERO, 100).unwrap(), 0);
    // The notice of second 3, and one event of job 1: there is no room for more.
    assert_eq!(store.prune(Instant::from_secs(5), 2).unwrap(), 2);
    assert_eq!(left(&store), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    // What is left of 1, then 3 and 4; not 2, which is waited for, and not 5.
    assert_eq!(store.prune(Instant::from_secs(5), 100).unwrap(), 2 + 3 + 3);
    assert_eq!(left(&store), [2, 5, 6, 7, 8, 9, 10]);
    assert_eq!((count("job", &store), count("program", &store)), (7, 7));
    assert_eq!(store.prune(Instant::from_secs(5), 100).unwrap(), 0);
    // When 9 is over, nobody waits for 2.
    let batch = Batch { changed: vec![over(&waiting(9), Instant::from_secs(9))], ..batch };
    store.commit(&Batch { events: Vec::new(), ..batch }).unwrap();
    assert_eq!(store.prune(Instant::from_secs(5), 100).unwrap(), 3);
    assert_eq!(left(&store), [5, 6, 7, 8, 9, 10]);
    // Everything but job 10 and its event; neither numbers nor lines are used again.
    let lines = store.history(Query { limit: 1, ..Query::default() }).unwrap()[0].line;
    store.prune(Instant::NEVER, 100).unwrap();
    assert_eq!((left(&store), count("event", &store)), (vec![10], 1));
    store.commit(&submission(11..=11)).unwrap();
    let last = store.history(Query { limit: 1, ..Query::default() }).unwrap();
    assert_eq!((store.load().unwrap().next, last[0].line), (12, lines + 1));
    drop(store);
    Store::open(folder.path()).unwrap();
}

/// The size of the database and of its log.
fn sizes(folder: &Path) -> (u64, u64) {
    let length = |name: &str| folder.join(name).metadata().map_or(0, |found| found.len());
    (length("busbar.db"), length("busbar.db-wal"))
}

#[test]
fn the_file_stays_as_large_as_what_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let mut largest = (0, 0);
    let mut after_a_tenth = 0;
    // 100 rounds of 40 jobs; the last five rounds are kept.
    for round in 0..100 {
        let numbers = round * 40 + 1..=(round + 1) * 40;
        store.commit(&submission(numbers.clone())).unwrap();
        let end = Instant::from_millis(round);
        let changed = numbers.map(|number| over(&waiting(number), end)).collect();
        store.commit(&Batch { changed, now: (end, 0), ..Batch::default() }).unwrap();
        let removed = store.prune(Instant::from_millis(round.saturating_sub(4)), 1000).unwrap();
        assert_eq!(removed, if round > 4 { 80 } else { 0 });
        let (database, log) = sizes(folder.path());
        largest = (largest.0.max(database), largest.1.max(log));
        if round == 10 {
            // The file itself grows only when the log is taken into it.
            store.connection().query_row("PRAGMA wal_checkpoint", (), |_| Ok(())).unwrap();
            after_a_tenth = sizes(folder.path()).0;
        }
    }
    assert!(largest.0 <= after_a_tenth * 3 / 2, "{largest:?}, {after_a_tenth} after ten rounds");
    // 1000 pages and one transaction.
    assert!(largest.1 <= 6 << 20, "{largest:?}");
    store.close().unwrap();
    assert_eq!(sizes(folder.path()).1, 0);
}

/// Fills a store, removes nearly everything, and says how large the file was and is.
fn filled_and_emptied(store: &mut Store, folder: &Path) -> (u64, u64) {
    let mut batch = submission(1..=2000);
    for (_, program) in &mut batch.submitted {
        program.environment.push(("LARGE".to_owned(), "x".repeat(10_000)));
    }
    store.commit(&batch).unwrap();
    let ends = (2..=2000).map(|job| over(&waiting(job), Instant::from_secs(1)));
    store.commit(&Batch { changed: ends.collect(), ..Batch::default() }).unwrap();
    let empty_log = |store: &Store| {
        store.connection().query_row("PRAGMA wal_checkpoint", (), |_| Ok(())).unwrap();
        sizes(folder).0
    };
    let full = empty_log(store);
    while store.prune(Instant::NEVER, 1000).unwrap() == 1000 {}
    let mut steps = 0;
    while store.shrink(100).unwrap() {
        steps += 1;
        assert!(steps < 1000, "it comes to an end");
    }
    assert!(steps > 10, "a little at a time: {steps}");
    (full, empty_log(store))
}

#[test]
fn room_that_is_not_needed_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let (full, empty) = filled_and_emptied(&mut store, folder.path());
    assert!(full > 20 << 20 && empty < 2 << 20, "{full}, {empty}");
    assert!(store.job(1).unwrap().is_some());
    store.close().unwrap();
    assert_eq!(Store::open(folder.path()).unwrap().load().unwrap().next, 2001);
}

/// Files that were made before they could shrink learn it when they are opened.
#[test]
fn an_old_file_learns_to_shrink() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    store.commit(&submission(1..=1)).unwrap();
    store.connection().execute_batch("PRAGMA auto_vacuum = NONE; VACUUM").unwrap();
    store.prune(Instant::NEVER, 1000).unwrap();
    let before = super::everything(&store);
    store.close().unwrap();
    let kind = |store: &Store| -> u32 {
        store.connection().pragma_query_value(None, "auto_vacuum", |row| row.get(0)).unwrap()
    };
    let old = rusqlite::Connection::open(Store::path_in(folder.path())).unwrap();
    let old_kind: u32 = old.pragma_query_value(None, "auto_vacuum", |row| row.get(0)).unwrap();
    assert_eq!(old_kind, 0);
    drop(old);
    let mut store = Store::open(folder.path()).unwrap();
    assert_eq!(kind(&store), 2);
    assert_eq!(super::everything(&store), before);
    store
        .commit(&Batch { changed: vec![over(&waiting(1), Instant::ZERO)], ..Batch::default() })
        .unwrap();
    store.prune(Instant::NEVER, 1000).unwrap();
    store.close().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    store.commit(&submission(2..=2)).unwrap();
    assert_eq!(store.load().unwrap().jobs.len(), 1);
}
