//! The parameters of RMAP's policies, as text that round-trips.

use super::Configurator;
use crate::call::{Call, CallError};
use crate::job::Tolerance;
use crate::policy::{OrderSpec, Policy};
use crate::units::{Share, Watts};

/// A policy of RMAP with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RmapSpec {
    /// The rule: traditional, naive or adaptive.
    pub rule: Rule,
    /// The share of the bound that is kept back because power may be under-predicted. The policy
    /// never sees it.
    pub guard: Share,
    /// What is set aside for each node, where that is not what the profile says.
    pub node_power: Option<Watts>,
    /// In which order jobs are looked at.
    pub order: OrderSpec,
}

/// How configurations are picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Nodes as asked for, unthrottled.
    Traditional,
    /// The fastest within the fair share.
    Naive,
    /// The same, or what fits now if that is not too slow for jobs that do not say what they
    /// tolerate.
    Adaptive(Tolerance),
}

impl RmapSpec {
    /// A rule with its usual parameters.
    pub const fn of(rule: Rule) -> Self {
        RmapSpec { rule, guard: Share::percent(0), node_power: None, order: OrderSpec::FCFS }
    }

    /// All three, with their usual parameters.
    pub const ALL: [RmapSpec; 3] = [
        RmapSpec::of(Rule::Traditional),
        RmapSpec::of(Rule::Naive),
        RmapSpec::of(Rule::Adaptive(Tolerance::Slowdown(Share::percent(0)))),
    ];

    pub(in crate::policy) fn build(&self) -> Box<dyn Policy> {
        self.order.backfill(Configurator::of(self.rule))
    }

    pub(in crate::policy) fn name(&self) -> &'static str {
        match self.rule {
            Rule::Traditional => "rmap-traditional",
            Rule::Naive => "rmap-naive",
            Rule::Adaptive(_) => "rmap-adaptive",
        }
    }

    pub(in crate::policy) fn with_parameters(mut self, call: &Call) -> Result<Self, CallError> {
        let own: &[&str] = match self.rule {
            Rule::Traditional => &["guard", "node_power"],
            Rule::Naive => &["guard"],
            Rule::Adaptive(_) => &["slowdown", "guard"],
        };
        for (key, value) in call.parameters(&[own, &OrderSpec::PARAMETERS].concat())? {
            match key.as_str() {
                "slowdown" => self.rule = Rule::Adaptive(call.value(key, value)?),
                "node_power" => self.node_power = Some(call.value(key, value)?),
                "guard" => self.guard = call.value(key, value)?,
                _ => self.order.set(call, key, value)?,
            }
        }
        let wrong = |key: &str, why: &str| {
            let (name, key) = (call.name.clone(), key.to_owned());
            Err(CallError::Value { name, key, why: why.to_owned() })
        };
        if self.guard >= Share::WHOLE {
            return wrong("guard", "it must be below 100%");
        }
        if self.node_power == Some(Watts::ZERO) {
            return wrong("node_power", "the power of a node must be above zero");
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
        parameters.extend(self.order.unusual());
        parameters
    }
}
