//! What the machine may draw: as configured, unless an operator has said otherwise.

use super::clock::Clock;
use super::schedule::{Mapping, Schedule};
use busbar_core::budget::{Budget, Limit};
use busbar_core::machine::Machine;
use busbar_core::units::Watts;

/// What the machine may draw.
pub struct ActiveBudget {
    schedule: Schedule,
    mapping: Option<Mapping>,
    /// What an operator has set.
    operators: Option<Watts>,
}

impl ActiveBudget {
    /// As configured.
    pub fn new(schedule: Schedule) -> Self {
        ActiveBudget { schedule, mapping: None, operators: None }
    }

    /// The same with another configuration.
    pub fn with(&self, schedule: Schedule) -> Self {
        ActiveBudget { schedule, mapping: None, operators: self.operators }
    }

    /// Whether an operator has set it.
    pub fn is_overridden(&self) -> bool {
        self.operators.is_some()
    }

    /// What an operator had set before a restart. What cannot be read any more is as if it had not been
    /// set.
    pub fn restore_override(&mut self, text: Option<&str>, machine: &Machine) {
        self.operators = text.and_then(|text| match limit(text, machine) {
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

    /// An operator sets it; nothing, if the configuration is to hold again.
    pub fn operators(
        &mut self,
        text: Option<&str>,
        machine: &Machine,
        clock: &Clock,
    ) -> Result<Budget, String> {
        self.operators = text.map(|text| limit(text, machine)).transpose()?;
        Ok(self.budget(clock))
    }

    /// The limits now and to come.
    pub fn budget(&mut self, clock: &Clock) -> Budget {
        if let Some(limit) = self.operators {
            return Budget::constant(limit);
        }
        let mapping = self.schedule.map(clock);
        let budget = mapping.budget.clone();
        self.mapping = Some(mapping);
        budget
    }

    /// The limits, if they have to be looked up again: there are later ones to know, or somebody has set
    /// the clock on the wall.
    pub fn renewed(&mut self, clock: &Clock) -> Option<Budget> {
        let is_stale = self.mapping.as_ref().is_none_or(|mapping| mapping.is_stale(clock));
        (self.operators.is_none() && is_stale).then(|| self.budget(clock))
    }
}

pub(super) fn limit(text: &str, machine: &Machine) -> Result<Watts, String> {
    if text == "none" {
        return Ok(Watts::UNLIMITED);
    }
    let advice = "write watts (6500W), a share of the machine's maximum (80%), none, or configured";
    let limit: Limit =
        text.parse().map_err(|error| format!("budget '{text}': {error}; {advice}"))?;
    limit.on(machine).map_err(|error| error.to_string())
}
