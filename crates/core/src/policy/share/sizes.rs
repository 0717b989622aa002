//! Sizes may be chosen: a job counts what its choice costs everybody who waits.
//!
//! Rule: backfilling with one reservation. A point on n nodes with p watts that takes t and can be had after a
//! wait of a costs a + t · (1 + Q · max(n/N, p/B)), where N nodes and B watts are the machine's and Q is the
//! number of jobs that wait and of those that run, which is how many are likely to come meanwhile (Little's law): each of them
//! waits longer by the part of the machine that is taken. A job starts at the cheapest point that fits now. The head of the
//! queue gets its reservation at the cheapest of all. While it is `calm`, a job starts at a point at which
//! it is as fast as it was asked for, if one fits.
//!
//! With `fair=on` a job looks only at points within its own share of the power, as in RMAP.
//!
//! What it deliberately does not do: change jobs that run, or wait for a point that would be cheaper later. What is
//! expected of later is mostly wrong, since users ask for more time than they need.

use crate::ledger::Vacancy;
use crate::model::{OperatingPoint, TimedPoint};
use crate::policy::calm::is_calm;
use crate::policy::rmap::fair_share;
use crate::policy::slowable::every_candidate;
use crate::policy::{Ahead, Chooser, Order, Room, View};
use crate::units::{JobId, Span, Watts};

/// Sizes and settings by what they cost everybody.
#[derive(Clone, Debug, Default)]
pub(crate) struct BySize {
    /// Whether each job keeps within its share of the power.
    fair: bool,
}

impl BySize {
    pub(crate) fn new(fair: bool) -> Self {
        BySize { fair }
    }

    /// The points that a job may look at.
    fn offered(&self, view: &View<'_>, job: JobId) -> impl Iterator<Item = TimedPoint> {
        let ways = view.model.ways(job, view.job(job));
        let most = match self.fair {
            // Whoever cannot run within it gets the least there is.
            true => {
                fair_share(view, job).max(view.model.thriftiest(job, view.job(job)).point.power)
            }
            false => Watts::LARGEST,
        };
        ways.into_iter().filter(move |way| way.point.power <= most)
    }

    /// The longest that a job should take: while it is calm, as long as it is believed to take as it asks.
    fn longest(&self, view: &View<'_>, job: JobId) -> Option<Span> {
        if self.fair || !is_calm(view) {
            return None;
        }
        let asked = view.nominal(job);
        self.offered(view, job).find(|way| way.point == asked).map(|way| way.believed)
    }
}

/// What points cost those who wait.
struct Prices {
    nodes: u128,
    power: u128,
    jobs: u128,
}

/// What a point costs: comparable for points of one turn alone.
type Price = u128;

impl Prices {
    fn of(view: &View<'_>) -> Self {
        let power = view.ledger.for_jobs(view.ledger.limit()).min(Watts::LARGEST);
        Prices {
            nodes: u128::from(view.ledger.total_nodes().max(1)),
            power: u128::from(power.milliwatts().max(1)),
            jobs: (view.queue.len() + view.ledger.running().len()) as u128,
        }
    }

    /// The cost of a point that can be had after a wait, times all nodes and all watts, so that it is exact.
    fn price(&self, way: &TimedPoint, wait: Span) -> Price {
        let Prices { nodes, power, jobs } = self;
        let part_of_nodes = u128::from(way.point.nodes) * power;
        let part_of_power = u128::from(way.point.power.milliwatts()) * nodes;
        let time = u128::from(way.believed.millis());
        let own = (u128::from(wait.millis()) + time).saturating_mul(nodes * power);
        let others = time.saturating_mul(*jobs).saturating_mul(part_of_nodes.max(part_of_power));
        own.saturating_add(others)
    }
}

impl Chooser for BySize {
    fn choose(&mut self, view: &View<'_>, job: JobId, room: &Room) -> Option<OperatingPoint> {
        let prices = Prices::of(view);
        let longest = self.longest(view, job);
        let at_once = self.offered(view, job).filter(|way| room.admits(&way.point));
        let is_slower = |way: &TimedPoint| longest.is_some_and(|longest| way.believed > longest);
        let priced =
            at_once.map(|way| (is_slower(&way), prices.price(&way, Span::ZERO), way.point));
        let best = priced
            .min_by_key(|(is_slower, price, point)| (*is_slower, *price, point.power, point.nodes));
        best.map(|(_, _, point)| point)
    }

    fn reserve(
        &mut self,
        view: &View<'_>,
        job: JobId,
        ahead: &Ahead<'_>,
    ) -> Option<(OperatingPoint, Vacancy)> {
        let prices = Prices::of(view);
        let later = self.offered(view, job).filter_map(|way| {
            let then = ahead.vacancy(&way.point)?;
            Some((prices.price(&way, then.at.since(view.now)), way.point, then))
        });
        let best =
            later.min_by_key(|(price, point, then)| (*price, then.at, point.power, point.nodes));
        best.map(|(_, point, then)| (point, then))
    }

    #[inline]
    fn candidate<O: Order>(
        &mut self,
        view: &View<'_>,
        order: &O,
        after: JobId,
        room: &Room,
    ) -> Option<JobId> {
        every_candidate(view, order, after, room)
    }

    /// What a point costs depends on who waits.
    #[inline]
    fn refusals_outlive_starts(&self, _view: &View<'_>, _held: Watts) -> bool {
        false
    }

    #[inline]
    fn refusals_outlive_arrivals(&self) -> bool {
        false
    }
}
