//! The log of changes: one line of JSON for each limit that was changed, or could not be.
//!
//! The file is opened anew for each line, so that it can be moved away at any time.

use std::io::{self, Write};
use std::time::SystemTime;

use busbar_core::units::Watts;
use busbar_trust::TrustedFolder;
use rustix::fs::OFlags;
use serde::Serialize;

use crate::domain::Effective;
use crate::wire::DomainReport;

/// The name of the file.
const FILE: &str = "changes.log";

/// The log.
#[derive(Debug)]
pub(crate) struct Changes {
    folder: TrustedFolder,
}

/// A line of the log.
#[derive(Serialize)]
struct Line<'a> {
    /// Milliseconds since 1970.
    at: u64,
    who: &'a str,
    what: &'a str,
    domain: &'a str,
    requested_mw: Watts,
    before: Effective,
    after: Effective,
    outcome: String,
}

impl Changes {
    /// The log in an agent's folder.
    pub(crate) fn new(folder: TrustedFolder) -> Self {
        Changes { folder }
    }

    /// Adds what became of limits that somebody wanted to change.
    pub(crate) fn add(&self, who: &str, what: &str, reports: &[DomainReport]) -> io::Result<()> {
        let mut text = Vec::new();
        for report in reports {
            let line = Line {
                at: unix_millis(),
                who,
                what,
                domain: report.name.as_str(),
                requested_mw: report.requested,
                before: report.before,
                after: report.effective,
                outcome: report.outcome.to_string(),
            };
            serde_json::to_writer(&mut text, &line)?;
            text.push(b'\n');
        }
        let mut file = self.folder.file(FILE, OFlags::WRONLY | OFlags::APPEND)?;
        file.write_all(&text).map_err(|error| {
            let path = self.folder.path().join(FILE);
            let text = format!("cannot write to {}: {error}", path.display());
            io::Error::new(error.kind(), text)
        })
    }
}

/// The time by the system's clock, in milliseconds since 1970.
pub(crate) fn unix_millis() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}
