//! The finished jobs of a daemon, to be replayed in the simulator.

use super::active_budget::ActiveBudget;
use super::setup::Setup;
use crate::job::{Entry, Phase};
use crate::store::WallTimes;
use busbar_core::budget::Budget;
use busbar_core::job::Job;
use busbar_core::tuning::Past;
use busbar_core::units::Span;
use busbar_core::workload::Workload;

/// Finished jobs of a daemon with the machine they ran on, under the limits that are configured, or set by an
/// operator, now. Jobs that never ran are left out. What jobs waited for beside nodes and power, such as other
/// jobs, is not replayed: they are there from their submission on.
pub fn replayed_past(
    setup: &Setup,
    budget: &ActiveBudget,
    finished: Vec<(Entry, WallTimes)>,
) -> Past {
    let begin = finished.iter().map(|(entry, walls)| (entry.submit, walls.submit)).min();
    let end = finished.iter().filter_map(|(entry, _)| entry.end()).max();
    let budget = match begin.zip(end) {
        Some(((from, wall), end)) => budget.during(wall, from, end.since(from)),
        None => Budget::unlimited(),
    };
    let jobs = finished.iter().filter_map(|(entry, _)| job_and_time(setup, entry));
    let workload = Workload::new("finished jobs of the daemon", jobs);
    let (machine, repertoire) = (&*setup.machine, setup.decider.repertoire());
    Past::new(machine.clone(), workload, finished.len(), repertoire.clone(), budget)
}

/// A job that ran, and how long it would have run at full speed.
fn job_and_time(setup: &Setup, entry: &Entry) -> Option<(Job, Span)> {
    let Phase::Over(outcome) = &entry.phase else { return None };
    Some((setup.job(entry).ok()?, outcome.full_speed_time()?))
}
