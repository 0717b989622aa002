//! RMAP: power-aware backfilling on overprovisioned machines (Patki and others 2015).
//!
//! Rule: EASY backfilling of moldable jobs. Each job has a fair share of the power bound, by the
//! nodes it asks for: `weight · nodes / all nodes · bound`. Where the bound is going to change, it is
//! the lowest within the time the job asks for.
//!
//! - *traditional* knows nothing of that: it gives a job the nodes it asks for, all cores, the
//!   highest cap; or, if the bound cannot feed that, as many nodes as it can.
//! - *naive* gives a job the fastest configuration within its fair share and waits for it.
//! - *adaptive* does the same if that fits now. If not, it takes the fastest configuration that
//!   fits the free nodes and the free power (and the fair share), unless the job would take longer
//!   than its user asked for, by more than a tolerated slowdown: the job's own
//!   ([`Terms`](crate::job::Terms)), or the policy's for jobs without one.
//!
//! The blocked head of the queue gets its reservation for its naive (or traditional)
//! configuration. That power may be under-predicted is not the policy's business: it is given a bound
//! that is lower by a guard band ([`RmapSpec::guard`]).
//!
//! What it deliberately does not do: change the configuration of a job that runs.

mod alike;
mod spec;

pub use spec::{RmapSpec, Rule};

use alike::{Alike, Answer, Known, Requests, Wanted, Wish};

use crate::job::{Job, Tolerance};
use crate::ledger::Vacancy;
use crate::model::{OperatingPoint, TimedPoint, Within};
use crate::policy::slowable::every_candidate;
use crate::policy::{Ahead, Backfill, Chooser, Order, Room, View};
use crate::units::{JobId, Span, Watts};

/// EASY backfilling with configurations from profiles.
pub type Rmap = Backfill<Configurator>;

/// The choice of configurations.
#[derive(Clone)]
pub struct Configurator {
    rule: Rule,
    alike: Alike,
}

impl Rmap {
    /// The policy with this rule.
    pub fn with(rule: Rule) -> Self {
        Backfill::new(Configurator::of(rule))
    }
}

/// What jobs may hold in all for as long as this one asks for. Without a bound, every node may draw
/// what it can.
fn bound(view: &View<'_>, job: JobId) -> Watts {
    let until = view.now + view.job(job).requested;
    view.ledger.for_jobs(view.ledger.lowest_limit(until)).min(Watts::LARGEST)
}

/// The nodes by which a job is measured: those it asks for, rounded up to what there is a row for.
fn size(view: &View<'_>, job: JobId) -> u32 {
    view.nominal(job).nodes.max(view.job(job).nodes)
}

/// The power a job may have by the nodes it asks for and its weight; all there is at most.
pub(super) fn fair_share(view: &View<'_>, job: JobId) -> Watts {
    share_of(view, job, bound(view, job))
}

/// The same of what jobs may hold in all.
fn share_of(view: &View<'_>, job: JobId, bound: Watts) -> Watts {
    let all = view.ledger.total_nodes().max(1);
    let nodes = size(view, job).min(all);
    let part = match bound.checked_mul(nodes) {
        // A division of 128 bits takes many times as long.
        Some(product) => product.milliwatts() / u64::from(all),
        None => (u128::from(bound.milliwatts()) * u128::from(nodes) / u128::from(all)) as u64,
    };
    let part = Watts::from_milliwatts(part);
    view.job(job).terms.weight.times(part).min(bound)
}

/// Whether a room has this many nodes, and so much power within a share of it.
fn has(room: &Room, share: Watts, (nodes, power): (u32, Watts)) -> bool {
    nodes <= room.nodes() && power <= room.power().min(share)
}

impl Configurator {
    /// The choice by this rule.
    pub(super) fn of(rule: Rule) -> Self {
        Configurator { rule, alike: Alike::default() }
    }

    /// The configuration a job waits for that has this fair share of what jobs may hold in all.
    fn wanted(
        &self,
        view: &View<'_>,
        id: JobId,
        job: &Job,
        bound: Watts,
        share: Watts,
    ) -> TimedPoint {
        let found = match self.rule {
            Rule::Traditional => view.model.unthrottled(id, job, bound),
            Rule::Naive | Rule::Adaptive(_) => {
                view.model.fastest(id, job, view.ledger.total_nodes(), share)
            }
        };
        let found = found.unwrap_or_else(|| view.model.thriftiest(id, job));
        if !view.ledger.has_feeds() || view.ledger.fits_alone(id, &found.point) {
            return found;
        }
        // What feeds never carry is not worth waiting for.
        let mut carried = view.model.ways(id, job);
        carried.retain(|way| view.ledger.fits_alone(id, &way.point));
        let in_share = carried.iter().filter(|way| way.point.power <= share);
        let fastest = in_share.min_by_key(|way| (way.believed, way.point.power));
        let thriftiest = carried.iter().min_by_key(|way| (way.point.power, way.believed));
        fastest.or(thriftiest).copied().unwrap_or(found)
    }

    /// How much longer than asked for a job may take, if it may be given less than it waits for.
    fn tolerance(&self, job: &Job) -> Option<Tolerance> {
        let Rule::Adaptive(tolerance) = self.rule else { return None };
        Some(job.terms.tolerance.unwrap_or(tolerance))
    }

    /// The fewest nodes and the least power of all ways that jobs like this one put up with, whatever time they ask for.
    /// Where there is less, nothing else than what they want need be looked for.
    fn least_tolerated(
        view: &View<'_>,
        id: JobId,
        tolerance: Tolerance,
        known: &mut Option<(u32, Watts)>,
    ) -> (u32, Watts) {
        *known.get_or_insert_with(|| {
            let job = view.job(id);
            let ways = view.model.ways(id, job);
            let is_tolerated =
                |way: &&TimedPoint| view.model.least_request(id, job, way, tolerance).is_some();
            let tolerated = ways.iter().filter(is_tolerated).map(|way| &way.point);
            tolerated.fold((u32::MAX, Watts::UNLIMITED), |(nodes, power), point| {
                (nodes.min(point.nodes), power.min(point.power))
            })
        })
    }

    /// The fastest ways in what is free and in what a reservation leaves over. What ends before
    /// the reservation may use all that is free, what does not, what is left over at it.
    fn possible(
        view: &View<'_>,
        id: JobId,
        job: &Job,
        room: &Room,
        share: Watts,
    ) -> [Option<TimedPoint>; 2] {
        let free = (room.nodes(), room.power());
        let left_over = room.unreserved();
        let within =
            |(nodes, power): (u32, Watts)| view.model.fastest(id, job, nodes, power.min(share));
        // Where nothing is reserved, both are the same.
        [within(free), (left_over != free).then(|| within(left_over)).flatten()]
    }

    /// What a job wants now, for the time it asks for, unless it is known from when as much could be had.
    fn wish(&self, view: &View<'_>, id: JobId, known: &mut Option<Wish>) -> Wish {
        let (job, bound, nodes) = (view.job(id), bound(view, id), view.ledger.total_nodes());
        let requested = job.requested;
        match *known {
            Some(wish) if (wish.bound, wish.nodes, wish.requested) == (bound, nodes, requested) => {
                wish
            }
            _ => {
                let share = share_of(view, id, bound);
                let point = self.wanted(view, id, job, bound, share).point;
                *known.insert(Wish { bound, nodes, requested, share, point })
            }
        }
    }

    /// The point at which a job may start now; with what is known of jobs like it, if somebody keeps that.
    fn point(
        &self,
        view: &View<'_>,
        id: JobId,
        room: &Room,
        known: Option<&mut Known>,
    ) -> Option<OperatingPoint> {
        let job = view.job(id);
        let mut unknown = None;
        let (wish, least) = match known {
            Some(known) => (&mut known.wish, Some(&mut known.least_tolerated)),
            None => (&mut unknown, None),
        };
        let Wish { share, point: wanted, .. } = self.wish(view, id, wish);
        if room.admits(&wanted) {
            return Some(wanted);
        }
        let tolerance = self.tolerance(job)?;
        let least = least.map(|known| Self::least_tolerated(view, id, tolerance, known));
        if least.is_some_and(|least| !has(room, share, least)) {
            return None;
        }
        let may_start = |way: &TimedPoint| {
            tolerance.accepts(way.believed, job.requested) && room.admits(&way.point)
        };
        if room.is_changing() {
            // What draws less or has fewer nodes may fit when the fastest does not.
            let within = Within {
                nodes: room.nodes(),
                power: room.power().min(share),
                believed: tolerance.longest(job.requested),
            };
            return view.model.fastest_within(id, job, &within, &|way| room.admits(&way.point));
        }
        let mut possible = Self::possible(view, id, job, room, share).into_iter().flatten();
        possible.find(may_start).map(|way| way.point)
    }

    /// For which requested times jobs like this one may start now, if the budget does not change:
    /// a job's limit is what it asks for or more, and it may ask for too little to be slowed.
    fn requests(&self, view: &View<'_>, id: JobId, room: &Room, known: &mut Known) -> Requests {
        let job = &Job { requested: Span::ZERO, ..*view.job(id) };
        let limit = view.ledger.limit();
        // It lasts as long as the limit does.
        let Wanted { share, way, .. } = match known.wanted {
            Some(wanted) if wanted.limit == limit => wanted,
            _ => {
                let bound = bound(view, id);
                let share = share_of(view, id, bound);
                let way = self.wanted(view, id, job, bound, share);
                *known.wanted.insert(Wanted { limit, share, way })
            }
        };
        let mut requests = Requests::default();
        let accept = |requests: &mut Requests, way: &TimedPoint, least: Span| {
            let limit = room.longest(way.point.nodes, way.point.power);
            let longest = limit.and_then(|limit| view.model.longest_request(id, job, way, limit));
            if let Some(longest) = longest {
                requests.accept(least, longest);
            }
        };
        accept(&mut requests, &way, Span::ZERO);
        let tolerance = self.tolerance(job).filter(|_| !requests.has_all());
        let is_possible = |tolerance: &Tolerance| {
            let least = Self::least_tolerated(view, id, *tolerance, &mut known.least_tolerated);
            has(room, share, least)
        };
        if let Some(tolerance) = tolerance.filter(is_possible) {
            for way in Self::possible(view, id, job, room, share).iter().flatten() {
                if let Some(least) = view.model.least_request(id, job, way, tolerance) {
                    accept(&mut requests, way, least);
                }
            }
        }
        requests
    }
}

impl Chooser for Configurator {
    fn choose(&mut self, view: &View<'_>, job: JobId, room: &Room) -> Option<OperatingPoint> {
        self.point(view, job, room, None)
    }

    fn reserve(
        &mut self,
        view: &View<'_>,
        job: JobId,
        ahead: &Ahead<'_>,
    ) -> Option<(OperatingPoint, Vacancy)> {
        let Wish { point, .. } = self.wish(view, job, &mut None);
        Some((point, ahead.vacancy(&point)?))
    }

    fn candidate<O: Order>(
        &mut self,
        view: &View<'_>,
        order: &O,
        after: JobId,
        room: &Room,
    ) -> Option<JobId> {
        // Those that are alike are kept in an order that stays.
        if order.moves() {
            return every_candidate(view, order, after, room);
        }
        let mut alike = std::mem::take(&mut self.alike);
        let found = alike.first(order.place(after), room, |job, known| match room.is_changing() {
            false => Answer::Requests(self.requests(view, job, room, known)),
            true => Answer::Job(self.point(view, job, room, Some(known)).is_some()),
        });
        self.alike = alike;
        found
    }

    fn begin<O: Order>(&mut self, view: &View<'_>, order: &O) {
        if !order.moves() {
            self.alike.begin(view, order);
        }
    }

    fn left(&mut self, job: JobId) {
        self.alike.remove(job);
    }
}
