//! What has a limit that running jobs may hold more than.

/// What has a limit that running jobs may hold more than.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Limited {
    /// A feed, by its number.
    Feed(usize),
    /// The machine.
    Machine,
}
