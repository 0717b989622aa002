//! What can go wrong with a log.

use std::fmt;
use std::io;

use super::header::LARGEST_HEADER;
use super::intake::Intake;
use super::line::{Fault, FaultKind};
use super::record::{FIELD_NAMES, FIELDS, LARGEST};
use busbar_core::rows::TableError;
use busbar_core::text::LongLine;

/// Why a log could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SwfError {
    /// The file, or standard input, could not be read.
    #[error("cannot read the log '{file}'")]
    Unreadable {
        /// The path as given.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file is gzip, but cannot be unpacked.
    #[error("cannot unpack the log '{file}': its gzip data is damaged or cut short")]
    Damaged {
        /// The path as given.
        file: String,
        /// What the unpacker said.
        source: io::Error,
    },
    /// A line is longer than any record or comment is.
    #[error("the log '{file}': {}", LongLine { line: *line })]
    LongLine {
        /// The path as given.
        file: String,
        /// Which line, from 1.
        line: usize,
    },
    /// The log opens with more comments than any does.
    #[error(
        "the log '{file}': the comments up to line {line} take more than {} MiB, so this is probably not a log; \
        check the file, or remove some of them",
        LARGEST_HEADER >> 20
    )]
    LargeHeader {
        /// The path as given.
        file: String,
        /// The line at which that is so, from 1.
        line: usize,
    },
    /// A line is not a record.
    #[error(
        "{file}, line {line}, field {field} ({name}): {problem}; correct the line, or skip and count such lines: \
        'busbar workload convert --skip-bad-records' writes the rest",
        name = field_name(*field)
    )]
    Malformed {
        /// The log's name.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The field, from 1; 19 where there is one too many.
        field: usize,
        /// The reason.
        problem: Problem,
    },
    /// Nothing in the log can be simulated.
    #[error("no usable record in the log '{file}' ({})", counts(.intake))]
    NothingUsable {
        /// The log's name.
        file: String,
        /// What became of its records.
        intake: Intake,
    },
    /// The log names a file with the power of its jobs, and that cannot be used.
    #[error(
        "the log '{file}' has the power of its jobs in another file, which cannot be used; put it beside the log, or remove the comment '{}' from it",
        super::POWER_KEY
    )]
    Power {
        /// The log's name.
        file: String,
        /// What is wrong with the other file.
        source: TableError,
    },
    /// More jobs than a workload can number.
    #[error("the log '{file}' has more than {} usable records", u32::MAX)]
    TooManyJobs {
        /// The log's name.
        file: String,
    },
}

/// What is wrong with a field. Texts are shortened, and control characters made visible.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// It is not a decimal number.
    NotANumber {
        /// What stands there.
        text: String,
    },
    /// It is beyond what the field may hold.
    OutOfRange {
        /// What stands there.
        text: String,
        /// The largest value of the field.
        largest: i64,
    },
    /// The line ends before it.
    Missing,
    /// The line goes on after the last field.
    Extra {
        /// What stands there.
        text: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::NotANumber { text } => write!(f, "'{text}' is not a number"),
            Problem::OutOfRange { text, largest } => {
                write!(f, "'{text}' is out of range; the largest value is {largest}")
            }
            Problem::Missing => write!(f, "missing; a record has {FIELDS} fields"),
            Problem::Extra { text } => {
                write!(f, "'{text}' stands after the last field; a record has {FIELDS} fields")
            }
        }
    }
}

impl SwfError {
    #[cold]
    pub(super) fn malformed(file: &str, line: usize, fault: Fault<'_>) -> Self {
        let text = shown(fault.text);
        let problem = match fault.kind {
            FaultKind::NotANumber => Problem::NotANumber { text },
            FaultKind::OutOfRange => Problem::OutOfRange { text, largest: LARGEST[fault.field] },
            FaultKind::Missing => Problem::Missing,
            FaultKind::Extra => Problem::Extra { text },
        };
        SwfError::Malformed { file: file.to_owned(), line, field: fault.field + 1, problem }
    }
}

fn field_name(field: usize) -> &'static str {
    FIELD_NAMES.get(field.wrapping_sub(1)).copied().unwrap_or("one too many")
}

fn counts(intake: &Intake) -> String {
    let counts: Vec<String> = intake.lines().collect();
    if counts.is_empty() { "it has no records".to_owned() } else { counts.join("; ") }
}

/// Text from a log, fit for a message on one line.
fn shown(text: &[u8]) -> String {
    const LONGEST: usize = 40;
    // Characters take up to four bytes; no more of the text is looked at than may be shown.
    let head = &text[..text.len().min(4 * LONGEST)];
    let head = String::from_utf8_lossy(head);
    let mut shown: String = head.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.len() > head.len() || head.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}
