//! A distribution, condensed: values at evenly spaced ranks.

use serde::{Deserialize, Serialize};

use crate::report::digest::Column;

/// The most values that are kept.
const MOST_RANKS: usize = 256;

/// Of many values, in order, the smallest, the largest, and others at ranks that are evenly spaced
/// between them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranks {
    /// How many values there are in all.
    pub(crate) count: u64,
    /// Those that are kept, from small to large.
    pub(crate) values: Column,
    /// How many of all values come no later than each of them.
    pub(crate) ranks: Column,
}

impl Ranks {
    /// The ranks of some values.
    pub(crate) fn of(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        let count = values.len();
        let kept = count.min(MOST_RANKS);
        // The last of `kept` places is the last of all values; one place alone is both.
        let place = |kept_place: usize| match kept {
            0 | 1 => 0,
            _ => kept_place * (count - 1) / (kept - 1),
        };
        Ranks {
            count: count as u64,
            values: (0..kept).map(|kept_place| values[place(kept_place)]).collect(),
            ranks: (0..kept).map(|kept_place| place(kept_place) as u64 + 1).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_kept_and_of_many_the_ends() {
        let few = Ranks::of(vec![5, 1, 3]);
        assert_eq!((few.count, few.values.values()), (3, &[1, 3, 5][..]));
        assert_eq!(few.ranks.values(), [1, 2, 3]);
        let many = Ranks::of((0..10_000).rev().collect());
        let (values, ranks) = (many.values.values(), many.ranks.values());
        assert_eq!((values.len(), values[0], values[255]), (256, 0, 9999));
        // The value at a rank is one less than the rank, as values count from zero.
        assert!(values.iter().zip(ranks).all(|(value, rank)| value + 1 == *rank));
        assert_eq!(Ranks::of(Vec::new()), Ranks::default());
        assert_eq!(Ranks::of(vec![7]).ranks.values(), [1]);
    }
}
