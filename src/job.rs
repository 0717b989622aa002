//! A job: what a user asks for.
//!
//! How long the job then really runs is not part of it: that is known to the simulated world
//! alone ([`Workload`](crate::workload::Workload) keeps it apart), so that no policy can peek.

use crate::units::{Instant, Span};

/// What a user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The number the user or the log knows the job by.
    pub number: u64,
    /// When it was submitted.
    pub submit: Instant,
    /// How long the user says it will run at the nominal operating point; its limit.
    pub requested: Span,
    /// How many nodes it asks for; at least one.
    pub nodes: u32,
    /// How many processors it asks for, where nodes have several; on whole nodes it may get more.
    pub processors: u32,
    /// Who submitted it, where the log says so.
    pub user: Option<UserId>,
    /// Which application it runs, where the log says so.
    pub application: Option<ApplicationId>,
}

/// A user, by the log's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserId(pub std::num::NonZeroU32);

/// An application, by the log's executable number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApplicationId(pub std::num::NonZeroU32);
