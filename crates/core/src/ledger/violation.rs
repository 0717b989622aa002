//! The reasons for which the ledger refuses a decision.

use crate::freedom::Freedom;
use crate::units::{Instant, JobId, Joules, NodeId, Watts};

/// A claim that cannot be met. The ledger is as it was before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The job does not wait: it is unknown, runs already, or has ended.
    #[error("{job} was to start, but it is not waiting")]
    NotWaiting {
        /// The job that is refused.
        job: JobId,
    },
    /// The job holds something already.
    #[error("{job} was to start, but it runs already")]
    AlreadyRunning {
        /// The job that is refused.
        job: JobId,
    },
    /// The model does not offer this operating point to the job.
    #[error("{job} was to run on {nodes} nodes drawing {power}, which is not on its menu")]
    NotOnMenu {
        /// The job that is refused.
        job: JobId,
        /// The nodes claimed.
        nodes: u32,
        /// The power claimed.
        power: Watts,
    },
    /// That may not be done to the job.
    #[error("{job} got a decision that needs the freedom '{needed}', which is not allowed")]
    NotAllowed {
        /// The job that is refused.
        job: JobId,
        /// What it would take.
        needed: Freedom,
    },
    /// There are not enough free nodes.
    #[error("{job} was to get {asked} nodes, but {free} are free")]
    Nodes {
        /// The job that is refused.
        job: JobId,
        /// Nodes claimed.
        asked: u32,
        /// Nodes free.
        free: u32,
    },
    /// No nodes have what the job asks of each, or others were chosen for it than it may have.
    #[error("{job} was to start, but not on nodes that have enough left of what it asks for")]
    Seats {
        /// The job that is refused.
        job: JobId,
    },
    /// There is not enough free power, now or later in the job's life.
    #[error("{job} was to get {asked}, but at {at} only {free} are free")]
    Power {
        /// The job that is refused.
        job: JobId,
        /// Power claimed.
        asked: Watts,
        /// Power free.
        free: Watts,
        /// When it happens.
        at: Instant,
    },
    /// There is not enough power below a feed, now or later in the job's life.
    #[error(
        "{job} was to get {asked}, but feed '{feed}' has no room for its part of that: {free} are free there"
    )]
    Feed {
        /// The job that is refused.
        job: JobId,
        /// The feed, by its name.
        feed: String,
        /// Power claimed: of the whole job, or of its nodes below the feed where these are known.
        asked: Watts,
        /// Power that is free below the feed at all times until the job is expected to end.
        free: Watts,
    },
    /// The job holds nothing.
    #[error("{job} was to give back or change what it holds, but it holds nothing")]
    HoldsNothing {
        /// The job that is refused.
        job: JobId,
    },
    /// The job is suspended.
    #[error("{job} was to change or be suspended, but it is suspended already")]
    Suspended {
        /// The job that is refused.
        job: JobId,
    },
    /// The job is not suspended.
    #[error("{job} was to be resumed, but it is not suspended")]
    NotSuspended {
        /// The job that is refused.
        job: JobId,
    },
    /// A policy changed a job that runs without having said that it does such things.
    #[error("{job} was to change, but the policy does not change running jobs")]
    Unannounced {
        /// The job that is refused.
        job: JobId,
    },
    /// The job names nodes, but some of them are not free.
    #[error("{job} was to get {node}, which is not free")]
    NodeTaken {
        /// The job that is refused.
        job: JobId,
        /// Which node; the first of several.
        node: NodeId,
    },
    /// The job does not run on the nodes that were named, or not under such caps.
    #[error("{job} was to run on named nodes under caps of their own, which the model refuses")]
    NotOffered {
        /// The job that is refused.
        job: JobId,
    },
    /// Nodes were named that are not those the job holds.
    #[error("{job} was to get new caps or be taken over, but not for the nodes it holds")]
    OtherNodes {
        /// The job that is refused.
        job: JobId,
    },
    /// A policy named nodes without having said that it does such things.
    #[error("{job} was to get named nodes, but the policy does not choose nodes")]
    NodesUnannounced {
        /// The job that is refused.
        job: JobId,
    },
    /// There is not enough energy left in the period.
    #[error("{job} was to be promised {asked}, but {left} are left in the period")]
    Energy {
        /// The job that is refused.
        job: JobId,
        /// Energy claimed.
        asked: Joules,
        /// Energy that is not promised.
        left: Joules,
    },
    /// Energy was promised where none is counted.
    #[error("{job} was to be promised energy, but there is no energy account")]
    NoAccount {
        /// The job that is refused.
        job: JobId,
    },
    /// A policy asked to be woken at a time that has passed.
    #[error("asked to be woken at {at}, which is not after {now}")]
    WakeInThePast {
        /// The time asked for.
        at: Instant,
        /// The time it is.
        now: Instant,
    },
}

impl Violation {
    /// The job it is about, if it is about one.
    pub fn job(&self) -> Option<JobId> {
        match self {
            Violation::NotWaiting { job }
            | Violation::AlreadyRunning { job }
            | Violation::NotOnMenu { job, .. }
            | Violation::NotAllowed { job, .. }
            | Violation::Nodes { job, .. }
            | Violation::Power { job, .. }
            | Violation::Seats { job }
            | Violation::Feed { job, .. }
            | Violation::HoldsNothing { job }
            | Violation::Suspended { job }
            | Violation::NotSuspended { job }
            | Violation::Unannounced { job }
            | Violation::NodeTaken { job, .. }
            | Violation::NotOffered { job }
            | Violation::OtherNodes { job }
            | Violation::NodesUnannounced { job }
            | Violation::Energy { job, .. }
            | Violation::NoAccount { job } => Some(*job),
            Violation::WakeInThePast { .. } => None,
        }
    }
}
