//! The parameters of RMAP's policies, as text that round-trips.

use super::Configurator;
use crate::belief::Holds;
use crate::call::{Call, CallError};
use crate::freedom::{Freedom, Freedoms};
use crate::job::Tolerance;
use crate::policy::{BuildContext, OrderSpec, Parameter, Policy, PolicyKind, Published};
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
}

impl PolicyKind for RmapSpec {
    fn name(&self) -> &str {
        match self.rule {
            Rule::Traditional => "rmap-traditional",
            Rule::Naive => "rmap-naive",
            Rule::Adaptive(_) => "rmap-adaptive",
        }
    }

    fn about(&self) -> &str {
        match self.rule {
            Rule::Traditional => "EASY backfilling of moldable jobs; nodes as requested, no cap",
            Rule::Naive => {
                "the same; the fastest configuration within a job's fair share of the power"
            }
            Rule::Adaptive(_) => {
                "the same; or a configuration that fits now, if it is not too slow"
            }
        }
    }

    fn usual(&self) -> Self {
        RmapSpec::of(match self.rule {
            Rule::Adaptive(_) => Rule::Adaptive(Tolerance::Slowdown(Share::percent(0))),
            rule => rule,
        })
    }

    fn parameters(&self) -> Vec<Parameter<Self>> {
        let tolerance = |spec: &Self| match spec.rule {
            Rule::Adaptive(tolerance) => tolerance.to_string(),
            Rule::Traditional | Rule::Naive => String::new(),
        };
        let slowdown = Parameter::new("slowdown", tolerance, |spec, written| {
            spec.rule = Rule::Adaptive(written.value()?);
            Ok(())
        });
        let guard = Parameter::of("guard", |spec: &mut Self| &mut spec.guard);
        let node_power = Parameter::optional("node_power", |spec: &mut Self| &mut spec.node_power);
        let own = match self.rule {
            Rule::Traditional => vec![guard, node_power],
            Rule::Naive => vec![guard],
            Rule::Adaptive(_) => vec![slowdown, guard],
        };
        own.into_iter().chain(Parameter::of_order()).collect()
    }

    fn check(&self, call: &Call) -> Result<(), CallError> {
        if self.guard >= Share::WHOLE {
            let why = "it must be below 100%".to_owned();
            return Err(call.wrong("guard", why));
        }
        if self.node_power == Some(Watts::ZERO) {
            let why = "the power of a node must be above zero".to_owned();
            return Err(call.wrong("node_power", why));
        }
        Ok(())
    }

    fn build(&self, context: &BuildContext<'_>) -> Box<dyn Policy> {
        self.order.backfill(Configurator::of(self.rule), context)
    }

    fn wants(&self) -> Freedoms {
        match self.rule {
            Rule::Traditional => Freedoms::of(&[Freedom::Sizes]),
            Rule::Naive | Rule::Adaptive(_) => Freedoms::of(&[Freedom::Caps, Freedom::Sizes]),
        }
    }

    fn believes(&self, _: Freedoms) -> Published {
        match self.rule {
            Rule::Adaptive(_) => Published::Regression,
            Rule::Traditional | Rule::Naive => Published::Measured,
        }
    }

    fn holds(&self, usual: Holds) -> Holds {
        self.node_power.map_or(usual, Holds::Node)
    }

    fn minds_kinds(&self, _: Freedoms) -> bool {
        true
    }

    fn minds_limits(&self, _: Freedoms) -> bool {
        true
    }

    fn order_mut(&mut self) -> Option<&mut OrderSpec> {
        Some(&mut self.order)
    }

    fn guard(&self) -> Share {
        self.guard
    }
}
