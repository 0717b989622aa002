//! The fields of a row, and what they are called.

use std::fmt;
use std::str::FromStr;

use super::value;

/// There is no such field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no field '{0}'; valid fields: {fields}", fields = Field::ALL.map(Field::name).join(", "))]
pub struct UnknownField(String);

/// What a row says, piece by piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The name of the application.
    Application,
    /// The number of nodes.
    Nodes,
    /// Cores used in each node.
    Cores,
    /// The power cap of the processors, in watts.
    Cap,
    /// How long it took, in seconds.
    Time,
    /// What all sockets of all its nodes drew, in watts.
    Power,
    /// Whether it was measured, emulated, bounded or predicted.
    Origin,
    /// The size of the problem, where one application was run with several.
    Size,
    /// The power cap of the memory, in watts.
    MemoryCap,
    /// The power cap of the GPUs, in watts.
    GpuCap,
    /// What all sockets of all its nodes took, in joules, where there is no power.
    Energy,
}

/// The cap of a node of two sockets, as published sweeps call it.
pub(super) const CAP_OF_BOTH_SOCKETS: &str = "cap_w_both_sockets";

impl Field {
    /// Every field.
    pub(crate) const ALL: [Field; 11] = [
        Field::Application,
        Field::Nodes,
        Field::Cores,
        Field::Cap,
        Field::Time,
        Field::Power,
        Field::Origin,
        Field::Size,
        Field::MemoryCap,
        Field::GpuCap,
        Field::Energy,
    ];

    /// Those that are written, in this order.
    pub(crate) const WRITTEN: [Field; 7] = [
        Field::Application,
        Field::Nodes,
        Field::Cores,
        Field::Cap,
        Field::Time,
        Field::Power,
        Field::Origin,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Field::Application => "application",
            Field::Nodes => "nodes",
            Field::Cores => "cores",
            Field::Cap => "cap",
            Field::Time => "time",
            Field::Power => "power",
            Field::Origin => "origin",
            Field::Size => "size",
            Field::MemoryCap => "memory_cap",
            Field::GpuCap => "gpu_cap",
            Field::Energy => "energy",
        }
    }

    /// The column it stands in unless a layout says otherwise.
    pub(crate) fn column(self) -> &'static str {
        self.columns()[0]
    }

    /// The columns it is known by, its own first: names that published tables have and that mean nothing else.
    pub(super) fn columns(self) -> &'static [&'static str] {
        match self {
            Field::Application => &["application", "app"],
            Field::Nodes => &["nodes"],
            Field::Cores => &["cores", "cores_per_node"],
            Field::Cap => &["cap_w", "socket_cap_w", CAP_OF_BOTH_SOCKETS],
            Field::Time => &["time_s", "runtime_s"],
            Field::Power => &["power_w"],
            Field::Origin => &["origin"],
            Field::Size => &["size", "problem_size", "input", "input_size", "class"],
            Field::MemoryCap => &["memory_cap_w", "socket_memory_cap_w"],
            Field::GpuCap => &["gpu_cap_w"],
            Field::Energy => &["energy_j"],
        }
    }

    /// Whether a table can do without it.
    pub(super) fn is_optional(self) -> bool {
        let optional = [Field::Origin, Field::Size, Field::MemoryCap, Field::GpuCap, Field::Energy];
        optional.contains(&self)
    }

    /// By what several columns of it are held apart: names are joined, watts and joules are added.
    pub(super) fn joint(self) -> Option<char> {
        match self {
            Field::Application => Some('/'),
            Field::Power | Field::Energy => Some('+'),
            _ => None,
        }
    }

    /// Whether the text can be read as this field; if not, why.
    pub(super) fn check(self, text: &str) -> Result<(), String> {
        match self {
            Field::Application | Field::Size => value::name(text).map(drop),
            Field::Nodes | Field::Cores => value::count(text).map(drop),
            Field::Cap | Field::MemoryCap | Field::GpuCap => value::cap(text).map(drop),
            Field::Power => value::power(text).map(drop),
            Field::Time => value::time(text).map(drop),
            Field::Energy => value::energy(text).map(drop),
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
