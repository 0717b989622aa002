//! Logs in files: plain or gzip, or on standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::clean::{CleanLog, clean};
use super::error::SwfError;
use super::reader::{BadRecords, Log, read};
use crate::power;
use crate::unpacked::{GZIP, is_standard_input, name_of};
use busbar_core::text::{self, LongLine};

/// Reads the log in a file; see [`load`] for what it may be and [`read`] for what becomes of it. If the log names a file
/// with the power of its jobs, that is read, too.
pub fn read_path(path: impl AsRef<Path>, bad: BadRecords) -> Result<Log, SwfError> {
    let path = path.as_ref();
    let mut log = read(&load(path)?, &name_of(path), bad)?;
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

/// Cleans the log in a file; see [`clean`].
pub fn clean_path(path: impl AsRef<Path>, bad: BadRecords) -> Result<CleanLog, SwfError> {
    let path = path.as_ref();
    clean(&load(path)?, &name_of(path), bad)
}

/// The text of a log in a file, or on standard input for `-`. Gzip is known by its first bytes,
/// whatever the file is called, and may have several members. A line that is too long is an error,
/// and what comes after it is not even unpacked.
pub fn load(path: impl AsRef<Path>) -> Result<Vec<u8>, SwfError> {
    let path = path.as_ref();
    let name = || name_of(path);
    let unreadable = |source| SwfError::Unreadable { file: name(), source };
    let (mut input, size): (Box<dyn Read>, u64) = if is_standard_input(path) {
        (Box::new(io::stdin().lock()), 0)
    } else {
        let file = File::open(path).map_err(unreadable)?;
        let size = file.metadata().map_or(0, |found| found.len());
        (Box::new(file), size)
    };
    let mut beginning = Vec::new();
    input.by_ref().take(GZIP.len() as u64).read_to_end(&mut beginning).map_err(unreadable)?;
    let mut whole = beginning.as_slice().chain(input);
    let (read, is_packed) = if beginning == GZIP {
        let mut packed = Vec::new();
        whole.read_to_end(&mut packed).map_err(unreadable)?;
        let expected = unpacked_size(&packed) as u64;
        (text::read_lines(MultiGzDecoder::new(packed.as_slice()), expected), true)
    } else {
        (text::read_lines(whole, size), false)
    };
    read.map_err(|source| match text::long_line(&source) {
        Some(LongLine { line }) => SwfError::LongLine { file: name(), line },
        None if is_packed => SwfError::Damaged { file: name(), source },
        None => unreadable(source),
    })
}

/// The size the last member claims to have, held to what a log may shrink by: the claim is not to
/// be trusted with memory.
fn unpacked_size(packed: &[u8]) -> usize {
    const USUAL_SHRINKAGE: usize = 16;
    let claimed = packed.last_chunk().map_or(0, |&size| u32::from_le_bytes(size) as usize);
    claimed.min(packed.len().saturating_mul(USUAL_SHRINKAGE))
}
