//! What clients ask for.

use serde::{Deserialize, Serialize};

use super::finished::{FinishedQuery, MOST_JOBS, UsageQuery};
use super::forecast::ForecastRequest;
use super::forms::JobRequestForm;
use super::refusal::{Refusal, RefusalKind};
use super::version::{PROTOCOL, Protocol};
use crate::job::{ArraySpec, JobRequest, Program, Scope};

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
    /// Set another limit of a part of the machine. For operators.
    Limit {
        /// What it is about.
        of: Scope,
        /// The new limit as it is written on the command line; `configured` returns to the configured one.
        to: String,
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

/// A job, or an array of jobs, as a client submits it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// The resources and conditions that the job asks for.
    #[cfg_attr(feature = "schema", schema(value_type = JobRequestForm))]
    #[serde(rename = "wish", with = "JobRequestForm")]
    pub request: JobRequest,
    /// The command to run, with its environment and files.
    pub program: Program,
    /// The indices, if this is an array of jobs.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<ArraySpec>,
}

impl Submission {
    /// The size of the submission as JSON, which counts against the user's quota.
    pub fn bytes(&self) -> u64 {
        self.request.bytes() + self.program.bytes()
    }
}
