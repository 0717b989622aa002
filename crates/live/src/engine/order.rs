//! What the daemon asks an engine to do.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::job::{Allotment, Attempt};
use busbar_core::units::Span;

/// The number of an order, unique as long as a daemon runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Something that the daemon asks an engine to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Start an attempt. It is confirmed when the attempt runs under its caps; a failure after that is an
    /// [`End`](crate::job::End).
    Start(Box<Launch>),
    /// Change the caps or nodes of a running job. It is confirmed when the job draws no more than the allotment
    /// says.
    Set {
        /// The attempt.
        attempt: Attempt,
        /// Its new allocation.
        allotment: Allotment,
        /// How long the job is expected to stand still while it moves to other nodes.
        pause: Span,
    },
    /// Send a signal to all processes of a job. A job that is just beginning may miss a request to end, so
    /// the daemon repeats it until the job has ended. A suspended job gets it when it is resumed, unless it
    /// is killed.
    Signal {
        /// The attempt.
        attempt: Attempt,
        /// The signal.
        signal: Signal,
    },
}

impl Order {
    /// The attempt that it is about.
    pub(crate) fn attempt(&self) -> Attempt {
        match self {
            Order::Start(launch) => launch.attempt,
            Order::Set { attempt, .. } | Order::Signal { attempt, .. } => *attempt,
        }
    }
}

/// Everything an engine needs to start an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The attempt to be started.
    pub attempt: Attempt,
    /// The program and its arguments; never empty.
    pub command: Vec<String>,
    /// The working directory.
    pub folder: PathBuf,
    /// The complete environment.
    pub environment: Vec<(String, String)>,
    /// The file for standard output; it may be the same as `errors`.
    pub output: PathBuf,
    /// The file for standard error.
    pub errors: PathBuf,
    /// The user and group to run as; `None` for those of the daemon.
    pub owner: Option<(u32, u32)>,
    /// The nodes and power it gets.
    pub allotment: Allotment,
    /// How the engine knows the job, if it came through the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// Whether the engine chooses the nodes. Then those of the allotment say how many there are to be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_free: bool,
}

/// A signal to a running job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Signal {
    /// Ask the job to end.
    Terminate,
    /// Kill the job.
    Kill,
    /// Suspend the job.
    Suspend,
    /// Let a suspended job go on.
    Resume,
}

/// What a node is switched to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// It runs, and jobs can start there.
    On,
    /// It draws only what a node does that is off.
    Off,
}
