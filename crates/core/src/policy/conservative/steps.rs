//! Free nodes and free power from now on: a step function of time, as a list.
//!
//! A step is found by its place, so whoever knows where it begins or ends need not search. A place stays
//! the same until nobody uses it any more.

use std::ops::{Index, IndexMut};

use crate::availability::Claim;
use crate::policy::conservative::openings::Level;
use crate::units::{Instant, Span, Watts};

/// A place in the list of steps, or of those who begin at one.
pub(super) type Place = u32;

/// The mark of a link that leads nowhere.
pub(super) const NONE: Place = Place::MAX;

/// A stretch of time in which what is free stays the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) from: Instant,
    pub(super) nodes: i64,
    /// The power of the step, in milliwatts; it may be below zero for a while.
    pub(super) power: i64,
    pub(super) before: Place,
    pub(super) after: Place,
    /// How many reservations, running jobs and openings begin or end here. Without any, this step is
    /// like the one before it.
    pub(super) uses: u32,
    /// The first of the waiting jobs that begin here.
    pub(super) first: Place,
}

/// An earlier time for a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Earlier {
    pub(super) at: Instant,
    pub(super) step: Place,
}

/// The steps in the order of time.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    steps: Vec<Step>,
    /// Places in the list that are not used.
    spare: Vec<Place>,
    /// The step in force now.
    pub(super) head: Place,
}

/// Every power there is, the unlimited one included, is far below the largest `i64`.
pub(super) fn signed(power: Watts) -> i64 {
    power.milliwatts() as i64
}

impl Step {
    #[inline]
    pub(super) fn admits(&self, claim: &Claim) -> bool {
        self.nodes >= i64::from(claim.nodes) && self.power >= signed(claim.power)
    }

    #[inline]
    pub(super) fn reaches(&self, level: &Level) -> bool {
        self.nodes >= level.nodes && self.power >= level.power
    }
}

impl Index<Place> for Steps {
    type Output = Step;

    #[inline]
    fn index(&self, place: Place) -> &Step {
        &self.steps[place as usize]
    }
}

impl IndexMut<Place> for Steps {
    #[inline]
    fn index_mut(&mut self, place: Place) -> &mut Step {
        &mut self.steps[place as usize]
    }
}

impl Steps {
    /// So much is free from now on, for ever.
    pub(super) fn new(now: Instant, nodes: i64, power: i64) -> Self {
        let (before, after, first) = (NONE, NONE, NONE);
        let all = Step { from: now, nodes, power, before, after, uses: 0, first };
        Steps { steps: vec![all], spare: Vec::new(), head: 0 }
    }

    /// The instant at which the first step begins.
    #[inline]
    pub(super) fn now(&self) -> Instant {
        self[self.head].from
    }

    /// When a step begins; never if there is none.
    #[inline]
    pub(super) fn from(&self, place: Place) -> Instant {
        if place == NONE { Instant::NEVER } else { self[place].from }
    }

    /// Time passes: `now` becomes the first step's time.
    pub(super) fn advance(&mut self, now: Instant) {
        let mut head = self.head;
        while self.from(self[head].after) <= now {
            let past = head;
            head = self[past].after;
            self.discard(past);
        }
        self.head = head;
        self[head].before = NONE;
        self[head].from = self[head].from.max(now);
    }

    fn discard(&mut self, step: Place) {
        // Whoever still knows the place can see that it is another.
        self[step].from = Instant::NEVER;
        self.spare.push(step);
    }

    /// The step that begins at `at`, which is in the step `place` or after it; never has none.
    pub(super) fn boundary_after(&mut self, mut place: Place, at: Instant) -> Place {
        if at == Instant::NEVER {
            return NONE;
        }
        while self.from(self[place].after) <= at {
            place = self[place].after;
        }
        self.boundary_in(place, at)
    }

    /// The step that begins at `at`, which is before the step `place` begins, or then.
    pub(super) fn boundary_before(&mut self, mut place: Place, at: Instant) -> Place {
        if place == NONE {
            return self.boundary_after(self.head, at);
        }
        while self[place].from > at {
            place = self[place].before;
        }
        self.boundary_in(place, at)
    }

    /// Makes sure that a step begins at an instant within another.
    fn boundary_in(&mut self, place: Place, at: Instant) -> Place {
        let step = self[place];
        if step.from == at {
            return place;
        }
        let new = Step { from: at, before: place, uses: 0, first: NONE, ..step };
        let made = match self.spare.pop() {
            Some(spare) => {
                self[spare] = new;
                spare
            }
            None => {
                self.steps.push(new);
                (self.steps.len() - 1) as Place
            }
        };
        self[place].after = made;
        if step.after != NONE {
            self[step.after].before = made;
        }
        made
    }

    #[inline]
    pub(super) fn using(&mut self, step: Place) -> Place {
        if step != NONE {
            self[step].uses += 1;
        }
        step
    }

    /// One reservation less begins or ends with a step.
    pub(super) fn leave(&mut self, place: Place) {
        if place == NONE {
            return;
        }
        self[place].uses -= 1;
        let Step { before, after, uses, .. } = self[place];
        if uses > 0 || place == self.head {
            return;
        }
        self[before].after = after;
        if after != NONE {
            self[after].before = before;
        }
        self.discard(place);
    }

    /// Adds to what is free in the steps from one to before another.
    #[inline]
    pub(super) fn add(&mut self, from: Place, until: Place, nodes: i64, power: i64) {
        let mut place = from;
        while place != until {
            let step = &mut self[place];
            step.nodes += nodes;
            step.power += power;
            place = step.after;
        }
    }

    /// The first instant from the step `place` on, and before `latest`, from which the claim fits
    /// for its whole time; what is taken from `end` on does not count.
    pub(super) fn earliest(
        &self,
        mut place: Place,
        latest: Instant,
        end: Instant,
        claim: &Claim,
    ) -> Option<Earlier> {
        let mut start: Option<Earlier> = None;
        while place != NONE {
            let step = &self[place];
            match start {
                None if step.from >= latest => return None,
                None if step.admits(claim) => start = Some(Earlier { at: step.from, step: place }),
                None => (),
                Some(Earlier { at, .. }) if at + claim.time <= step.from || end <= step.from => {
                    return start;
                }
                Some(_) if step.admits(claim) => (),
                Some(_) => start = None,
            }
            place = step.after;
        }
        start
    }

    /// The longest time for which a level is reached without a break, from some time on between the
    /// step `place` and `until`.
    pub(super) fn longest(&self, mut place: Place, until: Instant, level: &Level) -> Span {
        let mut longest = Span::ZERO;
        let mut since = None;
        while place != NONE {
            let step = &self[place];
            if step.from >= until && since.is_none() {
                return longest;
            }
            let reached = step.reaches(level);
            match since {
                None if reached => since = Some(step.from),
                Some(begin) if !reached || step.from.since(begin) >= level.longest => {
                    longest = longest.max(step.from.since(begin));
                    if longest >= level.longest {
                        return longest;
                    }
                    since = None;
                }
                _ => (),
            }
            place = step.after;
        }
        if since.is_some() { Span::FOREVER } else { longest }
    }
}
