//! The schedule beside one that tries every time for every job.

use proptest::prelude::*;

use super::*;
use crate::units::Watts;

const NODES: u32 = 32;
const POWER: u64 = 3_000;

/// A job that waits or runs.
#[derive(Clone, Copy, Debug)]
struct Stay {
    job: JobId,
    claim: Claim,
    start: Instant,
    runs: bool,
}

impl Stay {
    fn end(&self) -> Instant {
        self.start + self.claim.time
    }
}

/// The same schedule twice.
struct Both {
    now: Instant,
    timeline: Timeline,
    /// In the order of the queue.
    stays: Vec<Stay>,
}

impl Both {
    fn fits(&self, stay: &Stay) -> bool {
        let others = || self.stays.iter().filter(|other| other.job != stay.job);
        let begins = others().map(|other| other.start).chain([stay.start]);
        begins.filter(|at| *at >= stay.start && *at < stay.end()).all(|at| {
            let there = others().filter(|other| other.start <= at && at < other.end());
            let (nodes, power) = there.fold((0, 0), |(nodes, power), other| {
                (nodes + other.claim.nodes, power + other.claim.power.milliwatts())
            });
            nodes + stay.claim.nodes <= NODES && power + stay.claim.power.milliwatts() <= POWER
        })
    }

    /// The earliest of all times at which anything ends, and now.
    fn earliest(&self, stay: &Stay) -> Instant {
        let ends = self.stays.iter().filter(|other| other.job != stay.job).map(Stay::end);
        let times = ends.filter(|end| *end > self.now).chain([self.now]);
        times.filter(|at| self.fits(&Stay { start: *at, ..*stay })).min().expect("the last end")
    }

    fn compress(&mut self) {
        self.timeline.compress();
        for place in 0..self.stays.len() {
            let stay = self.stays[place];
            if !stay.runs {
                self.stays[place].start = self.earliest(&stay).min(stay.start);
            }
        }
    }

    /// Starts those whose time has come, and compares all starts.
    fn settle(&mut self) {
        let mut due = Vec::new();
        let next = self.timeline.due(&mut due);
        due.sort_unstable();
        let now = self.now;
        let waiting = self.stays.iter().filter(|stay| !stay.runs);
        let expected: Vec<_> =
            waiting.clone().filter(|stay| stay.start == now).map(|stay| stay.job).collect();
        assert_eq!(due, expected);
        for stay in waiting.clone() {
            let booking = self.timeline.booking(stay.job).expect("it waits");
            assert_eq!(self.timeline.steps.from(booking.begin), stay.start, "{:?}", stay.job);
        }
        assert_eq!(next, waiting.map(|stay| stay.start).filter(|start| *start > now).min());
        for job in due {
            self.timeline.start(job);
        }
        self.stays.iter_mut().for_each(|stay| stay.runs |= stay.start == now);
    }

    /// Time passes, with all that is to happen meanwhile.
    fn pass(&mut self, until: Instant) {
        loop {
            let runs = |stay: &&Stay| stay.runs;
            let ends = self.stays.iter().filter(runs).map(Stay::end);
            let starts = self.stays.iter().filter(|stay| !stay.runs).map(|stay| stay.start);
            self.now = ends.chain(starts).chain([until]).min().unwrap_or(until);
            self.timeline.advance(self.now);
            let before = self.stays.len();
            let now = self.now;
            self.stays.retain(|stay| !stay.runs || stay.end() > now);
            if self.stays.len() < before {
                self.compress();
            }
            self.settle();
            if self.now == until {
                return;
            }
        }
    }
}

proptest! {
    /// Every job is reserved for the time it is reserved for if all are considered in the order of
    /// the queue, and every time is tried for each.
    #[test]
    fn it_agrees_with_trying_every_time(
        events in prop::collection::vec(
            (0u64..400, 1u32..=NODES, 60u64..100, 1u64..3_000, any::<prop::sample::Index>(), 0u8..5),
            1..160,
        ),
        unit in 1u64..20_000,
    ) {
        let timeline = Timeline::new(Instant::ZERO, i64::from(NODES), POWER as i64);
        let mut both = Both { now: Instant::ZERO, timeline, stays: Vec::new() };
        for (number, (gap, nodes, per_node, time, who, kind)) in events.into_iter().enumerate() {
            both.pass(both.now + Span::from_millis(gap * unit));
            let running: Vec<_> = both.stays.iter().filter(|stay| stay.runs).copied().collect();
            // Many wait, and most of those who run end early.
            if kind < 2 && both.stays.len() > 12 && !running.is_empty() {
                let gone = running[who.index(running.len())];
                both.stays.retain(|stay| stay.job != gone.job);
                let Claim { nodes, power, .. } = gone.claim;
                both.timeline.release(&Holding { until: gone.end(), job: gone.job, nodes, power });
                both.compress();
            } else {
                let nodes = if kind == 4 { nodes } else { nodes / 4 + 1 };
                let power = Watts::from_milliwatts(u64::from(nodes) * per_node);
                let claim = Claim { nodes, power, time: Span::from_millis(time * unit) };
                let claim = if claim.power.milliwatts() > POWER {
                    Claim { power: Watts::from_milliwatts(POWER), ..claim }
                } else {
                    claim
                };
                let job = JobId(number as u32);
                let stay = Stay { job, claim, start: Instant::NEVER, runs: false };
                let start = both.earliest(&stay);
                both.stays.push(Stay { start, ..stay });
                both.timeline.reserve(job, &claim);
            }
            both.settle();
        }
    }
}
