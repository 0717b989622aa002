//! How long a job takes, measured by how long it takes as it was asked for.

use crate::units::Span;

/// How many times as long, in steps of 2⁻³², so that the same factor gives the same time everywhere. A job
/// may also be faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Factor(u64);

impl Factor {
    /// As long as before.
    pub(crate) const ONE: Factor = Factor(1 << 32);

    /// The nearest factor to a number; what is no number, or not above zero, counts as forever.
    pub fn new(factor: f64) -> Self {
        if factor.is_finite() && factor > 0.0 {
            Factor(((factor * Factor::ONE.0 as f64).round() as u64).max(1))
        } else {
            Factor(u64::MAX)
        }
    }

    /// A factor in steps of 2⁻³².
    #[cfg(test)]
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Factor(bits)
    }

    /// The time, rounded up, so that a limit and a run time stay in order.
    #[inline]
    pub fn of(self, time: Span) -> Span {
        if self == Factor::ONE {
            return time;
        }
        let product = u128::from(time.millis()) * u128::from(self.0);
        Span::from_millis(u64::try_from(product.div_ceil(1 << 32)).unwrap_or(u64::MAX))
    }

    /// The longest time that comes to no more than this one; forever stays forever.
    pub(crate) fn undone(self, time: Span) -> Span {
        if self == Factor::ONE || time == Span::FOREVER {
            return time;
        }
        // 49 days fit 32 bits; a division of 128 bits takes many times as long.
        if time.millis() >> 32 == 0 {
            return Span::from_millis((time.millis() << 32) / self.0.max(1));
        }
        let millis = (u128::from(time.millis()) << 32) / u128::from(self.0.max(1));
        Span::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    /// As a number.
    pub(crate) fn as_f64(self) -> f64 {
        self.0 as f64 / Factor::ONE.0 as f64
    }
}

/// How long a job takes somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pace {
    /// So many times as long as it was asked for.
    Times(Factor),
    /// So long, whatever the workload says.
    Fixed(Span),
}

impl Pace {
    /// As it was asked for.
    pub(crate) const AS_ASKED: Pace = Pace::Times(Factor::ONE);
    /// It does not go on at all.
    pub(crate) const NEVER: Pace = Pace::Fixed(Span::FOREVER);

    /// The time of a job that takes so long as it was asked for.
    #[inline]
    pub fn of(self, reference: Span) -> Span {
        match self {
            Pace::Times(factor) => factor.of(reference),
            Pace::Fixed(time) => time,
        }
    }

    /// How fast a job is, where 1 is as fast as it was asked for. What does not depend on that has no
    /// speed to add up.
    pub(super) fn speed(self) -> f64 {
        match self {
            Pace::Times(factor) => 1.0 / factor.as_f64(),
            Pace::Fixed(_) => 0.0,
        }
    }

    pub(super) fn of_speed(speed: f64) -> Self {
        if speed > 0.0 { Pace::Times(Factor::new(1.0 / speed)) } else { Pace::NEVER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The longest time that comes to no more: it does, and a millisecond more does not. In 64 bits as in 128.
        #[test]
        fn undoing_is_exact(
            bits in prop_oneof![1u64 << 28..1 << 36, 1u64..u64::MAX],
            millis in prop_oneof![0u64..10_000_000_000, 0u64..1 << 62],
        ) {
            let (factor, time) = (Factor::from_bits(bits), Span::from_millis(millis));
            let undone = factor.undone(time);
            if undone < Span::FOREVER {
                prop_assert!(factor.of(undone) <= time);
                prop_assert!(factor.of(Span::from_millis(undone.millis() + 1)) > time);
            }
        }
    }
}
