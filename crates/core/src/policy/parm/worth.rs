//! What jobs count for in the program.

use super::jobs::{Options, Running};
use crate::job::Job;
use crate::model::OperatingPoint;
use crate::policy::order::{Cost, History};
use crate::policy::{PastJob, Predictions, View};
use crate::units::{Instant, JobId, Span};

/// After so many halving times of waiting nobody is passed any more.
const PATIENCE: u64 = 8;

/// What is left of a job counts as at least this many seconds.
const SHORTEST: f64 = 60.0;

/// A job that waited for this many halving times counts for more than any other: more would be no number.
const MOST_HALVINGS: f64 = 500.0;

/// By what a job's speed-up is weighed.
#[derive(Clone, Debug)]
pub(in crate::policy) enum Worth {
    /// As published: (what is left of its time at the slowest + the time since it arrived) to this power.
    Aged(f64),
    /// By what is left of it: a job that ends soon leaves room for others.
    Rest(Box<Rest>),
}

/// One over the square root of what is left of a job at its slowest, doubled in each halving time that it waited.
/// Without the root, the value of a point would be one over the time that the job still takes there, and the shortest
/// job would get nearly everything, beyond what it can make good use of.
#[derive(Clone, Debug)]
pub(in crate::policy) struct Rest {
    /// What users' jobs took before; without it, users are believed.
    pub(in crate::policy) history: Option<History>,
    /// After how much waiting a job counts twice as much.
    pub(in crate::policy) halving: Span,
}

impl Worth {
    /// Jobs that ended earlier.
    pub(super) fn recall(&mut self, past: &[PastJob]) {
        if let Some(history) = self.history() {
            history.recall(past);
        }
    }

    /// A turn begins: jobs may have ended from which something can be learned.
    pub(super) fn learn(&mut self, view: &View<'_>) {
        if let Some(history) = self.history() {
            history.learn(view);
        }
    }

    /// How far off its predictions were so far.
    pub(super) fn predictions(&self) -> Option<Predictions> {
        match self {
            Worth::Rest(rest) => rest.history.as_ref()?.predictions(),
            Worth::Aged(_) => None,
        }
    }

    /// What is learned about run times, if anything is.
    pub(super) fn history(&mut self) -> Option<&mut History> {
        match self {
            Worth::Rest(rest) => rest.history.as_mut(),
            Worth::Aged(_) => None,
        }
    }

    /// Whether all jobs count the same, at any time.
    pub(super) fn is_equal(&self) -> bool {
        matches!(self, Worth::Aged(0.0))
    }

    /// The weight of a job that waits.
    pub(super) fn of_waiting(&self, view: &View<'_>, job: JobId, options: &Options) -> f64 {
        let asked = view.job(job);
        let waited = view.now.since(asked.submit);
        match self {
            Worth::Aged(alpha) => aged(options.slowest.secs_f64(), waited, *alpha),
            Worth::Rest(rest) => rest.weight(asked, options.slowest, Span::ZERO, waited),
        }
    }

    /// The binary logarithm of the weight of a job that waits, less what waiting adds to it for all jobs alike. By
    /// this jobs keep their order as long as they wait. There is none where what is learned changes weights, or waiting
    /// makes them grow unlike.
    pub(super) fn standing(&self, view: &View<'_>, job: JobId, options: &Options) -> Option<f64> {
        let Worth::Rest(rest) = self else { return None };
        if rest.history.is_some() {
            return None;
        }
        let asked = view.job(job);
        let weight = rest.weight(asked, options.slowest, Span::ZERO, Span::ZERO);
        Some(libm::log2(weight) - rest.halvings(asked.submit.since(Instant::ZERO)))
    }

    /// Whether somebody has waited for so long that his weight grows no more.
    pub(super) fn is_at_its_end(&self, view: &View<'_>) -> bool {
        let Worth::Rest(rest) = self else { return false };
        let oldest = view.queue.head().map(|job| view.now.since(view.job(job).submit));
        oldest.is_some_and(|waited| rest.halvings(waited) >= MOST_HALVINGS)
    }

    /// The weight of a job that runs.
    pub(super) fn of_running(
        &self,
        view: &View<'_>,
        job: JobId,
        options: &Options,
        running: &Running,
    ) -> f64 {
        let (asked, left) = (view.job(job), running.work.share());
        match self {
            Worth::Aged(alpha) => {
                let since_arrival = view.now.since(asked.submit);
                aged(options.slowest.secs_f64() * left, since_arrival, *alpha)
            }
            Worth::Rest(rest) => {
                let done = asked.requested.saturating_sub(running.work.time(asked.requested));
                let waited = running.began.since(asked.submit);
                rest.weight(asked, options.slowest, done, waited)
            }
        }
    }

    /// Whether the oldest has waited for so long that it must not be passed any more.
    pub(super) fn is_impatient(&self, view: &View<'_>) -> bool {
        let (Worth::Rest(rest), Some(oldest)) = (self, view.queue.head()) else { return false };
        let patience = Span::from_millis(rest.halving.millis().saturating_mul(PATIENCE));
        view.now.since(view.job(oldest).submit) > patience
    }
}

impl Rest {
    /// The weight of a job that takes so long at its slowest, and has done so much at nominal speed.
    fn weight(&self, job: &Job, slowest: Span, done: Span, waited: Span) -> f64 {
        let left = match &self.history {
            Some(history) => history.left(job, done),
            None => job.requested.saturating_sub(done),
        };
        let share = left.secs_f64() / job.requested.max(OperatingPoint::SHORTEST).secs_f64();
        let left = slowest.secs_f64() * share.min(1.0);
        libm::exp2(self.halvings(waited).min(MOST_HALVINGS)) / left.max(SHORTEST).sqrt()
    }

    /// How many halving times these are.
    fn halvings(&self, waited: Span) -> f64 {
        waited.secs_f64() / self.halving.secs_f64().max(1.0)
    }
}

/// What a job counts for that has this many seconds left at the slowest, and arrived so long ago.
fn aged(left: f64, since_arrival: Span, alpha: f64) -> f64 {
    if alpha == 0.0 { 1.0 } else { libm::pow(left + since_arrival.secs_f64(), alpha) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest() -> Rest {
        Rest { history: None, halving: Span::from_secs(3600) }
    }

    /// A job that asks for 1000 s and has done 600 s of them has 40 % left: of 2000 s at its slowest, 800 s. Two
    /// halving times of waiting make it count four times as much.
    #[test]
    fn weights_by_hand() {
        let job = Job::new(1, Instant::ZERO, 4, Span::from_secs(1000));
        let (slowest, done) = (Span::from_secs(2000), Span::from_secs(600));
        let is = |weight: f64, expected: f64| assert!((weight / expected - 1.0).abs() < 1e-12);
        is(rest().weight(&job, slowest, done, Span::ZERO), 1.0 / 800f64.sqrt());
        is(rest().weight(&job, slowest, done, Span::from_secs(7200)), 4.0 / 800f64.sqrt());
        let nearly = Span::from_secs(999);
        is(rest().weight(&job, slowest, nearly, Span::ZERO), 1.0 / 60f64.sqrt());
        let ages = rest().weight(&job, slowest, done, Span::FOREVER);
        assert!(ages.is_finite() && ages > 1e100);
    }

    #[test]
    fn published_weights() {
        assert_eq!(aged(100.0, Span::from_secs(300), 0.0), 1.0);
        assert_eq!(aged(100.0, Span::from_secs(300), 2.0), 160_000.0);
    }
}
