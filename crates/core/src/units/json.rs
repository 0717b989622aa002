//! Quantities in JSON: watts, seconds and joules as decimals, exact to what the types hold.
//!
//! The key of a quantity ends in its unit, so nobody has to guess: `power_w`, `time_s`, `energy_j`. A field says
//! both in one place:
//!
//! ```
//! use busbar_core::units::{Span, Watts};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Job {
//!     #[serde(rename = "power_w", with = "busbar_core::units::json")]
//!     power: Watts,
//!     #[serde(rename = "time_s", with = "busbar_core::units::json", default)]
//!     time: Option<Span>,
//! }
//!
//! let job = Job { power: Watts::from_milliwatts(12_345), time: Some(Span::from_secs(60)) };
//! assert_eq!(serde_json::to_string(&job)?, r#"{"power_w":12.345,"time_s":60}"#);
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! A number in JSON is read as an `f64` by most programs, Busbar's own client among them. That is exact for every
//! power and every time that occurs: up to four terawatts and 139 000 years. Energy can be larger, so it is written
//! and read digit by digit. A field of energy is therefore part of a structure that is read directly, and not
//! by way of `#[serde(flatten)]`.
//!
//! Integers that have no type of their own count [`thousandths`] or [`millionths`] of what their key says.

use std::fmt;

use serde::de::{Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Instant, Joules, Span, Watts};

/// A quantity that is written in the unit of its key.
pub trait InJson: Sized {
    /// Writes it as a number.
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;

    /// Reads it from a number.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

/// Writes a quantity.
pub fn serialize<Q: InJson, S: Serializer>(quantity: &Q, serializer: S) -> Result<S::Ok, S::Error> {
    quantity.write(serializer)
}

/// Reads a quantity.
pub fn deserialize<'de, Q: InJson, D: Deserializer<'de>>(deserializer: D) -> Result<Q, D::Error> {
    Q::read(deserializer)
}

/// Integers that count thousandths of the unit in their key.
pub mod thousandths {
    use super::*;

    /// Writes thousandths as units.
    pub fn serialize<N: Parts, S: Serializer>(parts: &N, to: S) -> Result<S::Ok, S::Error> {
        parts.write(1000, to)
    }

    /// Reads units as thousandths.
    pub fn deserialize<'de, N: Parts, D: Deserializer<'de>>(from: D) -> Result<N, D::Error> {
        N::read(1000, from)
    }
}

/// Integers that count millionths of the unit in their key, or of a whole.
pub mod millionths {
    use super::*;

    /// Writes millionths as units.
    pub fn serialize<N: Parts, S: Serializer>(parts: &N, to: S) -> Result<S::Ok, S::Error> {
        parts.write(1_000_000, to)
    }

    /// Reads units as millionths.
    pub fn deserialize<'de, N: Parts, D: Deserializer<'de>>(from: D) -> Result<N, D::Error> {
        N::read(1_000_000, from)
    }
}

/// A number of parts of a unit.
pub trait Parts: Sized {
    /// Writes this many parts, of which a unit has `per_unit`.
    fn write<S: Serializer>(&self, per_unit: u32, serializer: S) -> Result<S::Ok, S::Error>;

    /// Reads units as parts.
    fn read<'de, D: Deserializer<'de>>(per_unit: u32, deserializer: D) -> Result<Self, D::Error>;
}

impl Parts for u64 {
    fn write<S: Serializer>(&self, per_unit: u32, serializer: S) -> Result<S::Ok, S::Error> {
        let per_unit = u64::from(per_unit);
        match self % per_unit {
            0 => serializer.serialize_u64(self / per_unit),
            _ => serializer.serialize_f64(*self as f64 / per_unit as f64),
        }
    }

    fn read<'de, D: Deserializer<'de>>(per_unit: u32, deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Number { per_unit })
    }
}

impl Parts for u32 {
    fn write<S: Serializer>(&self, per_unit: u32, serializer: S) -> Result<S::Ok, S::Error> {
        u64::from(*self).write(per_unit, serializer)
    }

    fn read<'de, D: Deserializer<'de>>(per_unit: u32, deserializer: D) -> Result<Self, D::Error> {
        let parts = u64::read(per_unit, deserializer)?;
        u32::try_from(parts).map_err(|_| D::Error::custom("the number is too large"))
    }
}

/// A time before 1970 is written and not read: no clock that anybody asks shows one.
impl Parts for i64 {
    fn write<S: Serializer>(&self, per_unit: u32, serializer: S) -> Result<S::Ok, S::Error> {
        let per_unit = i64::from(per_unit);
        match self % per_unit {
            0 => serializer.serialize_i64(self / per_unit),
            _ => serializer.serialize_f64(*self as f64 / per_unit as f64),
        }
    }

    fn read<'de, D: Deserializer<'de>>(per_unit: u32, deserializer: D) -> Result<Self, D::Error> {
        let parts = u64::read(per_unit, deserializer)?;
        i64::try_from(parts).map_err(|_| D::Error::custom("the number is too large"))
    }
}

impl<N: Parts> Parts for Option<N> {
    fn write<S: Serializer>(&self, per_unit: u32, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Some(parts) => parts.write(per_unit, serializer),
            None => serializer.serialize_none(),
        }
    }

    fn read<'de, D: Deserializer<'de>>(per_unit: u32, deserializer: D) -> Result<Self, D::Error> {
        let number: Option<serde_json::Number> = Option::deserialize(deserializer)?;
        number.map(|number| N::read(per_unit, number).map_err(D::Error::custom)).transpose()
    }
}

/// Reads a number of units as a whole number of parts.
struct Number {
    per_unit: u32,
}

impl Visitor<'_> for Number {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number that is not negative")
    }

    fn visit_u64<E: serde::de::Error>(self, units: u64) -> Result<u64, E> {
        // What is longer than all times there are, such as the time limit of a job without one, stays so.
        Ok(units.saturating_mul(self.per_unit.into()))
    }

    fn visit_i64<E: serde::de::Error>(self, units: i64) -> Result<u64, E> {
        match u64::try_from(units) {
            Ok(units) => self.visit_u64(units),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(units), &self)),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, units: f64) -> Result<u64, E> {
        if units.is_nan() || units < 0.0 {
            return Err(E::invalid_value(Unexpected::Float(units), &self));
        }
        let parts = units * f64::from(self.per_unit);
        let whole = parts.round();
        // A decimal that has no more digits than are kept is at most two roundings off.
        if (parts - whole).abs() > parts * 2.0 * f64::EPSILON {
            let decimals = self.per_unit.ilog10();
            return Err(E::custom(format_args!(
                "{units} has more decimals than are kept, which are {decimals}"
            )));
        }
        Ok(whole as u64)
    }
}

macro_rules! in_thousandths {
    ($($quantity:ident),*) => {$(
        impl InJson for $quantity {
            fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.write(1000, serializer)
            }

            fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                u64::read(1000, deserializer).map($quantity)
            }
        }

        impl InJson for Option<$quantity> {
            fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.map(|quantity| quantity.0).write(1000, serializer)
            }

            fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(Option::<u64>::read(1000, deserializer)?.map($quantity))
            }
        }
    )*};
}

in_thousandths!(Watts, Span, Instant);

/// Digit by digit: a month of a large machine has more of them than an `f64`.
impl InJson for Joules {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.to_string();
        let number = RawValue::from_string(text.trim_end_matches('J').to_owned());
        number.map_err(serde::ser::Error::custom)?.serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Box::<RawValue>::deserialize(deserializer)?;
        joules(number.get())
            .ok_or_else(|| D::Error::custom(format_args!("'{number}' is not an energy in joules")))
    }
}

impl InJson for Option<Joules> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Some(energy) => energy.write(serializer),
            None => serializer.serialize_none(),
        }
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Box::<RawValue>::deserialize(deserializer)?;
        match number.get() {
            "null" => Ok(None),
            text => Joules::read(&mut serde_json::Deserializer::from_str(text))
                .map(Some)
                .map_err(D::Error::custom),
        }
    }
}

/// A decimal number of joules as microjoules; `None` if it is none, or finer.
fn joules(number: &str) -> Option<Joules> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_plain(whole) || !is_plain(fraction) || fraction.len() > 6 {
        return None;
    }
    let micros: u128 = format!("{fraction:0<6}").parse().ok()?;
    let whole: u128 = whole.parse().ok()?;
    Some(Joules(whole.checked_mul(1_000_000)?.checked_add(micros)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Held {
        #[serde(rename = "power_w", with = "crate::units::json")]
        power: Watts,
        #[serde(rename = "limit_w", with = "crate::units::json", default)]
        limit: Option<Watts>,
        #[serde(rename = "time_s", with = "crate::units::json")]
        time: Span,
        #[serde(rename = "energy_j", with = "crate::units::json")]
        energy: Joules,
        #[serde(rename = "drawn_j", with = "crate::units::json", default)]
        drawn: Option<Joules>,
        #[serde(rename = "wall_s", with = "thousandths")]
        wall: i64,
        #[serde(with = "millionths")]
        speed: u32,
    }

    fn held(power: u64, time: u64, energy: u128) -> Held {
        Held {
            power: Watts::from_milliwatts(power),
            limit: None,
            time: Span::from_millis(time),
            energy: Joules::from_microjoules(energy),
            drawn: Some(Joules::from_microjoules(energy / 7)),
            wall: 1_700_000_000_123,
            speed: 850_000,
        }
    }

    #[test]
    fn quantities_are_written_as_people_write_them() {
        let text = serde_json::to_string(&held(12_345, 60_000, 43_200_000_000_123_456)).unwrap();
        assert_eq!(
            text,
            r#"{"power_w":12.345,"limit_w":null,"time_s":60,"energy_j":43200000000.123456,"#
                .to_owned()
                + r#""drawn_j":6171428571.446208,"wall_s":1700000000.123,"speed":0.85}"#
        );
    }

    #[test]
    fn numbers_may_be_written_in_any_form_of_json() {
        let read = |time: &str| -> Result<u64, String> {
            let text =
                format!(r#"{{"power_w":1,"time_s":{time},"energy_j":0,"wall_s":0,"speed":1}}"#);
            let held: Result<Held, _> = serde_json::from_str(&text);
            held.map(|held| held.time.millis()).map_err(|error| error.to_string())
        };
        for (time, millis) in [("60", 60_000), ("60.0", 60_000), ("0.25", 250), ("6e1", 60_000)] {
            assert_eq!(read(time), Ok(millis), "{time}");
        }
        for (time, why) in [
            ("0.0001", "more decimals than are kept, which are 3"),
            ("-1", "expected a number that is not negative"),
            ("-0.5", "expected a number that is not negative"),
            ("\"60\"", "expected a number that is not negative"),
            ("null", "expected a number that is not negative"),
        ] {
            let error = read(time).unwrap_err();
            assert!(error.contains(why), "{time}: {error}");
        }
    }

    #[test]
    fn what_has_no_end_has_none_when_it_is_read_again() {
        let forever = Held { time: Span::FOREVER, ..held(1, 1, 1) };
        let text = serde_json::to_string(&forever).unwrap();
        assert_eq!(serde_json::from_str::<Held>(&text).unwrap(), forever);
    }

    proptest! {
        /// Whatever is held comes back as it was, to the last digit; also through a value in memory, as requests
        /// of clients do, where no energy is read.
        #[test]
        fn quantities_come_back_exactly(
            power in prop_oneof![0..1_000_000u64, 0..=Watts::LARGEST.milliwatts()],
            time in prop_oneof![0..100_000u64, 0..(1u64 << 51)],
            energy in prop_oneof![0..10_000_000u128, 0..(1u128 << 110)],
        ) {
            let held = held(power, time, energy);
            let text = serde_json::to_string(&held).unwrap();
            prop_assert_eq!(serde_json::from_str::<Held>(&text).unwrap(), held);
        }
    }
}
