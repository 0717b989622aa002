//! What was measured: the power of nodes, and what jobs consumed.

use serde::{Deserialize, Serialize};

use crate::job::Allotment;
use busbar_core::units::{Joules, Watts, json};

/// A measured power, and where it is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Measurement {
    /// The power.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "power_w", with = "json")]
    pub power: Watts,
    /// Whether an emulator made it up.
    pub is_emulated: bool,
    /// When it was measured, since 1970.
    // In milliseconds here.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "at_s", with = "json::thousandths")]
    pub at: u64,
    /// The parts of it that have meters of their own, such as a package or its memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<MeasuredDomain>,
}

/// The measured power of a part of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MeasuredDomain {
    /// The name of the part, such as `package-0`.
    pub name: String,
    /// The power.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "power_w", with = "json")]
    pub power: Watts,
}

/// What a job was measured to consume, on all of its nodes and from its start to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumption {
    /// The energy.
    pub(crate) energy: Joules,
    /// The mean power, rounded up.
    pub(crate) power: Watts,
    /// Whether an emulator made some of it up.
    pub(crate) is_emulated: bool,
    /// What the job had all the time; nothing if that changed.
    pub(crate) under: Option<Allotment>,
}
