//! The times of jobs of one kind, on every number of nodes under every cap.

use super::NodeCaps;
use crate::job::Job;
use crate::model::pass::{Application, Scaling};
use crate::units::Span;

/// How a job scales and answers to power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    /// Which application it runs.
    pub application: Application,
    /// The average parallelism, as a multiple of the nodes asked for.
    pub parallelism: f64,
    /// The variation of the parallelism.
    pub variation: f64,
}

impl Kind {
    /// What is believed of a job of which nothing is known but what its user says: it runs the
    /// application of its number in [`Application::ALL`], or the one that a cap slows down most; it
    /// scales perfectly up to the nodes it asks for, and not beyond. So on fewer nodes it is believed
    /// to take longest, and on more to gain least: of all kinds that are ever drawn, none takes longer.
    pub(crate) fn cautious(job: &Job) -> Self {
        let number = job.application.map(|application| application.0.get() as usize);
        let named = number.and_then(|number| Application::ALL.get(number - 1));
        let application = named.copied().unwrap_or(Application::LEAN_MD);
        Kind { application, parallelism: 1.0, variation: 0.0 }
    }
}

/// How many times as long a job takes at each point as at the nodes asked for without a cap, in
/// steps of 2⁻³²: a job may also be faster.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    kind: Kind,
    /// The nodes that are asked for.
    asked: u32,
    nodes: Vec<u32>,
    caps: usize,
    /// By nodes, then by caps.
    factors: Vec<u64>,
}

impl Grid {
    /// Jobs of a kind that ask for this many nodes and may have any of these numbers of them.
    pub(super) fn new(kind: &Kind, feed: &NodeCaps, asked: u32, nodes: &[u32]) -> Self {
        let parallelism = (kind.parallelism * f64::from(asked)).max(1.0);
        let scaling = Scaling::new(1.0, parallelism, kind.variation).ok();
        let scaled = |count: u32| scaling.as_ref().and_then(|scaling| scaling.seconds(count));
        // One who does not scale takes as long anywhere.
        let whole = scaled(asked).unwrap_or(1.0);
        let throttling = kind.application.throttling();
        let factors = nodes.iter().flat_map(|count| {
            let nodes_factor = scaled(*count).unwrap_or(whole) / whole;
            feed.caps()
                .iter()
                .map(move |cap| fixed(nodes_factor * throttling.stretched(feed.law_watts(*cap))))
        });
        let factors = factors.collect();
        Grid { kind: *kind, asked, nodes: nodes.to_vec(), caps: feed.caps().len(), factors }
    }

    /// The same jobs, on the nodes they ask for alone.
    pub(super) fn as_asked(&self, feed: &NodeCaps) -> Self {
        Grid::new(&self.kind, feed, self.asked, &[self.asked])
    }

    /// The numbers of nodes, ascending.
    pub(super) fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// How long a job takes at a place that takes so long at the nodes it asks for, without a cap.
    /// Rounded up, so that a limit and a run time stay in order.
    pub(super) fn time(&self, place: (usize, usize), time: Span) -> Span {
        let factor = self.factors[place.0 * self.caps + place.1];
        let product = u128::from(time.millis()) * u128::from(factor);
        Span::from_millis(u64::try_from(product.div_ceil(1 << 32)).unwrap_or(u64::MAX))
    }
}

/// A factor in steps of 2⁻³².
fn fixed(factor: f64) -> u64 {
    (factor * (1u64 << 32) as f64).round() as u64
}
