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
use crate::units::{JobId, Span, Watts};

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
    live: Vec<Live>,
    /// Where the group of a shape is.
    places: HashMap<Shape, u32>,
    /// By job: its group.
    group_of: Vec<u32>,
    count: usize,
    /// Bids that were refused in this turn, and are not to be seen again in it.
    aside: Vec<Bid>,
}

/// A group of which somebody waits, as it is looked at to find out whether it may fit.
#[derive(Clone, Copy)]
struct Live {
    group: u32,
    /// None of its places holds fewer nodes or less power.
    nodes: u32,
    power: Watts,
}

#[derive(Clone)]
struct Group {
    shape: Shape,
    /// The bids for each place of the menu.
    bids: Vec<BinaryHeap<Bid>>,
    /// For each place, none of the bids there may take less time. Under a reservation nearly all are refused
    /// because they take too long, and this says so for all of them at once.
    shortest: SmallVec<[Span; 8]>,
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
            let shortest = &mut group.shortest[bid.place()];
            *shortest = bid.time.min(*shortest);
            group.bids[bid.place()].push(bid.of_group(place));
        }
        if group.waiting == 0 {
            group.at = self.live.len();
            self.live.push(group.live(place));
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
            group.shortest.fill(Span::FOREVER);
            let at = group.at;
            self.live.swap_remove(at);
            if let Some(moved) = self.live.get(at) {
                self.groups[moved.group as usize].at = at;
            }
        } else {
            let most = MOST_BIDS * group.waiting + 64;
            let group_of = &self.group_of;
            let aside = &self.aside;
            let places = group.bids.iter_mut().zip(&mut group.shortest).enumerate();
            for (at, (bids, shortest)) in places.filter(|(_, (bids, _))| bids.len() > most) {
                bids.retain(|bid| group_of[bid.job.index()] != NONE);
                let aside = aside.iter().filter(|bid| bid.group == place && bid.place() == at);
                let times = bids.iter().chain(aside).map(|bid| bid.time);
                *shortest = times.min().unwrap_or(Span::FOREVER);
            }
        }
    }

    /// A bid of a waiting job, with its group.
    pub(super) fn placed(&self, bid: Bid) -> Bid {
        bid.of_group(self.group_of.get(bid.job.index()).copied().unwrap_or(NONE))
    }

    /// For how long there are nodes and watts for a bid, if anybody in its group may do with that at its place.
    #[inline]
    pub(super) fn fits_for(&self, bid: &Bid, room: &Room) -> Option<Span> {
        self.groups.get(bid.group as usize)?.fits_for(bid.place(), room)
    }

    /// The best bid for each place of each group that may fit.
    pub(super) fn best_of_each(
        &mut self,
        view: &View<'_>,
        rule: &Rule,
        room: &Room,
        best: &mut BinaryHeap<Bid>,
    ) {
        let (nodes, power) = (room.nodes(), room.power());
        for live in self.live.iter().filter(|live| live.nodes <= nodes && live.power <= power) {
            let group = &mut self.groups[live.group as usize];
            for place in 0..group.shape.len() {
                if group.fits_for(place, room).is_some() {
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
        let bids = shape.iter().map(|_| BinaryHeap::new()).collect();
        let shortest = shape.iter().map(|_| Span::FOREVER).collect();
        Group { shape, bids, shortest, waiting: 0, at: 0 }
    }

    fn live(&self, group: u32) -> Live {
        let nodes = self.shape.iter().map(|(nodes, _)| *nodes).min().unwrap_or(0);
        let power = self.shape.iter().map(|(_, power)| *power).min().unwrap_or(Watts::ZERO);
        Live { group, nodes, power }
    }

    /// For how long there is room at a place, if that is enough for anybody.
    #[inline]
    fn fits_for(&self, place: usize, room: &Room) -> Option<Span> {
        let (nodes, power) = self.shape[place];
        room.longest(nodes, power).filter(|longest| self.shortest[place] <= *longest)
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
