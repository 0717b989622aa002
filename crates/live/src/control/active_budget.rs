//! The limits in force, of the machine and of its feeds: as configured, unless an operator has set another one.

use std::collections::BTreeMap;

use super::clock::Clock;
use super::schedule::{Mapping, Schedule, ScheduleSpec, timestamp};
use crate::job::Scope;
use busbar_core::budget::{Allowance, Budget, parse_rules};
use busbar_core::calendar::looks_like_rules;
use busbar_core::machine::Machine;
use busbar_core::spelling::closest;
use busbar_core::units::{Instant, Span};
use jiff::tz::TimeZone;

/// The limits in force.
#[derive(Clone)]
pub struct ActiveBudget {
    configured: Schedule,
    /// The limit that an operator has set, or the limits.
    by_operator: Option<Schedule>,
    /// By feed of the machine: its limit.
    feeds: Vec<OfFeed>,
    /// What operators have set of parts of the machine, as they wrote it, also of parts that it does not have now.
    said: BTreeMap<Scope, String>,
    /// The limits in the daemon's time: of the machine, then of its feeds.
    mapped: Vec<Mapping>,
}

/// The limit of a feed.
#[derive(Clone)]
struct OfFeed {
    name: String,
    configured: Schedule,
    by_operator: Option<Schedule>,
}

impl OfFeed {
    /// What is in force.
    fn schedule(&self) -> &Schedule {
        self.by_operator.as_ref().unwrap_or(&self.configured)
    }
}

impl ActiveBudget {
    /// The configured budget of a machine.
    pub fn new(schedule: Schedule, machine: &Machine) -> Self {
        let feeds = machine.feeds.iter().flat_map(|feeds| feeds.all());
        let feeds = feeds.map(|feed| OfFeed {
            name: feed.name.clone(),
            configured: Schedule::of(feed.limit.clone(), schedule.zone()),
            by_operator: None,
        });
        let feeds = feeds.collect();
        let (by_operator, said, mapped) = (None, BTreeMap::new(), Vec::new());
        ActiveBudget { configured: schedule, by_operator, feeds, said, mapped }
    }

    /// The same with another configured budget on another machine. What operators have set stays, where there is still such a part
    /// of the machine and the limit can be kept there.
    pub(crate) fn with(&self, schedule: Schedule, machine: &Machine) -> Self {
        let by_operator = self.by_operator.clone();
        let mut active = ActiveBudget { by_operator, ..ActiveBudget::new(schedule, machine) };
        active.restore_parts(&self.said, machine);
        active
    }

    /// Whether an operator's limit is in force.
    pub(crate) fn is_overridden(&self) -> bool {
        self.by_operator.is_some()
    }

    /// By feed: whether an operator has set its limit.
    pub(crate) fn overridden_feeds(&self) -> impl Iterator<Item = bool> {
        self.feeds.iter().map(|feed| feed.by_operator.is_some())
    }

    /// Restores what operators have set after a restart. A limit that is no longer valid is ignored,
    /// with an error in the log.
    pub fn restore_override(
        &mut self,
        text: Option<&str>,
        parts: &BTreeMap<Scope, String>,
        machine: &Machine,
    ) {
        let zone = self.configured.zone();
        self.by_operator = text.and_then(|text| match limits(text, machine, zone) {
            Ok(limits) => Some(limits),
            Err(error) => {
                tracing::error!(
                    error,
                    "an operator's budget is invalid; the configured one is in force"
                );
                None
            }
        });
        self.restore_parts(parts, machine);
    }

    fn restore_parts(&mut self, parts: &BTreeMap<Scope, String>, machine: &Machine) {
        self.feeds.iter_mut().for_each(|feed| feed.by_operator = None);
        self.said.clone_from(parts);
        for (scope, text) in parts {
            if let Err(error) = self.set_part(scope, Some(text), machine) {
                tracing::error!(
                    error,
                    "an operator's limit of {scope} is invalid; the configured one is in force"
                );
            }
        }
    }

    /// Sets an operator's limit, or removes it so that the configuration applies again.
    pub(crate) fn set_override(
        &mut self,
        text: Option<&str>,
        machine: &Machine,
        clock: &Clock,
    ) -> Result<Budget, String> {
        let zone = self.configured.zone();
        self.by_operator = text.map(|text| limits(text, machine, zone)).transpose()?;
        Ok(self.budget(clock))
    }

    /// The same for a part of the machine.
    pub(crate) fn set_part_override(
        &mut self,
        scope: &Scope,
        text: Option<&str>,
        machine: &Machine,
        clock: &Clock,
    ) -> Result<Budget, String> {
        self.set_part(scope, text, machine)?;
        match text {
            Some(text) => _ = self.said.insert(scope.clone(), text.to_owned()),
            None => _ = self.said.remove(scope),
        }
        Ok(self.budget(clock))
    }

    fn set_part(
        &mut self,
        scope: &Scope,
        text: Option<&str>,
        machine: &Machine,
    ) -> Result<(), String> {
        let Scope::Feed(name) = scope;
        let Some(place) = self.feeds.iter().position(|feed| feed.name == *name) else {
            return Err(self.no_such_feed(name));
        };
        let limits = text.map(|text| machine.limit_of_feed(place, text)).transpose();
        let limits = limits.map_err(|error| format!("{scope}: {error}"))?;
        let zone = self.configured.zone();
        self.feeds[place].by_operator = limits.map(|limits| Schedule::of(limits, zone));
        Ok(())
    }

    fn no_such_feed(&self, name: &str) -> String {
        let names: Vec<&str> = self.feeds.iter().map(|feed| feed.name.as_str()).collect();
        if names.is_empty() {
            return "the machine has no feeds; describe them in its machine file ([[feed]])"
                .to_owned();
        }
        let meant = closest(name, names.iter().copied());
        let meant =
            meant.map_or_else(|| ".".to_owned(), |meant| format!("; did you mean '{meant}'?"));
        format!("there is no feed '{name}'{meant} The machine has {}", names.join(", "))
    }

    /// What is in force: what an operator has set, or what is configured.
    pub(crate) fn schedule(&self) -> &Schedule {
        self.by_operator.as_ref().unwrap_or(&self.configured)
    }

    /// The current limits and later ones.
    pub(crate) fn budget(&mut self, clock: &Clock) -> Budget {
        let feeds = self.feeds.iter().map(OfFeed::schedule);
        self.mapped =
            std::iter::once(self.schedule()).chain(feeds).map(|one| one.map(clock)).collect();
        let mut budgets = self.mapped.iter().map(|mapping| mapping.budget.clone());
        let machine = budgets.next().unwrap_or_else(Budget::unlimited);
        machine.with_feeds(budgets.collect())
    }

    /// The limits for a while, as if they had been those of now. `wall`, in milliseconds since 1970, and `from`
    /// are the same moment by both clocks.
    pub(crate) fn during(&self, wall: i64, from: Instant, length: Span) -> Budget {
        let during = |schedule: &Schedule| schedule.budget(timestamp(wall), from, length);
        let feeds = self.feeds.iter().map(|feed| during(feed.schedule()));
        during(self.schedule()).with_feeds(feeds.collect())
    }

    /// The limits, if they must be looked up again: because the known ones run out, or because the
    /// wall clock was set.
    pub(crate) fn renewed(&mut self, clock: &Clock) -> Option<Budget> {
        let is_stale = self.mapped.is_empty() || self.mapped.iter().any(|one| one.is_stale(clock));
        is_stale.then(|| self.budget(clock))
    }
}

/// Reads a limit as an operator writes it, or limits by the calendar in a time zone. Files are not read: they are
/// the operator's, and the daemon's own are named in its configuration.
pub(super) fn limits(text: &str, machine: &Machine, zone: &TimeZone) -> Result<Schedule, String> {
    let advice = "write watts (6500W), a share of the machine's maximum (80%), rules ('weekdays 14:00-18:00: 80%, \
                  else 100%'), none, or configured";
    let spec = match text.parse::<Allowance>() {
        Ok(limit) => ScheduleSpec::Always(limit),
        Err(_) if looks_like_rules(text) => {
            let rules = parse_rules(text);
            ScheduleSpec::Rules(rules.map_err(|error| format!("budget '{text}': {error}"))?)
        }
        Err(error) => return Err(format!("budget '{text}': {error}; {advice}")),
    };
    spec.resolve(machine, zone).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use busbar_core::units::Watts;

    /// An operator's rules hold by the clock on the wall, also after a restart, until they are taken back.
    #[test]
    fn an_operator_may_set_rules() {
        let machine = Machine::of_processors(10).unwrap();
        let (clock, hand) = Clock::by_hand();
        // Tuesday, 3 November 2026, 12:00.
        let noon: jiff::Timestamp = "2026-11-03T12:00:00Z".parse().unwrap();
        hand.set_wall(noon.as_millisecond());
        let mut budget = ActiveBudget::new(Schedule::unlimited(), &machine);
        let text = "weekdays 14:00-18:00: 60%, else 900W";
        let limits = budget.set_override(Some(text), &machine, &clock).unwrap();
        let now = clock.now();
        let later = |hours: u32| now + Span::from_secs(3600 * hours);
        let watts = [0, 2, 6, 26, 30].map(|hours| limits.at(later(hours)));
        assert_eq!(watts, [900, 600, 900, 600, 900].map(Watts::from_watts));
        let mut restarted = ActiveBudget::new(Schedule::unlimited(), &machine);
        restarted.restore_override(Some(text), &BTreeMap::new(), &machine);
        assert!(restarted.is_overridden());
        assert_eq!(restarted.budget(&clock), limits);
        // A day later, more is looked up.
        assert!(restarted.renewed(&clock).is_none());
        hand.advance(Span::from_secs(25 * 3600));
        let renewed = restarted.renewed(&clock).unwrap();
        assert_eq!(renewed.at(later(51)), Watts::from_watts(600));
        let back = restarted.set_override(None, &machine, &clock).unwrap();
        assert!(!back.is_limited());
        for (text, what) in [
            ("weekdays: 60%", "budget 'weekdays: 60%': no rule applies on"),
            ("lots", "write watts (6500W)"),
            ("feed.csv", "write watts (6500W)"),
        ] {
            let error = restarted.set_override(Some(text), &machine, &clock).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
