//! The parameters of PB-guided, as text that round-trips.

use std::fmt;
use std::str::FromStr;

use crate::call::{Call, CallError};
use crate::model::{Knowledge, Oversized};
use crate::policy::OrderSpec;
use crate::policy::pb_guided::Bounds;
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

impl PbGuidedSpec {
    pub(in crate::policy) const PARAMETERS: [&str; 9] = [
        "lower",
        "upper",
        "bsld_lower",
        "bsld_upper",
        "beta",
        "oversized",
        "order",
        "halving",
        "predict",
    ];

    pub(in crate::policy) fn from_call(call: &Call) -> Result<Self, CallError> {
        let mut spec = PbGuidedSpec::default();
        for (key, value) in call.parameters(&Self::PARAMETERS)? {
            match key.as_str() {
                "lower" => spec.lower = call.value(key, value)?,
                "upper" => spec.upper = call.value(key, value)?,
                "bsld_lower" => spec.bsld_lower = call.value(key, value)?,
                "bsld_upper" => spec.bsld_upper = call.value(key, value)?,
                "beta" => spec.beta = call.value(key, value)?,
                "oversized" => spec.oversized = call.value(key, value)?,
                _ => spec.order.set(call, key, value)?,
            }
        }
        let wrong = |key: &str, why: String| {
            Err(CallError::Value { name: call.name.clone(), key: key.to_owned(), why })
        };
        for (key, share) in [("lower", spec.lower), ("upper", spec.upper)] {
            if share > Share::WHOLE {
                return wrong(key, format!("{share} is more than the whole budget; at most 100%"));
            }
        }
        if spec.lower > spec.upper {
            let given = |name: &str| call.arguments.iter().any(|(key, _)| key == name);
            let (key, other) = if given("lower") { ("lower", "upper") } else { ("upper", "lower") };
            let what_to_do = match given(other) {
                true => "give 'lower' the smaller of the two".to_owned(),
                false => format!("'{other}' is so by default; give both"),
            };
            let why = format!(
                "'lower' must not be above 'upper', but they are {} and {}; {what_to_do}",
                spec.lower, spec.upper
            );
            return wrong(key, why);
        }
        if let (BsldLower::Fixed(lower), BsldUpper::Fixed(upper)) =
            (spec.bsld_lower, spec.bsld_upper)
            && lower > upper
        {
            let why = format!(
                "{lower} is above 'bsld_upper', which is {upper}; give 'bsld_lower' the smaller of the two"
            );
            return wrong("bsld_lower", why);
        }
        Ok(spec)
    }

    /// Parameters that are not as usual, each as `key=value`.
    pub(in crate::policy) fn unusual(&self) -> Vec<String> {
        let PbGuidedSpec { lower, upper, bsld_lower, bsld_upper, beta, oversized, order } = self;
        let usual = PbGuidedSpec::default();
        [
            (*lower != usual.lower, format!("lower={lower}")),
            (*upper != usual.upper, format!("upper={upper}")),
            (*bsld_lower != usual.bsld_lower, format!("bsld_lower={bsld_lower}")),
            (*bsld_upper != usual.bsld_upper, format!("bsld_upper={bsld_upper}")),
            (*beta != usual.beta, format!("beta={beta}")),
            (*oversized != usual.oversized, format!("oversized={oversized}")),
        ]
        .into_iter()
        .filter_map(|(is_unusual, text)| is_unusual.then_some(text))
        .chain(order.unusual())
        .collect()
    }

    /// The bounds, with the mean slowdown of plain EASY where that is asked for. A fixed upper
    /// bound below it counts as equal to it.
    pub fn bounds(&self, plain_bsld: impl FnOnce() -> f64, bsld_threshold: Span) -> Bounds {
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
