//! What is assumed in a forecast, and what comes of it.

use serde::{Deserialize, Serialize};

use super::power::{LimitFrom, PowerFrom};
use super::refusal::{Refusal, RefusalKind};
use super::{forms, object};
use crate::job::{Element, JobRequest};
use busbar_core::policy::{PolicyError, PolicySpec};
use busbar_core::units::{Span, Watts, json};

/// How much of a text that cannot be used an error repeats, in characters.
const LONGEST_QUOTE: usize = 240;

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
