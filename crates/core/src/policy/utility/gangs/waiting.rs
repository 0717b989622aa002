//! The waiting jobs, laid out so that the best one that fits is found without looking at each.
//!
//! Jobs that would hold the same nodes and watts at each place of their menus are one group: if nothing is
//! reserved, either all of them fit at a place or none. For each place of a group stands a heap of bids.
//! A bid never gets better as time goes on, so the one on top of a heap is brought up to date, and is the
//! best as soon as it stays on top. Bids of jobs that do not wait any more are taken out when they come to
//! the top, or when they are the most.

use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashMap};

use smallvec::SmallVec;

use super::bid::{Bid, Rule};
use crate::model::TimedPoints;
use crate::policy::{Room, View};
use crate::units::{JobId, Watts};

/// Nodes and watts at each place of a menu.
type Shape = SmallVec<[(u32, Watts); 8]>;

/// The group of those who do not wait.
const NONE: u32 = u32::MAX;

/// More bids than this for each that counts are not kept.
const MOST_BIDS: usize = 2;

/// The waiting jobs with their bids.
#[derive(Clone, Default)]
pub(super) struct Waiting {
    groups: Vec<Group>,
    /// The groups of which somebody waits, in no order.
    live: Vec<u32>,
    /// Where the group of a shape is.
    places: HashMap<Shape, u32>,
    /// By job: its group.
    group_of: Vec<u32>,
    count: usize,
    /// Bids that were refused in this turn, and are not to be seen again in it.
    aside: Vec<Bid>,
}

#[derive(Clone)]
struct Group {
    shape: Shape,
    /// None of them holds fewer nodes or less power.
    least: (u32, Watts),
    /// The bids for each place of the queue.
    bids: Vec<BinaryHeap<Bid>>,
    waiting: usize,
    /// Where it is among those that are live.
    at: usize,
}

impl Waiting {
    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Whether a job waits.
    #[inline]
    pub(super) fn has(&self, job: JobId) -> bool {
        self.group_of.get(job.index()).is_some_and(|group| *group != NONE)
    }

    /// A job that did not wait does now, with these bids for places of its menu.
    pub(super) fn insert(
        &mut self,
        job: JobId,
        ways: &TimedPoints,
        bids: impl IntoIterator<Item = Bid>,
    ) {
        let shape: Shape = ways.iter().map(|way| (way.point.nodes, way.point.power)).collect();
        let place = match self.places.get(&shape) {
            Some(place) => *place,
            None => {
                let place = self.groups.len() as u32;
                self.groups.push(Group::of(shape.clone()));
                self.places.insert(shape, place);
                place
            }
        };
        let group = &mut self.groups[place as usize];
        for bid in bids {
            group.bids[bid.place()].push(bid.of_group(place));
        }
        if group.waiting == 0 {
            group.at = self.live.len();
            self.live.push(place);
        }
        group.waiting += 1;
        self.count += 1;
        if self.group_of.len() <= job.index() {
            self.group_of.resize(job.index() + 1, NONE);
        }
        self.group_of[job.index()] = place;
    }

    /// A job does not wait any more.
    pub(super) fn remove(&mut self, job: JobId) {
        if !self.has(job) {
            return;
        }
        let place = std::mem::replace(&mut self.group_of[job.index()], NONE);
        self.count -= 1;
        let group = &mut self.groups[place as usize];
        group.waiting -= 1;
        if group.waiting == 0 {
            group.bids.iter_mut().for_each(BinaryHeap::clear);
            let at = group.at;
            self.live.swap_remove(at);
            if let Some(moved) = self.live.get(at) {
                self.groups[*moved as usize].at = at;
            }
        } else {
            let most = MOST_BIDS * group.waiting + 64;
            let group_of = &self.group_of;
            for bids in group.bids.iter_mut().filter(|bids| bids.len() > most) {
                bids.retain(|bid| group_of[bid.job.index()] != NONE);
            }
        }
    }

    /// A bid of a waiting job, with its group.
    pub(super) fn placed(&self, bid: Bid) -> Bid {
        bid.of_group(self.group_of.get(bid.job.index()).copied().unwrap_or(NONE))
    }

    /// Whether there are nodes and watts for a bid, as far as its group goes.
    #[inline]
    pub(super) fn may_fit(&self, bid: &Bid, room: &Room) -> bool {
        let group = self.groups.get(bid.group as usize);
        group.is_some_and(|group| group.fits(bid.place(), room))
    }

    /// The best bid for each place of each group that may fit.
    pub(super) fn best_of_each(
        &mut self,
        view: &View<'_>,
        rule: &Rule,
        room: &Room,
        best: &mut BinaryHeap<Bid>,
    ) {
        for &place in &self.live {
            let group = &mut self.groups[place as usize];
            if group.least.0 > room.nodes() || group.least.1 > room.power() {
                continue;
            }
            for place in 0..group.shape.len() {
                if group.fits(place, room) {
                    best.extend(group.best(place, view, rule, &self.group_of));
                }
            }
        }
    }

    /// The best bid for the same place of the same group.
    pub(super) fn best_like(&mut self, view: &View<'_>, rule: &Rule, bid: &Bid) -> Option<Bid> {
        self.groups[bid.group as usize].best(bid.place(), view, rule, &self.group_of)
    }

    /// Leaves out the best bid for the place of a group, until all are put back.
    pub(super) fn set_aside(&mut self, bid: &Bid) {
        let best = self.groups[bid.group as usize].bids[bid.place()].pop();
        self.aside.extend(best);
    }

    /// Puts back what was set aside.
    pub(super) fn put_back(&mut self) {
        for bid in self.aside.drain(..) {
            if self.group_of[bid.job.index()] == bid.group {
                self.groups[bid.group as usize].bids[bid.place()].push(bid);
            }
        }
    }
}

impl Group {
    fn of(shape: Shape) -> Self {
        let nodes = shape.iter().map(|(nodes, _)| *nodes).min().unwrap_or(0);
        let power = shape.iter().map(|(_, power)| *power).min().unwrap_or(Watts::ZERO);
        let bids = shape.iter().map(|_| BinaryHeap::new()).collect();
        Group { shape, least: (nodes, power), bids, waiting: 0, at: 0 }
    }

    #[inline]
    fn fits(&self, place: usize, room: &Room) -> bool {
        let (nodes, power) = self.shape[place];
        nodes <= room.nodes() && power <= room.power()
    }

    /// The best bid for a place, of those who wait.
    fn best(
        &mut self,
        place: usize,
        view: &View<'_>,
        rule: &Rule,
        group_of: &[u32],
    ) -> Option<Bid> {
        while let Some(mut top) = self.bids[place].peek_mut() {
            if group_of[top.job.index()] == NONE {
                PeekMut::pop(top);
                continue;
            }
            let mut bid = *top;
            let job = view.job(bid.job);
            if !rule.renew(&mut bid, view.now, job) {
                return Some(bid);
            }
            *top = bid;
        }
        None
    }
}
