//! What will be free when, as far as is known: nodes and power as step functions of time.
//!
//! Limits of the budget that are still to come are no steps of these functions: there may be very
//! many of them. The budget itself is asked about them.

mod feed_room;
mod feeds;
mod tenure;

pub(crate) use feed_room::FeedRoom;
pub(crate) use feeds::Below;
pub(crate) use tenure::Tenure;

use wide::i32x8;

use crate::budget::Budget;
use crate::ledger::Ledger;
use crate::model::OperatingPoint;
use crate::units::{Instant, Span, Watts};

/// What a job or a reservation takes for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Nodes taken.
    pub nodes: u32,
    /// Power taken.
    pub power: Watts,
    /// For how long.
    pub time: Span,
}

impl Claim {
    /// What a job takes at an operating point.
    pub fn of(point: &OperatingPoint) -> Self {
        Claim { nodes: point.nodes, power: point.power, time: point.time }
    }
}

/// Every power there is, the unlimited one included, is far below the largest `i64`.
#[inline]
fn signed(power: Watts) -> i64 {
    power.milliwatts() as i64
}

/// Free nodes and free power over time, from now on: step functions, with a column for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Availability {
    /// When each step begins, ascending; the first is in force now, the last for ever.
    from: Vec<Instant>,
    /// Nodes free in each step.
    nodes: Vec<i32>,
    /// Milliwatts free in each step; below zero where a limit falls under what is held already.
    /// While limits are to come, without what the limit of the time grants.
    power: Vec<i64>,
    /// Whether power can ever be short.
    is_limited: bool,
    /// The limits, while some are to come.
    limits: Option<Limits>,
}

/// What jobs may hold together, over time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Limits {
    budget: Budget,
    /// The base power of the machine.
    base: Watts,
}

impl Limits {
    /// What jobs may hold at an instant, in milliwatts.
    fn at(&self, instant: Instant) -> i64 {
        signed(self.budget.at(instant).saturating_sub(self.base))
    }

    /// The least that jobs may hold at any time from an instant on, in milliwatts.
    fn lowest(&self, from: Instant) -> i64 {
        signed(self.budget.lowest(from, Instant::NEVER).saturating_sub(self.base))
    }

    /// The least limit that grants jobs this many milliwatts; none is needed for nothing.
    fn granting(&self, milliwatts: i64) -> Watts {
        match u64::try_from(milliwatts) {
            Ok(needed) if needed > 0 => self.base + Watts::from_milliwatts(needed),
            _ => Watts::ZERO,
        }
    }
}

impl Availability {
    /// What the ledger knows: today's holders give back when they are expected to, and the
    /// budget changes when it says. A job that should have ended gives back at once.
    pub fn of(ledger: &Ledger) -> Self {
        let running = ledger.running().iter();
        let holders = running.map(|holding| (holding.until, holding.nodes, holding.power));
        Availability::with_holders(ledger, ledger.held(), holders)
    }

    /// The same, if nodes and power were held until these times, which are in order; and so much power in all.
    pub(crate) fn with_holders(
        ledger: &Ledger,
        held: Watts,
        holders: impl Iterator<Item = (Instant, u32, Watts)>,
    ) -> Self {
        // One for each that runs, one for now, and a few for what will be taken out.
        let steps = ledger.running().len() + 8;
        let mut holders = holders.peekable();
        let is_steady = ledger.limits_to_come().is_empty();
        let granted = if is_steady { signed(ledger.for_jobs(ledger.limit())) } else { 0 };
        let mut free_nodes = ledger.free_nodes();
        let mut free_power = granted - signed(held);
        let limits = || Limits { budget: ledger.budget().clone(), base: ledger.base_power() };
        let mut free = Availability {
            from: Vec::with_capacity(steps),
            nodes: Vec::with_capacity(steps),
            power: Vec::with_capacity(steps),
            is_limited: ledger.budget().is_limited(),
            limits: (!is_steady).then(limits),
        };
        let mut at = ledger.now();
        loop {
            while let Some((_, nodes, power)) = holders.next_if(|(until, ..)| *until <= at) {
                free_nodes += nodes;
                free_power += signed(power);
            }
            free.from.push(at);
            free.nodes.push(narrow(free_nodes));
            free.power.push(free_power);
            match holders.peek() {
                Some((until, ..)) => at = *until,
                None => return free,
            }
        }
    }

    /// No nodes, and what a limit leaves beside what is drawn anyway.
    fn below(now: Instant, limit: &Budget, base: Watts) -> Self {
        let is_steady = limit.changes_after(now).is_empty();
        let power = if is_steady { signed(limit.at(now).saturating_sub(base)) } else { 0 };
        let limits = (!is_steady).then(|| Limits { budget: limit.clone(), base });
        let is_limited = limit.is_limited();
        Availability { from: vec![now], nodes: vec![0], power: vec![power], is_limited, limits }
    }

    /// The same with this number of nodes, while jobs hold more nodes, and power, until these times, which are in order and to
    /// come.
    fn with_ends(
        &self,
        nodes: u32,
        ends: impl Iterator<Item = (Instant, u32, Watts)> + Clone,
    ) -> Self {
        let held: i64 = ends.clone().map(|(_, _, power)| signed(power)).sum();
        let mut free = self.clone();
        (free.nodes[0], free.power[0]) = (narrow(nodes), self.power[0] - held);
        for (until, nodes, power) in ends {
            let last = free.from.len() - 1;
            if free.from[last] < until {
                free.from.push(until);
                free.nodes.push(free.nodes[last]);
                free.power.push(free.power[last]);
            }
            let last = free.from.len() - 1;
            free.nodes[last] += narrow(nodes);
            free.power[last] += signed(power);
        }
        free
    }

    /// The fewest nodes and the least power that are free at any time from an instant to before another; at the first one at
    /// least.
    fn least(&self, start: Instant, end: Instant) -> (u32, Watts) {
        let mut least = self.at(start);
        let first = self.step_at(start);
        for step in
            (first..self.from.len()).take_while(|step| *step == first || self.from[*step] < end)
        {
            let from = self.from[step].max(start);
            let until = self.from.get(step + 1).map_or(end, |next| end.min(*next));
            let limits = self.limits.as_ref();
            let granted = limits.map_or(0, |limits| {
                signed(limits.budget.lowest(from, until).saturating_sub(limits.base))
            });
            let power = Watts::from_milliwatts((granted + self.power[step]).max(0) as u64);
            least = (least.0.min(self.nodes[step].max(0) as u32), least.1.min(power));
        }
        least
    }

    /// When more may come free, after an instant.
    pub(crate) fn next_change(&self, after: Instant) -> Option<Instant> {
        let step = self.from.get(self.step_at(after) + 1).copied();
        let limits =
            self.limits.iter().flat_map(|limits| limits.budget.changes_after(after).first());
        step.into_iter().chain(limits.map(|change| change.0)).min()
    }

    /// Forgets what is past: `now` becomes the first step's time.
    pub(crate) fn forget_before(&mut self, now: Instant) {
        let past = self.step_at(now);
        self.from.drain(..past);
        self.nodes.drain(..past);
        self.power.drain(..past);
        self.from[0] = self.from[0].max(now);
    }

    /// Takes a claim out of what is free from `start` on. It must fit there.
    pub fn take(&mut self, start: Instant, claim: &Claim) {
        self.change(start, start + claim.time, -narrow(claim.nodes), -signed(claim.power));
    }

    /// Gives back nodes and power between two instants.
    pub(crate) fn give(&mut self, start: Instant, end: Instant, nodes: u32, power: Watts) {
        self.change(start, end, narrow(nodes), signed(power));
    }

    fn change(&mut self, start: Instant, end: Instant, nodes: i32, power: i64) {
        let start = start.max(self.from[0]);
        if start >= end {
            return;
        }
        let first = self.split(start);
        let last = if end == Instant::NEVER { self.from.len() } else { self.split(end) };
        for free in &mut self.nodes[first..last] {
            *free += nodes;
        }
        for free in &mut self.power[first..last] {
            *free += power;
        }
        self.join(last);
        self.join(first);
    }

    /// The step in force at an instant; the first one for what is past.
    #[inline]
    fn step_at(&self, at: Instant) -> usize {
        if at <= self.from[0] {
            return 0;
        }
        self.from.partition_point(|from| *from <= at).saturating_sub(1)
    }

    /// Makes sure that a step begins at `at`, which is not past, and says which.
    fn split(&mut self, at: Instant) -> usize {
        let before = self.step_at(at);
        if self.from[before] == at {
            return before;
        }
        self.from.insert(before + 1, at);
        self.nodes.insert(before + 1, self.nodes[before]);
        self.power.insert(before + 1, self.power[before]);
        before + 1
    }

    /// A step equal to the one before it says nothing: the list stays as short as the function.
    fn join(&mut self, step: usize) {
        let same = |before: usize| {
            step < self.from.len()
                && self.nodes[before] == self.nodes[step]
                && self.power[before] == self.power[step]
        };
        if step.checked_sub(1).is_some_and(same) {
            self.from.remove(step);
            self.nodes.remove(step);
            self.power.remove(step);
        }
    }

    /// The first instant, not before `after`, from which the claim fits for its whole time.
    /// `None` if it never does.
    pub fn earliest(&self, after: Instant, claim: &Claim) -> Option<Instant> {
        self.earliest_before(after, Instant::NEVER, Instant::NEVER, claim)
    }

    /// The same, if it comes before `latest`, and with whatever is taken from `end` on not
    /// counting.
    pub(crate) fn earliest_before(
        &self,
        after: Instant,
        latest: Instant,
        end: Instant,
        claim: &Claim,
    ) -> Option<Instant> {
        if let Some(limits) = &self.limits {
            return self.earliest_under(limits, after, latest, end, claim);
        }
        // Where a stretch of steps with room began that has not ended yet.
        let mut start: Option<Instant> = None;
        for first in (self.step_at(after)..self.from.len()).step_by(PART) {
            let from = &self.from[first..self.from.len().min(first + PART)];
            if start.is_none() && from[0] >= latest {
                return None;
            }
            let room = self.room(first, claim);
            let mut at = 0;
            while at < from.len() {
                let Some(since) = start else {
                    at += (room >> at).trailing_zeros() as usize;
                    if at >= from.len() {
                        break;
                    }
                    let begin = from[at].max(after);
                    if begin >= latest {
                        return None;
                    }
                    start = Some(begin);
                    continue;
                };
                at += (!room >> at).trailing_zeros() as usize;
                if let Some(from) = from.get(at) {
                    if since + claim.time <= *from || end <= *from {
                        return start;
                    }
                    start = None;
                }
            }
        }
        start
    }

    /// The same while limits are to come.
    fn earliest_under(
        &self,
        limits: &Limits,
        after: Instant,
        latest: Instant,
        end: Instant,
        claim: &Claim,
    ) -> Option<Instant> {
        let (nodes, power, time) = (narrow(claim.nodes), signed(claim.power), claim.time);
        // Where a stretch of time with room began that has not ended yet.
        let mut start: Option<Instant> = None;
        let mut along = limits.budget.along(after);
        for step in self.step_at(after)..self.from.len() {
            let mut from = self.from[step].max(after);
            if start.is_none() && from >= latest {
                return None;
            }
            if start.is_some_and(|since| since + time <= from || end <= from) {
                return start;
            }
            if self.nodes[step] < nodes {
                start = None;
                continue;
            }
            let until = self.from.get(step + 1).map_or(Instant::NEVER, |next| *next).min(end);
            let limit = limits.granting(power - self.power[step]);
            if let Some(since) = start {
                let Some(below) = along.first_below(limit, from, until) else { continue };
                if since + time <= below {
                    return start;
                }
                from = below;
            }
            start = along.first_stretch(limit, time, from, until);
            if start.is_some_and(|start| start >= latest) {
                return None;
            }
        }
        start
    }

    /// Which of the next [`PART`] steps have room, one bit each. To ask at each step what to do
    /// next would cost more, for what comes next is hard to guess.
    #[inline]
    fn room(&self, first: usize, claim: &Claim) -> u32 {
        let end = self.nodes.len().min(first + PART);
        let needed = i32x8::splat(narrow(claim.nodes) - 1);
        let enough = |eight: &[i32; 8]| i32x8::new(*eight).simd_gt(needed).to_bitmask();
        let (eights, rest) = self.nodes[first..end].as_chunks();
        let mut room = 0;
        for (place, eight) in eights.iter().enumerate() {
            room |= enough(eight) << (8 * place);
        }
        if !rest.is_empty() {
            // The last eight of all, of which the first were counted already.
            let last = match self.nodes[..end].last_chunk() {
                Some(eight) => enough(eight) >> (8 - rest.len()),
                None => rest
                    .iter()
                    .rev()
                    .fold(0, |room, nodes| room << 1 | u32::from(*nodes >= narrow(claim.nodes))),
            };
            room |= last << (8 * eights.len());
        }
        if !self.is_limited {
            return room;
        }
        let needed = signed(claim.power);
        let fed = self.power[first..end].iter().rev();
        room & fed.fold(0, |fed, power| fed << 1 | u32::from(*power >= needed))
    }

    /// Nodes and power free at an instant.
    pub(crate) fn at(&self, instant: Instant) -> (u32, Watts) {
        let step = self.step_at(instant);
        let granted = self.limits.as_ref().map_or(0, |limits| limits.at(instant));
        let milliwatts = (granted + self.power[step]).max(0) as u64;
        (self.nodes[step].max(0) as u32, Watts::from_milliwatts(milliwatts))
    }

    /// Whether the claim fits for its whole time from `start` on.
    pub fn fits(&self, start: Instant, claim: &Claim) -> bool {
        self.earliest(start, claim) == Some(start)
    }

    /// The most nodes that are ever free between two instants.
    pub(crate) fn most_nodes(&self, start: Instant, end: Instant) -> u32 {
        let first = self.step_at(start);
        let last = self.from.partition_point(|from| *from < end).max(first);
        self.nodes[first..last].iter().copied().max().unwrap_or(0).max(0) as u32
    }
}

/// How many steps are looked at together.
const PART: usize = 32;

/// Nodes as the table holds them. There is no machine of two billion nodes.
#[inline]
fn narrow(nodes: u32) -> i32 {
    nodes.min(i32::MAX as u32) as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::units::JobId;

    const SECOND: fn(u32) -> Instant = Instant::from_secs;

    fn claim(nodes: u32, watts: u32, seconds: u32) -> Claim {
        Claim { nodes, power: Watts::from_watts(watts), time: Span::from_secs(seconds) }
    }

    /// Ten nodes; 4 of them (400 W) until 20 s; 1 kW, from 30 s on 500 W.
    fn availability() -> Availability {
        let steps =
            vec![(SECOND(0), Watts::from_watts(1000)), (SECOND(30), Watts::from_watts(500))];
        let machine = Machine::of_processors(10).unwrap();
        let mut ledger = Ledger::new(&machine, Budget::from_steps(steps).unwrap());
        let point = OperatingPoint {
            cores: 1,
            nodes: 4,
            cap: Watts::from_watts(100),
            time: Span::from_secs(20),
            power: Watts::from_watts(400),
        };
        ledger.start(JobId(0), &point).unwrap();
        Availability::of(&ledger)
    }

    #[test]
    fn the_earliest_start_respects_nodes_power_and_later_limits() {
        let free = availability();
        assert_eq!(free.earliest(SECOND(0), &claim(6, 600, 5)), Some(SECOND(0)));
        assert_eq!(free.earliest(SECOND(0), &claim(7, 600, 5)), Some(SECOND(20)), "nodes");
        assert_eq!(free.earliest(SECOND(0), &claim(6, 700, 5)), Some(SECOND(20)), "power");
        assert_eq!(free.earliest(SECOND(0), &claim(6, 600, 31)), None, "the limit of 500 W");
        assert_eq!(free.earliest(SECOND(0), &claim(6, 500, 31)), Some(SECOND(0)));
        assert_eq!(free.earliest(SECOND(25), &claim(6, 600, 5)), Some(SECOND(25)));
        assert_eq!(free.earliest(SECOND(26), &claim(6, 600, 5)), None);
        assert_eq!(free.earliest(SECOND(0), &claim(7, 700, 0)), Some(SECOND(20)), "no time at all");
        assert!(free.fits(SECOND(20), &claim(10, 1000, 10)));
        assert!(!free.fits(SECOND(19), &claim(10, 1000, 10)));
    }

    #[test]
    fn taking_and_giving_back_leaves_no_trace() {
        let mut free = availability();
        let before = free.clone();
        let taken = claim(2, 200, 25);
        free.take(SECOND(10), &taken);
        assert_eq!(free.earliest(SECOND(0), &claim(6, 100, 11)), Some(SECOND(20)));
        assert_eq!(free.most_nodes(SECOND(0), SECOND(20)), 6);
        assert_eq!(free.most_nodes(SECOND(10), SECOND(20)), 4);
        free.give(SECOND(10), SECOND(35), 2, Watts::from_watts(200));
        assert_eq!(free, before);
    }

    #[test]
    fn what_comes_after_the_end_does_not_count() {
        let free = availability();
        // Before 20 s there is room for six nodes only, whatever follows.
        assert_eq!(
            free.earliest_before(SECOND(5), SECOND(20), SECOND(20), &claim(6, 600, 99)),
            Some(SECOND(5))
        );
        assert_eq!(
            free.earliest_before(SECOND(5), SECOND(20), SECOND(20), &claim(7, 600, 1)),
            None
        );
    }

    /// A day of limits that change each second costs what a job costs that runs meanwhile.
    #[test]
    fn limits_to_come_are_no_steps() {
        let limit = |second| (SECOND(second), Watts::from_watts(500 + second % 500));
        let machine = Machine::of_processors(10).unwrap();
        let budget = Budget::from_steps((0..86_400).map(limit).collect()).unwrap();
        let mut ledger = Ledger::new(&machine, budget);
        let point = OperatingPoint {
            cores: 1,
            nodes: 4,
            cap: Watts::from_watts(100),
            time: Span::from_secs(90_000),
            power: Watts::from_watts(400),
        };
        ledger.start(JobId(0), &point).unwrap();
        let free = Availability::of(&ledger);
        assert_eq!(free.from.len(), 2);
        assert_eq!(free.at(SECOND(250)), (6, Watts::from_watts(350)));
        // From 650 W on for as long as the limit rises; for longer only under the last limit.
        assert_eq!(free.earliest(SECOND(0), &claim(6, 250, 350)), Some(SECOND(150)));
        assert_eq!(free.earliest(SECOND(0), &claim(6, 250, 351)), Some(SECOND(86_150)));
        assert_eq!(free.earliest(SECOND(300), &claim(6, 250, 201)), Some(SECOND(650)));
        assert_eq!(free.earliest(SECOND(0), &claim(7, 100, 1)), Some(SECOND(90_000)));
    }

    #[test]
    fn the_past_is_forgotten() {
        let mut free = availability();
        free.forget_before(SECOND(25));
        assert_eq!(free.earliest(SECOND(25), &claim(10, 1000, 5)), Some(SECOND(25)));
        assert_eq!(free.from.len(), 1);
    }
}
