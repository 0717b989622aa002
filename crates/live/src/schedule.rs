//! Budgets by the wall clock: one limit, limits from given dates on, or a daily profile.
//!
//! People plan power by local time: less from 22:00 on, or almost nothing during maintenance on the
//! 15th. A daemon decides by its own clock, which nobody can set. A [`Schedule`] holds limits in local
//! time; [`Schedule::map`] converts those of the next two days to the daemon's time, since policies
//! look ahead at known limits. When the wall clock is set, or when less than a day of known limits is
//! left, the [`Mapping`] is stale and must be made again.
//!
//! A daily profile follows the wall clock on days with a time change, too. Limits in the skipped hour
//! end at once, and those in the repeated hour apply twice.

use std::path::PathBuf;
use std::str::FromStr;

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::clock::Clock;
pub use busbar_core::budget::Allowance;
use busbar_core::budget::{Budget, BudgetError, BudgetSpec};
use busbar_core::machine::Machine;
use busbar_core::units::{Instant, Span, Watts};

mod csv;

/// A schedule as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleSpec {
    /// The same at all times: `none`, `6500W`, `80%`.
    Always(Allowance),
    /// A CSV file of `time,budget` rows, with dates and times or with times of the day.
    File(PathBuf),
    /// Limits from these times of each day on, in order.
    Daily(Vec<(Time, Allowance)>),
}

impl FromStr for ScheduleSpec {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        Ok(match text.parse()? {
            BudgetSpec::Constant(allowance) => ScheduleSpec::Always(allowance),
            BudgetSpec::File(path) => ScheduleSpec::File(path),
        })
    }
}

/// Why a schedule cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// A limit is wrong for the machine.
    #[error(transparent)]
    Limit(#[from] BudgetError),
    /// A limit of the daily profile is wrong for the machine.
    #[error("from {from}")]
    OfDay {
        /// The time from which it would apply.
        from: Time,
        /// What is wrong with the limit.
        source: BudgetError,
    },
    /// The times of the daily profile do not increase, or there are none.
    #[error("{0}")]
    Order(String),
}

impl ScheduleSpec {
    /// Resolves the limits for a machine. Times without a zone are in `zone`.
    pub fn resolve(&self, machine: &Machine, zone: &TimeZone) -> Result<Schedule, ScheduleError> {
        let plan = match self {
            ScheduleSpec::Always(allowance) => Plan::Always(allowance.on(machine)?),
            ScheduleSpec::File(path) => csv::read(path, machine, zone)?,
            ScheduleSpec::Daily(steps) => {
                let limit = |&(from, allowance): &(Time, Allowance)| {
                    let limit = allowance.on(machine);
                    let limit = limit.map_err(|source| ScheduleError::OfDay { from, source })?;
                    Ok((from, limit))
                };
                let steps: Vec<_> =
                    steps.iter().map(limit).collect::<Result<_, ScheduleError>>()?;
                if let Some(pair) = steps.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
                    let (before, after) = (clock_face(pair[0].0), clock_face(pair[1].0));
                    let why = format!("{after} does not come after {before}");
                    return Err(ScheduleError::Order(why));
                }
                if steps.is_empty() {
                    return Err(ScheduleError::Order("give at least one time".to_owned()));
                }
                Plan::Daily(steps)
            }
        };
        Ok(Schedule { plan, zone: zone.clone() })
    }
}

/// A time of day as it is written: `22:00`.
pub(super) fn clock_face(time: Time) -> String {
    let format = if time.second() == 0 { "%H:%M" } else { "%H:%M:%S" };
    time.strftime(format).to_string()
}

/// Reads a time of day, in hours and minutes: `22:00`, or to the second.
pub(super) fn parse_clock_face(text: &str) -> Result<Time, String> {
    let wrong = || format!("'{text}' is not a time of day; write 00:00 to 23:59, such as 22:00");
    let mut parts = [0; 3];
    let fields: Vec<&str> = text.trim().split(':').collect();
    if !(2..=3).contains(&fields.len()) {
        return Err(wrong());
    }
    for (part, field) in parts.iter_mut().zip(&fields) {
        let is_number = (1..=2).contains(&field.len()) && field.bytes().all(|b| b.is_ascii_digit());
        *part = field.parse().ok().filter(|_| is_number).ok_or_else(wrong)?;
    }
    Time::new(parts[0], parts[1], parts[2], 0).map_err(|_| wrong())
}

/// The machine's budget by the wall clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    plan: Plan,
    zone: TimeZone,
}

/// Limits with the times from which they apply. Lists are not empty, and their times increase.
#[derive(Clone, Debug, PartialEq)]
enum Plan {
    Always(Watts),
    /// The first limit also applies before its time.
    Dated(Vec<(Timestamp, Watts)>),
    /// The last limit applies until the first of the next day.
    Daily(Vec<(Time, Watts)>),
}

impl Schedule {
    /// How far ahead limits are known.
    pub const HORIZON: Span = Span::from_secs(48 * 3600);
    /// The longest horizon; a daily profile never ends.
    const MOST_AHEAD: Span = Span::from_secs(366 * 24 * 3600);

    /// No limit at any time.
    pub fn unlimited() -> Self {
        Schedule { plan: Plan::Always(Watts::UNLIMITED), zone: TimeZone::UTC }
    }

    /// The limit at a time.
    pub fn at(&self, wall: Timestamp) -> Watts {
        match &self.plan {
            Plan::Always(limit) => *limit,
            Plan::Dated(steps) => {
                let begun = steps.partition_point(|step| step.0 <= wall);
                steps[begun.saturating_sub(1)].1
            }
            Plan::Daily(steps) => {
                let time = self.zone.to_datetime(wall).time();
                let begun = steps.partition_point(|step| step.0 <= time);
                steps[begun.checked_sub(1).unwrap_or(steps.len() - 1)].1
            }
        }
    }

    /// The limits within the horizon, in the daemon's time; the last of them stays. `wall` and
    /// `now` are the same moment by both clocks.
    pub fn budget(&self, wall: Timestamp, now: Instant, horizon: Span) -> Budget {
        let mut steps = vec![(now, self.at(wall))];
        for moment in self.moments(wall, later(wall, horizon)) {
            let ahead = moment.duration_since(wall).as_millis();
            let at = now + Span::from_millis(u64::try_from(ahead).unwrap_or(0));
            let limit = self.at(moment);
            match steps.last_mut() {
                Some(last) if last.1 == limit => (),
                // Less than a millisecond later.
                Some(last) if last.0 >= at => last.1 = limit,
                _ => steps.push((at, limit)),
            }
        }
        // The loop above makes sure that times increase.
        Budget::from_steps(steps).unwrap_or_else(|_| Budget::constant(self.at(wall)))
    }

    /// The times in (`wall`, `end`] at which the limit may change, in order.
    fn moments(&self, wall: Timestamp, end: Timestamp) -> Vec<Timestamp> {
        let mut moments: Vec<Timestamp> = match &self.plan {
            Plan::Always(_) => Vec::new(),
            Plan::Dated(steps) => steps.iter().map(|step| step.0).collect(),
            Plan::Daily(steps) => {
                // A time of day may be repeated or skipped when the offset changes.
                let changes = self.zone.following(wall).map(|change| change.timestamp());
                let mut moments: Vec<_> = changes.take_while(|change| *change <= end).collect();
                // The offset may change around midnight, so the days before and after count, too.
                let first = self.zone.to_datetime(wall).date();
                let last = self.zone.to_datetime(end).date();
                let mut day = first.yesterday().unwrap_or(first);
                let last = last.tomorrow().unwrap_or(last);
                while day <= last {
                    for &(from, _) in steps {
                        let time = DateTime::from_parts(day, from);
                        let found = self.zone.to_ambiguous_timestamp(time);
                        moments.extend([found.earlier(), found.later()].into_iter().flatten());
                    }
                    let Ok(next) = day.tomorrow() else { break };
                    day = next;
                }
                moments
            }
        };
        moments.retain(|moment| wall < *moment && *moment <= end);
        moments.sort_unstable();
        moments.dedup();
        moments
    }

    /// The limits of the next two days, in the time of this clock.
    pub fn map(&self, clock: &Clock) -> Mapping {
        let (wall, now) = (clock.wall_now(), clock.now());
        let budget = self.budget(timestamp(wall), now, Schedule::HORIZON);
        let ends = later(timestamp(wall), Schedule::HORIZON);
        let made = match &self.plan {
            Plan::Always(_) => Made::ForAllTime,
            Plan::Dated(steps) if steps.iter().all(|step| step.0 <= ends) => {
                Made::At { wall, now, until: Instant::NEVER }
            }
            _ => {
                let half = Span::from_millis(Schedule::HORIZON.millis() / 2);
                Made::At { wall, now, until: now + half }
            }
        };
        Mapping { budget, made }
    }
}

/// A schedule in the daemon's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The limits.
    pub budget: Budget,
    made: Made,
}

/// When a mapping was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    ForAllTime,
    /// The time by both clocks, and when more limits must be looked up.
    At {
        wall: i64,
        now: Instant,
        until: Instant,
    },
}

impl Mapping {
    /// How far the clocks may diverge before limits are looked up again, in milliseconds.
    const SLACK: u64 = 1000;

    /// Whether it must be made again: the wall clock was set, or the known limits run out.
    pub fn is_stale(&self, clock: &Clock) -> bool {
        let Made::At { wall, now: made, until } = self.made else { return false };
        let now = clock.now();
        let passed = i64::try_from(now.since(made).millis()).unwrap_or(i64::MAX);
        let expected = wall.saturating_add(passed);
        now >= until || clock.wall_now().abs_diff(expected) > Mapping::SLACK
    }
}

/// A wall clock out of range is taken for the end of time.
pub(super) fn timestamp(millis: i64) -> Timestamp {
    let end = if millis < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(millis).unwrap_or(end)
}

fn later(wall: Timestamp, by: Span) -> Timestamp {
    let by = by.min(Schedule::MOST_AHEAD).millis();
    let by = SignedDuration::from_millis(i64::try_from(by).unwrap_or(i64::MAX));
    wall.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
