//! A log made clean: what a workload is made of, with everything else the log says.

use super::error::SwfError;
use super::header::Header;
use super::intake::Intake;
use super::reader::{BadRecords, admit_all};
use super::record::Record;

/// A log without what cannot be used, and with the gaps filled.
#[derive(Clone, Debug)]
pub struct CleanLog {
    /// Its opening comments.
    pub comments: Vec<String>,
    /// Its usable records in submit order, size and requested time filled in where they were
    /// missing, all other fields as they were.
    pub records: Vec<Record>,
    /// What became of its records.
    pub intake: Intake,
}

/// Cleans a log by the same rules by which [`read`](super::read) makes jobs of it.
pub fn clean(bytes: &[u8], name: &str, bad: BadRecords) -> Result<CleanLog, SwfError> {
    let mut records = Vec::new();
    let intake = admit_all(bytes, name, bad, |record, job, run_time| {
        let Record { number, requested_processors, requested_time, .. } =
            Record::new(&job, run_time);
        records.push(Record { number, requested_processors, requested_time, ..*record });
    })?;
    records.sort_by_key(|record| record.submit);
    Ok(CleanLog { comments: Header::of(bytes).comments, records, intake })
}
