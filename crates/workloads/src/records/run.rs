//! One run of a job, as an import keeps it.

use super::label::Label;
use super::name::Kind;
use crate::swf;
use busbar_core::units::Watts;
use busbar_core::workload::{MeasuredPower, Placed};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, and well.
    Completed,
    /// It failed, ran out of time or memory, or lost a node; or its job was put back into the queue.
    Failed,
    /// Somebody ended it.
    Cancelled,
}

/// A run that happened. There may be millions of them, so what is not known is a zero inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Which job, until the run has a number of its own.
    pub(super) key: u64,
    /// What the batch system calls it, if the records say so.
    pub(super) label: Option<Label>,
    /// When it was submitted, in Unix time.
    pub(super) submit: i64,
    pub(super) wait: u32,
    pub(super) run_time: u32,
    pub(super) limit: u32,
    pub(super) processors: u32,
    pub(super) nodes: u32,
    /// Which list of nodes, from 1.
    pub(super) node_list: u32,
    pub(super) gpus: u32,
    pub(super) memory_mib: u64,
    pub(super) names: [u32; Kind::ALL.len()],
    pub(super) mean_mw: u64,
    pub(super) peak_mw: u64,
    pub(super) ending: Ending,
    /// Which [tie](super::ties::Tie) it has, from 1.
    pub(super) tie: u32,
    /// What its job is called, from 1.
    pub(super) job_name: u32,
    pub(super) is_exclusive: bool,
    /// Whether its power is that of whole nodes, with whatever else ran on them.
    pub(super) is_of_nodes: bool,
    pub(super) marks: Marks,
}

/// What was repaired or found when a run was made of its record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) submit_from_eligible: bool,
    pub(super) submit_moved: bool,
    pub(super) elapsed_differs: bool,
    pub(super) size_from_nodes: bool,
    pub(super) power_unreadable: bool,
}

impl Run {
    /// The number it has in the log.
    pub fn number(&self) -> u64 {
        self.key
    }

    /// What the batch system calls it, by which people look it up, if the records say so.
    pub fn label(&self) -> Option<String> {
        self.label.map(|label| label.to_string())
    }

    /// When it was submitted, in Unix time.
    #[cfg(test)]
    pub(crate) fn submit(&self) -> i64 {
        self.submit
    }

    /// When it started, in Unix time.
    pub fn start(&self) -> i64 {
        self.submit + i64::from(self.wait)
    }

    /// When it ended, in Unix time.
    pub fn end(&self) -> i64 {
        self.start() + i64::from(self.run_time)
    }

    /// How long it ran.
    #[cfg(test)]
    pub(crate) fn run_time(&self) -> busbar_core::units::Span {
        busbar_core::units::Span::from_secs(self.run_time)
    }

    /// Processors it held, or nodes where the records count nothing else.
    pub fn processors(&self) -> u32 {
        self.processors
    }

    /// Nodes it ran on, if the records say so.
    pub fn nodes(&self) -> Option<u32> {
        (self.nodes > 0).then_some(self.nodes)
    }

    /// GPUs that it held, if the records say so.
    #[cfg(test)]
    pub(crate) fn gpus(&self) -> Option<u32> {
        (self.gpus > 0).then_some(self.gpus)
    }

    /// Memory that it held on all its nodes together, in MiB, if the records say so.
    #[cfg(test)]
    pub(crate) fn memory_mib(&self) -> Option<u64> {
        (self.memory_mib > 0).then_some(self.memory_mib)
    }

    /// Its name of a kind: a place among the [names](super::NameTable::of) of the import, if it has one.
    pub fn name_of(&self, kind: Kind) -> Option<usize> {
        (self.names[kind as usize] as usize).checked_sub(1)
    }

    /// How it ended.
    pub fn ending(&self) -> Ending {
        self.ending
    }

    /// What it drew, if that was measured.
    pub fn power(&self) -> Option<MeasuredPower> {
        let known = |milliwatts: u64| (milliwatts > 0).then(|| Watts::from_milliwatts(milliwatts));
        MeasuredPower::new(known(self.mean_mw), known(self.peak_mw))
    }

    /// Which nodes it was on, as far as the records say so.
    pub(super) fn placed(&self) -> Placed {
        let Run { nodes, memory_mib, gpus, .. } = *self;
        Placed { nodes, list: self.node_list.checked_sub(1), memory_mib, gpus }
    }

    /// The number of a name, if there was one.
    fn name(&self, kind: Kind) -> i64 {
        match self.names[kind as usize] {
            0 => -1,
            number => number.into(),
        }
    }

    /// Its line in a log whose clock begins at `start`.
    pub(super) fn record(&self, start: i64) -> swf::Record {
        let status = match self.ending {
            Ending::Completed => swf::Status::Completed,
            Ending::Failed => swf::Status::Failed,
            Ending::Cancelled => swf::Status::Cancelled,
        };
        swf::Record {
            number: self.key as i64,
            submit: self.submit - start,
            wait: self.wait.into(),
            run_time: self.run_time.into(),
            allocated_processors: self.processors.into(),
            requested_processors: self.processors.into(),
            requested_time: if self.limit == 0 { -1 } else { self.limit.into() },
            user: self.name(Kind::User),
            group: self.name(Kind::Group),
            application: self.name(Kind::Application),
            queue: self.name(Kind::Queue),
            partition: self.name(Kind::Partition),
            ..swf::Record::UNKNOWN
        }
        .ended(status)
    }
}
