//! The settings (caps or frequencies) of a job on the nodes it asks for, and the slowest that it may get.

use smallvec::SmallVec;

use crate::model::OperatingPoint;
use crate::policy::View;
use crate::policy::slowable::is_steady;
use crate::units::{JobId, Watts};

/// The settings of a job from the fastest down to the floor; never empty.
pub(super) type Settings = SmallVec<[OperatingPoint; 8]>;

/// The settings that a job may get, fastest first. The last is the floor: the fastest setting that could feed
/// the whole machine. While limits are to come, a job may have to be slower than the present one demands.
pub(super) fn settings(view: &View<'_>, job: JobId) -> Settings {
    let asked = view.nominal(job).nodes;
    let mut settings: Settings =
        view.menu(job).iter().filter(|point| point.nodes == asked).copied().collect();
    settings.sort_by_key(|point| (point.time, point.power));
    if is_steady(view) {
        let (power, nodes) = (view.ledger.for_jobs(view.ledger.limit()), view.ledger.total_nodes());
        let floor = settings.iter().position(|point| is_within(point, power, nodes));
        settings.truncate(floor.map_or(settings.len(), |floor| floor + 1));
    }
    settings
}

/// Whether a point draws at most a share of `power` for each of its nodes, if `nodes` share it.
#[inline]
pub(super) fn is_within(point: &OperatingPoint, power: Watts, nodes: u32) -> bool {
    u128::from(point.power.milliwatts()) * u128::from(nodes)
        <= u128::from(power.milliwatts()) * u128::from(point.nodes)
}
