//! Files that may be packed with gzip, and standard input.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// How gzip begins.
const GZIP: &[u8] = b"\x1f\x8b";

/// An input as it is read, unpacked if need be.
pub(super) struct Unpacked {
    pub(super) input: Box<dyn Read>,
    pub(super) is_packed: bool,
}

/// Opens a file, or standard input for `-`. Gzip is known by its first bytes, whatever the file is called, and may
/// have several members.
pub(super) fn open(path: &Path) -> io::Result<Unpacked> {
    let mut input: Box<dyn Read> = match is_standard_input(path) {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(path)?),
    };
    let mut beginning = Vec::new();
    input.by_ref().take(GZIP.len() as u64).read_to_end(&mut beginning)?;
    let is_packed = beginning == GZIP;
    let whole = io::Cursor::new(beginning).chain(input);
    let input: Box<dyn Read> = match is_packed {
        true => Box::new(MultiGzDecoder::new(BufReader::with_capacity(1 << 18, whole))),
        false => Box::new(whole),
    };
    Ok(Unpacked { input, is_packed })
}

/// Whether a path stands for standard input.
pub(super) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What an input is called in messages.
pub(super) fn name_of(path: &Path) -> String {
    if is_standard_input(path) { "stdin".to_owned() } else { path.display().to_string() }
}
