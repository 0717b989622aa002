//! When idle nodes are switched off: a rule of the site, for every policy alike.

use std::fmt;
use std::str::FromStr;

use crate::units::{Length, LengthError, Span, parse_length};

mod decision;

pub use decision::{Directions, Switcher, Turned};

/// Nodes that have been idle for some time are switched off, but for some that are kept in reserve.
///
/// It is written `idle for 10min, keep 5 spare`. Nodes are started again when jobs wait that could be fed on
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SwitchOff {
    /// How long a node has to be idle.
    pub after: Span,
    /// So many idle nodes stay on.
    pub spare: u32,
}

/// Why text is no rule for switching nodes off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwitchOffError {
    /// It has another form.
    #[error("'{0}' is not a rule for switching nodes off; write 'idle for 10min, keep 5 spare'")]
    Form(String),
    /// The length of time is wrong.
    #[error("idle for how long: {0}")]
    After(#[from] LengthError),
    /// The number of nodes is wrong.
    #[error("keep how many spare: '{0}' is not a number of nodes")]
    Spare(String),
}

impl FromStr for SwitchOff {
    type Err = SwitchOffError;

    fn from_str(text: &str) -> Result<Self, SwitchOffError> {
        let wrong = || SwitchOffError::Form(text.trim().to_owned());
        let (idle, keep) = match text.split_once(',') {
            Some((idle, keep)) => (idle.trim(), Some(keep.trim())),
            None => (text.trim(), None),
        };
        let after = parse_length(idle.strip_prefix("idle for ").ok_or_else(wrong)?)?;
        let spare = match keep {
            None => 0,
            Some(keep) => {
                let number = keep.strip_prefix("keep ").and_then(|keep| keep.strip_suffix("spare"));
                let number = number.ok_or_else(wrong)?.trim();
                number.parse().map_err(|_| SwitchOffError::Spare(number.to_owned()))?
            }
        };
        Ok(SwitchOff { after, spare })
    }
}

impl fmt::Display for SwitchOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "idle for {}, keep {} spare", Length(self.after), self.spare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_as_people_say_it() {
        let rule: SwitchOff = "idle for 10 min, keep 5 spare".parse().unwrap();
        assert_eq!(rule, SwitchOff { after: Span::from_secs(600), spare: 5 });
        assert_eq!(rule.to_string(), "idle for 10min, keep 5 spare");
        assert_eq!(rule.to_string().parse(), Ok(rule));
        let plain: SwitchOff = " idle for 1h30m ".parse().unwrap();
        assert_eq!(plain, SwitchOff { after: Span::from_secs(5400), spare: 0 });
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| text.parse::<SwitchOff>().unwrap_err().to_string();
        assert!(error("10min").contains("write 'idle for 10min, keep 5 spare'"));
        assert!(error("idle for 10min, 5").contains("write 'idle for 10min, keep 5 spare'"));
        assert!(error("idle for ten").contains("idle for how long: 'ten' has no known unit"));
        assert!(error("idle for 1h, keep -1 spare").contains("'-1' is not a number of nodes"));
    }
}
