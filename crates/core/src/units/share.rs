//! Shares: percentages, exact to a millionth.

use std::fmt;
use std::str::FromStr;

use super::{QuantityError, Span, Watts, parse_decimal};

/// A share of a whole, in millionths: `60%` is 600 000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u64);

impl Share {
    /// All of it.
    pub const WHOLE: Share = Share::percent(100);

    /// So many hundredths.
    pub const fn percent(percent: u32) -> Self {
        Share(percent as u64 * 10_000)
    }

    /// This many millionths.
    pub const fn from_millionths(millionths: u64) -> Self {
        Share(millionths)
    }

    /// The share in millionths.
    pub const fn millionths(self) -> u64 {
        self.0
    }

    /// This share of so much power, rounded down: a limit is never exceeded.
    #[inline]
    pub fn of(self, whole: Watts) -> Watts {
        if let Some(product) = whole.milliwatts().checked_mul(self.0) {
            return Watts::from_milliwatts(product / 1_000_000);
        }
        let part = u128::from(whole.milliwatts()) * u128::from(self.0) / 1_000_000;
        Watts::from_milliwatts(part.min(u128::from(Watts::UNLIMITED.milliwatts())) as u64)
    }

    /// This share of a time, rounded up; forever stays forever.
    pub fn of_span(self, whole: Span) -> Span {
        if whole == Span::FOREVER {
            return whole;
        }
        // A division of 128 bits takes many times as long, and hardly any time needs it.
        if let Some(product) = whole.millis().checked_mul(self.0) {
            return Span::from_millis(product.div_ceil(1_000_000));
        }
        let part = (u128::from(whole.millis()) * u128::from(self.0)).div_ceil(1_000_000);
        Span::from_millis(u64::try_from(part).unwrap_or(u64::MAX))
    }

    /// The longest time of which this share is no longer than that one; forever stays forever.
    pub fn whole(self, part: Span) -> Span {
        if part == Span::FOREVER || self.0 == 0 {
            return Span::FOREVER;
        }
        if let Some(product) = part.millis().checked_mul(1_000_000) {
            return Span::from_millis(product / self.0);
        }
        let whole = u128::from(part.millis()) * 1_000_000 / u128::from(self.0);
        Span::from_millis(u64::try_from(whole).unwrap_or(u64::MAX))
    }

    /// This share of a number of things, rounded up: part of a thing is a thing.
    pub fn of_count(self, whole: u32) -> u64 {
        (u128::from(whole) * u128::from(self.0)).div_ceil(1_000_000) as u64
    }
}

/// Reads `60%` or `12.5 %`. The sign is required: a bare number could mean anything.
impl FromStr for Share {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let number = text.trim().strip_suffix('%');
        let number = number.ok_or_else(|| QuantityError::NotAShare(text.to_owned()))?;
        Ok(Share(parse_decimal(number.trim(), 10_000)?))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 10_000 {
            0 => write!(f, "{}%", self.0 / 10_000),
            part => {
                let decimals = format!("{part:04}");
                write!(f, "{}.{}%", self.0 / 10_000, decimals.trim_end_matches('0'))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shares_round_trip_and_are_exact() {
        for text in ["60%", "12.5%", "0%", "0.0001%", "250%"] {
            assert_eq!(text.parse::<Share>().unwrap().to_string(), text);
        }
        assert_eq!(" 60 % ".parse::<Share>().unwrap(), Share::percent(60));
        assert_eq!(Share::percent(60).of(Watts::from_watts(1001)), "600.6W".parse().unwrap());
        assert_eq!(Share::percent(20).of_count(128), 26);
    }

    proptest! {
        /// What is worked out in 64 bits where they are enough is what 128 bits give.
        #[test]
        fn short_and_long_division_agree(
            millionths in prop_oneof![1u64..3_000_000, any::<u64>()],
            amount in prop_oneof![0u64..10_000_000_000, any::<u64>()],
        ) {
            let (share, wide) = (Share::from_millionths(millionths), u128::from(millionths));
            let narrowed = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
            let product = u128::from(amount) * wide;
            let most = Watts::UNLIMITED.milliwatts();
            let part = share.of(Watts::from_milliwatts(amount)).milliwatts();
            prop_assert_eq!(part, narrowed(product / 1_000_000).min(most));
            if amount != Span::FOREVER.millis() {
                let (time, back) = (Span::from_millis(amount), u128::from(amount) * 1_000_000 / wide.max(1));
                prop_assert_eq!(share.of_span(time).millis(), narrowed(product.div_ceil(1_000_000)));
                if millionths > 0 {
                    prop_assert_eq!(share.whole(time).millis(), narrowed(back));
                }
            }
        }
    }

    #[test]
    fn a_share_needs_its_sign() {
        let error = |text: &str| text.parse::<Share>().unwrap_err().to_string();
        assert!(error("60").contains("such as 60%"), "{}", error("60"));
        assert!(error("-5%").contains("'-5' is not a number"), "{}", error("-5%"));
        assert!(error("0.00001%").contains("more decimals"), "{}", error("0.00001%"));
    }
}
