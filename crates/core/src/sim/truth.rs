//! What really happens to jobs.

use crate::job::Job;
use crate::ledger::Ledger;
use crate::model::{Caps, Model, OperatingPoint, Outcome};
use crate::units::{JobId, Span};
use crate::world::{Held, World};

/// Who says what really happens.
#[derive(Clone, Copy)]
pub(super) enum Truth<'a> {
    /// A model, which may be the one that is believed.
    Model(&'a dyn Model),
    /// The world, which is the same for all policies.
    World(&'a World),
}

impl Truth<'_> {
    /// Whether it matters which nodes a job has.
    pub(super) fn minds_nodes(self) -> bool {
        matches!(self, Truth::World(world) if world.minds_nodes())
    }

    /// What happens to a job, which runs for `run_time` as it was asked for, now that it holds what the
    /// ledger says.
    #[inline]
    pub(super) fn outcome(
        self,
        id: JobId,
        job: &Job,
        run_time: Span,
        point: &OperatingPoint,
        caps: Option<&Caps>,
        ledger: &Ledger,
    ) -> Outcome {
        match (self, caps) {
            (Truth::Model(model), None) => model.outcome(id, job, run_time, point),
            (Truth::Model(model), Some(caps)) => model.outcome_on(id, job, run_time, point, caps),
            (Truth::World(world), Some(caps)) => {
                world.outcome(id, job, run_time, point, Held::Capped(caps))
            }
            (Truth::World(world), None) if world.minds_nodes() => {
                world.outcome(id, job, run_time, point, Held::These(&ledger.nodes_of(id)))
            }
            (Truth::World(world), None) => world.outcome(id, job, run_time, point, Held::Any),
        }
    }
}
