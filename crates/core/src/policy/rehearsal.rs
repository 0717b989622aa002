//! Decisions are tried on a copy of the ledger before they are made, where no policy can know beforehand what the ledger will
//! say: below feeds, and where jobs ask for certain nodes.
//!
//! The copy refuses what the ledger would refuse, in the same order and for the same reasons. So the limits are in one place, and
//! whatever a policy has worked out in numbers of its own, it decides nothing that is over one of them.

use crate::ledger::Ledger;
use crate::policy::{Decision, View};

/// Whether decisions have to be tried.
pub(super) fn is_needed(view: &View<'_>) -> bool {
    view.ledger.has_feeds() || view.ledger.seating().is_some()
}

/// Carries a decision out if it can be; says whether it can. What does not concern nodes or watts always can.
pub(super) fn try_out(ledger: &mut Ledger, decision: &Decision) -> bool {
    match decision {
        Decision::Start { job, point } => ledger.start(*job, point).is_ok(),
        Decision::StartIn { job, point, nodes } => {
            ledger.start_in(*job, point, Some(nodes)).is_ok()
        }
        Decision::Change { job, point, left, .. } => ledger.change(*job, point, *left).is_ok(),
        _ => true,
    }
}

/// Keeps only those decisions that can be carried out one after the other.
pub(super) fn keep_possible(ledger: &Ledger, decisions: &mut Vec<Decision>) {
    let mut ledger = ledger.clone();
    decisions.retain(|decision| try_out(&mut ledger, decision));
}
