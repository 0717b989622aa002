//! Files of earlier versions are opened, and their JSON is read and written without a change.

use std::fs;
use std::io::Read;

use flate2::read::GzDecoder;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::{Query, Store};
use crate::job::{Element, End, EndReason, Entry, Event, Phase, Program};
use busbar_core::units::Instant;

/// Version 1: jobs that ended well and badly, ran, were held, waited for others, were elements of an array
/// or were cancelled, and a budget that an operator had set.
pub(super) const VERSION_1: &[u8] = include_bytes!("form-1.db.gz");

fn opened() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = Vec::new();
    GzDecoder::new(VERSION_1).read_to_end(&mut bytes).unwrap();
    fs::write(Store::path_in(folder.path()), bytes).unwrap();
    let store = Store::open(folder.path()).unwrap();
    (folder, store)
}

#[test]
fn a_file_of_version_1_is_opened() {
    let (_folder, store) = opened();
    let saved = store.load().unwrap();
    assert_eq!((saved.next, saved.budget.as_deref()), (11, Some("300W")));
    let numbers: Vec<u64> = saved.jobs.iter().map(|entry| entry.number).collect();
    assert_eq!(numbers, [3, 4, 5, 7, 8, 9]);
    let [running, held, after, element, ..] = &saved.jobs[..] else { panic!("{numbers:?}") };
    let run = running.run().unwrap();
    assert_eq!((run.start, run.allotment.node_numbers()), (Instant::from_millis(342), vec![0, 1]));
    assert!(held.request.held && held.phase == Phase::Waiting);
    assert_eq!((after.request.after.len(), after.request.moldable), (2, Some((1, 2))));
    let expected = Element { array: 6, index: 1, count: 3, least: 1, most: 3, at_once: Some(2) };
    assert_eq!(element.array, Some(expected));
    let failed = store.outcome(2).unwrap().unwrap();
    assert_eq!((failed.how, failed.reason), (Some(End::Exited(1)), None));
    let cancelled = store.outcome(10).unwrap().unwrap();
    assert_eq!((cancelled.reason, cancelled.by), (Some(EndReason::Cancelled), Some(0)));
    let lines = store.history(Query { limit: 100, ..Query::default() }).unwrap();
    assert_eq!((lines.len(), lines[18].line), (19, 19));
}

/// Every value of a column, as it is in the file, and read and written again.
fn rewritten<T: DeserializeOwned + Serialize>(store: &Store, query: &str) -> usize {
    let mut statement = store.connection().prepare(query).unwrap();
    let texts = statement.query_map((), |row| row.get::<_, String>(0)).unwrap();
    let mut count = 0;
    for text in texts {
        let text = text.unwrap();
        let value: T = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&value).unwrap(), text);
        count += 1;
    }
    count
}

#[test]
fn its_json_is_written_again_as_it_was() {
    let (_folder, store) = opened();
    assert_eq!(rewritten::<Entry>(&store, "SELECT entry FROM job"), 9);
    assert_eq!(rewritten::<Program>(&store, "SELECT program FROM program"), 7);
    assert_eq!(rewritten::<Event>(&store, "SELECT event FROM event"), 19);
}
