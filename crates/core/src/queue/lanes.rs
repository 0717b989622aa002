//! Waiting jobs in lanes, whose order changes only when a lane is moved.
//!
//! Jobs of one lane keep their order among themselves: each lane is an [`Ordered`] list. What moves is the lane
//! as a whole: a job stands where its key and the offset of its lane say. So an event that changes the priority of all jobs
//! of a user costs one number, and the order of all jobs is that of a merge, of which nobody needs more than the next job.
//!
//! Lanes stand in blocks. Each block knows its first job and what its jobs ask for at least, so that a search steps over
//! all blocks that can have nobody, or nobody before the best that was found.

use super::classes::SizeClasses;
use super::ordered::{Least, Limits, Ordered, Place};
use super::{Fit, Footprint};
use crate::units::JobId;

/// How many lanes a block has.
const WIDTH: usize = 32;

/// Behind everybody.
const LAST: Place = Place { key: i64::MAX, job: JobId(u32::MAX) };

#[derive(Clone)]
struct Lane {
    offset: i64,
    jobs: Ordered,
    /// The first job with the offset, or [`LAST`].
    first: Place,
}

impl Lane {
    fn within(&self, place: Place) -> Place {
        Place { key: place.key.saturating_sub(self.offset), ..place }
    }

    fn outside(&self, place: Place) -> Place {
        Place { key: place.key.saturating_add(self.offset), ..place }
    }

    fn look_at_first(&mut self) {
        self.first = self.jobs.first().map_or(LAST, |first| self.outside(first));
    }
}

/// Waiting jobs, ordered by their keys and the offsets of their lanes.
#[derive(Clone)]
pub struct Lanes {
    classes: SizeClasses,
    lanes: Vec<Lane>,
    /// Of each block, the first job, or [`LAST`].
    firsts: Vec<Place>,
    leasts: Vec<Least>,
    len: usize,
}

impl Lanes {
    /// Nobody waits yet.
    pub fn new(classes: SizeClasses) -> Self {
        Lanes { classes, lanes: Vec::new(), firsts: Vec::new(), leasts: Vec::new(), len: 0 }
    }

    /// How many jobs wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn block(block: usize, lanes: usize) -> std::ops::Range<usize> {
        block * WIDTH..((block + 1) * WIDTH).min(lanes)
    }

    /// Makes room for a lane.
    fn grow(&mut self, lane: usize) {
        if lane >= self.lanes.len() {
            let jobs = Ordered::new(self.classes.clone());
            self.lanes.resize(lane + 1, Lane { offset: 0, jobs, first: LAST });
            let blocks = self.lanes.len().div_ceil(WIDTH);
            self.firsts.resize(blocks, LAST);
            self.leasts.resize(blocks, Least::NOBODY);
        }
    }

    /// Puts a job into a lane that has this offset from now on. The key of its place is without the offset.
    pub fn insert(&mut self, lane: u32, offset: i64, place: Place, footprint: &Footprint) {
        let at = lane as usize;
        self.grow(at);
        let lane = &mut self.lanes[at];
        let is_moved = lane.offset != offset;
        lane.offset = offset;
        lane.jobs.insert(place, footprint);
        lane.look_at_first();
        let first = lane.first;
        self.len += 1;
        let block = at / WIDTH;
        self.leasts[block].add_all(&self.lanes[at].jobs.least());
        self.firsts[block] = match is_moved {
            true => self.first_of(block),
            false => self.firsts[block].min(first),
        };
    }

    /// Takes a job out of a lane; says whether it was there. The key of its place is without the offset.
    pub fn remove(&mut self, lane: u32, place: Place) -> bool {
        let at = lane as usize;
        let Some(lane) = self.lanes.get_mut(at) else { return false };
        if !lane.jobs.remove(place) {
            return false;
        }
        lane.look_at_first();
        self.len -= 1;
        let block = at / WIDTH;
        self.firsts[block] = self.first_of(block);
        let mut least = Least::NOBODY;
        for lane in &self.lanes[Self::block(block, self.lanes.len())] {
            if lane.first != LAST {
                least.add_all(&lane.jobs.least());
            }
        }
        self.leasts[block] = least;
        true
    }

    fn first_of(&self, block: usize) -> Place {
        let lanes = &self.lanes[Self::block(block, self.lanes.len())];
        lanes.iter().map(|lane| lane.first).min().unwrap_or(LAST)
    }

    /// Gives each lane in which somebody waits another offset.
    pub fn move_lanes(&mut self, mut offset: impl FnMut(u32) -> i64) {
        for block in 0..self.firsts.len() {
            if self.firsts[block] == LAST {
                continue;
            }
            for at in Self::block(block, self.lanes.len()) {
                let lane = &mut self.lanes[at];
                if lane.first != LAST {
                    lane.offset = offset(at as u32);
                    lane.look_at_first();
                }
            }
            self.firsts[block] = self.first_of(block);
        }
    }

    /// Where somebody stands who has this place in a lane.
    pub fn place_in(&self, lane: u32, place: Place) -> Place {
        self.lanes.get(lane as usize).map_or(place, |lane| lane.outside(place))
    }

    /// The first job, with the offset of its lane.
    pub fn first(&self) -> Option<Place> {
        self.firsts.iter().copied().min().filter(|first| *first != LAST)
    }

    /// The first job after a place, whether or not somebody stands at that; both with offsets.
    pub fn after(&self, place: Place) -> Option<Place> {
        self.find(
            place,
            |_| true,
            |lane| match lane.first > place {
                true => lane.jobs.first(),
                false => lane.jobs.after(lane.within(place)),
            },
        )
    }

    /// The first job after a place that may fit the room in one of these ways; whether it does is for the caller to
    /// test.
    pub fn next_fit_of(&self, after: Place, ways: &[Fit]) -> Option<Place> {
        let limits = Limits::new(ways, &self.classes);
        if limits.admit_nobody() {
            return None;
        }
        self.find(
            after,
            |least| limits.may_fit_in(least),
            |lane| lane.jobs.next_within(lane.within(after), &limits),
        )
    }

    /// The first of what is found in lanes, of which none is before or at a place.
    #[inline]
    fn find(
        &self,
        after: Place,
        may_have: impl Fn(&Least) -> bool,
        find_in: impl Fn(&Lane) -> Option<Place>,
    ) -> Option<Place> {
        let mut best = LAST;
        for (block, first) in self.firsts.iter().enumerate() {
            if *first >= best || !may_have(&self.leasts[block]) {
                continue;
            }
            for lane in &self.lanes[Self::block(block, self.lanes.len())] {
                if lane.first >= best {
                    continue;
                }
                if let Some(found) = find_in(lane) {
                    best = best.min(lane.outside(found));
                }
            }
        }
        debug_assert!(best > after);
        (best != LAST).then_some(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Span, Watts};
    use proptest::prelude::*;

    proptest! {
        /// The lanes find exactly the job that a scan of a sorted list finds, however they are moved.
        #[test]
        fn lanes_agree_with_a_scan(
            jobs in prop::collection::vec(
                (0u32..80, -40i64..40, 1u32..70, 0u32..100, 0u8..4), 1..300),
            moved in prop::collection::vec(-30i64..30, 1..9),
            asked in prop::collection::vec(
                ((-90i64..90, 0u32..300), 0u32..80, 0u32..80, 0u32..120), 1..20),
        ) {
            let mut lanes = Lanes::new(SizeClasses::powers_of_two());
            let mut offsets = vec![0i64; 80];
            // Lane, key, job, nodes, seconds.
            let mut plain: Vec<(u32, Place, u32, u32)> = Vec::new();
            for (job, (lane, key, nodes, seconds, what)) in (0..).map(JobId).zip(jobs) {
                let place = Place { key, job };
                let time = Span::from_secs(seconds);
                let footprint = Footprint { nodes, time, power: Watts::ZERO };
                lanes.insert(lane, offsets[lane as usize], place, &footprint);
                plain.push((lane, place, nodes, seconds));
                if what == 0 {
                    let gone = plain.remove(plain.len() / 2);
                    prop_assert!(lanes.remove(gone.0, gone.1));
                    prop_assert!(!lanes.remove(gone.0, gone.1));
                }
                if what == 1 {
                    for (lane, offset) in offsets.iter_mut().enumerate() {
                        *offset = moved[lane % moved.len()] * i64::from(seconds % 3);
                    }
                    lanes.move_lanes(|lane| offsets[lane as usize]);
                }
            }
            let outside = |lane: u32, place: Place| {
                Place { key: place.key + offsets[lane as usize], ..place }
            };
            let mut sorted: Vec<(Place, u32, u32)> = plain
                .iter()
                .map(|(lane, place, nodes, seconds)| (outside(*lane, *place), *nodes, *seconds))
                .collect();
            sorted.sort_unstable();
            prop_assert_eq!((lanes.len(), lanes.is_empty()), (sorted.len(), sorted.is_empty()));
            prop_assert_eq!(lanes.first(), sorted.first().map(|job| job.0));
            for (lane, place, ..) in &plain {
                prop_assert_eq!(lanes.place_in(*lane, *place), outside(*lane, *place));
            }
            for ((key, job), free, extra, window) in asked {
                let after = Place { key, job: JobId(job) };
                let next = sorted.iter().find(|job| job.0 > after).map(|job| job.0);
                prop_assert_eq!(lanes.after(after), next);
                let fit = Fit { extra, window: Span::from_secs(window), ..Fit::nodes(free) };
                let fits = |nodes: u32, seconds: u32| {
                    nodes <= free && (seconds <= window || nodes <= extra)
                };
                let expected = sorted.iter().find(|(place, nodes, seconds)| {
                    *place > after && fits(*nodes, *seconds)
                });
                prop_assert_eq!(lanes.next_fit_of(after, &[fit]), expected.map(|job| job.0));
            }
        }
    }
}
