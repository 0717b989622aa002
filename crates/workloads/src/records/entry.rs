//! What one record says of a run of a job, whatever the layout it was written in.

use super::label::{Label, Notation};
use super::run::Ending;
use super::time::Moment;
use busbar_core::units::Watts;

/// Which job it is: its number, and which part of it where one number stands for several runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Id(pub(super) u64);

impl Id {
    /// The job of a number.
    pub(super) fn plain(number: u32) -> Self {
        Id(u64::from(number) << 32)
    }

    /// A task of an array, or a component of a job that has several.
    pub(super) fn part(number: u32, part: u32) -> Self {
        // Parts are counted from 0, which is not the whole.
        Id(u64::from(number) << 32 | (u64::from(part) + 1))
    }

    /// The number, if it stands for this job alone.
    pub(super) fn number(self) -> Option<u32> {
        let (number, part) = self.number_and_part();
        part.is_none().then_some(number)
    }

    /// The number, and which part of the job it is, if it is one.
    pub(super) fn number_and_part(self) -> (u32, Option<u32>) {
        ((self.0 >> 32) as u32, (self.0 as u32).checked_sub(1))
    }
}

/// What had become of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It had not started.
    Waiting,
    /// It had not ended.
    Running,
    /// It had ended like this.
    Ended(Ending),
}

/// What is known of the power of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measured {
    Nothing,
    /// The energy of all nodes that the run was on, in joules: those of others, too, who were on them.
    NodeEnergy(u64),
    /// The power of the run itself.
    Power {
        mean: Watts,
        peak: Option<Watts>,
    },
    /// There is a value, but nobody can read it.
    Unreadable,
}

/// One run of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub(super) id: Option<Id>,
    /// What the batch system calls it.
    pub(super) label: Option<Label>,
    pub(super) state: State,
    pub(super) submit: Option<Moment>,
    /// Whether that is when the job could have started first, for want of when it was submitted.
    pub(super) is_submit_eligible: bool,
    pub(super) start: Option<Moment>,
    pub(super) end: Option<Moment>,
    /// How long it ran, where the record says so by itself.
    pub(super) elapsed: Option<u32>,
    pub(super) limit: Option<u32>,
    pub(super) processors: Option<u32>,
    pub(super) nodes: Option<u32>,
    /// Whether the record says that it had its nodes for itself.
    pub(super) is_exclusive: bool,
    pub(super) is_reserved: bool,
    pub(super) user: &'a [u8],
    pub(super) group: &'a [u8],
    pub(super) job_name: &'a [u8],
    pub(super) queue: &'a [u8],
    pub(super) partition: &'a [u8],
    pub(super) measured: Measured,
}

impl Entry<'_> {
    /// An entry that says nothing but what became of a job.
    pub(super) fn new(id: Option<Id>, state: State) -> Self {
        Entry {
            id,
            label: id.map(|id| Label::new(id, Notation::Index)),
            state,
            submit: None,
            is_submit_eligible: false,
            start: None,
            end: None,
            elapsed: None,
            limit: None,
            processors: None,
            nodes: None,
            is_exclusive: false,
            is_reserved: false,
            user: b"",
            group: b"",
            job_name: b"",
            queue: b"",
            partition: b"",
            measured: Measured::Nothing,
        }
    }
}
