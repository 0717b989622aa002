//! What really happened to the jobs of a log, with the figures that runs have.

use crate::experiment::checked::Jobs;
use crate::experiment::{Cell, CheckedExperiment};
use crate::metrics::Summary;
use crate::report::digest::{Digest, Envelope};
use crate::sim::Recorded;

/// A log as it was.
#[derive(Clone, Debug)]
pub(crate) struct RecordedRun {
    /// Its figures, and what pictures need: those of the jobs of which it is known when they started.
    pub(crate) digest: Digest,
    /// Jobs of which the log does not say when they started. They are left out, with what they drew.
    pub(crate) start_unknown: u64,
    /// Jobs that did not have all processors of their nodes.
    pub(crate) on_parts: u64,
    /// Jobs whose nodes have no names in the log.
    pub(crate) unnamed: u64,
    /// The most nodes that were busy at once.
    pub(crate) most_nodes: u64,
}

impl RecordedRun {
    /// Of how many jobs it is known when they started.
    pub(crate) fn jobs(&self) -> u64 {
        self.digest.summary.jobs
    }
}

impl CheckedExperiment<'_> {
    /// What really happened to the jobs of a workload, held against a budget: added up from the log, and not simulated.
    /// Nothing if the log says of no job when it started.
    pub(crate) fn recorded(
        &self,
        workload: usize,
        budget: usize,
    ) -> Result<Option<RecordedRun>, String> {
        let seed = self.experiment.seeds.first().copied().unwrap_or(1);
        let cell = Cell { workload, size: 0, budget, policy: 0, seed };
        let loaded = self.loaded(&Jobs::default(), &cell)?;
        self.with_scenario(&cell, &loaded, true, |scenario| {
            let recorded = scenario.recorded()?;
            let Recorded { start_unknown, on_parts, unnamed, most_nodes, utilisation, .. } =
                recorded;
            let Recorded { run, busy, .. } = &recorded;
            let summary = scenario.summary(run);
            let summary = Summary {
                policy: NAME.to_owned(),
                freedoms: None,
                jobs: summary.jobs - start_unknown,
                dropped: summary.dropped - start_unknown,
                utilisation,
                ..summary
            };
            let context = scenario.context(NAME);
            let digest = Digest {
                // On shared nodes, jobs count the same node twice.
                busy: Envelope::of(busy.iter().copied(), run.begin, run.end),
                ..Digest::of(&context, run, &summary)
            };
            Some(RecordedRun { digest, start_unknown, on_parts, unnamed, most_nodes })
        })
    }
}

/// What stands where a policy's name would.
pub(crate) const NAME: &str = "as recorded";
