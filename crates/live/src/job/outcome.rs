//! How a job ended, and why.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::allotment::End;
use busbar_core::units::{Instant, Joules, Span};

/// Why a job does not run to its own end, or does not run at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// A user cancelled it.
    Cancelled,
    /// Its time limit was reached.
    TimeLimit,
    /// The budget left no power for it, and the last resort is to cancel.
    Budget,
    /// A job that it depends on failed.
    Dependency,
    /// The policy dropped it.
    Dropped,
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EndReason::Cancelled => "cancelled",
            EndReason::TimeLimit => "time limit reached",
            EndReason::Budget => "no power left for it",
            EndReason::Dependency => "a job it depends on failed",
            EndReason::Dropped => "dropped by the policy",
        })
    }
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOutcome {
    /// When the job started, if it ever did.
    pub start: Option<Instant>,
    /// When the job was over.
    pub end: Instant,
    /// How its process ended, if it had one.
    pub how: Option<End>,
    /// Why the job was ended, if it did not end by itself.
    #[serde(rename = "why")]
    pub reason: Option<EndReason>,
    /// The energy it drew in all, as predicted by the model.
    pub energy: Joules,
    /// The nodes it had at the end.
    pub nodes: Vec<u32>,
    /// The user who ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<u32>,
    /// How long it would have run at full speed, as predicted by the model, if that was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_speed: Option<Span>,
}

impl JobOutcome {
    /// How long the job would have run at full speed, as far as that is known; `None` if it never ran.
    pub(crate) fn full_speed_time(&self) -> Option<Span> {
        // A job that could not be started had no nodes.
        let start = self.start.filter(|_| !self.nodes.is_empty())?;
        Some(self.full_speed.unwrap_or(self.end.since(start)))
    }

    /// Whether the job ended by itself, with exit code 0.
    pub fn succeeded(&self) -> bool {
        self.reason.is_none() && self.how == Some(End::Exited(0))
    }
}
