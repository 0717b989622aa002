//! The fields of a row, and what they are called.

use std::fmt;
use std::str::FromStr;

use super::value;

/// There is no such field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no field '{0}'; valid fields: application, nodes, cores, cap, time, power, origin"
)]
pub struct UnknownField(String);

/// What a row says, piece by piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// What the application is called.
    Application,
    /// The number of nodes.
    Nodes,
    /// Cores used in each node.
    Cores,
    /// The power cap, in watts.
    Cap,
    /// How long it took, in seconds.
    Time,
    /// What all sockets of all its nodes drew, in watts.
    Power,
    /// Whether it was measured, emulated or predicted.
    Origin,
}

impl Field {
    /// Every field, in the order in which they are written.
    pub const ALL: [Field; 7] = [
        Field::Application,
        Field::Nodes,
        Field::Cores,
        Field::Cap,
        Field::Time,
        Field::Power,
        Field::Origin,
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        self.column().split('_').next().unwrap_or_default()
    }

    /// The column it stands in unless a layout says otherwise.
    pub fn column(self) -> &'static str {
        match self {
            Field::Application => "application",
            Field::Nodes => "nodes",
            Field::Cores => "cores",
            Field::Cap => "cap_w",
            Field::Time => "time_s",
            Field::Power => "power_w",
            Field::Origin => "origin",
        }
    }

    /// Whether the text can be read as this field; if not, why.
    pub(super) fn check(self, text: &str) -> Result<(), String> {
        match self {
            Field::Application => value::name(text).map(drop),
            Field::Nodes | Field::Cores => value::count(text).map(drop),
            Field::Cap => value::cap(text).map(drop),
            Field::Power => value::power(text).map(drop),
            Field::Time => value::time(text).map(drop),
            Field::Origin => value::origin(text).map(drop),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reads `time` or `time_s`.
impl FromStr for Field {
    type Err = UnknownField;

    fn from_str(text: &str) -> Result<Self, UnknownField> {
        let text = text.trim();
        let named = |field: &Field| {
            [field.name(), field.column()].iter().any(|name| name.eq_ignore_ascii_case(text))
        };
        let found = Field::ALL.into_iter().find(named);
        found.ok_or_else(|| UnknownField(text.to_owned()))
    }
}
