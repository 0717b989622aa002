//! What an engine tells the daemon.

use std::path::PathBuf;
use std::time::SystemTime;

use super::arrival::Arrival;
use super::measurement::{Consumption, Measurement};
use super::order::{Power, Ticket};
use crate::job::{Attempt, End, NodeState};
use busbar_core::units::Span;

/// What an engine reports, in the order in which it happened.
#[derive(Debug)]
pub enum Report {
    /// An order was carried out.
    Confirmed {
        /// The order.
        ticket: Ticket,
    },
    /// An order was not carried out, and will not be.
    Failed {
        /// The order.
        ticket: Ticket,
        /// What went wrong.
        error: EngineError,
    },
    /// The engine has chosen the nodes of an attempt, which runs there from now on. This may come again, also for attempts whose
    /// nodes are known.
    Placed {
        /// The attempt.
        attempt: Attempt,
        /// Its nodes, in order.
        nodes: Vec<u32>,
    },
    /// An attempt that was to be [placed](Report::Placed) has not begun, because there are no nodes for it now, and never will.
    /// The job is not to start before the engine [offers](Report::Offered) it again.
    SetAside {
        /// The attempt.
        attempt: Attempt,
        /// The reason, in words.
        reason: String,
    },
    /// There may be nodes now for a job that was [set aside](Report::SetAside).
    Offered {
        /// How the engine knows it.
        handle: String,
    },
    /// Something that operators should know: it goes into the log and the history.
    Notice {
        /// What it is, in words.
        text: String,
    },
    /// The engine has ended an attempt at the time limit that it knows. Its end follows.
    OutOfTime {
        /// The attempt.
        attempt: Attempt,
    },
    /// An attempt has ended.
    Ended {
        /// The attempt.
        attempt: Attempt,
        /// How it ended.
        end: End,
        /// How long ago that was; no time at all if the engine does not know.
        ago: Span,
    },
    /// An attempt whose start was confirmed has not begun after all, and never will. The job is not to blame: it may
    /// begin another time.
    NotBegun {
        /// The attempt.
        attempt: Attempt,
        /// The reason, in words.
        reason: String,
    },
    /// A job has come through the engine.
    Arrived(Box<Arrival>),
    /// A job that came through the engine, and waited, is gone.
    Gone {
        /// How the engine knows it.
        handle: String,
    },
    /// The state of a node has changed.
    Node {
        /// The node's number.
        node: u32,
        /// Its state now.
        state: NodeState,
    },
    /// The power of a node was measured.
    Measured {
        /// The node's number.
        node: u32,
        /// Its power.
        power: Measurement,
    },
    /// A node that was being [switched](super::Engine::switch) is there.
    Switched {
        /// The node's number.
        node: u32,
        /// Its present state.
        to: Power,
    },
    /// What a job consumed is known. This comes after its end, if at all.
    Consumed {
        /// The attempt.
        attempt: Attempt,
        /// The energy that it consumed.
        consumption: Consumption,
    },
}

/// What an engine knows about an attempt after a restart of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The attempt is running, and is watched again.
    Running,
    /// The attempt has ended meanwhile.
    Ended {
        /// How it ended.
        end: End,
        /// How long ago that was; no time at all if the engine does not know.
        ago: Span,
    },
    /// The attempt did not begin and never will.
    NeverStarted,
    /// The same, for a reason that somebody should know.
    NotBegun(String),
}

impl Found {
    /// Whether nothing runs, and nothing will.
    pub(crate) fn is_over(&self) -> bool {
        *self != Found::Running
    }
}

/// How long ago a time by the wall clock was. One that lies ahead, because the clock was set, was just now.
pub(crate) fn ago(then: SystemTime) -> Span {
    let passed = then.elapsed().unwrap_or_default();
    Span::from_millis(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX))
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
    /// The engine cannot tell yet what became of the attempt.
    #[error("job {attempt}: its result is not known yet")]
    Unclear {
        /// The attempt.
        attempt: Attempt,
    },
    /// A node did not do what it was asked to.
    #[error("job {attempt}: node {node}: {reason}")]
    Node {
        /// The attempt.
        attempt: Attempt,
        /// The node's name.
        node: String,
        /// What went wrong.
        reason: String,
    },
    /// There was no answer in time, so that nobody knows whether it was done.
    #[error("job {attempt}: there was no answer within {} s", within.secs_f64())]
    Late {
        /// The attempt.
        attempt: Attempt,
        /// How long the daemon waited.
        within: Span,
    },
}
