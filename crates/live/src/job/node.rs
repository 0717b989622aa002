//! Whether jobs can run on a node.

use busbar_core::ledger::SwitchState;
use serde::{Deserialize, Serialize};

/// Whether jobs can run on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// Jobs can start there.
    #[default]
    Up,
    /// Nobody has heard of it yet. No job starts there.
    Awaited,
    /// No job starts there, and those that run go on.
    Drained {
        /// The reason, in words.
        reason: String,
    },
    /// Nobody knows what happens there. What runs there counts as running, with the power that it had.
    Down {
        /// The reason, in words.
        reason: String,
    },
}

impl NodeState {
    /// The state of a node that the daemon has switched: no job starts there.
    pub(crate) fn of_switched(switched: SwitchState) -> Self {
        let reason = match switched {
            SwitchState::Stopping => "it is being switched off",
            SwitchState::Off => "it is off",
            SwitchState::Starting => "it is being started",
        };
        NodeState::Drained { reason: reason.to_owned() }
    }
}
