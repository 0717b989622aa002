use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;

use super::*;

fn millis(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_millisecond()
}

fn nightly(hour: i8, zone: &str) -> Nightly {
    Nightly::at(Time::constant(hour, 0, 0, 0), TimeZone::get(zone).unwrap())
}

#[test]
fn it_is_time_once_a_day() {
    let at = nightly(3, "UTC");
    let has_come = |after: &str, until: &str| at.has_come(millis(after), millis(until));
    assert!(!has_come("2026-05-01T01:00:00Z", "2026-05-01T02:59:59Z"));
    assert!(has_come("2026-05-01T02:59:59Z", "2026-05-01T03:00:00Z"));
    assert!(!has_come("2026-05-01T03:00:00Z", "2026-05-02T02:59:59Z"));
    // The daemon slept over it, for an hour or for a week.
    assert!(has_come("2026-05-01T22:00:00Z", "2026-05-02T04:00:00Z"));
    assert!(has_come("2026-05-01T04:00:00Z", "2026-05-08T02:00:00Z"));
    // The clock on the wall was set back.
    assert!(!has_come("2026-05-02T04:00:00Z", "2026-05-01T02:00:00Z"));
}

/// On 29 March 2026 the hour from 2:00 to 3:00 is skipped in Berlin.
#[test]
fn a_time_that_is_skipped_comes_all_the_same() {
    let at = nightly(2, "Europe/Berlin");
    let has_come = |after: &str, until: &str| at.has_come(millis(after), millis(until));
    assert!(has_come("2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"));
    assert!(has_come("2026-03-27T23:30:00Z", "2026-03-28T01:00:00Z"));
}

#[test]
fn it_is_not_time_without_a_time_or_at_the_beginning() {
    let (mut tuner, at) = (Tuner::default(), nightly(3, "UTC"));
    let wall = |text: &str| millis(text);
    assert!(!tuner.is_due(Some(&at), wall("2026-05-01T03:00:00Z")));
    assert!(!tuner.is_due(None, wall("2026-05-02T03:00:00Z")));
    assert!(tuner.is_due(Some(&at), wall("2026-05-03T03:00:00Z")));
    assert!(!tuner.is_due(Some(&at), wall("2026-05-03T03:00:01Z")));
}

/// A replay that panicked leaves no answer, and the next may begin.
#[test]
fn a_replay_that_breaks_down_is_told() {
    let (sender, result) = channel();
    let under_way = Some(UnderWay { reader: Arc::default(), result });
    let mut tuner = Tuner { under_way, ..Tuner::default() };
    assert_eq!(tuner.finished(), None);
    drop(sender);
    assert!(tuner.finished().unwrap().contains("the replay failed"));
    assert_eq!(tuner.finished(), None);
}
