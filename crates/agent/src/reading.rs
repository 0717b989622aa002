//! A value with what it is worth: measured, estimated, emulated, or unknown.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A value with its origin and its source. Without a value there is a reason instead, never a zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "origin", rename_all = "lowercase")]
pub enum Reading<T> {
    /// Hardware measured it.
    Measured {
        /// The value.
        value: T,
        /// What was read, such as `powercap intel-rapl:0`.
        source: String,
    },
    /// It was worked out from something that was measured or configured.
    Estimated {
        /// The value.
        value: T,
        /// What it was worked out from.
        source: String,
    },
    /// An emulator made it up.
    Emulated {
        /// The value.
        value: T,
        /// What was read.
        source: String,
    },
    /// It is not known.
    Unknown {
        /// Why it is not known.
        reason: String,
        /// What should have been read.
        source: String,
    },
}

impl<T> Reading<T> {
    /// A value of hardware, or of its emulator.
    pub fn read(value: T, is_emulated: bool, source: &str) -> Self {
        let source = source.to_owned();
        match is_emulated {
            true => Reading::Emulated { value, source },
            false => Reading::Measured { value, source },
        }
    }

    /// No value.
    pub fn unknown(reason: impl Into<String>, source: &str) -> Self {
        Reading::Unknown { reason: reason.into(), source: source.to_owned() }
    }

    /// The value, whatever it is worth; `None` if it is unknown.
    pub fn value(&self) -> Option<&T> {
        match self {
            Reading::Measured { value, .. }
            | Reading::Estimated { value, .. }
            | Reading::Emulated { value, .. } => Some(value),
            Reading::Unknown { .. } => None,
        }
    }

    /// What the value is worth, in a word.
    pub fn origin(&self) -> &'static str {
        match self {
            Reading::Measured { .. } => "measured",
            Reading::Estimated { .. } => "estimated",
            Reading::Emulated { .. } => "emulated",
            Reading::Unknown { .. } => "unknown",
        }
    }

    /// The sum of all values, which is worth no more than the least of them: one that is unknown makes
    /// the sum unknown.
    pub(crate) fn sum<'a>(parts: impl IntoIterator<Item = (&'a str, &'a Reading<T>)>) -> Reading<T>
    where
        T: Copy + std::iter::Sum<T> + 'a,
    {
        let (mut values, mut names) = (Vec::new(), Vec::new());
        let (mut is_emulated, mut is_estimated) = (false, false);
        for (name, part) in parts {
            match part {
                Reading::Unknown { reason, .. } => {
                    return Reading::unknown(format!("{name}: {reason}"), name);
                }
                Reading::Emulated { .. } => is_emulated = true,
                Reading::Estimated { .. } => is_estimated = true,
                Reading::Measured { .. } => (),
            }
            values.extend(part.value().copied());
            names.push(name);
        }
        let source = names.join(" + ");
        if names.is_empty() {
            return Reading::unknown("no domain of this node can be read", "no domain");
        }
        let value = values.into_iter().sum();
        match (is_emulated, is_estimated) {
            (true, _) => Reading::Emulated { value, source },
            (false, true) => Reading::Estimated { value, source },
            (false, false) => Reading::Measured { value, source },
        }
    }
}

impl<T: fmt::Display> fmt::Display for Reading<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reading::Unknown { reason, .. } => write!(f, "unknown ({reason})"),
            known => match known.value() {
                Some(value) => write!(f, "{value} {}", known.origin()),
                None => f.write_str("unknown"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use busbar_core::units::Watts;

    #[test]
    fn a_sum_is_worth_no_more_than_its_parts() {
        let watts = Watts::from_watts;
        let measured = Reading::read(watts(60), false, "a");
        let emulated = Reading::read(watts(40), true, "b");
        let unknown: Reading<Watts> = Reading::unknown("it vanished", "c");
        let sum = Reading::sum([("a", &measured), ("b", &emulated)]);
        assert_eq!(sum, Reading::Emulated { value: watts(100), source: "a + b".to_owned() });
        assert_eq!(Reading::sum([("a", &measured), ("a", &measured)]).origin(), "measured");
        let sum = Reading::sum([("a", &measured), ("c", &unknown)]);
        assert_eq!(sum.value(), None);
        assert_eq!(sum.to_string(), "unknown (c: it vanished)");
        assert_eq!(Reading::<Watts>::sum([]).value(), None, "nothing is not 0 W");
    }
}
