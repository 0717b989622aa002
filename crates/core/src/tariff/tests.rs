use std::path::PathBuf;

use super::*;
use crate::calendar::Calendar;
use crate::units::{Span, Watts};

fn dates(start: &str, days: u32) -> RunDates {
    RunDates { calendar: Ok(start.parse().unwrap()), until: hours(24 * days) }
}

fn hours(hours: u32) -> Instant {
    Instant::from_secs(3600 * hours)
}

/// The rates of each hour, in thousandths; none where nothing is known.
fn hourly(curve: &Curve, count: u32) -> Vec<Option<i64>> {
    let rate = |hour| curve.at(hours(hour)).map(|rate| rate.nanos_per_kwh / 1_000_000);
    (0..count).map(rate).collect()
}

/// What a curve says of a stretch, in milliseconds and thousandths.
fn stretches(curve: &Curve, from: u32, until: u32) -> Vec<(u64, Option<i64>)> {
    let mut found = Vec::new();
    curve.stretches(&mut Reading::default(), hours(from), hours(until), |millis, rate| {
        found.push((millis / 3_600_000, rate.map(|rate| rate.nanos_per_kwh / 1_000_000)));
    });
    found
}

#[test]
fn prices_are_read_in_all_their_forms() {
    for (text, shown) in [
        ("0.32 EUR/kWh", "0.32EUR/kWh"),
        (
            "weekdays 07:00-20:00: 320 EUR/MWh; else 0.24EUR/kWh",
            "weekdays 07:00-20:00: 0.32EUR/kWh, else 0.24EUR/kWh",
        ),
        ("prices.csv", "prices.csv"),
        ("data/prices.csv:DE repeat", "data/prices.csv:DE repeat"),
    ] {
        let spec = parse_price(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(spec.to_string(), shown);
        assert_eq!(parse_price(shown).unwrap(), spec);
    }
    for (text, what) in [
        ("cheap", "'cheap' is not a valid price; write it with its unit (0.32EUR/kWh), as rules"),
        ("0.32", "'0.32' has no known unit"),
        (
            "0,32EUR/kWh",
            "with FILE:COLUMN for one of its columns: '0,32' is not a number; did you mean 0.32?",
        ),
        ("450g/kWh", "'450g/kWh' is not a valid price; write for example 0.32EUR/kWh"),
        ("weekdays: 1EUR/kWh, else 1USD/kWh", "1EUR/kWh and 1USD/kWh have different units"),
        ("weekdays: 1EUR/kWh", "add ', else 0.32EUR/kWh'"),
    ] {
        let error = parse_price(text).unwrap_err().to_string();
        assert!(error.contains(what), "{text}: {error}");
    }
    assert!(
        parse_carbon("0.32EUR/kWh")
            .unwrap_err()
            .to_string()
            .contains("is not a valid carbon intensity")
    );
    assert!(parse_carbon("450g/kWh").is_ok());
}

/// A file in a folder of its own.
fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.csv");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn spec(path: &std::path::Path, more: &str) -> RateSpec {
    parse_price(&format!("{}{more}", path.display())).unwrap()
}

const DAY: &str = "time_utc,price_eur_per_mwh\n2026-01-01 00:00,1\n2026-01-01 06:00,2\n2026-01-01 12:00,3\n\
                   2026-01-01 18:00,4\n";

#[test]
fn a_series_holds_where_it_is_known() {
    let (_folder, path) = file(DAY);
    // It is 03:00 in Berlin, and 02:00 UTC.
    let curve = spec(&path, "")
        .resolve(&dates("2026-01-01 03:00 Europe/Berlin", 9), hours(1), hours(10))
        .unwrap();
    assert_eq!(hourly(&curve, 5)[..5], [Some(1), Some(1), Some(1), Some(1), Some(2)]);
    assert_eq!(
        stretches(&curve, 3, 30),
        [(1, Some(1)), (6, Some(2)), (6, Some(3)), (6, Some(4)), (8, None)]
    );
    let late =
        spec(&path, "").resolve(&dates("2026-01-01 03:00 Europe/Berlin", 9), hours(1), hours(22));
    assert_eq!(
        late.unwrap_err().to_string(),
        format!(
            "the series covers 2026-01-01 01:00 to 2026-01-02 01:00, and the log 2026-01-01 04:00 to 2026-01-02 01:00; \
             give a series that covers it, move the log with --start, or add 'repeat' to use the series again and again \
             ('{} repeat')",
            path.display()
        )
    );
    let early = spec(&path, "").resolve(&dates("2025-12-31 23:00 UTC", 9), hours(0), hours(2));
    assert!(early.is_err());
    // A log that is dated earlier, and whose first job comes late enough.
    let curve =
        spec(&path, "").resolve(&dates("2025-12-31 23:00 UTC", 9), hours(1), hours(2)).unwrap();
    assert_eq!(stretches(&curve, 0, 2), [(1, None), (1, Some(1))]);
}

#[test]
fn a_series_that_repeats_is_known_for_ever() {
    let (_folder, path) = file(DAY);
    // Three years before, at 20:00: six hours of 4 have two to go.
    let dates = dates("2023-01-01 20:00 UTC", 3);
    let curve = spec(&path, " repeat").resolve(&dates, hours(0), hours(900)).unwrap();
    // The day from 20:00 to 20:00 comes again: 4 until midnight.
    let day = [(4, Some(4)), (6, Some(1)), (6, Some(2)), (6, Some(3)), (2, Some(4))];
    assert_eq!(stretches(&curve, 0, 24), day);
    assert_eq!(stretches(&curve, 24, 30), [(4, Some(4)), (2, Some(1))]);
    assert_eq!(curve.until(), hours(72));
    let (_folder, path) = file("time,price_eur_per_mwh\n0,1\n3600,2\n");
    let curve = spec(&path, " repeat").resolve(
        &RunDates { until: hours(5), ..RunDates::unknown() },
        hours(0),
        hours(4),
    );
    let expected = [Some(1), Some(2), Some(1), Some(2), Some(1), None];
    assert_eq!(hourly(&curve.unwrap(), 6), expected);
}

#[test]
fn a_tariff_has_one_currency() {
    let spec = TariffSpec {
        price: Some(parse_price("0.3USD/kWh").unwrap()),
        carbon: None,
        demand: Some("12EUR/kW".parse().unwrap()),
        outdoor: None,
    };
    let dates = dates("2026-01-01 UTC", 3);
    let error = spec.resolve(&dates, hours(0), hours(1)).unwrap_err().to_string();
    assert!(error.contains("the price is 0.3USD/kWh and the demand charge 12EUR/kW"), "{error}");
    let alone = TariffSpec { price: None, ..spec };
    assert!(alone.resolve(&dates, hours(0), hours(1)).is_ok());
    let error = alone.resolve(&RunDates::unknown(), hours(0), hours(1)).unwrap_err();
    assert_eq!(error.to_string(), "demand charge");
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(why.starts_with("dates are needed"), "{why}");
}

#[test]
fn demand_charges_are_read_with_their_unit() {
    for (text, shown) in [("12EUR/kW", "12EUR/kW"), ("12500 eur/MW", "12.5EUR/kW")] {
        assert_eq!(text.parse::<DemandCharge>().unwrap().to_string(), shown);
    }
    for text in ["12", "12EUR", "12/kW", "12EUR/kWh", "-1EUR/kW"] {
        assert!(text.parse::<DemandCharge>().is_err(), "{text}");
    }
    let charge: DemandCharge = "12EUR/kW".parse().unwrap();
    // 1.5 kW and 2.5 kW.
    assert_eq!(charge.micros(4_000_000), 48_000_000);
}

/// From 31 January at 23:50 on: 1 kW for ten minutes, 3 kW for five, 1 kW for ten, 2 kW until 00:50.
#[test]
fn the_highest_quarter_of_each_month_by_hand() {
    let calendar: Calendar = "2026-01-31 23:50 Europe/Berlin".parse().unwrap();
    let dates = RunDates { calendar: Ok(calendar), until: hours(24 * 40) };
    let months = Months::of(&dates).unwrap();
    let minutes = |minutes: u32| Instant::from_secs(60 * minutes);
    let mut peaks = Peaks::begin(&months, minutes(0));
    let kilowatts = |kw: u32| Watts::from_watts(1000 * kw);
    peaks.advance(&months, minutes(10), kilowatts(1));
    // Ten minutes of 1 kW of the last quarter of January: as a mean, two thirds of a kilowatt.
    assert_eq!((peaks.total(), peaks.months()), (666_667, 2));
    peaks.advance(&months, minutes(15), kilowatts(3));
    peaks.advance(&months, minutes(25), kilowatts(1));
    // 3 kW for five minutes and 1 kW for ten: 1667 W.
    assert_eq!(peaks.highest(), Watts::from_milliwatts(1_666_667));
    peaks.advance(&months, minutes(60), kilowatts(2));
    assert_eq!(peaks.highest(), kilowatts(2));
    assert_eq!(peaks.total(), 666_667 + 2_000_000);
    // Nothing more for a month: March has a highest quarter of nothing.
    peaks.advance(&months, hours(24 * 30), Watts::ZERO);
    assert_eq!((peaks.total(), peaks.months()), (2_666_667, 3));
}

/// Long stretches of one power are passed over, with the same outcome as minute by minute.
#[test]
fn long_stretches_count_like_short_ones() {
    let dates = dates("2026-02-20 10:07:13 US/Pacific", 60);
    let months = Months::of(&dates).unwrap();
    let begin = Instant::from_millis(12_345);
    let [mut long, mut short] = [Peaks::begin(&months, begin); 2];
    let mut at = begin;
    for (minutes, watts) in [(7u64, 100), (50_000, 200), (1, 900), (20, 300), (30_000, 250)] {
        let power = Watts::from_watts(watts);
        for _ in 0..minutes {
            at = at + Span::from_millis(60_000);
            short.advance(&months, at, power);
        }
        long.advance(&months, at, power);
        assert_eq!(
            (long.total(), long.highest(), long.months()),
            (short.total(), short.highest(), short.months())
        );
    }
    assert_eq!(long.months(), 3);
}
