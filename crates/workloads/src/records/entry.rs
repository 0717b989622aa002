//! What one record says of a run of a job, whatever the layout it was written in.

use super::id::Id;
use super::label::{Label, Notation};
use super::run::Ending;
use super::time::Moment;
use busbar_core::units::Watts;

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
    /// Which nodes, as the batch system writes lists of them; empty if the record does not say.
    pub(super) node_list: &'a [u8],
    /// GPUs in all.
    pub(super) gpus: Option<u32>,
    /// Memory in all, in MiB.
    pub(super) memory_mib: Option<u64>,
    /// Whether the record says that it had its nodes for itself.
    pub(super) is_exclusive: bool,
    /// The reservation that it ran in; empty if it ran in none.
    pub(super) reservation: &'a [u8],
    pub(super) user: &'a [u8],
    pub(super) group: &'a [u8],
    pub(super) job_name: &'a [u8],
    pub(super) queue: &'a [u8],
    pub(super) partition: &'a [u8],
    pub(super) measured: Measured,
    /// The whole name of the job, where it tells jobs apart that may not run at a time.
    pub(super) whole_name: &'a [u8],
    /// When it became eligible.
    pub(super) eligible: Option<Moment>,
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
            node_list: b"",
            gpus: None,
            memory_mib: None,
            is_exclusive: false,
            reservation: b"",
            user: b"",
            group: b"",
            job_name: b"",
            queue: b"",
            partition: b"",
            measured: Measured::Nothing,
            whole_name: b"",
            eligible: None,
        }
    }
}
