//! Text files, read within bounds: no line and no file can take more memory than a sensible one.
//!
//! A few megabytes of gzip can hold a line of a gigabyte. So lines are measured while they are read,
//! and reading stops at the first one that is too long. What has lines of numbers (logs, CSV) may
//! have any number of them, and is read in [`Pieces`] where it may be packed; what is parsed as a whole (TOML,
//! JSON) is bounded in size instead.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The most bytes a line may have, without its end.
const LONGEST_LINE: usize = 64 << 10;

/// The most bytes a file may have that is parsed as a whole.
const LARGEST_FILE: u64 = 64 << 20;

/// How much is read at a time.
const CHUNK: usize = 64 << 10;

/// A line is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line} has more than {LONGEST_LINE} bytes, so this is probably not the right file; check the file, or \
    break the line"
)]
pub struct LongLine {
    /// Which one, from 1.
    pub line: usize,
}

/// An input in pieces of whole lines, so that no more of it is held than is being looked at. Reading stops at a
/// line that is too long: then, no more than that line's allowance and one chunk beyond it has been read.
#[derive(Debug)]
pub struct Pieces<R> {
    input: R,
    buffer: Vec<u8>,
    /// How much of the buffer was handed out last, and how much of it has been read.
    handed_out: usize,
    end: usize,
    /// The number of the first line of the latest piece, from 1.
    line: usize,
}

impl<R: Read> Pieces<R> {
    /// The pieces of an input of which nothing has been read.
    pub fn new(input: R) -> Self {
        Pieces { input, buffer: vec![0; LONGEST_LINE + CHUNK], handed_out: 0, end: 0, line: 1 }
    }

    /// The next lines, each with its end, which only the last one of the input may lack, after the number of the first
    /// of them, from 1; `None` if there are no more.
    pub fn next_piece(&mut self) -> io::Result<Option<(usize, &[u8])>> {
        self.line += memchr::memchr_iter(b'\n', &self.buffer[..self.handed_out]).count();
        self.buffer.copy_within(self.handed_out..self.end, 0);
        (self.handed_out, self.end) = (0, self.end - self.handed_out);
        let is_last = self.fill()?;
        let filled = &self.buffer[..self.end];
        let whole = match is_last {
            true => self.end,
            false => memchr::memrchr(b'\n', filled).map_or(0, |end| end + 1),
        };
        // What follows the last end of a line is looked at with the next piece, unless it is all there is.
        let looked_at = if whole == 0 { filled } else { &filled[..whole] };
        if let Some(begin) = too_long(looked_at) {
            let before = memchr::memchr_iter(b'\n', &filled[..begin]).count();
            let error = LongLine { line: self.line + before };
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        self.handed_out = whole;
        Ok((whole > 0).then(|| (self.line, &self.buffer[..whole])))
    }

    /// Reads until the buffer is full, and says whether the input has ended before that.
    fn fill(&mut self) -> io::Result<bool> {
        while self.end < self.buffer.len() {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(true),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

/// Where the first line begins that is too long. An end of a line among this many bytes after the beginning of another
/// line shows that none in between is, so few of them are looked at.
fn too_long(text: &[u8]) -> Option<usize> {
    let mut begin = 0;
    while text.len() - begin > LONGEST_LINE {
        match memchr::memrchr(b'\n', &text[begin..=begin + LONGEST_LINE]) {
            Some(end) => begin += end + 1,
            None => return Some(begin),
        }
    }
    None
}

/// Reads all lines of an input, and stops at one that is too long. `expected` is how many bytes may come;
/// it is a hint.
pub fn read_lines(input: impl Read, expected: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    // A hint that cannot be met is no error: what really comes may be less.
    let _ = text.try_reserve_exact(usize::try_from(expected).unwrap_or(usize::MAX));
    let mut pieces = Pieces::new(input);
    while let Some((_, piece)) = pieces.next_piece()? {
        text.extend_from_slice(piece);
    }
    Ok(text)
}

/// Which line was too long, if that is the error.
pub fn long_line(error: &io::Error) -> Option<LongLine> {
    error.get_ref()?.downcast_ref().copied()
}

/// The bytes of a file of lines.
pub(crate) fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let size = file.metadata().map_or(0, |found| found.len());
    read_lines(file, size)
}

/// A file of lines.
pub(crate) fn read(path: &Path) -> io::Result<String> {
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
    fn pieces_are_whole_lines_with_their_numbers() {
        let lines: Vec<String> = (1..60_000).map(|number| format!("line {number}\n")).collect();
        for last in ["", "and more"] {
            let text = lines.concat() + last;
            let mut pieces = Pieces::new(text.as_bytes());
            let (mut read, mut count) = (Vec::new(), 0);
            while let Some((first, piece)) = pieces.next_piece().unwrap() {
                assert!(piece.starts_with(format!("line {first}\n").as_bytes()));
                assert!(piece.ends_with(b"\n") || read.len() + piece.len() == text.len());
                read.extend_from_slice(piece);
                count += 1;
            }
            assert!(read == text.as_bytes() && count > 3);
            assert!(pieces.next_piece().unwrap().is_none(), "it stays at its end");
        }
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
