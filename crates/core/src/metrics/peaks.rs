//! An upper bound for what was drawn at once, where jobs were measured at their peaks.
//!
//! Power over time is that of means. Jobs do not draw the same all the time, and nobody knows when each has its peak. If
//! all that run together had theirs at once, this is what would be drawn.

use super::RunContext;
use crate::sim::Run;
use crate::units::{Instant, JobId, Watts};

/// The most that could have been drawn: at each instant what idle nodes draw, and what running jobs add at their peaks.
/// A job whose peak is not known, or which ran on other nodes than it asked for, counts with all that its nodes can draw.
/// Nothing if no peak is known.
pub(super) fn bound(context: &RunContext<'_>, run: &Run) -> Option<Watts> {
    let RunContext { machine, workload, .. } = *context;
    let peak = |job: JobId| workload.power(job).and_then(|power| power.peak());
    let jobs = || (0..run.records.len() as u32).map(JobId);
    jobs().find_map(peak)?;
    let whole = machine.added_power();
    let times = |power: Watts, nodes: u32| power.checked_mul(nodes).unwrap_or(Watts::LARGEST);
    let mut changes: Vec<(Instant, bool, u64)> = Vec::new();
    for job in jobs() {
        let record = &run.records[job.index()];
        if !record.state.has_run() {
            continue;
        }
        let most = times(whole, record.nodes);
        let is_as_asked = record.nodes == workload.jobs()[job.index()].nodes;
        let measured = peak(job).filter(|_| is_as_asked);
        let idle = times(machine.node().idle, record.nodes);
        let added = measured.map_or(most, |peak| peak.saturating_sub(idle).min(most));
        changes.push((record.start, true, added.milliwatts()));
        changes.push((record.end, false, added.milliwatts()));
    }
    // Whoever ends makes room for those who begin at the same instant.
    changes.sort_unstable();
    let (mut added, mut most) = (0u64, 0u64);
    for (_, begins, power) in changes {
        added = if begins { added.saturating_add(power) } else { added.saturating_sub(power) };
        most = most.max(added);
    }
    Some(machine.floor().saturating_add(Watts::from_milliwatts(most)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::job::Job;
    use crate::machine::{Details, Machine};
    use crate::metrics::BSLD_THRESHOLD;
    use crate::policy::plain;
    use crate::sim::Simulation;
    use crate::units::Span;
    use crate::workload::{MeasuredPower, Workload};

    /// By hand: two jobs run together for a while, and a third alone. Nodes draw 20 W when idle and up to 100 W.
    #[test]
    fn peaks_add_up_where_jobs_run_together() {
        let job = |number, at, nodes| {
            let run_time = Span::from_secs(10);
            (Job::new(number, Instant::from_secs(at), nodes, run_time), run_time)
        };
        let peak = |watts: u32| MeasuredPower::new(None, Some(Watts::from_watts(watts)));
        let workload = Workload::new("three", [job(1, 0, 2), job(2, 5, 1), job(3, 50, 4)]);
        let details = Details { idle: Some(Watts::from_watts(20)), ..Details::ideal() };
        let machine = Machine { details, ..Machine::of_processors(4).unwrap() };
        let bound_of = |powers: [Option<MeasuredPower>; 3]| {
            let workload = workload.clone().with_powers(powers.to_vec());
            let run = Simulation::new(&machine, &workload).run(plain().as_mut());
            let budget = Budget::unlimited();
            let context = RunContext {
                policy: "easy",
                machine: &machine,
                workload: &workload,
                budget: &budget,
                bsld_threshold: BSLD_THRESHOLD,
                has_gears: false,
                has_reference: true,
                freedoms: None,
                world: None,
                windows: None,
            };
            bound(&context, &run).map(|power| power.milliwatts() / 1000)
        };
        // 80 W of idle nodes, 150 - 40 W and 70 - 20 W more; alone, 200 - 80 W.
        assert_eq!(bound_of([peak(150), peak(70), peak(200)]), Some(80 + 110 + 50));
        // Who was not measured counts with all that it can draw: 320 W on four nodes.
        assert_eq!(bound_of([peak(150), peak(70), None]), Some(80 + 320));
        assert_eq!(bound_of([None; 3]), None);
    }
}
