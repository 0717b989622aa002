//! Policies by name: text that round-trips, such as `easy` or `name(key=value)`.

use std::fmt;
use std::str::FromStr;

use crate::call::{Call, CallError};
use crate::policy::{Conservative, Easy, Fcfs, Policy};

/// A policy as it is named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicySpec {
    /// First come, first served.
    Fcfs,
    /// EASY backfilling.
    Easy,
    /// Conservative backfilling.
    Conservative,
}

/// Why text does not name a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// There is no policy of this name.
    #[error("unknown policy '{name}'; valid policies: {valid}")]
    Unknown {
        /// What was written.
        name: String,
        /// What could have been.
        valid: String,
    },
    /// The text or its parameters are wrong.
    #[error("policy {0}")]
    Call(CallError),
}

impl PolicySpec {
    /// Every policy there is.
    pub const ALL: [PolicySpec; 3] = [PolicySpec::Fcfs, PolicySpec::Easy, PolicySpec::Conservative];

    /// The policy's name, without parameters.
    pub fn name(&self) -> &'static str {
        match self {
            PolicySpec::Fcfs => "fcfs",
            PolicySpec::Easy => "easy",
            PolicySpec::Conservative => "conservative",
        }
    }

    /// A policy ready to decide.
    pub fn build(&self) -> Box<dyn Policy> {
        match self {
            PolicySpec::Fcfs => Box::new(Fcfs),
            PolicySpec::Easy => Box::new(Easy::default()),
            PolicySpec::Conservative => Box::new(Conservative::new()),
        }
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PolicySpec {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let call: Call = text.parse().map_err(PolicyError::Call)?;
        let found = PolicySpec::ALL.into_iter().find(|policy| policy.name() == call.name);
        let Some(policy) = found else {
            let valid = PolicySpec::ALL.map(|policy| policy.to_string()).join(", ");
            return Err(PolicyError::Unknown { name: call.name, valid });
        };
        call.parameters(&[]).map_err(PolicyError::Call)?;
        Ok(policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for policy in PolicySpec::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert_eq!(" easy() ".parse(), Ok(PolicySpec::Easy));
    }

    #[test]
    fn mistakes_list_what_is_valid() {
        let error = |text: &str| text.parse::<PolicySpec>().unwrap_err().to_string();
        assert_eq!(
            error("eazy"),
            "unknown policy 'eazy'; valid policies: fcfs, easy, conservative"
        );
        assert_eq!(error("easy(depth=3)"), "policy 'easy' has no parameter 'depth'; it takes none");
        assert!(error("easy(").contains("closing"), "{}", error("easy("));
    }
}
