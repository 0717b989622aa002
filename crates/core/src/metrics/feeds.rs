//! How the feeds of a machine were used.

use serde::{Deserialize, Serialize};

use super::{RunContext, energy_allowed};
use crate::sim::{FeedUse, Run};

/// The figures of a feed. Times are in seconds, power in watts, energy in joules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeedFigures {
    /// Its name.
    pub name: String,
    /// The feed above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// How many nodes are below it.
    pub nodes: u32,
    /// Its limit, the mean over the makespan if it changes.
    pub limit_w: Option<f64>,
    /// The most that its nodes ever drew.
    pub peak_power_w: f64,
    /// Mean power over the makespan.
    pub mean_power_w: Option<f64>,
    /// For how long it kept power from idle nodes while jobs waited.
    pub bound_s: f64,
    /// The energy that it kept from them.
    pub stranded_j: f64,
    /// For how long its nodes drew more than its limit.
    pub over_limit_s: f64,
    /// By how much at most.
    pub worst_excursion_w: f64,
}

/// Those of all feeds of a machine, if they have limits in this run.
pub(super) fn figures(context: &RunContext<'_>, run: &Run) -> Option<Vec<FeedFigures>> {
    let (feeds, limits) = (context.machine.feeds.as_ref()?, context.budget.feeds()?);
    let seconds = run.end.since(run.begin).secs_f64();
    let mean = |joules: f64| (seconds > 0.0).then(|| joules / seconds);
    let used = feeds.all().iter().zip(limits.iter()).zip(&run.feeds);
    let figures = used.map(|((feed, limit), used)| {
        let FeedUse { peak, energy, bound, stranded, over, worst_over } = *used;
        let limit_w = match limit.changes_after(run.begin) {
            [] => limit.at(run.begin).limited().map(|limit| limit.as_f64()),
            _ => mean(energy_allowed(limit, run.begin, run.end).as_f64()),
        };
        FeedFigures {
            name: feed.name.clone(),
            parent: feed.parent.map(|parent| feeds.name(parent).to_owned()),
            nodes: feed.nodes,
            limit_w,
            peak_power_w: peak.as_f64(),
            mean_power_w: mean(energy.as_f64()),
            bound_s: bound.secs_f64(),
            stranded_j: stranded.as_f64(),
            over_limit_s: over.secs_f64(),
            worst_excursion_w: worst_over.as_f64(),
        }
    });
    Some(figures.collect())
}
