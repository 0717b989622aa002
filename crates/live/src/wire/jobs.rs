//! Jobs and arrays as clients see them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::forms;
use super::refusal::Refusal;
use crate::job::{Element, End, EndReason, JobRequest, Owner, Part};
use busbar_core::priority::Standing;
use busbar_core::units::{Joules, Span, Watts, json};

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
    /// The priority of a waiting job, where the policy has such an order.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub priority: Option<Priority>,
    /// The partition that the job asks for, if it names one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub partition: Option<String>,
    /// What a running job has of each of its nodes, where nodes are of several kinds or jobs share them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub part: Option<Box<Part>>,
}

/// The priority of a job, by what gives it, in thousandths of points.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Priority {
    /// All together.
    pub all: u64,
    /// For having waited.
    pub age: u64,
    /// For what its user has used.
    pub fair_share: u64,
    /// For its association.
    pub association: u64,
    /// For how much of the machine it asks for.
    pub job_size: u64,
    /// For processors and nodes, each by itself.
    pub resources: u64,
}

impl Priority {
    /// The parts of a priority that jobs of a daemon can have.
    pub(crate) fn of(standing: &Standing) -> Self {
        let Standing { age, fair_share, fixed } = standing;
        let [all, ..] = standing.points();
        Priority {
            all: all.thousandths(),
            age: age.thousandths(),
            fair_share: fair_share.thousandths(),
            association: fixed.association.thousandths(),
            job_size: fixed.job_size.thousandths(),
            resources: fixed.resources.thousandths(),
        }
    }
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
