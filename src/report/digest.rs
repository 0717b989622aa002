//! What is kept of a run for pictures.
//!
//! A digest has the figures of a run, and beside them just as much as its pictures need: curves that
//! are condensed to what a screen can show ([`Envelope`], [`Ranks`]), and whole numbers for each job and
//! each rectangle of the schedule, packed ([`Column`]). It can be written as JSON and read again, and it
//! stands alone: the workload and the run may be forgotten. The same run gives the same digest.

use serde::{Deserialize, Serialize};

use crate::calendar::Calendar;
use crate::job::Job;
use crate::metrics::{RunContext, Summary, WaitsBy, bounded_slowdown, wait, waits_by};
use crate::sim::{Record, Run, State};
use crate::units::{Instant, Span, Watts};

mod column;
mod envelope;
mod lanes;
mod lighter;
mod ranks;
mod rest;
mod stretches;
mod walk;

pub use column::Column;
pub use envelope::Envelope;
pub(crate) use envelope::MOST_PARTS;
pub use ranks::Ranks;
pub(crate) use rest::MOST_JOBS;
pub use rest::Rest;
pub(in crate::report) use rest::{CLASSES, SLOWDOWNS, TILES, WAITS, largest};

use lanes::Bar;
use rest::{Looks, Rectangle, Tiles};
use walk::walk;

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
    /// The jobs; where there are too many, those with the most node time.
    pub jobs: Jobs,
    /// The schedule as rectangles: those of these jobs.
    pub bars: Bars,
    /// What all other jobs cover of the schedule, if there are others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<Rest>,
}

/// What became of each job that is kept, in the order of submission. Jobs that did not run have zeros from `wait` on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jobs {
    /// The number its user knows it by.
    pub number: Column,
    /// When it was submitted, in milliseconds.
    pub submit: Column,
    /// Its state, as a place in `STATES`.
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
pub(crate) const STATES: [&str; 5] = ["completed", "killed", "rejected", "dropped", "waiting"];

/// The places in [`STATES`] of jobs that ran.
pub(crate) const RAN: [u64; 2] = [0, 1];

/// The schedule as rectangles, by job and time. The nodes of a job are assumed if the run did not record them: lanes
/// are handed out one after another. A job whose nodes changed, or that found no row of free lanes, has several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bars {
    /// The job, by its place among those that are kept.
    pub(crate) job: Column,
    /// By how many milliseconds the rectangle begins after the job; mostly none.
    pub(crate) late: Column,
    /// By how many milliseconds it ends before the job; mostly none.
    pub(crate) early: Column,
    /// Its first lane.
    pub(crate) lane: Column,
    /// How many lanes it has.
    pub(crate) lanes: Column,
}

impl Digest {
    /// The digest of a run. The power over time is in it if the run [kept
    /// it](crate::sim::Simulation::keep_power).
    pub(crate) fn of(subject: &RunContext<'_>, run: &Run, summary: &Summary) -> Self {
        Digest::with(usize::MAX, subject, run, summary)
    }

    /// The same with at most this many jobs one by one. What others cover of the schedule is kept in tiles.
    pub fn with(most: usize, subject: &RunContext<'_>, run: &Run, summary: &Summary) -> Self {
        let (begin, end) = (run.begin, run.end);
        let limits = [(begin, subject.budget.at(begin))];
        let limits = limits.iter().chain(subject.budget.changes_after(begin));
        // There may be a limit at some times and none at others.
        let limits = limits.filter(|_| subject.budget.is_limited());
        let rows = || subject.workload.jobs().iter().zip(&run.records);
        let ranks = |figure: &dyn Fn(&Job, &Record) -> u64| {
            let ran = rows().filter(|(_, record)| record.state.has_run());
            Ranks::of(ran.map(|(job, record)| figure(job, record)).collect())
        };

        let threshold = subject.bsld_threshold;
        // One after the other: each needs a number for every job meanwhile.
        let waits = ranks(&|job, record| wait(job, record).millis());
        let slowdowns = ranks(&|job, record| slowdown(job, record, threshold));
        let waits_by = waits_by(subject, run);
        let mut schedule = Schedule::new(most, subject, run);
        let nodes = subject.machine.nodes;
        let seen = walk(subject.workload.jobs(), run, nodes, |bar| schedule.add(bar));
        let (jobs, bars, rest) = schedule.finish();
        Digest {
            summary: summary.clone(),
            budget: String::new(),
            variant: String::new(),
            start: subject.workload.calendar().ok().map(Calendar::to_string),
            begin: begin.millis(),
            end: end.millis(),
            power: Envelope::of(
                run.power.iter().map(|sample| (sample.at, sample.power.milliwatts())),
                begin,
                end,
            ),
            limit: Envelope::of(limits.map(|&(at, limit)| (at, drawable(limit))), begin, end),
            busy: seen.busy,
            queue: seen.queue,
            waits,
            slowdowns,
            waits_by,
            jobs,
            bars,
            rest,
        }
    }
}

/// The bounded slowdown in ten-thousandths.
fn slowdown(job: &Job, record: &Record, threshold: Span) -> u64 {
    (bounded_slowdown(job, record, threshold) * 10_000.0).round() as u64
}

/// The jobs and their rectangles, while those are found.
struct Schedule<'a> {
    subject: &'a RunContext<'a>,
    run: &'a Run,
    /// Which jobs are kept one by one.
    kept: Vec<bool>,
    bars: Vec<Bar>,
    /// What others cover, if there are others.
    tiles: Option<Tiles>,
}

impl<'a> Schedule<'a> {
    fn new(most: usize, subject: &'a RunContext<'a>, run: &'a Run) -> Self {
        let size = |record: &Record| {
            let time = record.end.since(record.start).millis();
            if record.state.has_run() { time.saturating_mul(u64::from(record.nodes)) } else { 0 }
        };
        let tiles = (run.records.len() > most).then(|| {
            let ran = run.records.iter().filter(|record| record.state.has_run());
            let caps = range(ran.map(|record| record.cap.milliwatts()));
            let span = [run.begin, run.end].map(Instant::millis);
            Tiles::new(span, subject.machine.nodes, caps, TILES)
        });
        let kept = match tiles.is_some() {
            true => largest(&run.records.iter().map(size).collect::<Vec<_>>(), most),
            false => vec![true; run.records.len()],
        };
        Schedule { subject, run, kept, bars: Vec::new(), tiles }
    }

    fn add(&mut self, bar: Bar) {
        let place = bar.job.index();
        let is_kept = self.kept[place];
        if is_kept {
            self.bars.push(bar);
        }
        let Some(tiles) = &mut self.tiles else { return };
        let rectangle = Rectangle {
            from: bar.from.millis(),
            until: bar.until.millis(),
            lane: bar.lane.into(),
            lanes: bar.lanes.into(),
        };
        if is_kept {
            return tiles.add_single(rectangle);
        }
        let (job, record) = (&self.subject.workload.jobs()[place], &self.run.records[place]);
        let looks = Looks {
            wait: wait(job, record).millis(),
            slowdown: slowdown(job, record, self.subject.bsld_threshold),
            cap: record.cap.milliwatts(),
        };
        tiles.add(rectangle, looks);
    }

    fn finish(mut self) -> (Jobs, Bars, Option<Rest>) {
        self.bars.sort_unstable();
        let others = self.kept.iter().filter(|is_kept| !**is_kept).count() as u64;
        let jobs = Jobs::of(self.subject, self.run, &self.kept);
        let bars = Bars::of(self.run, &self.bars, &self.kept);
        (jobs, bars, self.tiles.map(|tiles| tiles.rest(others)))
    }
}

/// The lowest and the highest of some values that are not zero; zeros if there are none.
fn range(values: impl Iterator<Item = u64>) -> [u64; 2] {
    let known = values.filter(|value| *value > 0);
    known
        .fold(None, |range: Option<[u64; 2]>, value| match range {
            Some([least, most]) => Some([least.min(value), most.max(value)]),
            None => Some([value, value]),
        })
        .unwrap_or_default()
}

/// A limit as it is drawn: where there is none, zero, which no budget can be.
fn drawable(limit: Watts) -> u64 {
    if limit == Watts::UNLIMITED { 0 } else { limit.milliwatts() }
}

impl Jobs {
    fn of(subject: &RunContext<'_>, run: &Run, kept: &[bool]) -> Self {
        let rows = || {
            let rows = subject.workload.jobs().iter().zip(&run.records).zip(kept);
            rows.filter(|(_, is_kept)| **is_kept).map(|(row, _)| row)
        };
        let ran = |figure: &dyn Fn(&Job, &Record) -> u64| -> Column {
            let figures = rows().map(|(job, record)| match record.state.has_run() {
                true => figure(job, record),
                false => 0,
            });
            figures.collect()
        };
        let threshold = subject.bsld_threshold;
        Jobs {
            number: rows().map(|(job, _)| job.number).collect(),
            submit: rows().map(|(job, _)| job.submit.millis()).collect(),
            state: rows().map(|(_, record)| place_of(record.state)).collect(),
            wait: ran(&|job, record| wait(job, record).millis()),
            run: ran(&|_, record| record.end.since(record.start).millis()),
            nodes: ran(&|_, record| u64::from(record.nodes)),
            cap: ran(&|_, record| record.cap.milliwatts()),
            slowdown: ran(&|job, record| slowdown(job, record, threshold)),
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
    /// In the order of jobs, all of which are kept.
    fn of(run: &Run, bars: &[Bar], kept: &[bool]) -> Self {
        let record = |bar: &Bar| run.records[bar.job.index()];
        let (mut job, mut before) = (0, 0);
        let place = |bar: &Bar| {
            before += kept[job..bar.job.index()].iter().filter(|is_kept| **is_kept).count() as u64;
            job = bar.job.index();
            before
        };
        Bars {
            job: bars.iter().map(place).collect(),
            late: bars.iter().map(|bar| bar.from.since(record(bar).start).millis()).collect(),
            early: bars.iter().map(|bar| record(bar).end.since(bar.until).millis()).collect(),
            lane: bars.iter().map(|bar| u64::from(bar.lane)).collect(),
            lanes: bars.iter().map(|bar| u64::from(bar.lanes)).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
