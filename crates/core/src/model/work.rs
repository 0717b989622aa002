//! How much of a job's work is left.
//!
//! A job is a fixed amount of work that goes on as fast as its present operating point lets it. What
//! is left of it is a share of the whole, in steps of 2⁻⁶², so that a job whose point changes a
//! thousand times ends at the same instant everywhere.

use crate::units::Span;

/// The remaining work of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Work(u64);

impl Work {
    /// Nothing has been done.
    pub const ALL: Work = Work(1 << 62);

    /// What is left after some time at a point at which all of the work takes `whole`.
    pub fn after(self, elapsed: Span, whole: Span) -> Self {
        if whole == Span::ZERO {
            return Work(0);
        }
        // Rounded up: where nothing changes, a job then ends when it was to end, to the
        // millisecond.
        let done = u128::from(elapsed.millis()) * u128::from(Work::ALL.0);
        let done = done.div_ceil(u128::from(whole.millis()));
        Work(u128::from(self.0).saturating_sub(done) as u64)
    }

    /// How long this takes at a point at which all of the work takes `whole`, rounded up.
    pub fn time(self, whole: Span) -> Span {
        let time = u128::from(self.0) * u128::from(whole.millis());
        Span::from_millis(time.div_ceil(u128::from(Work::ALL.0)) as u64)
    }

    /// What is left as a number to be stored: 2⁶² is all of it.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// What was stored; `None` if it is more than all.
    pub const fn from_bits(bits: u64) -> Option<Self> {
        if bits <= Work::ALL.0 { Some(Work(bits)) } else { None }
    }

    /// Whether nothing is left.
    pub(crate) fn is_done(self) -> bool {
        self.0 == 0
    }

    /// The share that is left, for reckoning.
    pub fn share(self) -> f64 {
        self.0 as f64 / Work::ALL.0 as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 1000 s of work: 300 s at full speed, then at a speed at which all of it takes 1500 s. 70 %
    /// of that are 1050 s.
    #[test]
    fn work_goes_on_at_the_present_speed() {
        let left = Work::ALL.after(Span::from_secs(300), Span::from_secs(1000));
        assert_eq!(left.time(Span::from_secs(1500)), Span::from_secs(1050));
        assert_eq!(left.share(), 0.7);
        assert_eq!(Work::ALL.after(Span::from_secs(2), Span::from_secs(1)), Work(0));
        assert_eq!(Work::ALL.after(Span::ZERO, Span::ZERO).time(Span::from_secs(9)), Span::ZERO);
    }

    proptest! {
        /// What is stored is what comes back.
        #[test]
        fn storing_changes_nothing(elapsed in 0u64..1 << 40, whole in 1u64..1 << 40) {
            let left = Work::ALL.after(Span::from_millis(elapsed), Span::from_millis(whole));
            prop_assert_eq!(Work::from_bits(left.to_bits()), Some(left));
            prop_assert_eq!(Work::from_bits(Work::ALL.to_bits() + 1), None);
        }

        /// However often somebody looks, a job whose point stays ends when it was to end.
        #[test]
        fn looking_changes_nothing(
            whole in 1u64..1 << 45,
            looks in prop::collection::vec(0.0f64..0.1, 0..9),
        ) {
            let whole = Span::from_millis(whole);
            let (mut left, mut at) = (Work::ALL, Span::ZERO);
            for look in looks {
                let elapsed = Span::from_millis((whole.millis() as f64 * look) as u64);
                left = left.after(elapsed, whole);
                at = at + elapsed;
                prop_assert_eq!(at + left.time(whole), whole);
            }
        }
    }
}
