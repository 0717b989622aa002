//! From a log's bytes to a workload, or to its records one by one.

use super::error::SwfError;
use super::header::Header;
use super::intake::Intake;
use super::line::{Line, Lines};
use super::record::{FIELDS, Record};
use busbar_core::calendar::Calendar;
use busbar_core::job::Job;
use busbar_core::units::{Instant, Span};
use busbar_core::workload::{Partitions, Workload};

/// What to do about lines that are not records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadRecords {
    /// The first one is an error.
    #[default]
    Stop,
    /// They are left out and counted.
    Skip,
}

/// A log that was read.
#[derive(Clone, Debug)]
pub struct Log {
    /// Its usable records as jobs.
    pub workload: Workload,
    /// What its opening comments say.
    pub header: Header,
    /// What became of its records.
    pub intake: Intake,
}

/// Reads a log. `name` stands in messages and, without folder and `.swf` or `.swf.gz`, is the
/// workload's name. A log without a single usable record is an error.
pub fn read(bytes: &[u8], name: &str, bad: BadRecords) -> Result<Log, SwfError> {
    let header = Header::of(bytes);
    let expected = expected_records(bytes);
    let mut jobs = Vec::with_capacity(expected);
    let mut run_times = Vec::with_capacity(expected);
    let mut waits = Vec::with_capacity(expected);
    let mut partitions = Vec::with_capacity(expected);
    let intake = admit_all(bytes, name, bad, |record, job, run_time| {
        jobs.push(job);
        run_times.push(run_time);
        waits.push(i32::try_from(record.wait).unwrap_or(-1));
        partitions.push(u32::try_from(record.partition).unwrap_or(0));
    })?;
    if u32::try_from(jobs.len()).is_err() {
        return Err(SwfError::TooManyJobs { file: name.to_owned() });
    }
    if partitions.iter().all(|number| *number == 0) {
        partitions = Vec::new();
    }
    let partitions = Partitions::new(partitions, header.partitions.clone());
    let name = workload_name(name).to_owned();
    let workload = Workload::from_parts(name, jobs, run_times, waits, partitions);
    let processors = header.processors(workload.largest_job());
    let calendar = Calendar::of_header(header.unix_start_time, header.time_zone.as_deref());
    let workload =
        workload.on_processors(processors).on_computer(header.computer.clone()).dated(calendar);
    Ok(Log { workload, header, intake })
}

/// What a workload from the log called `name` is called: without folder and ending.
fn workload_name(name: &str) -> &str {
    let file = name.rsplit('/').next().unwrap_or(name);
    let stem = file.strip_suffix(".gz").unwrap_or(file);
    let stem = stem.strip_suffix(".swf").unwrap_or(stem);
    if stem.is_empty() { name } else { stem }
}

/// Hands every usable record to `keep`, with the job that is made of it, and counts the others.
#[inline]
pub(super) fn admit_all(
    bytes: &[u8],
    name: &str,
    bad: BadRecords,
    mut keep: impl FnMut(&Record, Job, Span),
) -> Result<Intake, SwfError> {
    let mut intake = Intake::default();
    let mut latest = Instant::ZERO;
    let mut lines = Lines::new(bytes);
    while let Some(line) = lines.next() {
        match line {
            Line::Comment(_) => {}
            Line::Record(record) => {
                if let Some((job, run_time)) = intake.admit(&record) {
                    intake.out_of_order += u64::from(job.submit < latest);
                    latest = latest.max(job.submit);
                    keep(&record, job, run_time);
                }
            }
            Line::Malformed(fault) if bad == BadRecords::Stop => {
                return Err(SwfError::malformed(name, lines.number(), fault));
            }
            Line::Malformed(_) => intake.skip_malformed(),
        }
    }
    if intake.usable == 0 {
        return Err(SwfError::NothingUsable { file: name.to_owned(), intake });
    }
    Ok(intake)
}

/// How many records to make room for: as many as there are lines, to judge by the beginning, but
/// never more than fit in so many bytes.
fn expected_records(bytes: &[u8]) -> usize {
    const SAMPLE: usize = 1 << 16;
    const SHORTEST_RECORD: usize = 2 * FIELDS;
    let sample = &bytes[..bytes.len().min(SAMPLE)];
    let lines = 1 + memchr::memchr_iter(b'\n', sample).count();
    let lines = lines.saturating_mul(bytes.len().div_ceil(SAMPLE));
    lines.min(bytes.len() / SHORTEST_RECORD + 1)
}

/// All fields of all records of a log, whether a job can be made of them or not; `name` stands in
/// messages.
pub fn records<'a>(bytes: &'a [u8], name: &'a str, bad: BadRecords) -> Records<'a> {
    Records { lines: Lines::new(bytes), name, bad, skipped: 0, stopped: false }
}

/// The records of a log, from [`records`]. With [`BadRecords::Stop`] it ends after the first
/// error.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    lines: Lines<'a>,
    name: &'a str,
    bad: BadRecords,
    skipped: u64,
    stopped: bool,
}

impl Records<'_> {
    /// How many malformed lines were left out so far.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, SwfError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.stopped {
            return None;
        }
        while let Some(line) = self.lines.next() {
            match line {
                Line::Comment(_) => {}
                Line::Record(record) => return Some(Ok(record)),
                Line::Malformed(fault) if self.bad == BadRecords::Stop => {
                    self.stopped = true;
                    let line = self.lines.number();
                    return Some(Err(SwfError::malformed(self.name, line, fault)));
                }
                Line::Malformed(_) => self.skipped += 1,
            }
        }
        None
    }
}
