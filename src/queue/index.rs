//! The parts of the queue's tree: blocks of neighbouring places at the bottom, nodes above them.
//!
//! Both are laid out for vector instructions of eight 16-bit numbers, which every machine has.
//! Sizes and times become such numbers by [`code`], which keeps their order.

use wide::{i16x8, i16x16};

use super::Fit;
use super::classes::{CLASSES, SizeClasses};

/// Jobs in a block; one bit each in its waiting mask.
pub(super) const BLOCK: usize = 16;
/// Children of a tree node.
pub(super) const FAN_OUT: usize = 8;
/// Where nobody waits: above every code and every bound.
const NOBODY: i16 = i16::MAX;

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
fn bound(number: u64) -> i16 {
    code(number) + 1
}

/// The room on offer, as the index compares it.
pub(super) struct IndexFit {
    free: i16,
    unreserved: i16,
    window: i16,
    /// How many classes have a size that fits at all, and how many one that nobody reserved.
    free_classes: usize,
    unreserved_classes: usize,
}

impl IndexFit {
    #[inline(always)]
    pub(super) fn new(fit: &Fit, classes: &SizeClasses) -> Self {
        let free = bound(u64::from(fit.free));
        let unreserved = bound(u64::from(fit.free.min(fit.extra)));
        IndexFit {
            free,
            unreserved,
            window: bound(fit.window.millis() / 1000),
            free_classes: classes.below(free),
            unreserved_classes: classes.below(unreserved),
        }
    }
}

/// For each class and each child, the shortest time among the waiting jobs below that child. The
/// children of a class stand together: one comparison takes them all.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Node([i16x8; CLASSES]);

impl Node {
    pub(super) const EMPTY: Node = Node([i16x8::new([NOBODY; FAN_OUT]); CLASSES]);

    /// A parent with this node as its first child.
    pub(super) fn above(first: &Node) -> Node {
        let mut parent = Node::EMPTY;
        for class in 0..CLASSES {
            *parent.child(class, 0) = first.shortest(class);
        }
        parent
    }

    /// The children, one bit each, below which somebody may fit: the shortest job of a class that
    /// fits ends within the window, or anybody waits in a class that nobody's reservation minds.
    /// Small sizes come first, so these are the first few classes.
    #[inline(always)]
    pub(super) fn may_fit(&self, fit: &IndexFit) -> u32 {
        let shortest = |classes: &[i16x8]| {
            classes.iter().fold(i16x8::splat(NOBODY), |shortest, class| shortest.min(*class))
        };
        let unreserved = shortest(&self.0[..fit.unreserved_classes]);
        let others = shortest(&self.0[fit.unreserved_classes..fit.free_classes]);
        let anybody = i16x8::splat(NOBODY).simd_gt(unreserved);
        let short = i16x8::splat(fit.window).simd_gt(others);
        (anybody | short).to_bitmask()
    }

    #[inline(always)]
    pub(super) fn shortest(&self, class: usize) -> i16 {
        self.0[class].reduce_min()
    }

    #[inline(always)]
    pub(super) fn child(&mut self, class: usize, child: usize) -> &mut i16 {
        &mut self.0[class].as_mut_array()[child]
    }
}

/// Neighbouring places of the queue.
#[derive(Clone, Copy)]
pub(super) struct Block {
    /// Fewest nodes of each job; [`NOBODY`] if it does not wait.
    nodes: i16x16,
    /// Shortest time of each job, in seconds; [`NOBODY`] if it does not wait.
    seconds: i16x16,
    /// Size class of each job.
    class: i16x16,
    /// Which of them wait, one bit each.
    pub(super) waiting: u16,
}

impl Block {
    pub(super) const EMPTY: Block = Block {
        nodes: i16x16::new([NOBODY; BLOCK]),
        seconds: i16x16::new([NOBODY; BLOCK]),
        class: i16x16::new([0; BLOCK]),
        waiting: 0,
    };

    #[inline(always)]
    pub(super) fn insert(&mut self, at: usize, nodes: i16, seconds: i16, class: usize) {
        self.nodes.as_mut_array()[at] = nodes;
        self.seconds.as_mut_array()[at] = seconds;
        self.class.as_mut_array()[at] = class as i16;
        self.waiting |= 1 << at;
    }

    /// Takes a job out and says what its class and its time were.
    #[inline(always)]
    pub(super) fn remove(&mut self, at: usize) -> (usize, i16) {
        self.waiting &= !(1 << at);
        self.nodes.as_mut_array()[at] = NOBODY;
        let seconds = std::mem::replace(&mut self.seconds.as_mut_array()[at], NOBODY);
        (self.class.as_array()[at] as usize, seconds)
    }

    /// The waiting jobs that may fit, one bit each.
    #[inline(always)]
    pub(super) fn may_fit(&self, fit: &IndexFit) -> u16 {
        let below = |bound: i16, numbers: i16x16| i16x16::splat(bound).simd_gt(numbers);
        let short = below(fit.window, self.seconds) & below(fit.free, self.nodes);
        (short | below(fit.unreserved, self.nodes)).to_bitmask() as u16
    }

    /// The shortest time among the waiting jobs of a class.
    #[inline(always)]
    pub(super) fn shortest(&self, class: usize) -> i16 {
        let of_class = self.class.simd_eq(i16x16::splat(class as i16));
        of_class.blend(self.seconds, i16x16::splat(NOBODY)).reduce_min()
    }
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
