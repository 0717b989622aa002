//! Worth that stays for a while and then halves, again and again.
//!
//! The one shape that a job's request for time is enough for. A [`UtilityFunction`](super::UtilityFunction)
//! decays by millionths of a minute, too coarse for jobs of days; here a halving takes the time it takes,
//! to the millisecond.

use super::decay::halved;
use super::{Utility, latest};
use crate::units::Span;

/// Worth so much until an age, and half of it after each further stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fading {
    start: Utility,
    flat: Span,
    half: Span,
}

impl Fading {
    /// Worth `start` until the age of `flat`, then half as much after every `half`.
    #[inline]
    pub fn new(start: Utility, flat: Span, half: Span) -> Self {
        Fading { start, flat, half: half.max(Span::from_millis(1)) }
    }

    /// What completion at this age is worth.
    #[inline]
    pub fn at(&self, age: Span) -> Utility {
        let Some(over) = age.millis().checked_sub(self.flat.millis()).filter(|over| *over > 0)
        else {
            return self.start;
        };
        let half = self.half.millis();
        let (whole, rest) = (over / half, over % half);
        // Wide division is slow; 49 days do without.
        let part = match u32::try_from(rest) {
            Ok(rest) => (u64::from(rest) << 32) / half,
            Err(_) => ((u128::from(rest) << 32) / u128::from(half)) as u64,
        };
        Utility(halved(self.start.0, whole, part as u32))
    }

    /// The oldest age that is still worth this much, as in
    /// [`UtilityFunction::latest`](super::UtilityFunction::latest).
    pub fn latest(&self, worth: Utility) -> Option<Span> {
        latest(worth, |age| self.at(age))
    }

    /// An age from which on nothing is left, not even a millionth.
    pub fn spent(&self) -> Span {
        let halvings = u64::from(u64::BITS - self.start.0.leading_zeros());
        self.flat + Span::from_millis(self.half.millis().saturating_mul(halvings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hours(hours: u32) -> Span {
        Span::from_secs(3600 * hours)
    }

    /// 4 for two hours, 2 after three, 1 after four; half-way between, the root of a half.
    #[test]
    fn halves_by_hand() {
        let fading = Fading::new(Utility::whole(4), hours(2), hours(1));
        let at = |age| fading.at(age).millionths();
        assert_eq!([0, 1, 2, 3, 4, 5].map(|age| at(hours(age))), {
            [4_000_000, 4_000_000, 4_000_000, 2_000_000, 1_000_000, 500_000]
        });
        assert_eq!(at(Span::from_secs(9000)), 2_828_427);
        // 4 000 000 is below 2²², so 22 halvings leave nothing, and 21 leave one.
        assert_eq!(fading.spent(), hours(24));
        assert_eq!((at(hours(23)), at(hours(24))), (1, 0));
        assert_eq!(fading.latest(Utility::from_millionths(500_000)), Some(hours(5)));
        assert_eq!(fading.latest(Utility::whole(5)), None);
    }

    proptest! {
        /// Older is never worth more, and what is spent is worth nothing.
        #[test]
        fn worth_never_rises(
            start in 0u64..1 << 44,
            flat in 0u64..1 << 40,
            half in 0u64..1 << 40,
            ages in prop::collection::vec(0u64..1 << 42, 2..40),
        ) {
            let fading = Fading::new(Utility(start), Span::from_millis(flat), Span::from_millis(half));
            let mut ages = ages;
            ages.extend([flat, flat + half, flat + half.saturating_sub(1)]);
            ages.sort_unstable();
            let at = |age| fading.at(Span::from_millis(age));
            for pair in ages.windows(2) {
                prop_assert!(at(pair[0]) >= at(pair[1]));
            }
            prop_assert_eq!(fading.at(fading.spent()), Utility::ZERO);
        }
    }
}
