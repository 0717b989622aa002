//! The order in which a backfilling policy goes through the queue.
//!
//! [`Submission`] is the order in which jobs were submitted. The others, `Keyed`, give every job a key
//! when it arrives: what the job costs, and when it came. Each [halving time](Ageing) of waiting makes a
//! job count half as much as one that comes then. Since that holds for all waiting jobs alike, their order
//! never changes while they wait: a place in the queue is found once, and nobody has to sort. And nobody
//! waits for ever: after a few halving times even the cheapest newcomer stands behind.
//!
//! `Multifactor` is the order of a site whose jobs have priorities. There, jobs pass each other while they wait.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::call::{Argument, CallError};
use crate::model::OperatingPoint;
use crate::policy::{PastJob, Predictions, View};
use crate::priority::Standing;
use crate::queue::{Fit, Ordered, Place};
use crate::units::{Instant, JobId, Length, Span};

mod aged;
mod cost;
mod history;
mod multifactor;

pub use aged::Aged;
pub use cost::{Ageing, Cost};
pub use history::{History, Predict};
pub use multifactor::{Held, Multifactor};

/// The order in which jobs are looked at.
pub trait Order {
    /// Jobs that ended earlier; see [`Policy::recall`](super::Policy::recall).
    fn recall(&mut self, _past: &[PastJob]) {}

    /// A turn begins: jobs arrived, others ended.
    fn begin(&mut self, _view: &View<'_>) {}

    /// The first waiting job.
    fn first(&self, view: &View<'_>) -> Option<JobId>;

    /// The waiting job after this one, which may have left.
    fn next(&self, view: &View<'_>, after: JobId) -> Option<JobId>;

    /// The first waiting job after this one that may fit the room in one of these ways. It may name too
    /// many, never too few.
    fn next_fit(&self, view: &View<'_>, after: JobId, ways: &[Fit]) -> Option<JobId>;

    /// Whether this is the order of submission.
    #[inline]
    fn is_submission(&self) -> bool {
        false
    }

    /// Whether jobs may pass each other while they wait.
    #[inline]
    fn moves(&self) -> bool {
        false
    }

    /// When jobs may pass each other next, if nobody comes or goes.
    fn moves_at(&self) -> Option<Instant> {
        None
    }

    /// Whether a waiting job has at least so many points of priority. Who has none has enough.
    fn has_points(&self, _view: &View<'_>, _job: JobId, _least: u32) -> bool {
        true
    }

    /// Where a job stands; where jobs [move](Order::moves), now.
    fn place(&self, job: JobId) -> Place;

    /// Which of two jobs comes first: it is less.
    #[inline]
    fn compare(&self, one: JobId, other: JobId) -> Ordering {
        self.place(one).cmp(&self.place(other))
    }

    /// A job is about to start at a point, or to go on there, and is expected to run for so long.
    fn goes_on(&mut self, _view: &View<'_>, _job: JobId, _point: &OperatingPoint, _left: Span) {}

    /// A job does not wait any more.
    fn left(&mut self, _job: JobId) {}

    /// A job leaves the queue that was not started, even if this was decided: it may come again.
    fn withdrawn(&mut self, job: JobId) {
        self.left(job);
    }

    /// How far off its predictions were so far; see [`Policy::predictions`](super::Policy::predictions).
    fn predictions(&self) -> Option<Predictions> {
        None
    }

    /// Itself, if it is the order by priority; see [`Policy::by_priority`](super::Policy::by_priority).
    #[doc(hidden)]
    fn by_priority(&mut self) -> Option<&mut Multifactor> {
        None
    }

    /// The priorities of jobs that started; see [`Policy::standings`](super::Policy::standings).
    fn standings(&mut self) -> Vec<(JobId, Standing)> {
        Vec::new()
    }
}

/// Puts jobs in order. It is compiled for each order, and not for each policy that has one.
pub(super) fn sort<O: Order>(jobs: &mut [JobId], order: &O) {
    jobs.sort_unstable_by(|one, other| order.compare(*one, *other));
}

/// First come, first served.
#[derive(Clone, Copy, Debug, Default)]
pub struct Submission;

impl Order for Submission {
    #[inline]
    fn first(&self, view: &View<'_>) -> Option<JobId> {
        view.queue.head()
    }

    #[inline]
    fn next(&self, view: &View<'_>, after: JobId) -> Option<JobId> {
        view.queue.at_or_after(JobId(after.0 + 1))
    }

    #[inline]
    fn next_fit(&self, view: &View<'_>, after: JobId, ways: &[Fit]) -> Option<JobId> {
        let from = JobId(after.0 + 1);
        match ways {
            [only] => view.queue.next_fit(from, only),
            ways => view.queue.next_fit_of(from, ways),
        }
    }

    #[inline]
    fn is_submission(&self) -> bool {
        true
    }

    #[inline]
    fn place(&self, job: JobId) -> Place {
        Place { key: 0, job }
    }
}

/// Jobs by what they cost and how long they have waited.
#[derive(Clone)]
pub(crate) struct Keyed<C> {
    cost: C,
    ageing: Ageing,
    /// Made when jobs first wait.
    waiting: Option<Ordered>,
    /// The key of each job that ever waited, by its identity.
    keys: Vec<i64>,
}

impl<C: Cost> Keyed<C> {
    /// Jobs in the order of this cost.
    pub(crate) fn new(cost: C, ageing: Ageing) -> Self {
        Keyed { cost, ageing, waiting: None, keys: Vec::new() }
    }

    fn insert(&mut self, view: &View<'_>, job: JobId) {
        let key = self.ageing.key(self.cost.log(view, job), view.job(job).submit);
        if self.keys.len() <= job.index() {
            self.keys.resize(view.jobs.len().max(job.index() + 1), i64::MAX);
        }
        let waiting =
            self.waiting.get_or_insert_with(|| Ordered::new(view.queue.classes().clone()));
        // It may have waited before: a node it ran on has failed.
        waiting.remove(Place { key: self.keys[job.index()], job });
        self.keys[job.index()] = key;
        waiting.insert(Place { key, job }, &view.model.footprint(job, view.job(job)));
    }
}

impl<C: Cost> Order for Keyed<C> {
    fn recall(&mut self, past: &[PastJob]) {
        self.cost.recall(past);
    }

    fn begin(&mut self, view: &View<'_>) {
        self.cost.learn(view);
        let is_new = self.waiting.is_none();
        if is_new {
            // Somebody else may have decided before.
            view.queue.iter().for_each(|job| self.insert(view, job));
            return;
        }
        for &job in view.changes.arrived {
            // It may have come and gone within one turn.
            if view.queue.contains(job) {
                self.insert(view, job);
            }
        }
    }

    #[inline]
    fn first(&self, _view: &View<'_>) -> Option<JobId> {
        Some(self.waiting.as_ref()?.first()?.job)
    }

    #[inline]
    fn next(&self, _view: &View<'_>, after: JobId) -> Option<JobId> {
        Some(self.waiting.as_ref()?.after(self.place(after))?.job)
    }

    #[inline]
    fn next_fit(&self, _view: &View<'_>, after: JobId, ways: &[Fit]) -> Option<JobId> {
        Some(self.waiting.as_ref()?.next_fit_of(self.place(after), ways)?.job)
    }

    #[inline]
    fn place(&self, job: JobId) -> Place {
        Place { key: self.keys.get(job.index()).copied().unwrap_or(i64::MAX), job }
    }

    fn goes_on(&mut self, view: &View<'_>, job: JobId, point: &OperatingPoint, left: Span) {
        self.cost.goes_on(view, job, point, left);
    }

    fn left(&mut self, job: JobId) {
        let place = self.place(job);
        if let Some(waiting) = &mut self.waiting {
            waiting.remove(place);
        }
        self.cost.left(job);
    }

    fn withdrawn(&mut self, job: JobId) {
        self.left(job);
        self.cost.withdrawn(job);
    }

    fn predictions(&self) -> Option<Predictions> {
        self.cost.predictions()
    }
}

/// An order as it is written: `order=aged, halving=12h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderSpec {
    /// What jobs are ordered by.
    pub by: OrderedBy,
    /// After how much waiting a job counts half as much; nothing for the usual time of the order.
    pub halving: Option<Span>,
    /// What `history` learns from jobs that ended.
    pub predict: Predict,
}

/// What jobs are ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OrderedBy {
    /// When they were submitted.
    #[default]
    Fcfs,
    /// What they ask for, and how long they have waited.
    Aged,
    /// What they are expected to take, by what their users' jobs took before, and how long they have
    /// waited.
    History,
    /// Their priorities at a site, as Slurm's multifactor plugin has them.
    Multifactor,
}

impl OrderedBy {
    /// All of them.
    pub const ALL: [OrderedBy; 4] =
        [OrderedBy::Fcfs, OrderedBy::Aged, OrderedBy::History, OrderedBy::Multifactor];
}

impl fmt::Display for OrderedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OrderedBy::Fcfs => "fcfs",
            OrderedBy::Aged => "aged",
            OrderedBy::History => "history",
            OrderedBy::Multifactor => "multifactor",
        })
    }
}

impl FromStr for OrderedBy {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = OrderedBy::ALL.into_iter().find(|order| order.to_string() == text);
        named.ok_or("write fcfs, aged, history or multifactor")
    }
}

impl OrderSpec {
    /// First come, first served.
    pub const FCFS: OrderSpec =
        OrderSpec { by: OrderedBy::Fcfs, halving: None, predict: Predict::All };

    /// The parameters by which an order is written.
    pub(crate) const PARAMETERS: [&str; 3] = ["order", "halving", "predict"];

    /// After how much waiting a job counts half as much.
    pub(crate) fn halving(&self) -> Span {
        self.halving.unwrap_or(self.usual_halving())
    }

    /// How the order ages jobs.
    pub(crate) fn ageing(&self) -> Ageing {
        Ageing::every(self.halving())
    }

    fn usual_halving(&self) -> Span {
        match self.by {
            OrderedBy::Fcfs | OrderedBy::Aged | OrderedBy::Multifactor => Aged::HALVING,
            OrderedBy::History => History::HALVING,
        }
    }

    /// The same order, without what would be so anyway.
    pub(crate) fn plainly(self) -> Self {
        let usual = self.usual_halving();
        OrderSpec { halving: self.halving.filter(|halving| *halving != usual), ..self }
    }

    /// Takes one of these parameters.
    pub(super) fn set(&mut self, written: &Argument<'_>) -> Result<(), CallError> {
        match written.key() {
            "order" => self.by = written.value()?,
            "predict" => self.predict = written.value()?,
            _ => self.halving = Some(written.value::<Length>()?.0),
        }
        Ok(())
    }

    /// The values of these parameters as they are written.
    pub(super) fn texts(&self) -> [String; 3] {
        let halving = self.halving.map_or(String::new(), |halving| Length(halving).to_string());
        [self.by.to_string(), halving, self.predict.to_string()]
    }
}
