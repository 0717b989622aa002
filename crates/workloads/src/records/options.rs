//! What somebody wants of an import.

use super::format::Format;

/// How records are to be read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Their layout; what the first line looks like, if it is not said.
    pub format: Option<Format>,
    /// The time zone of local times, by its name; UTC if it is not said.
    pub zone: Option<String>,
    /// Whether a record that cannot be used is an error.
    pub is_strict: bool,
    /// The partitions whose runs are wanted, by their names; all if none is named.
    pub partitions: Vec<String>,
    /// Whether numbers are to tell nothing about who or what they stand for.
    pub is_anonymous: bool,
}
