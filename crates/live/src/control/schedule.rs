//! Budgets by the wall clock: one limit, limits from given dates on, a daily profile, or rules.
//!
//! People plan power by local time: less from 22:00 on, or almost nothing during maintenance on the
//! 15th. A daemon decides by its own clock, which nobody can set. A [`Schedule`] holds limits in local
//! time; [`Schedule::map`] converts those of the next two days to the daemon's time, since policies
//! look ahead at known limits. When the wall clock is set, or when less than a day of known limits is
//! left, the [`Mapping`] is stale and must be made again.
//!
//! A daily profile and rules follow the wall clock on days with a time change, too. Limits in the skipped hour
//! end at once, and those in the repeated hour apply twice.

use std::path::PathBuf;
use std::str::FromStr;

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::clock::Clock;
pub use busbar_core::budget::Allowance;
use busbar_core::budget::{Budget, BudgetError, BudgetSpec, Limits, TimeBase};
use busbar_core::calendar::{Rules, Timetable, clock_face};
use busbar_core::machine::Machine;
use busbar_core::units::{Instant, Span, Watts};

/// A schedule as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleSpec {
    /// The same at all times: `none`, `6500W`, `80%`.
    Always(Allowance),
    /// By the calendar: `weekdays 14:00-18:00: 80%, else 100%`.
    Rules(Rules<Allowance>),
    /// A file of rules, or of `time,budget` rows with dates and times or with times of the day.
    File(PathBuf),
    /// Limits from these times of each day on, in order.
    Daily(Vec<(Time, Allowance)>),
}

impl FromStr for ScheduleSpec {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        Ok(match text.parse()? {
            BudgetSpec::Constant(allowance) => ScheduleSpec::Always(allowance),
            BudgetSpec::Rules(rules) => ScheduleSpec::Rules(rules),
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
            ScheduleSpec::Always(allowance) => Timetable::Always(allowance.on(machine)?),
            ScheduleSpec::Rules(rules) => {
                Timetable::Rules(rules.try_map(|allowance| allowance.on(machine))?)
            }
            ScheduleSpec::File(path) => match Limits::read(path, machine, &TimeBase::Wall(zone))? {
                Limits::Timed(plan) => plan,
                // Seconds were refused, as there is nothing that they count from.
                Limits::After(_) => return Err(BudgetError::NoRows { path: path.clone() }.into()),
            },
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
                Timetable::Daily(steps)
            }
        };
        Ok(Schedule { plan, zone: zone.clone() })
    }
}

/// The machine's budget by the wall clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    plan: Timetable<Watts>,
    zone: TimeZone,
}

impl Schedule {
    /// How far ahead limits are known.
    pub(crate) const HORIZON: Span = Span::from_secs(48 * 3600);
    /// The longest horizon; a daily profile and rules never end.
    const MOST_AHEAD: Span = Span::from_secs(366 * 24 * 3600);

    /// No limit at any time.
    pub fn unlimited() -> Self {
        Schedule { plan: Timetable::Always(Watts::UNLIMITED), zone: TimeZone::UTC }
    }

    /// Limits in this time zone.
    pub(crate) fn of(plan: Timetable<Watts>, zone: &TimeZone) -> Self {
        Schedule { plan, zone: zone.clone() }
    }

    /// The time zone of its limits.
    pub(crate) fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// The limit at a time.
    pub(crate) fn at(&self, wall: Timestamp) -> Watts {
        *self.plan.at(wall, &self.zone)
    }

    /// The limits within the horizon, in the daemon's time; the last of them stays. `wall` and
    /// `now` are the same moment by both clocks.
    pub(crate) fn budget(&self, wall: Timestamp, now: Instant, horizon: Span) -> Budget {
        let mut steps = vec![(now, self.at(wall))];
        for (moment, limit) in self.plan.changes(&self.zone, wall, later(wall, horizon)) {
            let ahead = moment.duration_since(wall).as_millis();
            let at = now + Span::from_millis(u64::try_from(ahead).unwrap_or(0));
            match steps.last_mut() {
                // Less than a millisecond later.
                Some(last) if last.0 >= at => last.1 = limit,
                _ => steps.push((at, limit)),
            }
        }
        // The loop above makes sure that times increase.
        Budget::from_steps(steps).unwrap_or_else(|_| Budget::constant(self.at(wall)))
    }

    /// The limits of the next two days, in the time of this clock.
    pub fn map(&self, clock: &Clock) -> Mapping {
        let (wall, now) = (clock.wall_now(), clock.now());
        let budget = self.budget(timestamp(wall), now, Schedule::HORIZON);
        let ends = later(timestamp(wall), Schedule::HORIZON);
        let made = match &self.plan {
            Timetable::Always(_) => Made::ForAllTime,
            plan if plan.is_over(ends) => Made::At { wall, now, until: Instant::NEVER },
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
    pub(crate) fn is_stale(&self, clock: &Clock) -> bool {
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
