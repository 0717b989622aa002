//! Logs in files: plain or gzip, or on standard input.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::clean::{CleanLog, clean};
use super::error::SwfError;
use super::reader::{BadRecords, Log, read};

/// Reads the log in a file; see [`load`] for what it may be and [`read`] for what becomes of it.
pub fn read_path(path: impl AsRef<Path>, bad: BadRecords) -> Result<Log, SwfError> {
    let path = path.as_ref();
    read(&load(path)?, &name_of(path), bad)
}

/// Cleans the log in a file; see [`clean`].
pub fn clean_path(path: impl AsRef<Path>, bad: BadRecords) -> Result<CleanLog, SwfError> {
    let path = path.as_ref();
    clean(&load(path)?, &name_of(path), bad)
}

/// The text of a log in a file, or on standard input for `-`. Gzip is known by its first bytes,
/// whatever the file is called, and may have several members.
pub fn load(path: impl AsRef<Path>) -> Result<Vec<u8>, SwfError> {
    let path = path.as_ref();
    let unreadable = |source| SwfError::Unreadable { file: name_of(path), source };
    let bytes = if is_standard_input(path) {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map_err(unreadable)?;
        bytes
    } else {
        fs::read(path).map_err(unreadable)?
    };
    if bytes.starts_with(b"\x1f\x8b") {
        unpack(&bytes).map_err(|source| SwfError::Damaged { file: name_of(path), source })
    } else {
        Ok(bytes)
    }
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn name_of(path: &Path) -> String {
    if is_standard_input(path) { "stdin".to_owned() } else { path.display().to_string() }
}

fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(unpacked_size(packed));
    MultiGzDecoder::new(packed).read_to_end(&mut text)?;
    Ok(text)
}

/// The size the last member claims to have, held to what a log may shrink by: the claim is not to
/// be trusted with memory.
fn unpacked_size(packed: &[u8]) -> usize {
    const USUAL_SHRINKAGE: usize = 16;
    let claimed = packed.last_chunk().map_or(0, |&size| u32::from_le_bytes(size) as usize);
    claimed.min(packed.len().saturating_mul(USUAL_SHRINKAGE))
}
