//! Times in the past as people type them: `today`, `yesterday`, a date, a time of day, or how long ago.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Span as Calendar, Timestamp, Zoned};

use crate::units::parse_length;

/// A time, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment(pub(super) i64);

/// Reads a time in this machine's time zone.
pub(super) fn parse(text: &str) -> Result<Moment, String> {
    at(text, &Timestamp::now().to_zoned(TimeZone::system())).map(Moment).ok_or_else(|| {
        format!(
            "'{text}' is not a time; write today, yesterday, now, 7d or 2h (ago), 14:30, \
             2026-11-18 or 2026-11-18T14:30"
        )
    })
}

/// The beginning of today.
pub(super) fn today() -> i64 {
    let now = Timestamp::now().to_zoned(TimeZone::system());
    now.start_of_day().map_or(0, |day| day.timestamp().as_second())
}

fn at(text: &str, now: &Zoned) -> Option<i64> {
    let text = text.trim();
    let today = now.date();
    let zoned = match text {
        "now" => now.clone(),
        "today" => now.start_of_day().ok()?,
        "yesterday" => start(today.yesterday().ok()?, now)?,
        _ => {
            if let Some(day) = date(text) {
                start(day, now)?
            } else if let Some(clock) = clock(text) {
                within(today.to_datetime(clock), now)?
            } else if let Some((day, rest)) = text.split_once(['T', ' ']) {
                within(date(day)?.to_datetime(clock(rest)?), now)?
            } else {
                // The form of sacct: now-2days.
                let ago = text.strip_prefix("now-").unwrap_or(text);
                let ago = ["seconds", "minutes", "hours", "days"]
                    .into_iter()
                    .flat_map(|unit| [unit, &unit[..unit.len() - 1]])
                    .find_map(|unit| Some(format!("{}{}", ago.strip_suffix(unit)?, &unit[..1])))
                    .unwrap_or_else(|| ago.to_owned());
                let millis = i64::try_from(parse_length(&ago).ok()?.millis()).ok()?;
                now.checked_sub(Calendar::new().try_milliseconds(millis).ok()?).ok()?
            }
        }
    };
    Some(zoned.timestamp().as_second())
}

/// A date as YYYY-MM-DD.
fn date(text: &str) -> Option<Date> {
    let is_date =
        text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    is_date.then(|| text.parse().ok()).flatten()
}

/// A time of day as HH:MM or HH:MM:SS.
fn clock(text: &str) -> Option<Time> {
    let is_clock =
        text.contains(':') && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    is_clock.then(|| text.parse().ok()).flatten()
}

fn start(day: Date, now: &Zoned) -> Option<Zoned> {
    within(day.to_datetime(Time::midnight()), now)
}

fn within(time: DateTime, now: &Zoned) -> Option<Zoned> {
    time.to_zoned(now.time_zone().clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_all_their_forms() {
        // In Berlin it is 2026-03-30, 10:30; the night before, the clock went from 02:00 to 03:00.
        let now: Zoned = "2026-03-30T10:30:00+02:00[Europe/Berlin]".parse().unwrap();
        let second = |text: &str| text.parse::<Timestamp>().unwrap().as_second();
        for (text, expected) in [
            ("now", "2026-03-30T08:30:00Z"),
            ("today", "2026-03-29T22:00:00Z"),
            ("yesterday", "2026-03-28T23:00:00Z"),
            ("2026-03-01", "2026-02-28T23:00:00Z"),
            ("2026-03-01T14:30", "2026-03-01T13:30:00Z"),
            ("2026-03-01 14:30:15", "2026-03-01T13:30:15Z"),
            ("09:00", "2026-03-30T07:00:00Z"),
            ("2h", "2026-03-30T06:30:00Z"),
            ("1d", "2026-03-29T08:30:00Z"),
            ("now-2days", "2026-03-28T08:30:00Z"),
            ("now-1hour", "2026-03-30T07:30:00Z"),
            ("90min", "2026-03-30T07:00:00Z"),
        ] {
            assert_eq!(at(text, &now), Some(second(expected)), "{text}");
        }
        for wrong in ["", "x", "12", "2026-13-01", "25:00", "2026-03-01T", "-1d", "tomorrow", "1-2"]
        {
            assert_eq!(at(wrong, &now), None, "{wrong}");
        }
    }
}
