//! Sizes and times as the index holds them: 16 bits, in the right order.

use crate::units::Watts;

/// Where nobody waits: above every code and every bound.
pub(super) const NOBODY: i16 = i16::MAX;

/// A number in 15 bits, never in the wrong order: exact below 2048, then its eleven leading bits.
/// Numbers that look alike here are told apart by the policy's own test.
#[inline(always)]
pub(super) fn code(number: u64) -> i16 {
    const LARGEST: u64 = u32::MAX as u64;
    let number = number.min(LARGEST);
    let shift = 53u32.saturating_sub((number | 1).leading_zeros());
    (shift * 1024) as i16 + (number >> shift) as i16
}

/// The least code that is above a number's.
#[inline(always)]
pub(super) fn bound(number: u64) -> i16 {
    code(number) + 1
}

/// Power as the index counts it: in watts, rounded down.
#[inline(always)]
pub(super) fn watts(power: Watts) -> u64 {
    power.milliwatts() / 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn codes_keep_the_order(
            a in prop_oneof![any::<u64>(), 0u64..5000],
            b in prop_oneof![any::<u64>(), 0u64..5000],
        ) {
            prop_assert!(code(a.min(b)) <= code(a.max(b)));
            prop_assert!((0..NOBODY - 1).contains(&code(a)));
            if a < 2048 {
                prop_assert_eq!(code(a), a as i16);
                prop_assert!(code(a) < code(a + 1));
            }
        }
    }
}
