//! Text files, read within bounds: no line and no file can take more memory than a sensible one.
//!
//! A few megabytes of gzip can hold a line of a gigabyte. So lines are measured while they are read,
//! and reading stops at the first one that is too long. What has lines of numbers (logs, CSV) may
//! have any number of them; what is parsed as a whole (TOML, JSON) is bounded in size instead.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The most bytes a line may have, without its end.
pub const LONGEST_LINE: usize = 64 << 10;

/// The most bytes a file may have that is parsed as a whole.
pub const LARGEST_FILE: u64 = 64 << 20;

/// How much is read at a time.
const CHUNK: usize = 64 << 10;

/// A line is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line} has more than {LONGEST_LINE} bytes, so this is not the text file it should be; \
     check the file, or break the line"
)]
pub struct LongLine {
    /// Which one, from 1.
    pub line: usize,
}

/// Reads all lines of an input, and stops at one that is too long. Then, no more than that
/// line's allowance and one chunk beyond it has been kept. `expected` is how many bytes may come;
/// it is a hint.
pub fn read_lines(mut input: impl Read, expected: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    // A hint that cannot be met is no error: what really comes may be less.
    let _ = text.try_reserve_exact(usize::try_from(expected).unwrap_or(usize::MAX));
    let mut chunk = vec![0; CHUNK];
    let (mut line, mut begin) = (1, 0);
    loop {
        let read = match input.read(&mut chunk) {
            Ok(0) => return Ok(text),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let before = text.len();
        text.extend_from_slice(&chunk[..read]);
        for end in memchr::memchr_iter(b'\n', &chunk[..read]) {
            check(line, before + end - begin)?;
            (line, begin) = (line + 1, before + end + 1);
        }
        check(line, text.len() - begin)?;
    }
}

fn check(line: usize, bytes: usize) -> io::Result<()> {
    if bytes <= LONGEST_LINE {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, LongLine { line }))
}

/// Which line was too long, if that is the error.
pub fn long_line(error: &io::Error) -> Option<LongLine> {
    error.get_ref()?.downcast_ref().copied()
}

/// The bytes of a file of lines.
pub fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let size = file.metadata().map_or(0, |found| found.len());
    read_lines(file, size)
}

/// A file of lines.
pub fn read(path: &Path) -> io::Result<String> {
    utf8(read_bytes(path)?)
}

/// A file that is parsed as a whole.
pub fn read_whole(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_FILE {
        let why = format!("it has more than {} MiB; check the file", LARGEST_FILE >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    utf8(bytes)
}

fn utf8(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input that never ends, in pieces of a size; it counts what was asked of it.
    struct Endless {
        byte: u8,
        piece: usize,
        given: usize,
    }

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = buffer.len().min(self.piece);
            buffer[..count].fill(self.byte);
            self.given += count;
            Ok(count)
        }
    }

    #[test]
    fn an_endless_line_is_given_up_soon() {
        for piece in [1, 1000, 1 << 20] {
            let mut endless = Endless { byte: b'1', piece, given: 0 };
            let error = read_lines(&mut endless, u64::MAX).unwrap_err();
            assert_eq!(long_line(&error), Some(LongLine { line: 1 }));
            assert!(endless.given <= LONGEST_LINE + CHUNK, "{}", endless.given);
        }
    }

    #[test]
    fn lines_are_measured_across_chunks() {
        for (longest, is_read) in [(LONGEST_LINE, true), (LONGEST_LINE + 1, false)] {
            for ending in ["", "\n", "\nlast"] {
                let text = format!("first\n\n{}{ending}", "x".repeat(longest));
                let read = read_lines(text.as_bytes(), 0);
                match is_read {
                    true => assert_eq!(read.unwrap(), text.as_bytes()),
                    false => {
                        let found = long_line(&read.unwrap_err());
                        assert_eq!(found, Some(LongLine { line: 3 }), "{ending:?}");
                    }
                }
            }
        }
        let many = "1 2 3\n".repeat(100_000);
        assert_eq!(read_lines(many.as_bytes(), 10).unwrap(), many.as_bytes());
    }

    #[test]
    fn whole_files_are_bounded() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(LARGEST_FILE).unwrap();
        assert_eq!(read_whole(file.path()).unwrap().len() as u64, LARGEST_FILE);
        file.as_file().set_len(LARGEST_FILE + 1).unwrap();
        let error = read_whole(file.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        std::fs::write(file.path(), b"\xff\xfe").unwrap();
        assert_eq!(read(file.path()).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
