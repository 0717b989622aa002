//! Schedules as CSV files: rows of `time,budget`.
//!
//! Times are all dates (`2026-11-15 22:00`, in local time, or `2026-11-15T22:00:00Z`), or all times of
//! the day (`22:00`), which come again each day.

use std::path::Path;

use jiff::Timestamp;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;

use super::{Allowance, Plan, clock_face, parse_clock_face};
use busbar_core::budget::{BudgetError, LIMITS};
use busbar_core::machine::Machine;

/// The time from which a row applies.
enum When {
    On(Timestamp),
    Daily(Time),
}

/// Reads a file.
pub(super) fn read(path: &Path, machine: &Machine, zone: &TimeZone) -> Result<Plan, BudgetError> {
    parse(&LIMITS.read(path)?, path, machine, zone)
}

pub(super) fn parse(
    text: &str,
    path: &Path,
    machine: &Machine,
    zone: &TimeZone,
) -> Result<Plan, BudgetError> {
    let (mut dated, mut daily) = (Vec::new(), Vec::new());
    for cells in LIMITS.rows(text, path) {
        let cells = cells?;
        let [time, limit] = cells.all();
        let wrong = |field, why: String| BudgetError::Table(cells.unreadable(field, why));
        let when = parse_when(time, zone).map_err(|why| wrong("time", why))?;
        let limit = limit
            .parse::<Allowance>()
            .map_err(|error| wrong("budget", error.to_string()))?
            .on(machine)
            .map_err(|error| wrong("budget", error.to_string()))?;
        match when {
            When::On(_) if !daily.is_empty() => {
                let why =
                    format!("'{time}' is a date, and the rows before it are times of the day");
                return Err(wrong("time", why + "; write either in all rows"));
            }
            When::Daily(_) if !dated.is_empty() => {
                let why =
                    format!("'{time}' is a time of the day, and the rows before it are dates");
                return Err(wrong("time", why + "; write either in all rows"));
            }
            When::On(at) => {
                if let Some((before, _)) =
                    dated.last().filter(|step: &&(Timestamp, _)| step.0 >= at)
                {
                    let before = zone.to_datetime(*before);
                    return Err(wrong("time", format!("'{time}' does not come after {before}")));
                }
                dated.push((at, limit));
            }
            When::Daily(from) => {
                if let Some((before, _)) = daily.last().filter(|step: &&(Time, _)| step.0 >= from) {
                    let before = clock_face(*before);
                    return Err(wrong("time", format!("'{time}' does not come after {before}")));
                }
                daily.push((from, limit));
            }
        }
    }
    match (dated.is_empty(), daily.is_empty()) {
        (false, _) => Ok(Plan::Dated(dated)),
        (_, false) => Ok(Plan::Daily(daily)),
        _ => Err(BudgetError::NoRows { path: path.to_owned() }),
    }
}

fn parse_when(text: &str, zone: &TimeZone) -> Result<When, String> {
    const VALID: &str = "write a time of the day (22:00), or a date and time (2026-11-15 22:00, or \
                         2026-11-15T22:00:00Z)";
    let is_date = text.contains('-');
    if text.contains(':') && !is_date {
        return parse_clock_face(text).map(When::Daily);
    }
    if !is_date && text.parse::<f64>().is_ok() {
        return Err(format!("'{text}' has no beginning that seconds could count from; {VALID}"));
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(When::On(at));
    }
    // A zone in brackets would be ignored, so it is refused.
    let local = text.parse::<DateTime>().ok().filter(|_| !text.contains('['));
    let at = local.and_then(|local| zone.to_timestamp(local).ok());
    at.map(When::On).ok_or_else(|| format!("'{text}' is not a time; {VALID}"))
}
