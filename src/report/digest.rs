//! What is kept of a run for pictures.
//!
//! A digest has the figures of a run, and beside them just as much as its pictures need: curves that
//! are condensed to what a screen can show ([`Envelope`], [`Ranks`]), and whole numbers for each job and
//! each rectangle of the schedule, packed ([`Column`]). It can be written as JSON and read again, and it
//! stands alone: the workload and the run may be forgotten. The same run gives the same digest.

use serde::{Deserialize, Serialize};

use crate::calendar::Calendar;
use crate::metrics::{RunContext, Summary, WaitsBy, bounded_slowdown, wait, waits_by};
use crate::sim::{Run, State};
use crate::units::{Instant, Watts};

mod column;
mod envelope;
mod lanes;
mod ranks;
mod stretches;

pub use column::Column;
pub use envelope::{Envelope, MOST_PARTS};
pub use ranks::Ranks;

use lanes::lanes;
use stretches::{busy, queue, stretches};

/// What is kept of a run for pictures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Digest {
    /// The figures.
    pub summary: Summary,
    /// What the budget was, as it was asked for, such as `80%`; empty if that is not known. Its watts
    /// are in the summary.
    pub budget: String,
    /// What sets this run apart from others of the same policy, workload and budget, such as `seed 2`;
    /// empty if nothing does.
    pub variant: String,
    /// The date at which the clock starts, with its zone, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// When the first job was submitted, in milliseconds.
    pub begin: u64,
    /// When the last job ended.
    pub end: u64,
    /// Power drawn, in milliwatts. Nothing, unless the run kept it.
    pub power: Envelope,
    /// The limits in force, in milliwatts. Nothing without a budget.
    pub limit: Envelope,
    /// Nodes that ran a job.
    pub busy: Envelope,
    /// Jobs that were submitted and had not started.
    #[serde(default)]
    pub queue: Envelope,
    /// How long jobs waited, in milliseconds.
    pub waits: Ranks,
    /// Their bounded slowdowns, in ten-thousandths.
    pub slowdowns: Ranks,
    /// Who waited how long.
    #[serde(default)]
    pub waits_by: Vec<WaitsBy>,
    /// The jobs.
    pub jobs: Jobs,
    /// The schedule as rectangles.
    pub bars: Bars,
}

/// What became of each job, in the order of submission. Jobs that did not run have zeros from `wait` on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jobs {
    /// The number its user knows it by.
    pub number: Column,
    /// When it was submitted, in milliseconds.
    pub submit: Column,
    /// Its state, as a place in [`STATES`].
    pub state: Column,
    /// How long it waited, in milliseconds.
    pub wait: Column,
    /// How long it ran, in milliseconds.
    pub run: Column,
    /// The nodes it had at its end.
    pub nodes: Column,
    /// What each of them could draw, in milliwatts.
    pub cap: Column,
    /// Its bounded slowdown, in ten-thousandths.
    pub slowdown: Column,
}

/// The states of jobs by their names, in the order in which [`Jobs::state`] counts them.
pub const STATES: [&str; 5] = ["completed", "killed", "rejected", "dropped", "waiting"];

/// The places in [`STATES`] of jobs that ran.
pub const RAN: [u64; 2] = [0, 1];

/// The schedule as rectangles, by job and time. Which nodes a job had is made up where nobody said so:
/// lanes are handed out one after another. A job whose nodes changed, or that found no row of free lanes,
/// has several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bars {
    /// The job, by its place.
    pub job: Column,
    /// By how many milliseconds the rectangle begins after the job; mostly none.
    pub late: Column,
    /// By how many milliseconds it ends before the job; mostly none.
    pub early: Column,
    /// Its first lane.
    pub lane: Column,
    /// How many lanes it has.
    pub lanes: Column,
}

impl Digest {
    /// The digest of a run. The power over time is in it if the run [kept
    /// it](crate::sim::Simulation::keep_power).
    pub fn of(subject: &RunContext<'_>, run: &Run, summary: &Summary) -> Self {
        let (begin, end) = (run.begin, run.end);
        let power: Vec<(Instant, u64)> =
            run.power.iter().map(|sample| (sample.at, sample.power.milliwatts())).collect();
        let limits = [(begin, subject.budget.at(begin))];
        let limits = limits.iter().chain(subject.budget.changes_after(begin));
        let limits: Vec<(Instant, u64)> = match subject.budget.is_limited() {
            // There may be a limit at some times and none at others.
            true => limits.map(|&(at, limit)| (at, drawable(limit))).collect(),
            false => Vec::new(),
        };
        let stretches = stretches(run);
        let jobs = Jobs::of(subject, run);
        let of_those_that_ran = |column: &Column| {
            let ran = run.records.iter().map(|record| record.state.has_run());
            let values = column.values().iter().zip(ran);
            Ranks::of(values.filter(|(_, ran)| *ran).map(|(value, _)| *value).collect())
        };
        Digest {
            summary: summary.clone(),
            budget: String::new(),
            variant: String::new(),
            start: subject.workload.calendar().ok().map(Calendar::to_string),
            begin: begin.millis(),
            end: end.millis(),
            power: Envelope::of(&power, begin, end),
            limit: Envelope::of(&limits, begin, end),
            busy: Envelope::of(&busy(&stretches, begin), begin, end),
            queue: Envelope::of(&queue(subject.workload.jobs(), run), begin, end),
            waits: of_those_that_ran(&jobs.wait),
            slowdowns: of_those_that_ran(&jobs.slowdown),
            waits_by: waits_by(subject, run),
            bars: Bars::of(run, &lanes(&stretches, subject.machine.nodes)),
            jobs,
        }
    }
}

/// A limit as it is drawn: where there is none, zero, which no budget can be.
fn drawable(limit: Watts) -> u64 {
    if limit == Watts::UNLIMITED { 0 } else { limit.milliwatts() }
}

impl Jobs {
    fn of(subject: &RunContext<'_>, run: &Run) -> Self {
        let rows = || subject.workload.jobs().iter().zip(&run.records);
        let ran = |figure: &dyn Fn(_, _) -> u64| -> Column {
            let figures = rows().map(|(job, record)| match record.state.has_run() {
                true => figure(job, record),
                false => 0,
            });
            figures.collect()
        };
        let slowdown = |job: &_, record: &_| {
            (bounded_slowdown(job, record, subject.bsld_threshold) * 10_000.0).round() as u64
        };
        Jobs {
            number: rows().map(|(job, _)| job.number).collect(),
            submit: rows().map(|(job, _)| job.submit.millis()).collect(),
            state: rows().map(|(_, record)| place_of(record.state)).collect(),
            wait: ran(&|job, record| wait(job, record).millis()),
            run: ran(&|_, record| record.end.since(record.start).millis()),
            nodes: ran(&|_, record| u64::from(record.nodes)),
            cap: ran(&|_, record| record.cap.milliwatts()),
            slowdown: ran(&slowdown),
        }
    }
}

fn place_of(state: State) -> u64 {
    match state {
        State::Completed => 0,
        State::Killed => 1,
        State::Rejected(_) => 2,
        State::Dropped(_) => 3,
        // When a run is over nothing runs, unless it ended with a period.
        State::Waiting | State::Running => 4,
    }
}

impl Bars {
    fn of(run: &Run, bars: &[lanes::Bar]) -> Self {
        let record = |bar: &lanes::Bar| run.records[bar.job.index()];
        Bars {
            job: bars.iter().map(|bar| u64::from(bar.job.0)).collect(),
            late: bars.iter().map(|bar| bar.from.since(record(bar).start).millis()).collect(),
            early: bars.iter().map(|bar| record(bar).end.since(bar.until).millis()).collect(),
            lane: bars.iter().map(|bar| u64::from(bar.lane)).collect(),
            lanes: bars.iter().map(|bar| u64::from(bar.lanes)).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
