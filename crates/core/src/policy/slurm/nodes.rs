//! Sets of nodes, as rows of bits.

use std::ops::Range;

/// A set of nodes, by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeSet {
    words: Vec<u64>,
}

const WORD: u32 = u64::BITS;

impl NodeSet {
    /// None of so many nodes.
    pub(super) fn none(nodes: u32) -> Self {
        NodeSet { words: vec![0; nodes.div_ceil(WORD) as usize] }
    }

    /// These of so many nodes.
    pub(super) fn of(nodes: u32, some: impl Iterator<Item = u32>) -> Self {
        let mut set = NodeSet::none(nodes);
        some.for_each(|node| set.insert(node));
        set
    }

    #[inline]
    pub(super) fn insert(&mut self, node: u32) {
        self.words[(node / WORD) as usize] |= 1 << (node % WORD);
    }

    #[inline]
    pub(super) fn remove(&mut self, node: u32) {
        self.words[(node / WORD) as usize] &= !(1 << (node % WORD));
    }

    #[inline]
    pub(super) fn has(&self, node: u32) -> bool {
        self.words[(node / WORD) as usize] >> (node % WORD) & 1 == 1
    }

    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Keeps those that are also in another set.
    #[inline]
    pub(super) fn keep(&mut self, other: &NodeSet) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    /// Leaves out those of another set.
    #[inline]
    pub(super) fn leave_out(&mut self, other: &NodeSet) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
    }

    /// Whether all of them are in another set, too.
    #[inline]
    pub(super) fn is_within(&self, other: &NodeSet) -> bool {
        self.words.iter().zip(&other.words).all(|(word, other)| word & !other == 0)
    }

    /// The nodes in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.runs().flatten()
    }

    /// The highest node of some.
    pub(super) fn last(&self) -> Option<u32> {
        let place = self.words.iter().rposition(|word| *word != 0)?;
        Some(place as u32 * WORD + self.words[place].ilog2())
    }

    /// Stretches of neighbours, in ascending order.
    pub(super) fn runs(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        let mut from = 0;
        std::iter::from_fn(move || {
            let start = self.next(from, 0)?;
            from = self.next(start, u64::MAX).unwrap_or(self.words.len() as u32 * WORD);
            Some(start..from)
        })
    }

    /// The first node from this one on that is in the set, or that is not, where all bits are turned.
    fn next(&self, from: u32, turned: u64) -> Option<u32> {
        let first = (from / WORD) as usize;
        let mut mask = u64::MAX << (from % WORD);
        for (place, word) in self.words.iter().enumerate().skip(first) {
            let word = (word ^ turned) & mask;
            if word != 0 {
                return Some(place as u32 * WORD + word.trailing_zeros());
            }
            mask = u64::MAX;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sets_agree_with_plain_ones(
            one in prop::collection::btree_set(0u32..200, 0..150),
            other in prop::collection::btree_set(0u32..200, 0..150),
        ) {
            let set = |some: &BTreeSet<u32>| NodeSet::of(200, some.iter().copied());
            let plain = |set: &NodeSet| set.iter().collect::<BTreeSet<u32>>();
            let (first, second) = (set(&one), set(&other));
            prop_assert_eq!(&plain(&first), &one);
            prop_assert_eq!(first.count() as usize, one.len());
            prop_assert_eq!(first.last(), one.last().copied());
            prop_assert_eq!(first.is_within(&second), one.is_subset(&other));
            let mut both = first.clone();
            both.keep(&second);
            prop_assert_eq!(plain(&both), &one & &other);
            let mut rest = first.clone();
            rest.leave_out(&second);
            prop_assert_eq!(plain(&rest), &one - &other);
            let runs: Vec<Range<u32>> = first.runs().collect();
            prop_assert!(runs.windows(2).all(|two| two[0].end < two[1].start));
            prop_assert!((0..200).all(|node| first.has(node) == one.contains(&node)));
        }
    }
}
