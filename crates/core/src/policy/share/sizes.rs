//! Sizes may be chosen: a job counts what its choice costs everybody who waits.
//!
//! Rule: backfilling with one reservation. A point on n nodes with p watts that takes t and can be had after a
//! wait of a costs a + t · (1 + Q · max(n/N, p/B)), where N nodes and B watts are the machine's and Q is the
//! number of jobs that wait, with those that are likely to come meanwhile: each of them waits longer by the part of the
//! machine that is taken. A job starts at the cheapest point that fits now. The head of the queue gets its reservation
//! at the cheapest of all. While it is [calm](crate::policy::calm), a job starts as it was asked for, if that fits.
//!
//! With `fair=on` a job looks only at points within its own share of the power, as in RMAP.
//!
//! What it deliberately does not do: change jobs that run, or wait for a point that would be cheaper later. What is
//! expected of later is mostly wrong, since users ask for more time than they need.

use crate::ledger::Vacancy;
use crate::model::{OperatingPoint, TimedPoint};
use crate::policy::calm::Calm;
use crate::policy::rmap::fair_share;
use crate::policy::slowable::every_candidate;
use crate::policy::{Ahead, Chooser, Order, Room, View};
use crate::units::{JobId, Span, Watts};

/// Besides those that wait, a choice costs so many jobs that come while the job runs.
const TO_COME: u128 = 16;

/// Sizes and settings by what they cost everybody.
#[derive(Clone, Debug, Default)]
pub struct BySize {
    fair: bool,
    calm: Calm,
    /// How many jobs started in this turn.
    started: usize,
}

impl BySize {
    /// The chooser; `fair` keeps each job within its share of the power.
    pub fn new(fair: bool) -> Self {
        BySize { fair, ..BySize::default() }
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

    /// The point that a job asks for, while that is what it should get.
    fn as_asked(&self, view: &View<'_>, job: JobId) -> Option<OperatingPoint> {
        (self.calm.is_calm(view.now) && !self.fair).then(|| view.nominal(job))
    }
}

/// What points cost those who wait.
struct Prices {
    nodes: u128,
    power: u128,
    waiting: u128,
}

/// What a point costs: comparable for points of one turn alone.
type Price = u128;

impl Prices {
    /// With this many jobs about to start, which do not wait any more.
    fn of(view: &View<'_>, started: usize) -> Self {
        let power = view.ledger.for_jobs(view.ledger.limit()).min(Watts::LARGEST);
        Prices {
            nodes: u128::from(view.ledger.total_nodes().max(1)),
            power: u128::from(power.milliwatts().max(1)),
            waiting: view.queue.len().saturating_sub(started) as u128 + TO_COME,
        }
    }

    /// The cost of a point that can be had after a wait, times all nodes and all watts, so that it is exact.
    fn price(&self, way: &TimedPoint, wait: Span) -> Price {
        let Prices { nodes, power, waiting } = self;
        let part_of_nodes = u128::from(way.point.nodes) * power;
        let part_of_power = u128::from(way.point.power.milliwatts()) * nodes;
        let time = u128::from(way.believed.millis());
        let own = (u128::from(wait.millis()) + time).saturating_mul(nodes * power);
        let others = time.saturating_mul(*waiting).saturating_mul(part_of_nodes.max(part_of_power));
        own.saturating_add(others)
    }
}

impl Chooser for BySize {
    fn choose(&mut self, view: &View<'_>, job: JobId, room: &Room) -> Option<OperatingPoint> {
        let asked = self.as_asked(view, job).filter(|point| room.admits(point));
        let cheapest = || {
            let prices = Prices::of(view, self.started);
            let at_once = self.offered(view, job).filter(|way| room.admits(&way.point));
            let at_once = at_once.map(|way| (prices.price(&way, Span::ZERO), way.point));
            at_once.min_by_key(|(price, point)| (*price, point.power, point.nodes))
        };
        let point = asked.or_else(|| cheapest().map(|(_, point)| point))?;
        self.started += 1;
        Some(point)
    }

    fn reserve(
        &mut self,
        view: &View<'_>,
        job: JobId,
        ahead: &Ahead<'_>,
    ) -> Option<(OperatingPoint, Vacancy)> {
        let prices = Prices::of(view, self.started);
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

    fn begin<O: Order>(&mut self, view: &View<'_>, _order: &O) {
        self.calm.look(view);
        self.started = 0;
    }
}
