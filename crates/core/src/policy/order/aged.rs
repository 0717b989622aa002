//! Order by what jobs ask for: the time, and the logarithm of the nodes.

use super::cost::Cost;
use crate::policy::View;
use crate::policy::log2::log2;
use crate::units::{JobId, Span};

/// A job costs the time it asks for, times the binary logarithm of its nodes (at least one). It needs
/// users' estimates alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Aged;

impl Aged {
    /// After how much waiting a job usually counts half as much.
    pub(crate) const HALVING: Span = Span::from_secs(16 * 3600);
}

impl Cost for Aged {
    fn log(&mut self, view: &View<'_>, job: JobId) -> i64 {
        let job = view.job(job);
        // log2(n) has 16 bits after the point; so has its own logarithm's argument.
        let nodes = (log2(u64::from(job.nodes)) as u64).max(1 << 16);
        log2(job.requested.millis()) + log2(nodes)
    }
}
