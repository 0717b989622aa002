//! The interface to what jobs run on: the daemon asks, an engine acts and reports.
//!
//! Nothing here waits. The daemon hands over [`Order`]s, several at once, each with a [`Ticket`], and goes on.
//! Whether an order was carried out, and whatever else happens, the engine tells by [`Report`]s. An order counts
//! as carried out only when its report says so: until then a job counts at its old, higher draw, since nothing
//! that takes more power is ordered before everything that frees power was confirmed
//! ([`pipeline`](crate::control::daemon)).
//!
//! A job may have to be started more than once; each time is an [`Attempt`]. An engine runs an attempt
//! once or not at all, whatever happens to the daemon meanwhile, and can tell after a restart what
//! happened to it.
//!
//! Engines whose acts are in force when a call returns implement [`Immediate`], and become an [`Engine`] in
//! [`AtOnce`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::job::{Allotment, Attempt};
use busbar_core::units::{Span, Watts, json};

mod arrival;
mod at_once;
mod emulated_power;
mod latest;
mod measurement;
mod order;
mod recording;
mod report;

pub use arrival::Arrival;
pub(crate) use arrival::Underway;
pub use at_once::{AtOnce, Immediate};
pub use emulated_power::EmulatedPower;
pub(crate) use latest::Latest;
pub use measurement::{Consumption, MeasuredDomain, Measurement};
pub use order::{Launch, Order, Power, Signal, Ticket};
pub use recording::{Call, Recording};
pub(crate) use report::ago;
pub use report::{EngineError, Found, Report};

/// How long an engine may take to answer an order, unless it is configured.
pub const USUAL_DEADLINE: Span = Span::from_secs(30);

/// What jobs run on.
pub trait Engine: Send {
    /// A description for users.
    fn name(&self) -> &'static str;

    /// The nodes in the order of their numbers, as far as the engine knows more of them than their number.
    fn nodes(&self) -> Vec<NodeInfo> {
        Vec::new()
    }

    /// The name of a node, if it has one.
    fn node_name(&self, node: u32) -> Option<String> {
        let _ = node;
        None
    }

    /// Whether it chooses the nodes of jobs, where the policy does not: it [says](Report::Placed) which they are. An order to
    /// start is confirmed before, and what such a job draws counts from then on.
    fn chooses_nodes(&self) -> bool {
        false
    }

    /// Hands over orders, each of which is [confirmed](Report::Confirmed) or [fails](Report::Failed) later.
    /// Orders about different jobs may be carried out in any order.
    fn request(&mut self, orders: Vec<(Ticket, Order)>);

    /// What has happened since the last call.
    fn reports(&mut self) -> Vec<Report>;

    /// Finds out, after a restart, what happened to an attempt. One that did not begin never will.
    fn find(&mut self, attempt: Attempt) -> Result<Found, EngineError>;

    /// After a restart, an attempt runs as far as is known, and has this; or one of these, while a change is not
    /// confirmed.
    fn adopted(&mut self, attempt: Attempt, may_have: &[Allotment]) {
        let _ = (attempt, may_have);
    }

    /// How far it has got with what it lowers by itself. An order that takes power is given only when everything
    /// that was begun before is over.
    fn lowered(&self) -> Lowered {
        Lowered::default()
    }

    /// Removes what is kept of an attempt that is over and recorded; this may happen later.
    fn forget(&mut self, attempt: Attempt);

    /// The jobs that came through the engine and are not over, as the daemon has written them down, each with the attempt
    /// that runs, or with number 0 if it waits; and the latest of those that have run. Whatever else the engine has in its queue is news.
    fn recall(&mut self, jobs: Vec<(Attempt, String)>, done: Vec<String>) {
        let _ = (jobs, done);
    }

    /// A job that came through the engine was taken in; this is its last attempt, with number 0 if it has none.
    fn accepted(&mut self, handle: &str, attempt: Attempt) {
        let _ = (handle, attempt);
    }

    /// A job that came through the engine cannot be taken in.
    fn refuse(&mut self, handle: &str, reason: &str) {
        let _ = (handle, reason);
    }

    /// Why the jobs wait that came through the engine, all of them, by what it calls them: for users who look for them where
    /// they submitted them.
    fn explain(&mut self, waits: BTreeMap<String, Wait>) {
        let _ = waits;
    }

    /// A job that came through the engine was cancelled or dropped before it started.
    fn dismiss(&mut self, handle: &str) {
        let _ = handle;
    }

    /// The limit in force, for engines that admit jobs by themselves.
    fn limit(&mut self, limit: Option<Watts>) {
        let _ = limit;
    }

    /// Whether it can switch nodes off and on.
    fn can_switch(&self) -> bool {
        false
    }

    /// Begins to switch a node, which is expected to take so long. When it is [done](Report::Switched), that is reported,
    /// and not before. What was asked for already, before a restart perhaps, may be asked for again.
    fn switch(&mut self, node: u32, to: Power, expected: Span) {
        let _ = (node, to, expected);
    }

    /// In how long it will have something to report, if it knows.
    fn next_report(&self) -> Option<Span> {
        None
    }

    /// Why the daemon cannot accept jobs itself, if so: they come through the engine alone. A sentence for those who submit.
    fn refuses_jobs(&self) -> Option<&'static str> {
        None
    }

    /// How many nodes draw from the same budget and are not the daemon's.
    fn others(&self) -> u32 {
        0
    }

    /// How long it takes for what it does beside the daemon's cycles, if it does anything there.
    fn pace(&self) -> Option<EnginePace> {
        None
    }

    /// The daemon is alive: engines whose nodes need to hear that tell them.
    fn renew(&mut self) {}
}

/// A node as an engine knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeInfo {
    /// The name by which people know it.
    pub name: String,
    /// The lowest and the highest cap that it can be given, if it can be capped.
    pub caps: Option<(Watts, Watts)>,
}

/// How far an engine has got with what it lowers by itself, such as nodes that a job has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lowered {
    /// How many times it has begun to lower something.
    pub begun: u64,
    /// How many of these, from the first on, are over, so that what was freed is free.
    pub over: u64,
    /// Whether one of the others may take long, because its node cannot be reached.
    pub is_stuck: bool,
}

/// Why a job waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The reason in words, as `busbar queue` has it.
    pub reason: String,
    /// When it is expected to start, in seconds since 1970, if somebody has worked that out.
    pub expected: Option<i64>,
}

/// How long an engine takes for what it does beside the daemon's cycles, in a thread of its own: the longest of the last
/// thousand times. What it spends in other programs is not its own.
// In microseconds here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EnginePace {
    /// How often it has looked at what jobs run on.
    pub looks: u64,
    /// The longest look.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "longest_look_s", with = "json::millionths")]
    pub longest_look: u64,
    /// The longest part of a look that was its own.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "longest_own_look_s", with = "json::millionths")]
    pub longest_own_look: u64,
    /// The longest time in which orders were carried out together.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "longest_act_s", with = "json::millionths")]
    pub longest_act: u64,
    /// The longest part of that which was its own.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "longest_own_act_s", with = "json::millionths")]
    pub longest_own_act: u64,
}
