//! EASY backfilling under a power budget: the baseline of the PB-guided paper (Etinski, Corbalan,
//! Labarta, Valero 2010).
//!
//! Rule: EASY at nominal speed; a job that would break the budget waits, as it would for nodes. A
//! job that no limit of the budget could ever feed at nominal speed runs at the fastest point
//! that can be fed, instead of waiting for ever (or is turned away at the door:
//! `oversized=reject`).
//!
//! With `gear=1.7GHz` every job runs at that frequency at most, from first to last: one fixed setting for all,
//! which is a strong rival where it is chosen well for the budget.
//!
//! What it deliberately does not do: lower the speed of a job that could run at that speed.

use std::fmt;
use std::str::FromStr;

use crate::freedom::{Freedom, Freedoms};
use crate::ledger::Vacancy;
use crate::model::{OperatingPoint, Oversized};
use crate::policy::slowable::{
    Slowable, every_candidate, is_steady, knows_power, nominal_fit, slower_fits,
};
use crate::policy::{
    Ahead, Backfill, BuildContext, Chooser, Field, Order, OrderSpec, Parameter, Policy, PolicyKind,
    Published, Room, Unfit, View,
};
use crate::queue::Fit;
use crate::units::{JobId, Span, Watts, parse_decimal};

/// EASY backfilling with every job at the fastest point that can be fed.
pub type EasyPower = Backfill<Fastest>;

/// Every job at the fastest point of its menu that can ever be fed.
#[derive(Clone, Default)]
pub struct Fastest {
    oversized: Slowable,
}

/// The parameters of the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EasyPowerSpec {
    /// What becomes of jobs that no limit could ever feed at nominal speed.
    pub(crate) oversized: Oversized,
    /// The frequency that no job may exceed, if there is one.
    pub(crate) gear: Option<Frequency>,
    /// In which order jobs are looked at.
    pub(crate) order: OrderSpec,
}

/// A frequency in megahertz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frequency(u32);

impl Frequency {
    /// Whether a frequency in gigahertz is no higher. They are compared in megahertz, as they are written.
    fn reaches(self, ghz: f64) -> bool {
        (ghz * 1000.0).round() as u32 <= self.0
    }
}

impl FromStr for Frequency {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number =
            text.strip_suffix("GHz").and_then(|number| parse_decimal(number.trim(), 1000).ok());
        let megahertz = number.and_then(|number| u32::try_from(number).ok());
        megahertz
            .filter(|number| *number > 0)
            .map(Frequency)
            .ok_or("write a frequency, such as 1.7GHz")
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}GHz", f64::from(self.0) / 1000.0)
    }
}

impl PolicyKind for EasyPowerSpec {
    fn name(&self) -> &str {
        "easy-power"
    }

    fn about(&self) -> &str {
        "EASY backfilling; jobs too large for the budget run slower"
    }

    fn usual(&self) -> Self {
        EasyPowerSpec::default()
    }

    fn parameters(&self) -> Vec<Parameter<Self>> {
        let oversized = Parameter::of("oversized", |spec: &mut Self| &mut spec.oversized);
        let gear = Parameter::optional("gear", |spec: &mut Self| &mut spec.gear);
        [oversized, gear].into_iter().chain(Parameter::of_order()).collect()
    }

    fn build(&self, context: &BuildContext<'_>) -> Box<dyn Policy> {
        let most = self.gear.and_then(|gear| {
            let machine = context.machine?;
            let powers = machine.gearbox.node_powers(machine.added_power());
            let allowed = powers.into_iter().filter(|(each, _)| gear.reaches(each.ghz));
            allowed.map(|(_, power)| power).max()
        });
        match most {
            Some(most) => self.order.backfill(Throttled { most }, context),
            None => self.order.backfill(Fastest::default(), context),
        }
    }

    fn wants(&self) -> Freedoms {
        Freedoms::of(&[Freedom::Caps])
    }

    fn suits(&self, field: &Field<'_>) -> Result<(), Unfit> {
        match (self.gear, field.gearbox.gears().first()) {
            (Some(gear), Some(slowest)) if !gear.reaches(slowest.ghz) => {
                let slowest = slowest.ghz;
                Err(Unfit::Here(format!(
                    "the slowest frequency of this machine is {slowest} GHz; write gear={slowest}GHz or more"
                )))
            }
            _ => Ok(()),
        }
    }

    fn believes(&self, _: Freedoms) -> Published {
        Published::Clock
    }

    fn oversized(&self) -> Oversized {
        self.oversized
    }

    fn minds_kinds(&self, _: Freedoms) -> bool {
        true
    }

    fn minds_limits(&self, _: Freedoms) -> bool {
        true
    }

    fn order_mut(&mut self) -> Option<&mut OrderSpec> {
        Some(&mut self.order)
    }
}

/// Every job at the fastest point that draws at most so much a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Throttled {
    most: Watts,
}

impl Throttled {
    fn point(self, view: &View<'_>, job: JobId) -> Option<OperatingPoint> {
        let menu = view.menu(job);
        let is_slow = |point: &&OperatingPoint| point.power <= self.most * point.nodes;
        let slow = menu.iter().filter(is_slow).filter(|point| is_fed(view, job, point));
        let fed = menu.iter().filter(|point| is_fed(view, job, point));
        // Where nothing is so slow, the slowest has to do.
        slow.min_by_key(|point| (point.time, point.power))
            .or_else(|| fed.min_by_key(|point| point.power))
            .copied()
    }
}

impl Chooser for Throttled {
    fn choose(&mut self, view: &View<'_>, job: JobId, room: &Room) -> Option<OperatingPoint> {
        self.point(view, job).filter(|point| room.admits(point))
    }

    fn reserve(
        &mut self,
        view: &View<'_>,
        job: JobId,
        ahead: &Ahead<'_>,
    ) -> Option<(OperatingPoint, Vacancy)> {
        let point = self.point(view, job)?;
        Some((point, ahead.vacancy(&point)?))
    }

    fn candidate<O: Order>(
        &mut self,
        view: &View<'_>,
        order: &O,
        after: JobId,
        room: &Room,
    ) -> Option<JobId> {
        every_candidate(view, order, after, room)
    }
}

/// Whether a point can be fed for its whole time, now or under the limits to come, if nobody else
/// runs.
#[inline]
pub(super) fn is_fed(view: &View<'_>, job: JobId, point: &OperatingPoint) -> bool {
    view.ledger.fits_alone(job, point)
}

/// Whether a job can never be fed at nominal speed.
#[inline]
pub(super) fn is_oversized(view: &View<'_>, job: JobId) -> bool {
    !is_fed(view, job, &view.nominal(job))
}

/// The first job submitted after this one that is oversized and may fit at a slower point.
#[inline]
pub(super) fn oversized_candidate(
    oversized: &Slowable,
    view: &View<'_>,
    after: JobId,
    room: &Room,
    nominal: &Fit,
) -> Option<JobId> {
    if oversized.is_empty() {
        return None;
    }
    // An oversized job has more nodes than are ever fed at nominal speed, if all draw alike.
    let node_power = view.model.rungs()[0].node_power;
    let most = view.ledger.most_for_jobs(Span::ZERO);
    let slower =
        slower_fits(view, room, nominal, |_, fit| knows_power(fit) || node_power * fit.free > most);
    oversized.candidate(after, &slower)
}

impl Fastest {
    fn point(view: &View<'_>, job: JobId) -> Option<OperatingPoint> {
        let nominal = view.nominal(job);
        if is_fed(view, job, &nominal) {
            return Some(nominal);
        }
        view.menu(job).iter().copied().find(|point| is_fed(view, job, point))
    }

    /// The same as [`Chooser::candidate`] where the room is not the same for ever. Most budgets are steady, and what
    /// they need has to stay small.
    #[inline(never)]
    fn candidate_under_limits_to_come<O: Order>(
        &self,
        view: &View<'_>,
        order: &O,
        after: JobId,
        room: &Room,
    ) -> Option<JobId> {
        let rungs = view.model.rungs();
        let slower = || self.oversized.candidate(after, &room.fits(rungs.iter()));
        let oversized = if self.oversized.is_empty() { None } else { slower() };
        let nominal = order.next_fit(view, after, &room.fits(rungs[..1].iter()));
        nominal.into_iter().chain(oversized).min()
    }
}

impl Chooser for Fastest {
    #[inline]
    fn choose(&mut self, view: &View<'_>, job: JobId, room: &Room) -> Option<OperatingPoint> {
        Fastest::point(view, job).filter(|point| room.admits(point))
    }

    #[inline]
    fn reserve(
        &mut self,
        view: &View<'_>,
        job: JobId,
        ahead: &Ahead<'_>,
    ) -> Option<(OperatingPoint, Vacancy)> {
        let point = Fastest::point(view, job)?;
        Some((point, ahead.vacancy(&point)?))
    }

    #[inline]
    fn candidate<O: Order>(
        &mut self,
        view: &View<'_>,
        order: &O,
        after: JobId,
        room: &Room,
    ) -> Option<JobId> {
        // Those that must be slowed are kept in the order of submission.
        if !(self.oversized.is_empty() || order.is_submission()) {
            return every_candidate(view, order, after, room);
        }
        if !is_steady(view) {
            return self.candidate_under_limits_to_come(view, order, after, room);
        }
        let fit = nominal_fit(view, room);
        let oversized = oversized_candidate(&self.oversized, view, after, room, &fit);
        order.next_fit(view, after, &[fit]).into_iter().chain(oversized).min()
    }

    #[inline]
    fn begin<O: Order>(&mut self, view: &View<'_>, _order: &O) {
        // While limits are to come, these are all that may be oversized at some time.
        let least = view.ledger.least_for_jobs();
        self.oversized.welcome(view, Some(least), |job| view.nominal(job).power > least);
    }

    #[inline]
    fn left(&mut self, job: JobId) {
        self.oversized.remove(job);
    }
}
