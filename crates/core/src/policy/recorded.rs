//! What really happened.
//!
//! Rule: a job starts, as it was asked for, when its log says that it started; one of which that is not known never does.
//! Where its nodes are not free then, it
//! starts as soon as they are: a log may count nodes otherwise than the machine that it is replayed on. It is no
//! policy to choose, but what others are held against.

use crate::policy::{Decision, Policy, Room, View};
use crate::units::{Instant, JobId};

/// Jobs start when their log says so.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// When jobs started, soonest first.
    starts: Vec<(Instant, JobId)>,
    /// The first of them that is still to come.
    next: usize,
    /// Those that should run by now, and for which there were no nodes.
    late: Vec<JobId>,
}

impl Recorded {
    /// Jobs started then.
    pub fn new(mut starts: Vec<(Instant, JobId)>) -> Self {
        starts.sort_unstable();
        Recorded { starts, next: 0, late: Vec::new() }
    }
}

impl Policy for Recorded {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let due = self.starts[self.next..].iter().take_while(|(at, _)| *at <= view.now).count();
        let begun = &self.starts[self.next..self.next + due];
        self.late.extend(begun.iter().map(|(_, job)| *job));
        self.next += due;
        let mut room = Room::of(view);
        self.late.retain(|job| {
            if !view.queue.contains(*job) {
                return false;
            }
            let point = view.nominal(*job);
            let fits = room.admits(&point);
            if fits {
                room.take(&point);
                decisions.push(Decision::Start { job: *job, point });
            }
            !fits
        });
        if let Some((at, _)) = self.starts.get(self.next) {
            decisions.push(Decision::WakeAt(*at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;
    use crate::machine::Machine;
    use crate::sim::Simulation;
    use crate::units::Span;
    use crate::workload::{Partitions, Workload};

    /// The second job could have started at once, and did not; the third found its nodes taken.
    #[test]
    fn jobs_start_when_they_did() {
        let time = Span::from_secs(100);
        let jobs = [(1, 0, 2), (2, 0, 2), (3, 10, 1)].map(|(number, submit, nodes)| {
            Job::new(number, Instant::from_secs(submit), nodes, time)
        });
        let workload = |waits: Vec<i32>| {
            let (name, partitions) = ("log".to_owned(), Partitions::default());
            Workload::from_parts(name, jobs.to_vec(), vec![time; 3], waits, partitions)
        };
        let log = workload(vec![0, 50, 80]);
        let machine = Machine::of_processors(4).unwrap();
        let mut recorded = Recorded::new(log.recorded_starts().unwrap());
        let run = Simulation::new(&machine, &log).run(&mut recorded);
        let starts: Vec<u64> =
            run.records.iter().map(|record| record.start.millis() / 1000).collect();
        assert_eq!(starts, [0, 50, 100]);
        assert!(workload(Vec::new()).recorded_starts().is_none());
        assert!(workload(vec![-1, -1, -1]).recorded_starts().is_none());
        // A job of which nobody knows when it started is left out, and the others start as they did.
        let log = workload(vec![0, -1, 80]);
        let mut recorded = Recorded::new(log.recorded_starts().unwrap());
        let run = Simulation::new(&machine, &log).run(&mut recorded);
        let started = run
            .records
            .iter()
            .map(|record| record.state.has_run().then_some(record.start.millis() / 1000));
        assert_eq!(started.collect::<Vec<_>>(), [Some(0), None, Some(90)]);
    }
}
