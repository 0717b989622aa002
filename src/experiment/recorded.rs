//! What really happened to the jobs of a log, with the figures that runs have.

use crate::experiment::checked::Jobs;
use crate::experiment::{Cell, CheckedExperiment};
use crate::metrics::Summary;
use crate::policy::DropReason;
use crate::report::digest::Digest;
use crate::sim::State;
use crate::units::{JobId, Span};

/// A log replayed as it was.
#[derive(Clone, Debug)]
pub struct RecordedRun {
    /// Its figures, and what pictures need: those of the jobs of which it is known when they started.
    pub digest: Digest,
    /// Jobs of which the log does not say when they started. They are left out, with what they drew.
    pub start_unknown: u64,
    /// Jobs that start later here than in the log, because their nodes are not free on this machine.
    pub late: u64,
    /// The longest of these delays.
    pub latest: Span,
}

impl CheckedExperiment<'_> {
    /// What really happened to the jobs of a workload, held against a budget. Nothing if the log says of no job when it
    /// started.
    pub fn recorded(&self, workload: usize, budget: usize) -> Result<Option<RecordedRun>, String> {
        let seed = self.experiment.seeds.first().copied().unwrap_or(1);
        let cell = Cell { workload, size: 0, budget, policy: 0, seed };
        let loaded = self.loaded(&Jobs::default(), &cell)?;
        self.with_scenario(&cell, &loaded, true, |scenario| {
            let mut run = scenario.recorded()?;
            let (mut late, mut latest, mut start_unknown) = (0, Span::ZERO, 0);
            for (id, job) in (0..).map(JobId).zip(scenario.workload.jobs()) {
                let record = &mut run.records[id.index()];
                let Some(wait) = scenario.workload.recorded_wait(id) else {
                    // It did not wait for ever, and is in no queue: nobody knows what became of it.
                    start_unknown += 1;
                    run.unfinished -= u64::from(record.state == State::Waiting);
                    record.state = State::Dropped(DropReason::Unsaid);
                    record.start = job.submit;
                    continue;
                };
                let delay = record.start.since(job.submit + wait);
                late += u64::from(record.nodes > 0 && delay > Span::ZERO);
                latest = latest.max(delay);
            }
            let summary = scenario.summary(&run);
            let summary = Summary {
                policy: NAME.to_owned(),
                freedoms: None,
                jobs: summary.jobs - start_unknown,
                dropped: summary.dropped - start_unknown,
                ..summary
            };
            let context = scenario.context(NAME);
            let digest = Digest::of(&context, &run, &summary);
            Some(RecordedRun { digest, start_unknown, late, latest })
        })
    }
}

/// What stands where a policy's name would.
pub const NAME: &str = "as recorded";
