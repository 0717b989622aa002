//! A log made clean: what a workload is made of, with everything else the log says.

use super::error::SwfError;
use super::header::Header;
use super::intake::Intake;
use super::line::{Line, Lines};
use super::reader::BadRecords;
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
    let mut intake = Intake::default();
    let mut records = Vec::new();
    let mut latest = 0;
    let mut lines = Lines::new(bytes);
    while let Some(line) = lines.next() {
        match line {
            Line::Comment(_) => {}
            Line::Record(record) => {
                if let Some((job, run_time)) = intake.admit(&record) {
                    intake.out_of_order += u64::from(record.submit < latest);
                    latest = latest.max(record.submit);
                    let Record { number, requested_processors, requested_time, .. } =
                        Record::new(&job, run_time);
                    records.push(Record { number, requested_processors, requested_time, ..record });
                }
            }
            Line::Malformed(fault) if bad == BadRecords::Stop => {
                return Err(SwfError::malformed(name, lines.number(), fault));
            }
            Line::Malformed(_) => intake.skip_malformed(),
        }
    }
    if records.is_empty() {
        return Err(SwfError::NothingUsable { file: name.to_owned(), intake });
    }
    records.sort_by_key(|record| record.submit);
    Ok(CleanLog { comments: Header::of(bytes).comments, records, intake })
}
