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
//! Where jobs draw unlike amounts of power for a node, a second tree of the same form holds the least that any of them
//! draws below each child (`Queue::that_knows_power`).
//!
//! The index may promise too much (a class is as small as its smallest size, times are rounded
//! down to seconds and power to watts), never too little: a policy tests what it is given.

use smallvec::SmallVec;

use crate::model::Footprint;
use crate::units::{JobId, Span, Watts};

mod classes;
mod code;
mod draws;
mod index;
mod lanes;
mod ordered;
mod widths;

pub use classes::SizeClasses;
use code::{code, watts};
use draws::Draws;
use index::{BLOCK, Block, Bounds, FAN_OUT, IndexFit, Node, Shortest};
pub use lanes::Lanes;
pub use ordered::{Ordered, Place};
pub(crate) use widths::Widths;

/// The room a backfilling policy has to offer: a job can use it if it asks for at most `free`
/// nodes and `power`, and either ends within the `window` or asks for at most `extra` nodes and `extra_power`.
///
/// Power is that of a job's [`Footprint`], and counts where the index knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    /// Nodes that are free now.
    pub free: u32,
    /// Of those, nodes without a reservation.
    pub extra: u32,
    /// Time until the reservation.
    pub window: Span,
    /// Power that is free now.
    pub power: Watts,
    /// Of that, power without a reservation.
    pub extra_power: Watts,
}

impl Fit {
    /// Room for any job of at most `free` nodes, however long.
    pub fn nodes(free: u32) -> Self {
        let (power, extra_power) = (Watts::UNLIMITED, Watts::UNLIMITED);
        Fit { free, extra: free, window: Span::ZERO, power, extra_power }
    }

    /// Whether another lets in whoever this one does.
    #[inline]
    pub fn is_within(&self, other: &Fit) -> bool {
        self.free <= other.free
            && self.extra <= other.extra
            && self.window <= other.window
            && self.power <= other.power
            && self.extra_power <= other.extra_power
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
    /// What jobs draw, where that has to be known.
    draws: Option<Draws>,
    /// The same jobs by how much they ask of a node, where they share nodes.
    widths: Option<Box<Widths>>,
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
            draws: None,
            widths: None,
            indexed: 0,
            head: 0,
            tail: 0,
            len: 0,
        };
        queue.grow(places.max(1));
        queue
    }

    /// An empty queue like this one, with room for `places` jobs.
    pub fn like(&self, places: usize) -> Self {
        let queue = Queue::new(self.classes.clone(), places);
        if self.draws.is_some() { queue.that_knows_power() } else { queue }
    }

    /// The same queue, which is empty, with an index that knows what each job draws.
    pub(crate) fn that_knows_power(mut self) -> Self {
        let mut draws = Draws::default();
        draws.grow(self.blocks.len());
        self.draws = Some(draws);
        self
    }

    /// The same queue, which is empty, that also tells jobs apart by how much they ask of a node. Of each job: its width and its nodes.
    pub(crate) fn by_width(self, of_jobs: &[Option<(u32, u32)>]) -> Self {
        let widths = Widths::new(of_jobs, self.draws.is_some());
        Queue { widths: Some(Box::new(widths)), ..self }
    }

    /// The waiting jobs by how much they ask of a node, where that is known.
    #[inline]
    pub(crate) fn widths(&self) -> Option<&Widths> {
        self.widths.as_deref()
    }

    fn grow(&mut self, places: usize) {
        let mut width = places.div_ceil(BLOCK);
        if let Some(draws) = &mut self.draws {
            draws.grow(width);
        }
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
        if let Some(draws) = &mut self.draws {
            draws.set(place, Some(code(watts(footprint.power))));
        }
        if let Some(widths) = &mut self.widths {
            widths.insert(job, footprint);
        }
        let block = place / BLOCK;
        if block < self.indexed {
            self.index(block, class, seconds);
            self.sum_up_draws(block);
        }
        while self.indexed + YOUNG < block {
            self.indexed += 1;
            let block = self.indexed - 1;
            for (class, seconds) in self.blocks[block].waiting_jobs() {
                self.index(block, class, seconds);
            }
            self.sum_up_draws(block);
        }
    }

    #[inline]
    fn sum_up_draws(&mut self, block: usize) {
        if let Some(draws) = &mut self.draws {
            draws.sum_up(block);
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
        if let Some(widths) = &mut self.widths {
            widths.remove(job);
        }
        if let Some(draws) = &mut self.draws {
            draws.set(place, None);
            if place / BLOCK < self.indexed {
                draws.sum_up(place / BLOCK);
            }
        }
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
        // Two copies of the search: whoever does not know power does not ask for it at every step, either.
        match &self.draws {
            None => self.search(None).first(from, ways),
            known => self.search(known.as_ref()).first(from, ways),
        }
    }

    #[inline(always)]
    fn search<'a>(&'a self, draws: Option<&'a Draws>) -> Search<'a> {
        Search { queue: self, draws }
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
        let fits = self.search(self.draws.as_ref()).in_block(block, &fit);
        let left = fits & (u16::MAX << (place % BLOCK));
        Fitting { queue: self, fit: Some(fit), block, left }
    }
}

/// A search for somebody who fits, with what is known of the power that jobs draw.
#[derive(Clone, Copy)]
struct Search<'a> {
    queue: &'a Queue,
    draws: Option<&'a Draws>,
}

impl Search<'_> {
    /// The first waiting job at or after a place that may fit.
    #[inline(always)]
    fn first<W: AsRef<[Bounds]>>(self, from: JobId, ways: W) -> Option<JobId> {
        let queue = self.queue;
        let place = from.index().max(queue.head);
        if place >= queue.tail {
            return None;
        }
        let fit = IndexFit::new(ways, &queue.classes, &queue.shortest);
        let block = place / BLOCK;
        let fits = self.in_block(block, &fit) & (u16::MAX << (place % BLOCK));
        if fits != 0 {
            return Some(job_at(block, fits));
        }
        self.next_block(block, &fit).map(|(block, fits)| job_at(block, fits))
    }

    /// The jobs of a block that may fit, one bit each.
    #[inline(always)]
    fn in_block<W: AsRef<[Bounds]>>(self, block: usize, fit: &IndexFit<W>) -> u16 {
        self.queue.blocks[block].may_fit(fit, self.draws.map(|draws| draws.block(block)))
    }

    /// The children of a node below which somebody may fit, one bit each.
    #[inline(always)]
    fn below<W>(self, level: usize, node: usize, fit: &IndexFit<W>) -> u32
    where
        W: AsRef<[Bounds]>,
    {
        let fits = self.queue.levels[level][node].may_fit(fit);
        match self.draws {
            Some(draws) if fits != 0 => fits & draws.below(level, node, fit.most_watts()),
            _ => fits,
        }
    }

    /// The next block in which somebody may fit, and who.
    #[inline(always)]
    fn next_block<W: AsRef<[Bounds]>>(
        self,
        block: usize,
        fit: &IndexFit<W>,
    ) -> Option<(usize, u16)> {
        // Most of the time nobody fits, which the root says at once.
        if block < self.queue.indexed && fit.is_possible() {
            let old = self.next_old_block(block, fit);
            if old.is_some() {
                return old;
            }
        }
        for young in (block + 1).max(self.queue.indexed)..self.queue.tail.div_ceil(BLOCK) {
            let fits = self.in_block(young, fit);
            if fits != 0 {
                return Some((young, fits));
            }
        }
        None
    }

    /// The next block in the tree in which somebody may fit, and who.
    #[inline(always)]
    fn next_old_block<W: AsRef<[Bounds]>>(
        self,
        block: usize,
        fit: &IndexFit<W>,
    ) -> Option<(usize, u16)> {
        let (mut level, mut node) = (0, block / FAN_OUT);
        // The children that were not passed yet.
        let mut ahead = !1u32 << (block % FAN_OUT);
        loop {
            let fits = self.below(level, node, fit) & ahead;
            if fits == 0 {
                // Up, until there is something to the right.
                ahead = !1u32 << (node % FAN_OUT);
                (level, node) = (level + 1, node / FAN_OUT);
                if level == self.queue.levels.len() {
                    return None;
                }
                continue;
            }
            let child = node * FAN_OUT + fits.trailing_zeros() as usize;
            if level > 0 {
                (level, node, ahead) = (level - 1, child, u32::MAX);
                continue;
            }
            let fits = self.in_block(child, fit);
            if fits != 0 {
                return Some((child, fits));
            }
            ahead = !1u32 << (child % FAN_OUT);
        }
    }
}

/// The waiting jobs that may fit some room, from [`Queue::all_that_fit`].
pub struct Fitting<'a> {
    queue: &'a Queue,
    /// `None` if no job fits, or there is no room.
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
            let search = self.queue.search(self.queue.draws.as_ref());
            (self.block, self.left) = search.next_block(self.block, self.fit.as_ref()?)?;
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

    /// A job that draws this many watts for each of its nodes.
    type Asks = (u32, u32, u32);

    fn footprint((nodes, seconds, watts): Asks) -> Footprint {
        let power = Watts::from_watts(nodes * watts);
        Footprint { nodes, time: Span::from_secs(seconds), power }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert { gap: u32, asks: Asks },
        Remove { nth: usize },
        Restore,
        Ask { nth: usize, fits: Vec<Fit> },
    }

    fn fit() -> impl Strategy<Value = Fit> {
        let power = || (0u32..400).prop_map(Watts::from_watts);
        let nodes_and_time = (0u32..80, 0u32..80, 0u32..120);
        (nodes_and_time, power(), power()).prop_map(
            |((free, extra, window), power, extra_power)| Fit {
                free,
                extra,
                window: Span::from_secs(window),
                power,
                extra_power,
            },
        )
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u32..40, (1u32..70, 0u32..100, 0u32..9))
                .prop_map(|(gap, asks)| Step::Insert { gap, asks }),
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
            knows_power in any::<bool>(),
        ) {
            let classes = if learned {
                SizeClasses::of_sizes((1..70).flat_map(|s| std::iter::repeat_n(s, 70 / s as usize)))
            } else {
                SizeClasses::powers_of_two()
            };
            let mut queue = Queue::new(classes, 1);
            if knows_power {
                queue = queue.that_knows_power();
            }
            let mut plain: Vec<(JobId, Asks)> = Vec::new();
            let mut gone = Vec::new();
            let mut place = 0;
            for step in steps {
                match step {
                    Step::Insert { gap, asks } => {
                        place += gap + 1;
                        queue.insert(JobId(place), &footprint(asks));
                        plain.push((JobId(place), asks));
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
                        if let Some((job, asks)) = gone.pop() {
                            queue.insert(job, &footprint(asks));
                            let at = plain.partition_point(|other| other.0 < job);
                            plain.insert(at, (job, asks));
                        }
                    }
                    Step::Ask { nth, fits } => {
                        let from = JobId(nth as u32 % (place + 2));
                        let expected = plain.iter().find(|(job, asks)| {
                            let Footprint { nodes, time, power } = footprint(*asks);
                            let is_fed = |most: Watts| !knows_power || power <= most;
                            let small =
                                |fit: &Fit| nodes <= fit.extra && is_fed(fit.extra_power);
                            let fits_in = |fit: &Fit| {
                                let fits_now = nodes <= fit.free && is_fed(fit.power);
                                fits_now && (time <= fit.window || small(fit))
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
