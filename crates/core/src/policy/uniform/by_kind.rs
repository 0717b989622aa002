//! Uniform capping on nodes of several kinds, of which those of a kind are alike.
//!
//! Rule: a job that has whole nodes runs under the highest cap that is not above the uniform one, or under the lowest that its
//! nodes have; one that shares nodes with others runs as it was asked for, because no cap is its own. A job has the first nodes
//! that are free for it, if the budget and the feeds of these nodes can feed it; or it waits, in its queue.

use super::{UniformCap, UniformSpec};
use crate::model::OperatingPoint;
use crate::policy::three_queues::{Kind, ThreeQueues};
use crate::policy::{Decision, DropReason, Policy, Room, View};
use crate::units::{Instant, JobId, Watts};

/// The same cap for all nodes that can have it.
pub(super) struct ByKind {
    spec: UniformSpec,
    queues: ThreeQueues,
}

impl ByKind {
    pub(super) fn with(spec: UniformSpec) -> Self {
        ByKind { spec, queues: ThreeQueues::new(spec.queueing) }
    }

    /// The point at which a job runs.
    fn point(&self, view: &View<'_>, job: JobId) -> OperatingPoint {
        let menu = view.menu(job);
        // A cap is that of a processor's part of a node.
        let of_node = view.ledger.seating().and_then(|seating| seating.seat(job));
        let processors = of_node.map_or(1, |seat| seat.each.processors.max(1));
        let is_below: Box<dyn Fn(&OperatingPoint) -> bool> = match self.spec.cap {
            UniformCap::Min => Box::new(|_| false),
            UniformCap::Tdp => Box::new(|_| true),
            UniformCap::Power(cap) => {
                // Parts of nodes are rounded up.
                let part = cap.milliwatts().div_ceil(u64::from(processors)) + 1;
                Box::new(move |point| point.cap.milliwatts() <= part)
            }
            UniformCap::Share => {
                let power = view.ledger.for_jobs(view.ledger.lowest_limit(Instant::NEVER));
                let share = power.min(Watts::LARGEST).milliwatts()
                    / u64::from(view.ledger.total_nodes().max(1));
                Box::new(move |point| {
                    point.power.milliwatts() <= share.saturating_mul(u64::from(point.nodes))
                })
            }
        };
        let on_asked = menu.iter().filter(|point| point.nodes == menu[0].nodes);
        let highest = on_asked.clone().filter(|point| is_below(point)).max_by_key(|one| one.cap);
        highest.or(on_asked.min_by_key(|one| one.cap)).copied().unwrap_or(menu[0])
    }
}

impl Policy for ByKind {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        if !view.changes.nothing_freed() || view.changes.machine {
            self.queues.reopen();
        }
        for &job in view.changes.arrived {
            let point = self.point(view, job);
            if !view.ledger.fits_alone(job, &point) {
                decisions.push(Decision::Drop { job, reason: DropReason::NeverFed });
                continue;
            }
            let application = view.model.alike(job, view.job(job)) as usize;
            let kind = Kind { nodes: point.nodes, application, is_moldable: false };
            self.queues.insert(job, kind);
        }
        let mut room = Room::of(view);
        let mut turn = self.queues.turn(room.nodes());
        while let Some((job, kind)) = turn.next() {
            let point = self.point(view, job);
            room.ask_about(job);
            if room.admits(&point) {
                decisions.push(room.start(job, point));
                turn.started(&mut self.queues, job, kind);
            } else {
                turn.refused(&mut self.queues, kind);
            }
        }
    }
}
