//! The settings (caps or frequencies) of a job on the nodes it asks for, and the slowest that it may get.

use smallvec::SmallVec;

use crate::model::{Menu, OperatingPoint};
use crate::policy::{Room, View};
use crate::queue::Fit;
use crate::units::{Instant, JobId, Watts};

/// The settings of a job from the fastest down to the floor; never empty.
pub(super) type Settings = SmallVec<[OperatingPoint; 8]>;

/// The settings that a job may get, fastest first. The last is the floor: the fastest setting that could feed
/// the whole machine under every limit from now on.
pub(super) fn settings(view: &View<'_>, job: JobId) -> Settings {
    settings_of(view, &view.menu(job))
}

/// Those of a menu.
fn settings_of(view: &View<'_>, menu: &Menu) -> Settings {
    let asked = menu[0].nodes;
    let mut settings: Settings =
        menu.iter().filter(|point| point.nodes == asked).copied().collect();
    settings.sort_by_key(|point| (point.time, point.power));
    let (power, nodes) = (view.ledger.for_jobs(lowest(view)), view.ledger.total_nodes());
    let floor = settings.iter().position(|point| is_within(point, power, nodes));
    settings.truncate(floor.map_or(settings.len(), |floor| floor + 1));
    settings
}

/// The lowest limit from now on.
#[inline]
pub(super) fn lowest(view: &View<'_>) -> Watts {
    view.ledger.lowest_limit(Instant::NEVER)
}

/// Whether a point draws at most a share of `power` for each of its nodes, if `nodes` share it.
#[inline]
pub(super) fn is_within(point: &OperatingPoint, power: Watts, nodes: u32) -> bool {
    u128::from(point.power.milliwatts()) * u128::from(nodes)
        <= u128::from(power.milliwatts()) * u128::from(point.nodes)
}

/// The places of the menus at which some job may start. At a place that is slower than every job's floor most jobs of a
/// deep queue would fit, and none may start: who asks the queue's index about it is told of them in vain.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// By place: whether some job may start there.
    allowed: Vec<bool>,
    /// The limit and the nodes for which all waiting jobs were looked at, and since then every one that arrived.
    complete_for: Option<(Watts, u32)>,
}

impl Places {
    /// Looks at the jobs that arrived, or at all that wait, the first time and whenever there is another limit.
    pub(super) fn welcome(&mut self, view: &View<'_>) {
        let present = (lowest(view), view.ledger.total_nodes());
        if self.complete_for == Some(present) {
            view.changes.arrived.iter().for_each(|job| self.look_at(view, *job));
        } else {
            *self = Places { allowed: Vec::new(), complete_for: Some(present) };
            view.queue.iter().for_each(|job| self.look_at(view, job));
        }
    }

    fn look_at(&mut self, view: &View<'_>, job: JobId) {
        let menu = view.menu(job);
        let settings = settings_of(view, &menu);
        if self.allowed.len() < menu.len() {
            self.allowed.resize(menu.len(), false);
        }
        for (allowed, point) in self.allowed.iter_mut().zip(menu.iter()) {
            *allowed |= settings.contains(point);
        }
    }

    /// The room as it can be used at these places.
    pub(super) fn fits(&self, view: &View<'_>, room: &Room) -> SmallVec<[Fit; 8]> {
        let rungs = view.model.rungs();
        // Where menus have little in common, one bound is for all places.
        let is_known = self.complete_for.is_some() && self.allowed.len() <= rungs.len();
        let is_allowed = |place: usize| self.allowed.get(place).is_some_and(|allowed| *allowed);
        let places = rungs.iter().enumerate();
        room.fits(places.filter(|(place, _)| !is_known || is_allowed(*place)).map(|(_, rung)| rung))
    }
}
