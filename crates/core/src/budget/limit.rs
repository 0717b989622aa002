//! What a limit comes to on a machine.

use super::error::BudgetError;
use crate::calendar::{Rules, RulesError};
use crate::machine::Machine;
use crate::units::Watts;
pub use crate::units::limit::{Allowance, Limit};

impl Limit {
    /// The limit in watts on this machine; a share rounds down, so it is never exceeded.
    pub fn on(self, machine: &Machine) -> Result<Watts, BudgetError> {
        let budget = match self {
            Limit::Power(power) => power,
            Limit::Share(share) => share.of(machine.most_at_meter()).min(Watts::LARGEST),
        };
        let budget = machine.within(budget);
        if budget <= machine.floor() {
            return Err(BudgetError::NothingLeft { budget, base: machine.floor() });
        }
        Ok(budget)
    }
}

impl Allowance {
    /// How much that is on this machine.
    pub fn on(self, machine: &Machine) -> Result<Watts, BudgetError> {
        match self {
            Allowance::Unlimited => Ok(Watts::UNLIMITED),
            Allowance::Limited(limit) => limit.on(machine),
        }
    }
}

/// Reads limits by the calendar: `weekdays 14:00-18:00: 80%, else 100%`.
pub fn parse_rules(text: &str) -> Result<Rules<Allowance>, RulesError> {
    Rules::parse(text, "100%", str::parse::<Allowance>)
}
