//! Dates and times of day, as people plan by them: budgets, tariffs, figures of the peak hours.
//!
//! A run counts milliseconds from the start of its log. A [`Calendar`] says which date and time that start is,
//! and in which time zone; so every instant of the run has a date, and days of 23 and 25 hours are as long as
//! they are. [`Condition`]s say when something holds (`weekdays 14:00-18:00 nov..feb`), [`Rules`] give values by
//! conditions, and a [`Timetable`] is values over time in any of the forms in which they are written.
//!
//! Zones are those of the IANA database that is built in: the same input gives the same answer on any machine.

use std::fmt;
use std::str::FromStr;

use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, Zoned};

use crate::spelling::hint;
use crate::units::{Instant, Span};

mod condition;
mod cycle;
mod days;
mod rules;
#[cfg(test)]
mod tests;
mod ticks;
mod time_of_day;
mod timetable;
mod when;
mod windows;

pub use condition::{Condition, ConditionError};
pub(crate) use rules::rule_value;
pub use rules::{Rules, RulesError, looks_like_rules};
pub use time_of_day::{clock_face, parse_clock_face};
pub use timetable::Timetable;
pub(crate) use when::local_after;
pub use when::{When, WhenError};
pub use windows::Windows;

/// Which date and time a run's instants have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Calendar(Zoned);

/// Why a run's instants have no dates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoCalendar {
    /// Nobody says.
    #[error(
        "the start date of the workload is unknown; give it, such as --start '2026-01-01 00:00 \
         Europe/Berlin'"
    )]
    NotSaid,
    /// The header of the log names no zone.
    #[error(
        "the log's header says when it starts (UnixStartTime {unix}), but not in which time zone \
         (TimeZoneString); give it, such as --start '{start}[Europe/Berlin]'"
    )]
    NoZone {
        /// The start in seconds since 1970.
        unix: i64,
        /// The same as a date in UTC.
        start: Timestamp,
    },
    /// The zone of the header is none.
    #[error(
        "the log's header names the time zone '{name}' (TimeZoneString), which the IANA database does not \
         have{hint} give it, such as --start '{start}[Europe/Berlin]'"
    )]
    UnknownZone {
        /// What the header says.
        name: String,
        /// What may have been meant.
        hint: String,
        /// The start as a date in UTC.
        start: Timestamp,
    },
}

/// Why a text is no start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The zone is missing.
    #[error("'{0}' has no time zone; add one, such as '{0} Europe/Berlin' or '{0} UTC'")]
    NoZone(String),
    /// The zone is not known.
    #[error(
        "'{name}' is not a time zone of the IANA database{hint} write one such as Europe/Berlin, US/Pacific or UTC"
    )]
    UnknownZone {
        /// The text as written.
        name: String,
        /// What may have been meant.
        hint: String,
    },
    /// The date and time are wrong.
    #[error("'{0}' is not a date and time; write for example '2026-01-01 00:00 Europe/Berlin'")]
    NotATime(String),
    /// The clock never shows this time, or shows it twice.
    #[error(
        "a clock in {zone} shows {local} {times}, as it is set on that day; write the time in UTC, such as \
         '{utc}[{zone}]'"
    )]
    NotOnce {
        /// The zone.
        zone: String,
        /// The time on the wall.
        local: DateTime,
        /// How often the clock shows it.
        times: &'static str,
        /// What may have been meant.
        utc: Timestamp,
    },
    /// The offset is not the one that the zone has then.
    #[error(
        "'{text}' has an offset that {zone} does not have then; leave it out, as in '{local} {zone}'"
    )]
    WrongOffset {
        /// The text as written.
        text: String,
        /// The zone.
        zone: String,
        /// The time on the wall.
        local: DateTime,
    },
}

/// A zone of the built-in database, by its name; what may have been meant if it has none.
fn zone(name: &str) -> Result<TimeZone, String> {
    let zones = TimeZoneDatabase::bundled();
    zones.get(name).map_err(|_| {
        let known: Vec<String> = zones.available().map(|name| name.to_string()).collect();
        hint(name, known.iter().map(String::as_str))
    })
}

impl FromStr for Calendar {
    type Err = StartError;

    /// Reads `2026-01-01 00:00 Europe/Berlin`, `2026-01-01T00:00:00+01:00[Europe/Berlin]` and
    /// `2026-01-01T00:00:00Z`.
    fn from_str(text: &str) -> Result<Self, StartError> {
        let text = text.trim();
        let not_a_time = || StartError::NotATime(text.to_owned());
        let (when, name) = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
            Some((when, name)) => (when.trim(), Some(name)),
            None => match text.rsplit_once(' ') {
                // A time begins with a digit, and a zone does not.
                Some((when, name)) if name.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                    (when.trim(), Some(name))
                }
                _ => (text, None),
            },
        };
        // An offset in brackets repeats what the time has.
        let name = name.filter(|name| !name.starts_with(['+', '-']));
        let known = name.map(|name| {
            zone(name).map_err(|hint| StartError::UnknownZone { name: name.to_owned(), hint })
        });
        let zone = known.transpose()?;
        if let Ok(at) = when.parse::<Timestamp>() {
            return with_offset(when, at, zone).map(Calendar);
        }
        let local: DateTime = when.parse().map_err(|_| not_a_time())?;
        let zone = zone.ok_or_else(|| StartError::NoZone(text.to_owned()))?;
        let found = zone.to_ambiguous_timestamp(local);
        let earlier = found.earlier().map_err(|_| not_a_time())?;
        let at = found.unambiguous().map_err(|_| StartError::NotOnce {
            zone: name.unwrap_or_default().to_owned(),
            local,
            times: if zone.to_datetime(earlier) == local { "twice" } else { "never" },
            utc: earlier,
        })?;
        Ok(Calendar(at.to_zoned(zone)))
    }
}

/// A time with an offset or `Z`, in its own zone or in the one that is named.
fn with_offset(when: &str, at: Timestamp, zone: Option<TimeZone>) -> Result<Zoned, StartError> {
    let local = when.parse::<DateTime>().ok();
    let Some(zone) = zone else {
        // What the time on the wall is ahead of UTC is the offset.
        let offset = local.and_then(|local| {
            let utc = TimeZone::UTC.to_timestamp(local).ok()?;
            let ahead = i32::try_from(utc.duration_since(at).as_secs()).ok()?;
            jiff::tz::Offset::from_seconds(ahead).ok()
        });
        return Ok(at.to_zoned(offset.map_or(TimeZone::UTC, TimeZone::fixed)));
    };
    match local {
        // `Z` is no time on the wall.
        Some(local) if zone.to_datetime(at) != local => Err(StartError::WrongOffset {
            text: when.to_owned(),
            zone: zone.iana_name().unwrap_or_default().to_owned(),
            local,
        }),
        _ => Ok(at.to_zoned(zone)),
    }
}

/// In a form that says all there is to say, and that can be read again.
impl fmt::Display for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Calendar {
    /// What the header of a log says: seconds since 1970, and the name of a zone. Zero and less stand for
    /// 'not known' in the headers of logs.
    pub fn of_header(unix: Option<i64>, name: Option<&str>) -> Result<Self, NoCalendar> {
        let unix = unix.filter(|unix| *unix > 0).ok_or(NoCalendar::NotSaid)?;
        let start = Timestamp::from_second(unix).map_err(|_| NoCalendar::NotSaid)?;
        let name = name.ok_or(NoCalendar::NoZone { unix, start })?;
        match zone(name.trim()) {
            Ok(zone) => Ok(Calendar(start.to_zoned(zone))),
            Err(hint) => Err(NoCalendar::UnknownZone { name: name.to_owned(), hint, start }),
        }
    }

    /// The time zone.
    pub fn zone(&self) -> &TimeZone {
        self.0.time_zone()
    }

    /// The name of the time zone, or its offset.
    pub fn zone_name(&self) -> String {
        let offset = || self.0.offset().to_string();
        self.zone().iana_name().map_or_else(offset, str::to_owned)
    }

    /// The time of an instant; the last there is for those that no calendar has.
    pub fn time(&self, instant: Instant) -> Timestamp {
        let passed =
            SignedDuration::from_millis(i64::try_from(instant.millis()).unwrap_or(i64::MAX));
        self.0.timestamp().checked_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// The instant of a time; the start for times before it.
    pub(crate) fn instant(&self, time: Timestamp) -> Instant {
        let passed = time.duration_since(self.0.timestamp()).as_millis();
        Instant::from_millis(u64::try_from(passed.max(0)).unwrap_or(u64::MAX))
    }

    /// How long after a time, or a whole number of periods after it or before it, the clock begins.
    pub(crate) fn begins_after(&self, time: Timestamp, period: Span) -> Span {
        let passed = self.0.timestamp().duration_since(time).as_millis();
        let part = passed.rem_euclid(i128::from(period.millis().max(1)));
        Span::from_millis(u64::try_from(part).unwrap_or(0))
    }

    /// The time on the wall at an instant.
    pub fn wall(&self, instant: Instant) -> DateTime {
        self.zone().to_datetime(self.time(instant))
    }

    /// An instant as a date and a time on the wall, to the minute or the second.
    pub fn shown(&self, instant: Instant) -> String {
        self.shown_time(self.time(instant))
    }

    /// An instant as a date and a time with its zone, in a form that scripts read.
    pub fn zoned(&self, instant: Instant) -> String {
        let zoned = self.time(instant).to_zoned(self.zone().clone());
        jiff::fmt::temporal::DateTimePrinter::new().precision(Some(0)).zoned_to_string(&zoned)
    }

    /// A time as a date and a time on the wall, to the minute or the second.
    pub(crate) fn shown_time(&self, time: Timestamp) -> String {
        let wall = self.zone().to_datetime(time);
        let format = if wall.second() == 0 { "%Y-%m-%d %H:%M" } else { "%Y-%m-%d %H:%M:%S" };
        wall.strftime(format).to_string()
    }
}

/// The dates of a run: which they are, if that is known, and how far they are looked up.
#[derive(Clone, Debug, PartialEq)]
pub struct RunDates {
    /// The dates of its instants.
    pub calendar: Result<Calendar, NoCalendar>,
    /// Until when they are looked up.
    pub until: Instant,
}

impl RunDates {
    /// How much longer than the log rules are looked up.
    const BEYOND: Span = Span::from_millis(366 * 24 * 3_600_000);
    /// The longest time for which they are.
    const LONGEST: Instant = Instant::from_millis(1000 * 366 * 24 * 3_600_000);

    /// A run without dates.
    pub fn unknown() -> Self {
        RunDates { calendar: Err(NoCalendar::NotSaid), until: Instant::ZERO }
    }

    /// The dates of a run on a log that ends then, if no job waits: twice as long as the log, and a year more.
    pub(crate) fn of_log(calendar: Result<Calendar, NoCalendar>, end: Instant) -> Self {
        let twice = Instant::from_millis(end.millis().saturating_mul(2));
        RunDates { calendar, until: (twice + RunDates::BEYOND).min(RunDates::LONGEST) }
    }

    /// The values of a timetable from the start on. After all that is looked up, `afterwards` holds, unless
    /// nothing would change any more.
    pub(crate) fn steps<T: Clone + PartialEq>(
        &self,
        timetable: &Timetable<T>,
        afterwards: &T,
    ) -> Result<Vec<(Instant, T)>, NoCalendar> {
        if let Timetable::Always(value) = timetable {
            return Ok(vec![(Instant::ZERO, value.clone())]);
        }
        let calendar = self.calendar.as_ref().map_err(Clone::clone)?;
        let (zone, start) = (calendar.zone(), calendar.time(Instant::ZERO));
        let mut steps = vec![(Instant::ZERO, timetable.at(start, zone).clone())];
        let until =
            if matches!(timetable, Timetable::Dated(_)) { Instant::LAST } else { self.until };
        let end = calendar.time(until);
        for (time, value) in timetable.changes(zone, start, end) {
            match (calendar.instant(time), steps.last_mut()) {
                // Less than a millisecond later.
                (at, Some(last)) if last.0 >= at => last.1 = value,
                (at, _) => steps.push((at, value)),
            }
        }
        if !timetable.is_over(end)
            && steps.last().is_some_and(|step| step.0 < until && step.1 != *afterwards)
        {
            steps.push((until, afterwards.clone()));
        }
        Ok(steps)
    }
}
