//! The parts of the queue's tree: blocks of neighbouring places at the bottom, nodes above them.
//!
//! Both are laid out for vector instructions on 16-bit numbers, which every machine has.
//! Sizes and times become such numbers by [`code`](super::code::code), which keeps their order.

use wide::{i16x8, i16x16};

use super::Fit;
use super::classes::{CLASSES, SizeClasses};
use super::code::{NOBODY, bound, watts};

/// Jobs in a block; one bit each in its waiting mask.
pub(super) const BLOCK: usize = 16;
/// Children of a tree node.
pub(super) const FAN_OUT: usize = 16;

/// A [`Fit`] in codes: what is below these fits.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    free: i16,
    unreserved: i16,
    window: i16,
    /// Power that is free, and of that what nobody has reserved.
    watts: [i16; 2],
}

impl Bounds {
    const NONE: Bounds = Bounds { free: 0, unreserved: 0, window: 0, watts: [0; 2] };

    /// The larger of each.
    #[inline(always)]
    fn max(self, other: &Bounds) -> Bounds {
        Bounds {
            free: self.free.max(other.free),
            unreserved: self.unreserved.max(other.unreserved),
            window: self.window.max(other.window),
            watts: [0, 1].map(|i| self.watts[i].max(other.watts[i])),
        }
    }
}

impl From<&Fit> for Bounds {
    #[inline(always)]
    fn from(fit: &Fit) -> Self {
        Bounds {
            free: bound(u64::from(fit.free)),
            unreserved: bound(u64::from(fit.free.min(fit.extra))),
            window: bound(fit.window.millis() / 1000),
            watts: [fit.power, fit.power.min(fit.extra_power)].map(watts).map(bound),
        }
    }
}

/// The room on offer, as the index compares it: a job fits if it fits any of the ways.
pub(super) struct IndexFit<W> {
    ways: W,
    /// What no way goes beyond.
    loosest: Bounds,
    /// For each class, what is below this fits somehow, if the job is as small as the class
    /// can be; [`NOBODY`] if it may be however long.
    limits: [i16; CLASSES],
    /// The classes, one bit each, in which somebody may fit.
    classes: u32,
}

impl<W: AsRef<[Bounds]>> IndexFit<W> {
    /// Compares the room with the shortest times of all classes at once.
    #[inline(always)]
    pub(super) fn new(ways: W, classes: &SizeClasses, shortest: &Shortest) -> Self {
        let loosest = ways.as_ref().iter().fold(Bounds::NONE, |loosest, way| loosest.max(way));
        let mut limits = [0; CLASSES];
        let mut possible = 0;
        for (part, (smallest, shortest)) in classes.smallest().iter().zip(&shortest.0).enumerate() {
            let below = |bound: i16| i16x8::splat(bound).simd_gt(*smallest);
            let mut limit = i16x8::ZERO;
            for way in ways.as_ref() {
                limit = limit.max(below(way.free) & i16x8::splat(way.window));
                limit = limit.max(below(way.unreserved) & i16x8::splat(NOBODY));
            }
            possible |= limit.simd_gt(*shortest).to_bitmask() << (8 * part);
            limits[8 * part..][..8].copy_from_slice(limit.as_array());
        }
        IndexFit { ways, loosest, limits, classes: possible }
    }

    /// No way has room for more power than this.
    #[inline(always)]
    pub(super) fn most_watts(&self) -> i16 {
        self.loosest.watts[0]
    }

    /// Whether anybody in the tree may fit.
    #[inline(always)]
    pub(super) fn is_possible(&self) -> bool {
        self.classes != 0
    }
}

/// The numbers of the bits that are set.
#[inline(always)]
fn bits(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(bit)
    })
}

/// For each class, the shortest time among all waiting jobs.
#[derive(Clone)]
pub(super) struct Shortest([i16x8; CLASSES / 8]);

impl Shortest {
    pub(super) const EMPTY: Shortest = Shortest([i16x8::new([NOBODY; 8]); CLASSES / 8]);

    #[inline(always)]
    pub(super) fn of(&self, class: usize) -> i16 {
        self.0[class / 8].as_array()[class % 8]
    }

    #[inline(always)]
    pub(super) fn set(&mut self, class: usize, shortest: i16) {
        self.0[class / 8] = with8(self.0[class / 8], class % 8, shortest);
    }
}

/// Numbers with one of them replaced, in registers: reading back as a whole what was just written
/// in part would stall.
#[inline(always)]
fn with8(numbers: i16x8, at: usize, number: i16) -> i16x8 {
    const PLACES: i16x8 = i16x8::new([0, 1, 2, 3, 4, 5, 6, 7]);
    PLACES.simd_eq(i16x8::splat(at as i16)).bitselect(i16x8::splat(number), numbers)
}

/// The same for sixteen numbers.
#[inline(always)]
pub(super) fn with16(numbers: i16x16, at: usize, number: i16) -> i16x16 {
    const PLACES: i16x16 = i16x16::new([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    PLACES.simd_eq(i16x16::splat(at as i16)).bitselect(i16x16::splat(number), numbers)
}

/// For each class and each child, the shortest time among the waiting jobs below that child. The
/// children of a class stand together: one comparison takes them all.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Node([i16x16; CLASSES]);

impl Node {
    pub(super) const EMPTY: Node = Node([i16x16::new([NOBODY; FAN_OUT]); CLASSES]);

    /// A parent with this node as its first child.
    pub(super) fn above(first: &Node) -> Node {
        let mut parent = Node::EMPTY;
        for class in 0..CLASSES {
            *parent.child(class, 0) = first.shortest(class);
        }
        parent
    }

    /// The children, one bit each, below which somebody may fit.
    #[inline(always)]
    pub(super) fn may_fit<W>(&self, fit: &IndexFit<W>) -> u32 {
        let fits = |class: usize| i16x16::splat(fit.limits[class]).simd_gt(self.0[class]);
        bits(fit.classes).fold(i16x16::ZERO, |children, class| children | fits(class)).to_bitmask()
    }

    /// Sets what is known of one child and returns the shortest time of the class below all of
    /// them, or `None` if it was known already.
    #[inline(always)]
    pub(super) fn renew(&mut self, class: usize, child: usize, shortest: i16) -> Option<i16> {
        let row = self.0[class];
        if row.as_array()[child] == shortest {
            return None;
        }
        let row = with16(row, child, shortest);
        self.0[class] = row;
        Some(row.reduce_min())
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

    /// Takes a job out, and says what its class and its time were and what the shortest time of
    /// the class is without it.
    #[inline(always)]
    pub(super) fn remove(&mut self, at: usize) -> (usize, i16, i16) {
        let (class, seconds) = (self.class.as_array()[at], self.seconds.as_array()[at]);
        let left = with16(self.seconds, at, NOBODY);
        self.waiting &= !(1 << at);
        self.nodes.as_mut_array()[at] = NOBODY;
        self.seconds = left;
        let of_class = self.class.simd_eq(i16x16::splat(class));
        let shortest = of_class.bitselect(left, i16x16::splat(NOBODY)).reduce_min();
        (class as usize, seconds, shortest)
    }

    /// Class and time of each waiting job.
    #[inline]
    pub(super) fn waiting_jobs(&self) -> impl Iterator<Item = (usize, i16)> + use<> {
        let (classes, seconds) = (self.class.to_array(), self.seconds.to_array());
        bits(self.waiting.into()).map(move |at| (classes[at] as usize, seconds[at]))
    }

    /// The waiting jobs that may fit, one bit each. What they draw counts where it is known.
    #[inline(always)]
    pub(super) fn may_fit<W: AsRef<[Bounds]>>(
        &self,
        fit: &IndexFit<W>,
        draws: Option<&i16x16>,
    ) -> u16 {
        let loosely = self.fits(&fit.loosest, draws);
        match fit.ways.as_ref() {
            // Most blocks have nobody, and a single way is as loose as itself.
            [_] => loosely,
            _ if loosely == 0 => 0,
            ways => ways.iter().fold(0, |fits, way| fits | self.fits(way, draws)),
        }
    }

    #[inline(always)]
    fn fits(&self, way: &Bounds, draws: Option<&i16x16>) -> u16 {
        let below = |bound: i16, numbers: i16x16| i16x16::splat(bound).simd_gt(numbers);
        let mut short = below(way.window, self.seconds) & below(way.free, self.nodes);
        let mut small = below(way.unreserved, self.nodes);
        if let Some(draws) = draws {
            short &= below(way.watts[0], *draws);
            small &= below(way.watts[1], *draws);
        }
        (short | small).to_bitmask() as u16
    }
}
