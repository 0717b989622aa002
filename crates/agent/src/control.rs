//! One power domain as hardware, or an emulator, shows it.

use std::time::Duration;

use busbar_core::units::Watts;
use serde::{Deserialize, Serialize};

use crate::domain::{DomainKind, Effective};

pub mod files;
pub(crate) mod gpu;
pub(crate) mod hwmon;
pub(crate) mod nvml;
pub(crate) mod powercap;

/// One power domain: its limit and its meter. Every call goes to the hardware; nothing is remembered.
pub trait Control: Send {
    /// The kind of domain.
    fn kind(&self) -> DomainKind;

    /// What is read and written, such as `powercap intel-rapl:0`.
    fn source(&self) -> &str;

    /// Whether an emulator stands behind it.
    fn is_emulated(&self) -> bool;

    /// How far the hardware says that it can be limited. An error says why it cannot be limited at all.
    fn range(&self) -> Result<HardwareRange, ControlError>;

    /// The limit that is set.
    fn limit(&self) -> Result<Limit, ControlError>;

    /// Sets the limit, and puts it in force or not. What was set before stays if this fails.
    fn set_limit(&self, limit: Limit) -> Result<(), ControlError>;

    /// Checks whether the limit could be changed, without changing anything. Only a try tells whether it is locked.
    fn check_rights(&self) -> Result<(), ControlError>;

    /// Measures now.
    fn measure(&self) -> Result<Measure, ControlError>;

    /// How long the hardware may take until its power is within a new limit.
    fn settling_time(&self) -> Duration;
}

/// A limit exactly as hardware keeps it, so that it can be restored to the last digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// The limit in microwatts.
    pub(crate) microwatts: u64,
    /// Whether it is in force.
    pub(crate) enabled: bool,
}

impl Limit {
    /// A limit in force.
    pub(crate) fn of(watts: Watts) -> Self {
        Limit { microwatts: watts.milliwatts().saturating_mul(1000), enabled: true }
    }

    /// What it means for a budget. Fractions of a milliwatt are rounded up. A limit of nothing is none: no
    /// domain could keep it.
    pub(crate) fn effective(self) -> Effective {
        match self.enabled && self.microwatts > 0 {
            true => Effective::Limit(milliwatts(self.microwatts)),
            false => Effective::Unlimited,
        }
    }
}

/// How far hardware says that it can be limited; `None` is what it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HardwareRange {
    /// The lowest limit.
    pub(crate) lowest: Option<Watts>,
    /// The highest limit.
    pub(crate) highest: Option<Watts>,
}

/// What a meter shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// A counter of energy.
    Counter {
        /// What it shows, in microjoules.
        microjoules: u64,
        /// The largest value that it can show; the next one is 0.
        largest: u64,
    },
    /// The present power.
    Power(Watts),
    /// The present power, and a counter of energy beside it.
    Both {
        /// The present power.
        power: Watts,
        /// What the counter shows, in microjoules.
        microjoules: u64,
    },
}

/// Why hardware did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// The agent has not the rights.
    #[error(
        "no permission to {action} {place}: run the agent with rights to it (see 'busbar agent probe')"
    )]
    Denied {
        /// The attempted action.
        action: &'static str,
        /// The file or device.
        place: String,
    },
    /// Firmware has locked the limit.
    #[error(
        "{place} is locked, usually by the firmware: allow power limits to be changed in the BIOS settings"
    )]
    Locked {
        /// The file or device.
        place: String,
    },
    /// The domain is no longer there.
    #[error("{place} is gone")]
    Gone {
        /// The file or device.
        place: String,
    },
    /// The kernel or driver refused.
    #[error("cannot {action} {place}: {reason}")]
    Refused {
        /// The attempted action.
        action: &'static str,
        /// The file or device.
        place: String,
        /// What the system said.
        reason: String,
    },
    /// The value that was read is invalid.
    #[error("{place} contains '{text}', which is not a number")]
    Nonsense {
        /// The file or device.
        place: String,
        /// What was read, cut to a few characters.
        text: String,
    },
    /// The hardware cannot do this.
    #[error("{0}")]
    Unsupported(String),
}

/// Microwatts in whole milliwatts, rounded up.
pub(crate) fn milliwatts(microwatts: u64) -> Watts {
    Watts::from_milliwatts(microwatts.div_ceil(1000))
}
