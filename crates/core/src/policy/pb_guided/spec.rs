//! The parameters of PB-guided, as text that round-trips.

use std::fmt;
use std::str::FromStr;

use crate::call::{Call, CallError};
use crate::freedom::{Freedom, Freedoms};
use crate::model::{Knowledge, Oversized};
use crate::policy::pb_guided::{Bounds, Guide};
use crate::policy::{BuildContext, OrderSpec, Parameter, Policy, PolicyKind, Published};
use crate::units::{Share, Span};

/// The parameters of PB-guided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PbGuidedSpec {
    /// Below this share of the budget nobody is slowed.
    pub lower: Share,
    /// From this share of the budget on the larger bound holds.
    pub upper: Share,
    /// Bound of the predicted slowdown between the two.
    pub bsld_lower: BsldLower,
    /// Bound of the predicted slowdown above both.
    pub bsld_upper: BsldUpper,
    /// What is known about how jobs respond to frequency.
    pub beta: Knowledge,
    /// What becomes of jobs that could never be fed at nominal speed.
    pub oversized: Oversized,
    /// In which order jobs are looked at.
    pub order: OrderSpec,
}

impl Default for PbGuidedSpec {
    fn default() -> Self {
        PbGuidedSpec {
            lower: Share::percent(60),
            upper: Share::percent(90),
            bsld_lower: BsldLower::Auto,
            bsld_upper: BsldUpper::Times(2.0),
            beta: Knowledge::default(),
            oversized: Oversized::default(),
            order: OrderSpec::FCFS,
        }
    }
}

/// The smaller bound of the predicted slowdown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BsldLower {
    /// The mean bounded slowdown of the same workload under plain EASY without a power limit.
    Auto,
    /// A number.
    Fixed(f64),
}

/// The larger bound of the predicted slowdown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BsldUpper {
    /// So many times the smaller one.
    Times(f64),
    /// A number.
    Fixed(f64),
}

impl FromStr for BsldLower {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(BsldLower::Auto),
            number => bsld(number).map(BsldLower::Fixed).ok_or_else(|| {
                "write a slowdown of at least 1, such as 5, or auto (measured under plain EASY)"
                    .to_owned()
            }),
        }
    }
}

impl FromStr for BsldUpper {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = match text.strip_suffix('x') {
            Some(factor) => bsld(factor).map(BsldUpper::Times),
            None => bsld(text).map(BsldUpper::Fixed),
        };
        found.ok_or_else(|| {
            "write a slowdown of at least 1, such as 10, or a multiple of bsld_lower, such as 2x"
                .to_owned()
        })
    }
}

/// A number that can be a slowdown.
fn bsld(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 1.0)
}

impl fmt::Display for BsldLower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BsldLower::Auto => f.write_str("auto"),
            BsldLower::Fixed(bsld) => bsld.fmt(f),
        }
    }
}

impl fmt::Display for BsldUpper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BsldUpper::Times(factor) => write!(f, "{factor}x"),
            BsldUpper::Fixed(bsld) => bsld.fmt(f),
        }
    }
}

impl PolicyKind for PbGuidedSpec {
    fn name(&self) -> &str {
        "pb-guided"
    }

    fn about(&self) -> &str {
        "EASY backfilling; jobs run slower while power is short"
    }

    fn usual(&self) -> Self {
        PbGuidedSpec::default()
    }

    fn parameters(&self) -> Vec<Parameter<Self>> {
        let own = [
            Parameter::of("lower", |spec: &mut Self| &mut spec.lower),
            Parameter::of("upper", |spec| &mut spec.upper),
            Parameter::of("bsld_lower", |spec| &mut spec.bsld_lower),
            Parameter::of("bsld_upper", |spec| &mut spec.bsld_upper),
            Parameter::of("beta", |spec| &mut spec.beta),
            Parameter::of("oversized", |spec| &mut spec.oversized),
        ];
        own.into_iter().chain(Parameter::of_order()).collect()
    }

    fn check(&self, call: &Call) -> Result<(), CallError> {
        let PbGuidedSpec { lower, upper, .. } = *self;
        for (key, share) in [("lower", lower), ("upper", upper)] {
            if share > Share::WHOLE {
                let why = format!("{share} is more than the whole budget; at most 100%");
                return Err(call.wrong(key, why));
            }
        }
        if lower > upper {
            let given = |name: &str| call.arguments.iter().any(|(key, _)| key == name);
            let (key, other) = if given("lower") { ("lower", "upper") } else { ("upper", "lower") };
            let what_to_do = match given(other) {
                true => "give 'lower' the smaller of the two".to_owned(),
                false => format!("'{other}' is so by default; give both"),
            };
            let why = format!(
                "'lower' must not be above 'upper', but they are {lower} and {upper}; {what_to_do}"
            );
            return Err(call.wrong(key, why));
        }
        match (self.bsld_lower, self.bsld_upper) {
            (BsldLower::Fixed(lower), BsldUpper::Fixed(upper)) if lower > upper => {
                let why = format!(
                    "{lower} is above 'bsld_upper', which is {upper}; give 'bsld_lower' the smaller of the two"
                );
                Err(call.wrong("bsld_lower", why))
            }
            _ => Ok(()),
        }
    }

    fn build(&self, context: &BuildContext<'_>) -> Box<dyn Policy> {
        let bounds = self.bounds(context.plain_bsld, context.bsld_threshold);
        self.order.backfill(Guide::new(bounds), context)
    }

    fn wants(&self) -> Freedoms {
        Freedoms::of(&[Freedom::Caps])
    }

    fn believes(&self, _: Freedoms) -> Published {
        match self.beta {
            Knowledge::Known => Published::FittedClock,
            Knowledge::Unknown => Published::Clock,
        }
    }

    fn oversized(&self) -> Oversized {
        self.oversized
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

    fn caution(&self) -> Option<&'static str> {
        (self.bsld_lower == BsldLower::Auto).then_some(
            "bsld_lower=auto needs jobs that are known in advance; a daemon uses 1, so few jobs are slowed; write \
            a number",
        )
    }
}

impl PbGuidedSpec {
    /// The bounds, with the mean slowdown of plain EASY where that is asked for. A fixed upper
    /// bound below it counts as equal to it.
    pub(crate) fn bounds(&self, plain_bsld: impl FnOnce() -> f64, bsld_threshold: Span) -> Bounds {
        let bsld_lower = match self.bsld_lower {
            BsldLower::Auto => plain_bsld(),
            BsldLower::Fixed(bsld) => bsld,
        };
        let bsld_upper = match self.bsld_upper {
            BsldUpper::Times(factor) => bsld_lower * factor,
            BsldUpper::Fixed(bsld) => bsld.max(bsld_lower),
        };
        let PbGuidedSpec { lower, upper, .. } = *self;
        Bounds { lower, upper, bsld_lower, bsld_upper, bsld_threshold }
    }
}
