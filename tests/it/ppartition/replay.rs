//! A run, added up again from the caps that were set and the curves alone.

use busbar::machine::Machine;
use busbar::sim::{Capping, Run, State, Total};
use busbar::units::{Instant, JobId, Joules, Span, Watts};
use busbar::workload::Workload;

use super::watched::{curves, plain};
use super::work::{ALL, after, drawn, ips, left, whole};

/// All that a run is held against.
pub(super) struct Replay<'a> {
    pub(super) machine: &'a Machine,
    pub(super) workload: &'a Workload,
}

impl Replay<'_> {
    /// When every job ended and what it had, to the millisecond; says how many have run.
    pub(super) fn check(&self, run: &Run) -> usize {
        assert_eq!(run.violations, 0, "{:?}", run.first_violations);
        assert_eq!(run.records.len(), self.workload.jobs().len());
        let ids = (0..run.records.len() as u32).map(JobId);
        let waiting = run.records.iter().filter(|record| record.state == State::Waiting).count();
        assert_eq!(run.unfinished, waiting as u64);
        let ran: Vec<JobId> = ids.filter(|job| run.records[job.index()].state.has_run()).collect();
        ran.iter().for_each(|job| self.check_job(run, *job));
        if run.records.iter().all(|record| record.restarts == 0) {
            self.check_sums(run, &ran);
        }
        ran.len()
    }

    /// The caps a job had in its last life.
    fn life<'r>(&self, run: &'r Run, job: JobId) -> Vec<&'r Capping> {
        let start = run.records[job.index()].start;
        run.cappings.iter().filter(|capping| capping.job == job && capping.at >= start).collect()
    }

    fn check_job(&self, run: &Run, job: JobId) {
        let (record, asked) = (&run.records[job.index()], &self.workload.jobs()[job.index()]);
        let application = asked.application.unwrap().0.get() as usize - 1;
        let curves = curves(self.machine)[application];
        let life = self.life(run, job);
        assert_eq!(life[0].at, record.start, "{job}");
        let (mut work, mut allowance, mut since) = (ALL, ALL, record.start);
        let (mut time, mut limit, mut power) = (0, 0, 0);
        let mut total = Total::default();
        let mut charge = |from: Instant, to: Instant, power: u64| {
            let span = to.since(from);
            total.node_millis += u128::from(record.nodes) * u128::from(span.millis());
            total.energy += Watts::from_milliwatts(power).over(span);
        };
        for (place, capping) in life.iter().enumerate() {
            let elapsed = capping.at.since(since).millis();
            if place > 0 {
                charge(since, capping.at, power);
                work = after(work, elapsed, time);
                allowance = after(allowance, elapsed, limit);
            }
            let caps = plain(&capping.caps);
            assert_eq!(caps.len() as u32, record.nodes, "{job}");
            let speed = ips(curves, &caps);
            let takes = |span: Span| whole(span.millis(), asked.nodes, curves, speed);
            (time, limit) = (takes(self.workload.run_time(job)), takes(asked.requested).max(1));
            (power, since) = (drawn(curves, &caps), capping.at);
        }
        let (done, up) = (left(work, time), left(allowance, limit));
        let end = since + Span::from_millis(done.min(up));
        charge(since, end, power);
        let state = if up < done { State::Killed } else { State::Completed };
        assert_eq!((record.end, record.state), (end, state), "{job}: {life:?}");
        assert_eq!(record.power.milliwatts(), power, "{job}");
        assert_eq!(run.total(job), total, "{job}");
    }

    /// The energy of all jobs and of the machine itself, and the most that was drawn.
    fn check_sums(&self, run: &Run, ran: &[JobId]) {
        let jobs: Joules = ran.iter().map(|job| run.total(*job).energy).sum();
        let base = self.machine.base_power;
        assert_eq!(run.energy, base.over(run.end.since(run.begin)) + jobs);
        let curves = curves(self.machine);
        let power_at = |at: Instant| -> u64 {
            let power = |job: &JobId| {
                let record = &run.records[job.index()];
                let life = self.life(run, *job);
                let last = life.iter().rev().find(|capping| capping.at <= at);
                let application = self.workload.jobs()[job.index()].application.unwrap();
                let curves = curves[application.0.get() as usize - 1];
                let runs = record.start <= at && at < record.end;
                last.filter(|_| runs).map_or(0, |capping| drawn(curves, &plain(&capping.caps)))
            };
            ran.iter().map(power).sum()
        };
        for sample in &run.power {
            let power = base + Watts::from_milliwatts(power_at(sample.at));
            assert_eq!(sample.power, power, "at {}", sample.at);
            assert!(power <= sample.limit, "{power} of {} at {}", sample.limit, sample.at);
        }
        assert_eq!(run.excursions.time, Span::ZERO);
    }
}
