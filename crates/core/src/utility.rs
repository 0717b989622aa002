//! Utility: what a task is worth, by how long after its arrival it is complete.
//!
//! A [`UtilityFunction`] is a list of pieces. Each starts at an age with a level and decays from
//! there at a constant rate; no piece starts above the end of the one before it, so utility never
//! rises. Everything is in integers: utility in millionths, age in milliseconds, decay in
//! halvings. The power of two that a decay comes to is read off a table (`decay`), so that
//! the same age is worth the same everywhere, and a look costs a few nanoseconds.

use smallvec::SmallVec;

use crate::units::Span;

mod amount;
mod csv;
mod decay;
mod fading;
mod list;

pub use amount::Utility;
pub use decay::Decay;
pub use fading::Fading;
pub use list::{Utilities, UtilityId};

/// A stretch of a utility function: from an age on, down from a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// The age at which it starts.
    pub from: Span,
    /// What completion at that age is worth.
    pub level: Utility,
    /// How fast that falls.
    pub decay: Decay,
}

impl Piece {
    #[inline]
    fn at(&self, age: Span) -> Utility {
        Utility(self.decay.of(self.level.0, age.millis().saturating_sub(self.from.millis())))
    }
}

/// What a task is worth by its age at completion. It never rises.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UtilityFunction(SmallVec<[Piece; 3]>);

/// Why pieces do not make a utility function.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAUtility {
    /// There are no pieces.
    #[error("a utility function has at least one interval")]
    Empty,
    /// The first piece starts later than the task.
    #[error("the first interval starts at {0}; it has to start at 0, when the task arrives")]
    StartsLate(Span),
    /// A piece does not start after the one before it.
    #[error("an interval starts at {from}, not after the one before it, which starts at {before}")]
    OutOfOrder {
        /// Where the piece starts.
        from: Span,
        /// The start of the one before it.
        before: Span,
    },
    /// Utility rises.
    #[error(
        "utility rises at {at}: from {before} to {after}; it may only fall, so write {before} or \
         less, or leave the value out"
    )]
    Rises {
        /// At which age.
        at: Span,
        /// The utility before.
        before: Utility,
        /// The utility after.
        after: Utility,
    },
}

impl UtilityFunction {
    /// A function of these pieces, in the order of their ages.
    pub fn new(pieces: impl IntoIterator<Item = Piece>) -> Result<Self, NotAUtility> {
        let pieces: SmallVec<[Piece; 3]> = pieces.into_iter().collect();
        let first = pieces.first().ok_or(NotAUtility::Empty)?;
        if first.from != Span::ZERO {
            return Err(NotAUtility::StartsLate(first.from));
        }
        for pair in pieces.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            if after.from <= before.from {
                return Err(NotAUtility::OutOfOrder { from: after.from, before: before.from });
            }
            let ends = before.at(after.from);
            if after.level > ends {
                let (at, after) = (after.from, after.level);
                return Err(NotAUtility::Rises { at, before: ends, after });
            }
        }
        Ok(UtilityFunction(pieces))
    }

    /// Worth so much until this age, then falling at a constant rate.
    pub fn flat_then(start: Utility, flat: Span, decay: Decay) -> Self {
        let mut pieces = SmallVec::new();
        if flat > Span::ZERO {
            pieces.push(Piece { from: Span::ZERO, level: start, decay: Decay::NONE });
        }
        pieces.push(Piece { from: flat, level: start, decay });
        UtilityFunction(pieces)
    }

    /// The same up to an age, and from there on a share of what it was (in thousandths, at most
    /// the whole), falling at another rate.
    pub fn then(mut self, from: Span, thousandths: u16, decay: Decay) -> Self {
        let share = u64::from(thousandths.min(1000));
        let level = Utility((u128::from(self.at(from).0) * u128::from(share) / 1000) as u64);
        self.0.retain(|piece| piece.from < from);
        self.0.push(Piece { from, level, decay });
        UtilityFunction(self.0)
    }

    /// What completion at this age is worth.
    #[inline]
    pub fn at(&self, age: Span) -> Utility {
        // There are few pieces, and most tasks are young.
        let mut piece = &self.0[0];
        for later in &self.0[1..] {
            if later.from > age {
                break;
            }
            piece = later;
        }
        piece.at(age)
    }

    /// What completion at once would be worth.
    #[inline]
    pub fn start(&self) -> Utility {
        self.0[0].level
    }

    /// The pieces.
    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.0
    }

    /// The oldest age that is still worth this much; [`Span::FOREVER`] if every age is, and none if
    /// not even completion at once is.
    pub fn latest(&self, worth: Utility) -> Option<Span> {
        latest(worth, |age| self.at(age))
    }
}

/// The oldest age that is still worth this much, where older is never worth more.
fn latest(worth: Utility, at: impl Fn(Span) -> Utility) -> Option<Span> {
    if at(Span::ZERO) < worth {
        return None;
    }
    // The longest time that is counted: 285 000 years.
    let (mut enough, mut too_old) = (0, 1 << 53);
    if at(Span::from_millis(too_old)) >= worth {
        return Some(Span::FOREVER);
    }
    while too_old - enough > 1 {
        let middle = enough + (too_old - enough) / 2;
        match at(Span::from_millis(middle)) >= worth {
            true => enough = middle,
            false => too_old = middle,
        }
    }
    Some(Span::from_millis(enough))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decay(text: &str) -> Decay {
        text.parse().unwrap()
    }

    fn minutes(minutes: u32) -> Span {
        Span::from_secs(60 * minutes)
    }

    /// 8 for ten minutes, then falling by 0.05 a minute: 8·e^(−0.05·20) after half an hour.
    #[test]
    fn flat_and_then_exponential() {
        let function = UtilityFunction::flat_then(Utility::whole(8), minutes(10), decay("0.05"));
        assert_eq!(function.at(Span::ZERO), Utility::whole(8));
        assert_eq!(function.at(minutes(10)), Utility::whole(8));
        let expected = 8.0 * (-1.0f64).exp();
        assert!((function.at(minutes(30)).as_f64() - expected).abs() < 3e-6);
        assert_eq!(function.at(Span::from_millis(1 << 60)), Utility::ZERO);
    }

    /// Halved at 20 minutes, and nothing from 60 minutes on.
    #[test]
    fn falls_at_an_age() {
        let slow = UtilityFunction::flat_then(Utility::whole(4), Span::ZERO, Decay::NONE);
        let halved = slow.clone().then(minutes(20), 500, Decay::NONE);
        let before = Span::from_millis(minutes(20).millis() - 1);
        assert_eq!(
            (halved.at(before), halved.at(minutes(20))),
            (Utility::whole(4), Utility::whole(2))
        );
        let over = slow.then(minutes(60), 0, Decay::NONE);
        assert_eq!(over.latest(Utility::from_millionths(1)), Some(Span::from_millis(3_599_999)));
        assert_eq!(over.latest(Utility::ZERO), Some(Span::FOREVER));
        assert_eq!(over.latest(Utility::whole(5)), None);
    }

    #[test]
    fn what_rises_is_refused() {
        let piece = |from, level| Piece { from: minutes(from), level, decay: Decay::NONE };
        let (one, two) = (Utility::whole(1), Utility::whole(2));
        let error = UtilityFunction::new([piece(0, one), piece(1, two)]).unwrap_err();
        assert_eq!(error, NotAUtility::Rises { at: minutes(1), before: one, after: two });
        assert!(UtilityFunction::new([piece(0, two), piece(1, one)]).is_ok());
        assert_eq!(UtilityFunction::new([]), Err(NotAUtility::Empty));
        assert!(matches!(UtilityFunction::new([piece(1, one)]), Err(NotAUtility::StartsLate(_))));
        let twice = UtilityFunction::new([piece(0, one), piece(0, one)]);
        assert!(matches!(twice, Err(NotAUtility::OutOfOrder { .. })));
    }

    proptest! {
        /// Older is never worth more, and the latest age is where the worth is passed.
        #[test]
        fn utility_never_rises(
            start in 0u64..10_000_000,
            flat in 0u64..2_000_000,
            rates in prop::collection::vec((1u64..5_000_000, 0u16..=1000, 0u64..2_000_000), 0..4),
            ages in prop::collection::vec(0u64..20_000_000, 2..40),
            worth in 1u64..10_000_000,
        ) {
            let mut function = UtilityFunction::flat_then(
                Utility(start), Span::from_millis(flat), Decay::per_minute_millionths(50_000),
            );
            let mut from = flat;
            for (gap, share, rate) in rates {
                from += gap;
                let decay = Decay::per_minute_millionths(rate);
                function = function.then(Span::from_millis(from), share, decay);
            }
            prop_assert_eq!(UtilityFunction::new(function.0.clone()), Ok(function.clone()));
            let mut ages = ages;
            ages.push(from);
            ages.push(from.saturating_sub(1));
            ages.sort_unstable();
            let at = |age| function.at(Span::from_millis(age));
            for pair in ages.windows(2) {
                prop_assert!(at(pair[0]) >= at(pair[1]));
            }
            match function.latest(Utility(worth)) {
                None => prop_assert!(at(0) < Utility(worth)),
                Some(Span::FOREVER) => prop_assert!(at(1 << 53) >= Utility(worth)),
                Some(age) => {
                    prop_assert!(at(age.millis()) >= Utility(worth));
                    prop_assert!(at(age.millis() + 1) < Utility(worth));
                }
            }
        }
    }
}
