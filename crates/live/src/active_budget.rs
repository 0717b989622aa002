//! The budget in force: as configured, unless an operator has set another limit.

use super::clock::Clock;
use super::schedule::{Mapping, Schedule, timestamp};
use busbar_core::budget::{Allowance, Budget};
use busbar_core::machine::Machine;
use busbar_core::units::{Instant, Span, Watts};

/// The budget in force.
#[derive(Clone)]
pub struct ActiveBudget {
    schedule: Schedule,
    mapping: Option<Mapping>,
    /// The limit that an operator has set.
    override_limit: Option<Watts>,
}

impl ActiveBudget {
    /// The configured budget.
    pub fn new(schedule: Schedule) -> Self {
        ActiveBudget { schedule, mapping: None, override_limit: None }
    }

    /// The same with another configured budget; an operator's limit stays.
    pub fn with(&self, schedule: Schedule) -> Self {
        ActiveBudget { schedule, mapping: None, override_limit: self.override_limit }
    }

    /// Whether an operator's limit is in force.
    pub fn is_overridden(&self) -> bool {
        self.override_limit.is_some()
    }

    /// Restores an operator's limit after a restart. A limit that is no longer valid is ignored,
    /// with an error in the log.
    pub fn restore_override(&mut self, text: Option<&str>, machine: &Machine) {
        self.override_limit = text.and_then(|text| match limit(text, machine) {
            Ok(limit) => Some(limit),
            Err(error) => {
                tracing::error!(
                    error,
                    "an operator's budget cannot be used; the configured one holds"
                );
                None
            }
        });
    }

    /// Sets an operator's limit, or removes it so that the configuration applies again.
    pub fn set_override(
        &mut self,
        text: Option<&str>,
        machine: &Machine,
        clock: &Clock,
    ) -> Result<Budget, String> {
        self.override_limit = text.map(|text| limit(text, machine)).transpose()?;
        Ok(self.budget(clock))
    }

    /// The current limit and later ones.
    pub fn budget(&mut self, clock: &Clock) -> Budget {
        if let Some(limit) = self.override_limit {
            return Budget::constant(limit);
        }
        let mapping = self.schedule.map(clock);
        let budget = mapping.budget.clone();
        self.mapping = Some(mapping);
        budget
    }

    /// The limits for a while, as if they had been those of now. `wall`, in milliseconds since 1970, and `from`
    /// are the same moment by both clocks.
    pub fn during(&self, wall: i64, from: Instant, length: Span) -> Budget {
        match self.override_limit {
            Some(limit) => Budget::constant(limit),
            None => self.schedule.budget(timestamp(wall), from, length),
        }
    }

    /// The limits, if they must be looked up again: because the known ones run out, or because the
    /// wall clock was set.
    pub fn renewed(&mut self, clock: &Clock) -> Option<Budget> {
        let is_stale = self.mapping.as_ref().is_none_or(|mapping| mapping.is_stale(clock));
        (self.override_limit.is_none() && is_stale).then(|| self.budget(clock))
    }
}

/// Reads a limit as an operator writes it.
pub(super) fn limit(text: &str, machine: &Machine) -> Result<Watts, String> {
    let advice = "write watts (6500W), a share of the machine's maximum (80%), none, or configured";
    let limit: Allowance =
        text.parse().map_err(|error| format!("budget '{text}': {error}; {advice}"))?;
    limit.on(machine).map_err(|error| error.to_string())
}
