//! Jobs that are over, in lists and in sums.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;

use flate2::read::GzDecoder;

use super::super::{Batch, Ended, Store, Sums};
use super::{over, program, submission, waiting};
use crate::job::{End, Entry, Event, EventKind, JobOutcome, Owner, Phase};
use crate::wire::finished::Place;
use busbar_core::units::{Instant, Joules, Span, Watts};

const DAY: i64 = 86_400_000;

/// The wall clock at the beginning of the daemon's: a day at noon, in any time zone of up to eleven hours.
const BEGIN: i64 = 20_000 * DAY + DAY / 2;

/// A job of a user for an account that ran on two nodes, from one second to another, and took this many joules.
fn ran(number: u64, user: u32, account: Option<&str>, from: u32, to: u32, joules: u64) -> Entry {
    let mut entry = waiting(number);
    entry.owner = Owner { user, group: user };
    entry.request.account = account.map(str::to_owned);
    let outcome = JobOutcome {
        start: Some(Instant::from_secs(from)),
        end: Instant::from_secs(to),
        how: Some(End::Exited(0)),
        reason: None,
        energy: Joules::from_joules(joules),
        nodes: vec![0, 1],
        by: None,
        full_speed: None,
    };
    Entry { phase: Phase::Over(outcome), ..entry }
}

/// Writes jobs that wait, and then their ends.
fn written(store: &mut Store, jobs: Vec<Entry>) {
    let submitted = jobs
        .iter()
        .map(|job| (Entry { phase: Phase::Waiting, ..job.clone() }, program(job.number)));
    let now = (Instant::ZERO, BEGIN);
    store.commit(&Batch { submitted: submitted.collect(), now, ..Batch::default() }).unwrap();
    store.commit(&Batch { changed: jobs, now, ..Batch::default() }).unwrap();
}

/// The numbers of jobs, and where to go on.
fn listed(store: &Store, which: &Ended, most: usize) -> (Vec<u64>, Option<Place>) {
    let mut found = Vec::new();
    let next = store.ended(which, |entry, _| {
        found.push(entry.number);
        found.len() < most
    });
    (found, next.unwrap())
}

#[test]
fn jobs_are_listed_from_the_latest_on_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    // Ten jobs of two users by turns, one a second; 11 waits.
    let job = |number: u64| ran(number, 1000 + (number % 2) as u32, None, 0, number as u32, 1);
    written(&mut store, (1..=10).map(job).collect());
    let waits = (waiting(11), program(11));
    store.commit(&Batch { submitted: vec![waits], ..Batch::default() }).unwrap();

    let all = Ended { most: 100, ..Ended::default() };
    assert_eq!(listed(&store, &all, 100), ((1..=10).rev().collect(), None));
    // In parts, none is missed and none comes twice; the last part says that there are no more.
    let place = |job: u64| Some(Place { ended: BEGIN + 1000 * job as i64, job });
    let (first, next) = listed(&store, &all, 4);
    assert_eq!((first, next), (vec![10, 9, 8, 7], place(7)));
    let (second, next) = listed(&store, &Ended { before: next, ..all }, 4);
    assert_eq!((second, next), (vec![6, 5, 4, 3], place(3)));
    assert_eq!(listed(&store, &Ended { before: next, ..all }, 4), (vec![2, 1], None));
    // Of many jobs that nobody wants only so many are looked at.
    let mut looked_at = 0;
    let next = store.ended(&Ended { most: 3, ..all }, |_, _| {
        looked_at += 1;
        true
    });
    assert_eq!((looked_at, next.unwrap()), (3, place(8)));

    let since = Ended { since: Some(BEGIN + 4000), until: Some(BEGIN + 7000), ..all };
    assert_eq!(listed(&store, &since, 100).0, [6, 5, 4]);
    let of_one = Ended { user: Some(1001), until: Some(BEGIN + 7000), ..all };
    assert_eq!(listed(&store, &of_one, 100).0, [5, 3, 1]);
    assert_eq!(listed(&store, &Ended { job: Some(4), ..all }, 100), (vec![4], None));
    for unknown in [11, 12, u64::MAX] {
        assert_eq!(listed(&store, &Ended { job: Some(unknown), ..all }, 100), (vec![], None));
    }
}

#[test]
fn what_jobs_took_is_summed_by_day_user_and_account() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let day = (DAY / 1000) as u32;
    let jobs = vec![
        ran(1, 1000, Some("physics"), 0, 10, 500),
        ran(2, 1000, Some("physics"), 10, 30, 700),
        ran(3, 1000, None, 0, 5, 50),
        ran(4, 1001, Some("physics"), 0, 5, 3),
        // On the next day.
        ran(5, 1000, Some("physics"), 10, day + 10, 9),
    ];
    written(&mut store, jobs);
    let today = Store::day_of(BEGIN);
    let sums = |jobs, node_seconds: u32, joules| Sums {
        jobs,
        node_time: Span::from_secs(node_seconds),
        energy: Joules::from_joules(joules),
        ..Sums::default()
    };
    let key = |user, account: &str| (user, account.to_owned());
    let expected = BTreeMap::from([
        (key(1000, ""), sums(1, 10, 50)),
        (key(1000, "physics"), sums(2, 60, 1200)),
        (key(1001, "physics"), sums(1, 10, 3)),
    ]);
    assert_eq!(store.usage(today, today).unwrap(), expected);
    let both = store.usage(today, today + 1).unwrap();
    assert_eq!(both[&key(1000, "physics")], sums(3, 60 + 2 * day, 1209));
    assert_eq!(store.usage(today - 9, today - 1).unwrap(), BTreeMap::new());

    // What was measured is counted beside what was predicted, also if it comes later.
    let consumed = EventKind::Consumed {
        job: 2,
        energy: Joules::from_microjoules(600_000_001),
        power: Watts::from_watts(30),
        emulated: false,
    };
    let event = Event { at: Instant::from_secs(31), kind: consumed };
    let now = (Instant::from_secs(31), BEGIN + 31_000);
    store.commit(&Batch { events: vec![event], now, ..Batch::default() }).unwrap();
    let measured = store.usage(today, today).unwrap()[&key(1000, "physics")];
    let energy = Joules::from_microjoules(600_000_001);
    assert_eq!((measured.measured_jobs, measured.measured, measured.jobs), (1, energy, 2));
    assert_eq!(store.consumed(2).unwrap(), Some((energy, false)));
    assert_eq!(store.consumed(1).unwrap(), None);

    // A job that changes after its end is not counted again, and one that is pruned stays counted.
    store
        .commit(&Batch { changed: vec![ran(1, 1000, None, 0, 10, 7)], ..Batch::default() })
        .unwrap();
    store.prune(Instant::NEVER, 1000).unwrap();
    assert_eq!(store.job(1).unwrap(), None);
    let after = store.usage(today, today).unwrap();
    assert_eq!(after[&key(1000, "physics")], measured);
    // Years later it is gone.
    let later = BEGIN + 4 * 366 * DAY;
    store.commit(&Batch { now: (Instant::from_secs(40), later), ..Batch::default() }).unwrap();
    store.prune(Instant::NEVER, 1000).unwrap();
    assert_eq!(store.usage(i64::MIN, i64::MAX).unwrap(), BTreeMap::new());
    drop(store);
    Store::open(folder.path()).unwrap();
}

/// Users name their accounts as they like; however many they think of, a day has a bounded number of sums.
#[test]
fn a_user_cannot_fill_the_file_with_accounts() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let job = |number: u64| ran(number, 1000, Some(&format!("a{number}")), 0, 1, 1);
    written(&mut store, (1..=250).map(job).collect());
    let today = Store::day_of(BEGIN);
    let sums = store.usage(today, today).unwrap();
    assert_eq!(sums.len(), 101);
    assert_eq!(sums[&(1000, "others".to_owned())].jobs, 150);
    assert_eq!(sums.values().map(|sum| sum.jobs).sum::<u64>(), 250);
}

#[test]
fn an_older_file_has_the_sums_of_its_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = Vec::new();
    GzDecoder::new(super::versions::VERSION_1).read_to_end(&mut bytes).unwrap();
    fs::write(Store::path_in(folder.path()), bytes).unwrap();
    let store = Store::open(folder.path()).unwrap();
    // Jobs 1, 2 and 10 are over, and one of them never ran.
    let sums = store.usage(i64::MIN, i64::MAX).unwrap();
    assert_eq!(sums.values().map(|sum| sum.jobs).sum::<u64>(), 3);
    let energy: Joules =
        [1, 2, 10].into_iter().map(|job| store.outcome(job).unwrap().unwrap().energy).sum();
    assert_eq!(sums.values().map(|sum| sum.energy).sum::<Joules>(), energy);
    let all = Ended { most: 100, ..Ended::default() };
    assert_eq!(listed(&store, &all, 100).0.len(), 3);
    // Opened again, nothing is counted twice.
    drop(store);
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.usage(i64::MIN, i64::MAX).unwrap(), sums);
}

/// A job that ends in the batch that submits it counts, too.
#[test]
fn a_job_that_is_over_at_once_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    let mut batch = submission(1..=1);
    batch.submitted[0].0 = over(&waiting(1), Instant::from_secs(1));
    store.commit(&batch).unwrap();
    let sums = store.usage(i64::MIN, i64::MAX).unwrap();
    assert_eq!(sums.into_values().collect::<Vec<_>>(), [Sums { jobs: 1, ..Sums::default() }]);
}
