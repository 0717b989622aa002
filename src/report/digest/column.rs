//! A column of whole numbers, packed.
//!
//! A report may hold a dozen numbers for each of 100 000 jobs, and a cache many reports. Numbers that
//! are near each other, or small, take a byte or two here: they are divided by what divides them all
//! (times of a log are whole seconds, in milliseconds), and written in groups of seven bits, as they
//! are or as differences from the one before, whichever is shorter. In JSON a column is one string.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Whole numbers in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column(Vec<u64>);

impl Column {
    /// The numbers.
    pub fn values(&self) -> &[u64] {
        &self.0
    }

    /// The packed form: how it is packed, the common divisor, how many there are, and the numbers.
    fn packed(&self) -> Vec<u8> {
        let divisor = self.0.iter().copied().fold(0, greatest_common_divisor).max(1);
        let parts = || self.0.iter().map(|value| value / divisor);
        let begin = |way: Encoding| {
            let mut bytes = vec![way as u8];
            put(&mut bytes, divisor);
            put(&mut bytes, self.0.len() as u64);
            bytes
        };
        let (mut plain, mut differences) = (begin(Encoding::Plain), begin(Encoding::Differences));
        let mut before = 0;
        for part in parts() {
            put(&mut plain, part);
            put(&mut differences, folded(part.wrapping_sub(before) as i64));
            before = part;
        }
        if differences.len() < plain.len() { differences } else { plain }
    }

    /// What was packed; `None` if the bytes are not of this form.
    fn unpacked(bytes: &[u8]) -> Option<Self> {
        let (&way, mut rest) = bytes.split_first()?;
        let way = [Encoding::Plain, Encoding::Differences]
            .into_iter()
            .find(|known| *known as u8 == way)?;
        let divisor = take(&mut rest)?;
        let count = usize::try_from(take(&mut rest)?).ok()?;
        // Each number takes a byte at least: a wrong count asks for no more room than that.
        let mut values = Vec::with_capacity(count.min(rest.len()));
        let mut before = 0u64;
        for _ in 0..count {
            let number = take(&mut rest)?;
            let part = match way {
                Encoding::Plain => number,
                Encoding::Differences => before.wrapping_add(unfolded(number) as u64),
            };
            before = part;
            values.push(part.checked_mul(divisor)?);
        }
        rest.is_empty().then_some(Column(values))
    }

    /// The packed form in letters.
    pub(in crate::report) fn text(&self) -> String {
        STANDARD.encode(self.packed())
    }
}

/// How numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Plain = 0,
    Differences = 1,
}

impl FromIterator<u64> for Column {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Self {
        Column(values.into_iter().collect())
    }
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for Column {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text).ok();
        let column = bytes.and_then(|bytes| Column::unpacked(&bytes));
        column.ok_or_else(|| D::Error::custom("a column of numbers is damaged"))
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Puts numbers of either sign next to each other: 0, −1, 1, −2, 2 …
fn folded(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unfolded(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Seven bits a byte, the lowest first; the eighth says that more come.
fn put(bytes: &mut Vec<u8>, number: u64) {
    let mut rest = number;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for place in 0..10 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        // The tenth byte has room for one bit.
        if place == 9 && bits > 1 {
            return None;
        }
        number |= bits << (7 * place);
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn column(values: &[u64]) -> Column {
        values.iter().copied().collect()
    }

    /// 300 s, 301 s, 299 s: parts of 1000; plain they take two bytes each, the differences from the
    /// second on one. 300 folds to 600 = 0xd8 0x04, 1 to 2, −2 to 3; 1000 is 0xe8 0x07.
    #[test]
    fn bytes_by_hand() {
        let packed = column(&[300_000, 301_000, 299_000]).packed();
        assert_eq!(packed, [1, 0xe8, 0x07, 3, 0xd8, 0x04, 2, 3]);
        assert_eq!(column(&[]).packed(), [0, 1, 0]);
        assert_eq!(column(&[0, 5, 0]).packed(), [0, 5, 3, 0, 1, 0]);
    }

    #[test]
    fn damaged_bytes_are_noticed() {
        for wrong in [&[][..], &[2, 1, 0], &[0, 1, 1], &[0, 1, 0, 0], &[0, 1, 1, 0x80]] {
            assert_eq!(Column::unpacked(wrong), None, "{wrong:?}");
        }
        let endless = [&[0u8, 1, 1][..], &[0xff; 11]].concat();
        assert_eq!(Column::unpacked(&endless), None);
        assert!(serde_json::from_str::<Column>("\"AAE*\"").is_err());
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_back(
            values in prop_oneof![
                prop::collection::vec(any::<u64>(), 0..50),
                prop::collection::vec((0u64..5000).prop_map(|s| s * 1000), 0..50),
            ],
        ) {
            let text = serde_json::to_string(&column(&values)).unwrap();
            prop_assert_eq!(serde_json::from_str::<Column>(&text).unwrap(), column(&values));
        }

        #[test]
        fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Column::unpacked(&bytes);
        }
    }
}
