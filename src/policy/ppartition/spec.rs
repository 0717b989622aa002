//! The parameters of PPartition, as text that round-trips.

use std::fmt;
use std::str::FromStr;

use crate::call::{Call, CallError};
use crate::policy::three_queues::Queueing;
use crate::units::Share;

/// PPartition with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PpartitionSpec {
    /// The queues.
    pub queueing: Queueing,
    /// What a job is given while power is free.
    pub first: First,
    /// The fewest processors a job starts on, of those it asks for.
    pub fewest: Share,
}

/// What a job is given while power is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum First {
    /// Its share of the machine's power.
    #[default]
    Share,
    /// As much as its processors can use.
    Uncapped,
}

impl FromStr for First {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "share" => Ok(First::Share),
            "uncapped" => Ok(First::Uncapped),
            _ => Err("valid: share, uncapped"),
        }
    }
}

impl fmt::Display for First {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            First::Share => "share",
            First::Uncapped => "uncapped",
        })
    }
}

/// As in the paper.
impl Default for PpartitionSpec {
    fn default() -> Self {
        let (queueing, first) = (Queueing::default(), First::default());
        PpartitionSpec { queueing, first, fewest: Share::percent(0) }
    }
}

impl PpartitionSpec {
    pub(in crate::policy) fn from_call(call: &Call) -> Result<Self, CallError> {
        let mut spec = PpartitionSpec::default();
        for (key, value) in call.parameters(&["queues", "dispatch", "first", "fewest"])? {
            match key.as_str() {
                "first" => spec.first = call.value(key, value)?,
                "fewest" => spec.fewest = call.value(key, value)?,
                _ => {
                    spec.queueing.take(call, key, value)?;
                }
            }
        }
        if spec.fewest > Share::WHOLE {
            let (name, key) = (call.name.clone(), "fewest".to_owned());
            let why = format!("{} is more than a job asks for", spec.fewest);
            return Err(CallError::Value { name, key, why });
        }
        Ok(spec)
    }

    /// Parameters that are not as usual, each as `key=value`.
    pub(in crate::policy) fn unusual(&self) -> Vec<String> {
        let mut parameters = self.queueing.unusual();
        let usual = PpartitionSpec::default();
        if self.first != usual.first {
            parameters.push(format!("first={}", self.first));
        }
        if self.fewest != usual.fewest {
            parameters.push(format!("fewest={}", self.fewest));
        }
        parameters
    }
}
