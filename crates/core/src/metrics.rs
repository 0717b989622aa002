//! What a run amounts to. The definitions stand in `docs/reference/metrics.md`.

use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::calendar::Windows;
use crate::dispatch::Rejection;
use crate::freedom::Freedoms;
use crate::job::Job;
use crate::machine::Machine;
use crate::policy::{DropReason, Predictions};
use crate::sim::{EnergyByState, Record, Run, State};
use crate::units::{Instant, Joules, Span, Watts};
use crate::workload::Workload;
use crate::world::World;

mod breakdown;
mod energy_totals;
mod feeds;
mod jobs;
mod peaks;
mod speed;
mod tasks;
mod window;

use jobs::JobsThatRan;

pub use breakdown::{By, WaitClass, WaitFigures, WaitsBy, waits_by};
pub use energy_totals::energy_totals;
pub use feeds::FeedFigures;
pub use tasks::{Portion, TaskFigures, counts};
pub use window::WindowFigures;

/// The time a job waited.
#[inline]
pub fn wait(job: &Job, record: &Record) -> Span {
    record.start.since(job.submit)
}

/// The bounded slowdown: wait and run time over the run time, where a job shorter than the
/// threshold counts as that long, and never below one.
#[inline]
pub fn bounded_slowdown(job: &Job, record: &Record, threshold: Span) -> f64 {
    bounded_slowdown_against(record.end.since(record.start), job, record, threshold)
}

/// The same against another run time, such as the one at the nominal operating point: what a user
/// sees who did not ask to be slowed.
#[inline]
fn bounded_slowdown_against(run_time: Span, job: &Job, record: &Record, threshold: Span) -> f64 {
    let turnaround = record.end.since(job.submit);
    (turnaround.millis() as f64 / run_time.max(threshold).millis() as f64).max(1.0)
}

/// The usual threshold of the bounded slowdown: ten minutes.
pub const BSLD_THRESHOLD: Span = Span::from_secs(600);

/// The figures of one run.
///
/// Times are in seconds, power in watts, energy in joules. Later versions add keys and never
/// rename these. Figures that need a job that ran, or a budget, are null without one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The policy, by its name and parameters.
    pub policy: String,
    /// What the policy makes use of beyond starting jobs as they were asked for, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freedoms: Option<String>,
    /// The workload's name.
    pub workload: String,
    /// The machine's name.
    pub machine: String,
    /// The machine's nodes.
    pub nodes: u32,
    /// Nodes of the machine, where they are of several kinds or shared by jobs, and everything else counts processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_nodes: Option<u32>,
    /// Jobs submitted.
    pub jobs: u64,
    /// Jobs that ran to their end.
    pub completed: u64,
    /// Jobs ended at their limit.
    pub killed: u64,
    /// Of those, jobs that would have ended in time as they were asked for: the policy gave them something
    /// else, and believed that they would take less time with that.
    #[serde(default)]
    pub killed_by_belief: u64,
    /// Jobs turned away because they could never run.
    pub rejected: u64,
    /// Of those, jobs that need more nodes than the machine has.
    pub rejected_nodes: u64,
    /// Of those, jobs that need more power than the budget allows.
    pub rejected_power: u64,
    /// Jobs the policy gave up.
    pub dropped: u64,
    /// Of those, jobs that the budget never feeds, even alone.
    #[serde(default)]
    pub dropped_power: u64,
    /// Jobs that still waited when nothing could happen any more.
    pub unfinished: u64,
    /// How often a failing node threw a job out.
    pub restarts: u64,
    /// How often the nodes or the cap of a running job changed.
    pub changes: u64,
    /// Of these, changes of nodes for which jobs had to stand still.
    pub moves: u64,
    /// Jobs that started while a job ahead of them still waited.
    pub backfilled: u64,
    /// From the first submission to the last end.
    pub makespan_s: f64,
    /// Mean time from submission to start.
    pub mean_wait_s: Option<f64>,
    /// Median of the same.
    pub median_wait_s: Option<f64>,
    /// The longest wait.
    pub max_wait_s: Option<f64>,
    /// How long 99 of 100 jobs that ran waited at most, in seconds.
    #[serde(default)]
    pub p99_wait_s: Option<f64>,
    /// Mean time from submission to end.
    pub mean_turnaround_s: Option<f64>,
    /// Mean bounded slowdown.
    pub mean_bsld: Option<f64>,
    /// The largest bounded slowdown.
    pub max_bsld: Option<f64>,
    /// Mean bounded slowdown against the run time at the nominal operating point.
    pub mean_bsld_nominal: Option<f64>,
    /// The threshold of the bounded slowdown.
    pub bsld_threshold_s: f64,
    /// Share of all node time between first submission and last end that jobs used.
    pub utilisation: Option<f64>,
    /// What jobs that ran would have used of nodes as they were asked for, in node seconds: what was done,
    /// whatever was used for it.
    #[serde(default)]
    pub work_node_s: f64,
    /// The power budget, its mean over the makespan if it changes.
    pub budget_w: Option<f64>,
    /// Share of the budget's energy that was used.
    pub budget_used: Option<f64>,
    /// The most power ever drawn.
    pub peak_power_w: f64,
    /// An upper bound for what was drawn at once: all jobs that run together at their measured peaks. Nothing if no
    /// peak was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_of_peaks_w: Option<f64>,
    /// Mean power over the makespan.
    pub mean_power_w: Option<f64>,
    /// Energy drawn over the makespan.
    pub energy_j: f64,
    /// What that energy was drawn for, in microjoules.
    #[serde(default)]
    pub energy_by_state: EnergyByState,
    /// The energy that the site drew for the machine and its cooling, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site_energy_j: Option<f64>,
    /// The most power that the site drew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site_peak_w: Option<f64>,
    /// For how long cooling counts with its highest PUE, because the temperature outdoors is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outdoor_unknown_s: Option<f64>,
    /// How often a node was switched off, if there is a rule for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_stops: Option<u64>,
    /// For how long more was drawn than the budget allowed.
    pub over_budget_s: f64,
    /// How often that happened: jobs drew more than was believed.
    pub excursions: u64,
    /// By how much at most.
    pub worst_excursion_w: f64,
    /// The most power that was ever believed to be drawn.
    pub peak_believed_w: f64,
    /// Decisions the ledger refused.
    pub violations: u64,
    /// Decisions the policy took.
    pub decisions: u64,
    /// How often the policy was asked.
    pub turns: u64,
    /// Whether the power figures rest on an assumed draw of a node.
    pub power_is_assumed: bool,
    /// Mean frequency of all node time that jobs used.
    pub mean_frequency_ghz: Option<f64>,
    /// Energy of the jobs that ran over what they would have drawn at their nominal points.
    pub energy_vs_nominal: Option<f64>,
    /// Jobs that ran slower because the budget, from their start on, could never feed them at
    /// nominal speed for as long as they asked.
    pub oversized: u64,
    /// Whether frequencies rest on an assumed set of gears.
    pub gears_are_assumed: bool,
    /// What tasks with utilities earned, where there are such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TaskFigures>,
    /// How far off the predictions of the policy were, if it makes any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predictions: Option<Predictions>,
    /// The currency of all costs, where anything has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// What it cost: energy, and the highest quarter of an hour of each month. None where a price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Of that, what the energy cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_cost: Option<f64>,
    /// Of that, what the highest quarters of an hour cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demand_cost: Option<f64>,
    /// The highest mean power of a quarter of an hour, where it costs anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_quarter_w: Option<f64>,
    /// Kilograms of carbon dioxide, where they are counted and known for all of the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carbon_kg: Option<f64>,
    /// For how long a price or a carbon intensity was not known, if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tariff_unknown_s: Option<f64>,
    /// Figures of parts of the time, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowFigures>,
    /// Figures of the feeds of the machine, where it has feeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feeds: Option<Vec<FeedFigures>>,
    /// Of the jobs that were rejected, those that need more power than feeds carry, where the machine has feeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected_feeds: Option<u64>,
    /// Of the jobs that were rejected, those that are over a limit of the site, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected_limits: Option<u64>,
    /// Of the jobs that were rejected, those that depend on what could not happen any more, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected_dependencies: Option<u64>,
}

/// What a summary is about, beside the run itself.
#[derive(Clone, Copy, Debug)]
pub struct RunContext<'a> {
    /// The policy's name.
    pub policy: &'a str,
    /// The machine.
    pub machine: &'a Machine,
    /// The workload.
    pub workload: &'a Workload,
    /// The budget.
    pub budget: &'a Budget,
    /// The threshold of the bounded slowdown.
    pub bsld_threshold: Span,
    /// Whether jobs run at the machine's nodes and gears, so that their frequency and what they
    /// would have taken at nominal speed are known. They are not where profiles say how jobs run.
    pub has_gears: bool,
    /// Whether jobs take what the workload says if they run as they were asked for.
    pub has_reference: bool,
    /// What the policy makes use of, where all policies share a world.
    pub freedoms: Option<Freedoms>,
    /// The world, where the run was in the common one.
    pub world: Option<&'a World>,
    /// Parts of the time that have figures of their own.
    pub windows: Option<&'a Windows>,
}

impl Summary {
    /// The figures of a run.
    pub fn of(context: &RunContext<'_>, run: &Run) -> Self {
        let RunContext { machine, workload, budget, bsld_threshold, .. } = *context;
        let count = |wanted: fn(&State) -> bool| {
            run.records.iter().filter(|record| wanted(&record.state)).count() as u64
        };
        let mut ran = JobsThatRan::of(context, run);
        let makespan = run.end.since(run.begin);
        let ratio = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let budget_energy = budget.is_limited().then(|| energy_allowed(budget, run.begin, run.end));
        Summary {
            policy: context.policy.to_owned(),
            freedoms: context.freedoms.map(|freedoms| freedoms.to_string()),
            workload: workload.name().to_owned(),
            machine: machine.name.clone(),
            nodes: machine.nodes,
            whole_nodes: machine.kinds.as_ref().map(|kinds| kinds.nodes()),
            jobs: run.records.len() as u64,
            completed: count(|state| *state == State::Completed),
            killed: count(|state| *state == State::Killed),
            killed_by_belief: ran.killed_by_belief,
            rejected: count(|state| matches!(state, State::Rejected(_))),
            rejected_nodes: count(|state| {
                matches!(state, State::Rejected(Rejection::TooManyNodes | Rejection::NoNode(_)))
            }),
            rejected_power: count(|state| *state == State::Rejected(Rejection::TooMuchPower)),
            dropped: count(|state| matches!(state, State::Dropped(_))),
            dropped_power: count(|state| *state == State::Dropped(DropReason::NeverFed)),
            unfinished: run.unfinished,
            changes: run.changes.len() as u64,
            moves: run.changes.iter().filter(|change| change.pause > Span::ZERO).count() as u64,
            restarts: run.records.iter().map(|record| u64::from(record.restarts)).sum(),
            backfilled: run.records.iter().filter(|record| record.backfilled).count() as u64,
            makespan_s: makespan.secs_f64(),
            mean_wait_s: ran.mean_wait(),
            median_wait_s: ran.median_wait(),
            max_wait_s: ran.longest_wait(),
            p99_wait_s: ran.p99_wait(),
            mean_turnaround_s: ran.mean_turnaround(),
            mean_bsld: ran.mean_bsld(),
            max_bsld: ran.worst_bsld(),
            mean_bsld_nominal: ran.mean_bsld_nominal().filter(|_| context.has_reference),
            bsld_threshold_s: bsld_threshold.secs_f64(),
            utilisation: ratio(
                ran.node_time as f64,
                f64::from(machine.nodes) * makespan.millis() as f64,
            ),
            work_node_s: ran.work as f64 / 1000.0,
            budget_w: budget_energy.and_then(|energy| match budget.changes_after(run.begin) {
                [] => Some(budget.at(run.begin).as_f64()),
                _ => ratio(energy.as_f64(), makespan.secs_f64()),
            }),
            budget_used: budget_energy
                .and_then(|energy| ratio(run.energy.as_f64(), energy.as_f64())),
            peak_power_w: run.peak.as_f64(),
            peak_of_peaks_w: peaks::bound(context, run).map(Watts::as_f64),
            mean_power_w: ratio(run.energy.as_f64(), makespan.secs_f64()),
            energy_j: run.energy.as_f64(),
            energy_by_state: run.energy_by_state,
            site_energy_j: run.site.map(|site| site.energy.as_f64()),
            site_peak_w: run.site.map(|site| site.peak.as_f64()),
            outdoor_unknown_s: run
                .site
                .filter(|site| site.unknown > Span::ZERO)
                .map(|site| site.unknown.secs_f64()),
            node_stops: run.node_stops,
            over_budget_s: run.excursions.time.secs_f64(),
            excursions: run.excursions.count,
            worst_excursion_w: run.excursions.worst.as_f64(),
            peak_believed_w: run.peak_held.as_f64(),
            violations: run.violations,
            decisions: run.decisions,
            turns: run.turns,
            power_is_assumed: machine.power_is_assumed,
            mean_frequency_ghz: ran.speed.mean_frequency(),
            energy_vs_nominal: ran.speed.energy_vs_nominal(),
            oversized: ran.speed.oversized,
            gears_are_assumed: machine.gearbox.is_assumed(),
            tasks: None,
            predictions: run.predictions,
            currency: None,
            cost: None,
            energy_cost: None,
            demand_cost: None,
            peak_quarter_w: None,
            carbon_kg: None,
            tariff_unknown_s: None,
            window: None,
            feeds: feeds::figures(context, run),
            rejected_limits: Some(count(|state| {
                matches!(state, State::Rejected(Rejection::OverLimit(_)))
            }))
            .filter(|count| *count > 0),
            rejected_dependencies: Some(count(|state| {
                *state == State::Rejected(Rejection::NeverEligible)
            }))
            .filter(|count| *count > 0),
            rejected_feeds: machine.feeds.as_ref().map(|_| {
                count(|state| matches!(state, State::Rejected(Rejection::FeedTooSmall { .. })))
            }),
        }
        .charged(context, run)
    }

    /// That a price or a carbon intensity was not known for all of the time, if it was not.
    pub fn unknown_tariff(&self) -> Option<String> {
        let seconds = self.tariff_unknown_s?;
        Some(format!(
            "the price or the carbon intensity of {seconds:.0} s of the run is unknown, so no total cost or \
            emission is reported; give a longer series, or add 'repeat' to it"
        ))
    }

    /// That cooling counts with its highest PUE for a while, if it is so.
    pub fn unknown_outdoor(&self) -> Option<String> {
        let seconds = self.outdoor_unknown_s?;
        Some(format!(
            "the outdoor temperature is unknown for {seconds:.0} s of the run, for which the highest PUE counts; \
            give a longer series, or add 'repeat' to it"
        ))
    }

    /// With what was charged.
    fn charged(mut self, context: &RunContext<'_>, run: &Run) -> Self {
        let Some(charges) = run.charges else { return self };
        let whole = |micros: i128| micros as f64 / 1e6;
        let parts = [charges.energy, charges.demand];
        let total = parts.iter().flatten().copied().reduce(|sum, part| sum + part);
        self.currency = charges.currency.map(|currency| currency.to_string());
        // A part that is not known makes the whole unknown.
        self.cost = total.filter(|_| charges.unpriced == Span::ZERO).map(whole);
        self.energy_cost = charges.energy.map(whole);
        self.demand_cost = charges.demand.map(whole);
        self.peak_quarter_w = charges.highest_quarter.map(Watts::as_f64);
        self.carbon_kg = charges.carbon.map(|micrograms| micrograms as f64 / 1e9);
        let unknown = charges.unpriced.max(charges.uncounted);
        self.tariff_unknown_s = (unknown > Span::ZERO).then(|| unknown.secs_f64());
        let window = context.windows.zip(charges.window);
        self.window =
            window.map(|(windows, of)| WindowFigures::of(windows, &of, context.workload, run));
        self
    }
}

/// The energy a budget allows between two instants.
fn energy_allowed(budget: &Budget, begin: Instant, end: Instant) -> Joules {
    let mut energy = Joules::ZERO;
    let mut from: (Instant, Watts) = (begin, budget.at(begin));
    for &(at, limit) in budget.changes_after(begin).iter().take_while(|change| change.0 < end) {
        energy += from.1.over(at.since(from.0));
        from = (at, limit);
    }
    energy + from.1.over(end.since(from.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Fcfs;
    use crate::sim::Simulation;

    fn job(submit: u32, nodes: u32, seconds: u32) -> (Job, Span) {
        let requested = Span::from_secs(seconds);
        let submit = Instant::from_secs(submit);
        (Job::new(1, submit, nodes, requested), requested)
    }

    /// Two nodes of 100 W. The first job holds both for 1000 s; the second, one node for 100 s,
    /// waits 900 s; the third is too large.
    #[test]
    fn figures_by_hand() {
        let machine = Machine::of_processors(2).unwrap();
        let workload = Workload::new("hand", [job(100, 2, 1000), job(200, 1, 100), job(200, 3, 1)]);
        let budget = Budget::constant(Watts::from_watts(250));
        let run = Simulation::new(&machine, &workload).budget(budget.clone()).run(&mut Fcfs);
        let subject = RunContext {
            policy: "fcfs",
            machine: &machine,
            workload: &workload,
            budget: &budget,
            bsld_threshold: BSLD_THRESHOLD,
            has_gears: true,
            has_reference: true,
            freedoms: None,
            world: None,
            windows: None,
        };
        let summary = Summary::of(&subject, &run);
        assert_eq!((summary.jobs, summary.completed, summary.rejected_nodes), (3, 2, 1));
        assert_eq!(summary.makespan_s, 1100.0);
        assert_eq!(summary.mean_wait_s, Some(450.0));
        assert_eq!(summary.median_wait_s, Some(450.0));
        assert_eq!(summary.mean_turnaround_s, Some((1000.0 + 1000.0) / 2.0));
        // 1 and (900 + 100) / 600.
        assert_eq!(summary.max_bsld, Some(1000.0 / 600.0));
        assert_eq!(summary.mean_bsld, Some((1.0 + 1000.0 / 600.0) / 2.0));
        assert_eq!(summary.utilisation, Some(2100.0 / 2200.0));
        assert_eq!(summary.energy_j, 210_000.0);
        assert_eq!(summary.peak_power_w, 200.0);
        assert_eq!(summary.mean_power_w, Some(210_000.0 / 1100.0));
        assert_eq!(summary.budget_used, Some(210_000.0 / (250.0 * 1100.0)));
        assert_eq!(summary.mean_bsld_nominal, summary.mean_bsld);
        assert_eq!(summary.mean_frequency_ghz, Some(2.3));
        assert_eq!((summary.energy_vs_nominal, summary.oversized), (Some(1.0), 0));
    }

    #[test]
    fn a_budget_that_changes_allows_the_sum_of_its_parts() {
        let steps = vec![
            (Instant::ZERO, Watts::from_watts(10)),
            (Instant::from_secs(5), Watts::from_watts(20)),
            (Instant::from_secs(9), Watts::from_watts(1)),
        ];
        let budget = Budget::from_steps(steps).unwrap();
        let allowed = |from, to| {
            energy_allowed(&budget, Instant::from_secs(from), Instant::from_secs(to)).as_f64()
        };
        assert_eq!(allowed(0, 12), 5.0 * 10.0 + 4.0 * 20.0 + 3.0);
        assert_eq!(allowed(6, 8), 40.0);
    }
}
