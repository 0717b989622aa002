//! How nodes of one type differ: parts of one model need different power for the same work.
//!
//! A node whose greed is e does under a cap p what the reference node does under p/e, and draws e times
//! as much. Without a cap all are equally fast. The greed of a node comes from a seed and the node's own
//! number, so that a machine can grow without its nodes becoming others; and there are only
//! [`CLASSES`] different ones, so that answers can be worked out for a class instead of for each node.

use crate::mixing::mixed;
use crate::units::{NodeId, Share};

/// How many different nodes there are.
pub(crate) const CLASSES: usize = 64;

/// How the nodes of a machine differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Parts {
    /// They do not.
    #[default]
    Alike,
    /// They are unlike: each needs more or less than the reference node, within so much of it.
    Unlike {
        /// The largest difference, more or less.
        spread: Share,
        /// Where random numbers start.
        seed: u64,
    },
}

impl Parts {
    /// The class of a node: from the least greedy to the greediest, the middle being most common.
    #[inline]
    pub(crate) fn class(&self, node: NodeId) -> usize {
        match self {
            Parts::Alike => self.middle(),
            Parts::Unlike { seed, .. } => {
                let bits = mixed(seed ^ u64::from(node.0).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                // The mean of two even numbers.
                let (one, other) = (bits & 0x3f, bits >> 32 & 0x3f);
                ((one + other) / 2) as usize
            }
        }
    }

    /// The class of the reference node, or one beside it.
    pub(crate) fn middle(&self) -> usize {
        CLASSES / 2
    }

    /// How much more power than the reference node a node of a class needs.
    pub(crate) fn greed(&self, class: usize) -> f64 {
        match self {
            Parts::Alike => 1.0,
            Parts::Unlike { spread, .. } => {
                let half = (CLASSES / 2) as f64;
                let spread = spread.millionths() as f64 / 1e6;
                1.0 + spread * (class as f64 - half) / half
            }
        }
    }

    /// Whether it matters which nodes a job has.
    pub(crate) fn are_unlike(&self) -> bool {
        matches!(self, Parts::Unlike { .. })
    }
}
