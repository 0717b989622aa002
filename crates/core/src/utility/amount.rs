//! Amounts of utility.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

use serde::Serialize;

use crate::units::{QuantityError, parse_decimal};

/// An amount of utility, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Utility(pub(super) u64);

impl Utility {
    /// A utility of zero.
    pub const ZERO: Utility = Utility(0);
    /// The most a task may be worth: sums of it stay far from overflow.
    pub(crate) const LARGEST: Utility = Utility(1_000_000_000_000);

    /// This many millionths.
    pub const fn from_millionths(millionths: u64) -> Self {
        Utility(millionths)
    }

    /// So many whole units.
    pub const fn whole(units: u32) -> Self {
        Utility(units as u64 * 1_000_000)
    }

    /// The value in millionths.
    #[inline]
    pub const fn millionths(self) -> u64 {
        self.0
    }

    /// In units, for display.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl Add for Utility {
    type Output = Utility;
    #[inline]
    fn add(self, rhs: Utility) -> Utility {
        Utility(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Utility {
    #[inline]
    fn add_assign(&mut self, rhs: Utility) {
        *self = *self + rhs;
    }
}

impl Sum for Utility {
    fn sum<I: Iterator<Item = Utility>>(iter: I) -> Utility {
        iter.fold(Utility::ZERO, Add::add)
    }
}

/// Reads `8` or `0.5`.
impl FromStr for Utility {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let amount = Utility(parse_decimal(text.trim(), 1_000_000)?);
        match amount <= Utility::LARGEST {
            true => Ok(amount),
            false => Err(QuantityError::TooLarge(text.to_owned())),
        }
    }
}

/// In the form [`Utility::from_str`] reads.
impl fmt::Display for Utility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 1_000_000 {
            0 => write!(f, "{}", self.0 / 1_000_000),
            rest => {
                write!(f, "{}.{}", self.0 / 1_000_000, format!("{rest:06}").trim_end_matches('0'))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_print_what_they_read() {
        for text in ["8", "0.5", "0.000001", "1000000"] {
            assert_eq!(text.parse::<Utility>().unwrap().to_string(), text);
        }
        for wrong in ["-1", "", "1000000.1", "0.0000001", "nan"] {
            assert!(wrong.parse::<Utility>().is_err(), "{wrong}");
        }
    }
}
