//! Why a request was refused.

use serde::{Deserialize, Serialize};

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[error("{message}")]
pub struct Refusal {
    /// The kind of refusal, for programs.
    pub kind: RefusalKind,
    /// The reason and advice, for users.
    pub message: String,
}

impl Refusal {
    /// A refusal of a kind, with a message for users.
    pub(crate) fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Refusal { kind, message: message.into() }
    }
}

/// Kinds of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// The request cannot be understood.
    Malformed,
    /// The request is too large, or took too long.
    TooMuch,
    /// There are too many requests at the same time. Nothing was done; the request may be sent
    /// again.
    Busy,
    /// There is no such job.
    Unknown,
    /// The user is not allowed to do that.
    Forbidden,
    /// The job could never run, or its state does not allow the request.
    Impossible,
    /// A quota is used up.
    Full,
    /// The daemon could not write to its database.
    Unwritten,
    /// The daemon is about to stop.
    Stopping,
}
