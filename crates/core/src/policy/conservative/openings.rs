//! Where something came free, and for whom it may be enough.
//!
//! An opening is a stretch of time around something that came free. To look at each waiting job for
//! each of them would cost more than to move those that can be moved. So jobs are divided into
//! classes by size, and an opening is kept for a class only if it is as long as the shortest of its
//! jobs that are reserved for later. What is kept may be too much, never too little.

use crate::availability::Claim;
use crate::units::{Instant, Span};

/// Sizes are told apart by their three highest bits.
const CLASSES: usize = 128;

/// Distances in time are told apart by their three highest bits.
const DISTANCES: usize = 4 * 64;

/// How often jobs are considered before it is found out anew who of them is the shortest.
const RENEWAL: u32 = 32;

/// A stretch of time in which some nodes can be had, around some time at which they came free.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    /// The earliest start in it.
    pub(super) from: Instant,
    /// Who would start at this time or later does not use what came free.
    pub(super) until: Instant,
    /// How long it is from the earliest start on; or longer than any job needs.
    pub(super) time: Span,
    /// The step at which it begins, unless that is past.
    pub(super) step: u32,
    /// Whoever claims at least this much does not fit before that time.
    pub(super) refused: Option<(Claim, Instant)>,
}

/// What the smallest job of a class needs at least, and the longest at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    pub(super) nodes: i64,
    pub(super) power: i64,
    pub(super) longest: Span,
}

/// A job that looks for openings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    class: usize,
    claim: Claim,
    /// How many were looked at.
    seen: usize,
}

/// The shortest time that jobs of each class claim, by how far off they are reserved at least.
#[derive(Clone, Debug)]
struct Shortest {
    /// Distances are from here.
    origin: Instant,
    /// For each class and each distance, over all that are not nearer.
    times: Vec<[Span; DISTANCES]>,
    /// The classes, one bit each, of which there is any that is not nearer.
    there: [u128; DISTANCES],
}

impl Shortest {
    fn new(origin: Instant) -> Self {
        let times = vec![[Span::FOREVER; DISTANCES]; CLASSES];
        Shortest { origin, times, there: [0; DISTANCES] }
    }

    fn clear(&mut self, origin: Instant) {
        self.origin = origin;
        for class in bits(self.there[0]) {
            self.times[class].fill(Span::FOREVER);
        }
        self.there.fill(0);
    }

    fn distance(&self, at: Instant) -> usize {
        let millis = at.since(self.origin).millis().max(4);
        let highest = millis.ilog2();
        4 * (highest as usize - 2) + (millis >> (highest - 2) & 3) as usize
    }

    fn note(&mut self, class: usize, time: Span, at: Instant) {
        for distance in (0..=self.distance(at)).rev() {
            let shortest = &mut self.times[class][distance];
            if *shortest <= time {
                break;
            }
            *shortest = time;
            self.there[distance] |= 1 << class;
        }
    }

    /// Of the jobs that are reserved for that time or later.
    fn after(&self, class: usize, at: Instant) -> Span {
        self.times[class][self.distance(at)]
    }
}

/// The openings that waiting jobs have not been considered for.
#[derive(Clone, Debug)]
pub(super) struct Openings {
    /// For each class: those for all jobs, from before they are considered.
    known: Vec<Vec<Opening>>,
    /// Those that came while jobs were considered: for the jobs after, and then for those before.
    new: Vec<Vec<Opening>>,
    is_considering: bool,
    /// For each class, no opening is longer.
    most: Vec<Span>,
    /// The classes, one bit each, that have any.
    open: u128,
    /// With jobs that do not wait any more, or for less time.
    shortest: Shortest,
    /// How often jobs were considered since it was made.
    age: u32,
    /// The longest time that any job claimed.
    longest: Span,
    /// The least power for each node that any job claimed, in milliwatts.
    node_power: u64,
}

/// The numbers of the bits that are set, the highest first.
#[inline]
fn bits(mut mask: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = mask.checked_ilog2()? as usize;
        mask &= !(1 << bit);
        Some(bit)
    })
}

/// The class of a size: 1, 2 and 3 have one each, from then on each power of two has four.
#[inline]
pub(super) fn class(nodes: u32) -> usize {
    let nodes = nodes.max(1);
    match nodes.ilog2() as usize {
        0 | 1 => nodes as usize - 1,
        highest => 4 * (highest - 2) + (nodes >> (highest - 2) & 3) as usize + 3,
    }
}

/// The smallest size of a class.
fn smallest(class: usize) -> u64 {
    match class.checked_sub(3) {
        None => class as u64 + 1,
        Some(class) => (4 + class as u64 % 4) << (class / 4),
    }
}

impl Openings {
    pub(super) fn new(now: Instant) -> Self {
        Openings {
            known: vec![Vec::new(); CLASSES],
            new: vec![Vec::new(); CLASSES],
            is_considering: false,
            most: vec![Span::ZERO; CLASSES],
            open: 0,
            shortest: Shortest::new(now),
            age: 0,
            longest: Span::ZERO,
            node_power: u64::MAX,
        }
    }

    /// A job with such a claim waits, and is reserved for that time.
    pub(super) fn welcome(&mut self, claim: &Claim, at: Instant) {
        self.longest = self.longest.max(claim.time);
        let per_node = claim.power.milliwatts() / u64::from(claim.nodes.max(1));
        self.node_power = self.node_power.min(per_node);
        self.shortest.note(class(claim.nodes), claim.time, at);
    }

    /// Whether such a job may find an opening.
    #[inline]
    pub(super) fn has_any(&self, class: usize, time: Span) -> bool {
        time <= self.most[class]
    }

    /// The largest class whose smallest job could have this.
    #[inline]
    pub(super) fn highest(&self, nodes: i64, power: i64) -> Option<usize> {
        let (nodes, power) = (u64::try_from(nodes).ok()?, u64::try_from(power).ok()?);
        let fed = power.checked_div(self.node_power).unwrap_or(u64::MAX).min(nodes);
        (fed > 0).then(|| class(u32::try_from(fed).unwrap_or(u32::MAX)))
    }

    /// The classes up to one of which any job is reserved for after an instant, the largest first.
    pub(super) fn classes(
        &self,
        highest: usize,
        at: Instant,
    ) -> impl Iterator<Item = usize> + use<> {
        let there = self.shortest.there[self.shortest.distance(at)];
        bits(there & (u128::MAX >> (CLASSES - 1 - highest)))
    }

    /// What a class needs.
    pub(super) fn level(&self, class: usize) -> Level {
        let nodes = smallest(class);
        let power = i64::try_from(self.node_power.saturating_mul(nodes)).unwrap_or(i64::MAX);
        Level { nodes: nodes as i64, power, longest: self.longest }
    }

    /// Adds an opening, if it is long enough for anybody in the class; says whether it is one more
    /// that begins with its step.
    pub(super) fn add(&mut self, class: usize, opening: Opening) -> bool {
        if opening.time < self.shortest.after(class, opening.from) {
            return false;
        }
        self.most[class] = self.most[class].max(opening.time);
        self.open |= 1 << class;
        let list = if self.is_considering { &mut self.new } else { &mut self.known };
        let overlaps =
            |other: &&mut Opening| other.from <= opening.until && opening.from <= other.until;
        match list[class].iter_mut().rev().find(overlaps) {
            Some(other) if other.from <= opening.from => {
                other.until = other.until.max(opening.until);
                other.time = other.time.max(opening.time);
                other.refused = None;
                false
            }
            _ => {
                list[class].push(opening);
                true
            }
        }
    }

    /// All jobs are about to be considered: these, each with the time it is reserved for.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        jobs: impl Iterator<Item = (usize, Span, Instant)>,
    ) {
        self.is_considering = true;
        self.age += 1;
        if self.age >= RENEWAL {
            self.age = 0;
            self.shortest.clear(now);
            jobs.for_each(|(class, time, at)| self.shortest.note(class, time, at));
        }
    }

    /// All jobs were considered; `spent` are the openings that are of no use any more.
    pub(super) fn finish(&mut self, spent: &mut Vec<Opening>) {
        self.is_considering = false;
        std::mem::swap(&mut self.known, &mut self.new);
        for class in bits(self.open) {
            spent.append(&mut self.new[class]);
            let longest = self.known[class].iter().map(|opening| opening.time).max();
            self.most[class] = longest.unwrap_or(Span::ZERO);
            if self.known[class].is_empty() {
                self.open &= !(1 << class);
            }
        }
    }

    /// A job with such a claim looks for an opening.
    #[inline]
    pub(super) fn ask(&self, claim: &Claim) -> Asked {
        Asked { class: class(claim.nodes), claim: *claim, seen: 0 }
    }

    /// What is needed at least by whoever asks.
    pub(super) fn level_of(&self, asked: &Asked) -> Level {
        self.level(asked.class)
    }

    /// The next opening that may be enough for it before a time.
    #[inline]
    pub(super) fn next(&self, asked: &mut Asked, latest: Instant) -> Option<Opening> {
        if !self.has_any(asked.class, asked.claim.time) {
            return None;
        }
        let (known, new) = (&self.known[asked.class], &self.new[asked.class]);
        while let Some(opening) =
            known.get(asked.seen).or_else(|| new.get(asked.seen - known.len()))
        {
            asked.seen += 1;
            let is_refused = |(claim, until): &(Claim, Instant)| {
                claim.nodes <= asked.claim.nodes
                    && claim.power <= asked.claim.power
                    && claim.time <= asked.claim.time
                    && latest <= *until
            };
            let is_enough = opening.from < latest && opening.time >= asked.claim.time;
            if is_enough && !opening.refused.as_ref().is_some_and(is_refused) {
                return Some(*opening);
            }
        }
        None
    }

    /// The last opening is not enough before a time. What is left of it is this long at most.
    pub(super) fn refuse(&mut self, asked: &Asked, claim: &Claim, latest: Instant, time: Span) {
        let (known, new) = (&mut self.known[asked.class], &mut self.new[asked.class]);
        let place = asked.seen - 1;
        let count = known.len();
        let opening = if place < count { known.get_mut(place) } else { new.get_mut(place - count) };
        if let Some(opening) = opening {
            opening.refused = Some((*claim, latest));
            let was_longest = opening.time == self.most[asked.class];
            opening.time = time;
            if was_longest {
                let all = self.known[asked.class].iter().chain(&self.new[asked.class]);
                let longest = all.map(|opening| opening.time).max();
                self.most[asked.class] = longest.unwrap_or(Span::ZERO);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_in_the_last_class_that_begins_with_it_or_before() {
        for nodes in (1..5000).chain([u32::MAX / 2, u32::MAX / 2 + 1, u32::MAX]) {
            let class = class(nodes);
            assert!(class < CLASSES && smallest(class) <= u64::from(nodes), "{nodes}");
            assert!(smallest(class + 1) > u64::from(nodes), "{nodes}");
        }
    }
}
