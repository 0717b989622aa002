//! Divides a node's cap among its domains.
//!
//! Each domain gets its lowest cap. What is left is divided in proportion to how far each can go up from there,
//! rounded down to a milliwatt, so that the sum is never above the node's cap. A node's cap below the sum of the
//! lowest caps gives each its lowest one, and the report says that it is above what was asked for.

use busbar_core::units::Watts;

use crate::domain::CapRange;

/// The cap of each domain, in the order of their ranges.
pub(crate) fn split(cap: Watts, ranges: &[CapRange]) -> Vec<Watts> {
    let total = whole(ranges);
    let spare = u128::from(cap.min(total.highest).saturating_sub(total.lowest).milliwatts());
    let reach = u128::from(total.highest.saturating_sub(total.lowest).milliwatts()).max(1);
    let share = |range: &CapRange| {
        let own = u128::from(range.highest.saturating_sub(range.lowest).milliwatts());
        // It is at most `own`, so it fits.
        let more = u64::try_from(spare * own / reach).unwrap_or(0);
        range.lowest + Watts::from_milliwatts(more)
    };
    ranges.iter().map(share).collect()
}

/// The caps that a node of such domains can be given.
pub(crate) fn whole(ranges: &[CapRange]) -> CapRange {
    CapRange {
        lowest: ranges.iter().map(|range| range.lowest).sum(),
        highest: ranges.iter().map(|range| range.highest.max(range.lowest)).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(lowest: u64, more: u64) -> CapRange {
        let lowest = Watts::from_milliwatts(lowest);
        CapRange { lowest, highest: lowest + Watts::from_milliwatts(more) }
    }

    #[test]
    fn unlike_domains_get_unlike_shares() {
        let ranges = [range(40_000, 60_000), range(40_000, 60_000), range(10_000, 30_000)];
        let watts = |cap| {
            split(Watts::from_watts(cap), &ranges)
                .iter()
                .map(|w| w.milliwatts() / 1000)
                .collect::<Vec<_>>()
        };
        assert_eq!(watts(240), [100, 100, 40]);
        assert_eq!(watts(165), [70, 70, 25]);
        assert_eq!(watts(90), [40, 40, 10]);
        assert_eq!(watts(50), [40, 40, 10], "not below what is possible");
        assert_eq!(watts(900), [100, 100, 40], "not above either");
    }

    proptest! {
        #[test]
        fn the_sum_is_never_above_the_cap(
            parts in prop::collection::vec((1u64..500_000, 0u64..500_000), 1..9),
            cap in 0u64..5_000_000,
        ) {
            let ranges: Vec<CapRange> = parts.iter().map(|(low, more)| range(*low, *more)).collect();
            let whole = whole(&ranges);
            let cap = Watts::from_milliwatts(cap);
            let shares = split(cap, &ranges);
            let sum: Watts = shares.iter().copied().sum();
            prop_assert!(sum <= cap.max(whole.lowest));
            // No more than a milliwatt of each is lost to rounding.
            let lost = whole.clamp(cap).saturating_sub(sum).milliwatts();
            prop_assert!(lost < ranges.len() as u64);
            for (share, range) in shares.iter().zip(&ranges) {
                prop_assert!(range.lowest <= *share && *share <= range.highest);
            }
        }
    }
}
