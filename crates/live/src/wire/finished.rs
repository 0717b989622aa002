//! Jobs that are over, in lists and in sums: what is asked about them, and what is answered.
//!
//! A list is read in parts, the latest jobs first. A request reads a bounded number of jobs, whatever it looks for; if there
//! are more, the answer says where to [go on](Finished::next). Sums are kept by day, so that they need not read jobs at all.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::jobs::State;
use crate::job::Element;
use busbar_core::units::{Joules, Span, json};

/// The largest number of jobs in an answer.
pub const MOST_JOBS: u32 = 1000;

/// The longest period of sums, in days.
pub(crate) const MOST_DAYS: i64 = 366;

/// Which finished jobs are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FinishedQuery {
    /// Only jobs of this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<u32>,
    /// Jobs of all users. Without it and without `user`, users get their own jobs, and operators all.
    pub all: bool,
    /// Only jobs for this account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Only jobs that ended in one of these states; any, if there is none.
    pub states: Vec<State>,
    /// Only jobs that ended at this time or later, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    /// Only jobs that ended before this time, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
    /// Only this job, or the elements of this array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<u64>,
    /// Where to go on, as the answer before said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Place>,
    /// The largest number of jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A place in the list of finished jobs, by the end of a job and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Place {
    /// When the job ended, in milliseconds since 1970.
    pub ended: i64,
    /// The job's number.
    pub job: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.ended, self.job)
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('.');
        let parts = parts.and_then(|(ended, job)| Some((ended.parse().ok()?, job.parse().ok()?)));
        let wrong = || format!("'{text}' is not a position in the list; use the value of 'next'");
        parts.map(|(ended, job)| Place { ended, job }).ok_or_else(wrong)
    }
}

impl From<Place> for String {
    fn from(place: Place) -> String {
        place.to_string()
    }
}

impl TryFrom<String> for Place {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// Finished jobs, the latest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Finished {
    /// The jobs, the latest first. There may be fewer than were asked for, even none, and more of them further on.
    pub jobs: Vec<FinishedJob>,
    /// Where to go on: ask again with this as `before`. There are no more jobs if it is missing.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Place>,
}

/// A job that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FinishedJob {
    /// The job's number.
    pub job: u64,
    /// The element of an array that the job is, if it is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub array: Option<Element>,
    /// How the engine knows the job, if it came through the engine: Slurm's number.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub handle: Option<String>,
    /// The job's name, if the client may see it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// The owner's user ID.
    pub user: u32,
    /// The owner's name, if the system knows it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub user_name: Option<String>,
    /// The job's account, if it named one and the client may see it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub account: Option<String>,
    /// How the job ended.
    pub state: State,
    /// Why the job ended so, in a few words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// The exit code of its process, if it exited.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i32>,
    /// The signal that ended its process, if one did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub signal: Option<i32>,
    /// When the job was submitted, in seconds since 1970.
    #[serde(rename = "submitted_s")]
    pub submitted: i64,
    /// When the job started, in seconds since 1970, if it did.
    #[serde(rename = "started_s", skip_serializing_if = "Option::is_none", default)]
    pub started: Option<i64>,
    /// When the job ended, in seconds since 1970.
    #[serde(rename = "ended_s")]
    pub ended: i64,
    /// How long the job ran, in seconds.
    #[serde(rename = "elapsed_s", with = "json")]
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    pub elapsed: Span,
    /// The number of nodes it had at the end, or asked for if it never ran.
    pub nodes: u32,
    /// The nodes it had at the end.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub on: Vec<u32>,
    /// The predicted energy, in joules.
    #[serde(rename = "energy_j", with = "json")]
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    pub energy: Joules,
    /// The measured energy, in joules, where the job's nodes have meters.
    #[serde(rename = "measured_energy_j", with = "json")]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    pub measured: Option<Joules>,
    /// Whether an emulator made some of the measured energy up.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub emulated: bool,
}

/// By what sums are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A sum for each user.
    #[default]
    User,
    /// A sum for each account.
    Account,
}

/// Which sums are asked for. Periods are whole days in the daemon's time zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UsageQuery {
    /// By what.
    pub by: By,
    /// The first day: that of this time, in seconds since 1970. Thirty days before the last one if it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    /// The last day: that of this time, in seconds since 1970. Today if it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
}

/// What jobs took that ended in a period.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Usage {
    /// The first day, as a date.
    pub first_day: String,
    /// The last day, as a date.
    pub last_day: String,
    /// The sums, the largest energy first.
    pub sums: Vec<UsageSum>,
}

/// What the jobs of a user, or for an account, took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UsageSum {
    /// The user, in sums by user.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub user: Option<u32>,
    /// The user's name, if the system knows it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub user_name: Option<String>,
    /// The account, in sums by account; missing for jobs that named none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub account: Option<String>,
    /// How many jobs ended.
    pub jobs: u64,
    /// Nodes times seconds.
    #[serde(rename = "node_s", with = "json")]
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    pub node_time: Span,
    /// The predicted energy, in joules.
    #[serde(rename = "energy_j", with = "json")]
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    pub energy: Joules,
    /// How many of the jobs were measured.
    pub measured_jobs: u64,
    /// The measured energy of those jobs, in joules.
    #[serde(rename = "measured_energy_j", with = "json")]
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    pub measured: Joules,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_written_and_read() {
        let place = Place { ended: -5, job: 7 };
        assert_eq!(place.to_string(), "-5.7");
        assert_eq!("-5.7".parse(), Ok(place));
        assert_eq!(serde_json::to_string(&place).unwrap(), "\"-5.7\"");
        for wrong in ["", "7", "7.", ".7", "7.x", "1.2.3"] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
    }
}
