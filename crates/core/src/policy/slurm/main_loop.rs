//! The main loop: jobs by priority, until there is one in each partition that does not fit.
//!
//! A job that does not fit blocks its partition for this loop, and all nodes of that partition with it, so that no job of
//! another partition takes what it waits for. Who lacks power alone ends the loop, as a missing licence does in Slurm where the
//! backfill pass plans licences.

use super::floor::Floor;
use super::nodes::NodeSet;
use super::power::Power;
use super::select::Free;
use crate::policy::{Decision, Order, View};
use crate::priority::Scheduler;
use crate::units::Instant;

/// What came of a loop.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    /// Whether somebody was passed over because the partition was blocked.
    pub(super) passes_over: bool,
    /// Why the loop ended before it had seen all jobs that could start, if it did.
    pub(super) cut: Option<Cut>,
    /// When somebody becomes old enough to block others.
    pub(super) changes_at: Option<Instant>,
}

/// What ends a loop early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// It has seen as many jobs as it is to see.
    Depth,
    /// It has started some, and left out others who were too many: now these may be looked at.
    Starts,
}

/// Runs the loop over the whole queue, or to its usual depth. The order knows of all jobs that wait.
pub(super) fn run<O: Order>(
    view: &View<'_>,
    rules: &Scheduler,
    order: &O,
    floor: &mut Floor,
    power: &mut Power,
    is_whole: bool,
    decisions: &mut Vec<Decision>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut open = floor.up().clone();
    let mut blocked = vec![false; floor.partitions()];
    let mut tested = vec![0; floor.partitions()];
    let (mut depth, mut started, mut leaves_out) = (0, 0, false);
    let mut next = order.first(view);
    while let Some(job) = next {
        next = order.next(view, job);
        let Some(ask) = floor.ask(view, job) else { continue };
        let partition = ask.partition;
        if rules.sched_max_job_start > 0 && started >= rules.sched_max_job_start {
            leaves_out = true;
            break;
        }
        if rules.partition_job_depth > 0 {
            tested[partition] += 1;
            if tested[partition] > rules.partition_job_depth {
                leaves_out = true;
                continue;
            }
        }
        // As in Slurm, one more than it says.
        if !is_whole && depth > rules.default_queue_depth {
            outcome.cut = Some(Cut::Depth);
            break;
        }
        depth += 1;
        if blocked[partition] {
            outcome.passes_over = true;
            continue;
        }
        let mut its_nodes = open.clone();
        its_nodes.keep(floor.partition_nodes(partition));
        outcome.passes_over |= its_nodes.count() < ask.nodes;
        let mut enough: NodeSet = its_nodes;
        enough.keep(floor.places(&ask));
        floor.leave_out_reserved(&mut enough, view.now, view.now + ask.limit);
        floor.keep_enough(&ask, &mut enough);
        let free = Free { floor, left: floor.left(), prefers_busy: false };
        if let Some(nodes) = free.choose(rules, &ask, &enough) {
            if !power.fits(view.now, &ask.point) {
                break;
            }
            power.take(view.now, &ask.point);
            decisions.push(floor.start(view.now, &ask, nodes));
            started += 1;
            continue;
        }
        let old_enough = view.job(job).submit + rules.bf_min_age_reserve;
        if view.now < old_enough {
            outcome.changes_at = outcome.changes_at.into_iter().chain([old_enough]).min();
            continue;
        }
        if rules.bf_min_prio_reserve > 0 && !order.has_points(view, job, rules.bf_min_prio_reserve)
        {
            continue;
        }
        blocked[partition] = true;
        open.leave_out(floor.partition_nodes(partition));
        // Nobody else can start, and whoever is there is passed over.
        let is_over = open.count() == 0;
        if is_over && rules.partition_job_depth == 0 && rules.sched_max_job_start == 0 {
            match is_whole || depth <= rules.default_queue_depth {
                true => outcome.passes_over |= next.is_some(),
                false if next.is_some() => outcome.cut = Some(Cut::Depth),
                false => {}
            }
            break;
        }
    }
    if started > 0 && (leaves_out || outcome.cut.is_some()) {
        outcome.cut = Some(Cut::Starts);
    }
    outcome
}
