//! What can go wrong with a cluster, told apart as far as a caller can do something about it.

use std::io;
use std::time::Duration;

/// Why something could not be read or done.
#[derive(Debug, thiserror::Error)]
pub enum SlurmError {
    /// A program of Slurm is not there or cannot be run.
    #[error("cannot run {program}; is Slurm installed, and is the folder of its programs correct?")]
    Program {
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// There was no answer in time, so that nobody knows whether it was done.
    #[error("{what}: no answer within {} s; does slurmctld run, and is it busy?", within.as_secs_f64())]
    Timeout {
        /// The attempted action.
        what: String,
        /// How long the caller waited.
        within: Duration,
    },
    /// Nobody answers.
    #[error("{what}: slurmctld cannot be reached ({text}); does it run, and is SLURM_CONF right?")]
    Unreachable {
        /// The attempted action.
        what: String,
        /// What Slurm says.
        text: String,
    },
    /// There is no such job (any more).
    #[error("{what}: Slurm has no such job")]
    NoSuchJob {
        /// The attempted action.
        what: String,
    },
    /// There is no such node, partition or reservation.
    #[error("{what}: Slurm does not know it ({text})")]
    NotFound {
        /// The attempted action.
        what: String,
        /// What Slurm says.
        text: String,
    },
    /// The user may not do it.
    #[error(
        "{what}: Slurm does not allow it ({text}); it needs root, SlurmUser or a Slurm operator"
    )]
    Denied {
        /// The attempted action.
        what: String,
        /// What Slurm says.
        text: String,
    },
    /// Slurm refused for another reason.
    #[error("{what}: Slurm refuses: {text}")]
    Refused {
        /// The attempted action.
        what: String,
        /// What Slurm says.
        text: String,
    },
    /// Slurm reported success, and it was not done.
    #[error("{what}: Slurm reported success, but {found}")]
    NotDone {
        /// The attempted action.
        what: String,
        /// The state that was found instead.
        found: String,
    },
    /// An answer cannot be understood.
    #[error("{what}: the answer cannot be read: {reason}")]
    Unreadable {
        /// The attempted action.
        what: String,
        /// The reason.
        reason: String,
    },
}

impl SlurmError {
    /// What Slurm said to something, told apart.
    pub(crate) fn from_text(what: &str, text: &str) -> SlurmError {
        let what = what.to_owned();
        let text = tidy(text);
        let says = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
        if says(&["Invalid job id"]) {
            SlurmError::NoSuchJob { what }
        } else if says(&[
            "Unable to contact slurm controller",
            "Connection refused",
            "Communication connection failure",
            "Connection reset",
            "Connection timed out",
            "No route to host",
            "Transport endpoint is not connected",
            "Socket timed out",
            "Zero Bytes were transmitted",
            "authentication error",
            "configuration source",
            "Could not establish a configuration",
        ]) {
            SlurmError::Unreachable { what, text }
        } else if says(&["permission denied", "Invalid user id", "Not authorized"]) {
            SlurmError::Denied { what, text }
        } else if says(&[
            "Invalid node name",
            "reservation is invalid",
            "Invalid partition",
            "not found",
        ]) {
            SlurmError::NotFound { what, text }
        } else {
            SlurmError::Refused { what, text }
        }
    }

    /// Whether it was refused because the job is over.
    pub fn is_over(&self) -> bool {
        match self {
            SlurmError::NoSuchJob { .. } => true,
            SlurmError::Refused { text, .. } => {
                ["already finished", "already completing or completed"]
                    .iter()
                    .any(|part| text.contains(part))
            }
            _ => false,
        }
    }

    /// Whether it is not known whether the act was done: the cluster must be read to find out.
    pub fn is_uncertain(&self) -> bool {
        matches!(self, SlurmError::Timeout { .. } | SlurmError::Unreachable { .. })
    }
}

/// The text of an error in one line of bounded length.
fn tidy(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let line = lines.join("; ");
    match line.is_empty() {
        true => "without a reason".to_owned(),
        false => line.chars().filter(|c| !c.is_control()).take(500).collect(),
    }
}
