//! What waiting jobs draw: the least below each part of the queue's tree.
//!
//! Where every node of every job draws the same, watts are as good as nodes. Elsewhere a tree of the same form as that of
//! nodes and times holds the least power of any waiting job below each child.

use wide::i16x16;

use super::code::NOBODY;
use super::index::{BLOCK, FAN_OUT, with16};

const EMPTY: i16x16 = i16x16::new([NOBODY; BLOCK]);

/// The power of waiting jobs, in codes of watts.
#[derive(Clone, Default)]
pub(super) struct Draws {
    /// Of each job; [`NOBODY`] if it does not wait.
    blocks: Vec<i16x16>,
    /// The least below each child, the parents of the blocks first, the root last.
    levels: Vec<Vec<i16x16>>,
}

impl Draws {
    /// Makes room for this many blocks, in as many levels as they take.
    pub(super) fn grow(&mut self, blocks: usize) {
        self.blocks.resize(blocks, EMPTY);
        let mut width = blocks;
        for level in 0.. {
            width = width.div_ceil(FAN_OUT);
            if level == self.levels.len() {
                // What was the root is the first child of a new one.
                let below = level.checked_sub(1).and_then(|below| self.levels[below].first());
                let root = below.map(|below| with16(EMPTY, 0, below.reduce_min()));
                self.levels.push(root.into_iter().collect());
            }
            self.levels[level].resize(width, EMPTY);
            if width == 1 {
                break;
            }
        }
    }

    /// A job at a place waits and draws so much, or does not wait any more.
    #[inline]
    pub(super) fn set(&mut self, place: usize, watts: Option<i16>) {
        let block = &mut self.blocks[place / BLOCK];
        *block = with16(*block, place % BLOCK, watts.unwrap_or(NOBODY));
    }

    /// Tells the tree what the jobs of a block draw.
    #[inline]
    pub(super) fn sum_up(&mut self, block: usize) {
        let (mut child, mut least) = (block, self.blocks[block].reduce_min());
        for level in &mut self.levels {
            let row = &mut level[child / FAN_OUT];
            if row.as_array()[child % FAN_OUT] == least {
                return;
            }
            *row = with16(*row, child % FAN_OUT, least);
            least = row.reduce_min();
            child /= FAN_OUT;
        }
    }

    /// The children of a node, one bit each, below which somebody draws less.
    #[inline(always)]
    pub(super) fn below(&self, level: usize, node: usize, bound: i16) -> u32 {
        i16x16::splat(bound).simd_gt(self.levels[level][node]).to_bitmask()
    }

    /// What the jobs of a block draw.
    #[inline(always)]
    pub(super) fn block(&self, block: usize) -> &i16x16 {
        &self.blocks[block]
    }
}
