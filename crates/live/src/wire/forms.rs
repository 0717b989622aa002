//! The form on the wire of types that are stored, too.
//!
//! What is stored never changes its form, and has the integers of the types: milliwatts, milliseconds, microjoules,
//! millionths. On the wire the same values are watts, seconds, joules and shares, and the keys say so. Each form here
//! names the fields of a type of [`job`](crate::job) again; the compiler sees to it that none is
//! missing.
#![allow(dead_code, reason = "a form is never made: it says how another type is written")]

use busbar_core::units::{Instant, Joules, Span, Watts, json};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::job::{
    After, Allotment, ChangeReason, End, EndReason, EventKind, JobOutcome, JobRequest, NodeState,
    Part, PartRequest, Scope, ScopedLimit,
};
use busbar_core::ledger::SwitchState;

/// The resources and conditions that a job asks for.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = JobRequest))]
#[serde(remote = "JobRequest", deny_unknown_fields)]
pub(crate) struct JobRequestForm {
    /// A name chosen by the user. Names need not be unique.
    name: String,
    /// The number of nodes, at least one.
    nodes: u32,
    /// The smallest and the largest number of nodes, if the job is moldable.
    #[serde(default)]
    moldable: Option<(u32, u32)>,
    /// The time limit on `nodes` nodes without a power cap.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "time_s", with = "json")]
    time: Span,
    /// The name of the application, by which its profile is found.
    #[serde(default)]
    application: Option<String>,
    /// Extra run time accepted in exchange for starting sooner: `10%` or `unbounded`.
    #[serde(default)]
    slowdown: Option<String>,
    /// Jobs that must end before this one starts.
    #[serde(default)]
    after: Vec<After>,
    /// Whether the job waits until it is released.
    #[serde(default)]
    held: bool,
    /// The account that the job's energy is counted for, as its user names it. Nothing depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<String>,
    /// What it asks of nodes that are of several kinds, or that jobs share.
    #[serde(default, skip_serializing_if = "PartRequest::is_nothing")]
    part: PartRequest,
}

/// A limit of a part of the machine.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ScopedLimit))]
#[serde(remote = "ScopedLimit")]
pub(crate) struct ScopedLimitForm {
    /// What it is about.
    of: Scope,
    /// The limit, what the idle nodes draw included; `None` if there is none.
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    #[serde(rename = "power_w", with = "json", default)]
    power: Option<Watts>,
}

/// A limit that may be missing.
mod optional_limit {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Present(#[serde(with = "ScopedLimitForm")] ScopedLimit);

    pub(super) fn serialize<S: Serializer>(
        limit: &Option<ScopedLimit>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        limit.clone().map(Present).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<ScopedLimit>, D::Error> {
        Ok(Option::<Present>::deserialize(deserializer)?.map(|Present(limit)| limit))
    }
}

/// A request that may be missing.
pub(super) mod optional_request {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Present(#[serde(with = "JobRequestForm")] JobRequest);

    pub(in crate::wire) fn serialize<S: Serializer>(
        request: &Option<JobRequest>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        request.clone().map(Present).serialize(serializer)
    }

    pub(in crate::wire) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<JobRequest>, D::Error> {
        let request: Option<Present> = Option::deserialize(deserializer)?;
        Ok(request.map(|Present(request)| request))
    }
}

/// The nodes and power that a job has.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Allotment))]
#[serde(remote = "Allotment")]
pub(crate) struct AllotmentForm {
    /// The nodes in order, each with its cap.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<CappedNode>))]
    #[serde(with = "capped_nodes")]
    nodes: Vec<(u32, Watts)>,
    /// Cores used on each node.
    cores: u32,
    /// The cap of the operating point, for every node.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "cap_w", with = "json")]
    cap: Watts,
    /// The time limit of the whole job at this point.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "time_s", with = "json")]
    time: Span,
    /// The power of the job on all nodes.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "power_w", with = "json")]
    power: Watts,
    /// The predicted speed, as a share of the speed on the nodes asked for without a cap.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(with = "json::millionths")]
    speed: u32,
    /// What the job has of each node, where nodes are of several kinds or jobs share them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<Box<Part>>,
}

/// A node with its cap.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub(crate) struct CappedNode {
    /// The number of the node.
    node: u32,
    /// The node's cap.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "cap_w", with = "json")]
    cap: Watts,
}

/// Nodes with their caps, each by the names of its parts.
mod capped_nodes {
    use super::*;

    pub(super) fn serialize<S: Serializer>(
        nodes: &[(u32, Watts)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(nodes.iter().map(|&(node, cap)| CappedNode { node, cap }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(u32, Watts)>, D::Error> {
        let nodes: Vec<CappedNode> = Vec::deserialize(deserializer)?;
        Ok(nodes.into_iter().map(|CappedNode { node, cap }| (node, cap)).collect())
    }
}

/// How a job ended. Its times are by the daemon's own clock.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = JobOutcome))]
#[serde(remote = "JobOutcome")]
pub(crate) struct JobOutcomeForm {
    /// When the job started, if it ever did.
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    #[serde(rename = "start_s", with = "json", default)]
    start: Option<Instant>,
    /// When the job was over.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "end_s", with = "json")]
    end: Instant,
    /// How its process ended, if it had one.
    how: Option<End>,
    /// Why the job was ended, if it did not end by itself.
    #[serde(rename = "why")]
    reason: Option<EndReason>,
    /// The energy it drew in all, as predicted by the model.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "energy_j", with = "json")]
    energy: Joules,
    /// The nodes it had at the end.
    nodes: Vec<u32>,
    /// The user who ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<u32>,
    /// How long it would have run at full speed, as predicted by the model, if that was recorded.
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    #[serde(
        rename = "full_speed_s",
        with = "json",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    full_speed: Option<Span>,
}

/// What was decided, or happened.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = EventKind))]
#[serde(remote = "EventKind", rename_all = "snake_case")]
pub(crate) enum EventKindForm {
    /// A daemon started.
    Began {
        /// The daemon's version.
        version: String,
        /// The policy it uses.
        policy: String,
    },
    /// The daemon stopped properly. Its jobs run on.
    Stopped,
    /// The limit in force changed, or what the machine draws without any job, or both were determined at the start.
    Limit {
        /// The limit, the machine's own draw included; `None` if there is no limit.
        #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
        #[serde(rename = "power_w", with = "json", default)]
        power: Option<Watts>,
        /// The power of the machine without jobs.
        #[cfg_attr(feature = "schema", schema(value_type = f64))]
        #[serde(rename = "base_w", with = "json")]
        base: Watts,
    },
    /// A job was submitted.
    Submitted {
        /// The job's number.
        job: u64,
        /// The number of its array and its index, if it is an element of one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        element: Option<(u64, u32)>,
    },
    /// A job was held, or released.
    Held {
        /// The job's number.
        job: u64,
        /// Whether the job is held now.
        held: bool,
        /// The user who did that, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<u32>,
    },
    /// A job starts.
    Started {
        /// The job's number.
        job: u64,
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The nodes and power it gets.
        #[cfg_attr(feature = "schema", schema(value_type = AllotmentForm))]
        #[serde(with = "AllotmentForm")]
        allotment: Allotment,
    },
    /// A job could not be started, and waits again.
    Withdrawn {
        /// The job's number.
        job: u64,
        /// Why it could not be started.
        reason: String,
    },
    /// A running job gets other nodes or power.
    Changed {
        /// The job's number.
        job: u64,
        /// The nodes and power it has from now on.
        #[cfg_attr(feature = "schema", schema(value_type = AllotmentForm))]
        #[serde(with = "AllotmentForm")]
        allotment: Allotment,
        /// Why it was changed.
        #[serde(rename = "because")]
        reason: ChangeReason,
    },
    /// The state of a node has changed.
    Node {
        /// The node's number.
        node: u32,
        /// The name by which people know it, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Its state from now on.
        state: NodeState,
        /// Where it is if the daemon has switched it off, or is switching it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        switched: Option<SwitchState>,
    },
    /// What a job that is over was measured to consume.
    Consumed {
        /// The job's number.
        job: u64,
        /// The energy.
        #[cfg_attr(feature = "schema", schema(value_type = f64))]
        #[serde(rename = "energy_j", with = "json")]
        energy: Joules,
        /// The mean power.
        #[cfg_attr(feature = "schema", schema(value_type = f64))]
        #[serde(rename = "power_w", with = "json")]
        power: Watts,
        /// Whether an emulator made some of it up.
        emulated: bool,
    },
    /// A running job was suspended; it draws nothing meanwhile.
    Suspended {
        /// The job's number.
        job: u64,
    },
    /// A suspended job goes on with what it had.
    Resumed {
        /// The job's number.
        job: u64,
    },
    /// A job was asked to end, or was killed.
    Ending {
        /// The job's number.
        job: u64,
        /// Why the job must end.
        #[serde(rename = "why")]
        reason: EndReason,
        /// Whether it was killed.
        forced: bool,
        /// The user who asked for it, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<u32>,
    },
    /// A job is over.
    Ended {
        /// The job's number.
        job: u64,
        /// How the job ended.
        #[cfg_attr(feature = "schema", schema(value_type = JobOutcomeForm))]
        #[serde(with = "JobOutcomeForm")]
        outcome: JobOutcome,
    },
    /// A message to the operator.
    Notice {
        /// The message.
        text: String,
        /// The limit that it is about, if a part of the machine has another one now, or it was determined at the start.
        #[cfg_attr(feature = "schema", schema(value_type = Option<ScopedLimitForm>))]
        #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_limit")]
        limit: Option<ScopedLimit>,
    },
}
