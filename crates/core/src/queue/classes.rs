//! Size classes: which jobs of the queue the index keeps apart.

use std::collections::BTreeMap;

use wide::i16x8;

use super::code::{NOBODY, code};

/// How many size classes the index tells apart.
pub(super) const CLASSES: usize = 32;

/// A division of job sizes into a few ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeClasses {
    /// The code of the smallest size of each class, ascending; [`NOBODY`] for unused classes, at
    /// the end.
    smallest: [i16x8; CLASSES / 8],
}

impl SizeClasses {
    /// Classes for sizes nobody has seen yet: 1, 2, 3–4, 5–8, and so on.
    #[cfg(test)]
    pub(crate) fn powers_of_two() -> Self {
        SizeClasses::from_smallest(std::array::from_fn(|class| match class {
            0 => code(1),
            _ => code((1 << (class - 1)) + 1),
        }))
    }

    /// Classes learned from the sizes that will come: a class each if they are few, otherwise
    /// classes of about equally many jobs, so that a popular size keeps a class of its own.
    pub fn of_sizes(sizes: impl IntoIterator<Item = u32>) -> Self {
        // Most sizes are small: a plain table counts those, a map the few beyond it.
        let mut small = vec![0u64; 1 << 16];
        let mut large = BTreeMap::<u32, u64>::new();
        for size in sizes {
            match small.get_mut(size as usize) {
                Some(count) => *count += 1,
                None => *large.entry(size).or_default() += 1,
            }
        }
        let counts: Vec<(u32, u64)> =
            (0..).zip(small).filter(|(_, count)| *count > 0).chain(large).collect();

        let mut smallest = [NOBODY; CLASSES];
        let mut left: u64 = counts.iter().map(|(_, count)| count).sum();
        let mut next = 0;
        for (class, first) in smallest.iter_mut().enumerate() {
            let Some(&(size, _)) = counts.get(next) else { break };
            *first = code(u64::from(size));
            let classes_left = CLASSES - class;
            let share = left.div_ceil(classes_left as u64);
            let mut taken = 0;
            // The last size that would overshoot its share starts the next class instead, unless
            // the sizes that remain can all have classes of their own.
            while let Some(&(_, count)) = counts.get(next) {
                let alone = counts.len() - next < classes_left;
                if taken > 0 && (alone || taken + count > share) {
                    break;
                }
                taken += count;
                next += 1;
            }
            left -= taken;
        }
        SizeClasses::from_smallest(smallest)
    }

    fn from_smallest(smallest: [i16; CLASSES]) -> Self {
        let part = |part: usize| i16x8::new(std::array::from_fn(|i| smallest[8 * part + i]));
        SizeClasses { smallest: std::array::from_fn(part) }
    }

    /// The code of the smallest size of each class, ascending.
    #[inline(always)]
    pub(super) fn smallest(&self) -> &[i16x8; CLASSES / 8] {
        &self.smallest
    }

    /// The class of a size. The first class takes sizes below all that were known, and grows
    /// downwards with them.
    #[inline]
    pub(super) fn of(&mut self, size: i16) -> usize {
        if size < self.smallest[0].as_array()[0] {
            self.smallest[0].as_mut_array()[0] = size;
        }
        let above = |smallest: &i16x8| smallest.simd_gt(i16x8::splat(size)).to_bitmask();
        CLASSES - 1 - self.smallest.iter().map(|s| above(s).count_ones() as usize).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn smallest(classes: &SizeClasses) -> [i16; CLASSES] {
        std::array::from_fn(|class| classes.smallest[class / 8].as_array()[class % 8])
    }

    #[test]
    fn few_sizes_have_a_class_each() {
        let classes = SizeClasses::of_sizes([1, 1, 1, 1, 8, 64, 4]);
        assert_eq!(smallest(&classes)[..5], [1, 4, 8, 64, i16::MAX]);
        let all = SizeClasses::of_sizes((1..=32).flat_map(|s| [s].repeat(100 / s as usize)));
        assert_eq!(smallest(&all), std::array::from_fn(|i| i as i16 + 1));
    }

    #[test]
    fn a_popular_size_is_not_mixed_with_others() {
        let sizes = (1..=100).chain(std::iter::repeat_n(32, 1000)).chain([1 << 20]);
        let mut classes = SizeClasses::of_sizes(sizes);
        let class = classes.of(32);
        assert_eq!(smallest(&classes)[class], 32);
        assert_eq!(smallest(&classes)[class + 1], 33);
        assert_eq!(classes.of(code(1 << 30)), CLASSES - 1);
        let mut large = SizeClasses::of_sizes([8, 16]);
        assert_eq!((large.of(3), smallest(&large)[0]), (0, 3));
    }

    #[test]
    fn unknown_sizes_fall_between_powers_of_two() {
        let mut classes = SizeClasses::powers_of_two();
        assert_eq!([1, 2, 3, 4, 5, 8, 9].map(|size| classes.of(size)), [0, 1, 2, 2, 3, 3, 4]);
        assert_eq!(classes.of(code(u64::MAX)), CLASSES - 1);
    }
}
