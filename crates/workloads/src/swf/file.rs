//! Logs in files: plain or gzip, or on standard input.

use std::path::{Path, PathBuf};

use super::clean::{CleanLog, cleaned};
use super::error::SwfError;
use super::reader::{BadRecords, Found, Jobs, Log, Scan};
use super::record::Record;
use crate::power;
use crate::unpacked::{self, Unpacked, is_standard_input, name_of};
use busbar_core::job::Job;
use busbar_core::text::{self, LongLine, Pieces};
use busbar_core::units::Span;

/// Reads the log in a file, or on standard input for `-`; see [`read`](super::read) for what becomes of it. Gzip is
/// known by its first bytes, whatever the file is called, and may have several members. If the log names a file
/// with the power of its jobs, that is read, too.
///
/// The file is read as a stream: only jobs and opening comments are held. A line that is too long is an error, and
/// what comes after it is not even unpacked.
pub fn read_path(path: impl AsRef<Path>, bad: BadRecords) -> Result<Log, SwfError> {
    let path = path.as_ref();
    let mut jobs = Jobs::default();
    let found = scan(path, bad, |record, job, run_time| jobs.push(record, job, run_time))?;
    let mut log = jobs.into_log(&name_of(path), found)?;
    add_power(&mut log, path)?;
    Ok(log)
}

/// Reads the power of the jobs of a log, which was read from `path`, if the log names a file with it.
pub fn add_power(log: &mut Log, path: &Path) -> Result<(), SwfError> {
    let Some(name) = &log.header.power_file else { return Ok(()) };
    // The file stands beside the log; what comes on standard input is beside whoever reads it.
    let beside = match is_standard_input(path) {
        true => PathBuf::from(name),
        false => path.with_file_name(name),
    };
    let set = power::read_into(&mut log.workload, &beside);
    set.map_err(|source| SwfError::Power { file: name_of(path), source })
}

/// Cleans the log in a file, which is read like that of [`read_path`], by the rules by which that makes jobs of it.
pub fn clean_path(path: impl AsRef<Path>, bad: BadRecords) -> Result<CleanLog, SwfError> {
    let mut records = Vec::new();
    let found = scan(path.as_ref(), bad, |record, job, run_time| {
        records.push(cleaned(record, job, run_time));
    })?;
    Ok(CleanLog::new(records, found))
}

/// Hands every usable record of a log to `keep`, with the job that is made of it.
fn scan(
    path: &Path,
    bad: BadRecords,
    mut keep: impl FnMut(&Record, Job, Span),
) -> Result<Found, SwfError> {
    let file = name_of(path);
    let unreadable = |source| SwfError::Unreadable { file: file.clone(), source };
    let Unpacked { input, is_packed } = unpacked::open(path).map_err(unreadable)?;
    let mut pieces = Pieces::new(input);
    let mut scan = Scan::new(&file, bad);
    loop {
        let piece = pieces.next_piece().map_err(|source| match text::long_line(&source) {
            Some(LongLine { line }) => SwfError::LongLine { file: file.clone(), line },
            None if is_packed => SwfError::Damaged { file: file.clone(), source },
            None => unreadable(source),
        })?;
        let Some((first, piece)) = piece else { return scan.finish() };
        scan.take(first, piece, &mut keep)?;
    }
}
