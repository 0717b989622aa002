//! Quantities as they are written in machine files, with their units.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

use crate::units::{Span, Watts, parse_length};

/// Reads watts with their unit; a bare number could mean anything.
pub(super) fn watts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Watts, D::Error> {
    struct Text;
    impl de::Visitor<'_> for Text {
        type Value = Watts;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("watts with their unit, such as \"400W\"")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Watts, E> {
            text.parse().map_err(E::custom)
        }
    }
    deserializer.deserialize_str(Text)
}

/// The same, where it may be left out.
pub(super) fn some_watts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Watts>, D::Error> {
    watts(deserializer).map(Some)
}

/// Reads a length of time with its unit.
pub(super) fn length<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_length(&text).map_err(de::Error::custom)
}
