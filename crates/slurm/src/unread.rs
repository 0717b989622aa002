//! What Slurm says and nobody can read: it is neither zero nor nothing.

use std::fmt;

use serde::{Serialize, Serializer};

/// A number that could not be read. Nothing has so many of anything, so whoever counts with it counts too many.
pub const UNKNOWN: u32 = u32::MAX;

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Unread {
    /// What it is about, such as `job 17`.
    pub what: String,
    /// What cannot be read, and why.
    pub reason: String,
}

impl Unread {
    /// That something cannot be read, with the beginning of what was found instead.
    pub(crate) fn new(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Unread { what: what.into(), reason: reason.into() }
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.reason)
    }
}

/// Shows a number, or nothing if it is unknown.
pub(crate) fn known<S: Serializer>(number: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    match *number {
        UNKNOWN => serializer.serialize_none(),
        number => serializer.serialize_some(&number),
    }
}
