//! One limit as people write it.

use std::fmt;
use std::str::FromStr;

use super::error::BudgetError;
use crate::calendar::{Rules, RulesError};
use crate::machine::Machine;
use crate::units::{QuantityError, Share, Watts};

/// One limit as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A limit in watts.
    Power(Watts),
    /// As a share of the machine's maximum power.
    Share(Share),
}

impl FromStr for Limit {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let text = text.trim();
        if text.ends_with('%') {
            return Ok(Limit::Share(text.parse()?));
        }
        text.parse().map(Limit::Power).map_err(|why| match why {
            QuantityError::UnknownUnit { text } if text.ends_with(|c: char| c.is_ascii_digit()) => {
                QuantityError::BareLimit(text)
            }
            other => other,
        })
    }
}

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

/// A limit as it is written, or `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// The machine may draw what it likes.
    Unlimited,
    /// It may draw so much.
    Limited(Limit),
}

impl FromStr for Allowance {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        match text.trim() {
            "none" => Ok(Allowance::Unlimited),
            limit => limit.parse().map(Allowance::Limited),
        }
    }
}

impl fmt::Display for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allowance::Unlimited => f.write_str("none"),
            Allowance::Limited(Limit::Power(power)) => power.fmt(f),
            Allowance::Limited(Limit::Share(share)) => share.fmt(f),
        }
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
