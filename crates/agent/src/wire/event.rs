//! What happens on a node without being asked for.

use std::fmt;

use busbar_core::units::Watts;
use serde::{Deserialize, Serialize};

#[cfg(doc)]
use super::Request;
use super::SetReport;
use crate::domain::{DomainName, Effective};
use crate::reading::Reading;

/// What happens on a node without being asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The domain draws no more than its cap, as its meter shows.
    Verified {
        /// The domain.
        name: DomainName,
        /// Its cap.
        cap: Watts,
        /// Its power.
        power: Reading<Watts>,
    },
    /// The domain draws more than its cap, although the limit was read back: a budget must count what it
    /// draws.
    Exceeded {
        /// The domain.
        name: DomainName,
        /// Its cap.
        cap: Watts,
        /// Its power.
        power: Reading<Watts>,
    },
    /// Whether the domain obeys its cap cannot be told.
    Unverified {
        /// The domain.
        name: DomainName,
        /// Its cap.
        cap: Watts,
        /// Why not.
        reason: String,
    },
    /// Somebody else changed the limit of a domain. If it was raised, the agent has set it again, and
    /// `effective` is what holds after that.
    Changed {
        /// The domain.
        name: DomainName,
        /// The limit that the agent expected.
        expected: Effective,
        /// The limit that it found.
        found: Effective,
        /// The limit that holds now.
        effective: Effective,
    },
    /// A domain cannot be read any more.
    Lost {
        /// The domain.
        name: DomainName,
        /// The reason, in words.
        reason: String,
    },
    /// A domain that was lost can be read again.
    Found {
        /// The domain.
        name: DomainName,
        /// The limit that holds.
        effective: Effective,
    },
    /// The controller was silent for longer than its lease, and the agent has fallen to the safe cap.
    LeaseEnded {
        /// The previous holder.
        controller: String,
        /// What became of the caps.
        report: SetReport,
    },
    /// A change could not be written to the log or the state, for example because the disk is full.
    Unrecorded {
        /// The reason, in words.
        reason: String,
    },
    /// The agent stops. If a controller holds the lease, the caps stay, unless it answers with
    /// [`Request::Release`] at once.
    Stopping,
}

/// What happened, for a log.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Verified { name, cap, power } => {
                write!(f, "{name} keeps its cap of {cap}: {power}")
            }
            Event::Exceeded { name, cap, power } => {
                write!(f, "{name} exceeds its cap of {cap}: {power}")
            }
            Event::Unverified { name, cap, reason } => {
                write!(f, "it is unknown whether {name} keeps its cap of {cap}: {reason}")
            }
            Event::Changed { name, expected, found, effective } => write!(
                f,
                "another program changed the limit of {name} from {expected} to {found}; now: {effective}"
            ),
            Event::Lost { name, reason } => write!(f, "{name} is lost: {reason}"),
            Event::Found { name, effective } => {
                write!(f, "{name} is found; its limit: {effective}")
            }
            Event::LeaseEnded { controller, report } => write!(
                f,
                "{controller} did not renew its lease; the node is limited to {}",
                report.counted
            ),
            Event::Unrecorded { reason } => write!(f, "a change is not recorded: {reason}"),
            Event::Stopping => f.write_str("the agent stops"),
        }
    }
}
