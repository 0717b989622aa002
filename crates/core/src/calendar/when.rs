//! Times as the first field of a row gives them.

use jiff::Timestamp;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;

use super::time_of_day::parse_clock_face;
use crate::units::{Instant, parse_decimal};

/// From when on a row holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// So long after the start of the log: `3600`.
    After(Instant),
    /// At a time of each day: `22:00`.
    Daily(Time),
    /// At a date and time of some zone: `2026-11-15T22:00:00Z`.
    At(Timestamp),
    /// At a date and time on the wall: `2026-11-15 22:00`.
    Local(DateTime),
}

/// Why a time cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhenError {
    /// It has a colon, and is no time of day; what is right is said.
    TimeOfDay(String),
    /// It is none of the forms.
    Unknown,
}

impl When {
    /// Reads a time.
    pub fn parse(text: &str) -> Result<Self, WhenError> {
        let text = text.trim();
        let is_date = text.contains('-');
        if text.contains(':') && !is_date {
            return parse_clock_face(text).map(When::Daily).map_err(WhenError::TimeOfDay);
        }
        if !is_date {
            let millis = parse_decimal(text, 1000).map_err(|_| WhenError::Unknown)?;
            return Ok(When::After(Instant::from_millis(millis)));
        }
        if let Ok(at) = text.parse::<Timestamp>() {
            return Ok(When::At(at));
        }
        // A zone in brackets would be ignored, so it is refused.
        let local = text.parse::<DateTime>().ok().filter(|_| !text.contains('['));
        local.map(When::Local).ok_or(WhenError::Unknown)
    }
}

/// The time at which a clock on the wall shows this, after another time. If the clock shows it twice, it is the
/// first time after that; a time that the clock skips is when it would have been.
pub(crate) fn local_after(
    zone: &TimeZone,
    local: DateTime,
    before: Option<Timestamp>,
) -> Option<Timestamp> {
    let found = zone.to_ambiguous_timestamp(local);
    let first = found.compatible().ok()?;
    match before {
        Some(before) if found.is_ambiguous() && first <= before => found.later().ok(),
        _ => Some(first),
    }
}
