//! The layouts that records come in, and how each is recognised.

use std::str::FromStr;

use serde::Serialize;

use super::collector::Collector;
use super::error::Defect;
use super::{dataset, lsf, pbs, sacct};
use busbar_core::spelling::hint;

/// How records are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// What `sacct` of Slurm prints with `--parsable2`, with its heading, or with `--json`.
    Sacct,
    /// The accounting log of PBS Professional and OpenPBS.
    Pbs,
    /// The file `lsb.acct` of LSF.
    Lsf,
    /// The job table of the PM100 data set, as CSV.
    Pm100,
    /// A month of the F-DATA data set, as CSV.
    Fdata,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 5] =
        [Format::Sacct, Format::Pbs, Format::Lsf, Format::Pm100, Format::Fdata];

    /// What it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Sacct => "sacct",
            Format::Pbs => "pbs",
            Format::Lsf => "lsf",
            Format::Pm100 => "pm100",
            Format::Fdata => "fdata",
        }
    }

    /// What it is, for people.
    pub fn title(self) -> &'static str {
        match self {
            Format::Sacct => "sacct of Slurm",
            Format::Pbs => "accounting log of PBS",
            Format::Lsf => "lsb.acct of LSF",
            Format::Pm100 => "PM100",
            Format::Fdata => "F-DATA",
        }
    }

    /// The names of all, for messages.
    pub(super) fn listed() -> String {
        Format::ALL.map(Format::name).join(", ")
    }

    /// The layout of which this is the first line that says something.
    pub fn of_first_line(line: &[u8]) -> Option<Self> {
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

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Format::ALL.into_iter().find(|format| format.name() == text);
        named.ok_or_else(|| {
            let hint = hint(text, Format::ALL.map(Format::name));
            format!("unknown format '{text}'{hint} there are {}", Format::listed())
        })
    }
}

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
