//! Jobs that users submit to the engine's own queue, such as Slurm's, and not to the daemon.

use crate::job::{JobRequest, Owner};
use busbar_core::units::{Span, Watts};

/// A job that an engine has found in its queue, and from now on is the daemon's to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// How the engine knows the job.
    pub(crate) handle: String,
    /// The user and group that it belongs to.
    pub(crate) owner: Owner,
    /// What it asks for.
    pub(crate) request: JobRequest,
    /// What it runs on, if it runs already without having been asked to.
    pub(crate) running: Option<Underway>,
}

/// What a job has that the daemon did not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Underway {
    /// Its nodes.
    pub(crate) nodes: Vec<u32>,
    /// How long it has run.
    pub(crate) ran: Span,
    /// Whether it is work of others, which the daemon neither starts nor ends.
    pub(crate) of_others: bool,
    /// What each node of it may draw, if it was promised so much; otherwise it counts with what it would draw without a
    /// cap.
    pub(crate) node_power: Option<Watts>,
}
