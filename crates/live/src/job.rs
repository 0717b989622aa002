//! A job as the daemon keeps it: what its user asked for and what has happened to it since.
//!
//! These types are also what the [`store`](crate::store) keeps as JSON. Their JSON names are fixed by `serde` attributes
//! where they differ from the names used here; the module documentation of `store` says what may change and how. Times are
//! milliseconds of the daemon's own clock ([`Instant`]), power is in milliwatts, energy in microjoules. Those that travel
//! over the [`wire`](crate::wire), too, have another form there, in watts, seconds and joules.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use busbar_core::dispatch::NO_WAIT;
use busbar_core::units::{Instant, Span};

mod allotment;
pub mod array;
mod event;
mod node;
mod outcome;
mod part;
pub(crate) mod requester;
mod run;
mod scope;

pub use allotment::{Allotment, Attempt, End};
pub use array::{ArraySpec, Element};
pub use event::{ChangeReason, Event, EventKind};
pub use node::NodeState;
pub use outcome::{EndReason, JobOutcome};
pub use part::{Part, PartRequest, Place};
pub use requester::{Owner, Requester};
pub use run::{Ending, Previous, Run};
pub use scope::{Scope, ScopedLimit};

/// The resources and conditions that a job asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobRequest {
    /// A name chosen by the user. Names need not be unique.
    pub name: String,
    /// The number of nodes, at least one.
    pub nodes: u32,
    /// The smallest and the largest number of nodes, if the job is moldable.
    #[serde(default)]
    pub moldable: Option<(u32, u32)>,
    /// The time limit on `nodes` nodes without a power cap.
    pub time: Span,
    /// The name of the application, by which its profile is found.
    #[serde(default)]
    pub application: Option<String>,
    /// Extra run time accepted in exchange for starting sooner: `10%` or `unbounded`.
    #[serde(default)]
    pub slowdown: Option<String>,
    /// Jobs that must end before this one starts.
    #[serde(default)]
    pub after: Vec<After>,
    /// Whether the job waits until it is released.
    #[serde(default)]
    pub held: bool,
    /// The account that the job's energy is counted for, as its user names it. Nothing depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// What it asks of nodes that are of several kinds, or that jobs share.
    #[serde(default, skip_serializing_if = "PartRequest::is_nothing")]
    pub part: PartRequest,
}

/// A dependency: a job that must end before another one starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct After {
    /// The number of the job, or of an array, that must end first.
    pub job: u64,
    /// Whether failure is acceptable, too. If not, the dependent job is dropped when this one fails.
    #[serde(default)]
    pub any: bool,
}

/// The command of a job with its environment and files. It may be large, so it is kept in the database
/// only, and not in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The program and its arguments; never empty.
    pub command: Vec<String>,
    /// The working directory.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub folder: PathBuf,
    /// The environment; the daemon adds its own variables.
    pub environment: Vec<(String, String)>,
    /// The file for standard output. `%j` stands for the job's number, `%A` for that of its array, and
    /// `%a` for the index in it.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub output: PathBuf,
    /// The file for standard error; `output` if it is absent.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    #[serde(default)]
    pub errors: Option<PathBuf>,
}

impl JobRequest {
    /// The size of the request as JSON.
    pub(crate) fn bytes(&self) -> u64 {
        json_bytes(self)
    }
}

impl Program {
    /// The size of the program as JSON.
    pub(crate) fn bytes(&self) -> u64 {
        json_bytes(self)
    }

    /// The files for standard output and standard error of a job.
    pub(crate) fn files(&self, entry: &Entry) -> (PathBuf, PathBuf) {
        let place = |pattern: &PathBuf| {
            let mut name = pattern.to_string_lossy().replace("%j", &entry.number.to_string());
            if let Some(Element { array, index, .. }) = entry.array {
                name = name.replace("%A", &array.to_string()).replace("%a", &index.to_string());
            }
            self.folder.join(name)
        };
        let output = place(&self.output);
        let errors = self.errors.as_ref().map_or_else(|| output.clone(), place);
        (output, errors)
    }
}

/// The size of a value as JSON.
fn json_bytes(value: &impl Serialize) -> u64 {
    /// A writer that counts bytes.
    struct Count(u64);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting does not fail. A path that is not UTF-8 cannot be written as JSON; then the bytes before
    // it are counted.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// A job as the daemon keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The number by which users refer to the job. Numbers start at 1, increase in the order of
    /// submission, and are never reused.
    pub number: u64,
    /// The user and group the job belongs to.
    pub owner: Owner,
    /// The resources and conditions the job asks for.
    #[serde(rename = "wish")]
    pub request: JobRequest,
    /// The time of submission.
    pub submit: Instant,
    /// How many attempts to run the job were made so far.
    pub attempts: u32,
    /// Whether the job waits, runs or is over.
    pub phase: Phase,
    /// The element of an array that the job is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Element>,
    /// How the engine knows the job, if it came through the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
}

impl Entry {
    /// The current attempt to run the job.
    pub(crate) fn attempt(&self) -> Attempt {
        Attempt { job: self.number, number: self.attempts }
    }

    /// The current attempt, and how the engine knows the job, if the job came through the engine.
    pub(crate) fn in_engine(&self) -> Option<(Attempt, String)> {
        Some((self.attempt(), self.handle.clone()?))
    }

    /// When the job was over, if it is.
    pub(crate) fn end(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Over(outcome) => Some(outcome.end),
            _ => None,
        }
    }

    /// Until when the job had to wait, if it has started and really had to. If it was held, that counts as well.
    pub(crate) fn waited_until(&self) -> Option<Instant> {
        let start = match &self.phase {
            Phase::Waiting => None,
            Phase::Running(run) => Some(run.start),
            Phase::Over(outcome) => outcome.start,
        };
        start.filter(|start| start.since(self.submit) > NO_WAIT)
    }

    /// The state of the job's run, if the job is running.
    pub(crate) fn run(&self) -> Option<&Run> {
        match &self.phase {
            Phase::Running(run) => Some(run),
            _ => None,
        }
    }

    /// The state of the job's run, if the job is running, to be changed.
    pub(crate) fn run_mut(&mut self) -> Option<&mut Run> {
        match &mut self.phase {
            Phase::Running(run) => Some(run),
            _ => None,
        }
    }
}

/// Whether a job waits, runs or is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The job waits: for nodes and power, for other jobs, or to be released, as its request says.
    Waiting,
    /// The daemon has decided that the job runs.
    Running(Run),
    /// The job is over.
    Over(JobOutcome),
}
