//! One limit as people write it.

use std::fmt;
use std::str::FromStr;

use super::{QuantityError, Share, Watts};

/// One limit as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A limit in watts.
    Power(Watts),
    /// As a share of what the machine, or the part of it that is limited, can draw.
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
