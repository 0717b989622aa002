//! A run, added up again from what the watcher wrote down.

use std::collections::BTreeMap;

use busbar::budget::Budget;
use busbar::machine::Machine;
use busbar::model::{Model, OperatingPoint};
use busbar::sim::{Change, Run, State, Total};
use busbar::units::{Instant, JobId, Joules, Span};
use busbar::workload::Workload;

use super::watched::Event;

/// One event of the journal.
type Line = (Instant, JobId, Event);

/// All that a run is held against.
pub(super) struct Replay<'a> {
    pub(super) machine: &'a Machine,
    pub(super) workload: &'a Workload,
    pub(super) budget: &'a Budget,
    pub(super) model: &'a dyn Model,
    pub(super) journal: &'a [Line],
}

impl Replay<'_> {
    /// Checks the whole run.
    pub(super) fn check(&self, run: &Run) {
        assert_eq!(run.violations, 0, "{:?}", run.first_violations);
        let states = run.records.iter().map(|record| record.state);
        let is_known =
            |state| matches!(state, State::Completed | State::Rejected(_) | State::Waiting);
        assert!(states.clone().all(is_known), "{:?}", run.records);
        let waiting = states.filter(|state| *state == State::Waiting).count() as u64;
        assert_eq!((run.records.len(), run.unfinished), (self.workload.jobs().len(), waiting));
        let changes: Vec<Change> = self.journal.iter().filter_map(changed).collect();
        assert_eq!(run.changes, changes);
        self.check_sums(run);
        for job in (0..self.workload.jobs().len() as u32).map(JobId) {
            if run.records[job.index()].state == State::Completed {
                self.check_job(run, job);
            }
        }
    }

    /// Nodes and watts at every instant, energy, and time above the limit.
    fn check_sums(&self, run: &Run) {
        let base = self.machine.base_power;
        let mut times: Vec<Instant> = self.journal.iter().map(|line| line.0).collect();
        times.extend(self.budget.changes_after(Instant::ZERO).iter().map(|change| change.0));
        times.push(run.begin);
        times.retain(|at| run.begin <= *at && *at <= run.end);
        times.sort_unstable();
        times.dedup();
        let mut points: BTreeMap<JobId, OperatingPoint> = BTreeMap::new();
        let mut lines = self.journal.iter().peekable();
        let (mut energy, mut above) = (Joules::ZERO, Span::ZERO);
        for (index, at) in times.iter().enumerate() {
            while let Some((_, job, event)) = lines.next_if(|line| line.0 <= *at) {
                match event {
                    Event::Start(point) | Event::Change(point, _) => points.insert(*job, *point),
                    Event::Gone => points.remove(job),
                };
            }
            let nodes: u32 = points.values().map(|point| point.nodes).sum();
            assert!(nodes <= self.machine.nodes, "{nodes} nodes at {at}");
            let power = base + points.values().map(|point| point.power).sum();
            let span = times.get(index + 1).map_or(Span::ZERO, |next| next.since(*at));
            energy += power.over(span);
            if power > self.budget.at(*at) {
                above = above + span;
            }
        }
        assert!(points.is_empty() && lines.next().is_none(), "everybody is gone at the end");
        assert_eq!(run.energy, energy);
        assert_eq!(run.excursions.time, above);
    }

    /// What the job had in its last life, and that it did exactly its work.
    fn check_job(&self, run: &Run, job: JobId) {
        let record = &run.records[job.index()];
        let lines: Vec<&Line> = self.journal.iter().filter(|line| line.1 == job).collect();
        let is_start = |line: &&Line| matches!(line.2, Event::Start(_));
        let starts = lines.iter().filter(|line| is_start(line)).count();
        assert_eq!(starts, usize::from(record.restarts) + 1, "{job}: {lines:?}");
        let life = &lines[lines.iter().rposition(is_start).unwrap()..];
        assert_eq!((record.start, record.end), (life[0].0, life[life.len() - 1].0));
        assert_eq!(life[life.len() - 1].2, Event::Gone);

        let mut total = Total::default();
        let mut last: Option<(Instant, OperatingPoint)> = None;
        let (mut done, mut going_since, mut shortest) = (0.0, record.start, f64::INFINITY);
        for (at, _, event) in life {
            if let Some((since, point)) = last {
                let span = at.since(since);
                total.node_millis += u128::from(point.nodes) * u128::from(span.millis());
                total.energy += point.power.over(span);
                let run_time = self.workload.run_time(job);
                let asked = &self.workload.jobs()[job.index()];
                let whole = self.model.outcome(job, asked, run_time, &point).run_time;
                done += at.since(going_since).secs_f64() / whole.secs_f64();
                shortest = whole.secs_f64().min(shortest);
                going_since = going_since.max(*at);
            }
            match event {
                Event::Start(point) => last = Some((*at, *point)),
                Event::Change(point, pause) => {
                    last = Some((*at, *point));
                    going_since = going_since + *pause;
                }
                Event::Gone => last = None,
            }
        }
        assert_eq!(run.total(job), total, "{job}");
        let rounding = 0.001 * life.len() as f64 / shortest;
        assert!((done - 1.0).abs() <= rounding, "{job} did {done} of its work: {life:?}");
    }
}

fn changed((at, job, event): &Line) -> Option<Change> {
    let Event::Change(point, pause) = *event else { return None };
    let OperatingPoint { nodes, cap, power, .. } = point;
    Some(Change { at: *at, job: *job, nodes, cap, power, pause })
}
