//! The power domains of a node: what they are called, how far they can be capped, and what limit holds.

use std::fmt;

use busbar_core::units::Watts;
use serde::{Deserialize, Serialize};

/// The name of a domain on its node, such as `package-0`, `dram-1` or `gpu-0`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DomainName(String);

impl DomainName {
    /// The `number`th domain of a kind, from 0.
    pub(crate) fn new(kind: DomainKind, number: usize) -> Self {
        DomainName(format!("{kind}-{number}"))
    }

    /// A name that somebody wrote. Whether there is such a domain is for the node to say.
    pub(crate) fn written(name: &str) -> Self {
        DomainName(name.to_owned())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A kind of power domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DomainKind {
    /// A processor package: its cores and caches, without the memory modules.
    Package,
    /// The memory modules of a package.
    Dram,
    /// A GPU with its memory.
    Gpu,
}

impl fmt::Display for DomainKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DomainKind::Package => "package",
            DomainKind::Dram => "dram",
            DomainKind::Gpu => "gpu",
        })
    }
}

/// Where a value was found: whether it was read, configured by the site, or assumed by the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// The hardware says so.
    Read,
    /// The site's configuration says so.
    Configured,
    /// Nobody says so: the agent assumes it.
    Assumed,
}

/// The caps that a domain, or a node, can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapRange {
    /// The lowest cap, in milliwatts on the wire.
    pub lowest: Watts,
    /// The highest cap, in milliwatts on the wire.
    pub highest: Watts,
}

impl CapRange {
    /// The cap within the range that is next to `cap`.
    pub(crate) fn clamp(&self, cap: Watts) -> Watts {
        cap.clamp(self.lowest, self.highest.max(self.lowest))
    }
}

/// The limit that holds for a domain now, as far as the agent can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effective {
    /// This limit was read back.
    Limit(Watts),
    /// No limit holds: the domain draws what it can.
    Unlimited,
    /// The limit cannot be read, so it must be counted as if there were none.
    Unknown,
}

impl Effective {
    /// What a budget must count for the domain: the limit, or what it can draw without one.
    pub(crate) fn counted(self, rated: Watts) -> Watts {
        match self {
            Effective::Limit(limit) => limit,
            Effective::Unlimited | Effective::Unknown => rated,
        }
    }
}

impl fmt::Display for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effective::Limit(limit) => limit.fmt(f),
            Effective::Unlimited => f.write_str("no limit"),
            Effective::Unknown => f.write_str("unknown"),
        }
    }
}
