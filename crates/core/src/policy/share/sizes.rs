//! Sizes may be chosen: a job counts what its choice costs everybody who waits.
//!
//! Rule: backfilling with one reservation. A point on n nodes with p watts that takes t and can be had after a
//! wait of a costs a + t · (1 + Q · max(n/N, p/B)), where N nodes and B watts are the machine's and Q is the
//! number of jobs that wait: each of them waits longer by the part of the machine that is taken. A job starts
//! now if the cheapest point that fits now costs no more than the cheapest one that it could wait for. The head
//! of the queue gets its reservation at the cheapest of all.
//!
//! With `fair=on` a job looks only at points within its own share of the power, as in RMAP.
//!
//! What it deliberately does not do: change jobs that run.

use crate::ledger::{Holding, Vacancy};
use crate::model::{OperatingPoint, TimedPoint};
use crate::policy::rmap::fair_share;
use crate::policy::slowable::every_candidate;
use crate::policy::{Ahead, Chooser, Order, Room, View};
use crate::units::{JobId, Span, Watts};

/// Sizes and settings by what they cost everybody.
#[derive(Clone, Debug, Default)]
pub(crate) struct BySize {
    fair: bool,
    /// What jobs started in this turn will hold, soonest back first.
    started: Vec<Holding>,
    /// The points they start at.
    points: Vec<OperatingPoint>,
    /// What is free in this turn while limits are to come, if nothing is kept for the head of the queue; once somebody
    /// asked.
    unreserved: Option<Room>,
}

impl BySize {
    /// The chooser; `fair` keeps each job within its share of the power.
    pub(crate) fn new(fair: bool) -> Self {
        BySize { fair, ..BySize::default() }
    }

    /// What is free while limits are to come, if nothing is kept for the head of the queue.
    fn unreserved<'a>(
        points: &[OperatingPoint],
        known: &'a mut Option<Room>,
        view: &View<'_>,
    ) -> &'a Room {
        known.get_or_insert_with(|| {
            let mut room = Room::of(view);
            for point in points {
                room.take(point);
            }
            room
        })
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
            waiting: view.queue.len().saturating_sub(started) as u128,
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
        let prices = Prices::of(view, self.started.len());
        let at_once = self.offered(view, job).filter(|way| room.admits(&way.point));
        let at_once = at_once.map(|way| (prices.price(&way, Span::ZERO), way.point));
        let (price, point) =
            at_once.min_by_key(|(price, point)| (*price, point.power, point.nodes))?;
        let mut known = self.unreserved.take();
        let unreserved = match room.is_changing() {
            true => Self::unreserved(&self.points, &mut known, view),
            false => room,
        };
        let ahead = Ahead::of(view, unreserved, &self.started);
        let is_cheaper_later = self.offered(view, job).any(|way| {
            // The look ahead is worth its time only for those that would be cheaper without a wait.
            prices.price(&way, Span::ZERO) < price
                && ahead.vacancy(&way.point).is_some_and(|then| {
                    then.at > view.now && prices.price(&way, then.at.since(view.now)) < price
                })
        });
        self.unreserved = known;
        if is_cheaper_later {
            return None;
        }
        let until = view.now + point.time;
        let holding = Holding { until, job, nodes: point.nodes, power: point.power };
        let place = self.started.partition_point(|other| (other.until, other.job) < (until, job));
        self.started.insert(place, holding);
        self.points.push(point);
        if let Some(room) = &mut self.unreserved {
            room.take(&point);
        }
        Some(point)
    }

    fn reserve(
        &mut self,
        view: &View<'_>,
        job: JobId,
        ahead: &Ahead<'_>,
    ) -> Option<(OperatingPoint, Vacancy)> {
        let prices = Prices::of(view, self.started.len());
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

    fn begin<O: Order>(&mut self, _view: &View<'_>, _order: &O) {
        self.started.clear();
        self.points.clear();
        self.unreserved = None;
    }
}
