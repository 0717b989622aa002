//! The result of a simulation.

use std::collections::HashMap;

use super::{
    Change, Charges, EnergyByState, Excursions, FeedSample, FeedUse, Placed, Record, SiteFigures,
    Total,
};
use crate::ledger::Violation;
use crate::model::Caps;
use crate::policy::Predictions;
use crate::priority::Standing;
use crate::units::{Instant, JobId, Joules, Watts};

/// Violations kept word for word; the rest is counted.
const VIOLATIONS_KEPT: usize = 10;

/// The result of a simulation.
#[derive(Clone, Debug)]
pub struct Run {
    /// What became of each job, by [`JobId`].
    pub records: Vec<Record>,
    /// When the first job was submitted.
    pub begin: Instant,
    /// When the last job ended, or was thrown out by a failing node.
    pub end: Instant,
    /// The most power that was ever drawn for any time.
    pub peak: Watts,
    /// The most power that was ever handed out, be it between two decisions of one instant, the
    /// machine's own draw included: what was believed to be drawn.
    pub peak_held: Watts,
    /// The energy drawn from begin to end.
    pub energy: Joules,
    /// What that energy was drawn for.
    pub energy_by_state: EnergyByState,
    /// What the site drew for the machine and its cooling, where that is known.
    pub site: Option<SiteFigures>,
    /// How often a node was switched off, if there is a rule for that.
    pub node_stops: Option<u64>,
    /// When more was drawn than the budget allowed.
    pub excursions: Excursions,
    /// How often the policy was asked.
    pub turns: u64,
    /// How many decisions it took.
    pub decisions: u64,
    /// How many of them were refused.
    pub violations: u64,
    /// The first few refusals.
    pub first_violations: Vec<(Instant, Violation)>,
    /// Power drawn and the limit in force, whenever either changed; empty unless asked for.
    pub power: Vec<PowerSample>,
    /// Jobs that still waited when nothing could happen any more.
    pub unfinished: u64,
    /// What jobs consumed in the period in which energy is counted, if it is.
    pub consumed: Option<Joules>,
    /// How jobs changed while they ran, in order.
    pub changes: Vec<Change>,
    /// What jobs started with, in order, each with the number of changes before it; empty unless the
    /// policy changes jobs while they run.
    pub starts: Vec<(usize, Change)>,
    /// What jobs had in all that changed while they ran.
    pub totals: HashMap<JobId, Total>,
    /// The caps of nodes that were given by name, whenever they were set; kept with the power.
    pub cappings: Vec<Capping>,
    /// How far off the predictions of the policy were, if it makes any.
    pub predictions: Option<Predictions>,
    /// The priorities with which jobs started, if the policy orders them by priority and was to keep them.
    pub standings: HashMap<JobId, Standing>,
    /// What it cost and emitted, if that was asked for.
    pub charges: Option<Charges>,
    /// How each feed of the machine was used, where feeds have limits; in the order of
    /// [`Feeds::all`](crate::machine::Feeds::all).
    pub feeds: Vec<FeedUse>,
    /// What the nodes below each feed draw, and its limit, whenever either changes; kept with the power.
    pub feed_power: Vec<FeedSample>,
    /// The nodes of each job that started on a machine with feeds; kept with the power.
    pub placed: Vec<Placed>,
    /// When each job became eligible, by [`JobId`]: [`Instant::NEVER`] for those that did when they were submitted. Empty if
    /// nobody was held back.
    pub eligible: Vec<Instant>,
    /// Why it ended before all jobs did, if it did: then no figure says anything about the policy.
    pub stopped: Option<Stopped>,
}

/// Why a run ended before all jobs did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// The policy could not go on.
    #[error("the policy failed at simulated time {at}: {why}")]
    GaveUp {
        /// The simulated time.
        at: Instant,
        /// What the policy says.
        why: String,
    },
    /// The caller stopped the run.
    #[error("interrupted")]
    Interrupted,
}

impl Run {
    /// A run in which nothing has happened yet.
    pub(super) fn beginning(begin: Instant) -> Self {
        Run {
            records: Vec::new(),
            begin,
            end: begin,
            peak: Watts::ZERO,
            peak_held: Watts::ZERO,
            energy: Joules::ZERO,
            energy_by_state: EnergyByState::default(),
            site: None,
            node_stops: None,
            excursions: Excursions::default(),
            turns: 0,
            decisions: 0,
            violations: 0,
            first_violations: Vec::new(),
            power: Vec::new(),
            unfinished: 0,
            consumed: None,
            changes: Vec::new(),
            starts: Vec::new(),
            totals: HashMap::new(),
            cappings: Vec::new(),
            predictions: None,
            standings: HashMap::new(),
            charges: None,
            feeds: Vec::new(),
            feed_power: Vec::new(),
            placed: Vec::new(),
            eligible: Vec::new(),
            stopped: None,
        }
    }

    /// A decision was refused.
    pub(super) fn note(&mut self, now: Instant, violation: Violation) {
        self.violations += 1;
        if self.first_violations.len() < VIOLATIONS_KEPT {
            self.first_violations.push((now, violation));
        }
    }

    /// What jobs had that may change while they run: what they started with and each change, in order.
    /// Says of each whether it is a start.
    pub fn steps(&self) -> impl Iterator<Item = (bool, &Change)> {
        let mut starts = self.starts.iter().peekable();
        let mut changes = self.changes.iter().enumerate().peekable();
        std::iter::from_fn(move || {
            let place = changes.peek().map(|(place, _)| *place);
            match starts.next_if(|(before, _)| place.is_none_or(|place| *before <= place)) {
                Some((_, start)) => Some((true, start)),
                None => changes.next().map(|(_, change)| (false, change)),
            }
        })
    }

    /// What a job that has run had in all.
    pub fn total(&self, job: JobId) -> Total {
        let record = &self.records[job.index()];
        if record.changes > 0
            && let Some(total) = self.totals.get(&job)
        {
            return *total;
        }
        let time = record.end.since(record.start);
        let node_millis = u128::from(record.nodes) * u128::from(time.millis());
        Total { node_millis, energy: record.power.over(time) }
    }
}

/// The caps of a job's nodes from an instant on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capping {
    /// The instant from which it holds.
    pub at: Instant,
    /// The job that draws it.
    pub job: JobId,
    /// Which nodes, and the most each may draw.
    pub caps: Caps,
}

/// The power drawn from an instant on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerSample {
    /// The instant from which it holds.
    pub at: Instant,
    /// What all nodes draw from then on.
    pub power: Watts,
    /// The limit in force.
    pub limit: Watts,
}
