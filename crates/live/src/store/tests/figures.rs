//! How long things take. Nothing is asserted; to see the figures:
//!
//! ```text
//! cargo test --release --lib live::store -- --ignored --nocapture
//! ```

use std::time::Instant as Clock;

use super::super::{Batch, Query, Store};
use super::{over, submission, waiting};
use crate::job::{Event, EventKind};
use busbar_core::units::Instant;

/// How long work takes, and how much of that is this thread's own; the rest is the disk, and others who
/// use the machine.
fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (begin, own) = (Clock::now(), own_time());
    let done = work();
    let (all, own) = (begin.elapsed().as_secs_f64() * 1e3, own_time() - own);
    println!("{what:<46} {all:>9.2} ms, of which {own:>9.2} ms on a core");
    done
}

/// Milliseconds that this thread was on a core.
fn own_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

#[test]
#[ignore = "prints figures"]
fn figures() {
    // Beside the build, as folders for temporary files are often in memory.
    let folder = tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap();
    let mut store = timed("a new store", || Store::open(folder.path()).unwrap());
    // Environments are most of what is kept.
    let environment: Vec<(String, String)> =
        (0..40).map(|place| (format!("VARIABLE_{place}"), "x".repeat(60))).collect();
    let batch_of = |numbers: std::ops::Range<u64>| {
        let mut batch = submission(numbers);
        for (_, program) in &mut batch.submitted {
            program.environment.clone_from(&environment);
        }
        batch
    };
    for round in 0..19 {
        let batch = batch_of(round * 500 + 1..(round + 1) * 500 + 1);
        store.commit(&batch).unwrap();
    }
    let batch = batch_of(9501..10_001);
    timed("500 jobs submitted in one batch, of 10 000", || store.commit(&batch).unwrap());
    timed("one job changed, 200 times", || {
        for place in 1..=200 {
            let what = EventKind::Held { job: place, held: false, by: None };
            let events = vec![Event { at: Instant::ZERO, kind: what }];
            let batch = Batch { changed: vec![waiting(place)], events, ..Batch::default() };
            store.commit(&batch).unwrap();
        }
    });
    for _ in 0..9 {
        let what = |job| Event { at: Instant::ZERO, kind: EventKind::Suspended { job } };
        store
            .commit(&Batch { events: (1..=10_000).map(what).collect(), ..Batch::default() })
            .unwrap();
    }
    let saved = timed("10 000 jobs loaded", || store.load().unwrap());
    assert_eq!(saved.jobs.len(), 10_000);
    let query = Query { limit: 100, ..Query::default() };
    timed("the last 100 of 100 000 lines", || store.history(query).unwrap());
    timed("100 lines of one job", || store.history(Query { job: Some(77), ..query }).unwrap());
    timed("a job", || store.job(77).unwrap());
    drop(store);
    let size = Store::path_in(folder.path()).metadata().unwrap().len();
    println!("{:<46} {:>9.2} MiB", "the file", size as f64 / f64::from(1 << 20));
    let mut store = timed("opened, and looked through", || Store::open(folder.path()).unwrap());
    let changed = (1..=10_000).map(|number| over(&waiting(number), Instant::ZERO)).collect();
    let batch = Batch { changed, ..Batch::default() };
    timed("10 000 jobs ended in one batch", || store.commit(&batch).unwrap());
    timed("1000 rows removed", || store.prune(Instant::NEVER, 1000).unwrap());
    timed("closed", || store.close().unwrap());
}
