//! The waiting jobs, in submit order, indexed so that a policy never scans them.
//!
//! A job's place is its [`JobId`], so the queue needs no compaction: waiting is one bit. Over the
//! places stands a tree (blocks of sixteen jobs, then sixteen children to a node). Each tree
//! node holds, for each of 32 size classes and each child, the shortest time any waiting
//! job of that class below that child asks for. [`Queue::next_fit`] turns the room on offer into
//! one time limit per class and descends only where some class stays within its limit, so its
//! cost does not grow with the length of the queue.
//!
//! Most jobs leave the queue soon after they came. So the tree does not know the youngest few
//! blocks: those are looked through one by one, and a job that leaves before its block is old
//! never costs the tree anything.
//!
//! The index may promise too much (a class is as small as its smallest size, times are rounded
//! down to seconds, power is not part of it), never too little: a policy tests what it is given.

use smallvec::SmallVec;

use crate::model::Footprint;
use crate::units::{JobId, Span};

mod classes;
mod code;
mod index;
mod ordered;

pub use classes::SizeClasses;
use code::code;
use index::{BLOCK, Block, Bounds, FAN_OUT, IndexFit, Node, Shortest};
pub use ordered::{Ordered, Place};

/// The room a backfilling policy has to offer: a job can use it if it asks for at most `free`
/// nodes, and either ends within the `window` or asks for at most `extra` nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    /// Nodes that are free now.
    pub free: u32,
    /// Of those, nodes nobody has reserved.
    pub extra: u32,
    /// Time until the reservation.
    pub window: Span,
}

impl Fit {
    /// Room for any job of at most `free` nodes, however long.
    pub fn nodes(free: u32) -> Self {
        Fit { free, extra: free, window: Span::ZERO }
    }
}

/// How many of the latest blocks are too young for the tree.
const YOUNG: usize = 4;

/// The waiting jobs.
#[derive(Clone)]
pub struct Queue {
    classes: SizeClasses,
    blocks: Vec<Block>,
    /// The tree, the parents of the blocks first, the root last.
    levels: Vec<Vec<Node>>,
    /// What the root knows of all its children together.
    shortest: Shortest,
    /// The blocks before this one are in the tree; the others are young.
    indexed: usize,
    /// No job before this place waits.
    head: usize,
    /// No job at this place or after it has ever waited.
    tail: usize,
    len: usize,
}

impl Queue {
    /// An empty queue with room for `places` jobs; it grows when more come.
    pub fn new(classes: SizeClasses, places: usize) -> Self {
        let mut queue = Queue {
            classes,
            blocks: Vec::new(),
            levels: Vec::new(),
            shortest: Shortest::EMPTY,
            indexed: 0,
            head: 0,
            tail: 0,
            len: 0,
        };
        queue.grow(places.max(1));
        queue
    }

    fn grow(&mut self, places: usize) {
        let mut width = places.div_ceil(BLOCK);
        self.blocks.resize(width, Block::EMPTY);
        for level in 0.. {
            width = width.div_ceil(FAN_OUT);
            if level == self.levels.len() {
                // A new root: what was the root is its first child.
                let below = level.checked_sub(1).and_then(|below| self.levels[below].first());
                let root = below.map(Node::above);
                self.levels.push(root.into_iter().collect());
            }
            self.levels[level].resize(width, Node::EMPTY);
            if width == 1 {
                break;
            }
        }
    }

    /// The size classes its index tells apart.
    pub fn classes(&self) -> &SizeClasses {
        &self.classes
    }

    /// How many jobs wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no job waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether `job` waits.
    #[inline]
    pub fn contains(&self, job: JobId) -> bool {
        let block = self.blocks.get(job.index() / BLOCK);
        block.is_some_and(|block| block.waiting >> (job.index() % BLOCK) & 1 == 1)
    }

    /// The first waiting job.
    #[inline]
    pub fn head(&self) -> Option<JobId> {
        (self.len > 0).then_some(JobId(self.head as u32))
    }

    /// The first waiting job at or after a place.
    #[inline]
    pub fn at_or_after(&self, place: JobId) -> Option<JobId> {
        let place = place.index().max(self.head);
        if self.len == 0 || place >= self.tail {
            return None;
        }
        let block = place / BLOCK;
        let rest = self.blocks[block].waiting & (u16::MAX << (place % BLOCK));
        if rest != 0 {
            return Some(job_at(block, rest));
        }
        let mut later = (block + 1..self.tail.div_ceil(BLOCK)).map(|b| (b, self.blocks[b].waiting));
        later.find(|(_, waiting)| *waiting != 0).map(|(block, waiting)| job_at(block, waiting))
    }

    /// The waiting jobs in order.
    pub fn iter(&self) -> impl Iterator<Item = JobId> + '_ {
        let mut next = self.head();
        std::iter::from_fn(move || {
            let job = next?;
            next = self.at_or_after(JobId(job.0 + 1));
            Some(job)
        })
    }

    /// Puts a job in its place.
    #[inline]
    pub fn insert(&mut self, job: JobId, footprint: &Footprint) {
        let place = job.index();
        let places = self.blocks.len() * BLOCK;
        if place >= places {
            self.grow((place + 1).max(2 * places));
        }
        debug_assert!(!self.contains(job), "{job} waits already");
        let nodes = code(u64::from(footprint.nodes));
        let seconds = code(footprint.time.millis() / 1000);
        let class = self.classes.of(nodes);
        self.blocks[place / BLOCK].insert(place % BLOCK, nodes, seconds, class);
        self.head = if self.len == 0 { place } else { self.head.min(place) };
        self.tail = self.tail.max(place + 1);
        self.len += 1;
        let block = place / BLOCK;
        if block < self.indexed {
            self.index(block, class, seconds);
        }
        while self.indexed + YOUNG < block {
            self.indexed += 1;
            let block = self.indexed - 1;
            for (class, seconds) in self.blocks[block].waiting_jobs() {
                self.index(block, class, seconds);
            }
        }
    }

    /// Tells the tree of a waiting job in a block.
    #[inline]
    fn index(&mut self, block: usize, class: usize, seconds: i16) {
        let mut child = block;
        for level in &mut self.levels {
            let shortest = level[child / FAN_OUT].child(class, child % FAN_OUT);
            if *shortest <= seconds {
                return;
            }
            *shortest = seconds;
            child /= FAN_OUT;
        }
        self.shortest.set(class, seconds.min(self.shortest.of(class)));
    }

    /// Takes a job out; says whether it was there.
    #[inline]
    pub fn remove(&mut self, job: JobId) -> bool {
        if !self.contains(job) {
            return false;
        }
        let place = job.index();
        let (class, seconds, left) = self.blocks[place / BLOCK].remove(place % BLOCK);
        self.len -= 1;
        if place == self.head && self.len > 0 {
            // Some job waits, and none before this place: the search ends at it.
            self.head = self.at_or_after(JobId(place as u32 + 1)).map_or(place, JobId::index);
        }

        if place / BLOCK >= self.indexed || left <= seconds {
            return true;
        }
        let (mut child, mut shortest) = (place / BLOCK, left);
        for level in &mut self.levels {
            match level[child / FAN_OUT].renew(class, child % FAN_OUT, shortest) {
                Some(renewed) => shortest = renewed,
                None => return true,
            }
            child /= FAN_OUT;
        }
        self.shortest.set(class, shortest);
        true
    }

    /// The first waiting job at or after a place that may fit the room; whether it does is for
    /// the caller to test.
    #[inline]
    pub fn next_fit(&self, from: JobId, fit: &Fit) -> Option<JobId> {
        if fit.free == 0 {
            return None;
        }
        self.first_fit(from, [Bounds::from(fit)])
    }

    /// The same for a room that can be used in several ways: a job that fits any of them.
    #[inline]
    pub fn next_fit_of(&self, from: JobId, ways: &[Fit]) -> Option<JobId> {
        let bounds = ways.iter().filter(|fit| fit.free > 0).map(Bounds::from);
        let bounds: SmallVec<[Bounds; 8]> = bounds.collect();
        if bounds.is_empty() {
            return None;
        }
        self.first_fit(from, bounds)
    }

    #[inline(always)]
    fn first_fit<W: AsRef<[Bounds]>>(&self, from: JobId, ways: W) -> Option<JobId> {
        let place = from.index().max(self.head);
        if place >= self.tail {
            return None;
        }
        let fit = IndexFit::new(ways, &self.classes, &self.shortest);
        let block = place / BLOCK;
        let fits = self.blocks[block].may_fit(&fit) & (u16::MAX << (place % BLOCK));
        if fits != 0 {
            return Some(job_at(block, fits));
        }
        self.next_block(block, &fit).map(|(block, fits)| job_at(block, fits))
    }

    /// All waiting jobs at or after a place that may fit the room, in order.
    #[inline]
    pub fn all_that_fit(&self, from: JobId, fit: &Fit) -> Fitting<'_> {
        let place = from.index().max(self.head);
        if fit.free == 0 || place >= self.tail {
            return Fitting { queue: self, fit: None, block: 0, left: 0 };
        }
        let fit = IndexFit::new([Bounds::from(fit)], &self.classes, &self.shortest);
        let block = place / BLOCK;
        let left = self.blocks[block].may_fit(&fit) & (u16::MAX << (place % BLOCK));
        Fitting { queue: self, fit: Some(fit), block, left }
    }

    /// The next block in which somebody may fit, and who.
    #[inline(always)]
    fn next_block<W: AsRef<[Bounds]>>(
        &self,
        block: usize,
        fit: &IndexFit<W>,
    ) -> Option<(usize, u16)> {
        // Most of the time nobody fits, which the root says at once.
        if block < self.indexed && fit.is_possible() {
            let old = self.next_old_block(block, fit);
            if old.is_some() {
                return old;
            }
        }
        let young = (block + 1).max(self.indexed)..self.tail.div_ceil(BLOCK);
        young.map(|block| (block, self.blocks[block].may_fit(fit))).find(|(_, fits)| *fits != 0)
    }

    /// The next block in the tree in which somebody may fit, and who.
    #[inline(always)]
    fn next_old_block<W: AsRef<[Bounds]>>(
        &self,
        block: usize,
        fit: &IndexFit<W>,
    ) -> Option<(usize, u16)> {
        let mut level = 0;
        let mut child = block;
        loop {
            // Up, until there is something to the right.
            let node = child / FAN_OUT;
            let to_the_right = !1u32 << (child % FAN_OUT);
            let fits = self.levels.get(level)?[node].may_fit(fit) & to_the_right;
            if fits == 0 {
                child = node;
                level += 1;
                continue;
            }
            // Down: what holds for a node holds for one of its children.
            child = node * FAN_OUT + fits.trailing_zeros() as usize;
            while level > 0 {
                level -= 1;
                let fits = self.levels[level][child].may_fit(fit);
                child = child * FAN_OUT + fits.trailing_zeros() as usize;
            }
            let fits = self.blocks[child].may_fit(fit);
            if fits != 0 {
                return Some((child, fits));
            }
        }
    }
}

/// The waiting jobs that may fit some room, from [`Queue::all_that_fit`].
pub struct Fitting<'a> {
    queue: &'a Queue,
    /// `None` if there is nobody or no room.
    fit: Option<IndexFit<[Bounds; 1]>>,
    block: usize,
    /// Those of the present block that were not handed out yet.
    left: u16,
}

impl Iterator for Fitting<'_> {
    type Item = JobId;

    #[inline]
    fn next(&mut self) -> Option<JobId> {
        if self.left == 0 {
            let next = self.queue.next_block(self.block, self.fit.as_ref()?)?;
            (self.block, self.left) = next;
        }
        let job = job_at(self.block, self.left);
        self.left &= self.left - 1;
        Some(job)
    }
}

/// The first job in a mask of a block.
#[inline(always)]
fn job_at(block: usize, mask: u16) -> JobId {
    JobId((block * BLOCK) as u32 + mask.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn footprint(nodes: u32, seconds: u32) -> Footprint {
        Footprint { nodes, time: Span::from_secs(seconds) }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert { gap: u32, nodes: u32, seconds: u32 },
        Remove { nth: usize },
        Restore,
        Ask { nth: usize, fits: Vec<Fit> },
    }

    fn fit() -> impl Strategy<Value = Fit> {
        (0u32..80, 0u32..80, 0u32..120).prop_map(|(free, extra, window)| Fit {
            free,
            extra,
            window: Span::from_secs(window),
        })
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u32..40, 1u32..70, 0u32..100)
                .prop_map(|(gap, nodes, seconds)| Step::Insert { gap, nodes, seconds }),
            2 => (0usize..1000).prop_map(|nth| Step::Remove { nth }),
            1 => Just(Step::Restore),
            4 => (0usize..1000, prop::collection::vec(fit(), 1..4))
                .prop_map(|(nth, fits)| Step::Ask { nth, fits }),
        ]
    }

    proptest! {
        /// The index finds exactly the job that a scan of the queue finds.
        #[test]
        fn the_index_agrees_with_a_scan(
            steps in prop::collection::vec(step(), 1..400),
            learned in any::<bool>(),
        ) {
            let classes = if learned {
                SizeClasses::of_sizes((1..70).flat_map(|s| std::iter::repeat_n(s, 70 / s as usize)))
            } else {
                SizeClasses::powers_of_two()
            };
            let mut queue = Queue::new(classes, 1);
            let mut plain: Vec<(JobId, u32, u32)> = Vec::new();
            let mut gone = Vec::new();
            let mut place = 0;
            for step in steps {
                match step {
                    Step::Insert { gap, nodes, seconds } => {
                        place += gap + 1;
                        queue.insert(JobId(place), &footprint(nodes, seconds));
                        plain.push((JobId(place), nodes, seconds));
                    }
                    Step::Remove { nth } => {
                        if !plain.is_empty() {
                            let job = plain.remove(nth % plain.len());
                            prop_assert!(queue.remove(job.0));
                            prop_assert!(!queue.remove(job.0));
                            gone.push(job);
                        }
                    }
                    Step::Restore => {
                        if let Some((job, nodes, seconds)) = gone.pop() {
                            queue.insert(job, &footprint(nodes, seconds));
                            let at = plain.partition_point(|other| other.0 < job);
                            plain.insert(at, (job, nodes, seconds));
                        }
                    }
                    Step::Ask { nth, fits } => {
                        let from = JobId(nth as u32 % (place + 2));
                        let expected = plain.iter().find(|(job, nodes, seconds)| {
                            let short = |fit: &Fit| Span::from_secs(*seconds) <= fit.window;
                            let fits_in = |fit: &Fit| {
                                *nodes <= fit.free && (short(fit) || *nodes <= fit.extra)
                            };
                            *job >= from && fits.iter().any(fits_in)
                        });
                        let expected = expected.map(|job| job.0);
                        prop_assert_eq!(queue.next_fit_of(from, &fits), expected);
                        if let [fit] = &fits[..] {
                            prop_assert_eq!(queue.next_fit(from, fit), expected);
                        }
                        let next = plain.iter().map(|job| job.0).find(|job| *job >= from);
                        prop_assert_eq!(queue.at_or_after(from), next);
                    }
                }
                prop_assert_eq!(queue.len(), plain.len());
                prop_assert_eq!(queue.head(), plain.first().map(|job| job.0));
            }
            let all: Vec<JobId> = plain.iter().map(|job| job.0).collect();
            prop_assert_eq!(queue.iter().collect::<Vec<_>>(), all);
        }
    }
}
