//! PB-guided: DVFS scheduling guided by a power budget (Etinski, Corbalan, Labarta, Valero 2010).
//!
//! Rule: EASY backfilling in which every start and every reservation picks a gear. From the
//! slowest gear up, the first is taken that fits and keeps the predicted bounded slowdown of the
//! job, `max((wait + requested time in that gear) / max(threshold, requested time), 1)`, below a
//! bound; at nominal speed it only has to fit. The bound depends on the power of all running jobs
//! and this one in that gear: below `lower` of what the budget leaves for jobs it is 0, so nobody
//! is slowed; from there to `upper` it is `bsld_lower`; above, `bsld_upper`.
//!
//! The head of the queue gets the earliest start any gear allows. The power limit holds over the
//! whole life of an allocation and of the reservation. A job that could never be fed at nominal
//! speed has the fastest gear that can be fed in its place.
//!
//! What it deliberately does not do: change the gear of a job that runs.

mod spec;

pub use spec::{BsldLower, BsldUpper, PbGuidedSpec};

use crate::ledger::Vacancy;
use crate::model::{Menu, OperatingPoint};
use crate::policy::easy_power::{is_fed, is_oversized, oversized_candidate};
use crate::policy::slowable::{
    Slowable, every_candidate, is_steady, knows_power, nominal_fit, slower_fits, steady_limit,
};
use crate::policy::{Ahead, Backfill, Chooser, Order, Room, View};
use crate::units::{Instant, JobId, Share, Span, Watts};

/// EASY backfilling with gears chosen by the power budget.
pub type PbGuided = Backfill<Guide>;

/// When to slow jobs down, and how much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Below this share of the budget nobody is slowed.
    pub lower: Share,
    /// From this share of the budget on, jobs are slowed up to [`Bounds::bsld_upper`].
    pub upper: Share,
    /// Bound of the predicted slowdown between the two shares.
    pub bsld_lower: f64,
    /// Bound of the predicted slowdown above both.
    pub bsld_upper: f64,
    /// The threshold of the bounded slowdown.
    pub bsld_threshold: Span,
}

impl Bounds {
    /// The slowdown that must not be reached while jobs hold so much of a limit.
    #[inline]
    fn bsld(&self, held: Watts, limit: Watts) -> f64 {
        if is_below(held, self.lower, limit) {
            0.0
        } else if is_below(held, self.upper, limit) {
            self.bsld_lower
        } else {
            self.bsld_upper
        }
    }

    /// The bounded slowdown a job is predicted to have if it starts after this wait and then takes
    /// so long, instead of its nominal time.
    #[inline]
    fn predicted(&self, wait: Span, time: Span, nominal: Span) -> f64 {
        let turnaround = (wait + time).millis() as f64;
        (turnaround / self.bsld_threshold.max(nominal).millis() as f64).max(1.0)
    }
}

/// What the limit in force leaves for jobs, beside what the machine draws anyway.
#[inline]
fn limit_for_jobs(view: &View<'_>) -> Watts {
    view.ledger.for_jobs(view.ledger.limit())
}

/// Whether power is below a share of a limit, exactly.
#[inline]
fn is_below(power: Watts, share: Share, limit: Watts) -> bool {
    u128::from(power.milliwatts()) * u128::from(Share::WHOLE.millionths())
        < u128::from(limit.milliwatts()) * u128::from(share.millionths())
}

/// The choice of gears.
#[derive(Clone)]
pub struct Guide {
    bounds: Bounds,
    /// Those that may be slowed as far as the bounds allow.
    slowable: Slowable,
    /// Those that must be slowed to run at all, whatever the bounds.
    oversized: Slowable,
}

impl PbGuided {
    /// The policy with these bounds.
    pub fn with(bounds: Bounds) -> Self {
        Backfill::new(Guide::new(bounds))
    }
}

impl Guide {
    /// The choice with these bounds.
    pub fn new(bounds: Bounds) -> Self {
        Guide { bounds, slowable: Slowable::default(), oversized: Slowable::default() }
    }
}

/// A job that looks for its gear.
struct Search<'a> {
    bounds: &'a Bounds,
    submit: Instant,
    nominal: OperatingPoint,
    /// Power of the jobs that run now, whenever this one would start.
    held: Watts,
    /// What is left for jobs of the limit in force now.
    limit: Watts,
}

impl<'a> Search<'a> {
    #[inline]
    fn new(bounds: &'a Bounds, view: &View<'_>, job: JobId, held: Watts) -> Self {
        let (submit, limit) = (view.job(job).submit, limit_for_jobs(view));
        Search { bounds, submit, nominal: view.nominal(job), held, limit }
    }

    /// Whether the job may be slowed to a point, if it starts then.
    #[inline]
    fn allows(&self, point: &OperatingPoint, start: Instant) -> bool {
        let wait = start.since(self.submit);
        let bound = self.bounds.bsld(self.held + point.power, self.limit);
        self.bounds.predicted(wait, point.time, self.nominal.time) < bound
    }

    /// Whether the job may be slowed at all from now on, however scarce power gets. It only waits
    /// longer, so once it may not it never may again.
    #[inline]
    fn can_be_slowed(&self, view: &View<'_>) -> bool {
        let Some(slower) = view.model.rungs().get(1) else { return false };
        let wait = view.now.since(self.submit);
        let least = slower.stretch.of(self.nominal.time);
        let highest = self.bounds.bsld_lower.max(self.bounds.bsld_upper);
        self.bounds.predicted(wait, least, self.nominal.time) < highest
    }
}

/// The points of a menu that can ever be fed, fastest first: the first of them is the job's
/// nominal one, unless it is oversized.
#[inline]
fn fed<'m>(view: &View<'_>, job: JobId, menu: &'m Menu) -> &'m [OperatingPoint] {
    let fastest = menu.iter().position(|point| is_fed(view, job, point));
    fastest.map_or(&[], |fastest| &menu[fastest..])
}

impl Chooser for Guide {
    #[inline]
    fn choose(&mut self, view: &View<'_>, job: JobId, room: &Room) -> Option<OperatingPoint> {
        let search = Search::new(&self.bounds, view, job, room.held());
        let nominal = search.nominal;
        if nominal.nodes > room.nodes() {
            return None;
        }
        if !search.can_be_slowed(view) && is_fed(view, job, &nominal) {
            self.slowable.remove(job);
            return Some(nominal).filter(|point| room.admits(point));
        }
        let menu = view.menu(job);
        let (fastest, slower) = fed(view, job, &menu).split_first()?;
        let mut slower = slower.iter().rev();
        let found = slower.find(|point| room.admits(point) && search.allows(point, view.now));
        found.or(Some(fastest).filter(|point| room.admits(point))).copied()
    }

    fn reserve(
        &mut self,
        view: &View<'_>,
        job: JobId,
        ahead: &Ahead<'_>,
    ) -> Option<(OperatingPoint, Vacancy)> {
        let search = Search::new(&self.bounds, view, job, ahead.held());
        if !search.can_be_slowed(view) && is_fed(view, job, &search.nominal) {
            return Some((search.nominal, ahead.vacancy(&search.nominal)?));
        }
        let menu = view.menu(job);
        let (fastest, slower) = fed(view, job, &menu).split_first()?;
        // The longer a job waits, the less it may be slowed: a gear that is refused at the first
        // instant at which it fits is refused at every later one.
        let slower = slower.iter().rev().filter(|point| search.allows(point, view.now));
        let slower = slower
            .filter_map(|point| Some((*point, ahead.vacancy(point)?)))
            .filter(|(point, then)| search.allows(point, then.at));
        let fastest = std::iter::once_with(|| Some((*fastest, ahead.vacancy(fastest)?)));
        let mut places = slower.chain(fastest.flatten());
        if is_steady(view) {
            // A faster gear needs more power; only a limit that changes could let it in earlier.
            return places.next();
        }
        places.min_by_key(|(_, then)| then.at)
    }

    #[inline]
    fn candidate<O: Order>(
        &mut self,
        view: &View<'_>,
        order: &O,
        after: JobId,
        room: &Room,
    ) -> Option<JobId> {
        // Those that may be slowed are kept in the order of submission.
        if !is_steady(view) || !order.is_submission() {
            return every_candidate(view, order, after, room);
        }
        let fit = nominal_fit(view, room);
        let nominal = order.next_fit(view, after, &[fit]);
        let limit = limit_for_jobs(view);
        let slowable = slower_fits(view, room, &fit, |rung, fit| {
            // The largest job that fits there brings what is held this far.
            let largest = match knows_power(fit) {
                true => room.power(),
                false => rung.node_power * fit.free,
            };
            !is_below(room.held() + largest, self.bounds.lower, limit)
        });
        let slowable = self.slowable.candidate(after, &slowable);
        let oversized = oversized_candidate(&self.oversized, view, after, room, &fit);
        nominal.into_iter().chain(slowable).chain(oversized).min()
    }

    /// Once more power is held, a job may be slowed that was not allowed to be before; but not
    /// once the bound is at its highest for everybody.
    #[inline]
    fn refusals_outlive_starts(&self, view: &View<'_>, held: Watts) -> bool {
        !is_below(held, self.bounds.upper, limit_for_jobs(view))
    }

    #[inline]
    fn begin<O: Order>(&mut self, view: &View<'_>, _order: &O) {
        let limit = steady_limit(view);
        self.slowable.welcome(view, limit, |job| !is_oversized(view, job));
        self.oversized.welcome(view, limit, |job| is_oversized(view, job));
    }

    #[inline]
    fn left(&mut self, job: JobId) {
        self.slowable.remove(job);
        self.oversized.remove(job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds() -> Bounds {
        Bounds {
            lower: Share::percent(60),
            upper: Share::percent(90),
            bsld_lower: 5.0,
            bsld_upper: 10.0,
            bsld_threshold: Span::from_secs(600),
        }
    }

    /// The threshold table, at its edges: a share is reached when it is reached exactly.
    #[test]
    fn the_bound_rises_with_the_power_drawn() {
        let bound =
            |milliwatts| bounds().bsld(Watts::from_milliwatts(milliwatts), Watts::from_watts(1000));
        assert_eq!(bound(0), 0.0);
        assert_eq!(bound(599_999), 0.0);
        assert_eq!(bound(600_000), 5.0);
        assert_eq!(bound(899_999), 5.0);
        assert_eq!(bound(900_000), 10.0);
        assert_eq!(bound(1_000_000), 10.0);
    }

    /// A third of a milliwatt is neither here nor there: 60 % of 1001 mW is 600.6 mW.
    #[test]
    fn shares_are_compared_exactly() {
        let limit = Watts::from_milliwatts(1001);
        assert!(is_below(Watts::from_milliwatts(600), Share::percent(60), limit));
        assert!(!is_below(Watts::from_milliwatts(601), Share::percent(60), limit));
        assert!(is_below(Watts::LARGEST, Share::percent(60), Watts::UNLIMITED));
    }

    /// (wait + time in the gear) / max(600 s, nominal time), at least 1.
    #[test]
    fn the_predicted_slowdown_by_hand() {
        let predicted = |wait, slowed, nominal| {
            let [wait, slowed, nominal] = [wait, slowed, nominal].map(Span::from_secs);
            bounds().predicted(wait, slowed, nominal)
        };
        // An hour, stretched to 1.75 of it, after half an hour: (1800 + 6300) / 3600.
        assert_eq!(predicted(1800, 6300, 3600), 2.25);
        // A minute counts as ten: (300 + 100) / 600 is below 1, (3000 + 100) / 600 is not.
        assert_eq!(predicted(300, 100, 60), 1.0);
        assert_eq!(predicted(3000, 100, 60), 3100.0 / 600.0);
    }
}
