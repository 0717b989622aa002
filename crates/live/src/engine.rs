//! What jobs run on, as small as it can be: a daemon decides, an engine acts and tells what happened.
//!
//! A job may have to be started more than once; each time is an [`Attempt`] of its own. An engine runs
//! an attempt once or not at all, whatever happens to the daemon meanwhile, and can be asked after a
//! restart what became of it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use busbar_core::units::{Span, Watts};

mod recording;

pub use recording::{Call, Recording};

/// One try to run a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// The job's number.
    pub job: u64,
    /// Which of its tries, from 1.
    pub number: u32,
}

impl std::fmt::Display for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.job, self.number)
    }
}

/// What a job has: a point of its menu, on nodes with names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allotment {
    /// Its nodes, in order, and the most each of them may draw.
    pub nodes: Vec<(u32, Watts)>,
    /// Cores that it uses on each node.
    pub cores: u32,
    /// The cap that its point has for every node.
    pub cap: Watts,
    /// How long all of it takes at most.
    pub time: Span,
    /// What it draws in all.
    pub power: Watts,
    /// How fast it is believed to be, in millionths of its speed on the nodes it asks for without a
    /// cap.
    pub speed: u32,
}

/// What is to be run, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Which job, for the how many-th time.
    pub attempt: Attempt,
    /// The program and its arguments; at least the program.
    pub command: Vec<String>,
    /// Where it runs.
    pub folder: PathBuf,
    /// Its whole environment.
    pub environment: Vec<(String, String)>,
    /// Where its output goes; the same file for both if they are the same.
    pub output: PathBuf,
    /// Where its errors go.
    pub errors: PathBuf,
    /// Whose it is: user and group. As the daemon itself if that is nobody else.
    pub owner: Option<(u32, u32)>,
    /// What it has.
    pub allotment: Allotment,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// It never began.
    Failed(String),
    /// Nobody knows: what watched over it is gone.
    Lost,
}

/// What to do to a job that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Signal {
    /// Ask it to end.
    Terminate,
    /// End it.
    Kill,
    /// Stop it for a while.
    Suspend,
    /// Let it go on.
    Resume,
}

/// What became of an attempt that was decided before a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It runs, and is watched again.
    Running,
    /// It has ended meanwhile.
    Ended(End),
    /// It did not begin and will not.
    NeverStarted,
}

/// Why an engine could not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A file of the attempt.
    #[error("job {attempt}: cannot {what} {}", path.display())]
    File {
        /// Whose.
        attempt: Attempt,
        /// What was to be done.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// An attempt that was made before.
    #[error("job {attempt} has been started before; an attempt runs once")]
    Again {
        /// Which.
        attempt: Attempt,
    },
    /// An attempt that nobody knows of.
    #[error("job {attempt} does not run")]
    Unknown {
        /// Which.
        attempt: Attempt,
    },
}

/// What jobs run on.
pub trait Engine: Send {
    /// Starts an attempt. If it fails afterwards, that is an end like any other.
    fn start(&mut self, launch: &Launch) -> Result<(), EngineError>;

    /// Gives a job that runs something else: other caps, or other nodes. When this returns it draws no
    /// more than that.
    fn set(&mut self, attempt: Attempt, allotment: &Allotment) -> Result<(), EngineError>;

    /// The next change of a job is believed to keep it from its work for so long. Real jobs take the
    /// time they take; what only plays them has to be told.
    fn expect_pause(&mut self, _attempt: Attempt, _pause: Span) {}

    /// Sends a signal to everything that belongs to a job; whoever has gone out of sight hears it when
    /// [`ended`](Engine::ended) is asked next. A job that is about to begin may not hear that it is to
    /// end: whoever wants that asks again until it has ended. One that is suspended hears it when it
    /// goes on, unless it is ended by force.
    fn signal(&mut self, attempt: Attempt, signal: Signal) -> Result<(), EngineError>;

    /// Who has ended since this was asked last.
    fn ended(&mut self) -> Vec<(Attempt, End)>;

    /// After a restart: what became of an attempt. One that did not begin never will.
    fn find(&mut self, attempt: Attempt) -> Result<Found, EngineError>;

    /// An attempt is over and written down: whatever was kept of it may go, soon.
    fn forget(&mut self, attempt: Attempt);
}
