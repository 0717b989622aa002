//! From a log's lines to a workload, or to its records one by one.

use std::collections::HashMap;

use super::error::SwfError;
use super::header::{COMMENT, Header, LARGEST_HEADER};
use super::intake::Intake;
use super::line::{Line, Lines};
use super::record::{FIELDS, Record};
use busbar_core::calendar::Calendar;
use busbar_core::job::Job;
use busbar_core::structure::{Dependency, Needs, On, Structure, When};
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
    let mut jobs = Jobs::with_capacity(expected_records(bytes));
    let mut scan = Scan::new(name, bad);
    scan.take(1, bytes, |record, job, run_time| jobs.push(record, job, run_time))?;
    jobs.into_log(name, scan.finish()?)
}

/// Jobs as the arrays that a workload is made of.
#[derive(Default)]
pub(super) struct Jobs {
    jobs: Vec<Job>,
    run_times: Vec<Span>,
    waits: Vec<i32>,
    partitions: Vec<u32>,
    /// Jobs that follow another, by their places: which one, and how long after its end.
    following: Vec<(u32, On, Span)>,
}

impl Jobs {
    fn with_capacity(expected: usize) -> Self {
        Jobs {
            jobs: Vec::with_capacity(expected),
            run_times: Vec::with_capacity(expected),
            waits: Vec::with_capacity(expected),
            partitions: Vec::with_capacity(expected),
            following: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, record: &Record, job: Job, run_time: Span) {
        if record.preceding_job > 0 {
            let think = u32::try_from(record.think_time).unwrap_or(0);
            let on = On { number: record.preceding_job as u64, task: None };
            self.following.push((self.jobs.len() as u32, on, Span::from_secs(think)));
        }
        self.jobs.push(job);
        self.run_times.push(run_time);
        self.waits.push(i32::try_from(record.wait).unwrap_or(-1));
        self.partitions.push(u32::try_from(record.partition).unwrap_or(0));
    }

    /// The log with these jobs.
    pub(super) fn into_log(self, name: &str, found: Found) -> Result<Log, SwfError> {
        let Jobs { jobs, run_times, waits, mut partitions, following } = self;
        let Found { header, mut intake } = found;
        if u32::try_from(jobs.len()).is_err() {
            return Err(SwfError::TooManyJobs { file: name.to_owned() });
        }
        intake.repeated_numbers = repeated_numbers(&jobs);
        if partitions.iter().all(|number| *number == 0) {
            partitions = Vec::new();
        }
        let partitions = Partitions::new(partitions, header.partitions.clone());
        let name = workload_name(name).to_owned();
        let followers: HashMap<u64, Structure> = (following.iter())
            .map(|(place, on, delay)| {
                let after = Dependency::After { when: When::Ended, delay: *delay, on: *on };
                let needs = Needs::new(vec![after], false);
                (jobs[*place as usize].number, Structure { needs, ..Structure::default() })
            })
            .collect();
        let mut workload = Workload::from_parts(name, jobs, run_times, waits, partitions);
        if !followers.is_empty() {
            workload.set_structure(|job| followers.get(&job.number).cloned());
        }
        let processors = header.processors(workload.largest_job());
        let calendar = Calendar::of_header(header.unix_start_time, header.time_zone.as_deref());
        let workload = workload
            .on_processors(processors)
            .on_computer(header.computer.clone())
            .dated(calendar)
            .with_queues(header.queues.clone());
        Ok(Log { workload, header, intake })
    }
}

/// What a workload from the log called `name` is called: without folder and ending.
fn workload_name(name: &str) -> &str {
    let file = name.rsplit('/').next().unwrap_or(name);
    let stem = file.strip_suffix(".gz").unwrap_or(file);
    let stem = stem.strip_suffix(".swf").unwrap_or(stem);
    if stem.is_empty() { name } else { stem }
}

/// What a log has said so far: it comes in pieces of whole lines, or as one.
pub(super) struct Scan<'a> {
    name: &'a str,
    bad: BadRecords,
    found: Found,
    /// How many bytes the opening comments take; `None` after the first record.
    opening: Option<usize>,
    /// The latest submit time.
    latest: Instant,
}

/// What a log says beside its jobs.
#[derive(Default)]
pub(super) struct Found {
    pub(super) header: Header,
    pub(super) intake: Intake,
}

impl<'a> Scan<'a> {
    pub(super) fn new(name: &'a str, bad: BadRecords) -> Self {
        Scan { name, bad, found: Found::default(), opening: Some(0), latest: Instant::ZERO }
    }

    /// Hands every usable record of a piece to `keep`, with the job that is made of it, and counts
    /// the others. `first` is the number of the first line.
    #[inline]
    pub(super) fn take(
        &mut self,
        first: usize,
        piece: &[u8],
        mut keep: impl FnMut(&Record, Job, Span),
    ) -> Result<(), SwfError> {
        let mut lines = Lines::from(first, piece);
        while let Some(line) = lines.next() {
            match line {
                Line::Comment(comment) => self.take_comment(comment, &lines)?,
                Line::Record(record) => {
                    self.opening = None;
                    let intake = &mut self.found.intake;
                    if let Some((job, run_time)) = intake.admit(&record) {
                        intake.out_of_order += u64::from(job.submit < self.latest);
                        self.latest = self.latest.max(job.submit);
                        keep(&record, job, run_time);
                    }
                }
                Line::Malformed(fault) if self.bad == BadRecords::Stop => {
                    return Err(SwfError::malformed(self.name, lines.number(), fault));
                }
                Line::Malformed(_) => {
                    self.opening = None;
                    self.found.intake.skip_malformed();
                }
            }
        }
        Ok(())
    }

    /// Only opening comments are kept, and not without end.
    #[cold]
    fn take_comment(&mut self, comment: &[u8], lines: &Lines<'_>) -> Result<(), SwfError> {
        let Some(bytes) = &mut self.opening else { return Ok(()) };
        *bytes += COMMENT + comment.len();
        if *bytes > LARGEST_HEADER {
            let (file, line) = (self.name.to_owned(), lines.number());
            return Err(SwfError::LargeHeader { file, line });
        }
        self.found.header.take(comment);
        Ok(())
    }

    /// What was found, if anything was of use.
    pub(super) fn finish(self) -> Result<Found, SwfError> {
        let Scan { name, found, .. } = self;
        match found.intake.usable {
            0 => Err(SwfError::NothingUsable { file: name.to_owned(), intake: found.intake }),
            _ => Ok(found),
        }
    }
}

/// How many jobs have the number of one before them. Logs count their jobs, so that there is next to nothing to do.
fn repeated_numbers(jobs: &[Job]) -> u64 {
    if jobs.is_sorted_by(|one, next| one.number < next.number) {
        return 0;
    }
    let mut numbers: Vec<u64> = jobs.iter().map(|job| job.number).collect();
    numbers.sort_unstable();
    numbers.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64
}

/// How many records to make room for: as many as there are lines, to judge by the beginning, but
/// never more than fit in this many bytes.
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
    #[cfg(test)]
    pub(crate) fn skipped(&self) -> u64 {
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
