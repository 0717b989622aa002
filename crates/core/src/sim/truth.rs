//! What really happens to jobs.

use std::ops::Range;

use crate::job::Job;
use crate::ledger::Ledger;
use crate::model::{Caps, Model, NodeCap, OperatingPoint, Outcome};
use crate::units::{JobId, Span, Watts};
use crate::world::{Held, NodeTable, World};

/// The source of the truth of a simulation.
#[derive(Clone, Copy)]
pub(super) enum Truth<'a> {
    /// A model, which may be the one that is believed.
    Model(&'a dyn Model),
    /// The world, which is the same for all policies.
    World(&'a World),
    /// The world on nodes that differ.
    OnNodes(&'a World, &'a NodeTable),
}

impl<'a> Truth<'a> {
    /// The table of this many nodes, if it matters which nodes a job has.
    pub(super) fn node_table(self, nodes: u32) -> Option<NodeTable> {
        match self {
            Truth::World(world) if world.minds_nodes() => Some(world.node_table(nodes)),
            _ => None,
        }
    }

    /// The same on these nodes.
    pub(super) fn on(self, nodes: Option<&'a NodeTable>) -> Self {
        match (self, nodes) {
            (Truth::World(world), Some(nodes)) => Truth::OnNodes(world, nodes),
            (other, _) => other,
        }
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
            (Truth::World(world) | Truth::OnNodes(world, _), Some(caps)) => {
                world.outcome(id, job, run_time, point, Held::Capped(caps))
            }
            (Truth::OnNodes(world, nodes), None) => {
                let held = Held::These(ledger.stretches_of(id), nodes);
                world.outcome(id, job, run_time, point, held)
            }
            (Truth::World(world), None) => world.outcome(id, job, run_time, point, Held::Any),
        }
    }

    /// Of what a job draws on all of its nodes, what it draws on some of them.
    pub(super) fn part(
        self,
        id: JobId,
        job: &Job,
        point: &OperatingPoint,
        caps: Option<&Caps>,
        nodes: &[Range<u32>],
        whole: Watts,
    ) -> Watts {
        let drawn =
            |world: &World, held: Held<'_>| world.outcome(id, job, Span::ZERO, point, held).power;
        match (self, caps) {
            (Truth::World(world) | Truth::OnNodes(world, _), Some(caps)) => {
                let is_part =
                    |capped: &NodeCap| nodes.iter().any(|one| one.contains(&capped.node.0));
                let part = Caps::new(caps.iter().filter(is_part).collect());
                part.map_or(Watts::ZERO, |part| drawn(world, Held::Capped(&part)))
            }
            (Truth::OnNodes(world, table), None) => drawn(world, Held::These(nodes, table)),
            _ => {
                let count: u32 = nodes.iter().map(|one| one.end - one.start).sum();
                let part = u128::from(whole.milliwatts()) * u128::from(count);
                Watts::from_milliwatts((part / u128::from(point.nodes.max(1))) as u64)
            }
        }
    }
}
