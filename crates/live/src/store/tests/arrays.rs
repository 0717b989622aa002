//! Arrays: what their elements do is kept once, and as long as any of them is.

use super::super::{Batch, Query, Store};
use super::{over, program, waiting};
use crate::job::{Element, Entry, Event, EventKind};
use busbar_core::units::Instant;

/// The array 5 with the elements 6, 7 and 8, between the jobs 4 and 9.
fn batch() -> Batch {
    let elements = Element::all(5, &"1,3,7%2".parse().unwrap());
    let entries = (6..)
        .zip(elements)
        .map(|(number, element)| Entry { array: Some(element), ..waiting(number) });
    let mut entries: Vec<Entry> = entries.collect();
    let submitted =
        vec![(waiting(4), program(4)), (entries.remove(0), program(6)), (waiting(9), program(9))];
    let event =
        |job| Event { at: Instant::ZERO, kind: EventKind::Submitted { job, element: None } };
    let events = [4, 6, 9, 7, 8, 6].map(event).to_vec();
    Batch { submitted, elements: entries, events, ..Batch::default() }
}

#[test]
fn elements_share_a_program_and_are_found_by_their_array() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    store.commit(&batch()).unwrap();
    drop(store);
    let mut store = Store::open(folder.path()).unwrap();
    let saved = store.load().unwrap();
    assert_eq!(saved.next, 10);
    let indices: Vec<_> = saved.jobs.iter().map(|entry| Some(entry.array?.index)).collect();
    assert_eq!(indices, [None, Some(1), Some(3), Some(7), None]);
    for number in 6..=8 {
        assert_eq!(store.program(number).unwrap(), Some(program(6)), "{number}");
        assert_eq!(store.job(number).unwrap().unwrap().program, program(6));
    }
    let numbers = |store: &Store, array| -> Vec<u64> {
        let elements = store.reader().unwrap().elements(array).unwrap();
        elements.iter().map(|(entry, _)| entry.number).collect()
    };
    assert_eq!(numbers(&store, 5), [6, 7, 8]);
    for other in [0, 3, 4, 6, 8, 9, u64::MAX] {
        assert!(numbers(&store, other).is_empty(), "{other}");
    }
    let lines = |job, limit| -> Vec<u64> {
        let query = Query { job: Some(job), after: None, limit };
        store.history(query).unwrap().iter().map(|line| line.line).collect()
    };
    assert_eq!(
        (lines(5, 99), lines(5, 2), lines(6, 99), lines(4, 99)),
        (vec![2, 4, 5, 6], vec![5, 6], vec![2, 6], vec![1])
    );
    let query = Query { job: Some(5), after: Some(2), limit: 2 };
    let after: Vec<u64> = store.history(query).unwrap().iter().map(|line| line.line).collect();
    assert_eq!(after, [4, 5]);
    // How an array ended is how those ended that are over.
    assert_eq!(store.succeeded(5).unwrap(), None);
    let changed = vec![over(&saved.jobs[2], Instant::from_secs(1))];
    store.commit(&Batch { changed, ..Batch::default() }).unwrap();
    assert_eq!(
        (store.succeeded(5).unwrap(), store.succeeded(7).unwrap()),
        (Some(false), Some(false))
    );
}

#[test]
fn the_program_of_an_array_stays_until_the_last_element_goes() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    store.commit(&batch()).unwrap();
    let jobs = store.load().unwrap().jobs;
    let left = |store: &Store| -> Vec<u64> {
        (0..=10).filter(|number| store.job(*number).unwrap().is_some()).collect()
    };
    let end = |store: &mut Store, place: usize, second| {
        let changed = vec![over(&jobs[place], Instant::from_secs(second))];
        store.commit(&Batch { changed, ..Batch::default() }).unwrap();
    };
    end(&mut store, 1, 1);
    store.prune(Instant::from_secs(100), 100).unwrap();
    assert_eq!(left(&store), [4, 6, 7, 8, 9], "the others have not begun");
    end(&mut store, 2, 2);
    end(&mut store, 3, 50);
    store.prune(Instant::from_secs(10), 100).unwrap();
    assert_eq!(left(&store), [4, 6, 8, 9], "8 is still kept");
    assert_eq!(store.program(8).unwrap(), Some(program(6)));
    while store.prune(Instant::from_secs(100), 100).unwrap() > 0 {}
    assert_eq!(left(&store), [4, 9]);
}
