//! Lines of an input, one at a time: a dump of a year need not fit into memory.

use std::io::{self, Read};

/// The most bytes that a record may have. Lists of measurements make records far longer than other text.
const LONGEST: usize = 1 << 20;

/// How much is read at a time.
const CHUNK: usize = 256 << 10;

/// What some programs put in front of text, to say that it is UTF-8.
pub(super) const MARK: &[u8] = b"\xef\xbb\xbf";

/// A line of an input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// All of it, without its end.
    Whole(&'a [u8]),
    /// It is longer than any record; what there is of it was passed over.
    TooLong,
}

/// The lines of an input.
pub(super) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    /// What of the buffer has not been handed out.
    begin: usize,
    end: usize,
    number: usize,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Lines { input, buffer: vec![0; CHUNK], begin: 0, end: 0, number: 0 }
    }

    /// The first byte that says something, if there is one near the beginning. Nothing is handed out by that.
    pub(super) fn peek(&mut self) -> io::Result<Option<u8>> {
        let says_nothing = |byte: &u8| byte.is_ascii_whitespace() || MARK.contains(byte);
        let mut looked = self.begin;
        while self.end - self.begin <= LONGEST {
            let found = self.buffer[looked..self.end].iter().find(|byte| !says_nothing(byte));
            if let Some(byte) = found {
                return Ok(Some(*byte));
            }
            looked = self.fill()?;
            if looked == self.end {
                break;
            }
        }
        Ok(None)
    }

    /// All that has not been handed out, without the mark that some put in front of text.
    pub(super) fn into_rest(self) -> impl Read {
        let Lines { input, buffer, begin, end, .. } = self;
        let rest = &buffer[begin..end];
        let rest = rest.strip_prefix(MARK).unwrap_or(rest).to_vec();
        io::Cursor::new(rest).chain(input)
    }

    /// Which line was handed out last, from 1.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// The next line, if there is one. A line may end in LF or CRLF, and the last one need not end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let (mut searched, mut is_too_long) = (self.begin, false);
        loop {
            let found = memchr::memchr(b'\n', &self.buffer[searched..self.end]);
            if let Some(length) = found {
                let (begin, end) = (self.begin, searched + length);
                self.begin = end + 1;
                return Ok(Some(self.line(begin, end, is_too_long)));
            }
            if self.end - self.begin > LONGEST {
                is_too_long = true;
                self.begin = self.end;
            }
            searched = self.fill()?;
            if searched == self.end {
                let (begin, end) = (self.begin, self.end);
                self.begin = end;
                let is_line = end > begin || is_too_long;
                return Ok(is_line.then(|| self.line(begin, end, is_too_long)));
            }
        }
    }

    fn line(&mut self, begin: usize, end: usize, is_too_long: bool) -> Line<'_> {
        self.number += 1;
        if is_too_long {
            return Line::TooLong;
        }
        let line = &self.buffer[begin..end];
        Line::Whole(line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Reads more behind what has not been handed out, and says where that begins.
    fn fill(&mut self) -> io::Result<usize> {
        if self.begin > 0 {
            self.buffer.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(2 * self.end, 0);
        }
        let before = self.end;
        loop {
            match self.input.read(&mut self.buffer[before..]) {
                Ok(read) => {
                    self.end += read;
                    return Ok(before);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input that comes in pieces of a size.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(buffer.len());
            let read = self.0.take(count as u64).read(&mut buffer[..count])?;
            self.0 = &self.0[read..];
            Ok(read)
        }
    }

    fn lengths(text: &[u8], piece: usize) -> Vec<Option<usize>> {
        let mut lines = Lines::new(Pieces(text, piece));
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(match line {
                Line::Whole(line) => Some(line.len()),
                Line::TooLong => None,
            });
        }
        assert_eq!(lines.number(), found.len());
        found
    }

    #[test]
    fn lines_end_where_they_end_whatever_the_pieces() {
        for piece in [1, 3, 1000] {
            assert_eq!(lengths(b"ab\r\n\nabc", piece), [Some(2), Some(0), Some(3)]);
            assert_eq!(lengths(b"ab\n", piece), [Some(2)]);
            assert_eq!(lengths(b"", piece), []);
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let long = [b"short\n".as_slice(), &vec![b'x'; 3 * LONGEST], b"\nlast"].concat();
        assert_eq!(lengths(&long, 70_000), [Some(5), None, Some(4)]);
        let most = [vec![b'x'; LONGEST].as_slice(), b"\nlast\n"].concat();
        assert_eq!(lengths(&most, CHUNK), [Some(LONGEST), Some(4)]);
    }
}
