//! The jobs of a group in the order of the queue, each with the time it asks for.
//!
//! In blocks that know their shortest and longest times, so that the first job that asks for a time
//! of a certain range is found without looking at each.

use crate::queue::Place;
use crate::units::Span;

/// A block is split in two when it grows past this.
const BLOCK: usize = 32;

/// The jobs of a group.
#[derive(Clone, Default)]
pub(super) struct Members {
    /// No block is empty.
    blocks: Vec<Block>,
}

#[derive(Clone)]
struct Block {
    jobs: Vec<(Place, Span)>,
    shortest: Span,
    longest: Span,
}

impl Block {
    fn of(jobs: Vec<(Place, Span)>) -> Self {
        let mut block = Block { jobs, shortest: Span::ZERO, longest: Span::ZERO };
        block.measure();
        block
    }

    fn measure(&mut self) {
        let times = || self.jobs.iter().map(|job| job.1);
        self.shortest = times().min().unwrap_or(Span::ZERO);
        self.longest = times().max().unwrap_or(Span::ZERO);
    }
}

impl Members {
    /// Whether nobody is there.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The last block that begins at or before a job; the first one if none does.
    fn block_of(&self, job: Place) -> usize {
        self.blocks.partition_point(|block| block.jobs[0].0 <= job).saturating_sub(1)
    }

    pub(super) fn insert(&mut self, job: Place, requested: Span) {
        if self.blocks.is_empty() {
            self.blocks.push(Block::of(vec![(job, requested)]));
            return;
        }
        let at = self.block_of(job);
        let block = &mut self.blocks[at];
        let place = block.jobs.partition_point(|other| other.0 < job);
        block.jobs.insert(place, (job, requested));
        block.shortest = block.shortest.min(requested);
        block.longest = block.longest.max(requested);
        if block.jobs.len() > BLOCK {
            let tail = Block::of(block.jobs.split_off(BLOCK / 2));
            block.measure();
            self.blocks.insert(at + 1, tail);
        }
    }

    pub(super) fn remove(&mut self, job: Place) {
        let at = self.block_of(job);
        let Some(block) = self.blocks.get_mut(at) else { return };
        let Ok(place) = block.jobs.binary_search_by_key(&job, |other| other.0) else { return };
        block.jobs.remove(place);
        if block.jobs.is_empty() {
            self.blocks.remove(at);
        } else {
            block.measure();
        }
    }

    /// The first job after a place that is wanted by the time it asks for. Of a range of
    /// times, `wanted` says whether any of them is.
    pub(super) fn first(
        &self,
        after: Place,
        wanted: impl Fn(Span, Span) -> bool,
    ) -> Option<(Place, Span)> {
        for block in &self.blocks[self.block_of(after).min(self.blocks.len())..] {
            if wanted(block.shortest, block.longest) {
                let jobs = block.jobs.iter().filter(|job| job.0 > after);
                if let Some(found) = jobs.copied().find(|job| wanted(job.1, job.1)) {
                    return Some(found);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::JobId;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::ops::Bound;

    /// Not in the order of submission.
    fn place(job: u32) -> Place {
        Place { key: i64::from(job % 7), job: JobId(job) }
    }

    proptest! {
        /// Blocks change nothing: what is found is what a plain list has first.
        #[test]
        fn blocks_agree_with_a_plain_list(
            changes in prop::collection::vec((0u32..200, 0u64..100, any::<bool>()), 1..400),
            queries in prop::collection::vec((0u32..220, 0u64..100, 0u64..20), 1..20),
        ) {
            let mut members = Members::default();
            let mut plain = BTreeMap::new();
            for (job, millis, comes) in changes {
                let (job, requested) = (place(job), Span::from_millis(millis));
                if comes && !plain.contains_key(&job) {
                    plain.insert(job, requested);
                    members.insert(job, requested);
                } else {
                    plain.remove(&job);
                    members.remove(job);
                }
            }
            prop_assert!(members.blocks.iter().all(|block| (1..=BLOCK).contains(&block.jobs.len())));
            for (after, least, width) in queries {
                let (least, most) = (Span::from_millis(least), Span::from_millis(least + width));
                let found =
                    members.first(place(after), |short, long| least <= long && short <= most);
                let expected = plain
                    .range((Bound::Excluded(place(after)), Bound::Unbounded))
                    .find(|(_, requested)| (least..=most).contains(requested));
                prop_assert_eq!(found, expected.map(|(job, requested)| (*job, *requested)));
            }
        }
    }
}
