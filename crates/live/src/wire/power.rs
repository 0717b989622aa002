//! Nodes, the budget and its use as clients see them.

use serde::{Deserialize, Serialize};

use crate::engine::Measurement;
use crate::job::NodeState;
use busbar_core::ledger::SwitchState;
use busbar_core::units::{Watts, json};

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
    /// What the node has and what is free of it, where nodes are of several kinds or jobs share them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<NodePart>,
}

/// What a node has, where nodes are of several kinds or jobs share them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NodePart {
    /// The partition whose own node it is.
    pub partition: String,
    /// The jobs that have a part of it, or all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<u64>,
    /// Its processors.
    pub processors: u32,
    /// Those that no job has.
    pub free_processors: u32,
    /// Its memory in MiB, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// As much of it as no job has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_memory_mib: Option<u32>,
    /// Its GPUs.
    pub gpus: u32,
    /// Those that no job has.
    pub free_gpus: u32,
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
    /// The feeds of the machine, each after the one above it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feeds: Vec<FeedPower>,
}

/// A feed: its limit, and what is drawn through it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FeedPower {
    /// Its name.
    pub name: String,
    /// The feed above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// How many nodes are below it.
    pub nodes: u32,
    /// The limit in force; `None` if there is none.
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    #[serde(rename = "limit_w", with = "json", default)]
    pub limit: Option<Watts>,
    /// What its nodes draw without jobs.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "base_w", with = "json")]
    pub base: Watts,
    /// The power that jobs hold on its nodes.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "held_w", with = "json")]
    pub held: Watts,
    /// The power left for further jobs, as far as this feed is concerned; `None` if it has no limit.
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    #[serde(rename = "free_w", with = "json", default)]
    pub free: Option<Watts>,
    /// The measured power of its nodes that were measured; nothing if none was.
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    #[serde(
        rename = "measured_w",
        with = "json",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub measured: Option<Watts>,
    /// Whether an operator has set the limit, rather than the machine file.
    pub set_by_operator: bool,
    /// Later limits.
    pub to_come: Vec<LimitFrom>,
    /// A message if jobs hold more than the limit allows, saying what is done about it.
    pub notice: Option<String>,
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
