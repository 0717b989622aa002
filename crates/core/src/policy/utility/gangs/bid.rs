//! Bids: how good it would be to start a job at a point of its menu now, by a heuristic.
//!
//! Bids are compared exactly, in integers. A bid never gets better as time goes on: what a job is worth
//! only falls, and its completion only gets later. So an old bid is a bound for what it is now.

use std::cmp::{Ordering, Reverse};

use smallvec::SmallVec;

use super::UtilitySpec;
use crate::job::Job;
use crate::mixing::mixed;
use crate::model::{OperatingPoint, TimedPoint, TimedPoints};
use crate::policy::View;
use crate::policy::easy_power::is_fed;
use crate::policy::utility::spec::{Heuristic, Measure, Order, States};
use crate::units::{Instant, JobId, Span};
use crate::utility::{Fading, Utility};

/// What a job of the usual weight is worth, in millionths for each thousandth of its weight: four.
const WORTH: u64 = 4000;

/// Who asks for less is as patient as who asks for this.
const LEAST_PATIENCE: Span = Span::from_secs(3600);

/// What a job is worth, by its age when it is complete.
pub fn worth(job: &Job) -> Fading {
    let start = Utility::from_millionths(WORTH * u64::from(job.terms.weight.thousandths()));
    let patience = job.requested.max(LEAST_PATIENCE);
    Fading::new(start, patience + patience, patience)
}

/// How good it would be to start a job at a point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bid {
    /// What is gained.
    gain: u64,
    /// For so much of what it is measured by; never nothing.
    cost: u64,
    /// Of equal ratios the smaller is better.
    then: (u64, u64),
    /// How long the job is believed to take.
    believed: Span,
    /// How long it may take.
    pub(super) time: Span,
    pub(super) job: JobId,
    /// The group of the job.
    pub(super) group: u32,
    /// The place of the point on the job's menu.
    place: u16,
}

impl Bid {
    /// The place of the point on the job's menu.
    #[inline]
    pub(super) fn place(&self) -> usize {
        usize::from(self.place)
    }

    /// The same, of a job in this group.
    pub(super) fn of_group(self, group: u32) -> Self {
        Bid { group, ..self }
    }
}

impl Ord for Bid {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let product = |gain: u64, cost: u64| u128::from(gain) * u128::from(cost);
        let by_ratio = product(self.gain, other.cost).cmp(&product(other.gain, self.cost));
        let rest = |bid: &Bid| Reverse((bid.then, bid.job, bid.place));
        by_ratio.then_with(|| rest(self).cmp(&rest(other)))
    }
}

impl PartialOrd for Bid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Bid {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Bid {}

/// A heuristic, as what it makes of jobs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    heuristic: Heuristic,
    seed: u64,
}

impl Rule {
    pub(super) fn of(spec: &UtilitySpec) -> Self {
        Rule { heuristic: spec.heuristic, seed: spec.seed }
    }

    /// Whether what a job may bid for depends on the limits of the budget.
    pub(super) fn heeds_limits(&self) -> bool {
        matches!(self.heuristic, Heuristic::Ordered { states: States::Fastest, .. })
    }

    /// The bids of a job for all points that it may have.
    pub(super) fn bids(
        &self,
        view: &View<'_>,
        id: JobId,
        ways: &TimedPoints,
    ) -> SmallVec<[Bid; 8]> {
        let places = match self.heeds_limits() {
            true => {
                let place = fed(view, id, ways);
                place..place + 1
            }
            false => 0..ways.len(),
        };
        let job = view.job(id);
        places.map(|place| self.bid(view.now, id, job, place, &ways[place])).collect()
    }

    fn bid(&self, now: Instant, id: JobId, job: &Job, place: usize, way: &TimedPoint) -> Bid {
        let place = u16::try_from(place).unwrap_or(u16::MAX);
        let believed = way.believed.max(OperatingPoint::SHORTEST);
        let order = u64::from(id.0);
        let (gain, cost, then) = match self.heuristic {
            // What it is worth is worked out below.
            Heuristic::Greedy(measure) => (0, cost(measure, way, believed), (0, 0)),
            // There is no price on energy here, and who wants one is refused before.
            Heuristic::Priced => (0, cost(Measure::PerEnergy, way, believed), (0, 0)),
            Heuristic::Random => {
                let drawn = mixed(self.seed ^ mixed(order));
                (1, 1, (drawn, mixed(drawn ^ u64::from(place))))
            }
            Heuristic::Ordered { order: Order::FirstCome, prioritized, .. } => {
                (level(job, prioritized), 1, (order, believed.millis()))
            }
            Heuristic::Ordered { order: Order::LastCome, prioritized, .. } => {
                (level(job, prioritized), 1, (u64::MAX - order, believed.millis()))
            }
        };
        let time = way.point.time;
        let mut bid = Bid { gain, cost, then, believed, time, job: id, group: 0, place };
        self.renew(&mut bid, now, job);
        bid
    }

    /// Brings a bid up to date; says whether it was not.
    #[inline]
    pub(super) fn renew(&self, bid: &mut Bid, now: Instant, job: &Job) -> bool {
        if !matches!(self.heuristic, Heuristic::Greedy(_) | Heuristic::Priced) {
            return false;
        }
        let completion = now + bid.believed;
        if bid.then.0 == completion.millis() {
            return false;
        }
        bid.gain = worth(job).at(completion.since(job.submit)).millionths();
        bid.then = (completion.millis(), 0);
        true
    }
}

/// What starts are compared by that are to be worth much.
fn cost(measure: Measure, way: &TimedPoint, believed: Span) -> u64 {
    let cost = match measure {
        Measure::Utility => 1,
        Measure::PerTime => u128::from(way.point.nodes) * u128::from(believed.millis()),
        Measure::PerEnergy => way.point.power.over(believed).microjoules(),
    };
    // Whoever takes more than eighteen terajoules is as bad as anybody who does.
    u64::try_from(cost).unwrap_or(u64::MAX).max(1)
}

/// By what jobs are told apart before their arrival is looked at.
fn level(job: &Job, prioritized: bool) -> u64 {
    if prioritized { u64::from(job.terms.weight.thousandths()) } else { 1 }
}

/// The place of the point that a job has if it is not slowed without need: the nominal one, or the fastest
/// that some limit can feed.
pub(super) fn fed(view: &View<'_>, job: JobId, ways: &TimedPoints) -> usize {
    let fed = ways.iter().enumerate().filter(|(_, way)| is_fed(view, job, &way.point));
    let best = fed.min_by_key(|(place, way)| (*place > 0, way.believed, way.point.power, *place));
    best.map_or(0, |(place, _)| place)
}
