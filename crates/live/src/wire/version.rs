//! The version of the protocol, and who understands whom.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The version of the protocol that this program speaks.
pub const PROTOCOL: Protocol = Protocol { major: 2, minor: 1 };

/// A version of the protocol, written as `1.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Protocol {
    /// Different major versions do not understand each other.
    pub(crate) major: u32,
    /// A newer minor version has more fields.
    pub(crate) minor: u32,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl From<Protocol> for String {
    fn from(protocol: Protocol) -> String {
        protocol.to_string()
    }
}

impl TryFrom<String> for Protocol {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parts = text.split_once('.');
        let parts =
            parts.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        let (major, minor) = parts
            .ok_or_else(|| format!("'{text}' is not a protocol version such as {PROTOCOL}"))?;
        Ok(Protocol { major, minor })
    }
}

impl Protocol {
    /// The version of clients and daemons that do not state theirs.
    pub(crate) const FIRST: Protocol = Protocol { major: 1, minor: 0 };

    /// Why a daemon of this program does not understand a request of that version, and what to update; `None` if it
    /// does.
    pub(crate) fn mismatch(self) -> Option<String> {
        let advice = match self.major.cmp(&PROTOCOL.major) {
            Ordering::Equal => return None,
            Ordering::Less => {
                "the client is older than the daemon: use the busbar that is installed with the daemon; a program of \
                 your own writes \"protocol\": \"2.0\", and power in watts, times in seconds and energy in joules"
            }
            Ordering::Greater => {
                "the daemon is older than the client: update the daemon and restart it, or use the busbar that is \
                 installed with the daemon"
            }
        };
        let version = env!("CARGO_PKG_VERSION");
        Some(format!(
            "the request is of protocol {self}, and this daemon (Busbar {version}) uses {PROTOCOL}; {advice}"
        ))
    }
}
