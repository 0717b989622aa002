//! The history: what was decided about jobs and nodes, and what happened to them.

use serde::{Deserialize, Serialize};

use super::allotment::Allotment;
use super::node::NodeState;
use super::outcome::{EndReason, JobOutcome};
use super::scope::ScopedLimit;
use busbar_core::ledger::SwitchState;
use busbar_core::units::{Instant, Joules, Watts};

/// A decision, or something that happened. In the order in which they are written, events tell which job
/// held how much power when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When it happened, by the daemon's clock.
    pub at: Instant,
    /// What happened.
    #[serde(rename = "what")]
    pub kind: EventKind,
}

/// What was decided, or happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
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
        power: Option<Watts>,
        /// The power of the machine without jobs.
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
        energy: Joules,
        /// The mean power.
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
        outcome: JobOutcome,
    },
    /// A message to the operator.
    Notice {
        /// The message.
        text: String,
        /// The limit that it is about, if a part of the machine has another one now, or it was determined at the start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<ScopedLimit>,
    },
}

impl EventKind {
    /// A message to the operator.
    pub fn notice(text: impl Into<String>) -> Self {
        EventKind::Notice { text: text.into(), limit: None }
    }

    /// The job that the event is about, if it is about one.
    pub fn job(&self) -> Option<u64> {
        match self {
            EventKind::Submitted { job, .. }
            | EventKind::Held { job, .. }
            | EventKind::Started { job, .. }
            | EventKind::Withdrawn { job, .. }
            | EventKind::Changed { job, .. }
            | EventKind::Consumed { job, .. }
            | EventKind::Suspended { job }
            | EventKind::Resumed { job }
            | EventKind::Ending { job, .. }
            | EventKind::Ended { job, .. } => Some(*job),
            EventKind::Began { .. }
            | EventKind::Stopped
            | EventKind::Limit { .. }
            | EventKind::Node { .. }
            | EventKind::Notice { .. } => None,
        }
    }
}

/// Why a running job was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangeReason {
    /// The policy decided so.
    Policy,
    /// The budget fell, and the job was given less.
    Squeezed,
    /// The budget rose, and the job got back what it had.
    Restored,
    /// The engine has chosen its nodes.
    Placed,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of a daemon that did not yet record which user asked for something.
    #[test]
    fn older_files_can_be_read() {
        let event = |text: &str| serde_json::from_str::<Event>(text).unwrap().kind;
        let held = event(r#"{"at":1,"what":{"held":{"job":7,"held":true}}}"#);
        assert_eq!(held, EventKind::Held { job: 7, held: true, by: None });
        let ending =
            event(r#"{"at":1,"what":{"ending":{"job":7,"why":"cancelled","forced":false}}}"#);
        let expected =
            EventKind::Ending { job: 7, reason: EndReason::Cancelled, forced: false, by: None };
        assert_eq!(ending, expected);
        let outcome =
            r#"{"start":null,"end":5,"how":null,"why":"cancelled","energy":0,"nodes":[]}"#;
        let outcome: JobOutcome = serde_json::from_str(outcome).unwrap();
        assert_eq!((outcome.reason, outcome.by), (Some(EndReason::Cancelled), None));
        // Without a user, the form is the same as before.
        let text = serde_json::to_string(&Event { at: Instant::from_millis(1), kind: held });
        assert_eq!(text.unwrap(), r#"{"at":1,"what":{"held":{"job":7,"held":true}}}"#);
    }
}
