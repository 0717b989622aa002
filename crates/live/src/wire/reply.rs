//! What the daemon answers.

use serde::{Deserialize, Serialize};

use super::finished::{Finished, Usage};
use super::forecast::Forecast;
use super::history::HistoryLine;
use super::jobs::{Answer, ArrayDetails, JobDetails, JobLine};
use super::power::{NodeLine, PowerState};
use super::refusal::Refusal;
use super::status::Status;

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
