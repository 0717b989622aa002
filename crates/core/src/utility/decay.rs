//! Exponential decay in integers.
//!
//! A rate is kept as halvings in a millisecond, in steps of 2⁻⁴⁰. What is left after some time is
//! a power of two: whole halvings are a shift, and the rest is read off a table of 1024 steps with
//! straight lines between them. The table is made of square roots of integers, so it is the same
//! on every platform. The lines are at most 6·10⁻⁸ of the value above the true curve.

use std::fmt;
use std::str::FromStr;

use crate::units::{QuantityError, parse_decimal};

/// Steps of a halving in the table.
const STEPS: usize = 1024;

/// 2³¹·2^(−i/1024).
static POWERS: [u32; STEPS + 1] = powers();

const fn powers() -> [u32; STEPS + 1] {
    // 2^(−1/2), 2^(−1/4), … in units of 2⁻⁶³: each is the root of the one before.
    let mut roots = [0u128; 10];
    let mut root = 1u128 << 62;
    let mut place = 0;
    while place < roots.len() {
        root = (root << 63).isqrt();
        roots[place] = root;
        place += 1;
    }
    let mut table = [0u32; STEPS + 1];
    let mut step = 0;
    while step < STEPS {
        let mut power = 1u128 << 63;
        let mut place = 0;
        while place < roots.len() {
            if step >> (9 - place) & 1 == 1 {
                power = (power * roots[place]) >> 63;
            }
            place += 1;
        }
        table[step] = ((power + (1 << 31)) >> 32) as u32;
        step += 1;
    }
    table[STEPS] = 1 << 30;
    table
}

/// A rate at which utility falls, a share of what is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Decay {
    /// As it was given, in millionths a minute.
    millionths: u64,
    /// Halvings in a millisecond, in steps of 2⁻⁴⁰.
    halvings: u64,
}

impl Decay {
    /// It does not fall.
    pub const NONE: Decay = Decay { millionths: 0, halvings: 0 };
    /// The fastest there is, in millionths a minute: to nothing within seconds.
    const FASTEST: u64 = 1_000_000_000;

    /// By this many millionths of what is left in a minute, compounded at every instant.
    pub const fn per_minute_millionths(millionths: u64) -> Self {
        let millionths = if millionths > Decay::FASTEST { Decay::FASTEST } else { millionths };
        // 2⁴⁰ / ln 2 / (60 000 · 10⁶), in steps of 2⁻⁶⁰.
        const PER_MILLIONTH: u128 = 30_480_553_908_819_740_374;
        let halvings = (millionths as u128 * PER_MILLIONTH + (1 << 59)) >> 60;
        Decay { millionths, halvings: halvings as u64 }
    }

    /// So many times as fast, in quarters.
    pub const fn quarters(self, quarters: u64) -> Self {
        Decay::per_minute_millionths(self.millionths.saturating_mul(quarters) / 4)
    }

    /// What is left of a value after this many milliseconds, rounded down.
    #[inline]
    pub(super) fn of(self, value: u64, millis: u64) -> u64 {
        let decayed = self.halvings.saturating_mul(millis);
        halved(value, decayed >> 40, (decayed >> 8) as u32)
    }
}

/// What is left of a value after so many whole halvings and a part of one, in steps of 2⁻³², rounded down.
#[inline]
pub(super) fn halved(value: u64, whole: u64, part: u32) -> u64 {
    if whole >= 64 {
        return 0;
    }
    // Ten bits of the part for the step, 22 for the way to the next.
    let step = (part >> 22) as usize;
    let (here, next) = (POWERS[step], POWERS[step + 1]);
    let way = u64::from(part & ((1 << 22) - 1));
    let power = u64::from(here) - ((u64::from(here - next) * way) >> 22);
    ((u128::from(value) * u128::from(power)) >> (31 + whole)) as u64
}

/// Reads `0.05`: by that share of what is left in a minute.
impl FromStr for Decay {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let millionths = parse_decimal(text.trim(), 1_000_000)?;
        match millionths <= Decay::FASTEST {
            true => Ok(Decay::per_minute_millionths(millionths)),
            false => Err(QuantityError::TooLarge(text.to_owned())),
        }
    }
}

/// In the form [`Decay::from_str`] reads.
impl fmt::Display for Decay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::Utility(self.millionths).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_powers_of_two() {
        for (step, power) in POWERS.into_iter().enumerate() {
            let expected = 2f64.powf(31.0 - step as f64 / 1024.0);
            assert!((f64::from(power) - expected).abs() <= 0.51, "{step}: {power} {expected}");
        }
    }

    /// A minute at 0.1 leaves e^(−0.1); a day leaves nothing. ln 2 a minute halves in a minute.
    #[test]
    fn decay_by_hand() {
        let left = |rate: &str, millis| rate.parse::<Decay>().unwrap().of(1_000_000_000, millis);
        assert_eq!(left("0", u64::MAX), 1_000_000_000);
        let minute = left("0.1", 60_000) as f64 / 1e9;
        assert!((minute - (-0.1f64).exp()).abs() < 1e-6, "{minute}");
        let half = left("0.693147", 60_000) as f64 / 1e9;
        assert!((half - 0.5).abs() < 1e-6, "{half}");
        assert_eq!(left("0.1", 86_400_000), 0);
        assert_eq!(left("1000", u64::MAX), 0);
        assert!("1001".parse::<Decay>().is_err());
        assert_eq!("0.05".parse::<Decay>().unwrap().quarters(8).to_string(), "0.1");
    }
}
