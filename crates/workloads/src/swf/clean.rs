//! A log made clean: what a workload is made of, with everything else the log says.

use super::error::SwfError;
use super::header::Header;
use super::intake::Intake;
use super::reader::{Found, Jobs, Log};
use super::record::Record;
use busbar_core::job::Job;
use busbar_core::units::Span;

/// A log without what cannot be used, and with the gaps filled.
#[derive(Clone, Debug)]
pub struct CleanLog {
    /// What its opening comments say.
    pub header: Header,
    /// Its usable records in submit order, size and requested time filled in where they were
    /// missing, all other fields as they were.
    pub records: Vec<Record>,
    /// What became of its records.
    pub intake: Intake,
}

/// A record with the gaps filled.
pub(super) fn cleaned(record: &Record, job: Job, run_time: Span) -> Record {
    let Record { number, requested_processors, requested_time, .. } = Record::new(&job, run_time);
    Record { number, requested_processors, requested_time, ..*record }
}

impl CleanLog {
    /// The log with these clean records, in any order.
    pub(super) fn new(mut records: Vec<Record>, found: Found) -> Self {
        records.sort_by_key(|record| record.submit);
        CleanLog { header: found.header, records, intake: found.intake }
    }

    /// The same as a workload; see [`read`](super::read) for its name.
    pub fn log(&self, name: &str) -> Result<Log, SwfError> {
        let mut jobs = Jobs::default();
        // What was repaired is known already.
        let mut again = Intake::default();
        for record in &self.records {
            if let Some((job, run_time)) = again.admit(record) {
                jobs.push(record, job, run_time);
            }
        }
        let found = Found { header: self.header.clone(), intake: self.intake.clone() };
        jobs.into_log(name, found)
    }
}
