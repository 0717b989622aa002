//! The parameters of RMAP's policies, as text that round-trips.

use std::fmt;
use std::str::FromStr;

use crate::call::{Call, CallError};
use crate::units::{Share, Span, Watts};

/// A policy of RMAP with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RmapSpec {
    /// Which of the three.
    pub rule: Rule,
    /// The share of the bound that is kept back because power may be under-predicted. The policy
    /// never sees it.
    pub guard: Share,
    /// What is set aside for each node, where that is not what the profile says.
    pub node_power: Option<Watts>,
}

/// How configurations are picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Nodes as asked for, unthrottled.
    Traditional,
    /// The fastest within the fair share.
    Naive,
    /// The same, or what fits now if that is not too slow.
    Adaptive(Tolerance),
}

/// How much longer than asked for a job may take so that it need not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tolerance {
    /// By at most this share.
    Slowdown(Share),
    /// However long.
    Unbounded,
}

impl Tolerance {
    /// Whether a job may take so long that asked for so much.
    pub(super) fn accepts(self, time: Span, requested: Span) -> bool {
        match self {
            Tolerance::Unbounded => true,
            Tolerance::Slowdown(share) => {
                let whole = Share::WHOLE.millionths();
                u128::from(time.millis()) * u128::from(whole)
                    <= u128::from(requested.millis()) * u128::from(whole + share.millionths())
            }
        }
    }
}

impl FromStr for Tolerance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "unbounded" => Ok(Tolerance::Unbounded),
            share => share
                .parse()
                .map(Tolerance::Slowdown)
                .map_err(|error| format!("{error}, or unbounded")),
        }
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tolerance::Slowdown(share) => share.fmt(f),
            Tolerance::Unbounded => f.write_str("unbounded"),
        }
    }
}

impl RmapSpec {
    /// A rule with its usual parameters.
    pub const fn of(rule: Rule) -> Self {
        RmapSpec { rule, guard: Share::percent(0), node_power: None }
    }

    /// All three, with their usual parameters.
    pub const ALL: [RmapSpec; 3] = [
        RmapSpec::of(Rule::Traditional),
        RmapSpec::of(Rule::Naive),
        RmapSpec::of(Rule::Adaptive(Tolerance::Slowdown(Share::percent(0)))),
    ];

    pub(in crate::policy) fn name(&self) -> &'static str {
        match self.rule {
            Rule::Traditional => "rmap-traditional",
            Rule::Naive => "rmap-naive",
            Rule::Adaptive(_) => "rmap-adaptive",
        }
    }

    pub(in crate::policy) fn with_parameters(mut self, call: &Call) -> Result<Self, CallError> {
        let valid: &[&str] = match self.rule {
            Rule::Traditional => &["guard", "node_power"],
            Rule::Naive => &["guard"],
            Rule::Adaptive(_) => &["slowdown", "guard"],
        };
        for (key, value) in call.parameters(valid)? {
            match key.as_str() {
                "slowdown" => self.rule = Rule::Adaptive(call.value(key, value)?),
                "node_power" => self.node_power = Some(call.value(key, value)?),
                _ => self.guard = call.value(key, value)?,
            }
        }
        let wrong = |key: &str, why: &str| {
            let (name, key) = (call.name.clone(), key.to_owned());
            Err(CallError::Value { name, key, why: why.to_owned() })
        };
        if self.guard >= Share::WHOLE {
            return wrong("guard", "it leaves nothing of the bound; below 100%");
        }
        if self.node_power == Some(Watts::ZERO) {
            return wrong("node_power", "a node that draws nothing cannot be budgeted");
        }
        Ok(self)
    }

    /// Parameters that are not as usual, each as `key=value`.
    pub(in crate::policy) fn unusual(&self) -> Vec<String> {
        let mut parameters = Vec::new();
        if let Rule::Adaptive(tolerance) = self.rule
            && tolerance != Tolerance::Slowdown(Share::percent(0))
        {
            parameters.push(format!("slowdown={tolerance}"));
        }
        if self.guard != Share::percent(0) {
            parameters.push(format!("guard={}", self.guard));
        }
        if let Some(power) = self.node_power {
            parameters.push(format!("node_power={power}"));
        }
        parameters
    }
}
