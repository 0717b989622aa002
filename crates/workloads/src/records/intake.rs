//! What became of the records of an import.

use serde::Serialize;

use super::error::Defect;
use crate::swf::left_out;

/// What became of records. Each is a usable run, a step of one, or skipped for one reason: `records` is `usable`,
/// `steps` and all that were skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RecordIntake {
    /// Lines that are neither blank nor headings; in JSON, jobs and their steps.
    pub records: u64,
    /// Records that became runs of the log.
    pub usable: u64,
    /// Records of steps, which are part of their jobs.
    pub steps: u64,
    /// Records that are cut off, or not what they should be.
    pub skipped_malformed: u64,
    /// What was cut off: the records, as JSON, end in the middle of one.
    pub skipped_cut_off: u64,
    /// Records that stand there more than once.
    pub skipped_duplicate: u64,
    /// Jobs that had not started, or never did.
    pub skipped_never_started: u64,
    /// Jobs that had not ended when the records were written.
    pub skipped_still_running: u64,
    /// Jobs that ran, but nobody knows when.
    pub skipped_unknown_time: u64,
    /// Jobs that ended before they started.
    pub skipped_negative_time: u64,
    /// Jobs that ran on nobody knows how many processors.
    pub skipped_no_size: u64,
    /// Runs in other partitions than those that were asked for, or in none.
    pub skipped_other_partition: u64,
    /// Records of something else: a submission, a deletion, a reservation.
    pub skipped_other: u64,
    /// Steps whose job is not among the records.
    pub steps_without_job: u64,
    /// Runs without a requested time: in the log it is unknown, too.
    pub limit_unknown: u64,
    /// Runs whose eligible time stands in for the submit time.
    pub submit_from_eligible: u64,
    /// Runs that started before they were submitted: they are submitted at their start.
    pub submit_moved: u64,
    /// Runs whose recorded length is not the time from start to end: they were suspended, or a clock was set.
    pub elapsed_differs: u64,
    /// Runs that are counted in nodes, for want of processors: no run has any.
    pub size_from_nodes: u64,
    /// Runs without processors among others that have some: all processors of their nodes are counted.
    pub size_of_whole_nodes: u64,
    /// Runs that had whole nodes for themselves: processors they did not ask for are counted, too.
    pub size_raised: u64,
    /// Runs of a job beyond its first: it was put back into the queue.
    pub further_runs: u64,
    /// Runs that have another number in the log than in the records, so that no two have the same.
    pub renumbered: u64,
    /// Runs on fewer processors than their nodes have.
    pub shared: u64,
    /// Runs on all processors of their nodes.
    pub exclusive: u64,
    /// Runs in a reservation of nodes.
    pub reserved: u64,
    /// Runs whose nodes are named.
    pub with_node_names: u64,
    /// Runs with measured power.
    pub with_power: u64,
    /// Runs whose energy is not theirs alone, since they shared their nodes.
    pub power_of_others: u64,
    /// Runs with a power or an energy that cannot be read.
    pub power_unreadable: u64,
    /// Local times, read in the time zone that was given or assumed.
    pub local_times: u64,
    /// Times with an offset of their own.
    pub offset_times: u64,
    /// Local times that the clocks showed twice, and nothing tells which is meant; the first one is taken.
    pub twice_times: u64,
    /// Local times that the clocks showed twice, of which the length of the run, or another time, tells which is meant.
    pub twice_told: u64,
    /// Local times that the clocks never showed; they are taken as if the clocks had not been set yet.
    pub never_times: u64,
}

impl RecordIntake {
    /// How many records were skipped, for whatever reason.
    pub fn skipped(&self) -> u64 {
        self.skipped_malformed
            + self.skipped_cut_off
            + self.skipped_duplicate
            + self.skipped_never_started
            + self.skipped_still_running
            + self.skipped_unknown_time
            + self.skipped_negative_time
            + self.skipped_no_size
            + self.skipped_other_partition
            + self.skipped_other
    }

    /// How many records were skipped for each reason, where there are any.
    pub(crate) fn skipped_for(&self) -> impl Iterator<Item = (u64, &'static str)> {
        [
            (self.skipped_malformed, "malformed"),
            (self.skipped_cut_off, "cut off at the end of the file"),
            (self.skipped_duplicate, "duplicates"),
            (self.skipped_never_started, "never started"),
            (self.skipped_still_running, "still running at the end of the records"),
            (self.skipped_unknown_time, "with an unknown time"),
            (self.skipped_negative_time, "ended before they started"),
            (self.skipped_no_size, "without a processor count"),
            (self.skipped_other_partition, "in other partitions or none"),
            (self.skipped_other, "not about a run"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
    }

    /// How many records were left out and why, in a sentence, if any were.
    pub(crate) fn left_out(&self) -> Option<String> {
        left_out(self.records - self.steps, self.usable, self.skipped_for())
    }

    /// The counts that are not zero, each as a line for a report.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        [
            (self.records, "records"),
            (self.usable, "usable"),
            (self.steps, "steps, part of their jobs"),
            (self.skipped_malformed, "skipped, malformed record"),
            (self.skipped_cut_off, "skipped, cut off at the end of the file"),
            (self.skipped_duplicate, "skipped, duplicate"),
            (self.skipped_never_started, "skipped, never started"),
            (self.skipped_still_running, "skipped, still running at the end of the records"),
            (self.skipped_unknown_time, "skipped, unknown time"),
            (self.skipped_negative_time, "skipped, ended before it started"),
            (self.skipped_no_size, "skipped, no processor count"),
            (self.skipped_other_partition, "left out, in other partitions or none"),
            (self.skipped_other, "skipped, not about a run"),
            (self.steps_without_job, "steps without their job"),
            (self.limit_unknown, "requested time unknown"),
            (self.submit_from_eligible, "submit time taken from eligible time"),
            (self.submit_moved, "submit time after the start, moved to it"),
            (self.elapsed_differs, "recorded length differs from start to end"),
            (self.size_from_nodes, "size counted in nodes, no processor count"),
            (self.size_of_whole_nodes, "no processor count, all processors of their nodes counted"),
            (self.size_raised, "size raised to whole nodes, which were exclusive"),
            (self.further_runs, "further runs of jobs that were queued again"),
            (self.renumbered, "numbered anew"),
            (self.exclusive, "on whole nodes"),
            (self.shared, "on parts of nodes"),
            (self.reserved, "in a reservation"),
            (self.with_node_names, "with the names of their nodes"),
            (self.with_power, "with measured power"),
            (self.power_of_others, "power unknown, energy of shared nodes"),
            (self.power_unreadable, "power unknown, value not readable"),
            (self.local_times, "local times"),
            (self.offset_times, "times with an offset of their own"),
            (self.twice_times, "times that the clocks showed twice, first one taken"),
            (
                self.twice_told,
                "times that the clocks showed twice, told apart by the length of the run",
            ),
            (self.never_times, "times that the clocks never showed"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{what}: {count}"))
    }

    /// Counts a record that cannot be used.
    pub(super) fn skip(&mut self, defect: &Defect) {
        let count = match defect {
            Defect::CutOff { .. } => &mut self.skipped_cut_off,
            Defect::TooLong
            | Defect::Fields { .. }
            | Defect::Form(_)
            | Defect::NotATime { .. }
            | Defect::Unreadable { .. } => &mut self.skipped_malformed,
            Defect::UnknownTime(_) => &mut self.skipped_unknown_time,
            Defect::NegativeTime => &mut self.skipped_negative_time,
            Defect::NoSize => &mut self.skipped_no_size,
        };
        *count += 1;
    }
}
