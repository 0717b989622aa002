use std::path::Path;

use proptest::prelude::*;

use super::*;

/// Ten nodes of 100 W: 1 kW at most.
fn machine() -> Machine {
    Machine::of_processors(10).unwrap()
}

/// Central Europe: on the last Sunday of March 02:00 becomes 03:00, on that of October 03:00 becomes
/// 02:00.
fn berlin() -> TimeZone {
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
}

fn read(text: &str) -> Result<Schedule, String> {
    let zone = berlin();
    let base = TimeBase::Wall(&zone);
    match Limits::parse(text, Path::new("feed.csv"), &machine(), &base) {
        Ok(Limits::Timed(plan)) => Ok(Schedule { plan, zone: zone.clone() }),
        Ok(Limits::After(steps)) => panic!("{steps:?}"),
        Err(error) => Err(error.to_string()),
    }
}

fn wall(text: &str) -> Timestamp {
    text.parse().unwrap()
}

const HOUR: u64 = 3_600_000;

fn hours(millis: u64) -> Span {
    Span::from_millis(millis * HOUR)
}

/// The limits of a budget in watts, with the hours from now at which they begin.
fn steps(budget: &Budget, now: Instant) -> Vec<(f64, u64)> {
    let watts = |limit: Watts| limit.milliwatts() / 1000;
    let mut steps = vec![(0.0, watts(budget.at(now)))];
    let changes = budget.changes_after(now).iter();
    steps.extend(changes.map(|&(at, limit)| (at.since(now).secs_f64() / 3600.0, watts(limit))));
    steps
}

#[test]
fn a_profile_of_the_day_comes_again_each_day() {
    let schedule = read("time,budget\n06:00,100%\n22:00,60%\n").unwrap();
    let now = Instant::from_secs(500);
    // In January it is 12:00 in Berlin.
    let budget = schedule.budget(wall("2027-01-10T11:00:00Z"), now, Schedule::HORIZON);
    let expected = [(0.0, 1000), (10.0, 600), (18.0, 1000), (34.0, 600), (42.0, 1000)];
    assert_eq!(steps(&budget, now), expected);
    // Early in the morning it is still what it was at night.
    let budget = schedule.budget(wall("2027-01-10T04:59:59.5Z"), now, hours(1));
    assert_eq!(steps(&budget, now)[0].1, 600);
    assert_eq!(budget.changes_after(now)[0].0, now + Span::from_millis(500));
}

#[test]
fn an_hour_that_is_skipped_is_over_at_once() {
    // At 02:00, which is 01:00 UTC, it is 03:00.
    let schedule = read("02:30,500W\n06:00,1kW").unwrap();
    let budget = schedule.budget(wall("2027-03-28T00:00:00Z"), Instant::ZERO, hours(24));
    assert_eq!(steps(&budget, Instant::ZERO), [(0.0, 1000), (1.0, 500), (4.0, 1000)]);
}

#[test]
fn an_hour_that_comes_twice_has_its_limits_twice() {
    // 02:30 is at 00:30 and at 01:30 UTC; at 01:00 UTC it is 02:00 again.
    let schedule = read("02:30,500W\n06:00,1kW").unwrap();
    let budget = schedule.budget(wall("2027-10-31T00:00:00Z"), Instant::ZERO, hours(24));
    let expected = [(0.0, 1000), (0.5, 500), (1.0, 1000), (1.5, 500), (5.0, 1000)];
    assert_eq!(steps(&budget, Instant::ZERO), expected);
}

#[test]
fn dates_hold_from_then_on_and_the_first_before_it() {
    let text = "time,budget\n2027-01-10 12:00,800W\n2027-01-10T13:00:00Z,none\n2027-02-01,40%\n";
    let schedule = read(text).unwrap();
    // 12:00 in Berlin is 11:00 UTC.
    let budget = schedule.budget(wall("2027-01-10T10:00:00Z"), Instant::ZERO, hours(48));
    assert_eq!(steps(&budget, Instant::ZERO)[..1], [(0.0, 800)]);
    assert_eq!(
        budget.changes_after(Instant::ZERO),
        [(Instant::from_secs(3 * 3600), Watts::UNLIMITED)]
    );
    assert_eq!(schedule.at(wall("2027-01-31T22:59:59Z")), Watts::UNLIMITED);
    assert_eq!(schedule.at(wall("2027-01-31T23:00:00Z")), Watts::from_watts(400));
    assert_eq!(schedule.at(Timestamp::MAX), Watts::from_watts(400));
    assert_eq!(schedule.at(Timestamp::MIN), Watts::from_watts(800));
}

#[test]
fn wrong_rows_are_named() {
    for (text, what) in [
        ("0,80%", "line 1, field 'time': '0' cannot count seconds from a start; write"),
        ("24:00,80%", "line 1, field 'time': '24:00' is not a time of day; write 00:00 to 23:59"),
        ("\n12:5x,80%", "line 2, field 'time': '12:5x' is not a time of day"),
        ("+1:30,80%", "field 'time': '+1:30' is not a time of day"),
        (
            "2027-13-01,80%",
            "field 'time': '2027-13-01' is not a time; write a time of the day (22:00)",
        ),
        ("2027-01-01 10:00[Asia/Tokyo],80%", "is not a time; write"),
        ("noon,80%", "field 'time': 'noon' is not a time; write"),
        ("12:00,80", "line 1, field 'budget': '80' has no unit; did you mean 80%"),
        ("12:00,0%", "line 1, field 'budget': a budget of 0W leaves no power for jobs"),
        ("12:00", "line 1, field 'budget': '12:00' is not 2 fields; write time,budget"),
        ("12:00,80%\n11:00,80%", "line 2, field 'time': '11:00' does not come after 12:00"),
        ("12:00,80%\n12:00,80%", "line 2, field 'time': '12:00' does not come after 12:00"),
        (
            "2027-01-02,80%\n2027-01-01,80%",
            "line 2, field 'time': '2027-01-01' does not come after 2027-01-02T00:00:00",
        ),
        ("12:00,80%\n2027-01-01,80%", "line 2, field 'time': '2027-01-01' is a date, and the rows"),
        ("2027-01-01,80%\n12:00,80%", "line 2, field 'time': '12:00' is a time of the day, and"),
        ("# nothing\n", "feed.csv has no time,budget rows"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.starts_with("feed.csv") && error.contains(what), "{text}: {error}");
    }
}

#[test]
fn what_is_written_is_understood() {
    let zone = TimeZone::UTC;
    let resolve = |text: &str| text.parse::<ScheduleSpec>().unwrap().resolve(&machine(), &zone);
    assert_eq!(resolve("none").unwrap().plan, Timetable::Always(Watts::UNLIMITED));
    assert_eq!(resolve("75%").unwrap().plan, Timetable::Always(Watts::from_watts(750)));
    assert!(resolve("missing.csv").unwrap_err().to_string().contains("missing.csv"));
    assert!("lots".parse::<ScheduleSpec>().is_err());
    let limit = |text: &str| text.parse::<Allowance>().unwrap();
    assert_eq!(limit("80%").to_string(), "80%");
    assert_eq!(limit(" none ").to_string(), "none");
    let daily = |steps: &[(i8, &str)]| {
        let steps = steps.iter().map(|&(hour, text)| (Time::constant(hour, 0, 0, 0), limit(text)));
        ScheduleSpec::Daily(steps.collect()).resolve(&machine(), &zone)
    };
    assert_eq!(
        daily(&[(1, "50%"), (2, "none")]).unwrap().at(wall("2027-01-01T01:30Z")),
        Watts::from_watts(500)
    );
    let error = daily(&[(2, "50%"), (1, "none")]).unwrap_err().to_string();
    assert_eq!(error, "01:00 does not come after 02:00");
    assert!(daily(&[]).is_err());
    assert!(matches!(daily(&[(2, "0%")]), Err(ScheduleError::OfDay { .. })));
}

#[test]
fn a_mapping_is_made_again_when_the_wall_is_set_or_when_more_is_known() {
    let (clock, hand) = Clock::by_hand();
    hand.set_wall(wall("2027-01-10T11:00:00Z").as_millisecond());
    let schedule = read("06:00,100%\n22:00,60%\n").unwrap();
    let mapping = schedule.map(&clock);
    assert_eq!(
        mapping.budget,
        schedule.budget(wall("2027-01-10T11:00:00Z"), clock.now(), hours(48))
    );
    assert!(!mapping.is_stale(&clock));
    // A day later there is a day to be looked up.
    hand.advance(Span::from_millis(24 * HOUR - 1));
    assert!(!mapping.is_stale(&clock));
    hand.advance(Span::from_millis(1));
    assert!(mapping.is_stale(&clock));
    // Somebody sets the clock: a second is nothing.
    let mapping = schedule.map(&clock);
    let now = clock.wall_now();
    for (by, is_stale) in [(1000, false), (1001, true), (-1000, false), (-1001, true)] {
        hand.set_wall(now + by);
        assert_eq!(mapping.is_stale(&clock), is_stale, "{by}");
    }
    // What holds at all times does so by any clock.
    let always = "60%".parse::<ScheduleSpec>().unwrap().resolve(&machine(), &berlin()).unwrap();
    let mapping = always.map(&clock);
    for wall in [0, i64::MIN, i64::MAX] {
        hand.set_wall(wall);
        assert!(!mapping.is_stale(&clock));
        let _ = schedule.map(&clock);
    }
}

#[test]
fn rules_are_extended_before_they_run_out() {
    let (clock, hand) = Clock::by_hand();
    // Tuesday, 3 November 2026, 12:00 in Berlin.
    hand.set_wall(wall("2026-11-03T11:00:00Z").as_millisecond());
    let spec: ScheduleSpec = "weekdays 14:00-18:00 nov..feb: 80%, else 100%".parse().unwrap();
    let schedule = spec.resolve(&machine(), &berlin()).unwrap();
    let mapping = schedule.map(&clock);
    let now = clock.now();
    let expected = [(0.0, 1000), (2.0, 800), (6.0, 1000), (26.0, 800), (30.0, 1000)];
    assert_eq!(steps(&mapping.budget, now), expected);
    // Three days later it is Friday noon: the weekend is known.
    hand.advance(Span::from_millis(24 * HOUR));
    assert!(mapping.is_stale(&clock));
    hand.advance(Span::from_millis(48 * HOUR));
    let now = clock.now();
    let expected = [(0.0, 1000), (2.0, 800), (6.0, 1000)];
    assert_eq!(steps(&schedule.map(&clock).budget, now), expected);
}

fn zone() -> impl Strategy<Value = TimeZone> {
    // As in Berlin, New York, on Lord Howe Island (half an hour), where midnight comes twice, and where
    // nothing changes.
    let zones = [
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "EST5EDT,M3.2.0,M11.1.0",
        "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
        "XXX3YYY,M3.2.0/0,M10.3.0/0",
        "UTC0",
    ];
    prop::sample::select(zones.to_vec()).prop_map(|zone| TimeZone::posix(zone).unwrap())
}

proptest! {
    /// The steps of a profile say at each minute what a look at the clock on the wall says.
    #[test]
    fn steps_say_what_the_wall_says(
        zone in zone(),
        rows in prop::collection::btree_map(0_i16..1440, 1_u32..4, 1..6),
        // Half of them within a few days of a change.
        start in prop_oneof![0_i64..63_072_000, 25_000_000_i64..26_500_000],
        horizon in 1_u64..80,
    ) {
        let step = |(minute, level): (&i16, &u32)| {
            let [hour, minute] = [minute / 60, minute % 60].map(|part| i8::try_from(part).unwrap());
            (Time::constant(hour, minute, 0, 0), Watts::from_watts(*level))
        };
        let plan = Timetable::Daily(rows.iter().map(step).collect());
        let schedule = Schedule { plan, zone };
        // Seconds since the beginning of 2027.
        let begin = Timestamp::from_second(1_798_761_600 + start).unwrap();
        let now = Instant::from_secs(77);
        let budget = schedule.budget(begin, now, hours(horizon));
        for minute in 0..=60 * horizon {
            let passed = Span::from_millis(minute * 60_000);
            let at = later(begin, passed);
            prop_assert_eq!(budget.at(now + passed), schedule.at(at), "{}", at);
        }
    }
    /// Whatever a file holds, it is read, or its mistake has a place.
    #[test]
    fn no_file_is_too_odd(
        rows in prop::collection::vec(("[-0-9:TZ+. ]{0,20}|.{0,8}", "[0-9.]{0,3}[kM]?[W%]|.{0,4}"), 0..4)
    ) {
        let lines: Vec<String> = rows.iter().map(|(time, limit)| format!("{time},{limit}")).collect();
        match read(&lines.join("\n")) {
            Ok(schedule) => {
                for wall in [Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX] {
                    let budget = schedule.budget(wall, Instant::NEVER, Span::FOREVER);
                    prop_assert_eq!(budget.at(Instant::NEVER), schedule.at(later(wall, Span::FOREVER)));
                }
            }
            Err(error) => prop_assert!(error.starts_with("feed.csv"), "{}", error),
        }
    }
}
