//! The daemon's status, and what it proposes.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::power::PowerState;
use super::version::Protocol;
use crate::engine::EnginePace;
use busbar_core::policy::Predictions;
use busbar_core::tuning::{Advice, Figures, Tuning};
use busbar_core::units::{Instant, json};

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

fn first_protocol() -> Protocol {
    Protocol::FIRST
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
    pub(crate) fn of(tuning: &Tuning, at: i64) -> Self {
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
