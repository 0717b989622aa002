//! Why a table could not be read: what, where, and what to do.

use std::io;
use std::path::PathBuf;

use super::field::Field;
use crate::profile::Configuration;

/// Why a table could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// The file cannot be read.
    #[error("cannot read the profile {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason that the system or the library gives.
        source: io::Error,
    },
    /// The file is not text, or not in the encoding that is read.
    #[error(
        "{}, line {line}: this is not UTF-8 text; save the table as 'CSV UTF-8', or convert it, \
         such as with 'iconv -f LATIN1 -t UTF-8'",
        path.display()
    )]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The first line that is not, from 1.
        line: usize,
    },
    /// The first line is a row.
    #[error(
        "{}, line {line}: the heading is missing, because '{found}' has no column name; write one first, {}",
        path.display(), Field::WRITTEN.map(Field::column).join(",")
    )]
    NoHeading {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is there instead.
        found: String,
    },
    /// The file says nothing.
    #[error(
        "{} has no rows; write a heading, {}, and one row for each configuration",
        path.display(), Field::WRITTEN.map(Field::column).join(",")
    )]
    NoRows {
        /// The file.
        path: PathBuf,
    },
    /// The heading does not have what it should.
    #[error("{}, line {line}, column '{column}': {why}", path.display())]
    Heading {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// The column, as the file names it.
        column: String,
        /// The mistake, and how to correct it.
        why: String,
    },
    /// A line is not made of fields.
    #[error("{}, line {line}: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// The mistake, and how to correct it.
        why: String,
    },
    /// A field of a row is wrong.
    #[error("{}, line {line}, field '{field}': {why}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Which column, as the file calls it.
        field: String,
        /// The mistake, and what to write instead.
        why: String,
    },
    /// Two rows predict the same, or one is measured and the other predicted.
    #[error(
        "{}, line {line}: {application} on {configuration} is in line {before} already; keep one",
        path.display()
    )]
    Duplicate {
        /// The file.
        path: PathBuf,
        /// The later line, from 1.
        line: usize,
        /// The earlier one.
        before: usize,
        /// The application, by its name.
        application: String,
        /// In which configuration.
        configuration: Configuration,
    },
}
