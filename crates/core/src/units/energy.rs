//! Energy, in microjoules: milliwatts × milliseconds.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{QuantityError, parse_decimal, split_unit};

/// Energy, in microjoules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(value_type = u64))]
pub struct Joules(pub(super) u128);

/// As whole microjoules. What does not fit in 64 bits, eighteen terajoules, is written as the most that
/// does: not every format has larger numbers.
impl Serialize for Joules {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(self.0).unwrap_or(u64::MAX))
    }
}

impl<'de> Deserialize<'de> for Joules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(|microjoules| Joules(microjoules.into()))
    }
}

impl Joules {
    /// No energy.
    pub const ZERO: Joules = Joules(0);
    /// More than any budget.
    pub const UNLIMITED: Joules = Joules(1 << 100);

    /// Energy in microjoules.
    pub const fn from_microjoules(uj: u128) -> Self {
        Joules(uj)
    }

    /// Energy in whole joules.
    pub const fn from_joules(joules: u64) -> Self {
        Joules(joules as u128 * 1_000_000)
    }

    /// Energy in microjoules.
    #[inline]
    pub const fn microjoules(self) -> u128 {
        self.0
    }

    /// Joules, for display.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The difference, or nothing where `rhs` is larger.
    #[inline]
    pub const fn saturating_sub(self, rhs: Joules) -> Joules {
        Joules(self.0.saturating_sub(rhs.0))
    }
}

impl Add for Joules {
    type Output = Joules;
    #[inline]
    fn add(self, rhs: Joules) -> Joules {
        Joules(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Joules {
    #[inline]
    fn add_assign(&mut self, rhs: Joules) {
        *self = *self + rhs;
    }
}

impl Sum for Joules {
    fn sum<I: Iterator<Item = Joules>>(iter: I) -> Joules {
        iter.fold(Joules::ZERO, Add::add)
    }
}

/// Reads `1.11GJ` or `500 kJ`. The unit is required: a bare number could mean anything.
impl FromStr for Joules {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let text = text.trim();
        let (number, unit) = split_unit(text);
        let millijoules_per_unit = match unit {
            "J" => 1_000,
            "kJ" => 1_000_000,
            "MJ" => 1_000_000_000,
            "GJ" => 1_000_000_000_000,
            "TJ" => 1_000_000_000_000_000,
            _ if number.is_empty() => return Err(QuantityError::NotANumber(text.to_owned())),
            _ => return Err(QuantityError::UnknownEnergyUnit { text: text.to_owned() }),
        };
        Ok(Joules(u128::from(parse_decimal(number, millijoules_per_unit)?) * 1000))
    }
}

/// Joules with their unit, exact to the microjoule.
impl fmt::Display for Joules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 1_000_000 {
            0 => write!(f, "{}J", self.0 / 1_000_000),
            uj => write!(f, "{}.{}J", self.0 / 1_000_000, format!("{uj:06}").trim_end_matches('0')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energy_reads_exactly() {
        let read = |text: &str| text.parse::<Joules>();
        assert_eq!(read("1.11GJ"), Ok(Joules::from_joules(1_110_000_000)));
        assert_eq!(read(" 0 J "), Ok(Joules::ZERO));
        assert_eq!(read("0.5kJ").unwrap().to_string(), "500J");
        assert_eq!(Joules::from_microjoules(1_500_000).to_string(), "1.5J");
        assert!(matches!(read("5"), Err(QuantityError::UnknownEnergyUnit { .. })));
        assert!(matches!(read("5W"), Err(QuantityError::UnknownEnergyUnit { .. })));
        assert!(matches!(read("-5J"), Err(QuantityError::NotANumber(_))));
        assert!(matches!(read("99999999999TJ"), Err(QuantityError::TooLarge(_))));
    }
}
