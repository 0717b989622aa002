//! What a cluster answers to every [`Reading`], kept in a folder: for a report about a version of Slurm that Busbar was
//! not tried with, and for the tests, which read such folders of the versions it was tried with.
//!
//! | file | what it is |
//! |---|---|
//! | `index.json` | the version of Slurm, whether names are the cluster's own, and each call with how it ended |
//! | one for each call, such as `jobs.txt` | what it printed |
//!
//! Names of users, accounts, hosts and jobs, comments and paths are replaced by neutral words (`neutral`) unless the
//! names are wanted. Names of nodes, partitions, licences and reservations and numbers of users stay.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::calls::Reading;
use crate::error::SlurmError;
use crate::program::Programs;
use crate::text::JobFormat;
use crate::version::Version;

mod neutral;

use neutral::Neutral;

/// The file that says what the others are.
const INDEX: &str = "index.json";

/// How jobs are separated in a recorded answer. In one that counts nobody can guess it.
pub fn format() -> JobFormat {
    JobFormat::with_word("00busbar00")
}

/// How one call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// What was asked.
    pub reading: Reading,
    /// The call, as it would be typed.
    pub call: String,
    /// The exit code; none if a signal ended it.
    pub exit: Option<i32>,
    /// What it wrote to its standard error.
    pub error: String,
}

/// What a recording consists of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Index {
    busbar: String,
    slurm: Version,
    has_names: bool,
    calls: Vec<Entry>,
}

/// The answers of a cluster.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The version of Slurm.
    pub version: Version,
    /// How each call ended.
    pub calls: Vec<Entry>,
    answers: BTreeMap<Reading, String>,
}

/// Why a cluster cannot be recorded, or a recording not be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// There is something in the folder already.
    #[error("the folder {} is not empty; name another one", .0.display())]
    Occupied(PathBuf),
    /// A file cannot be read or written.
    #[error("cannot {what} {}", path.display())]
    File {
        /// The attempted action, in words that follow "cannot".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{} is not part of a recording: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// Slurm does not even say its version.
    #[error(transparent)]
    Slurm(#[from] SlurmError),
}

/// Makes every reading call that the version knows, and writes what it prints into a folder. A call that fails is recorded
/// as well: that it does may be what is to be found out.
pub fn record(
    programs: &Programs,
    folder: &Path,
    keep_names: bool,
) -> Result<Vec<Entry>, RecordError> {
    let failed = |what, path: &Path| {
        let path = path.to_owned();
        move |source| RecordError::File { what, path, source }
    };
    fs::create_dir_all(folder).map_err(failed("make the folder", folder))?;
    if fs::read_dir(folder).map_err(failed("read", folder))?.next().is_some() {
        return Err(RecordError::Occupied(folder.to_owned()));
    }
    let said = programs.make(&Reading::Version.call(&format()))?;
    let version = version(&said)?;
    let mut neutral = Neutral::default();
    let mut calls = Vec::new();
    let all = Reading::ALL.into_iter().chain(Reading::OF_PARTS);
    for reading in all.filter(|reading| reading.is_known_to(version)) {
        let call = reading.call(&format());
        let printed = programs.try_to(&call)?;
        let text = match keep_names {
            true => printed.out,
            false => neutral.answer(reading, &printed.out),
        };
        let path = folder.join(reading.file());
        fs::write(&path, text).map_err(failed("write", &path))?;
        // What went wrong may name anything.
        let error = match keep_names {
            true => printed.error.trim().to_owned(),
            false => neutral.error(printed.error.trim()),
        };
        calls.push(Entry { reading, call: call.to_string(), exit: printed.status.code(), error });
    }
    let busbar = env!("CARGO_PKG_VERSION").to_owned();
    let index = Index { busbar, slurm: version, has_names: keep_names, calls };
    let path = folder.join(INDEX);
    let text = serde_json::to_string_pretty(&index).unwrap_or_default() + "\n";
    fs::write(&path, text).map_err(failed("write", &path))?;
    Ok(index.calls)
}

fn version(said: &str) -> Result<Version, SlurmError> {
    said.parse().map_err(|error| SlurmError::Unreadable {
        what: Reading::Version.call(&format()).to_string(),
        reason: format!("{error}"),
    })
}

impl Recording {
    /// Reads a folder.
    pub fn read(folder: &Path) -> Result<Self, RecordError> {
        let text = |name: &str| {
            let path = folder.join(name);
            let text = fs::read_to_string(&path);
            text.map_err(|source| RecordError::File { what: "read", path, source })
        };
        let unreadable =
            |reason: String| RecordError::Unreadable { path: folder.join(INDEX), reason };
        let index: Index =
            serde_json::from_str(&text(INDEX)?).map_err(|error| unreadable(error.to_string()))?;
        let answer = |entry: &Entry| Ok((entry.reading, text(entry.reading.file())?));
        let answers = index.calls.iter().map(answer).collect::<Result<_, RecordError>>()?;
        Ok(Recording { version: index.slurm, calls: index.calls, answers })
    }

    /// What a call printed, if it was made.
    pub fn answer(&self, reading: Reading) -> Option<&str> {
        self.answers.get(&reading).map(String::as_str)
    }
}

#[cfg(test)]
mod tests;
