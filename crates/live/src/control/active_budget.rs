//! The budget in force: as configured, unless an operator has set another limit.

use super::clock::Clock;
use super::schedule::{Mapping, Schedule, ScheduleSpec, timestamp};
use busbar_core::budget::{Allowance, Budget, parse_rules};
use busbar_core::calendar::looks_like_rules;
use busbar_core::machine::Machine;
use busbar_core::units::{Instant, Span};
use jiff::tz::TimeZone;

/// The budget in force.
#[derive(Clone)]
pub struct ActiveBudget {
    configured: Schedule,
    mapping: Option<Mapping>,
    /// The limit that an operator has set, or the limits.
    by_operator: Option<Schedule>,
}

impl ActiveBudget {
    /// The configured budget.
    pub fn new(schedule: Schedule) -> Self {
        ActiveBudget { configured: schedule, mapping: None, by_operator: None }
    }

    /// The same with another configured budget; an operator's limit stays.
    pub(crate) fn with(&self, schedule: Schedule) -> Self {
        let by_operator = self.by_operator.clone();
        ActiveBudget { configured: schedule, mapping: None, by_operator }
    }

    /// Whether an operator's limit is in force.
    pub(crate) fn is_overridden(&self) -> bool {
        self.by_operator.is_some()
    }

    /// Restores an operator's limit after a restart. A limit that is no longer valid is ignored,
    /// with an error in the log.
    pub fn restore_override(&mut self, text: Option<&str>, machine: &Machine) {
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

    /// What is in force: what an operator has set, or what is configured.
    pub(crate) fn schedule(&self) -> &Schedule {
        self.by_operator.as_ref().unwrap_or(&self.configured)
    }

    /// The current limit and later ones.
    pub(crate) fn budget(&mut self, clock: &Clock) -> Budget {
        let mapping = self.schedule().map(clock);
        let budget = mapping.budget.clone();
        self.mapping = Some(mapping);
        budget
    }

    /// The limits for a while, as if they had been those of now. `wall`, in milliseconds since 1970, and `from`
    /// are the same moment by both clocks.
    pub(crate) fn during(&self, wall: i64, from: Instant, length: Span) -> Budget {
        self.schedule().budget(timestamp(wall), from, length)
    }

    /// The limits, if they must be looked up again: because the known ones run out, or because the
    /// wall clock was set.
    pub(crate) fn renewed(&mut self, clock: &Clock) -> Option<Budget> {
        let is_stale = self.mapping.as_ref().is_none_or(|mapping| mapping.is_stale(clock));
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
        let mut budget = ActiveBudget::new(Schedule::unlimited());
        let text = "weekdays 14:00-18:00: 60%, else 900W";
        let limits = budget.set_override(Some(text), &machine, &clock).unwrap();
        let now = clock.now();
        let later = |hours: u32| now + Span::from_secs(3600 * hours);
        let watts = [0, 2, 6, 26, 30].map(|hours| limits.at(later(hours)));
        assert_eq!(watts, [900, 600, 900, 600, 900].map(Watts::from_watts));
        let mut restarted = ActiveBudget::new(Schedule::unlimited());
        restarted.restore_override(Some(text), &machine);
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
