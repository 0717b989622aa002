//! Splits what arrives into lines of bounded length.

/// Collects bytes into lines. It holds one incomplete line, and what arrived with it.
#[derive(Debug)]
pub(crate) struct Lines {
    bytes: Vec<u8>,
    /// Where the first line that was not handed out begins.
    begin: usize,
    /// There is no newline between `begin` and this position.
    searched: usize,
    limit: usize,
}

/// A line is longer than the limit in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message has more than {0} bytes")]
pub(crate) struct Oversized(pub(crate) usize);

impl Lines {
    /// Lines of at most `limit` bytes without the newline.
    pub(crate) fn new(limit: usize) -> Self {
        Lines { bytes: Vec::new(), begin: 0, searched: 0, limit }
    }

    /// Adds bytes. Lines must have been taken before, so that memory is bounded by the limit and one piece.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        if self.begin > 0 {
            self.bytes.drain(..self.begin);
            self.searched -= self.begin;
            self.begin = 0;
        }
        self.bytes.extend_from_slice(piece);
    }

    /// The next complete line, without the newline.
    pub(crate) fn next_line(&mut self) -> Result<Option<&[u8]>, Oversized> {
        let newline = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(place) = newline.map(|place| self.searched + place) else {
            self.searched = self.bytes.len();
            return match self.bytes.len() - self.begin > self.limit {
                true => Err(Oversized(self.limit)),
                false => Ok(None),
            };
        };
        let begin = std::mem::replace(&mut self.begin, place + 1);
        self.searched = self.begin;
        match place - begin > self.limit {
            true => Err(Oversized(self.limit)),
            false => Ok(Some(&self.bytes[begin..place])),
        }
    }

    /// Whether there is an incomplete line.
    pub(crate) fn is_begun(&self) -> bool {
        self.bytes.len() > self.begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_limit() {
        let mut lines = Lines::new(4);
        assert_eq!(lines.next_line(), Ok(None));
        lines.push(b"abcd\n\nab");
        assert_eq!(lines.next_line(), Ok(Some(&b"abcd"[..])));
        assert_eq!(lines.next_line(), Ok(Some(&b""[..])));
        assert_eq!(lines.next_line(), Ok(None));
        assert!(lines.is_begun());
        lines.push(b"c\nd");
        assert_eq!(lines.next_line(), Ok(Some(&b"abc"[..])));
        assert_eq!(lines.next_line(), Ok(None));
        lines.push(b"efgh");
        assert_eq!(lines.next_line(), Err(Oversized(4)));
        let mut lines = Lines::new(4);
        lines.push(b"abcde\n");
        assert_eq!(lines.next_line(), Err(Oversized(4)));
    }
}
