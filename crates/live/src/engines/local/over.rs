//! How an attempt is over, as its processes tell each other and the daemon.

use std::io;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::job::End;

/// The longest kept reason, in characters.
const LONGEST_REASON: usize = 4096;

/// How an attempt is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Over {
    /// Its command was not begun, for a reason that is not the job's. The job may begin another time.
    NotBegun { not_begun: String },
    /// Its command has ended, or is none that can be run.
    Ended(End),
}

impl Over {
    pub(super) fn not_begun(reason: impl ToString) -> Self {
        Over::NotBegun { not_begun: reason.to_string() }
    }

    /// The command cannot be run because of an error that is told in these words. What the machine lacks at this time
    /// is not the job's fault; that a file is missing or somebody else's is.
    pub(super) fn failed(error: &io::Error, reason: String) -> Self {
        let reason: String = reason.chars().take(LONGEST_REASON).collect();
        match Errno::from_io_error(error) {
            Some(
                Errno::NOSPC
                | Errno::DQUOT
                | Errno::ROFS
                | Errno::IO
                | Errno::STALE
                | Errno::NOMEM
                | Errno::AGAIN
                | Errno::MFILE
                | Errno::NFILE,
            ) => Over::not_begun(reason),
            _ => Over::Ended(End::Failed(reason)),
        }
    }

    /// The reason, if there is one.
    pub(super) fn reason(&self) -> Option<&str> {
        match self {
            Over::NotBegun { not_begun: reason } | Over::Ended(End::Failed(reason)) => Some(reason),
            Over::Ended(_) => None,
        }
    }
}

impl From<io::Error> for Over {
    fn from(error: io::Error) -> Self {
        Over::failed(&error, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_lacks_is_not_the_jobs_fault() {
        for (errno, is_begun) in [
            (Errno::NOSPC, false),
            (Errno::DQUOT, false),
            (Errno::NOENT, true),
            (Errno::ACCESS, true),
        ] {
            let over = Over::from(io::Error::from(errno));
            assert_eq!(matches!(over, Over::Ended(End::Failed(_))), is_begun, "{over:?}");
        }
    }

    /// A warden may be of an older version than the daemon that reads what it has written.
    #[test]
    fn an_end_is_written_as_it_always_was() {
        for end in [End::Exited(3), End::Signalled(9), End::Failed("no".to_owned()), End::Lost] {
            let text = serde_json::to_string(&end).unwrap();
            assert_eq!(serde_json::from_str::<Over>(&text).unwrap(), Over::Ended(end.clone()));
            assert_eq!(serde_json::to_string(&Over::Ended(end)).unwrap(), text);
        }
        let over = Over::not_begun("no room");
        let text = serde_json::to_string(&over).unwrap();
        assert_eq!(serde_json::from_str::<Over>(&text).unwrap(), over);
    }
}
