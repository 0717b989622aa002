//! What reads a layout, line by line.

use super::collector::Collector;
use super::error::Defect;

/// What became of a line.
#[derive(Debug)]
pub(super) enum Read {
    /// It is a record, and was taken, counted as a step or left out.
    Record,
    /// It is a heading.
    Heading,
}

/// Why a line stops the import or is left out.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The record cannot be used.
    Defect(Defect),
    /// The heading cannot be used, and nothing below it.
    Heading(String),
}

impl From<Defect> for Trouble {
    fn from(defect: Defect) -> Self {
        Trouble::Defect(defect)
    }
}

/// Reads one layout, line by line.
pub(super) trait Reader {
    /// Takes a line that says something.
    fn take(&mut self, line: &[u8], into: &mut Collector) -> Result<Read, Trouble>;
}
