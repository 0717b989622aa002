//! What a batch system calls a job.
//!
//! A log has one number for each run, and the tasks of an array get new ones. People look a job up by what their batch
//! system calls it.

use std::fmt;

use super::id::Id;

/// What a batch system calls a job: its number, and which part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label {
    id: Id,
    notation: Notation,
}

/// How a batch system writes a part of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notation {
    /// A task of an array in Slurm: `123_4`.
    Task,
    /// A component of a job of several in Slurm: `123+1`.
    Component,
    /// A task of an array in PBS and LSF: `123[4]`.
    Index,
}

impl Label {
    pub(super) fn new(id: Id, notation: Notation) -> Self {
        Label { id, notation }
    }

    /// Which task of which array it is in Slurm, if it is one.
    pub(super) fn task(self) -> Option<(u32, u32)> {
        let (array, task) = self.id.number_and_part();
        task.filter(|_| self.notation == Notation::Task).map(|task| (array, task))
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, part) = self.id.number_and_part();
        match (part, self.notation) {
            (None, _) => write!(f, "{number}"),
            (Some(part), Notation::Task) => write!(f, "{number}_{part}"),
            (Some(part), Notation::Component) => write!(f, "{number}+{part}"),
            (Some(part), Notation::Index) => write!(f, "{number}[{part}]"),
        }
    }
}
