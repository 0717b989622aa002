//! Requests of clients and answers of the daemon: a line of JSON for each.
//! [`docs/reference/live.md`](https://docs.rs/busbar) lists them.
//!
//! # Units
//!
//! The key of a quantity ends in its unit: watts (`power_w`), seconds (`time_s`), joules (`energy_j`), as exact decimals
//! ([`busbar_core::units::json`]). Points in time are seconds since 1970, unless they are by the daemon's own clock. What is
//! stored has a form of its own, in the integers of the types; `forms` gives such types their form on the wire.
//!
//! # Versions
//!
//! The protocol has a version, [`PROTOCOL`], which `busbar status --json` shows. Within a major version,
//! requests and answers only gain fields, and these have defaults; so a missing field is not an error.
//! Anything else raises the major version.
//!
//! - Answers: a client ignores fields that it does not know.
//! - Requests state their version: `{"protocol": "2.0", "show": {"job": 7}}`. A request of another major version is
//!   refused, with what to update; one that states none is of version 1.0, whose clients did not have to. A field that
//!   the daemon does not know is refused, because it may be a misspelt one, unless the client's minor version is newer than the
//!   daemon's: then it is ignored.
//!
//! Version 1 had milliwatts, milliseconds, microjoules and millionths, and keys without units.

use std::cmp::Ordering;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::array::Element;
use super::engine::{End, EnginePace, Measurement, NodeState, SwitchState};
use super::finished::{Finished, FinishedQuery, MOST_JOBS, Usage, UsageQuery};
use super::job::{EndReason, Event, JobRequest, Owner, Submission};
use busbar_core::policy::{PolicyError, PolicySpec, Predictions};
use busbar_core::tuning::{Advice, Figures, Tuning};
use busbar_core::units::{Instant, Joules, Span, Watts, json};

pub(crate) mod forms;
mod object;
#[cfg(test)]
mod tests;

pub use object::Object;

/// How much of a text that cannot be used an error repeats, in characters.
const LONGEST_QUOTE: usize = 240;

/// The version of the protocol that this program speaks.
pub const PROTOCOL: Protocol = Protocol { major: 2, minor: 0 };

/// A version of the protocol, written as `1.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Protocol {
    /// Different major versions do not understand each other.
    pub major: u32,
    /// A newer minor version has more fields.
    pub minor: u32,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl From<Protocol> for String {
    fn from(protocol: Protocol) -> String {
        protocol.to_string()
    }
}

impl TryFrom<String> for Protocol {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parts = text.split_once('.');
        let parts =
            parts.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        let (major, minor) = parts
            .ok_or_else(|| format!("'{text}' is not a protocol version such as {PROTOCOL}"))?;
        Ok(Protocol { major, minor })
    }
}

impl Protocol {
    /// The version of clients and daemons that do not state theirs.
    pub(crate) const FIRST: Protocol = Protocol { major: 1, minor: 0 };

    /// Why a daemon of this program does not understand a request of that version, and what to update; `None` if it
    /// does.
    pub(crate) fn mismatch(self) -> Option<String> {
        let advice = match self.major.cmp(&PROTOCOL.major) {
            Ordering::Equal => return None,
            Ordering::Less => {
                "the client is older than the daemon: use the busbar that is installed with the daemon; a program of \
                 your own writes \"protocol\": \"2.0\", and power in watts, times in seconds and energy in joules"
            }
            Ordering::Greater => {
                "the daemon is older than the client: update the daemon and restart it, or use the busbar that is \
                 installed with the daemon"
            }
        };
        let version = env!("CARGO_PKG_VERSION");
        Some(format!(
            "the request is of protocol {self}, and this daemon (Busbar {version}) uses {PROTOCOL}; {advice}"
        ))
    }
}

fn first_protocol() -> Protocol {
    Protocol::FIRST
}

/// A request as a client sends it, with the version of the protocol.
#[derive(Serialize)]
pub struct Sent<'a> {
    protocol: Protocol,
    #[serde(flatten)]
    request: &'a Request,
}

impl<'a> Sent<'a> {
    /// A request of this program.
    pub fn new(request: &'a Request) -> Self {
        Sent { protocol: PROTOCOL, request }
    }
}

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Submit a job or an array.
    Submit(Box<Submission>),
    /// List the jobs that wait or run.
    Queue,
    /// Show a job or an array.
    Show {
        /// The number of the job, array or node.
        job: u64,
    },
    /// Cancel jobs, whether they wait or run.
    Cancel {
        /// The numbers of jobs; that of an array stands for all its elements.
        jobs: Vec<u64>,
    },
    /// Hold jobs until they are released.
    Hold {
        /// The numbers of jobs; that of an array stands for all its elements.
        jobs: Vec<u64>,
    },
    /// Release held jobs.
    Release {
        /// The numbers of jobs; that of an array stands for all its elements.
        jobs: Vec<u64>,
    },
    /// List the nodes.
    Nodes,
    /// Show the power budget and its use, or set another limit.
    Budget {
        /// The new limit as it is written on the command line; `configured` returns to the
        /// configured budget. For operators.
        #[serde(default)]
        set: Option<String>,
    },
    /// Show the history.
    History {
        /// Only events of this job, or of the elements of this array.
        #[serde(default)]
        job: Option<u64>,
        /// Only lines after this one.
        #[serde(default)]
        after: Option<u64>,
        /// The largest number of lines: the last ones, or the first ones after `after`.
        #[serde(default)]
        limit: Option<u32>,
    },
    /// List jobs that are over, the latest first.
    Finished(Box<FinishedQuery>),
    /// Sum up what jobs took that are over.
    Usage(UsageQuery),
    /// Work out when jobs will start.
    Forecast(Box<ForecastRequest>),
    /// Show the daemon's status.
    Status,
    /// Stop the daemon. Jobs run on. For operators.
    Stop,
}

impl Request {
    /// The largest number of jobs in a request, and of budget changes in a forecast.
    pub const MOST_NAMED: usize = 1000;

    /// Checks that the request is small enough for one turn.
    pub fn check(&self) -> Result<(), Refusal> {
        let (count, what, advice) = match self {
            Request::Cancel { jobs } | Request::Hold { jobs } | Request::Release { jobs } => {
                (jobs.len(), "jobs", "; send several requests")
            }
            Request::Forecast(question) => {
                question.assumed_policy()?;
                (question.budget.len(), "changes of the budget", "")
            }
            Request::Finished(query) => {
                if let Some(limit) = query.limit.filter(|limit| !(1..=MOST_JOBS).contains(limit)) {
                    let message = format!(
                        "limit {limit}: write 1 to {MOST_JOBS}, and ask again with 'before'"
                    );
                    return Err(Refusal::new(RefusalKind::Malformed, message));
                }
                (query.states.len(), "states", "")
            }
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

/// The assumptions of a forecast.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ForecastRequest {
    /// Changes of the budget.
    #[serde(deserialize_with = "object::list")]
    pub budget: Vec<BudgetChange>,
    /// A job that is assumed to be submitted now.
    #[cfg_attr(feature = "schema", schema(value_type = Option<forms::JobRequestForm>))]
    #[serde(with = "forms::optional_request")]
    pub job: Option<JobRequest>,
    /// Another policy that is assumed to decide from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The share of the requested time that jobs take, in percent; 100 by default.
    pub percent: Option<u32>,
}

/// A change of the budget that a forecast assumes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct BudgetChange {
    /// The time from now on.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "in_s", with = "json")]
    pub after: Span,
    /// The limit as it is written on the command line.
    pub limit: String,
}

impl ForecastRequest {
    /// Whether it asks for what will happen, and not for what would.
    pub(crate) fn assumes_nothing(&self) -> bool {
        *self
            == ForecastRequest {
                percent: self.percent.filter(|percent| *percent == 100),
                ..ForecastRequest::default()
            }
    }

    /// The policy that is assumed, if there is one.
    pub(crate) fn assumed_policy(&self) -> Result<Option<PolicySpec>, Refusal> {
        let Some(text) = &self.policy else { return Ok(None) };
        let refused = |error: PolicyError| {
            // An error names the beginning of what it is about.
            let text: String = text.chars().take(LONGEST_QUOTE).collect();
            Refusal::new(RefusalKind::Malformed, format!("policy '{text}': {error}"))
        };
        PolicySpec::for_daemon(text).map(Some).map_err(refused)
    }
}

/// A daemon's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The job or array was accepted and stored.
    Submitted {
        /// The job's number, or that of the array.
        job: u64,
        /// A remark to be read after the job's number: why the job cannot start at present, or that
        /// a part of the request has no effect.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        remark: Option<String>,
    },
    /// The jobs that wait or run, in the order of their numbers.
    Queue(Vec<JobLine>),
    /// The details of a job.
    Show(Box<JobDetails>),
    /// The elements of an array.
    Array(ArrayDetails),
    /// The result for each job that was to be cancelled, held or released.
    Done(Vec<Answer>),
    /// The nodes.
    Nodes(Vec<NodeLine>),
    /// The power budget and its use.
    Budget(PowerState),
    /// Lines of the history, in order.
    History(Vec<HistoryLine>),
    /// Jobs that are over, the latest first.
    Finished(Finished),
    /// The energy of finished jobs.
    Usage(Usage),
    /// The forecast.
    Forecast(Forecast),
    /// The daemon's status.
    Status(Box<Status>),
    /// The daemon is about to stop.
    Stopping,
    /// The request was refused.
    Error(Refusal),
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[error("{message}")]
pub struct Refusal {
    /// The kind of refusal, for programs.
    pub kind: RefusalKind,
    /// The reason and advice, for users.
    pub message: String,
}

impl Refusal {
    /// A refusal of a kind, with a message for users.
    pub fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Refusal { kind, message: message.into() }
    }
}

/// Kinds of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// The request cannot be understood.
    Malformed,
    /// The request is too large, or took too long.
    TooMuch,
    /// There are too many requests at the same time. Nothing was done; the request may be sent
    /// again.
    Busy,
    /// There is no such job.
    Unknown,
    /// The user is not allowed to do that.
    Forbidden,
    /// The job could never run, or its state does not allow the request.
    Impossible,
    /// A quota is used up.
    Full,
    /// The daemon could not write to its database.
    Unwritten,
    /// The daemon is about to stop.
    Stopping,
}

/// The result for one of several jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Answer {
    /// The job's number.
    pub job: u64,
    /// Why the request was refused for this job, if it was.
    pub refusal: Option<Refusal>,
    /// Whether the job was only asked to end, and may still be running.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
}

/// The state of a job, for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Waiting for nodes and power.
    Waiting,
    /// Waiting for other jobs.
    Blocked,
    /// Waiting to be released.
    Held,
    /// Has its power, and waits for its nodes to be chosen.
    Starting,
    /// Running.
    Running,
    /// Suspended because there is no power for it.
    Suspended,
    /// Asked to end.
    Ending,
    /// Ended with exit code 0.
    Completed,
    /// Ended by itself with another code or by a signal, or could not be run.
    Failed,
    /// Ended at its time limit.
    TimedOut,
    /// Cancelled, or dropped.
    Cancelled,
    /// Ended in an unknown way.
    Lost,
}

/// The line of a job in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JobLine {
    /// The number of the job, array or node.
    pub job: u64,
    /// The job's name, if the client may see it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// The owner's user ID.
    pub user: u32,
    /// The owner's name, where whoever passes the answer on has looked it up: the daemon's loop does not wait for a directory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub user_name: Option<String>,
    /// The job's state.
    pub state: State,
    /// Why the job waits, or why it ended, in a few words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// The number of nodes the job asks for, or has.
    pub nodes: u32,
    /// The nodes the job runs on.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub on: Vec<u32>,
    /// The predicted power.
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    #[serde(rename = "power_w", with = "json", skip_serializing_if = "Option::is_none", default)]
    pub power: Option<Watts>,
    /// The power that a waiting job would draw as it was asked for, if it can run so at all.
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    #[serde(rename = "needs_w", with = "json", skip_serializing_if = "Option::is_none", default)]
    pub needs: Option<Watts>,
    /// The predicted speed, as a share of the speed on the nodes it asks for without a cap.
    // In millionths here.
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    #[serde(with = "json::millionths", skip_serializing_if = "Option::is_none", default)]
    pub speed: Option<u32>,
    /// When the job was submitted, in seconds since 1970.
    #[serde(rename = "submitted_s")]
    pub submitted: i64,
    /// When the job started, in seconds since 1970.
    #[serde(rename = "started_s", skip_serializing_if = "Option::is_none", default)]
    pub started: Option<i64>,
    /// How long the job has run, or ran.
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    #[serde(rename = "ran_s", with = "json", skip_serializing_if = "Option::is_none", default)]
    pub ran: Option<Span>,
    /// The time limit.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "time_s", with = "json")]
    pub time: Span,
    /// The element of an array that the job is, if it is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub array: Option<Element>,
    /// How the engine knows the job, if it came through the engine: Slurm's number.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub handle: Option<String>,
}

/// The elements of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ArrayDetails {
    /// The number of the job, array or node.
    pub array: u64,
    /// The elements in the order of their indices; pruned ones are missing.
    pub elements: Vec<JobLine>,
}

/// The details of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JobDetails {
    /// The line of the job in a list.
    #[serde(flatten)]
    pub line: JobLine,
    /// The owner.
    pub owner: Owner,
    /// What only the owner and operators may see.
    #[serde(flatten)]
    pub private: Option<Private>,
    /// The number of attempts so far.
    pub attempts: u32,
    /// How the process ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub end: Option<End>,
    /// Why the job was ended, if it did not end by itself.
    #[serde(rename = "why", skip_serializing_if = "Option::is_none", default)]
    pub end_reason: Option<EndReason>,
    /// The user who cancelled the job, if one did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub by: Option<u32>,
    /// That user's name, where it was looked up.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub by_name: Option<String>,
    /// When the job ended, in seconds since 1970.
    #[serde(rename = "ended_s", skip_serializing_if = "Option::is_none", default)]
    pub ended: Option<i64>,
    /// The predicted energy drawn so far.
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    #[serde(rename = "energy_j", with = "json", skip_serializing_if = "Option::is_none", default)]
    pub energy: Option<Joules>,
}

/// What only the owner of a job and operators may see, unless the configuration says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Private {
    /// The resources and conditions the job asks for.
    #[cfg_attr(feature = "schema", schema(value_type = forms::JobRequestForm))]
    #[serde(rename = "wish", with = "forms::JobRequestForm")]
    pub request: JobRequest,
    /// The command.
    pub command: Vec<String>,
    /// The working directory.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub folder: PathBuf,
    /// The file for standard output.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub output: PathBuf,
    /// The file for standard error.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub errors: PathBuf,
}

/// The line of a node in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NodeLine {
    /// The number of the node.
    pub node: u32,
    /// The name by which people know the node, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The job that runs on the node.
    pub job: Option<u64>,
    /// The node's cap.
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    #[serde(rename = "cap_w", with = "json", default)]
    pub cap: Option<Watts>,
    /// Whether jobs can run on the node.
    #[serde(default)]
    pub state: NodeState,
    /// Where the node is if the daemon has switched it off, or is switching it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switched: Option<SwitchState>,
    /// What the node was last measured to draw; nothing if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measurement>,
}

/// The measured power of the machine, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MeasuredPower {
    /// The power of all nodes that were measured.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "power_w", with = "json")]
    pub power: Watts,
    /// How many nodes that are.
    pub nodes: u32,
    /// Whether part of it is emulated.
    pub emulated: bool,
}

/// The power budget and its use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PowerState {
    /// The limit in force; `None` if there is none.
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    #[serde(rename = "limit_w", with = "json", default)]
    pub limit: Option<Watts>,
    /// What the machine draws without jobs.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "base_w", with = "json")]
    pub base: Watts,
    /// The power that jobs hold.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "held_w", with = "json")]
    pub held: Watts,
    /// The power left for further jobs; `None` if there is no limit.
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    #[serde(rename = "free_w", with = "json", default)]
    pub free: Option<Watts>,
    /// Whether an operator has set the limit, rather than the configuration.
    pub set_by_operator: bool,
    /// Later limits.
    pub to_come: Vec<LimitFrom>,
    /// A message if jobs hold more than the limit allows, saying what is done about it.
    pub notice: Option<String>,
    /// Whether power is only emulated: neither measured nor capped.
    #[serde(default)]
    pub emulated: bool,
    /// The measured power, where nodes have meters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredPower>,
}

/// A limit from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LimitFrom {
    /// The time, in seconds since 1970.
    #[serde(rename = "at_s")]
    pub at: i64,
    /// The limit from then on; `None` if there is none.
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    #[serde(rename = "limit_w", with = "json", default)]
    pub limit: Option<Watts>,
}

/// A power from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PowerFrom {
    /// The time, in seconds since 1970.
    #[serde(rename = "at_s")]
    pub at: i64,
    /// The power from then on.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "power_w", with = "json")]
    pub power: Watts,
}

/// A line of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "forms::HistoryLineForm", into = "forms::HistoryLineForm")]
pub struct HistoryLine {
    /// The number of the line; lines are numbered in order.
    pub line: u64,
    /// The time by the wall clock, in milliseconds since 1970.
    pub wall: i64,
    /// The event.
    pub event: Event,
    /// The name of the user who did it, where it is known and was looked up.
    pub by_name: Option<String>,
}

/// A forecast.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Forecast {
    /// The lines of the jobs that wait or run, in the order of their numbers.
    pub jobs: Vec<ForecastLine>,
    /// The highest power that is reached.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "peak_w", with = "json")]
    pub peak: Watts,
    /// The power of the machine.
    #[serde(default)]
    pub power: Vec<PowerFrom>,
    /// The limits.
    #[serde(default)]
    pub limits: Vec<LimitFrom>,
    /// When the last job ends, in seconds since 1970.
    #[serde(rename = "all_over_s")]
    pub all_over: i64,
    /// The assumptions, in words.
    pub assumptions: Vec<String>,
}

/// The forecast for one job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ForecastLine {
    /// The job's number; `None` for the assumed job.
    pub job: Option<u64>,
    /// The job's name, if the client may see it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// When the job starts, or started, in seconds since 1970; `None` if it never does.
    #[serde(rename = "start_s", default)]
    pub start: Option<i64>,
    /// When the job ends at the latest.
    #[serde(rename = "end_s", default)]
    pub end: Option<i64>,
    /// The number of nodes.
    pub nodes: u32,
    /// The predicted power.
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    #[serde(rename = "power_w", with = "json", default)]
    pub power: Option<Watts>,
    /// Why the job never starts, or is ended.
    pub reason: Option<String>,
    /// The element of an array that the job is, if it is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub array: Option<Element>,
}

/// The daemon's status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Status {
    /// The daemon's version.
    pub version: String,
    /// The version of the protocol that it speaks.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    #[serde(default = "first_protocol")]
    pub protocol: Protocol,
    /// The daemon's process ID.
    pub process: u32,
    /// The host that it runs on: of several daemons with the same state, the one on this host leads.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// The policy in use.
    pub policy: String,
    /// What the policy does to jobs beyond starting them as they were asked for.
    #[serde(default)]
    pub freedoms: Vec<String>,
    /// The engine that runs jobs.
    pub engine: String,
    /// The name of the machine.
    pub machine: String,
    /// What people call the cluster: Slurm's name of it, or that of the machine if it has one, or that of this computer.
    #[serde(default)]
    pub cluster: String,
    /// The number of nodes, and of idle ones.
    pub nodes: (u32, u32),
    /// The number of nodes that are off, or on the way there or back.
    #[serde(default)]
    pub switched: u32,
    /// The number of waiting jobs, including held and blocked ones.
    pub waiting: usize,
    /// The number of running jobs.
    pub running: usize,
    /// The number of starts, changes and signals that what runs the jobs has not confirmed yet.
    #[serde(default)]
    pub unconfirmed: usize,
    /// The power budget and its use.
    pub power: PowerState,
    /// When the daemon started, in seconds since 1970.
    #[serde(rename = "since_s")]
    pub since: i64,
    /// The current time by the daemon's clock.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "now_s", with = "json")]
    pub now: Instant,
    /// The number of control cycles so far.
    pub cycles: u64,
    /// The duration of the longest of the last thousand cycles.
    // In microseconds here.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "longest_cycle_s", with = "json::millionths")]
    pub longest_cycle: u64,
    /// How long the cycles took.
    #[serde(default)]
    pub cycle_times: CycleTimes,
    /// How long the engine takes for what it does beside the cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_pace: Option<EnginePace>,
    /// The address of the web page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// Messages about problems.
    pub notices: Vec<String>,
    /// How far off the policy's predictions were, if it makes any. Power is not among them, as long as
    /// nobody measures it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predictions: Option<Predictions>,
    /// What the last replay of the daemon's past proposes, if it is about the policy in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Box<Proposal>>,
}

/// How long control cycles took since the daemon started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CycleTimes {
    /// The time of all cycles together.
    // In microseconds here.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "sum_s", with = "json::millionths")]
    pub sum: u64,
    /// How many cycles took at most so long.
    pub at_most: Vec<CyclesWithin>,
}

/// How many control cycles took at most a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CyclesWithin {
    /// The time.
    // In microseconds here.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "time_s", with = "json::millionths")]
    pub time: u64,
    /// The number of cycles.
    pub cycles: u64,
}

/// What a replay of the daemon's past proposes. Nothing is changed unasked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Proposal {
    /// When it was made, in seconds since 1970.
    #[serde(rename = "at_s")]
    pub at: i64,
    /// The policy in use.
    pub present: String,
    /// The proposed policy; the same if no candidate is better.
    pub policy: String,
    /// Whether to adopt it.
    pub advice: Advice,
    /// The proposal in words.
    pub text: String,
    /// How choosing by the past did on jobs that had no part in it, in words.
    pub check: String,
    /// Doubts, in words.
    pub cautions: Vec<String>,
    /// What became of the replayed jobs under the policy in use.
    pub present_figures: Figures,
    /// What became of them under the proposed one.
    pub figures: Figures,
}

impl Proposal {
    /// What came of a replay that began at this time, in seconds since 1970.
    pub fn of(tuning: &Tuning, at: i64) -> Self {
        let (present, best) = (tuning.present(), tuning.best());
        Proposal {
            at,
            present: present.policy.to_string(),
            policy: best.policy.to_string(),
            advice: tuning.advice(),
            text: tuning.sentence(),
            check: tuning.check(),
            cautions: tuning.cautions(),
            present_figures: present.all,
            figures: best.all,
        }
    }
}

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, on the last {} finished jobs", self.text, self.figures.jobs)?;
        if self.advice == Advice::Keep {
            return Ok(());
        }
        write!(f, "; {}", self.check)?;
        for caution in &self.cautions {
            write!(f, "; {caution}")?;
        }
        let policy = &self.policy;
        write!(f, "; to adopt it, write policy = \"{policy}\" into the configuration and send HUP")
    }
}
