//! A text, a number or a state, however a version of Slurm writes it.

use std::fmt;
use std::io::Write;

use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Takes a value of JSON. Whoever has no use for a kind of values leaves it out, and is told nothing by it.
pub(super) trait Take<'de>: Sized {
    fn text(self, _text: &str) {}

    fn number(self, _number: u64) {}

    fn flag(self, _flag: bool) {}

    fn list<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        IgnoredAny.visit_seq(list).map(drop)
    }

    fn object<A: MapAccess<'de>>(self, object: A) -> Result<(), A::Error> {
        IgnoredAny.visit_map(object).map(drop)
    }
}

/// Any value, for somebody who takes it.
pub(super) struct Any<T>(pub(super) T);

impl<'de, T: Take<'de>> DeserializeSeed<'de> for Any<T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de, T: Take<'de>> Visitor<'de> for Any<T> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.text(text);
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.0.number(number);
        Ok(())
    }

    /// Slurm has no numbers below zero; it writes them for 'no value'.
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    /// A fraction is cut off.
    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        if (0.0..2f64.powi(63)).contains(&number) {
            self.0.number(number as u64);
        }
        Ok(())
    }

    fn visit_bool<E>(self, flag: bool) -> Result<(), E> {
        self.0.flag(flag);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        self.0.list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<(), A::Error> {
        self.0.object(object)
    }
}

/// The name of a member, and what is made of it. Names are not kept.
pub(super) struct Key<F>(pub(super) F);

impl<'de, T, F: FnOnce(&str) -> T> DeserializeSeed<'de> for Key<F> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<T, D::Error> {
        key.deserialize_str(self)
    }
}

impl<T, F: FnOnce(&str) -> T> Visitor<'_> for Key<F> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of a member")
    }

    fn visit_str<E>(self, name: &str) -> Result<T, E> {
        Ok(self.0(name))
    }
}

/// A text or a number, written as the parsable form would have it. It stays empty where nothing is said: `null`, a
/// number that is not set, and those numbers near the largest with which Slurm says the same.
pub(super) struct Text<'a>(pub(super) &'a mut Vec<u8>);

/// What Slurm writes for 'no value' and 'infinite', in 32 and in 64 bits.
const NO_NUMBERS: [u64; 4] = [u32::MAX as u64 - 1, u32::MAX as u64, u64::MAX - 1, u64::MAX];

/// What the parsable form has for a time without end.
const INFINITE: &[u8] = b"UNLIMITED";

impl<'de> Take<'de> for Text<'_> {
    fn text(self, text: &str) {
        self.0.clear();
        self.0.extend_from_slice(text.as_bytes());
    }

    fn number(self, number: u64) {
        self.0.clear();
        if !NO_NUMBERS.contains(&number) {
            // Memory takes whatever is written to it.
            let _ = write!(self.0, "{number}");
        }
    }

    /// `{"set": true, "infinite": false, "number": 17}`.
    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        enum Part {
            Set,
            Infinite,
            Number,
            Other,
        }
        let part = |name: &str| match name {
            "set" => Part::Set,
            "infinite" => Part::Infinite,
            "number" => Part::Number,
            _ => Part::Other,
        };
        let (mut is_set, mut is_infinite) = (true, false);
        while let Some(part) = object.next_key_seed(Key(part))? {
            match part {
                Part::Set => object.next_value_seed(Any(Flag(&mut is_set)))?,
                Part::Infinite => object.next_value_seed(Any(Flag(&mut is_infinite)))?,
                Part::Number => object.next_value_seed(Any(Text(&mut *self.0)))?,
                Part::Other => {
                    object.next_value::<IgnoredAny>()?;
                }
            }
        }
        if is_infinite || !is_set {
            self.0.clear();
        }
        if is_infinite {
            self.0.extend_from_slice(INFINITE);
        }
        Ok(())
    }
}

/// Yes or no; anything else changes nothing.
struct Flag<'a>(&'a mut bool);

impl Take<'_> for Flag<'_> {
    fn flag(self, flag: bool) {
        *self.0 = flag;
    }
}

/// What became of a job: a word, a list of words, or either as `current` of an object.
///
/// Of several words, one is a state, and the others say more about it. The parsable form has one word only: the first
/// that says more, if there is one.
#[derive(Default)]
pub(super) struct Words {
    word: Vec<u8>,
    says_more: bool,
}

const SAYS_MORE: [&str; 12] = [
    "COMPLETING",
    "CONFIGURING",
    "RESIZING",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "SPECIAL_EXIT",
    "STOPPED",
    "REVOKED",
    "RESV_DEL_HOLD",
    "SIGNALING",
    "STAGE_OUT",
];

impl Words {
    pub(super) fn clear(&mut self) {
        self.word.clear();
        self.says_more = false;
    }

    /// The word that the parsable form would have.
    pub(super) fn chosen(&self) -> &[u8] {
        &self.word
    }
}

impl<'de> Take<'de> for &mut Words {
    fn text(self, word: &str) {
        let says_more = SAYS_MORE.contains(&word);
        if self.word.is_empty() || (says_more && !self.says_more) {
            self.word.clear();
            self.word.extend_from_slice(word.as_bytes());
            self.says_more = says_more;
        }
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Any(&mut *self))?.is_some() {}
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(is_current) = object.next_key_seed(Key(|name: &str| name == "current"))? {
            match is_current {
                true => object.next_value_seed(Any(&mut *self))?,
                false => {
                    object.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> String {
        let mut text = Vec::new();
        let mut deserializer = serde_json::Deserializer::from_str(json);
        Any(Text(&mut text)).deserialize(&mut deserializer).unwrap();
        deserializer.end().unwrap();
        String::from_utf8(text).unwrap()
    }

    fn state(json: &str) -> String {
        let mut words = Words::default();
        Any(&mut words).deserialize(&mut serde_json::Deserializer::from_str(json)).unwrap();
        String::from_utf8(words.word).unwrap()
    }

    #[test]
    fn numbers_are_plain_or_say_whether_they_are_set() {
        for (json, expected) in [
            ("17", "17"),
            ("17.9", "17"),
            ("\"17\"", "17"),
            (r#"{"set": true, "infinite": false, "number": 17}"#, "17"),
            (r#"{"number": 17, "infinite": false, "set": false}"#, ""),
            (r#"{"set": false, "infinite": true, "number": 0}"#, "UNLIMITED"),
            (r#"{"number": 17}"#, "17"),
            (r#"{"set": true, "number": {"set": true, "number": 3}, "more": [1]}"#, "3"),
            ("null", ""),
            ("-2", ""),
            ("4294967294", ""),
            ("4294967295", ""),
            ("18446744073709551614", ""),
            ("1e30", ""),
            ("true", ""),
            ("[1, {\"a\": 2}]", ""),
        ] {
            assert_eq!(text(json), expected, "{json}");
        }
    }

    #[test]
    fn states_are_words_lists_or_objects() {
        for (json, expected) in [
            (r#""COMPLETED""#, "COMPLETED"),
            (r#"["COMPLETED"]"#, "COMPLETED"),
            (r#"{"current": "FAILED", "reason": "None"}"#, "FAILED"),
            (r#"{"reason": "None", "current": ["PENDING", "REQUEUED"]}"#, "REQUEUED"),
            (r#"["COMPLETED", "COMPLETING", "REQUEUED"]"#, "COMPLETING"),
            (r#"["TIMEOUT", "SOMETHING_NEW"]"#, "TIMEOUT"),
            ("[]", ""),
            ("null", ""),
            ("7", ""),
        ] {
            assert_eq!(state(json), expected, "{json}");
        }
    }
}
