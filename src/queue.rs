//! The waiting jobs, in submit order, indexed so that a policy never scans them.
//!
//! A job's place is its [`JobId`], so the queue needs no compaction: waiting is one bit. Over the
//! places stands a tree (blocks of [`LEAF`] jobs, then [`FAN_OUT`] children to a node). Each tree
//! node holds, for each of [`CLASSES`] size classes, the shortest time any waiting job of that
//! class asks for. [`Queue::next_fit`] turns the room on offer into one time limit per class and
//! descends only where some class stays within its limit, so its cost does not grow with the
//! length of the queue.
//!
//! The index may promise too much (a class is as small as its smallest size, times are rounded
//! down to seconds, power is not part of it), never too little: a policy tests what it is given.

use crate::model::Footprint;
use crate::units::{JobId, Span};

mod classes;

use classes::CLASSES;
pub use classes::SizeClasses;

/// Jobs in a block at the bottom of the tree; one bit each in a block's waiting mask.
const LEAF: usize = 16;
/// Children of a tree node.
const FAN_OUT: usize = 8;
/// The key of a class without a waiting job: above every limit.
const NONE_WAITING: i32 = i32::MAX;
/// The longest time the index tells apart, 68 years; longer ones look like it.
const LONGEST: i32 = i32::MAX - 1;

/// For each class, the shortest time among the waiting jobs below a tree node: one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Shortest([i32; CLASSES]);

impl Shortest {
    const EMPTY: Shortest = Shortest([NONE_WAITING; CLASSES]);

    /// Whether some class stays within its limit. Written without an early exit: the compiler
    /// makes a handful of vector instructions of it.
    #[inline]
    fn within(&self, limits: &[i32; CLASSES]) -> bool {
        let mut any = false;
        for class in 0..CLASSES {
            any |= self.0[class] <= limits[class];
        }
        any
    }
}

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

/// The waiting jobs.
#[derive(Clone)]
pub struct Queue {
    classes: SizeClasses,
    /// Fewest nodes, by place.
    nodes: Vec<u32>,
    /// Shortest time in whole seconds, by place.
    seconds: Vec<i32>,
    /// Size class, by place.
    class: Vec<u8>,
    /// Which jobs of each block wait.
    waiting: Vec<u16>,
    /// The tree, blocks first; the last level has at most [`FAN_OUT`] nodes.
    levels: Vec<Vec<Shortest>>,
    /// No job before this place waits.
    head: usize,
    len: usize,
}

impl Queue {
    /// An empty queue with room for `places` jobs; it grows when more come.
    pub fn new(classes: SizeClasses, places: usize) -> Self {
        let mut queue = Queue {
            classes,
            nodes: Vec::new(),
            seconds: Vec::new(),
            class: Vec::new(),
            waiting: Vec::new(),
            levels: vec![Vec::new()],
            head: 0,
            len: 0,
        };
        queue.grow(places.max(1));
        queue
    }

    fn grow(&mut self, places: usize) {
        let mut width = places.div_ceil(LEAF);
        self.nodes.resize(width * LEAF, 0);
        self.seconds.resize(width * LEAF, 0);
        self.class.resize(width * LEAF, 0);
        self.waiting.resize(width, 0);
        self.levels[0].resize(width, Shortest::EMPTY);
        let mut level = 0;
        while width > FAN_OUT {
            width = width.div_ceil(FAN_OUT);
            level += 1;
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
            let known = self.levels[level].len().saturating_sub(1);
            self.levels[level].resize(width, Shortest::EMPTY);
            // The last node may have gained children; a new level starts with all of them.
            for node in known..width {
                for class in 0..CLASSES {
                    self.levels[level][node].0[class] = self.shortest_child(level, node, class);
                }
            }
        }
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
        self.waiting
            .get(job.index() / LEAF)
            .is_some_and(|mask| mask >> (job.index() % LEAF) & 1 == 1)
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
        let block = place / LEAF;
        let rest = *self.waiting.get(block)? & (u16::MAX << (place % LEAF));
        let (block, mask) = if rest != 0 {
            (block, rest)
        } else {
            let mut later = self.waiting[block + 1..].iter().zip(block + 1..);
            later.find(|(mask, _)| **mask != 0).map(|(mask, block)| (block, *mask))?
        };
        Some(JobId((block * LEAF) as u32 + mask.trailing_zeros()))
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
        if place >= self.nodes.len() {
            self.grow((place + 1).max(2 * self.nodes.len()));
        }
        debug_assert!(!self.contains(job), "{job} waits already");
        let seconds = (footprint.time.millis() / 1000).min(LONGEST as u64) as i32;
        let class = self.classes.of(footprint.nodes);
        self.nodes[place] = footprint.nodes;
        self.seconds[place] = seconds;
        self.class[place] = class as u8;
        self.waiting[place / LEAF] |= 1 << (place % LEAF);
        self.head = if self.len == 0 { place } else { self.head.min(place) };
        self.len += 1;
        let mut node = place / LEAF;
        for level in &mut self.levels {
            let shortest = &mut level[node].0[class];
            if *shortest <= seconds {
                break;
            }
            *shortest = seconds;
            node /= FAN_OUT;
        }
    }

    /// Takes a job out; says whether it was there.
    #[inline]
    pub fn remove(&mut self, job: JobId) -> bool {
        if !self.contains(job) {
            return false;
        }
        let place = job.index();
        let mut node = place / LEAF;
        self.waiting[node] &= !(1 << (place % LEAF));
        self.len -= 1;
        if place == self.head && self.len > 0 {
            // Some job waits, and none before this place: the search ends at it.
            self.head = self.at_or_after(JobId(place as u32 + 1)).map_or(place, JobId::index);
        }

        let class = usize::from(self.class[place]);
        if self.seconds[place] > self.levels[0][node].0[class] {
            return true;
        }
        let mut shortest = self.shortest_in_block(node, class);
        for level in 0..self.levels.len() {
            let known = &mut self.levels[level][node].0[class];
            if *known == shortest {
                break;
            }
            *known = shortest;
            node /= FAN_OUT;
            if level + 1 < self.levels.len() {
                shortest = self.shortest_child(level + 1, node, class);
            }
        }
        true
    }

    /// The first waiting job at or after a place that may fit the room; whether it does is for
    /// the caller to test.
    #[inline]
    pub fn next_fit(&self, from: JobId, fit: &Fit) -> Option<JobId> {
        if self.len == 0 || fit.free == 0 {
            return None;
        }
        let place = from.index().max(self.head);
        let block = place / LEAF;
        if block >= self.waiting.len() {
            return None;
        }
        let window = (fit.window.millis() / 1000).min(LONGEST as u64) as i32;
        if let Some(job) = self.fit_in_block(block, u16::MAX << (place % LEAF), fit, window) {
            return Some(job);
        }
        self.next_fit_after_block(block, fit, window)
    }

    fn next_fit_after_block(&self, block: usize, fit: &Fit, window: i32) -> Option<JobId> {
        let limits = self.classes.limits(fit, window, LONGEST);
        let mut level = 0;
        let mut node = block;
        loop {
            node += 1;
            while node % FAN_OUT == 0 && level + 1 < self.levels.len() {
                node /= FAN_OUT;
                level += 1;
            }
            if node >= self.levels[level].len() {
                return None;
            }
            if !self.levels[level][node].within(&limits) {
                continue;
            }
            while level > 0 {
                level -= 1;
                node *= FAN_OUT;
                // What holds for the parent holds for one of its children.
                while !self.levels[level][node].within(&limits) {
                    node += 1;
                }
            }
            if let Some(job) = self.fit_in_block(node, u16::MAX, fit, window) {
                return Some(job);
            }
        }
    }

    /// The first job of a block, among those in `mask`, that fits.
    #[inline]
    fn fit_in_block(&self, block: usize, mask: u16, fit: &Fit, window: i32) -> Option<JobId> {
        let mask = mask & self.waiting[block];
        if mask == 0 {
            return None;
        }
        let range = block * LEAF..(block + 1) * LEAF;
        let nodes = &self.nodes[range.clone()];
        let seconds = &self.seconds[range];
        let unreserved = fit.free.min(fit.extra);
        let mut fits = 0u16;
        for i in 0..LEAF {
            let short = (seconds[i] <= window) & (nodes[i] <= fit.free);
            fits |= u16::from(short | (nodes[i] <= unreserved)) << i;
        }
        fits &= mask;
        (fits != 0).then(|| JobId((block * LEAF) as u32 + fits.trailing_zeros()))
    }

    fn shortest_in_block(&self, block: usize, class: usize) -> i32 {
        let range = block * LEAF..(block + 1) * LEAF;
        let mask = self.waiting[block];
        self.class[range.clone()]
            .iter()
            .zip(&self.seconds[range])
            .enumerate()
            .filter(|(i, (of, _))| usize::from(**of) == class && mask >> i & 1 == 1)
            .map(|(_, (_, seconds))| *seconds)
            .min()
            .unwrap_or(NONE_WAITING)
    }

    fn shortest_child(&self, level: usize, node: usize, class: usize) -> i32 {
        let children = &self.levels[level - 1];
        let first = node * FAN_OUT;
        let last = (first + FAN_OUT).min(children.len());
        children[first..last].iter().map(|child| child.0[class]).min().unwrap_or(NONE_WAITING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Watts;
    use proptest::prelude::*;

    fn footprint(nodes: u32, seconds: u32) -> Footprint {
        Footprint { nodes, time: Span::from_secs(seconds), power: Watts::ZERO }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert { gap: u32, nodes: u32, seconds: u32 },
        Remove { nth: usize },
        Restore,
        Ask { nth: usize, fit: Fit },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u32..40, 1u32..70, 0u32..100)
                .prop_map(|(gap, nodes, seconds)| Step::Insert { gap, nodes, seconds }),
            2 => (0usize..1000).prop_map(|nth| Step::Remove { nth }),
            1 => Just(Step::Restore),
            4 => (0usize..1000, 0u32..80, 0u32..80, 0u32..120).prop_map(|(nth, free, extra, w)| {
                Step::Ask { nth, fit: Fit { free, extra, window: Span::from_secs(w) } }
            }),
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
                    Step::Ask { nth, fit } => {
                        let from = JobId(nth as u32 % (place + 2));
                        let expected = plain.iter().find(|(job, nodes, seconds)| {
                            *job >= from
                                && *nodes <= fit.free
                                && (Span::from_secs(*seconds) <= fit.window || *nodes <= fit.extra)
                        });
                        prop_assert_eq!(queue.next_fit(from, &fit), expected.map(|job| job.0));
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
