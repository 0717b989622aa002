//! The layouts that records come in.

use std::str::FromStr;

use serde::Serialize;

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
    pub(crate) const ALL: [Format; 5] =
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
