//! Share: Busbar's own policy. Free watts are shared equally among free nodes.
//!
//! Rule: backfilling with one reservation. A job that starts gets the fastest setting (cap or frequency) whose
//! watts per node are at most free watts over free nodes, with a margin of 2 %: every free node could get as
//! much. It never gets a slower setting than the fastest that could feed the whole machine. If the room does
//! not admit that setting, slower ones are tried down to this floor, and then faster ones, the slowest of them
//! first. The head of the queue gets its reservation at the setting with which it is expected to end first.
//!
//! In which [order](super::order) jobs are looked at is a parameter of its own: with `order=fcfs` the policy
//! answers the question of power alone.
//!
//! What it deliberately does not do: predict how sensitive a job is to its cap, or change jobs that run.

use smallvec::SmallVec;

use crate::call::{Call, CallError};
use crate::ledger::Vacancy;
use crate::model::OperatingPoint;
use crate::policy::slowable::{every_candidate, is_steady};
use crate::policy::{Ahead, Chooser, OrderSpec, Room, View};
use crate::units::{JobId, Watts};

/// Settings by each job's share of the free watts.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByShare;

/// The parameters of the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShareSpec {
    /// In which order jobs are looked at.
    pub order: OrderSpec,
}

impl ShareSpec {
    /// Reads the parameters.
    pub fn from_call(call: &Call) -> Result<Self, CallError> {
        let mut spec = ShareSpec::default();
        for (key, value) in call.parameters(&OrderSpec::PARAMETERS)? {
            spec.order.set(call, key, value)?;
        }
        Ok(spec)
    }

    /// What is not as usual, as it is written.
    pub fn unusual(&self) -> Vec<String> {
        self.order.unusual()
    }
}

/// The settings of a job, fastest first.
type Settings = SmallVec<[OperatingPoint; 8]>;

fn settings(view: &View<'_>, job: JobId) -> Settings {
    let mut settings: Settings = view.menu(job).iter().copied().collect();
    settings.sort_by_key(|point| (point.time, point.power));
    settings
}

/// Whether a point draws at most a share of `power` for each of its nodes, if `nodes` share it.
#[inline]
fn is_within(point: &OperatingPoint, power: Watts, nodes: u32) -> bool {
    u128::from(point.power.milliwatts()) * u128::from(nodes)
        <= u128::from(power.milliwatts()) * u128::from(point.nodes)
}

/// The place of the slowest setting that a job may get: the fastest that could feed the whole machine. While
/// limits are to come, a job may have to be slower than the present one demands.
fn floor(view: &View<'_>, settings: &[OperatingPoint]) -> usize {
    let last = settings.len().saturating_sub(1);
    if !is_steady(view) {
        return last;
    }
    let (power, nodes) = (view.ledger.for_jobs(view.ledger.limit()), view.ledger.total_nodes());
    settings.iter().position(|point| is_within(point, power, nodes)).unwrap_or(last)
}

/// Free watts, and 2 % more: settings come in steps, and the next one up is often just beyond.
#[inline]
fn with_margin(power: Watts) -> Watts {
    power.saturating_add(Watts::from_milliwatts(power.milliwatts() / 50))
}

impl Chooser for ByShare {
    fn choose(&mut self, view: &View<'_>, job: JobId, room: &Room) -> Option<OperatingPoint> {
        if view.job(job).nodes > room.nodes() {
            return None;
        }
        let settings = settings(view, job);
        let floor = floor(view, &settings);
        let power = with_margin(room.power());
        let fair = |point: &OperatingPoint| is_within(point, power, room.nodes().max(point.nodes));
        let fair = settings.iter().position(fair).unwrap_or(floor).min(floor);
        let slower = settings[fair..=floor].iter();
        let faster = settings[..fair].iter().rev();
        slower.chain(faster).find(|point| room.admits(point)).copied()
    }

    fn reserve(
        &mut self,
        view: &View<'_>,
        job: JobId,
        ahead: &Ahead<'_>,
    ) -> Option<(OperatingPoint, Vacancy)> {
        let settings = settings(view, job);
        let floor = floor(view, &settings);
        let places = settings[..=floor].iter().rev();
        let places = places.filter_map(|point| Some((*point, ahead.vacancy(point)?)));
        places.min_by_key(|(point, then)| then.at + point.time)
    }

    #[inline]
    fn candidate(&mut self, view: &View<'_>, from: JobId, room: &Room) -> Option<JobId> {
        every_candidate(view, from, room)
    }

    /// A job that starts changes what a share is.
    #[inline]
    fn refusals_outlive_starts(&self, _view: &View<'_>, _held: Watts) -> bool {
        false
    }
}
