//! What will be free when, as far as is known: nodes and power as step functions of time.

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

/// What is free from an instant on, until the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    from: Instant,
    nodes: u32,
    /// In milliwatts; below zero where a limit falls under what is held already.
    power: i64,
}

/// Every power there is, the unlimited one included, is far below the largest `i64`.
#[inline]
fn signed(power: Watts) -> i64 {
    power.milliwatts() as i64
}

impl Step {
    #[inline]
    fn has_room_for(&self, claim: &Claim) -> bool {
        self.nodes >= claim.nodes && self.power >= signed(claim.power)
    }
}

/// Free nodes and free power over time, from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Availability {
    /// Ascending in time; the first is in force now, the last for ever.
    steps: Vec<Step>,
}

impl Availability {
    /// What the ledger knows: today's holders give back when they are expected to, and the
    /// budget changes when it says. A job that should have ended gives back at once.
    pub fn of(ledger: &Ledger) -> Self {
        let now = ledger.now();
        let mut times: Vec<Instant> = ledger
            .running()
            .iter()
            .map(|holding| holding.until.max(now))
            .chain(ledger.budget().changes_after(now).iter().map(|change| change.0))
            .chain([now])
            .collect();
        times.sort_unstable();
        times.dedup();

        let mut holders = ledger.running().iter().peekable();
        let mut nodes = ledger.free_nodes();
        let mut held: Watts = ledger.running().iter().map(|holding| holding.power).sum();
        let mut steps = Vec::with_capacity(times.len());
        for from in times {
            while let Some(holding) = holders.next_if(|holding| holding.until <= from) {
                nodes += holding.nodes;
                held -= holding.power;
            }
            let limit = ledger.for_jobs(ledger.budget().at(from));
            steps.push(Step { from, nodes, power: signed(limit) - signed(held) });
        }
        Availability { steps }
    }

    /// Forgets what is past: `now` becomes the first step's time.
    pub fn forget_before(&mut self, now: Instant) {
        let past = self.steps.partition_point(|step| step.from <= now).saturating_sub(1);
        self.steps.drain(..past);
        if self.steps[0].from < now {
            self.steps[0].from = now;
        }
    }

    /// Takes a claim out of what is free from `start` on. It must fit there.
    pub fn take(&mut self, start: Instant, claim: &Claim) {
        self.change(start, start + claim.time, |step| {
            step.nodes -= claim.nodes;
            step.power -= signed(claim.power);
        });
    }

    /// Gives back nodes and power between two instants.
    pub fn give(&mut self, start: Instant, end: Instant, nodes: u32, power: Watts) {
        self.change(start, end, |step| {
            step.nodes += nodes;
            step.power += signed(power);
        });
    }

    fn change(&mut self, start: Instant, end: Instant, change: impl Fn(&mut Step)) {
        let start = start.max(self.steps[0].from);
        if start >= end {
            return;
        }
        let first = self.split(start);
        let last = if end == Instant::NEVER { self.steps.len() } else { self.split(end) };
        for step in &mut self.steps[first..last] {
            change(step);
        }
        // A step equal to its neighbour says nothing: keep the list as short as the function.
        for place in [last, first] {
            if place > 0 && place < self.steps.len() {
                let (before, here) = (self.steps[place - 1], self.steps[place]);
                if (before.nodes, before.power) == (here.nodes, here.power) {
                    self.steps.remove(place);
                }
            }
        }
    }

    /// Makes sure that a step begins at `at`, and says which.
    fn split(&mut self, at: Instant) -> usize {
        let place = self.steps.partition_point(|step| step.from < at);
        if self.steps.get(place).is_none_or(|step| step.from != at) {
            let before = self.steps[place - 1];
            self.steps.insert(place, Step { from: at, ..before });
        }
        place
    }

    /// The first instant, not before `after`, from which the claim fits for its whole time.
    /// `None` if it never does.
    pub fn earliest(&self, after: Instant, claim: &Claim) -> Option<Instant> {
        self.earliest_before(after, Instant::NEVER, claim)
    }

    /// The same, but what is taken from `end` on does not count, and the answer comes before it.
    pub fn earliest_before(&self, after: Instant, end: Instant, claim: &Claim) -> Option<Instant> {
        let first = self.steps.partition_point(|step| step.from <= after).saturating_sub(1);
        let mut start: Option<Instant> = None;
        for step in &self.steps[first..] {
            if step.from >= end {
                break;
            }
            if start.is_some_and(|start| start + claim.time <= step.from) {
                break;
            }
            if !step.has_room_for(claim) {
                start = None;
            } else if start.is_none() {
                start = Some(step.from.max(after));
            }
        }
        start.filter(|start| *start < end)
    }

    /// Whether the claim fits for its whole time from `start` on.
    pub fn fits(&self, start: Instant, claim: &Claim) -> bool {
        self.earliest(start, claim) == Some(start)
    }

    /// The most nodes that are ever free between two instants.
    pub fn most_nodes(&self, start: Instant, end: Instant) -> u32 {
        let first = self.steps.partition_point(|step| step.from <= start).saturating_sub(1);
        let steps = self.steps[first..].iter().take_while(|step| step.from < end);
        steps.map(|step| step.nodes).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
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
            free.earliest_before(SECOND(5), SECOND(20), &claim(6, 600, 99)),
            Some(SECOND(5))
        );
        assert_eq!(free.earliest_before(SECOND(5), SECOND(20), &claim(7, 600, 1)), None);
    }

    #[test]
    fn the_past_is_forgotten() {
        let mut free = availability();
        free.forget_before(SECOND(25));
        assert_eq!(free.earliest(SECOND(25), &claim(10, 1000, 5)), Some(SECOND(25)));
        assert_eq!(free.steps.len(), 2);
    }
}
