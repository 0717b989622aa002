//! Which nodes are free: a bit for each, and a bit for each 64 of them of which one is free.
//!
//! Jobs get the free nodes with the lowest numbers. These are found word by word, however large the machine is, and are
//! told apart in stretches of neighbours, of which a job has few even where it has hundreds of nodes.

use std::ops::Range;

/// The nodes in a word.
const WORD: u32 = u64::BITS;

/// A set of nodes, by their numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FreeNodes {
    words: Vec<u64>,
    /// By word: whether a node in it is free.
    summary: Vec<u64>,
}

impl FreeNodes {
    /// This many nodes, all of them free.
    pub(crate) fn all(nodes: u32) -> Self {
        let mut free = FreeNodes::none(nodes);
        free.insert(0..nodes);
        free
    }

    /// This many nodes, none of them free.
    pub(crate) fn none(nodes: u32) -> Self {
        let words = nodes.div_ceil(WORD) as usize;
        FreeNodes { words: vec![0; words], summary: vec![0; words.div_ceil(WORD as usize)] }
    }

    /// From now on there are this many nodes, and none of them is free.
    pub(crate) fn empty(&mut self, nodes: u32) {
        let words = nodes.div_ceil(WORD) as usize;
        for (set, length) in
            [(&mut self.words, words), (&mut self.summary, words.div_ceil(WORD as usize))]
        {
            set.clear();
            set.resize(length, 0);
        }
    }

    /// The free nodes in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.words).flat_map(|(place, word)| {
            let next = |left: &u64| Some(left & left.wrapping_sub(1)).filter(|left| *left != 0);
            let left = std::iter::successors(Some(*word).filter(|word| *word != 0), next);
            left.map(move |left| place * WORD + left.trailing_zeros())
        })
    }

    /// Visits those of these nodes that are free, in ascending order, for as long as `goes_on` says so; says whether it still does.
    #[inline]
    pub(crate) fn visit_in(&self, nodes: Range<u32>, mut goes_on: impl FnMut(u32) -> bool) -> bool {
        let mut visits = true;
        for_words(nodes, |place, mask| {
            let mut word = if visits { self.words[place] & mask } else { 0 };
            while word != 0 && visits {
                visits = goes_on(place as u32 * WORD + word.trailing_zeros());
                word &= word - 1;
            }
        });
        visits
    }

    /// How many nodes below this one are free.
    pub(crate) fn count_below(&self, node: u32) -> u32 {
        let whole = ((node / WORD) as usize).min(self.words.len());
        let count: u32 = self.words[..whole].iter().map(|word| word.count_ones()).sum();
        match (self.words.get(whole), node % WORD) {
            (Some(word), length) if length > 0 => count + (word & ones(0, length)).count_ones(),
            _ => count,
        }
    }

    /// How many of these nodes are free.
    pub(crate) fn count_in(&self, nodes: Range<u32>) -> u32 {
        let mut count = 0;
        for_words(nodes, |place, mask| count += (self.words[place] & mask).count_ones());
        count
    }

    /// Takes so many of the lowest of these nodes that are free, or all if there are fewer; `to` is told each stretch, in
    /// ascending order. Says how many are missing.
    pub(crate) fn take_lowest_in(
        &mut self,
        nodes: Range<u32>,
        count: u32,
        mut to: impl FnMut(Range<u32>),
    ) -> u32 {
        let mut left = count;
        for_words(nodes, |place, mask| {
            let first = place as u32 * WORD;
            while left > 0 && self.words[place] & mask != 0 {
                let word = self.words[place] & mask;
                let skipped = word.trailing_zeros();
                let length = (word >> skipped).trailing_ones().min(left);
                self.words[place] &= !ones(skipped, length);
                self.forget_empty(place);
                left -= length;
                to(first + skipped..first + skipped + length);
            }
        });
        left
    }

    /// Becomes like another set of as many nodes; `told` hears of each node that changes, and whether it is free now. What
    /// stays as it is costs one comparison for 64 nodes.
    pub(crate) fn follow(&mut self, other: &FreeNodes, mut told: impl FnMut(u32, bool)) {
        for (place, word) in self.words.iter_mut().enumerate() {
            let new = other.words.get(place).copied().unwrap_or(0);
            let mut changed = *word ^ new;
            *word = new;
            while changed != 0 {
                let bit = changed.trailing_zeros();
                told(place as u32 * WORD + bit, new >> bit & 1 == 1);
                changed &= changed - 1;
            }
        }
        self.summary.clone_from(&other.summary);
    }

    #[inline]
    pub(crate) fn has(&self, node: u32) -> bool {
        self.words.get((node / WORD) as usize).is_some_and(|word| word >> (node % WORD) & 1 == 1)
    }

    /// The free node with the highest number.
    pub(crate) fn last(&self) -> Option<u32> {
        let place = self.summary.iter().rposition(|word| *word != 0)?;
        let word = place as u32 * WORD + self.summary[place].ilog2();
        Some(word * WORD + self.words[word as usize].ilog2())
    }

    /// These nodes are free from now on.
    #[inline]
    pub(crate) fn insert(&mut self, nodes: Range<u32>) {
        for_words(nodes, |place, mask| {
            self.words[place] |= mask;
            self.summary[place / WORD as usize] |= 1 << (place % WORD as usize);
        });
    }

    /// This node is free from now on.
    #[inline]
    pub(crate) fn insert_one(&mut self, node: u32) {
        let place = (node / WORD) as usize;
        self.words[place] |= 1 << (node % WORD);
        self.summary[place / WORD as usize] |= 1 << (place % WORD as usize);
    }

    /// These nodes are not free any more.
    #[inline]
    pub(crate) fn remove(&mut self, nodes: Range<u32>) {
        for_words(nodes, |place, mask| {
            self.words[place] &= !mask;
            self.forget_empty(place);
        });
    }

    /// Takes so many of the lowest nodes, or all if there are fewer; `to` is told each stretch, in ascending order. Stretches
    /// may touch.
    pub(crate) fn take_lowest(&mut self, count: u32, mut to: impl FnMut(Range<u32>)) {
        let mut left = count;
        for block in 0..self.summary.len() {
            while left > 0 && self.summary[block] != 0 {
                let place = block * WORD as usize + self.summary[block].trailing_zeros() as usize;
                let first = place as u32 * WORD;
                let word = self.words[place];
                // The lowest stretch of the word, as far as it is needed.
                let skipped = word.trailing_zeros();
                let length = (word >> skipped).trailing_ones().min(left);
                self.words[place] = word & !ones(skipped, length);
                self.forget_empty(place);
                left -= length;
                to(first + skipped..first + skipped + length);
            }
            if left == 0 {
                return;
            }
        }
    }

    #[inline]
    fn forget_empty(&mut self, place: usize) {
        if self.words[place] == 0 {
            self.summary[place / WORD as usize] &= !(1 << (place % WORD as usize));
        }
    }
}

/// This many bits from this one on.
#[inline]
fn ones(first: u32, length: u32) -> u64 {
    (u64::MAX >> (WORD - length)) << first
}

/// Each word that these nodes are in, with the bits of those.
#[inline]
fn for_words(nodes: Range<u32>, mut each: impl FnMut(usize, u64)) {
    let mut first = nodes.start;
    while first < nodes.end {
        let at = first % WORD;
        let length = (WORD - at).min(nodes.end - first);
        each((first / WORD) as usize, ones(at, length));
        first += length;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Words say the same as a set of numbers, within one word and across many.
        #[test]
        fn words_agree_with_a_set(
            nodes in prop::sample::select(vec![1u32, 63, 64, 65, 200, 5000]),
            steps in prop::collection::vec((0u8..3, 0u32..5000, 0u32..300), 0..40),
        ) {
            let mut plain: BTreeSet<u32> = (0..nodes).collect();
            let mut free = FreeNodes::all(nodes);
            let (mut seen, mut before) = (FreeNodes::none(nodes), BTreeSet::new());
            for (kind, first, count) in steps {
                let range = first.min(nodes)..first.saturating_add(count).min(nodes);
                match kind {
                    0 => {
                        plain.extend(range.clone());
                        free.insert(range);
                    }
                    1 => {
                        plain.retain(|node| !range.contains(node));
                        free.remove(range);
                    }
                    _ => {
                        let lowest: Vec<u32> = plain.iter().copied().take(count as usize).collect();
                        plain.retain(|node| !lowest.contains(node));
                        let mut taken = Vec::new();
                        free.take_lowest(count, |stretch| taken.extend(stretch));
                        prop_assert_eq!(taken, lowest);
                        let inside = first / 2..nodes.min(first / 2 + 90).max(first / 2);
                        let of_them: Vec<u32> = plain.iter().copied().filter(|node| inside.contains(node)).collect();
                        let inside = inside.start.min(nodes)..inside.end.min(nodes);
                        prop_assert_eq!(free.count_in(inside.clone()), of_them.len() as u32);
                        let lowest: Vec<u32> = of_them.into_iter().take(count as usize / 3).collect();
                        plain.retain(|node| !lowest.contains(node));
                        let mut taken = Vec::new();
                        let missing = free.take_lowest_in(inside, count / 3, |stretch| taken.extend(stretch));
                        prop_assert_eq!(missing, count / 3 - lowest.len() as u32);
                        prop_assert_eq!(taken, lowest);
                    }
                }
                prop_assert_eq!(free.last(), plain.last().copied());
                prop_assert!(free.iter().eq(plain.iter().copied()));
                prop_assert_eq!(free.count_below(first), plain.range(..first).count() as u32);
                let mut heard = Vec::new();
                seen.follow(&free, |node, is_free| heard.push((node, is_free)));
                let differs = |node: &u32| plain.contains(node) != before.contains(node);
                let expected: Vec<(u32, bool)> = (0..nodes).filter(differs).map(|node| (node, plain.contains(&node))).collect();
                prop_assert_eq!(heard, expected);
                prop_assert_eq!(&seen, &free);
                before = plain.clone();
                prop_assert!((0..nodes + 70).all(|node| free.has(node) == plain.contains(&node)));
            }
        }
    }
}
