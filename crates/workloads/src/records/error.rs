//! What can be wrong with a record, and with an import.

use std::io;

use crate::records::Format;

/// Why a record cannot be used. Unless that is asked for, none of it stops an import: such records are left out and
/// counted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Defect {
    /// The line is longer than any record.
    #[error("the line has more than a million bytes")]
    TooLong,
    /// The records end in the middle of one.
    #[error("column {column}: the records end here, before they are complete: the dump is cut off")]
    CutOff {
        /// Where in the line, from 1.
        column: usize,
    },
    /// The line was cut off, or a separator stands in one of its fields.
    #[error(
        "{found} fields instead of {expected}: the line is cut off, or a separator stands in a field"
    )]
    Fields {
        /// Their number.
        found: usize,
        /// How many the heading has.
        expected: usize,
    },
    /// The line does not have the form of the layout.
    #[error("{0}")]
    Form(&'static str),
    /// A field is no time.
    #[error("field '{field}': '{text}' is not a time")]
    NotATime {
        /// The field.
        field: &'static str,
        /// What stands there.
        text: String,
    },
    /// A field is no number.
    #[error("field '{field}': '{text}' is invalid")]
    Unreadable {
        /// The field.
        field: &'static str,
        /// What stands there.
        text: String,
    },
    /// The run happened, but a time is not known.
    #[error("the time '{0}' of a job that ran is not known")]
    UnknownTime(&'static str),
    /// It ended before it started.
    #[error("it ended before it started")]
    NegativeTime,
    /// Nobody knows how many processors it had.
    #[error("it has neither a number of processors nor one of nodes")]
    NoSize,
}

/// Text from a record, fit for a message on one line.
pub(super) fn shown(text: &[u8]) -> String {
    const LONGEST: usize = 40;
    let head = &text[..text.len().min(4 * LONGEST)];
    let head = String::from_utf8_lossy(head);
    head.chars().take(LONGEST).flat_map(char::escape_debug).collect()
}

/// Why records could not be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file, or standard input, could not be read.
    #[error("cannot read the records '{file}'")]
    Unreadable {
        /// The path as given.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file is gzip, but cannot be unpacked.
    #[error("cannot unpack the records '{file}': their gzip data is damaged or cut short")]
    Damaged {
        /// The path as given.
        file: String,
        /// What the unpacker said.
        source: io::Error,
    },
    /// The beginning is that of no layout.
    #[error(
        "{file}, line {line}: the format of these records is unknown; known formats are {}; name one with --format",
        Format::listed()
    )]
    UnknownFormat {
        /// The path as given.
        file: String,
        /// The first line that says something.
        line: usize,
    },
    /// The heading lacks a column that there is no doing without.
    #[error("{file}, line {line}: {why}")]
    Heading {
        /// The path as given.
        file: String,
        /// The line of the heading.
        line: usize,
        /// What is missing, and how to get it.
        why: String,
    },
    /// The records begin as JSON, but are none from here on.
    #[error(
        "{file}, line {line}, column {column}: this is not valid JSON: {why}; dump the records again"
    )]
    Syntax {
        /// The path as given.
        file: String,
        /// The line, from 1.
        line: usize,
        /// Where in the line, from 1.
        column: usize,
        /// The reason.
        why: String,
    },
    /// A record cannot be used, and that was not to happen.
    #[error(
        "{file}, line {line}: {defect}; correct the record, or leave out --strict to count and skip such records"
    )]
    Defect {
        /// The path as given.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The reason.
        defect: Defect,
    },
    /// The same run stands in the records more than once, and that was not to happen.
    #[error(
        "{count} jobs are in the records more than once; leave out --strict to count and skip such records"
    )]
    Duplicates {
        /// How many too many.
        count: u64,
    },
    /// There is no such time zone.
    #[error("there is no time zone '{name}'; write a name such as Europe/Berlin or UTC")]
    UnknownZone {
        /// The text as written.
        name: String,
    },
    /// No run was in a partition of this name.
    #[error(
        "--partition: no job in the records ran in the partition '{wanted}'{hint} there are {names}"
    )]
    NoPartition {
        /// The requested value.
        wanted: String,
        /// What may have been meant, in words.
        hint: String,
        /// All partitions, or that there are none.
        names: String,
    },
    /// No run is left.
    #[error("no run in the records ({counts})")]
    NothingUsable {
        /// What became of the records.
        counts: String,
    },
    /// More runs than a workload can number.
    #[error("the records have more than {} runs", u32::MAX)]
    TooManyRuns,
}
