//! Checks SQLite's write-ahead log. SQLite reads the log up to the first invalid frame and takes that
//! for the end, since an interrupted commit looks like that. If the frame was in the middle, all later
//! commits would be lost silently. So at most one commit may follow the first invalid frame: a commit
//! that was not confirmed. A second one is begun only when the first is on the disk.
//!
//! What an interrupted commit did not write is zero, or is left from before the log was restarted. A frame that is neither was
//! damaged, and may have been the last one of a commit.
//!
//! The format is described at <https://www.sqlite.org/fileformat2.html#walformat>.

use std::fs::File;
use std::io::{self, BufReader, Read};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
const LITTLE_ENDIAN: u32 = 0x377f_0682;
const BIG_ENDIAN: u32 = 0x377f_0683;
const VERSION: u32 = 3_007_000;
/// A log is not restarted more often than this while it exists.
const MOST_RESTARTS: u32 = 1 << 24;

/// What is wrong with a log, if anything.
pub(super) fn damage(file: File) -> io::Result<Option<&'static str>> {
    let length = file.metadata()?.len();
    let mut input = BufReader::with_capacity(1 << 16, file);
    // The header is written before anything else, so it does not matter without frames.
    if length <= HEADER as u64 {
        return Ok(None);
    }
    let mut header = [0; HEADER];
    input.read_exact(&mut header)?;
    let Some(mut chain) = Chain::begin(&header) else {
        return Ok(Some("the header of the log beside it is not one"));
    };
    let mut frame = vec![0; FRAME_HEADER + chain.page_size];
    let mut is_broken = false;
    let mut commits_behind = 0;
    while fill(&mut input, &mut frame)? {
        is_broken = is_broken || !chain.goes_on_with(&frame);
        if is_broken && chain.may_be_a_commit(&frame) {
            commits_behind += 1;
        }
    }
    Ok((commits_behind > 1).then_some("the log beside it is damaged before its end"))
}

/// Chained checksums: each depends on all before it.
struct Chain {
    is_little_endian: bool,
    page_size: usize,
    salts: [u8; 8],
    sum: (u32, u32),
}

impl Chain {
    fn begin(header: &[u8; HEADER]) -> Option<Self> {
        let is_little_endian = match word(header, 0) {
            LITTLE_ENDIAN => true,
            BIG_ENDIAN => false,
            _ => return None,
        };
        let page_size = word(header, 8);
        if word(header, 4) != VERSION
            || !page_size.is_power_of_two()
            || !(512..=65536).contains(&page_size)
        {
            return None;
        }
        let mut salts = [0; 8];
        salts.copy_from_slice(&header[16..24]);
        let page_size = page_size as usize;
        let mut chain = Chain { is_little_endian, page_size, salts, sum: (0, 0) };
        chain.add(&header[..24]);
        (chain.sum == (word(header, 24), word(header, 28))).then_some(chain)
    }

    fn goes_on_with(&mut self, frame: &[u8]) -> bool {
        self.add(&frame[..8]);
        self.add(&frame[FRAME_HEADER..]);
        word(frame, 0) != 0
            && frame[8..16] == self.salts
            && self.sum == (word(frame, 16), word(frame, 20))
    }

    /// Whether a frame is the last one of a commit to this log, or was damaged and may have been.
    fn may_be_a_commit(&self, frame: &[u8]) -> bool {
        if frame[8..16] == self.salts {
            return word(frame, 4) != 0;
        }
        // The first salt grows by one with each restart of the log.
        let restarts = word(&self.salts, 0).wrapping_sub(word(frame, 8));
        let is_left_over = (1..MOST_RESTARTS).contains(&restarts);
        !is_left_over && frame[..FRAME_HEADER] != [0; FRAME_HEADER]
    }

    fn add(&mut self, bytes: &[u8]) {
        let (mut first, mut second) = self.sum;
        for pair in bytes.chunks_exact(8) {
            let (left, right) = match self.is_little_endian {
                true => (word(pair, 0).swap_bytes(), word(pair, 4).swap_bytes()),
                false => (word(pair, 0), word(pair, 4)),
            };
            first = first.wrapping_add(left).wrapping_add(second);
            second = second.wrapping_add(right).wrapping_add(first);
        }
        self.sum = (first, second);
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Fills the buffer; `false` if the input is too short.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
