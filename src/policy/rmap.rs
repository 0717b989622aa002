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

use alike::Alike;

use crate::ledger::Vacancy;
use crate::model::{OperatingPoint, Way};
use crate::policy::{Ahead, Backfill, Chooser, Room, View};
use crate::units::{JobId, Watts};

/// EASY backfilling with configurations from profiles.
pub type Rmap = Backfill<Configurator>;

/// The choice of configurations.
pub struct Configurator {
    rule: Rule,
    alike: Alike,
}

impl Rmap {
    /// The policy with this rule.
    pub fn with(rule: Rule) -> Self {
        Backfill::new(Configurator { rule, alike: Alike::default() })
    }
}

/// What jobs may hold in all, now. Without a bound, every node may draw what it can.
fn bound(view: &View<'_>) -> Watts {
    view.ledger.for_jobs(view.ledger.limit()).min(Watts::LARGEST)
}

/// The power a job may have by the nodes it asks for and its weight; all there is at most.
fn fair_share(view: &View<'_>, job: JobId) -> Watts {
    let all = view.ledger.total_nodes().max(1);
    let nodes = view.nominal(job).nodes.min(all);
    let part = u128::from(bound(view).milliwatts()) * u128::from(nodes) / u128::from(all);
    let part = Watts::from_milliwatts(part as u64);
    view.job(job).terms.weight.times(part).min(bound(view))
}

impl Configurator {
    /// The configuration a job waits for that has this fair share.
    fn wanted(&self, view: &View<'_>, job: JobId, share: Watts) -> Way {
        let asked = view.job(job);
        let found = match self.rule {
            Rule::Traditional => view.model.unthrottled(job, asked, bound(view)),
            Rule::Naive | Rule::Adaptive(_) => {
                view.model.fastest(job, asked, view.ledger.total_nodes(), share)
            }
        };
        found.unwrap_or_else(|| view.model.thriftiest(job, asked))
    }

    /// The point at which a job may start now.
    fn point(&self, view: &View<'_>, job: JobId, room: &Room) -> Option<OperatingPoint> {
        let share = fair_share(view, job);
        let wanted = self.wanted(view, job, share).point;
        if room.admits(&wanted) {
            return Some(wanted);
        }
        let Rule::Adaptive(tolerance) = self.rule else { return None };
        let asked = view.job(job);
        let tolerance = asked.terms.tolerance.unwrap_or(tolerance);
        let within = |nodes: u32, power: Watts| {
            let way = view.model.fastest(job, asked, nodes, power.min(share))?;
            let is_soon = tolerance.accepts(way.believed, asked.requested);
            (is_soon && room.admits(&way.point)).then_some(way.point)
        };
        // What ends before the reservation may use all that is free; what does not, what is left
        // over at it.
        let (nodes, power) = room.unreserved();
        let free = (room.nodes(), room.power());
        within(free.0, free.1).or_else(|| {
            // Where nothing is reserved, that was all there is.
            ((nodes, power) != free).then(|| within(nodes, power)).flatten()
        })
    }
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
        let point = self.wanted(view, job, fair_share(view, job)).point;
        Some((point, ahead.vacancy(&point)?))
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
