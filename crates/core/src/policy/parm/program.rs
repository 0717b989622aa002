//! The integer program of a turn: who is in it, and with which of his points.

use crate::model::OperatingPoint;
use crate::solve::knapsack::{Instance, InstanceError, Need, Offer, Solution};
use crate::units::JobId;

use super::jobs::Options;

/// The jobs of a turn and what each is offered; kept so that memory is asked for once.
#[derive(Default, PartialEq, Eq)]
pub(super) struct Program {
    jobs: Vec<JobId>,
    /// The places among a job's options that it is offered, job after job.
    places: Vec<u32>,
    /// Where those of each job end.
    ends: Vec<usize>,
}

impl Program {
    pub(super) fn clear(&mut self) {
        self.jobs.clear();
        self.places.clear();
        self.ends.clear();
    }

    /// Adds a job that is offered these of its options.
    pub(super) fn add(&mut self, job: JobId, places: impl Iterator<Item = usize>) {
        self.places.extend(places.map(|place| place as u32));
        self.jobs.push(job);
        self.ends.push(self.places.len());
    }

    /// The jobs, in order.
    pub(super) fn jobs(&self) -> &[JobId] {
        &self.jobs
    }

    /// The places among its options that a job is offered.
    pub(super) fn places(&self, entry: usize) -> &[u32] {
        let begin = entry.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.places[begin..self.ends[entry]]
    }

    /// Those of the job that was added last.
    pub(super) fn last_places(&self) -> &[u32] {
        self.jobs.len().checked_sub(1).map_or(&[], |last| self.places(last))
    }

    /// Adds the next job to the instance, with what each of its options is worth.
    pub(super) fn enter(
        &self,
        instance: &mut Instance,
        offers: &mut Vec<Offer>,
        need: Need,
        options: &Options,
        value: impl Fn(usize) -> f64,
    ) -> Result<(), InstanceError> {
        offers.clear();
        offers.extend(self.places(instance.entries()).iter().map(|&place| {
            let place = place as usize;
            let OperatingPoint { nodes, power, .. } = options.points[place];
            Offer { nodes, power, value: value(place) }
        }));
        instance.add(need, offers)
    }

    /// The chosen option of each job.
    pub(super) fn chosen(&self, solution: &Solution) -> impl Iterator<Item = (JobId, usize)> {
        self.jobs.iter().zip(solution.chosen()).enumerate().filter_map(|(entry, (job, chosen))| {
            Some((*job, self.places(entry)[(*chosen)?] as usize))
        })
    }
}
