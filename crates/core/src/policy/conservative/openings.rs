//! Where something came free, and for whom it may be enough.
//!
//! An opening is a stretch of time around something that came free. To look at each waiting job for
//! each of them would cost more than to move those that can be moved. So jobs are divided into
//! classes by size, and an opening is kept for a class only if it is as long as the shortest of its
//! jobs that are reserved for later. What is kept may be too much, never too little.
//!
//! Only who is reserved for after the time at which something comes free can use it. Somebody reserved for
//! before, or for that very time, holds his nodes there already, or ends before it, wherever he
//! moves.
//!
//! Openings are numbered, and each job remembers how many there were when it last looked. An opening
//! that was not enough for it is not enough later: if more comes free around it, that is another
//! opening, or the same with a new number.

use crate::availability::Claim;
use crate::units::{Instant, Span};

/// Sizes are told apart by their three highest bits; the last class has all above.
const CLASSES: usize = 64;

/// Distances in time are told apart by their three highest bits, and those below a minute are not.
const NEAREST: u32 = 16;
const DISTANCES: usize = 4 * (64 - NEAREST as usize);

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
    /// How many were made before it, and it.
    pub(super) number: u64,
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
    /// It has seen all up to this one before.
    seen: u64,
    /// How many were not looked at.
    left: usize,
}

/// The classes of jobs that are reserved for some time or later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Later {
    distance: usize,
    /// One bit each.
    there: u64,
}

impl Later {
    /// The largest class up to one.
    #[inline]
    pub(super) fn largest(&self, highest: Option<usize>) -> Option<usize> {
        (self.there & up_to(highest?)).checked_ilog2().map(|class| class as usize)
    }
}

/// The shortest time that jobs of each class claim, by how far off they are reserved at least.
#[derive(Clone, Debug)]
struct Shortest {
    /// Distances are from here.
    origin: Instant,
    /// For each distance and each class, over all that are not nearer.
    times: Vec<[Span; CLASSES]>,
    /// The classes, one bit each, of which there is any that is not nearer.
    there: [u64; DISTANCES],
}

impl Shortest {
    fn new(origin: Instant) -> Self {
        let times = vec![[Span::FOREVER; CLASSES]; DISTANCES];
        Shortest { origin, times, there: [0; DISTANCES] }
    }

    fn clear(&mut self, origin: Instant) {
        self.origin = origin;
        for (times, there) in self.times.iter_mut().zip(&mut self.there) {
            bits(std::mem::take(there)).for_each(|class| times[class] = Span::FOREVER);
        }
    }

    #[inline]
    fn distance(&self, at: Instant) -> usize {
        let millis = at.since(self.origin).millis().max(1 << NEAREST);
        let highest = millis.ilog2();
        4 * (highest - NEAREST) as usize + (millis >> (highest - 2) & 3) as usize
    }

    fn note(&mut self, class: usize, time: Span, at: Instant) {
        for distance in (0..=self.distance(at)).rev() {
            let shortest = &mut self.times[distance][class];
            if *shortest <= time {
                break;
            }
            *shortest = time;
            self.there[distance] |= 1 << class;
        }
    }
}

/// The openings that waiting jobs have not been considered for.
#[derive(Clone, Debug)]
pub(super) struct Openings {
    /// For each class, the oldest first.
    lists: Vec<Vec<Opening>>,
    /// For each class, no opening is longer.
    most: [Span; CLASSES],
    /// For each class, the number of the last opening.
    last: [u64; CLASSES],
    /// The classes, one bit each, that have any.
    open: u64,
    /// How many were made.
    made: u64,
    /// How many were made when jobs were last begun to be considered: all jobs have seen them when
    /// that is finished.
    begun: u64,
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
fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
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
    let class = match nodes.ilog2() as usize {
        0 | 1 => nodes as usize - 1,
        highest => 4 * (highest - 2) + (nodes >> (highest - 2) & 3) as usize + 3,
    };
    class.min(CLASSES - 1)
}

/// The smallest size of a class.
#[inline]
fn smallest(class: usize) -> u64 {
    match class.checked_sub(3) {
        None => class as u64 + 1,
        Some(class) => (4 + class as u64 % 4) << (class / 4),
    }
}

impl Openings {
    pub(super) fn new(now: Instant) -> Self {
        Openings {
            lists: vec![Vec::new(); CLASSES],
            most: [Span::ZERO; CLASSES],
            last: [0; CLASSES],
            open: 0,
            made: 0,
            begun: 0,
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

    /// How many were made: who sees all there are has seen so many.
    pub(super) fn made(&self) -> u64 {
        self.made
    }

    /// Whether such a job may find an opening that it has not seen.
    #[inline]
    pub(super) fn has_any(&self, class: usize, time: Span, seen: u64) -> bool {
        time <= self.most[class] && seen < self.last[class]
    }

    /// The longest time that any job claims.
    pub(super) fn longest(&self) -> Span {
        self.longest
    }

    /// The largest class whose smallest job could have this.
    #[inline]
    pub(super) fn highest(&self, nodes: i64, power: i64) -> Option<usize> {
        let (nodes, power) = (u64::try_from(nodes).ok()?, u64::try_from(power).ok()?);
        let fed = power.checked_div(self.node_power).unwrap_or(u64::MAX).min(nodes);
        (fed > 0).then(|| class(u32::try_from(fed).unwrap_or(u32::MAX)))
    }

    /// The classes of those who are reserved for after an instant.
    #[inline]
    pub(super) fn later(&self, at: Instant) -> Later {
        let distance = self.shortest.distance(at);
        Later { distance, there: self.shortest.there[distance] }
    }

    /// What a class needs.
    #[inline]
    pub(super) fn level(&self, class: usize) -> Level {
        let nodes = smallest(class);
        let power = i64::try_from(self.node_power.saturating_mul(nodes)).unwrap_or(i64::MAX);
        Level { nodes: nodes as i64, power, longest: self.longest }
    }

    /// The classes after one and up to another in which somebody who is reserved for later needs no
    /// more than a time; the largest first.
    #[inline]
    pub(super) fn suited(
        &self,
        later: &Later,
        after: Option<usize>,
        highest: usize,
        time: Span,
    ) -> impl Iterator<Item = usize> + use<> {
        let times = &self.shortest.times[later.distance];
        let mut suited = later.there & up_to(highest) & !after.map_or(0, up_to);
        for class in bits(suited) {
            suited &= !(u64::from(times[class] > time) << class);
        }
        bits(suited)
    }

    /// Adds an opening; says whether it is one more that begins with its step.
    pub(super) fn add(&mut self, class: usize, mut opening: Opening) -> bool {
        self.made += 1;
        self.most[class] = self.most[class].max(opening.time);
        self.last[class] = self.made;
        self.open |= 1 << class;
        let list = &mut self.lists[class];
        let first = list.partition_point(|other| other.number <= self.begun);
        let overlaps = |other: &Opening| other.from <= opening.until && opening.from <= other.until;
        let other = list[first..].iter().rposition(overlaps).map(|place| first + place);
        let is_more = match other.filter(|place| list[*place].from <= opening.from) {
            Some(place) => {
                let other = list.remove(place);
                let (until, time) = (opening.until.max(other.until), opening.time.max(other.time));
                opening = Opening { until, time, ..other };
                false
            }
            None => true,
        };
        list.push(Opening { number: self.made, refused: None, ..opening });
        is_more
    }

    /// All jobs are about to be considered: these, each with the time it is reserved for.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        jobs: impl Iterator<Item = (usize, Span, Instant)>,
    ) {
        self.begun = self.made;
        self.age += 1;
        if self.age >= RENEWAL {
            self.age = 0;
            self.shortest.clear(now);
            jobs.for_each(|(class, time, at)| self.shortest.note(class, time, at));
        }
    }

    /// All jobs were considered; `spent` are the openings that are of no use any more.
    pub(super) fn finish(&mut self, spent: &mut Vec<Opening>) {
        for class in bits(self.open) {
            let list = &mut self.lists[class];
            let seen = list.partition_point(|opening| opening.number <= self.begun);
            spent.extend(list.drain(..seen));
            self.most[class] = longest(list);
            if list.is_empty() {
                self.open &= !(1 << class);
            }
        }
    }

    /// A job with such a claim looks for an opening that is not among those it has seen.
    #[inline]
    pub(super) fn ask(&self, claim: &Claim, seen: u64) -> Asked {
        let class = class(claim.nodes);
        let any = self.has_any(class, claim.time, seen);
        let left = if any { self.lists[class].len() } else { 0 };
        Asked { class, claim: *claim, seen, left }
    }

    /// What is needed at least by whoever asks.
    pub(super) fn level_of(&self, asked: &Asked) -> Level {
        self.level(asked.class)
    }

    /// The next opening that may be enough for it before a time.
    #[inline]
    pub(super) fn next(&self, asked: &mut Asked, latest: Instant) -> Option<Opening> {
        while let Some(opening) = self.lists[asked.class][..asked.left].last() {
            if opening.number <= asked.seen {
                return None;
            }
            asked.left -= 1;
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
    pub(super) fn refuse(&mut self, asked: &Asked, latest: Instant, time: Span) {
        let list = &mut self.lists[asked.class];
        let opening = &mut list[asked.left];
        opening.refused = Some((asked.claim, latest));
        let was_longest = opening.time == self.most[asked.class];
        opening.time = time;
        if was_longest {
            self.most[asked.class] = longest(list);
        }
    }
}

/// The time of the longest of some openings.
fn longest(openings: &[Opening]) -> Span {
    openings.iter().map(|opening| opening.time).max().unwrap_or(Span::ZERO)
}

/// The classes up to one, one bit each.
#[inline]
fn up_to(class: usize) -> u64 {
    u64::MAX >> (CLASSES - 1 - class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_in_the_last_class_that_begins_with_it_or_before() {
        for nodes in (1..5000).chain([u32::MAX / 2, u32::MAX / 2 + 1, u32::MAX]) {
            let class = class(nodes);
            assert!(class < CLASSES && smallest(class) <= u64::from(nodes), "{nodes}");
            assert!(class + 1 == CLASSES || smallest(class + 1) > u64::from(nodes), "{nodes}");
        }
    }
}
