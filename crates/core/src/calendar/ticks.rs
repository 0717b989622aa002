//! Dates and times of day beside an axis.

use jiff::civil::{DateTime, Time};
use jiff::{Span as Civil, Unit};

use super::Calendar;
use crate::units::Instant;

/// How far apart marks may be: of which unit how many.
const STEPS: [(Unit, i64); 18] = [
    (Unit::Minute, 1),
    (Unit::Minute, 5),
    (Unit::Minute, 15),
    (Unit::Minute, 30),
    (Unit::Hour, 1),
    (Unit::Hour, 3),
    (Unit::Hour, 6),
    (Unit::Hour, 12),
    (Unit::Day, 1),
    (Unit::Day, 2),
    (Unit::Day, 3),
    (Unit::Day, 7),
    (Unit::Day, 14),
    (Unit::Month, 1),
    (Unit::Month, 3),
    (Unit::Month, 6),
    (Unit::Year, 1),
    (Unit::Year, 10),
];

/// The seconds of a unit; of a month and of a year, those of the shortest.
fn seconds(unit: Unit) -> u64 {
    match unit {
        Unit::Minute => 60,
        Unit::Hour => 3600,
        Unit::Day => 86_400,
        Unit::Month => 28 * 86_400,
        _ => 365 * 86_400,
    }
}

impl Calendar {
    /// Round dates or times of day between two instants, at most so many, each with how it is written.
    pub fn ticks(&self, begin: Instant, end: Instant, most: u64) -> Vec<(Instant, String)> {
        let length = end.since(begin).millis() / 1000;
        let fits = |step: &&(Unit, i64)| seconds(step.0) * step.1 as u64 * most >= length;
        let &(unit, count) = STEPS.iter().find(fits).unwrap_or(&STEPS[STEPS.len() - 1]);
        let civil = match unit {
            Unit::Minute => Civil::new().minutes(count),
            Unit::Hour => Civil::new().hours(count),
            Unit::Day => Civil::new().days(count),
            Unit::Month => Civil::new().months(count),
            _ => Civil::new().years(count),
        };
        let mut ticks = Vec::new();
        // A step beyond the end, for times that a clock skips.
        for wall in first(self.wall(begin), unit, count).series(civil).take(4 * most as usize) {
            let Ok(time) = self.zone().to_timestamp(wall) else { break };
            if time > self.time(end) {
                break;
            }
            if time >= self.time(begin) {
                ticks.push((self.instant(time), written(wall, unit)));
            }
        }
        ticks
    }
}

/// The last round time that is not after this one.
fn first(wall: DateTime, unit: Unit, count: i64) -> DateTime {
    let count = i8::try_from(count).unwrap_or(1);
    let (date, time) = (wall.date(), wall.time());
    let down = |value: i8| value / count * count;
    match unit {
        Unit::Minute => {
            date.to_datetime(Time::new(time.hour(), down(time.minute()), 0, 0).unwrap_or_default())
        }
        Unit::Hour => date.to_datetime(Time::new(down(time.hour()), 0, 0, 0).unwrap_or_default()),
        // Weeks begin on Monday.
        Unit::Day if count >= 7 => {
            let since = i64::from(date.weekday().to_monday_zero_offset());
            date.saturating_sub(Civil::new().days(since)).to_datetime(Time::midnight())
        }
        Unit::Day => date.to_datetime(Time::midnight()),
        Unit::Month => {
            let month = (date.month() - 1) / count * count + 1;
            let day = date.with().month(month).day(1).build().unwrap_or(date);
            day.to_datetime(Time::midnight())
        }
        _ => {
            let year = date.year() / i16::from(count) * i16::from(count);
            let day = date.with().year(year).month(1).day(1).build().unwrap_or(date);
            day.to_datetime(Time::midnight())
        }
    }
}

fn written(wall: DateTime, unit: Unit) -> String {
    let is_midnight = wall.time() == Time::midnight();
    let format = match unit {
        Unit::Minute | Unit::Hour if !is_midnight => "%H:%M",
        Unit::Minute | Unit::Hour | Unit::Day => "%-d %b",
        Unit::Month => "%b %Y",
        _ => "%Y",
    };
    wall.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(start: &str, hours: u32) -> Vec<(f64, String)> {
        let calendar: Calendar = start.parse().unwrap();
        let ticks = calendar.ticks(Instant::ZERO, Instant::from_secs(3600 * hours), 8);
        ticks.into_iter().map(|(at, text)| (at.secs_f64() / 3600.0, text)).collect()
    }

    #[test]
    fn marks_stand_at_round_times_of_the_wall() {
        let ticks = texts("2026-11-03 10:20 Europe/Berlin", 24);
        let names: Vec<&str> = ticks.iter().map(|tick| tick.1.as_str()).collect();
        assert_eq!(names, ["12:00", "15:00", "18:00", "21:00", "4 Nov", "03:00", "06:00", "09:00"]);
        let weeks = texts("2026-11-03 10:20 Europe/Berlin", 24 * 30);
        assert_eq!(weeks[0].1, "9 Nov");
        let year = texts("2026-02-03 UTC", 24 * 365);
        let names: Vec<&str> = year.iter().map(|tick| tick.1.as_str()).collect();
        assert_eq!(names, ["Apr 2026", "Jul 2026", "Oct 2026", "Jan 2027"]);
    }

    /// The day of 25 hours: midnight after it is 25 hours later.
    #[test]
    fn days_are_as_long_as_they_are() {
        let days = texts("2026-10-25 00:00 Europe/Berlin", 24 * 4);
        let places: Vec<f64> = days.iter().map(|tick| tick.0).collect();
        assert_eq!(places[..3], [0.0, 13.0, 25.0]);
        assert_eq!(days[2].1, "26 Oct");
    }
}
