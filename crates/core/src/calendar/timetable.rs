//! Values over time by the clock on the wall.

use jiff::Timestamp;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;

use super::rules::Rules;

/// Values over time, as a clock and a calendar on the wall show it. Lists are not empty, and their times
/// increase.
#[derive(Clone, Debug, PartialEq)]
pub enum Timetable<T> {
    /// The same at all times.
    Always(T),
    /// From these times on; the first also holds before its time.
    Dated(Vec<(Timestamp, T)>),
    /// From these times of each day on; the last holds until the first of the next day.
    Daily(Vec<(Time, T)>),
    /// By rules.
    Rules(Rules<T>),
}

impl<T: Clone + PartialEq> Timetable<T> {
    /// The value at a time.
    pub fn at(&self, wall: Timestamp, zone: &TimeZone) -> &T {
        match self {
            Timetable::Always(value) => value,
            Timetable::Dated(steps) => {
                let begun = steps.partition_point(|step| step.0 <= wall);
                &steps[begun.saturating_sub(1)].1
            }
            Timetable::Daily(steps) => {
                let time = zone.to_datetime(wall).time();
                let begun = steps.partition_point(|step| step.0 <= time);
                &steps[begun.checked_sub(1).unwrap_or(steps.len() - 1)].1
            }
            Timetable::Rules(rules) => rules.at(zone.to_datetime(wall)),
        }
    }

    /// The values that begin in (`wall`, `end`], in order, each where it differs from the one before it.
    pub fn changes(&self, zone: &TimeZone, wall: Timestamp, end: Timestamp) -> Vec<(Timestamp, T)> {
        let mut last = self.at(wall, zone).clone();
        let mut changes = Vec::new();
        for moment in self.moments(zone, wall, end) {
            let value = self.at(moment, zone);
            if *value != last {
                last = value.clone();
                changes.push((moment, last.clone()));
            }
        }
        changes
    }

    /// The times in (`wall`, `end`] at which the value may change, in order.
    fn moments(&self, zone: &TimeZone, wall: Timestamp, end: Timestamp) -> Vec<Timestamp> {
        match self {
            Timetable::Always(_) => Vec::new(),
            Timetable::Dated(steps) => {
                let times = steps.iter().map(|step| step.0);
                times.filter(|moment| wall < *moment && *moment <= end).collect()
            }
            Timetable::Daily(steps) => {
                let faces: Vec<Time> = steps.iter().map(|step| step.0).collect();
                moments(zone, &faces, wall, end)
            }
            Timetable::Rules(rules) => moments(zone, &rules.faces(), wall, end),
        }
    }

    /// Whether no value begins after a time.
    pub fn is_over(&self, wall: Timestamp) -> bool {
        match self {
            Timetable::Always(_) => true,
            Timetable::Dated(steps) => steps.iter().all(|step| step.0 <= wall),
            Timetable::Daily(_) | Timetable::Rules(_) => false,
        }
    }

    /// All values.
    pub fn values(&self) -> Box<dyn Iterator<Item = &T> + '_> {
        match self {
            Timetable::Always(value) => Box::new(std::iter::once(value)),
            Timetable::Dated(steps) => Box::new(steps.iter().map(|step| &step.1)),
            Timetable::Daily(steps) => Box::new(steps.iter().map(|step| &step.1)),
            Timetable::Rules(rules) => Box::new(rules.values()),
        }
    }
}

/// The times in (`wall`, `end`] at which a clock on the wall shows one of these faces, or is set, in order.
/// When a clock is set, a face may be skipped, or come twice.
fn moments(zone: &TimeZone, faces: &[Time], wall: Timestamp, end: Timestamp) -> Vec<Timestamp> {
    let changes = zone.following(wall).map(|change| change.timestamp());
    let mut moments: Vec<_> = changes.take_while(|change| *change <= end).collect();
    // The offset may change around midnight, so the days before and after count, too.
    let first = zone.to_datetime(wall).date();
    let last = zone.to_datetime(end).date();
    let mut day = first.yesterday().unwrap_or(first);
    let last = last.tomorrow().unwrap_or(last);
    while day <= last {
        for &face in faces {
            let found = zone.to_ambiguous_timestamp(DateTime::from_parts(day, face));
            moments.extend([found.earlier(), found.later()].into_iter().flatten());
        }
        let Ok(next) = day.tomorrow() else { break };
        day = next;
    }
    moments.retain(|moment| wall < *moment && *moment <= end);
    moments.sort_unstable();
    moments.dedup();
    moments
}
