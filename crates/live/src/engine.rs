//! The interface to what jobs run on: the daemon decides, an engine acts and reports.
//!
//! A job may have to be started more than once; each time is an [`Attempt`]. An engine runs an attempt
//! once or not at all, whatever happens to the daemon meanwhile, and can tell after a restart what
//! happened to it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use busbar_core::model::{Caps, NodeCap, OperatingPoint};
use busbar_core::units::{NodeId, Span, Watts};

mod recording;

pub use recording::{Call, Recording};

/// An attempt to run a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// The job's number.
    pub job: u64,
    /// The number of the attempt, from 1.
    pub number: u32,
}

impl std::fmt::Display for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.job, self.number)
    }
}

/// The nodes and power that a job has: an operating point on particular nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allotment {
    /// The nodes in order, each with its cap.
    pub nodes: Vec<(u32, Watts)>,
    /// Cores used on each node.
    pub cores: u32,
    /// The cap of the operating point, for every node.
    pub cap: Watts,
    /// The time limit of the whole job at this point.
    pub time: Span,
    /// The power of the job on all nodes.
    pub power: Watts,
    /// The predicted speed, in millionths of the speed on the nodes asked for without a cap
    /// ([`FULL_SPEED`](Self::FULL_SPEED)).
    pub speed: u32,
}

impl Allotment {
    /// The speed of a job on the nodes it asks for without a cap.
    pub const FULL_SPEED: u32 = 1_000_000;

    /// The numbers of the nodes, in order.
    pub fn node_numbers(&self) -> Vec<u32> {
        self.nodes.iter().map(|(node, _)| *node).collect()
    }

    /// The operating point that the job has.
    pub fn point(&self) -> OperatingPoint {
        let &Allotment { cores, cap, time, power, .. } = self;
        OperatingPoint { nodes: self.nodes.len() as u32, cores, cap, time, power }
    }

    /// The nodes with their caps; `None` if there are no nodes.
    pub fn caps(&self) -> Option<Caps> {
        let capped = |&(node, cap): &_| NodeCap { node: NodeId(node), cap };
        Caps::new(self.nodes.iter().map(capped).collect())
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
}

/// How the process of a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The process exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
    /// The command could not be run, for this reason.
    Failed(String),
    /// The end is not known, because the process that watched the job is gone.
    Lost,
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

/// What an engine knows about an attempt after a restart of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The attempt is running, and is watched again.
    Running,
    /// The attempt has ended meanwhile.
    Ended(End),
    /// The attempt did not begin and never will.
    NeverStarted,
}

/// Why an engine could not do something.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// An operation on a file or folder of the attempt failed.
    #[error("job {attempt}: cannot {what} {}", path.display())]
    File {
        /// The attempt.
        attempt: Attempt,
        /// The operation, to be read after "cannot".
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The attempt was started before.
    #[error("job {attempt} has been started before; an attempt runs once")]
    Again {
        /// The attempt.
        attempt: Attempt,
    },
    /// The engine does not know the attempt.
    #[error("job {attempt} does not run")]
    Unknown {
        /// The attempt.
        attempt: Attempt,
    },
}

/// What jobs run on.
pub trait Engine: Send {
    /// Starts an attempt. A failure after that is reported as an [`End`].
    fn start(&mut self, launch: &Launch) -> Result<(), EngineError>;

    /// Changes the caps or nodes of a running job. When this returns, the job draws no more than
    /// `allotment` says.
    fn set(&mut self, attempt: Attempt, allotment: &Allotment) -> Result<(), EngineError>;

    /// Announces the pause that the next change of a job is expected to cause. Only engines that
    /// emulate jobs need it.
    fn expect_pause(&mut self, _attempt: Attempt, _pause: Span) {}

    /// Sends a signal to all processes of a job; processes that could not be reached get it when
    /// [`ended`](Engine::ended) is called next. A job that is just beginning may miss a request to
    /// end, so the caller repeats it until the job has ended. A suspended job gets it when it is
    /// resumed, unless it is killed.
    fn signal(&mut self, attempt: Attempt, signal: Signal) -> Result<(), EngineError>;

    /// Attempts that have ended since the last call.
    fn ended(&mut self) -> Vec<(Attempt, End)>;

    /// Finds out, after a restart, what happened to an attempt. One that did not begin never will.
    fn find(&mut self, attempt: Attempt) -> Result<Found, EngineError>;

    /// Removes what is kept of an attempt that is over and recorded; this may happen later.
    fn forget(&mut self, attempt: Attempt);
}
