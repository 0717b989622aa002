//! From records to jobs: the fall-backs, and the account of what was repaired or left out.

use std::num::NonZeroU32;

use serde::Serialize;

use super::record::Record;
use busbar_core::job::{ApplicationId, Entry, GroupId, Job, UserId};
use busbar_core::units::{Instant, Span};

/// What became of a log's records. Every record is either usable or skipped for one reason, the
/// first that applies in the order of the fields here; so `records` is `usable` plus all that
/// were skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Intake {
    /// Lines that are neither blank nor comments.
    pub records: u64,
    /// Records that became jobs.
    pub usable: u64,
    /// Lines that are not 18 numbers.
    pub skipped_malformed: u64,
    /// Records with neither requested nor allocated processors.
    pub skipped_no_size: u64,
    /// Records without a run time.
    pub skipped_no_run_time: u64,
    /// Records without a submit time.
    pub skipped_no_submit: u64,
    /// Usable records without requested processors: the allocated ones are their size.
    pub size_from_allocated: u64,
    /// Usable records without a requested time: the run time is their estimate.
    pub estimate_from_run_time: u64,
    /// Usable records submitted before one that stands earlier in the log.
    pub out_of_order: u64,
    /// Usable records with the number of another that stands earlier in the log.
    pub repeated_numbers: u64,
}

impl Intake {
    /// How many records were skipped, for whatever reason.
    pub fn skipped(&self) -> u64 {
        self.skipped_malformed
            + self.skipped_no_size
            + self.skipped_no_run_time
            + self.skipped_no_submit
    }

    /// How many records were skipped for each reason, where there are any.
    pub(crate) fn skipped_for(&self) -> impl Iterator<Item = (u64, &'static str)> {
        [
            (self.skipped_malformed, "malformed"),
            (self.skipped_no_size, "without a processor count"),
            (self.skipped_no_run_time, "without a run time"),
            (self.skipped_no_submit, "without a submit time"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
    }

    /// How many records were left out and why, in a sentence, if any were.
    pub fn left_out(&self) -> Option<String> {
        left_out(self.records, self.usable, self.skipped_for())
    }

    /// The counts that are not zero, each as a line for a report.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        [
            (self.records, "records"),
            (self.usable, "usable"),
            (self.skipped_malformed, "skipped, malformed line"),
            (self.skipped_no_size, "skipped, no processor count"),
            (self.skipped_no_run_time, "skipped, no run time"),
            (self.skipped_no_submit, "skipped, no submit time"),
            (self.size_from_allocated, "size taken from allocated processors"),
            (self.estimate_from_run_time, "requested time taken from run time"),
            (self.out_of_order, "put in submit order"),
            (
                self.repeated_numbers,
                "with the number of another job, so that numbers do not tell jobs apart",
            ),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{what}: {count}"))
    }

    /// Counts a line that is not a record.
    pub(super) fn skip_malformed(&mut self) {
        self.records += 1;
        self.skipped_malformed += 1;
    }

    /// Counts a record and turns it into a job and its run time, if that can be.
    #[inline]
    pub(super) fn admit(&mut self, record: &Record) -> Option<(Job, Span)> {
        self.records += 1;
        let requested_size = positive(record.requested_processors);
        let Some(size) = requested_size.or_else(|| positive(record.allocated_processors)) else {
            self.skipped_no_size += 1;
            return None;
        };
        let Some(run_time) = not_negative(record.run_time) else {
            self.skipped_no_run_time += 1;
            return None;
        };
        let Some(submit) = not_negative(record.submit) else {
            self.skipped_no_submit += 1;
            return None;
        };
        let requested_time = positive(record.requested_time);
        self.usable += 1;
        self.size_from_allocated += u64::from(requested_size.is_none());
        self.estimate_from_run_time += u64::from(requested_time.is_none());
        let number = u64::try_from(record.number).unwrap_or(self.records);
        let requested = Span::from_secs(requested_time.map_or(run_time, NonZeroU32::get));
        let job = Job {
            user: positive(record.user).map(UserId),
            group: positive(record.group).map(GroupId),
            application: positive(record.application).map(ApplicationId),
            entry: Entry::of(record.queue, record.partition),
            ..Job::new(number, Instant::from_secs(submit), size.get(), requested)
        };
        Some((job, Span::from_secs(run_time)))
    }
}

// The line reader has refused whatever is above 32 bits, so these tell known from unknown.

#[inline]
fn not_negative(value: i64) -> Option<u32> {
    u32::try_from(value).ok()
}

#[inline]
fn positive(value: i64) -> Option<NonZeroU32> {
    not_negative(value).and_then(NonZeroU32::new)
}

/// How many records were left out and why, in a sentence, if any were.
pub(crate) fn left_out(
    records: u64,
    usable: u64,
    reasons: impl Iterator<Item = (u64, &'static str)>,
) -> Option<String> {
    let skipped = records - usable;
    (skipped > 0).then(|| {
        let reasons: Vec<String> = reasons.map(|(count, why)| format!("{count} {why}")).collect();
        format!(
            "of {records} records, {skipped} {} left out, and nothing here counts them: {}",
            if skipped == 1 { "was" } else { "were" },
            reasons.join(", ")
        )
    })
}
