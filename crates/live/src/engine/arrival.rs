//! Jobs that users submit to the engine's own queue, such as Slurm's, and not to the daemon.

use crate::job::{JobRequest, Owner};
use busbar_core::units::{Span, Watts};

/// A job that an engine has found in its queue, and from now on is the daemon's to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// How the engine knows the job.
    pub handle: String,
    /// The user and group that it belongs to.
    pub owner: Owner,
    /// What it asks for.
    pub request: JobRequest,
    /// What it runs on, if it runs already without having been asked to.
    pub running: Option<Underway>,
}

/// What a job has that the daemon did not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Underway {
    /// Its nodes.
    pub nodes: Vec<u32>,
    /// How long it has run.
    pub ran: Span,
    /// Whether it is work of others, which the daemon neither starts nor ends.
    pub of_others: bool,
    /// What each node of it may draw, if it was promised so much; otherwise it counts with what it would draw without a
    /// cap.
    pub node_power: Option<Watts>,
}
