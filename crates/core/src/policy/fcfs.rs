//! First come, first served.
//!
//! Rule: the head of the queue starts as soon as its nodes and its power are free; nobody passes
//! it.

use crate::freedom::Freedoms;
use crate::policy::{BuildContext, Decision, Policy, PolicyKind, Room, View};
use crate::units::JobId;

/// First come, first served: nobody passes the head of the queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fcfs;

impl PolicyKind for Fcfs {
    fn name(&self) -> &str {
        "fcfs"
    }

    fn about(&self) -> &str {
        "first come, first served"
    }

    fn usual(&self) -> Self {
        Fcfs
    }

    fn build(&self, _: &BuildContext<'_>) -> Box<dyn Policy> {
        Box::new(Fcfs)
    }

    fn minds_kinds(&self, _: Freedoms) -> bool {
        true
    }

    fn minds_limits(&self, _: Freedoms) -> bool {
        true
    }
}

impl Policy for Fcfs {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        // The head was refused when it was first in line, and nothing came free since.
        let head_is_new = view.queue.head() == view.changes.arrived.first().copied();
        if view.changes.nothing_freed() && !head_is_new {
            return;
        }
        let mut room = Room::of(view);
        for job in view.queue.iter() {
            let point = view.nominal(job);
            room.ask_about(job);
            if !room.admits(&point) {
                break;
            }
            decisions.push(room.start(job, point));
        }
    }

    fn forget(&mut self, _job: JobId) -> bool {
        true
    }
}
