//! What a limit is about that is not about the machine as a whole.

use std::fmt;

use serde::{Deserialize, Serialize};

use busbar_core::units::Watts;

/// What a limit is about that is not about the machine as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The nodes below a feed, by its name.
    Feed(String),
}

impl Scope {
    /// Its kind, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Scope::Feed(_) => "feed",
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Scope::Feed(name) => name,
        }
    }

    /// The one of this kind with this name; nothing if there is no such kind.
    pub(crate) fn of(kind: &str, name: String) -> Option<Self> {
        match kind {
            "feed" => Some(Scope::Feed(name)),
            _ => None,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} '{}'", self.kind(), self.name())
    }
}

/// A limit of a part of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopedLimit {
    /// What it is about.
    pub of: Scope,
    /// The limit, what the idle nodes draw included; `None` if there is none.
    pub power: Option<Watts>,
}
