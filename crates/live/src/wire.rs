//! Requests of clients and answers of the daemon: a line of JSON for each.
//! [`docs/reference/live.md`](https://docs.rs/busbar) lists them.
//!
//! # Units
//!
//! The key of a quantity ends in its unit: watts (`power_w`), seconds (`time_s`), joules (`energy_j`), as exact decimals
//! ([`busbar_core::units::json`]). Points in time are seconds since 1970, unless they are by the daemon's own clock. What is
//! stored has a form of its own, in the integers of the types; `forms` gives such types their form on the wire.
//!
//! # Versions
//!
//! The protocol has a version, [`PROTOCOL`], which `busbar status --json` shows. Within a major version,
//! requests and answers only gain fields, and these have defaults; so a missing field is not an error.
//! There may be new requests, which an older daemon refuses. Anything else raises the major version.
//!
//! - Answers: a client ignores fields that it does not know.
//! - Requests state their version: `{"protocol": "2.0", "show": {"job": 7}}`. A request of another major version is
//!   refused, with what to update; one that states none is of version 1.0, whose clients did not have to. A field that
//!   the daemon does not know is refused, because it may be a misspelt one, unless the client's minor version is newer than the
//!   daemon's: then it is ignored.
//!
//! Version 2.1 has the request `limit`, and `feeds` in the answer about the budget.
//!
//! Version 1 had milliwatts, milliseconds, microjoules and millionths, and keys without units.

pub mod finished;
mod forecast;
mod forms;
mod history;
mod jobs;
mod message;
mod object;
mod power;
mod refusal;
mod reply;
mod request;
mod status;
#[cfg(test)]
mod tests;
mod version;

pub use forecast::{BudgetChange, Forecast, ForecastLine, ForecastRequest};
pub use history::HistoryLine;
pub use jobs::{Answer, ArrayDetails, JobDetails, JobLine, Priority, Private, State};
pub use message::{Answers, ClientGone, Message, ReplyTo, Waiting, answers};
pub use object::Object;
pub use power::{FeedPower, LimitFrom, MeasuredPower, NodeLine, NodePart, PowerFrom, PowerState};
pub use refusal::{Refusal, RefusalKind};
pub use reply::Reply;
pub use request::{Request, Sent, Submission};
pub use status::{CycleTimes, CyclesWithin, Proposal, Status};
pub use version::{PROTOCOL, Protocol};
