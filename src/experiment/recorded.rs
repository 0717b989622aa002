//! What really happened to the jobs of a log, with the figures that runs have.

use crate::experiment::checked::Jobs;
use crate::experiment::{Cell, CheckedExperiment};
use crate::metrics::Summary;
use crate::report::digest::Digest;
use crate::units::{JobId, Span};

/// A log replayed as it was.
#[derive(Clone, Debug)]
pub struct RecordedRun {
    /// Its figures, and what pictures need.
    pub digest: Digest,
    /// Jobs that start later here than in the log, because their nodes are not free on this machine.
    pub late: u64,
    /// The longest of these delays.
    pub latest: Span,
}

impl CheckedExperiment<'_> {
    /// What really happened to the jobs of a workload, held against a budget. Nothing if the log does not say when
    /// jobs started.
    pub fn recorded(&self, workload: usize, budget: usize) -> Result<Option<RecordedRun>, String> {
        let seed = self.experiment.seeds.first().copied().unwrap_or(1);
        let cell = Cell { workload, size: 0, budget, policy: 0, seed };
        let loaded = self.loaded(&Jobs::default(), &cell)?;
        self.with_scenario(&cell, &loaded, true, |scenario| {
            let run = scenario.recorded()?;
            let (mut late, mut latest) = (0, Span::ZERO);
            for (id, job) in (0..).map(JobId).zip(scenario.workload.jobs()) {
                let record = &run.records[id.index()];
                let wait = scenario.workload.recorded_wait(id).unwrap_or_default();
                let delay = record.start.since(job.submit + wait);
                late += u64::from(record.nodes > 0 && delay > Span::ZERO);
                latest = latest.max(delay);
            }
            let policy = NAME.to_owned();
            let summary = Summary { policy, freedoms: None, ..scenario.summary(&run) };
            let context = scenario.context(NAME);
            let digest = Digest::of(&context, &run, &summary);
            Some(RecordedRun { digest, late, latest })
        })
    }
}

/// What stands where a policy's name would.
pub const NAME: &str = "as recorded";
