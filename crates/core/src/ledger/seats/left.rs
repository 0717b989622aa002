//! What is left of each node, and sets of nodes by the processors that they have left: the first nodes for a job are found by
//! words of these sets, and how many there are at most is known without a look at any node.

use std::ops::Range;

use crate::machine::{Kinds, NodeSize};
use crate::seats::Seats;
use crate::units::NodeId;

/// The nodes in a word.
const WORD: u32 = u64::BITS;

/// What is left of each node.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Left {
    nodes: Vec<NodeSize>,
    groups: Vec<Levels>,
}

impl Left {
    /// All of each node, of which jobs ask this.
    pub(super) fn all(kinds: &Kinds, seats: &Seats) -> Self {
        let mut asked: Vec<Vec<u32>> = vec![Vec::new(); kinds.groups().len()];
        for width in seats.widths() {
            for group in seats.groups_of(width) {
                asked[usize::from(*group)].push(width.processors);
            }
        }
        let groups = kinds.groups().iter().zip(asked).enumerate();
        let groups = groups.map(|(place, (group, asked))| {
            let processors = kinds.kind_of(place).size.processors;
            // Jobs that are not known as yet may ask for any number.
            let asked = if seats.is_open() { (1..=processors).collect() } else { asked };
            Levels::all(group.nodes.clone(), processors, asked)
        });
        Left { nodes: kinds.sizes().collect(), groups: groups.collect() }
    }

    /// What is left of a node.
    #[inline]
    pub(super) fn of_node(&self, node: NodeId) -> &NodeSize {
        &self.nodes[node.0 as usize]
    }

    /// The nodes of a group by the processors that they have left.
    #[inline]
    pub(super) fn levels(&self, group: u16) -> &Levels {
        &self.groups[usize::from(group)]
    }

    /// The group of a node.
    #[inline]
    pub(super) fn group_of(&self, node: NodeId) -> u16 {
        self.groups.partition_point(|group| group.nodes.end <= node.0) as u16
    }

    /// No more nodes of these groups have so much left.
    #[inline]
    pub(super) fn at_most(&self, groups: &[u16], wanted: &NodeSize) -> u32 {
        groups.iter().map(|group| self.levels(*group).at_least(wanted.processors)).sum()
    }

    /// Visits the nodes of a group that have so much left, in ascending order, for as long as `goes_on` says so; says whether it
    /// still does.
    #[inline]
    pub(super) fn visit(
        &self,
        group: u16,
        wanted: &NodeSize,
        mut goes_on: impl FnMut(u32) -> bool,
    ) -> bool {
        let levels = self.levels(group);
        for (place, mut word) in levels.words_from(wanted.processors) {
            while word != 0 {
                let node = place + word.trailing_zeros();
                word &= word - 1;
                if self.nodes[node as usize].has(wanted) && !goes_on(node) {
                    return false;
                }
            }
        }
        true
    }

    /// So much less is left of each of these nodes; `was` hears what was left of each.
    pub(super) fn take(
        &mut self,
        nodes: &[NodeId],
        each: &NodeSize,
        mut was: impl FnMut(&NodeSize),
    ) {
        self.change(nodes, |before| {
            was(before);
            before.without(each).unwrap_or_default()
        });
    }

    /// So much more is left of each of these nodes; `is` hears what is left of each.
    pub(super) fn give(
        &mut self,
        nodes: &[NodeId],
        each: &NodeSize,
        mut is: impl FnMut(&NodeSize),
    ) {
        self.change(nodes, |before| {
            let after = before.with(each);
            is(&after);
            after
        });
    }

    #[inline]
    fn change(&mut self, nodes: &[NodeId], mut change: impl FnMut(&NodeSize) -> NodeSize) {
        let mut group = 0;
        let mut moves = Moves::default();
        for node in nodes {
            // Most of the time it is the group of the node before.
            if !self.groups[group].has(*node) {
                self.groups[group].make(std::mem::take(&mut moves));
                group = usize::from(self.group_of(*node));
            }
            let left = &mut self.nodes[node.0 as usize];
            let before = *left;
            *left = change(&before);
            let levels = &mut self.groups[group];
            let next = levels.moves(node.0, before.processors, left.processors);
            // Neighbours mostly move alike, and then they move together.
            match moves.is_like(&next) {
                true => moves.nodes |= next.nodes,
                false => levels.make(std::mem::replace(&mut moves, next)),
            }
        }
        self.groups[group].make(moves);
    }

    /// The sets made anew, if so much is left of the nodes.
    pub(super) fn check(&self, nodes: &[NodeSize]) -> Result<(), String> {
        if nodes != self.nodes {
            return Err("what is left of nodes is not what their jobs leave".to_owned());
        }
        match self.groups.iter().all(|levels| *levels == levels.made_anew(nodes)) {
            true => Ok(()),
            false => {
                Err("nodes are in sets of other numbers of processors than they have left"
                    .to_owned())
            }
        }
    }
}

/// The nodes of a group by how many processors are left of them. Only numbers that jobs ask for are told apart: a level is how
/// many of these are left.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Levels {
    nodes: Range<u32>,
    /// By processors, up to all of a node.
    of_processors: Vec<u16>,
    /// How many nodes are at each level.
    counts: Vec<u32>,
    /// Which nodes these are: by word, and in it by level.
    words: Vec<u64>,
    /// Which words have any: by 64 words, and in these by level.
    summary: Vec<u64>,
}

impl Levels {
    /// These nodes, of whose processors nobody has any, and of which jobs ask for these numbers.
    fn all(nodes: Range<u32>, processors: u32, mut asked: Vec<u32>) -> Self {
        asked.sort_unstable();
        asked.dedup();
        let level = |processors| asked.partition_point(|asked| *asked <= processors) as u16;
        let of_processors: Vec<u16> = (0..=processors).map(level).collect();
        let (many, words) = (asked.len() + 1, nodes.len().div_ceil(WORD as usize));
        let mut levels = Levels {
            of_processors,
            counts: vec![0; many],
            words: vec![0; many * words],
            summary: vec![0; many * words.div_ceil(WORD as usize)],
            nodes: nodes.clone(),
        };
        nodes.for_each(|node| levels.put(node, levels.level(processors)));
        levels
    }

    /// The same nodes, if so much is left of them.
    fn made_anew(&self, left: &[NodeSize]) -> Self {
        let mut levels = Levels {
            counts: vec![0; self.counts.len()],
            words: vec![0; self.words.len()],
            summary: vec![0; self.summary.len()],
            ..self.clone()
        };
        for node in self.nodes.clone() {
            levels.put(node, levels.level(left[node as usize].processors));
        }
        levels
    }

    /// Whether a node is one of them.
    #[inline]
    pub(crate) fn has(&self, node: NodeId) -> bool {
        self.nodes.contains(&node.0)
    }

    /// The level of a number of processors.
    #[inline]
    pub(crate) fn level(&self, processors: u32) -> usize {
        let most = self.of_processors.len() - 1;
        usize::from(self.of_processors[most.min(processors as usize)])
    }

    /// How many nodes are at each level.
    #[inline]
    pub(crate) fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// No more nodes have so many processors left; exactly so many, where jobs ask for this number.
    #[inline]
    fn at_least(&self, processors: u32) -> u32 {
        match processors as usize >= self.of_processors.len() {
            true => 0,
            false => self.counts[self.level(processors)..].iter().sum(),
        }
    }

    /// The nodes that may have so many processors left: words, each with the node of its first bit.
    #[inline]
    fn words_from(&self, processors: u32) -> impl Iterator<Item = (u32, u64)> + '_ {
        let (many, level) = (self.counts.len(), self.level(processors));
        let any = move |of_levels: &[u64]| of_levels[level..].iter().fold(0, |any, one| any | one);
        (0..).zip(self.summary.chunks_exact(many)).flat_map(move |(place, of_levels)| {
            let mut left = any(of_levels);
            std::iter::from_fn(move || {
                let word = (left != 0).then(|| place * WORD + left.trailing_zeros())?;
                left &= left - 1;
                let of_levels = &self.words[word as usize * many..][..many];
                Some((self.nodes.start + word * WORD, any(of_levels)))
            })
        })
    }

    fn put(&mut self, node: u32, level: usize) {
        let place = node - self.nodes.start;
        self.put_all(place / WORD, level, 1 << (place % WORD));
    }

    /// These nodes of a word are at a level from now on.
    #[inline]
    fn put_all(&mut self, word: u32, level: usize, nodes: u64) {
        let many = self.counts.len();
        self.counts[level] += nodes.count_ones();
        self.words[word as usize * many + level] |= nodes;
        self.summary[(word / WORD) as usize * many + level] |= 1 << (word % WORD);
    }

    /// They are not any more.
    #[inline]
    fn remove_all(&mut self, word: u32, level: usize, nodes: u64) {
        let many = self.counts.len();
        self.counts[level] -= nodes.count_ones();
        let left = &mut self.words[word as usize * many + level];
        *left &= !nodes;
        if *left == 0 {
            self.summary[(word / WORD) as usize * many + level] &= !(1 << (word % WORD));
        }
    }

    /// A node has another number of processors left.
    #[inline]
    fn moves(&self, node: u32, before: u32, after: u32) -> Moves {
        let place = node - self.nodes.start;
        let (from, to) = (self.level(before), self.level(after));
        Moves { word: place / WORD, from, to, nodes: 1 << (place % WORD) }
    }

    #[inline]
    fn make(&mut self, Moves { word, from, to, nodes }: Moves) {
        if from != to {
            self.remove_all(word, from, nodes);
            self.put_all(word, to, nodes);
        }
    }
}

/// Nodes of a word that go from one level to another.
#[derive(Clone, Copy, Debug, Default)]
struct Moves {
    word: u32,
    from: usize,
    to: usize,
    nodes: u64,
}

impl Moves {
    #[inline]
    fn is_like(&self, other: &Moves) -> bool {
        (self.word, self.from, self.to) == (other.word, other.from, other.to)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The sets find the nodes that a look at each of them finds, whatever jobs take and give back.
        #[test]
        fn sets_of_nodes_agree_with_a_scan(
            sizes in prop::collection::vec((1u32..5000, 1u32..20), 1..4),
            asked in prop::collection::vec(1u32..20, 1..8),
            jobs in prop::collection::vec((any::<u32>(), 1u32..200, 0usize..8, 0u32..3, any::<bool>()), 1..40),
        ) {
            let mut nodes: Vec<NodeSize> = Vec::new();
            let mut groups = Vec::new();
            for (many, processors) in sizes {
                let first = nodes.len() as u32;
                let size = NodeSize { processors, memory_mib: 2, gpus: 0 };
                nodes.resize(nodes.len() + many as usize, size);
                groups.push(Levels::all(first..nodes.len() as u32, processors, asked.clone()));
            }
            let mut left = Left { nodes: nodes.clone(), groups };
            let mut running = Vec::new();
            for (from, many, wanted, memory_mib, ends) in jobs {
                let processors = asked[wanted % asked.len()];
                let each = NodeSize { processors, memory_mib, gpus: 0 };
                for (group, levels) in left.groups.iter().enumerate() {
                    let mut found = Vec::new();
                    left.visit(group as u16, &each, |node| {
                        found.push(node);
                        true
                    });
                    let has = |node: &u32| nodes[*node as usize].has(&each);
                    let expected: Vec<u32> = levels.nodes.clone().filter(has).collect();
                    prop_assert!(left.at_most(&[group as u16], &each) >= expected.len() as u32);
                    prop_assert_eq!(found, expected);
                }
                let first = from % nodes.len() as u32;
                let some = first..(first + many).min(nodes.len() as u32);
                let some = some.filter(|node| nodes[*node as usize].has(&each)).map(NodeId);
                let some: Vec<NodeId> = some.collect();
                left.take(&some, &each, |_| {});
                for node in &some {
                    let left = &mut nodes[node.0 as usize];
                    *left = left.without(&each).unwrap();
                }
                running.push((some, each));
                if ends {
                    let (some, each) = running.swap_remove(from as usize % running.len());
                    left.give(&some, &each, |_| {});
                    for node in &some {
                        let left = &mut nodes[node.0 as usize];
                        *left = left.with(&each);
                    }
                }
                prop_assert_eq!(left.check(&nodes), Ok(()));
            }
        }
    }
}
