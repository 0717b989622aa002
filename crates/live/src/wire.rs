//! What a client and a daemon say to each other: a line of JSON for each request, and one for each
//! answer. [`docs/live.md`](https://docs.rs/busbar) lists them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::array::Element;
use super::engine::End;
use super::job::{EndReason, Event, JobRequest, Owner, Submission};
use busbar_core::units::{Instant, Joules, Span, Watts};

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Run this.
    Submit(Box<Submission>),
    /// Who waits and who runs?
    Queue,
    /// What of this job, or of this array?
    Show {
        /// Its number.
        job: u64,
    },
    /// End these jobs, or never start them.
    Cancel {
        /// Their numbers; that of an array stands for all its elements.
        jobs: Vec<u64>,
    },
    /// Do not start these jobs until they are released.
    Hold {
        /// Their numbers; that of an array stands for all its elements.
        jobs: Vec<u64>,
    },
    /// Start them when there is room.
    Release {
        /// Their numbers; that of an array stands for all its elements.
        jobs: Vec<u64>,
    },
    /// What of the nodes?
    Nodes,
    /// What may be drawn, and what is?
    Budget {
        /// What may be drawn from now on, as it is written on the command line; `configured` goes back
        /// to what the configuration says. For operators.
        #[serde(default)]
        set: Option<String>,
    },
    /// What has happened?
    History {
        /// To this job alone, or to the elements of this array.
        #[serde(default)]
        job: Option<u64>,
        /// After this line.
        #[serde(default)]
        after: Option<u64>,
        /// At most so many lines: the last ones, or the first ones after `after`.
        #[serde(default)]
        limit: Option<u32>,
    },
    /// When will everybody start?
    Forecast(Box<ForecastRequest>),
    /// How is the daemon?
    Status,
    /// Stop. Jobs run on. For operators.
    Stop,
}

impl Request {
    /// The most jobs that one request may name, and the most changes of the budget that one forecast may be
    /// asked about.
    pub const MOST_NAMED: usize = 1000;

    /// Whether it asks for so little that all of it can be done in one turn.
    pub fn check(&self) -> Result<(), Refusal> {
        let (count, what, advice) = match self {
            Request::Cancel { jobs } | Request::Hold { jobs } | Request::Release { jobs } => {
                (jobs.len(), "jobs", "; send several requests")
            }
            Request::Forecast(question) => (question.budget.len(), "changes of the budget", ""),
            _ => return Ok(()),
        };
        let most = Request::MOST_NAMED;
        if count <= most {
            return Ok(());
        }
        let message =
            format!("the request names {count} {what}, and may name at most {most}{advice}");
        Err(Refusal { kind: RefusalKind::TooMuch, message })
    }
}

/// What a forecast is to assume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ForecastRequest {
    /// The budget changes: so long from now, to this, as it is written on the command line.
    pub budget: Vec<(Span, String)>,
    /// A job that would be submitted now.
    pub job: Option<JobRequest>,
    /// Jobs take so many percent of the time they asked for; all of it if that is not said.
    pub percent: Option<u32>,
}

/// What a daemon answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It was accepted, and is written down.
    Submitted {
        /// The job's number, or that of the array.
        job: u64,
        /// What its user may want to know, to be read after the job's number: why it will not start as
        /// things are, or that something it asks for makes no difference.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        remark: Option<String>,
    },
    /// The jobs that wait or run, in the order of their numbers.
    Queue(Vec<JobLine>),
    /// All that is known of a job.
    Show(Box<JobDetails>),
    /// An array: what a list says of its elements.
    Array(ArrayDetails),
    /// What became of each job that was to be cancelled, held or released.
    Done(Vec<Answer>),
    /// The nodes.
    Nodes(Vec<NodeLine>),
    /// Power.
    Budget(PowerState),
    /// What happened, in order.
    History(Vec<HistoryLine>),
    /// When jobs will start.
    Forecast(Forecast),
    /// How the daemon is.
    Status(Box<Status>),
    /// It will stop.
    Stopping,
    /// It cannot be done.
    Error(Refusal),
}

/// Why something cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Of which kind it is, for programs.
    pub kind: RefusalKind,
    /// What, and what to do about it, for people.
    pub message: String,
}

/// Kinds of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// The request makes no sense.
    Malformed,
    /// It is too large, or took too long.
    TooMuch,
    /// Too many ask at the same time. Nothing was done: the same request may be sent again.
    Busy,
    /// There is no such job.
    Unknown,
    /// It is somebody else's.
    Forbidden,
    /// It could never run.
    Impossible,
    /// There are too many already.
    Full,
    /// The daemon could not write it down.
    Unwritten,
    /// The daemon is about to stop.
    Stopping,
}

/// What became of one job of several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Which.
    pub job: u64,
    /// Why it could not be done, if it could not.
    pub refusal: Option<Refusal>,
    /// Whether it was only asked for: a job that runs has not ended because it was asked to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
}

/// How far a job has got, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It waits for nodes and power.
    Waiting,
    /// It waits for other jobs.
    Blocked,
    /// It waits to be released.
    Held,
    /// It runs.
    Running,
    /// It stands still because there is no power for it.
    Suspended,
    /// It has been asked to end.
    Ending,
    /// It ended well.
    Completed,
    /// It ended by itself, and said that something was wrong, or could not be run.
    Failed,
    /// It ended because its time was over.
    TimedOut,
    /// It was cancelled, or dropped.
    Cancelled,
    /// Nobody knows how it ended.
    Lost,
}

/// A job in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLine {
    /// Its number.
    pub job: u64,
    /// What its user calls it, for those who may see it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Whose it is.
    pub user: u32,
    /// How far it has got.
    pub state: State,
    /// Why it waits, or why it ended, in a few words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// How many nodes it asks for, or has.
    pub nodes: u32,
    /// Which ones, if it runs.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub on: Vec<u32>,
    /// What it draws, as far as is believed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub power: Option<Watts>,
    /// How fast it is, in millionths of its speed unthrottled on the nodes it asks for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub speed: Option<u32>,
    /// When it was submitted: seconds since 1970.
    pub submitted: i64,
    /// When it started.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub started: Option<i64>,
    /// For how long it has run, or ran.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ran: Option<Span>,
    /// How long it may run.
    pub time: Span,
    /// Which element of which array it is, if it is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub array: Option<Element>,
}

/// An array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrayDetails {
    /// Its number.
    pub array: u64,
    /// Its elements, in the order of their indices; those that were over long ago may be missing.
    pub elements: Vec<JobLine>,
}

/// All that is known of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobDetails {
    /// What a list says of it.
    #[serde(flatten)]
    pub line: JobLine,
    /// Whose it is.
    pub owner: Owner,
    /// What only its owner and operators are told.
    #[serde(flatten)]
    pub private: Option<Private>,
    /// How many times it was tried.
    pub attempts: u32,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub end: Option<End>,
    /// Why, if it did not end by itself.
    #[serde(rename = "why", skip_serializing_if = "Option::is_none", default)]
    pub end_reason: Option<EndReason>,
    /// The user who cancelled it, if somebody did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub by: Option<u32>,
    /// When it was over: seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended: Option<i64>,
    /// What it has drawn, as far as is believed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub energy: Option<Joules>,
}

/// What only the owner of a job and operators are told, unless the configuration says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Private {
    /// The resources and conditions the job asks for.
    #[serde(rename = "wish")]
    pub request: JobRequest,
    /// What it does.
    pub command: Vec<String>,
    /// Where.
    pub folder: PathBuf,
    /// Where its output goes.
    pub output: PathBuf,
    /// Where its errors go.
    pub errors: PathBuf,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLine {
    /// Its number.
    pub node: u32,
    /// The job on it.
    pub job: Option<u64>,
    /// The most it may draw for it.
    pub cap: Option<Watts>,
}

/// What may be drawn, and what is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerState {
    /// The limit in force; nothing if there is none.
    pub limit: Option<Watts>,
    /// What the machine draws without jobs.
    pub base: Watts,
    /// What jobs hold.
    pub held: Watts,
    /// What is left for others.
    pub free: Option<Watts>,
    /// Whether an operator has set it, or else the configuration.
    pub set_by_operator: bool,
    /// Limits to come: seconds since 1970, and how much.
    pub to_come: Vec<(i64, Option<Watts>)>,
    /// That more is held than the limit allows, and what is done about it.
    pub notice: Option<String>,
    /// Whether no power is measured or capped, and what jobs hold is what the model says.
    #[serde(default)]
    pub emulated: bool,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryLine {
    /// Lines are numbered in order.
    pub line: u64,
    /// When, by the clock on the wall: milliseconds since 1970.
    pub wall: i64,
    /// What, and when by the daemon's clock.
    #[serde(flatten)]
    pub event: Event,
}

/// When jobs will start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forecast {
    /// For each job that waits or runs, in the order of their numbers.
    pub jobs: Vec<ForecastLine>,
    /// The most that will be drawn.
    pub peak: Watts,
    /// When the last of them ends: seconds since 1970.
    pub all_over: i64,
    /// What was assumed, in sentences.
    pub assumptions: Vec<String>,
}

/// When a job will start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForecastLine {
    /// Its number; none for the job that would be submitted.
    pub job: Option<u64>,
    /// What its user calls it, for those who may see it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// When it starts, or started: seconds since 1970. None if it never does.
    pub start: Option<i64>,
    /// When it ends at the latest.
    pub end: Option<i64>,
    /// On how many nodes.
    pub nodes: u32,
    /// What it draws.
    pub power: Option<Watts>,
    /// Why it never starts.
    pub reason: Option<String>,
    /// Which element of which array it is, if it is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub array: Option<Element>,
}

/// How the daemon is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its version.
    pub version: String,
    /// Its process.
    pub process: u32,
    /// By which policy it decides.
    pub policy: String,
    /// What jobs run on.
    pub engine: String,
    /// The machine.
    pub machine: String,
    /// How many nodes there are, and how many of them are nobody's.
    pub nodes: (u32, u32),
    /// How many jobs wait, in whatever state.
    pub waiting: usize,
    /// How many jobs run.
    pub running: usize,
    /// Power.
    pub power: PowerState,
    /// Since when it has been at work: seconds since 1970.
    pub since: i64,
    /// By its own clock, the present.
    pub now: Instant,
    /// Control cycles so far.
    pub cycles: u64,
    /// How long the longest of the last thousand cycles took, in microseconds.
    pub longest_cycle: u64,
    /// What is not as it should be.
    pub notices: Vec<String>,
}
