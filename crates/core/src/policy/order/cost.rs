//! What a job costs everybody who waits behind it, and how waiting makes up for it.

use crate::model::OperatingPoint;
use crate::policy::{PastJob, Predictions, View};
use crate::units::{Instant, JobId, Span};

/// What a job costs.
pub trait Cost {
    /// The binary logarithm of the cost of a job that joins the queue, in steps of 2⁻¹⁶.
    fn log(&mut self, view: &View<'_>, job: JobId) -> i64;

    /// Jobs that ended earlier; see [`Policy::recall`](crate::policy::Policy::recall).
    fn recall(&mut self, _past: &[PastJob]) {}

    /// A turn begins: jobs may have ended from which something can be learned.
    fn learn(&mut self, _view: &View<'_>) {}

    /// A job is about to start at a point, or to go on there, and is expected to run for so long.
    fn goes_on(&mut self, _view: &View<'_>, _job: JobId, _point: &OperatingPoint, _left: Span) {}

    /// A job does not wait any more: it started, or it was withdrawn.
    fn left(&mut self, _job: JobId) {}

    /// A job did not start, although that was decided.
    fn withdrawn(&mut self, _job: JobId) {}

    /// How far off its predictions were so far; see
    /// [`Policy::predictions`](crate::policy::Policy::predictions).
    fn predictions(&self) -> Option<Predictions> {
        None
    }
}

/// How waiting makes a job count less: by half in each halving time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ageing {
    halving: Span,
}

impl Ageing {
    /// By half in each of these times, of at least a second.
    pub(crate) fn every(halving: Span) -> Self {
        Ageing { halving: halving.max(Span::from_secs(1)) }
    }

    /// The key of a job of this cost: it is compared with those of other jobs, at whatever time.
    ///
    /// The cost of a job that has waited for w counts as cost · 2^(−w/halving). Between two jobs that wait
    /// now the present instant makes no difference, so the logarithm of this is as good without it.
    pub(crate) fn key(&self, log_cost: i64, submit: Instant) -> i64 {
        let halvings = (u128::from(submit.since(Instant::ZERO).millis()) << 16)
            / u128::from(self.halving.millis());
        log_cost.saturating_add(i64::try_from(halvings).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::log2::log2;

    /// A job that costs eight times as much comes first if it came three halving times earlier.
    #[test]
    fn waiting_makes_up_for_cost() {
        let ageing = Ageing::every(Span::from_secs(3600));
        let at = |hours: u64| Instant::from_millis(hours * 3_600_000);
        let (dear, cheap) = (log2(800), log2(100));
        assert!(ageing.key(dear, at(1)) < ageing.key(cheap, at(5)));
        assert!(ageing.key(dear, at(1)) > ageing.key(cheap, at(3)));
    }
}
