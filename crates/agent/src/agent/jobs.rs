//! The energy of jobs, from their begin to their end on this node.

use std::collections::BTreeMap;
use std::time::Instant;

use super::refusal;
use crate::changes::unix_millis;
use crate::meter::Mark;
use crate::node::Node;
use crate::reading::Reading;
use crate::wire::{JobEnergy, LONGEST_NAME, Refusal, RefusalKind};

/// The number of jobs whose energy is added up at the same time.
const MOST_JOBS: usize = 1024;

/// The jobs whose energy is added up.
#[derive(Default)]
pub(super) struct Jobs(BTreeMap<String, Job>);

struct Job {
    from: u64,
    begun: Instant,
    marks: Vec<Mark>,
}

impl Jobs {
    /// Begins to add up the energy of a job.
    pub(super) fn begin(
        &mut self,
        job: String,
        node: &mut Node,
        now: Instant,
    ) -> Result<(), Refusal> {
        if job.is_empty() || job.len() > LONGEST_NAME {
            let text = format!("a job's name has 1 to {LONGEST_NAME} bytes");
            return Err(refusal(RefusalKind::TooMuch, text));
        }
        if self.0.len() >= MOST_JOBS {
            let text = format!("the energy of {MOST_JOBS} jobs is added up already");
            return Err(refusal(RefusalKind::TooMuch, text));
        }
        if self.0.contains_key(&job) {
            let text = format!("the energy of '{job}' is added up already");
            return Err(refusal(RefusalKind::Malformed, text));
        }
        node.measure(now);
        self.0.insert(job, Job { from: unix_millis(), begun: now, marks: node.marks() });
        Ok(())
    }

    /// Ends that, and says what the job consumed.
    pub(super) fn end(
        &mut self,
        name: &str,
        node: &mut Node,
        now: Instant,
    ) -> Result<JobEnergy, Refusal> {
        let job = self.0.remove(name).ok_or_else(|| {
            let text = format!("'{name}' did not begin on this node since the agent started");
            refusal(RefusalKind::Unknown, text)
        })?;
        node.measure(now);
        let domains = node.energy_since(&job.marks);
        let energy = Reading::sum(domains.iter().map(|(name, energy)| (name.as_str(), energy)));
        let elapsed = now.saturating_duration_since(job.begun).as_millis();
        let elapsed = u64::try_from(elapsed).unwrap_or(u64::MAX);
        Ok(JobEnergy { job: name.to_owned(), from: job.from, elapsed, energy, domains })
    }
}
