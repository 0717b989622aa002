use jiff::civil::DateTime;

use super::*;

fn condition(text: &str) -> Condition {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn holds(condition: &Condition, wall: &str) -> bool {
    condition.holds(wall.parse::<DateTime>().unwrap())
}

fn rules(text: &str) -> Result<Rules<u32>, String> {
    Rules::parse(text, "1", str::parse::<u32>).map_err(|error| error.to_string())
}

#[test]
fn conditions_are_written_in_one_form() {
    for (text, shown) in [
        ("nov..feb 14:00-18:00 weekdays", "weekdays 14:00-18:00 nov..feb"),
        ("MON..FRI", "weekdays"),
        ("sun+sat", "weekends"),
        ("17:00-20:00+7:00-9:00", "07:00-09:00+17:00-20:00"),
        ("18:00-24:00", "18:00-24:00"),
        ("18:00-0:00", "18:00-24:00"),
        ("22:00:30-06:00", "22:00:30-06:00"),
        ("2026-12-24..2026-12-26+1-1", "2026-12-24..2026-12-26+01-01"),
        ("12-24..1-2 weekends", "weekends 12-24..01-02"),
    ] {
        let condition = condition(text);
        assert_eq!(condition.to_string(), shown);
        assert_eq!(shown.parse(), Ok(condition));
    }
}

#[test]
fn all_words_of_a_condition_must_hold() {
    let peak = condition("weekdays 14:00-18:00 nov..feb");
    // 2026-11-03 is a Tuesday.
    assert!(holds(&peak, "2026-11-03T14:00"));
    assert!(holds(&peak, "2027-02-26T17:59:59.999"));
    for wall in ["2026-11-03T13:59:59", "2026-11-03T18:00", "2026-11-07T15:00", "2026-10-30T15:00"]
    {
        assert!(!holds(&peak, wall), "{wall}");
    }
    let holidays = condition("12-24..01-02+2026-05-01");
    for (wall, expected) in [
        ("2026-12-24T00:00", true),
        ("2027-01-02T23:59", true),
        ("2027-01-03T00:00", false),
        ("2026-05-01T12:00", true),
        ("2027-05-01T12:00", false),
    ] {
        assert_eq!(holds(&holidays, wall), expected, "{wall}");
    }
}

/// A night belongs to the day on which it began. 2026-11-06 is a Friday.
#[test]
fn a_night_belongs_to_the_evening() {
    let night = condition("fri 22:00-06:00");
    for (wall, expected) in [
        ("2026-11-06T05:00", false),
        ("2026-11-06T21:59", false),
        ("2026-11-06T22:00", true),
        ("2026-11-07T05:59", true),
        ("2026-11-07T06:00", false),
        ("2026-11-07T23:00", false),
    ] {
        assert_eq!(holds(&night, wall), expected, "{wall}");
    }
    // The night to the first of March is one of February.
    let february = condition("22:00-06:00 feb");
    assert!(holds(&february, "2027-03-01T03:00"));
    assert!(!holds(&february, "2027-02-01T03:00"));
    let evening = condition("fri 18:00-24:00");
    assert!(holds(&evening, "2026-11-06T23:59"));
    assert!(!holds(&evening, "2026-11-07T00:00"));
}

#[test]
fn wrong_conditions_name_the_word() {
    for (text, what) in [
        ("", "it names no time; write days (weekdays"),
        ("wekdays", "'wekdays' is not a time; did you mean 'weekdays'? write days"),
        ("sometimes", "'sometimes' is not a time; write days"),
        (
            "14-18",
            "'14-18' is not a date; write 2026-12-24, or 12-24 for every year; for hours write 14:00-18:00",
        ),
        ("9h-17h", "for hours write 09:00-17:00"),
        ("22-24", "for hours write 22:00-24:00"),
        ("14.00-18.30", "for hours write 14:00-18:30"),
        ("mon..freitag", "there is no 'freitag'; valid: mon"),
        ("nov..xyz", "there is no 'xyz'; valid: jan"),
        ("14:00", "'14:00' is a single time; write a range"),
        ("14:00-25:00", "'25:00' is not a time of day"),
        ("14:00-14:00", "begins and ends at the same time"),
        ("2026-02-30", "'2026-02-30' is not a date; write 2026-12-24"),
        ("02-30", "'02-30' is not a date"),
        ("2026-12-24..12-26", "has a year at one end"),
        ("2026-12-26..2026-12-24", "ends before it begins"),
        ("mon tue", "'tue' names days a second time, and both must hold; join them with '+'"),
        ("14:00-15:00 16:00-17:00", "names times a second time"),
    ] {
        let error = text.parse::<Condition>().unwrap_err().to_string();
        assert!(error.contains(what), "{text}: {error}");
    }
}

#[test]
fn rules_are_read_and_written_in_one_form() {
    for (text, shown) in [
        (
            "weekdays 14:00-18:00 nov..feb: 80, else 100",
            "weekdays 14:00-18:00 nov..feb: 80, else 100",
        ),
        ("sat+sun:1;ELSE 2", "weekends: 1, else 2"),
        ("weekdays: 1\nweekends: 2\n", "weekdays: 1, weekends: 2"),
        ("else: 7", "else 7"),
        ("14:00-18:00:800, else 1", "14:00-18:00: 800, else 1"),
        ("00:00-12:00: 1, 12:00-24:00: 2", "00:00-12:00: 1, 12:00-24:00: 2"),
        ("nov..feb: 1, mar..oct: 2", "nov..feb: 1, mar..oct: 2"),
    ] {
        let read = rules(text).unwrap();
        assert_eq!(read.to_string(), shown);
        assert_eq!(rules(shown).unwrap(), read);
    }
}

/// `12-18` is the 18th of December, as it always was; among days of the week it more likely means hours.
#[test]
fn a_day_that_looks_like_hours_is_doubted() {
    let doubts = |text: &str| rules(text).unwrap().doubts().collect::<Vec<_>>();
    assert_eq!(
        doubts("weekdays 12-18: 1, else 2"),
        ["'weekdays 12-18' holds on one day of the year, 12-18; for hours write 12:00-18:00"]
    );
    for text in
        ["12-24: 1, else 2", "weekdays 12-24..12-26: 1, else 2", "weekdays 12-31: 1, else 2"]
    {
        assert!(doubts(text).is_empty(), "{text}");
    }
}

#[test]
fn a_decimal_comma_is_told_from_one_between_rules() {
    let error = |text: &str| {
        let read = |value: &str| value.strip_suffix('W').ok_or("no unit").map(str::to_owned);
        Rules::parse(text, "1W", read).unwrap_err().to_string()
    };
    assert_eq!(
        error("weekdays: 1,5W, else 2W"),
        "rule 'weekdays: 1,5W': a comma ends a rule, and decimals have a point: 1.5W"
    );
    assert_eq!(error("weekdays: 1, else 2W"), "rule 'weekdays: 1': no unit");
}

#[test]
fn the_first_rule_that_holds_counts() {
    let rules = rules("12-24: 1, weekdays: 2, else 3").unwrap();
    let at = |wall: &str| *rules.at(wall.parse().unwrap());
    // A Thursday, a Friday and a Saturday.
    assert_eq!([at("2026-12-24T12:00"), at("2026-12-25T12:00"), at("2026-12-26T12:00")], [1, 2, 3]);
}

#[test]
fn wrong_rules_say_what_to_write() {
    for (text, what) in [
        ("", "a rule is missing; write 'WHEN: 1, else 1'"),
        ("weekdays: 1", "no rule applies on Saturday, 6 January at 00:00; add ', else 1'"),
        ("weekdays 06:00-22:00: 1, weekends: 2", "no rule applies on Monday, 1 January at 00:00"),
        // What comes once covers nothing for ever.
        ("2026-01-01..2099-12-31: 1", "no rule applies on"),
        (
            "mon, wed: 1, else 2",
            "rule 'mon' has no value; add one after a colon, as in 'mon: 1', or join",
        ),
        ("weekdays 14:00-18:00, else 1", "rule 'weekdays 14:00-18:00' has no value"),
        ("weekdays: x, else 1", "rule 'weekdays: x': invalid digit"),
        ("else 1, weekdays: 2", "'weekdays: 2' comes after 'else', so it would never apply"),
        (": 1", "rule ': 1': it names no time"),
    ] {
        let error = rules(text).unwrap_err();
        assert!(error.contains(what), "{text}: {error}");
    }
}

/// The hours from the start at which a rule changes, and its values.
fn hours(start: &str, text: &str, days: u32) -> Vec<(f64, u32)> {
    let calendar = start.parse().unwrap();
    let dates = RunDates { calendar: Ok(calendar), until: Instant::from_secs(days * 86_400) };
    let steps = dates.steps(&Timetable::Rules(rules(text).unwrap()), &99).unwrap();
    steps.into_iter().map(|(at, value)| (at.secs_f64() / 3600.0, value)).collect()
}

/// On 29 March 2026 the clocks of Berlin go from 02:00 to 03:00: the day has 23 hours, and no 02:30.
#[test]
fn an_hour_that_is_skipped_never_comes() {
    let steps = hours("2026-03-28 00:00 Europe/Berlin", "02:00-03:00: 1, else 2", 3);
    // On the 30th it is 02:00 after 24, 23 and 2 hours.
    let expected = [(0.0, 2), (2.0, 1), (3.0, 2), (49.0, 1), (50.0, 2), (72.0, 99)];
    assert_eq!(steps, expected);
    // A night of seven hours.
    let night = hours("2026-03-28 12:00 Europe/Berlin", "22:00-06:00: 1, else 2", 1);
    assert_eq!(night, [(0.0, 2), (10.0, 1), (17.0, 2), (24.0, 99)]);
}

/// On 25 October 2026 they go from 03:00 to 02:00: the day has 25 hours, and 02:30 comes twice.
#[test]
fn an_hour_that_comes_twice_lasts_two_hours() {
    let steps = hours("2026-10-24 00:00 Europe/Berlin", "02:00-03:00: 1, else 2", 3);
    let expected =
        [(0.0, 2), (2.0, 1), (3.0, 2), (26.0, 1), (28.0, 2), (51.0, 1), (52.0, 2), (72.0, 99)];
    assert_eq!(steps, expected);
    // Half of it comes, goes and comes again.
    let steps = hours("2026-10-25 00:00 Europe/Berlin", "02:30-03:00: 1, else 2", 1);
    assert_eq!(steps, [(0.0, 2), (2.5, 1), (3.0, 2), (3.5, 1), (4.0, 2), (24.0, 99)]);
}

/// In 1998 the clocks of California were set back on 25 October at 09:00 UTC.
#[test]
fn old_logs_have_the_rules_of_their_time() {
    let calendar = Calendar::of_header(Some(893_466_664), Some("US/Pacific")).unwrap();
    assert_eq!(calendar.to_string(), "1998-04-24T18:11:04-07:00[US/Pacific]");
    let before = calendar.instant("1998-10-25T08:59:59Z".parse().unwrap());
    let after = calendar.instant("1998-10-25T09:00:00Z".parse().unwrap());
    assert_eq!(calendar.shown(before), "1998-10-25 01:59:59");
    assert_eq!(calendar.shown(after), "1998-10-25 01:00");
}

#[test]
fn a_start_is_read_in_all_its_forms() {
    for (text, shown) in [
        ("2026-01-01 00:00 Europe/Berlin", "2026-01-01T00:00:00+01:00[Europe/Berlin]"),
        ("2026-07-01 Europe/Berlin", "2026-07-01T00:00:00+02:00[Europe/Berlin]"),
        ("2026-01-01T00:00:00+01:00[Europe/Berlin]", "2026-01-01T00:00:00+01:00[Europe/Berlin]"),
        ("2026-01-01T00:00:00Z[Europe/Berlin]", "2026-01-01T01:00:00+01:00[Europe/Berlin]"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00+00:00[UTC]"),
        ("2026-01-01 08:00 UTC", "2026-01-01T08:00:00+00:00[UTC]"),
        ("2026-01-01T00:00:00-05:30", "2026-01-01T00:00:00-05:30[-05:30]"),
    ] {
        let calendar: Calendar = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(calendar.to_string(), shown);
        assert_eq!(shown.parse().map(|again: Calendar| again.to_string()).as_deref(), Ok(shown));
    }
}

#[test]
fn a_wrong_start_says_what_is_wrong() {
    for (text, what) in [
        ("2026-01-01 00:00", "has no time zone; add one, such as '2026-01-01 00:00 Europe/Berlin'"),
        ("2026-01-01 00:00 Europe/Berlim", "did you mean 'Europe/Berlin'?"),
        (
            "yesterday",
            "'yesterday' is not a date and time; write for example '2026-01-01 00:00 Europe/Berlin'",
        ),
        ("2026-03-29 02:30 Europe/Berlin", "shows 2026-03-29T02:30:00 never"),
        ("2026-10-25 02:30 Europe/Berlin", "shows 2026-10-25T02:30:00 twice"),
        (
            "2026-01-01T00:00:00+05:00[Europe/Berlin]",
            "has an offset that Europe/Berlin does not have",
        ),
    ] {
        let error = text.parse::<Calendar>().unwrap_err().to_string();
        assert!(error.contains(what), "{text}: {error}");
    }
}

#[test]
fn a_header_that_says_too_little_says_what_to_give() {
    let error = |unix, zone| Calendar::of_header(unix, zone).unwrap_err().to_string();
    assert!(error(None, Some("UTC")).contains("the start date of the workload is unknown"));
    assert!(error(Some(0), Some("UTC")).contains("the start date of the workload is unknown"));
    let no_zone = error(Some(1_343_667_824), None);
    assert!(no_zone.contains("--start '2012-07-30T17:03:44Z[Europe/Berlin]'"), "{no_zone}");
    let odd = error(Some(1_343_667_824), Some("GMT+1:00 (somewhere)"));
    assert!(odd.contains("names the time zone 'GMT+1:00 (somewhere)'"), "{odd}");
    assert!(error(Some(1), Some("Europe/Pariss")).contains("did you mean 'Europe/Paris'?"));
}
