//! Which processors are free, and how many of each run of an application. Only processors that changed hands since the last
//! look are touched.

use crate::ledger::free_nodes::FreeNodes;
use crate::model::Varied;
use crate::policy::View;
use crate::solve::ptune::crew::{Crew, OfRun};
use crate::units::NodeId;
use crate::variation::kin::Kin;

#[derive(Clone, Debug, Default)]
pub(super) struct Free {
    nodes: FreeNodes,
    /// The nodes of the ledger that there is room for; none before the first look.
    room: Option<u32>,
    /// By application and run.
    counts: Vec<Vec<u32>>,
    /// Processors.
    all: u32,
}

impl Free {
    pub(super) fn is_begun(&self) -> bool {
        self.room.is_some()
    }

    /// Takes in what the ledger says: who is in service and nobody's.
    pub(super) fn follow(&mut self, view: &View<'_>, varied: &Varied) {
        let applications = varied.processors().applications().len();
        let room = Some(view.ledger.total_nodes());
        if self.room != room {
            let none = |application| vec![0; varied.kin(application).runs().len()];
            let counts = (0..applications).map(none).collect();
            let nodes = FreeNodes::none(view.ledger.total_nodes());
            *self = Free { nodes, room, counts, all: 0 };
        }
        let Some(ledger) = view.ledger.free_set() else { return };
        let Free { nodes, counts, all, .. } = self;
        nodes.follow(ledger, |node, is_free| {
            // The machine may have nodes that are no processors.
            if varied.kin(0).run_of(node).is_none() {
                return;
            }
            *all = if is_free { *all + 1 } else { *all - 1 };
            for (application, counts) in counts.iter_mut().enumerate() {
                count(counts, varied.kin(application), node, is_free);
            }
        });
    }

    pub(super) fn count(&self) -> u32 {
        self.all
    }

    /// So many free processors, the most efficient ones.
    pub(super) fn most_efficient(&self, application: usize, count: u32) -> Option<Crew> {
        if count > self.all {
            return None;
        }
        let mut left = count;
        let mut members = Vec::new();
        for (run, free) in (0..).zip(&self.counts[application]) {
            if left == 0 {
                break;
            }
            let count = left.min(*free);
            left -= count;
            if count > 0 {
                members.push(OfRun { run, count });
            }
        }
        Some(Crew::new(members))
    }

    /// Takes so many free processors, the most efficient ones.
    pub(super) fn take(&mut self, application: usize, wanted: u32, varied: &Varied) -> Vec<NodeId> {
        let free = varied.by_efficiency(application).iter().filter(|node| self.nodes.has(**node));
        let taken: Vec<NodeId> = free.take(wanted as usize).map(|node| NodeId(*node)).collect();
        for NodeId(node) in &taken {
            self.nodes.remove(*node..*node + 1);
            self.all -= 1;
            for (application, counts) in self.counts.iter_mut().enumerate() {
                count(counts, varied.kin(application), *node, false);
            }
        }
        taken
    }
}

fn count(counts: &mut [u32], kin: &Kin, node: u32, is_free: bool) {
    if let Some(run) = kin.run_of(node) {
        let count = &mut counts[run as usize];
        *count = if is_free { *count + 1 } else { *count - 1 };
    }
}
