//! RMAP: power-aware backfilling on overprovisioned machines (Patki and others 2015).
//!
//! Rule: EASY backfilling of moldable jobs. Each job has a fair share of the power bound, by the
//! nodes it asks for: `weight · nodes / all nodes · bound`.
//!
//! - *traditional* knows nothing of that: it gives a job the nodes it asks for, all cores, the
//!   highest cap; or, if the bound cannot feed that, as many nodes as it can.
//! - *naive* gives a job the fastest configuration within its fair share and waits for it.
//! - *adaptive* does the same if that fits now. If not, it takes the fastest configuration that
//!   fits the free nodes and the free power (and the fair share), unless the job would take longer
//!   than its user asked for, by more than a tolerated slowdown.
//!
//! The blocked head of the queue gets its reservation for its naive (or traditional)
//! configuration. All of them reckon with a bound that is lower by a guard band: power may be
//! under-predicted.
//!
//! What it deliberately does not do: change the configuration of a job that runs.

mod alike;
mod spec;

pub use spec::{RmapSpec, Rule, Tolerance};

use alike::Alike;

use crate::ledger::Vacancy;
use crate::model::{OperatingPoint, Way};
use crate::policy::{Ahead, Backfill, Chooser, Room, View};
use crate::units::{JobId, Share, Watts};

/// EASY backfilling with configurations from profiles.
pub type Rmap = Backfill<Configurator>;

/// The choice of configurations.
pub struct Configurator {
    rule: Rule,
    guard: Share,
    alike: Alike,
}

impl Rmap {
    /// The policy with these parameters.
    pub fn with(spec: &RmapSpec) -> Self {
        Backfill::new(Configurator { rule: spec.rule, guard: spec.guard, alike: Alike::default() })
    }
}

/// What a job is looked at with: the bound as the policy takes it.
struct Bound {
    /// What jobs may hold in all.
    whole: Watts,
    /// Kept back of whatever is free.
    guard: Watts,
}

impl Bound {
    fn of(view: &View<'_>, guard: Share) -> Self {
        // Without a bound, every node may draw what it can.
        let limit = view.ledger.for_jobs(view.ledger.limit()).min(Watts::LARGEST);
        let guard = guard.of(limit);
        Bound { whole: limit - guard, guard }
    }
}

impl Configurator {
    /// The configuration a job waits for.
    fn wanted(&self, view: &View<'_>, job: JobId, bound: &Bound) -> Way {
        let asked = view.job(job);
        let thriftiest = || view.model.thriftiest(job, asked);
        let found = match self.rule {
            Rule::Traditional => view.model.unthrottled(job, asked, bound.whole),
            Rule::Naive | Rule::Adaptive(_) => {
                let share = fair_share(view, job, bound);
                view.model.fastest(job, asked, view.ledger.total_nodes(), share)
            }
        };
        found.unwrap_or_else(thriftiest)
    }

    /// The point at which a job may start now.
    fn point(&self, view: &View<'_>, job: JobId, room: &Room) -> Option<OperatingPoint> {
        let bound = Bound::of(view, self.guard);
        let is_guarded = |point: &OperatingPoint| point.power + bound.guard <= room.power();
        let fits = |way: &Way| room.admits(&way.point) && is_guarded(&way.point);
        let wanted = self.wanted(view, job, &bound);
        if fits(&wanted) {
            return Some(wanted.point);
        }
        let Rule::Adaptive(tolerance) = self.rule else { return None };
        let asked = view.job(job);
        let share = fair_share(view, job, &bound);
        let free = room.power().saturating_sub(bound.guard).min(share);
        let within = |nodes: u32, power: Watts| {
            let way = view.model.fastest(job, asked, nodes, power)?;
            (tolerance.accepts(way.believed, asked.requested) && fits(&way)).then_some(way.point)
        };
        // What ends before the reservation may use all that is free; what does not, what is left
        // over at it.
        let (nodes, power) = room.unreserved();
        within(room.nodes(), free).or_else(|| within(nodes, power.min(free)))
    }
}

/// The power a job may have by the nodes it asks for.
fn fair_share(view: &View<'_>, job: JobId, bound: &Bound) -> Watts {
    let nodes = view.nominal(job).nodes.min(view.ledger.total_nodes());
    let part = u128::from(bound.whole.milliwatts()) * u128::from(nodes)
        / u128::from(view.ledger.total_nodes().max(1));
    Watts::from_milliwatts(part as u64)
}

impl Chooser for Configurator {
    fn choose(&mut self, view: &View<'_>, job: JobId, room: &Room) -> Option<OperatingPoint> {
        self.point(view, job, room)
    }

    fn reserve(
        &mut self,
        view: &View<'_>,
        job: JobId,
        ahead: &Ahead<'_>,
    ) -> Option<(OperatingPoint, Vacancy)> {
        let bound = Bound::of(view, self.guard);
        let point = self.wanted(view, job, &bound).point;
        // It starts when the guard band is free beside it, which nobody else may use then.
        let guarded = OperatingPoint { power: point.power + bound.guard, ..point };
        let then = ahead.vacancy(&guarded)?;
        Some((point, Vacancy { power: then.power - bound.guard, ..then }))
    }

    fn candidate(&mut self, view: &View<'_>, from: JobId, room: &Room) -> Option<JobId> {
        let mut alike = std::mem::take(&mut self.alike);
        let found = alike.first(from, |job| self.point(view, job, room).is_some());
        self.alike = alike;
        found
    }

    fn begin(&mut self, view: &View<'_>) {
        self.alike.begin(view);
    }

    fn started(&mut self, job: JobId) {
        self.alike.remove(job);
    }
}
