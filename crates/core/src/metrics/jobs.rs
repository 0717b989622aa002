//! The figures of jobs that ran: waits, turnarounds and slowdowns.

use super::speed::Speed;
use super::{RunContext, bounded_slowdown, bounded_slowdown_against, wait};
use crate::sim::{Run, State};
use crate::units::JobId;

/// Sums over the jobs that ran. Means are `None` where no job ran.
pub(super) struct JobsThatRan<'a> {
    /// How long each job waited, in milliseconds.
    waits: Vec<u64>,
    /// In milliseconds.
    turnaround: u128,
    bsld: f64,
    worst_bsld: f64,
    bsld_nominal: f64,
    /// Nodes times milliseconds.
    pub(super) node_time: u128,
    /// The same as the jobs were asked for: what was done, whatever was used for it.
    pub(super) work: u128,
    /// Jobs that would have ended in time as they were asked for, and were killed at another limit.
    pub(super) killed_by_belief: u64,
    pub(super) speed: Speed<'a>,
}

impl<'a> JobsThatRan<'a> {
    pub(super) fn of(context: &RunContext<'a>, run: &Run) -> Self {
        let RunContext { machine, workload, bsld_threshold: threshold, .. } = *context;
        let mut sums = JobsThatRan {
            waits: Vec::new(),
            turnaround: 0,
            bsld: 0.0,
            worst_bsld: 0.0,
            bsld_nominal: 0.0,
            node_time: 0,
            work: 0,
            killed_by_belief: 0,
            speed: Speed::on(machine),
        };
        let jobs = workload.jobs().iter().zip(workload.run_times()).zip(&run.records);
        for (id, ((job, &run_time), record)) in (0..).map(JobId).zip(jobs) {
            if !record.state.has_run() {
                continue;
            }
            let would_have_ended = context.has_reference && run_time <= job.requested;
            sums.killed_by_belief += u64::from(would_have_ended && record.state == State::Killed);
            let bsld = bounded_slowdown(job, record, threshold);
            sums.bsld += bsld;
            sums.worst_bsld = sums.worst_bsld.max(bsld);
            let run_time = run_time.min(job.requested);
            sums.bsld_nominal += bounded_slowdown_against(run_time, job, record, threshold);
            sums.waits.push(wait(job, record).millis());
            sums.turnaround += u128::from(record.end.since(job.submit).millis());
            sums.node_time += run.total(id).node_millis;
            sums.work += u128::from(job.nodes) * u128::from(run_time.millis());
            if context.has_gears {
                sums.speed.note(job, run_time, record, context.budget);
            }
        }
        sums
    }

    fn if_any(&self, figure: f64) -> Option<f64> {
        (!self.waits.is_empty()).then_some(figure)
    }

    fn mean_seconds(&self, millis: u128) -> Option<f64> {
        self.if_any(millis as f64 / self.waits.len() as f64 / 1000.0)
    }

    fn mean(&self, sum: f64) -> Option<f64> {
        self.if_any(sum / self.waits.len() as f64)
    }

    pub(super) fn mean_wait(&self) -> Option<f64> {
        self.mean_seconds(self.waits.iter().map(|wait| u128::from(*wait)).sum())
    }

    pub(super) fn median_wait(&mut self) -> Option<f64> {
        median(&mut self.waits).map(|millis| millis / 1000.0)
    }

    /// The shortest wait that no more than one job of a hundred exceeds.
    pub(super) fn p99_wait(&mut self) -> Option<f64> {
        let place = (self.waits.len() * 99).div_ceil(100).checked_sub(1)?;
        let (_, &mut wait, _) = self.waits.select_nth_unstable(place);
        Some(wait as f64 / 1000.0)
    }

    pub(super) fn longest_wait(&self) -> Option<f64> {
        self.waits.iter().max().map(|wait| *wait as f64 / 1000.0)
    }

    pub(super) fn mean_turnaround(&self) -> Option<f64> {
        self.mean_seconds(self.turnaround)
    }

    pub(super) fn mean_bsld(&self) -> Option<f64> {
        self.mean(self.bsld)
    }

    pub(super) fn worst_bsld(&self) -> Option<f64> {
        self.if_any(self.worst_bsld)
    }

    pub(super) fn mean_bsld_nominal(&self) -> Option<f64> {
        self.mean(self.bsld_nominal)
    }
}

/// The middle value; the mean of the two middle ones if they are even in number.
fn median(values: &mut [u64]) -> Option<f64> {
    let half = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let even = values.len().is_multiple_of(2);
    let (below, &mut upper, _) = values.select_nth_unstable(half);
    let lower = if even { below.iter().max().copied().unwrap_or(upper) } else { upper };
    Some((lower as f64 + upper as f64) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [9, 1, 5]), Some(5.0));
        assert_eq!(median(&mut [9, 1, 5, 6]), Some(5.5));
    }
}
