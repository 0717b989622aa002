//! Values over time in a CSV file, one row for each hour or any other interval: prices, carbon intensities, temperatures.

use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::TariffError;
use super::rate::{Measure, Rate, parse_signed, unit};
use crate::calendar::{NoCalendar, When, local_after};
use crate::rows::{Form, TableError, lines, quoting};
use crate::units::{Celsius, Instant};

/// What a series may be of.
pub trait SeriesValue: Copy {
    /// What the name of a column says of its values.
    type Unit;
    /// What the file is, as in 'cannot read the series'.
    const WHAT: &'static str;
    /// How a heading is written, as the end of an error: 'write time,price_eur_per_mwh'.
    const FORM: &'static str;
    /// What columns may be called, for messages.
    const COLUMNS: &'static str;

    /// The unit that the name of a column ends with, if it does.
    fn unit(column: &str) -> Option<Self::Unit>;

    /// Reads a value of a column.
    fn read(text: &str, unit: &Self::Unit) -> Result<Self, String>;
}

impl SeriesValue for Rate {
    /// What is counted, and how many billionths of it for each kilowatt hour a value of 1 is.
    type Unit = (Measure, i64);
    const WHAT: &'static str = "the series";
    const FORM: &'static str = "write time,price_eur_per_mwh";
    const COLUMNS: &'static str = "price_eur_per_mwh or carbon_g_per_kwh";

    fn unit(column: &str) -> Option<Self::Unit> {
        unit(column)
    }

    fn read(text: &str, (of, per_unit): &Self::Unit) -> Result<Self, String> {
        let nanos_per_kwh = parse_signed(text, *per_unit).map_err(|why| why.to_string())?;
        Ok(Rate { of: *of, nanos_per_kwh })
    }
}

impl SeriesValue for Celsius {
    type Unit = ();
    const WHAT: &'static str = "the temperatures";
    const FORM: &'static str = "write time,outdoor_c";
    const COLUMNS: &'static str = "outdoor_c or temperature_celsius";

    fn unit(column: &str) -> Option<()> {
        let lower = column.to_lowercase();
        let last = lower.rsplit(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty())?;
        ["c", "degc", "celsius"].contains(&last).then_some(())
    }

    fn read(text: &str, (): &()) -> Result<Self, String> {
        Celsius::from_number(text)
    }
}

/// Values from times on, each until the next, and the last until `end`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Series<T, V> {
    pub(super) steps: Vec<(T, V)>,
    pub(super) end: T,
}

/// A series as a file gives it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Timed<V> {
    /// By the start of the log.
    After(Series<Instant, V>),
    /// By dates.
    Dated(Series<Timestamp, V>),
}

/// Which columns a file has.
struct Columns<U> {
    time: usize,
    is_utc: bool,
    value: usize,
    unit: U,
}

/// Reads a column of a file; if none is named, the one that has a unit. Dates without a zone are in `zone`.
pub(super) fn read<V: SeriesValue>(
    path: &Path,
    column: Option<&str>,
    zone: Result<&TimeZone, &NoCalendar>,
) -> Result<Timed<V>, TariffError> {
    let form = Form { what: V::WHAT, columns: &["time"], form: V::FORM };
    parse(&form.read(path)?, path, column, zone)
}

fn row_error(path: &Path, line: usize, field: &'static str, why: impl Into<String>) -> TariffError {
    TableError::Row { path: path.to_owned(), line, field, why: why.into() }.into()
}

pub(super) fn parse<V: SeriesValue>(
    text: &str,
    path: &Path,
    column: Option<&str>,
    zone: Result<&TimeZone, &NoCalendar>,
) -> Result<Timed<V>, TariffError> {
    let mut rows = lines(text);
    let empty = || Form::incomplete(path, format!("it is empty; {} and rows below", V::FORM));
    let (line, heading) = rows.next().ok_or_else(empty)?;
    let columns = columns::<V>(heading, path, line, column)?;
    let (mut after, mut dated) = (Vec::new(), Vec::new());
    for (line, row) in rows {
        let fields = quoting::split(row, ',').map_err(|why| row_error(path, line, "time", why))?;
        let cell = |place: usize| fields.get(place).map_or("", |field| field.trim());
        let value = match cell(columns.value) {
            "" => Err("the value is missing, and unknown is not zero; fill it in".to_owned()),
            value => V::read(value, &columns.unit),
        };
        let value = value.map_err(|why| row_error(path, line, "value", why))?;
        let time = cell(columns.time);
        match When::parse(time) {
            Ok(When::After(at)) => after.push((at, value, line)),
            Ok(when @ (When::At(_) | When::Local(_))) => {
                let zone = if columns.is_utc { Ok(&TimeZone::UTC) } else { zone };
                let last = dated.last().map(|step: &(Timestamp, V, usize)| step.0);
                let at = match when {
                    When::At(at) => Some(at),
                    When::Local(local) => local_after(zone.map_err(Clone::clone)?, local, last),
                    When::After(_) | When::Daily(_) => None,
                };
                let beyond = || {
                    row_error(
                        path,
                        line,
                        "time",
                        format!("'{time}' is out of the range of calendars"),
                    )
                };
                dated.push((at.ok_or_else(beyond)?, value, line));
            }
            Ok(When::Daily(_)) | Err(_) => {
                let why = format!(
                    "'{time}' is not a time; write a date and time (2026-11-15 22:00, or 2026-11-15T22:00:00Z), \
                     or seconds since the start of the log (3600)"
                );
                return Err(row_error(path, line, "time", why));
            }
        }
    }
    match (&after[..], &dated[..]) {
        ([_, _, ..], []) => {
            let millis = |at: Instant| i128::from(at.millis());
            let last = last_gap(path, &after, millis)?;
            let (end, _, _) = after[after.len() - 1];
            let end = Instant::from_millis(end.millis().saturating_add(last as u64));
            Ok(Timed::After(Series { steps: without_lines(after), end }))
        }
        ([], [_, _, ..]) => {
            let last = last_gap(path, &dated, |at| i128::from(at.as_millisecond()))?;
            let (end, _, _) = dated[dated.len() - 1];
            let end = end.checked_add(jiff::SignedDuration::from_millis(last as i64));
            let end = end.unwrap_or(Timestamp::MAX);
            Ok(Timed::Dated(Series { steps: without_lines(dated), end }))
        }
        ([], _) | (_, []) => Err(Form::incomplete(
            path,
            "a series needs at least two rows; for a single value, give the value itself",
        )
        .into()),
        _ => Err(Form::incomplete(
            path,
            "some times are dates and some are seconds; write the same in all rows",
        )
        .into()),
    }
}

fn without_lines<T, V>(rows: Vec<(T, V, usize)>) -> Vec<(T, V)> {
    rows.into_iter().map(|(at, value, _)| (at, value)).collect()
}

/// How long the last row holds: as long as the one before it. Times must increase, and no row may be missing: an
/// interval longer than the one before it must stay so.
fn last_gap<T: Copy, V>(
    path: &Path,
    rows: &[(T, V, usize)],
    millis: impl Fn(T) -> i128,
) -> Result<i128, TariffError> {
    const DAY: i128 = 86_400_000;
    let gaps: Vec<i128> =
        rows.windows(2).map(|pair| millis(pair[1].0) - millis(pair[0].0)).collect();
    let is_month = |gap: i128| (28 * DAY..=31 * DAY).contains(&gap);
    let alike = |one: i128, other: i128| one == other || is_month(one) && is_month(other);
    for (place, &gap) in gaps.iter().enumerate() {
        let line = rows[place + 1].2;
        if gap <= 0 {
            return Err(row_error(path, line, "time", "it does not come after the row before it"));
        }
        let Some(before) = place.checked_sub(1).map(|place| gaps[place]) else { continue };
        let stays = || {
            let next = &gaps[place + 1..gaps.len().min(place + 4)];
            !next.is_empty() && next.iter().all(|next| alike(*next, gap))
        };
        if gap > before && !alike(gap, before) && !stays() {
            let missing = format!(
                "the {} s before it are missing: the row before it covers {} s; add the missing rows",
                (gap - before) / 1000,
                before / 1000
            );
            return Err(row_error(path, line, "time", missing));
        }
    }
    Ok(gaps.last().copied().unwrap_or(0))
}

/// Finds the columns in a heading.
fn columns<V: SeriesValue>(
    heading: &str,
    path: &Path,
    line: usize,
    column: Option<&str>,
) -> Result<Columns<V::Unit>, TariffError> {
    let names = quoting::split(heading, ',').map_err(|why| row_error(path, line, "time", why))?;
    let names: Vec<&str> = names.iter().map(|name| name.trim()).collect();
    let is_time = |name: &&str| -> bool {
        let name = name.to_lowercase();
        name.starts_with("time") || name.starts_with("date")
    };
    let Some(time) = names.iter().position(is_time) else {
        let form = V::FORM;
        let why = format!(
            "'{heading}' is not a heading with a time; the first line must be for example: {form}"
        );
        return Err(row_error(path, line, "time", why));
    };
    let with_unit = || names.iter().filter(|name| V::unit(name).is_some()).copied();
    let value = match column {
        Some(asked) => named(&names, asked),
        None => {
            let mut with_unit = (0..names.len()).filter(|place| V::unit(names[*place]).is_some());
            with_unit.next().filter(|_| with_unit.next().is_none())
        }
    };
    let Some(value) = value else {
        let known: Vec<&str> = with_unit().collect();
        let why = match (column, &known[..]) {
            (_, []) => format!("no column name has a unit; name it for example {}", V::COLUMNS),
            (Some(asked), known) => {
                format!("there is no column '{asked}'; it has {}", known.join(", "))
            }
            (None, known) => format!(
                "it has several columns; name one, as in {}:{}: {}",
                path.display(),
                known[0],
                known.join(", ")
            ),
        };
        return Err(Form::incomplete(path, why).into());
    };
    let Some(unit) = V::unit(names[value]) else {
        let why = format!(
            "the column '{}' has no unit in its name; name it for example {}",
            names[value],
            V::COLUMNS
        );
        return Err(Form::incomplete(path, why).into());
    };
    let is_utc = names[time].to_lowercase().ends_with("utc");
    Ok(Columns { time, is_utc, value, unit })
}

/// The column of this name, or the only one that begins with it.
fn named(names: &[&str], asked: &str) -> Option<usize> {
    let exact = names.iter().position(|name| name.eq_ignore_ascii_case(asked));
    exact.or_else(|| {
        let begins = |name: &str| {
            let rest = name.get(..asked.len()).filter(|start| start.eq_ignore_ascii_case(asked));
            rest.is_some()
                && !name[asked.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-')
        };
        let mut found = (0..names.len()).filter(|place| begins(names[*place]));
        found.next().filter(|_| found.next().is_none())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, column: Option<&str>) -> Result<Timed<Rate>, String> {
        read_as(text, column)
    }

    fn read_as<V: SeriesValue>(text: &str, column: Option<&str>) -> Result<Timed<V>, String> {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        parse(text, Path::new("p.csv"), column, Ok(&zone)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_series_has_its_unit_in_its_heading() {
        let text = "time_utc,hour,DE_g_co2e_per_kwh,FR_g_co2e_per_kwh\n\
                    2023-01-01T00:00Z,0,185.8,51.19\n2023-01-01 01:00,1,185.7,52.24\n";
        let Timed::Dated(series) = read(text, Some("DE")).unwrap() else { panic!() };
        assert_eq!(series.steps[0].1.to_string(), "185.8g/kWh");
        assert_eq!(series.steps[1].0.to_string(), "2023-01-01T01:00:00Z");
        assert_eq!(series.end.to_string(), "2023-01-01T02:00:00Z");
        let error = read(text, None).unwrap_err();
        assert!(
            error.contains("name one, as in p.csv:DE_g_co2e_per_kwh: DE_g_co2e_per_kwh, FR"),
            "{error}"
        );
        let error = read(text, Some("NL")).unwrap_err();
        assert!(error.contains("there is no column 'NL'; it has DE_g"), "{error}");
        let error = read(text, Some("hour")).unwrap_err();
        assert!(error.contains("'hour' has no unit in its name"), "{error}");
        let seconds = "time,price_eur_per_mwh\n0,80\n900,-5\n";
        let Timed::After(series) = read(seconds, None).unwrap() else { panic!() };
        assert_eq!(series.steps[1].1.to_string(), "-0.005EUR/kWh");
        assert_eq!(series.end, Instant::from_secs(1800));
    }

    /// On the last Sunday of October 02:00 comes twice, on that of March it does not come.
    #[test]
    fn local_hours_are_followed_through_the_changes_of_the_clock() {
        let heading = "time,price_eur_per_mwh\n";
        let autumn =
            "2026-10-25 01:00,1\n2026-10-25 02:00,2\n2026-10-25 02:00,3\n2026-10-25 03:00,4\n";
        let Timed::Dated(series) = read(&format!("{heading}{autumn}"), None).unwrap() else {
            panic!()
        };
        let times: Vec<String> = series.steps.iter().map(|step| step.0.to_string()).collect();
        let hours =
            ["24T23", "25T00", "25T01", "25T02"].map(|hour| format!("2026-10-{hour}:00:00Z"));
        assert_eq!(times, hours);
        let spring = "2026-03-29 01:00,1\n2026-03-29 03:00,2\n2026-03-29 04:00,3\n";
        assert!(read(&format!("{heading}{spring}"), None).is_ok());
    }

    #[test]
    fn what_is_missing_has_a_place() {
        let heading = "time,price_eur_per_mwh\n";
        for (rows, what) in [
            (
                "0,1\n3600,\n",
                "line 3, field 'value': the value is missing, and unknown is not zero",
            ),
            (
                "0,1\n3600,2\n10800,3\n14400,4\n",
                "line 4, field 'time': the 3600 s before it are missing",
            ),
            ("0,1\n3600,2\n3600,3\n", "line 4, field 'time': it does not come after"),
            ("0,1\nnoon,2\n", "line 3, field 'time': 'noon' is not a time; write a date"),
            ("0,1\n", "at least two rows"),
            ("0,1\n3600,x\n", "line 3, field 'value': 'x' is not a number"),
        ] {
            let error = read(&format!("{heading}{rows}"), None).unwrap_err();
            assert!(error.starts_with("p.csv") && error.contains(what), "{rows}: {error}");
        }
        assert!(read("1,2\n3,4\n", None).unwrap_err().contains("is not a heading with a time"));
        assert!(read("time,price\n0,1\n", None).unwrap_err().contains("no column name has a unit"));
        // From hours to quarters, and back to hours.
        let finer = "0,1\n3600,1\n7200,1\n8100,1\n9000,1\n12600,1\n16200,1\n19800,1\n";
        assert!(read(&format!("{heading}{finer}"), None).is_ok());
    }

    #[test]
    fn temperatures_are_read_like_prices() {
        let read = |text: &str| read_as::<Celsius>(text, None);
        let text = "time_utc,outdoor_c,price_eur_per_mwh\n2026-01-01 00:00,-3.5,80\n2026-01-01 01:00,12,90\n";
        let Timed::Dated(series) = read(text).unwrap() else { panic!() };
        let shown: Vec<String> = series.steps.iter().map(|step| step.1.to_string()).collect();
        assert_eq!(shown, ["-3.5C", "12C"]);
        for (text, what) in [
            (
                "time,temperature_f\n0,70\n3600,71\n",
                "name it for example outdoor_c or temperature_celsius",
            ),
            ("time,outdoor_c\n0,1\n3600,\n", "line 3, field 'value': the value is missing"),
            (
                "time,outdoor_c\n0,1\n3600,cold\n",
                "line 3, field 'value': 'cold' is not a temperature",
            ),
            (
                "time,outdoor_c\n0,1\n3600,-400\n",
                "line 3, field 'value': '-400' is not a temperature",
            ),
            (
                "1,2\n",
                "'1,2' is not a heading with a time; the first line must be for example: write time,outdoor_c",
            ),
            ("", "it is empty; write time,outdoor_c and rows below"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with("p.csv") && error.contains(what), "{text}: {error}");
        }
    }
}
