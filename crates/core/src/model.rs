//! Models: how a job may run and what then happens.
//!
//! A model turns a job into a [`Menu`] of [`OperatingPoint`]s; a policy picks one. What the pick
//! leads to is the model's [`Outcome`].

use std::ops::Deref;

use smallvec::SmallVec;

use crate::freedom::Freedoms;
use crate::job::{Job, Tolerance};
use crate::seats::{Missing, Seat};
use crate::units::{JobId, Share, Span, Watts};

mod caps;
mod dvfs;
#[doc(hidden)]
pub mod elastic;
#[doc(hidden)]
mod heterogeneous;
#[doc(hidden)]
pub mod pass;
#[doc(hidden)]
mod profiled;
mod progress;
mod rigid;
mod varied;
mod work;

pub use caps::{Caps, NodeCap};
pub use dvfs::{Beta, Dvfs, Knowledge, Oversized};
#[doc(hidden)]
pub use elastic::{Elastic, NodeCaps};
#[doc(hidden)]
pub use heterogeneous::{Heterogeneous, task_type};
#[doc(hidden)]
pub use profiled::{Beliefs, Profiled, ProfiledError};
pub use progress::Progress;
pub use rigid::Rigid;
pub use varied::Varied;
pub use work::Work;

/// One way to run a job: what it holds, for how long at most, and what it draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatingPoint {
    /// Nodes it holds.
    pub nodes: u32,
    /// Cores it uses in each of them.
    pub cores: u32,
    /// The most each of them may draw.
    pub cap: Watts,
    /// How long the job is believed to hold them; its limit. At least
    /// [`OperatingPoint::SHORTEST`].
    pub time: Span,
    /// Their total power.
    pub power: Watts,
}

impl OperatingPoint {
    /// Even a job with nothing to do needs its nodes for a moment: a reservation of no length
    /// at all would keep nobody from taking them.
    pub const SHORTEST: Span = Span::from_millis(1);

    /// A job on all cores of nodes that draw `cap` each.
    #[inline]
    fn new(nodes: u32, cores: u32, cap: Watts, time: Span) -> Self {
        OperatingPoint {
            nodes,
            cores,
            cap,
            time: time.max(OperatingPoint::SHORTEST),
            // A job larger than any machine is turned away by its nodes before its power counts.
            power: cap.checked_mul(nodes).unwrap_or(Watts::LARGEST),
        }
    }
}

/// What really happens to a job at an operating point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How long it would run if nothing stopped it.
    pub run_time: Span,
    /// Its power.
    pub power: Watts,
}

/// The ways a job may run, nominal first; never empty. It reads as a slice of points.
#[derive(Clone, Debug)]
pub struct Menu(SmallVec<[OperatingPoint; 8]>);

impl Menu {
    /// The nominal point, and the others.
    #[inline]
    pub fn new(nominal: OperatingPoint, others: impl IntoIterator<Item = OperatingPoint>) -> Self {
        let mut points = SmallVec::new();
        points.push(nominal);
        points.extend(others);
        Menu(points)
    }
}

impl Deref for Menu {
    type Target = [OperatingPoint];

    #[inline]
    fn deref(&self) -> &[OperatingPoint] {
        &self.0
    }
}

/// How many times as long something takes: a factor of at least one, in steps of 2⁻³² so that the
/// same factor gives the same time everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stretch(u64);

impl Stretch {
    /// As long as before.
    pub const NONE: Stretch = Stretch(1 << 32);

    /// So many times as long; below once, or no number at all, counts as once.
    pub fn times(factor: f64) -> Self {
        Stretch(((factor * Stretch::NONE.0 as f64).round() as u64).max(Stretch::NONE.0))
    }

    /// The stretched time, rounded up. It never passes [`Span::FOREVER`].
    #[inline]
    pub fn of(self, time: Span) -> Span {
        let product = u128::from(time.millis()) * u128::from(self.0);
        Span::from_millis(u64::try_from(product.div_ceil(1 << 32)).unwrap_or(u64::MAX))
    }

    /// The longest time that, stretched, is no longer than this one; forever stays forever.
    #[inline]
    pub fn undone(self, time: Span) -> Span {
        if self == Stretch::NONE || time == Span::FOREVER {
            return time;
        }
        // Wide division is slow; 49 days do without.
        let millis = match u32::try_from(time.millis()) {
            Ok(millis) => (u64::from(millis) << 32) / self.0,
            Err(_) => ((u128::from(time.millis()) << 32) / u128::from(self.0)) as u64,
        };
        Span::from_millis(millis)
    }
}

/// What all jobs have in common at one place of their menus: none draws less than this a node
/// there, and none is stretched less against its nominal time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rung {
    /// At least this much a node; never nothing.
    pub node_power: Watts,
    /// At least so many times the nominal time.
    pub stretch: Stretch,
    /// At least this part of what [`Footprint::power`] says; none where that says nothing.
    pub part: Share,
    /// Whether no job takes less on any place of its menu than [`Footprint::time`] says. Where limits have a margin that
    /// not all places have, some do.
    pub is_shortest: bool,
}

impl Rung {
    /// A place at which every node draws the same, whatever job it runs.
    pub const fn alike(node_power: Watts, stretch: Stretch) -> Self {
        Rung { node_power, stretch, part: Share::percent(0), is_shortest: true }
    }
}

/// How jobs respond to nodes, frequency and power. A job is known by its id and by what its user
/// asks for.
pub trait Model: Send + Sync {
    /// The point a user means by the request alone: the nodes asked for, unthrottled.
    fn nominal(&self, id: JobId, job: &Job) -> OperatingPoint;

    /// A job came that was not known when the model was made. Whoever asks about jobs that were neither
    /// known nor learned of gets the most cautious answer, or none that can be relied on.
    fn learn(&mut self, _id: JobId, _job: &Job) {}

    /// The next job that comes asks this of nodes that are of several kinds, or that it shares; it is to be
    /// [learned](Self::learn) of then.
    fn take_seat(&mut self, _seat: Result<Seat, Missing>) {}

    /// Every way a job may run, the nominal one first.
    fn menu(&self, id: JobId, job: &Job) -> Menu;

    /// The same, with how long the job is believed to take at each point.
    fn ways(&self, id: JobId, job: &Job) -> TimedPoints {
        self.menu(id, job).iter().map(|point| TimedPoint::at(*point)).collect()
    }

    /// What happens to a job, which runs for `run_time` at its nominal point, when it runs at
    /// `point` instead.
    fn outcome(&self, id: JobId, job: &Job, run_time: Span, point: &OperatingPoint) -> Outcome;

    /// Bounds for each place of the menus, the nominal one first; never empty.
    fn rungs(&self) -> &[Rung];

    /// Whether jobs draw unlike amounts of power for a node, so that [`Footprint::power`] says something.
    fn draws_differ(&self) -> bool {
        self.rungs().iter().any(|rung| rung.part > Share::percent(0))
    }

    /// The least of each resource over the job's menu: whatever does not offer this much cannot
    /// run it.
    fn footprint(&self, id: JobId, job: &Job) -> Footprint {
        let menu = self.menu(id, job);
        let first = menu[0];
        Footprint {
            nodes: menu.iter().map(|point| point.nodes).fold(first.nodes, u32::min),
            time: menu.iter().map(|point| point.time).fold(first.time, Span::min),
            power: Watts::ZERO,
        }
    }

    /// The fewest nodes that a job can run on: those of its [footprint](Model::footprint).
    fn fewest_nodes(&self, id: JobId, job: &Job) -> u32 {
        self.footprint(id, job).nodes
    }

    /// Whether a job is to be let in, if these are the points at which it can be fed.
    fn may_enter(&self, id: JobId, job: &Job, is_fed: &dyn Fn(&OperatingPoint) -> bool) -> bool {
        self.menu(id, job).iter().any(is_fed)
    }

    /// The fastest way to run a job on at most this many nodes within so much power. Of ways that
    /// are equally fast, the one that draws least.
    fn fastest(&self, id: JobId, job: &Job, nodes: u32, power: Watts) -> Option<TimedPoint> {
        let menu = self.menu(id, job);
        let fits = menu.iter().filter(|point| point.nodes <= nodes && point.power <= power);
        fits.min_by_key(|point| (point.time, point.power)).map(|point| TimedPoint::at(*point))
    }

    /// The point of the fastest way to run a job that is accepted. Of ways that are equally fast,
    /// the one that draws least.
    fn fastest_of(
        &self,
        id: JobId,
        job: &Job,
        accepts: &dyn Fn(&TimedPoint) -> bool,
    ) -> Option<OperatingPoint> {
        let menu = self.menu(id, job);
        let ways = menu.iter().map(|point| TimedPoint::at(*point)).filter(accepts);
        ways.min_by_key(|way| (way.believed, way.point.power)).map(|way| way.point)
    }

    /// The same of those within bounds. Nobody need work out much about others.
    fn fastest_within(
        &self,
        id: JobId,
        job: &Job,
        within: &Within,
        accepts: &dyn Fn(&TimedPoint) -> bool,
    ) -> Option<OperatingPoint> {
        self.fastest_of(id, job, &|way| within.has(way) && accepts(way))
    }

    /// The way to run a job that draws least.
    fn thriftiest(&self, id: JobId, job: &Job) -> TimedPoint {
        let menu = self.menu(id, job);
        TimedPoint::at(
            menu.iter().copied().fold(menu[0], |least, point| {
                if point.power < least.power { point } else { least }
            }),
        )
    }

    /// The job unthrottled on the nodes it asks for, or on as many as can be fed so.
    fn unthrottled(&self, id: JobId, job: &Job, power: Watts) -> Option<TimedPoint> {
        Some(self.nominal(id, job)).filter(|point| point.power <= power).map(TimedPoint::at)
    }

    /// A number that is the same for jobs that run alike, whatever time they ask for: their menus differ in
    /// nothing else, if they ask for as many nodes on the same terms.
    fn alike(&self, _id: JobId, job: &Job) -> u32 {
        job.application.map_or(0, |application| application.0.get())
    }

    /// The longest time that a job like this one may ask for so that its limit, if it runs like this, is no
    /// longer than `limit`; nothing if there is no such time.
    fn longest_request(
        &self,
        _id: JobId,
        _job: &Job,
        way: &TimedPoint,
        limit: Span,
    ) -> Option<Span> {
        // The limit is what is asked for, or what the job is believed to take.
        (way.point.time <= limit).then_some(limit)
    }

    /// The shortest time that a job like this one may ask for so that it puts up with running like this, or
    /// a shorter one; nothing if there is no such time.
    fn least_request(
        &self,
        _id: JobId,
        _job: &Job,
        way: &TimedPoint,
        tolerance: Tolerance,
    ) -> Option<Span> {
        Some(tolerance.least_request(way.believed))
    }

    /// How long a running job takes to go from one number of nodes to another.
    fn moving_time(&self, _id: JobId, _job: &Job, _from: u32, _to: u32) -> Span {
        Span::ZERO
    }

    /// What a job does on named nodes, each under a cap of its own; `None` if it cannot run there, or
    /// if all nodes are alike.
    fn on(&self, _id: JobId, _job: &Job, _caps: &Caps) -> Option<OperatingPoint> {
        None
    }

    /// What happens to a job, which runs for `run_time` at its nominal point, when it runs
    /// [`on`](Model::on) named nodes instead, where `point` is what is believed of that.
    fn outcome_on(
        &self,
        id: JobId,
        job: &Job,
        run_time: Span,
        point: &OperatingPoint,
        _caps: &Caps,
    ) -> Outcome {
        self.outcome(id, job, run_time, point)
    }

    /// The processors, where they are not alike and known.
    fn varied(&self) -> Option<&Varied> {
        None
    }

    /// What may be done to a job, beyond starting it as it was asked for. Menus offer no more than that;
    /// what is done while it runs, on which nodes, and whether it may be given up is asked for here.
    fn freedoms(&self, _id: JobId, _job: &Job) -> Freedoms {
        Freedoms::ALL
    }

    /// How long a job is believed to take at one of its points; its limit there may be longer.
    fn believed(&self, _id: JobId, _job: &Job, point: &OperatingPoint) -> Span {
        point.time
    }

    /// Whether `point` is on the job's menu.
    fn offers(&self, id: JobId, job: &Job, point: &OperatingPoint) -> bool {
        self.menu(id, job).contains(point)
    }
}

/// A point, and how long the job is believed to take there; its limit may be longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedPoint {
    /// What the job holds, and its limit.
    pub point: OperatingPoint,
    /// How long it is believed to take.
    pub believed: Span,
}

/// Bounds for a way to run a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    /// At most this many nodes.
    pub nodes: u32,
    /// At most so much power.
    pub power: Watts,
    /// Believed to take at most so long.
    pub believed: Span,
}

impl Within {
    /// Whether a way is within these bounds.
    #[inline]
    pub(crate) fn has(&self, way: &TimedPoint) -> bool {
        way.point.nodes <= self.nodes
            && way.point.power <= self.power
            && way.believed <= self.believed
    }
}

/// The ways a job may run, in the order of its [menu](Model::menu).
pub type TimedPoints = SmallVec<[TimedPoint; 8]>;

impl TimedPoint {
    /// A point whose limit is all that is known of its time.
    #[inline]
    fn at(point: OperatingPoint) -> Self {
        TimedPoint { point, believed: point.time }
    }
}

/// The least of each resource a job can run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Fewest nodes.
    pub nodes: u32,
    /// Shortest believed time.
    pub time: Span,
    /// What it draws at its nominal point, where nodes draw more in some jobs than in others; elsewhere nothing, as the
    /// number of nodes says it all.
    pub power: Watts,
}
