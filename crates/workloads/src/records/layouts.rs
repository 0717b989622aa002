//! How each layout is recognised, and who reads it.

use super::format::Format;
use super::reader::Reader;
use super::{dataset, lsf, pbs, sacct};

impl Format {
    /// The layout of which this is the first line that says something.
    pub(crate) fn of_first_line(line: &[u8]) -> Option<Self> {
        if pbs::is_record(line) {
            return Some(Format::Pbs);
        }
        if lsf::is_record(line) {
            return Some(Format::Lsf);
        }
        if sacct::Heading::read(line).is_some() {
            return Some(Format::Sacct);
        }
        [Format::Pm100, Format::Fdata]
            .into_iter()
            .find(|format| dataset::Columns::read(*format, line).is_some_and(|found| found.is_ok()))
    }

    /// A reader of this layout, which has seen nothing yet.
    pub(super) fn reader(self) -> Box<dyn Reader> {
        match self {
            Format::Sacct => Box::new(sacct::Sacct::default()),
            Format::Pbs => Box::new(pbs::Pbs),
            Format::Lsf => Box::new(lsf::Lsf),
            Format::Pm100 | Format::Fdata => Box::new(dataset::Dataset::new(self)),
        }
    }
}
