//! How much of a dump the parser may have to hold: a text or a number, and how deep it is inside of others.
//!
//! A few megabytes of gzip can hold a text of gigabytes, or as many brackets. The parser holds a text and the brackets
//! that are open even if nobody asks for them, so they are counted before it sees them.

/// The most bytes that a text or a number may have. The longest are scripts of jobs, of which Slurm takes 4 MB.
const LONGEST: usize = 16 << 20;

/// How many lists and objects may be inside of each other. The parser has the same bound for those that are used.
const DEEPEST: usize = 128;

/// Why a dump is not read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum OutOfBounds {
    #[error("a text or a number has more than {} MiB", LONGEST >> 20)]
    Long,
    #[error("there are more than {DEEPEST} lists and objects inside of each other")]
    Deep,
}

/// Where in a dump its latest byte is.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    place: Place,
    /// The bytes of the latest text or number so far.
    length: usize,
    depth: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Between,
    Text,
    /// After a backslash in a text.
    Escaped,
}

impl Bounds {
    /// Looks at the next byte.
    #[inline]
    pub(super) fn pass(&mut self, byte: u8) -> Result<(), OutOfBounds> {
        self.length += 1;
        match (self.place, byte) {
            (Place::Escaped, _) => self.place = Place::Text,
            (Place::Text, b'\\') => self.place = Place::Escaped,
            (Place::Text, b'"') => (self.place, self.length) = (Place::Between, 0),
            (Place::Text, _) => {}
            (Place::Between, b'"') => (self.place, self.length) = (Place::Text, 0),
            (Place::Between, b'{' | b'[') => {
                (self.depth, self.length) = (self.depth + 1, 0);
                if self.depth > DEEPEST {
                    return Err(OutOfBounds::Deep);
                }
            }
            (Place::Between, b'}' | b']') => {
                (self.depth, self.length) = (self.depth.saturating_sub(1), 0);
            }
            (Place::Between, b' ' | b'\t' | b'\r' | b'\n' | b',' | b':') => self.length = 0,
            (Place::Between, _) => {}
        }
        if self.length > LONGEST { Err(OutOfBounds::Long) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(parts: &[(&str, usize)]) -> Result<(), OutOfBounds> {
        let mut bounds = Bounds::default();
        let bytes = parts.iter().flat_map(|(part, times)| (0..*times).flat_map(|_| part.bytes()));
        bytes.into_iter().try_for_each(|byte| bounds.pass(byte))
    }

    #[test]
    fn texts_numbers_and_depth_have_bounds() {
        let deep = Err(OutOfBounds::Deep);
        let long = Err(OutOfBounds::Long);
        assert_eq!(passes(&[("[", DEEPEST), ("]", DEEPEST), ("[", DEEPEST)]), Ok(()));
        assert_eq!(passes(&[("[", DEEPEST), ("{", 1)]), deep);
        assert_eq!(passes(&[("[\"[[[[\\\"[[[[\"]", DEEPEST)]), Ok(()), "in a text they are text");
        assert_eq!(passes(&[("\"", 1), ("x", LONGEST + 1)]), long);
        assert_eq!(passes(&[("\"", 1), ("x", LONGEST), ("\",\"", 1), ("x", LONGEST)]), Ok(()));
        assert_eq!(passes(&[("\"", 1), ("\\\"", LONGEST / 2), ("x", 1)]), long);
        assert_eq!(passes(&[("1", LONGEST), ("0", 1)]), long);
        assert_eq!(passes(&[(" ", 2 * LONGEST), ("0,", LONGEST)]), Ok(()), "blanks are not held");
    }
}
