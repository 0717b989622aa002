//! The bytes of an input, as the parser asks for them: one at a time, valid as text, with the lines counted, and
//! within bounds.

use std::cell::Cell;
use std::io::{self, ErrorKind, Read};
use std::rc::Rc;

use super::bounds::Bounds;

/// How much is read at a time.
const CHUNK: usize = 256 << 10;

/// Stands for a byte that is no text.
const REPLACEMENT: u8 = b'?';

/// An input for the parser.
///
/// Names of jobs may be in any encoding, and JSON has only one. So that one name does not stop the reading of all,
/// bytes that are no UTF-8 are replaced.
pub(super) struct Feed<R> {
    input: R,
    buffer: Vec<u8>,
    /// What of the buffer may be handed out.
    begin: usize,
    valid: usize,
    /// Up to here there is more, but it is the beginning of a character.
    end: usize,
    /// The line of the byte that comes next, from 1.
    line: Rc<Cell<usize>>,
    bounds: Bounds,
}

impl<R: Read> Feed<R> {
    pub(super) fn new(input: R, line: Rc<Cell<usize>>) -> Self {
        let bounds = Bounds::default();
        Feed { input, buffer: vec![0; CHUNK], begin: 0, valid: 0, end: 0, line, bounds }
    }

    /// Reads more; all that could be handed out has been.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.valid..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.valid);
        self.valid = 0;
        while self.valid == 0 {
            let read = match self.input.read(&mut self.buffer[self.end..]) {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.end += read;
            self.validate(read == 0);
            if read == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Replaces what is no text. A character that is not complete waits for the rest of it, unless nothing more comes.
    fn validate(&mut self, is_last: bool) {
        while let Err(error) = std::str::from_utf8(&self.buffer[self.valid..self.end]) {
            self.valid += error.valid_up_to();
            let length = match error.error_len() {
                Some(length) => length,
                None if is_last => self.end - self.valid,
                None => return,
            };
            self.buffer[self.valid..self.valid + length].fill(REPLACEMENT);
            self.valid += length;
        }
        self.valid = self.end;
    }
}

impl<R: Read> Read for Feed<R> {
    #[inline]
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let Some(next) = out.first_mut() else { return Ok(0) };
        if self.begin == self.valid {
            self.fill()?;
        }
        let Some(byte) = self.buffer[..self.valid].get(self.begin) else { return Ok(0) };
        self.bounds.pass(*byte).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        (*next, self.begin) = (*byte, self.begin + 1);
        if *byte == b'\n' {
            self.line.set(self.line.get() + 1);
        }
        Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input that comes in pieces of one byte.
    struct Slowly<'a>(&'a [u8]);

    impl Read for Slowly<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let length = out.len().min(1);
            self.0.read(&mut out[..length])
        }
    }

    fn fed(input: impl Read) -> (String, usize) {
        let line = Rc::new(Cell::new(1));
        let mut bytes = Vec::new();
        Feed::new(input, Rc::clone(&line)).read_to_end(&mut bytes).unwrap();
        (String::from_utf8(bytes).unwrap(), line.get())
    }

    #[test]
    fn text_passes_and_what_is_no_text_is_replaced() {
        for (bytes, expected, line) in [
            (b"".as_slice(), "", 1),
            ("Grüße\naus €\n".as_bytes(), "Grüße\naus €\n", 3),
            (b"gr\xfc\xdfe\n", "gr??e\n", 2),
            // A character that is cut off, in the middle and at the end.
            (b"a\xe2\x82b", "a??b", 1),
            (b"a\xe2\x82", "a??", 1),
        ] {
            assert_eq!(fed(bytes), (expected.to_owned(), line));
            assert_eq!(fed(Slowly(bytes)), (expected.to_owned(), line));
        }
    }

    #[test]
    fn characters_may_stand_across_pieces() {
        let text = "€".repeat(CHUNK);
        assert_eq!(fed(text.as_bytes()).0, text);
    }
}
