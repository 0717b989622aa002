//! Parts of nodes: what a job asks of nodes that are of several kinds or that jobs share, and what it has of them.

use serde::{Deserialize, Serialize};

/// What a job asks of nodes that are of several kinds, or that jobs share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct PartRequest {
    /// The partition whose nodes it may have; any nodes if it names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// Processors on all its nodes together. A job that does not say how many has whole nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<u32>,
    /// GPUs on all its nodes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// Memory on each of its nodes, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// Whether it has its nodes alone, where jobs share them, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exclusive: bool,
}

impl PartRequest {
    /// Whether nothing is asked for.
    pub(crate) fn is_nothing(&self) -> bool {
        *self == PartRequest::default()
    }
}

/// What a job has of each of its nodes, where these are of several kinds or jobs share them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Part {
    /// Processors of each node.
    pub processors: u32,
    /// Memory of each node, in MiB; 0 if nobody says how much there is.
    #[serde(default)]
    pub memory_mib: u32,
    /// GPUs of each node.
    #[serde(default)]
    pub gpus: u32,
    /// Which these are, by node; empty if the job has its nodes alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
}

/// Which processors and GPUs of a node a job has, by their numbers on the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Place {
    /// The processors, in order.
    pub cores: Vec<u32>,
    /// The GPUs, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<u32>,
}
