//! Job arrays: one submission that becomes many jobs, which differ in their index only.
//!
//! An array has a number of its own, which is not that of any job. Its elements are ordinary jobs with
//! the numbers that follow, in the order of their indices. So everything that can be done to a job can
//! be done to an element, and the number of the array stands for all of them.

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The largest number of indices that is accepted at all. A daemon allows fewer.
const MOST: u64 = 1_000_000;

/// The indices of an array as they are typed: `1-50`, `1,3,7-9`, `0-20:5`, optionally followed by
/// `%` and the number of elements that may run at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ArraySpec {
    parts: Vec<Part>,
    at_once: Option<NonZeroU32>,
}

/// A range of indices with a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    first: u32,
    last: u32,
    step: NonZeroU32,
}

/// Why a text does not describe an array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArrayError {
    /// A part of it cannot be read.
    #[error(
        "'{0}' is not an index or a range; write 1-50, 1,3,7-9 or 0-20:5, and %4 for four at once"
    )]
    Part(String),
    /// A range goes down.
    #[error("'{0}' goes down; write the smaller index first")]
    Down(String),
    /// The number after `%` is not valid.
    #[error("'%{0}' is not a number of elements; write how many may run at once, such as %4")]
    AtOnce(String),
    /// There are too many indices.
    #[error("an array cannot have more than {MOST} indices")]
    TooMany,
}

impl ArraySpec {
    /// The indices in order, without duplicates.
    pub fn indices(&self) -> BTreeSet<u32> {
        self.parts.iter().flat_map(Part::indices).collect()
    }

    /// The number of elements that may run at once, if it is limited.
    pub(crate) fn at_once(&self) -> Option<u32> {
        self.at_once.map(NonZeroU32::get)
    }
}

impl Part {
    fn indices(&self) -> impl Iterator<Item = u32> + use<> {
        (self.first..=self.last).step_by(self.step.get() as usize)
    }

    fn count(&self) -> u64 {
        u64::from((self.last - self.first) / self.step) + 1
    }
}

/// Reads a number without a sign.
fn number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

impl FromStr for Part {
    type Err = ArrayError;

    fn from_str(text: &str) -> Result<Self, ArrayError> {
        let wrong = || ArrayError::Part(text.to_owned());
        let (range, step) = match text.split_once(':') {
            Some((range, step)) => (range, Some(step)),
            None => (text, None),
        };
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (first, last),
            // A single index has no step.
            None if step.is_none() => (range, range),
            None => return Err(wrong()),
        };
        let step = match step {
            Some(step) => number(step).and_then(NonZeroU32::new).ok_or_else(wrong)?,
            None => NonZeroU32::MIN,
        };
        let first = number(first).ok_or_else(wrong)?;
        let last = number(last).ok_or_else(wrong)?;
        match first <= last {
            true => Ok(Part { first, last, step }),
            false => Err(ArrayError::Down(text.to_owned())),
        }
    }
}

impl FromStr for ArraySpec {
    type Err = ArrayError;

    fn from_str(text: &str) -> Result<Self, ArrayError> {
        let (indices, at_once) = match text.split_once('%') {
            Some((indices, at_once)) => (indices, Some(at_once)),
            None => (text, None),
        };
        let at_once = at_once.map(|text| {
            let most = number(text.trim()).and_then(NonZeroU32::new);
            most.ok_or_else(|| ArrayError::AtOnce(text.to_owned()))
        });
        let parts = indices.split(',').map(|part| part.trim().parse::<Part>());
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        if parts.iter().map(Part::count).sum::<u64>() > MOST {
            return Err(ArrayError::TooMany);
        }
        Ok(ArraySpec { parts, at_once: at_once.transpose()? })
    }
}

impl fmt::Display for ArraySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, Part { first, last, step }) in self.parts.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { "," })?;
            match (first == last, step.get()) {
                (true, _) => write!(f, "{first}")?,
                (false, 1) => write!(f, "{first}-{last}")?,
                (false, step) => write!(f, "{first}-{last}:{step}")?,
            }
        }
        self.at_once.map_or(Ok(()), |most| write!(f, "%{most}"))
    }
}

impl TryFrom<String> for ArraySpec {
    type Error = ArrayError;

    fn try_from(text: String) -> Result<Self, ArrayError> {
        text.parse()
    }
}

impl From<ArraySpec> for String {
    fn from(array: ArraySpec) -> String {
        array.to_string()
    }
}

/// An element of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Element {
    /// The number of the array.
    pub array: u64,
    /// The index of the element.
    pub index: u32,
    /// The number of elements of the array.
    pub count: u32,
    /// The smallest index of the array.
    pub least: u32,
    /// The largest index of the array.
    pub most: u32,
    /// The number of elements that may run at once, if it is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u32>,
}

impl Element {
    /// The elements of the array with this number, in order.
    pub(crate) fn all(array: u64, spec: &ArraySpec) -> Vec<Element> {
        let indices = spec.indices();
        let (Some(&least), Some(&most)) = (indices.first(), indices.last()) else {
            return Vec::new();
        };
        let (count, at_once) = (indices.len() as u32, spec.at_once());
        let element = |index| Element { array, index, count, least, most, at_once };
        indices.into_iter().map(element).collect()
    }

    /// The job numbers of all elements of the array.
    pub(crate) fn numbers(&self) -> Range<u64> {
        let first = Element::first(self.array);
        first..first.saturating_add(self.count.into())
    }

    /// The job number of an array's first element.
    pub(crate) fn first(array: u64) -> u64 {
        array.saturating_add(1)
    }

    /// The environment variables that describe the element to its job.
    pub(crate) fn variables(&self) -> [(String, String); 5] {
        let variable = |name: &str, value: u64| (format!("{VARIABLES}{name}"), value.to_string());
        [
            variable("JOB", self.array),
            variable("INDEX", self.index.into()),
            variable("COUNT", self.count.into()),
            variable("MIN", self.least.into()),
            variable("MAX", self.most.into()),
        ]
    }
}

/// The prefix of those variables.
pub(crate) const VARIABLES: &str = "BUSBAR_ARRAY_";

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.array, self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_read_in_all_their_forms() {
        for (text, indices, at_once, written) in [
            ("7", &[7][..], None, "7"),
            ("1-4", &[1, 2, 3, 4], None, "1-4"),
            ("1-5%2", &[1, 2, 3, 4, 5], Some(2), "1-5%2"),
            ("1,3,7-9", &[1, 3, 7, 8, 9], None, "1,3,7-9"),
            ("1-9:4", &[1, 5, 9], None, "1-9:4"),
            ("0-10:4 , 2%1", &[0, 2, 4, 8], Some(1), "0-10:4,2%1"),
            ("3,1-3,2", &[1, 2, 3], None, "3,1-3,2"),
            ("4294967295", &[u32::MAX], None, "4294967295"),
            ("5-5:3", &[5], None, "5"),
        ] {
            let spec: ArraySpec = text.parse().unwrap();
            assert_eq!(spec.indices().into_iter().collect::<Vec<_>>(), indices, "{text}");
            assert_eq!((spec.at_once(), spec.to_string().as_str()), (at_once, written));
            let again: ArraySpec = spec.to_string().parse().unwrap();
            assert_eq!(again.indices(), spec.indices(), "{text}");
        }
    }

    #[test]
    fn what_is_no_array_is_refused() {
        for text in
            ["", "-", "1-", "-3", "a", "1-b", "1,,2", "1:2", "1-9:0", "1-2-3", "+1", "4294967296"]
        {
            assert!(matches!(text.parse::<ArraySpec>(), Err(ArrayError::Part(_))), "{text}");
        }
        assert!(matches!("9-1".parse::<ArraySpec>(), Err(ArrayError::Down(_))));
        for text in ["1-9%", "1-9%0", "1-9%x", "1%2%3"] {
            assert!(matches!(text.parse::<ArraySpec>(), Err(ArrayError::AtOnce(_))), "{text}");
        }
        // Without making a list of them.
        assert_eq!("0-4294967295".parse::<ArraySpec>(), Err(ArrayError::TooMany));
        assert!("0-4294967295:5000".parse::<ArraySpec>().is_ok());
    }

    #[test]
    fn elements_follow_the_number_of_their_array() {
        let elements = Element::all(12, &"3,5-6%2".parse().unwrap());
        assert_eq!(
            elements.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["12_3", "12_5", "12_6"]
        );
        assert!(elements.iter().all(|element| element.numbers() == (13..16)));
        let told = elements[1].variables().map(|(name, value)| format!("{name}={value}"));
        assert_eq!(
            told,
            [
                "BUSBAR_ARRAY_JOB=12",
                "BUSBAR_ARRAY_INDEX=5",
                "BUSBAR_ARRAY_COUNT=3",
                "BUSBAR_ARRAY_MIN=3",
                "BUSBAR_ARRAY_MAX=6"
            ]
        );
    }
}
