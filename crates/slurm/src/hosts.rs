//! Lists of nodes as Slurm writes them: `n[1-3,7],gpu01`.
//!
//! A name may have several brackets (`rack[1-2]-n[01-16]`), and numbers keep their leading zeros. A list
//! keeps the order in which its names were written, each once; what is written out is in the same order,
//! with neighbours in brackets.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The most names that one list may have: more is a mistake, or an attack on our memory.
const MOST: usize = 100_000;

/// The longest part of a list, so that a range such as `[0-99999999999]` is refused before it is written out.
const LONGEST_NUMBER: usize = 9;

/// Names of nodes, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HostList(Vec<String>);

/// Why a list of nodes cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the list of nodes '{text}' cannot be read: {reason}")]
pub struct HostListError {
    /// The list, shortened.
    pub(crate) text: String,
    /// The reason.
    pub(crate) reason: String,
}

impl HostList {
    /// The nodes of these names, each once, in this order.
    pub fn new<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        let mut seen = BTreeSet::new();
        let names = names.into_iter().map(Into::into);
        HostList(names.filter(|name: &String| seen.insert(name.clone())).collect())
    }

    /// The names.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether both name the same nodes, in whichever order.
    pub fn is_same_set(&self, other: &HostList) -> bool {
        let set = |list: &HostList| list.0.iter().cloned().collect::<BTreeSet<_>>();
        self.len() == other.len() && set(self) == set(other)
    }
}

impl FromStr for HostList {
    type Err = HostListError;

    /// Reads a list. The empty text is the empty list.
    fn from_str(text: &str) -> Result<Self, HostListError> {
        let wrong = |reason: &str| HostListError {
            text: text.chars().take(80).collect(),
            reason: reason.to_owned(),
        };
        let mut names = Vec::new();
        for part in parts(text).map_err(wrong)? {
            if part.is_empty() {
                return Err(wrong("a name is missing beside a comma"));
            }
            expand(part, String::new(), &mut names).map_err(|reason| wrong(&reason))?;
        }
        Ok(HostList::new(names))
    }
}

/// The parts of a list between commas outside of brackets.
fn parts(text: &str) -> Result<Vec<&str>, &'static str> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let (mut found, mut begin, mut inside) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            '[' if inside => return Err("a bracket opens within a bracket"),
            '[' => inside = true,
            ']' if !inside => return Err("a closing bracket has no opening one"),
            ']' => inside = false,
            ',' if !inside => {
                found.push(&text[begin..at]);
                begin = at + 1;
            }
            c if c.is_whitespace() || c.is_control() => return Err("it contains a space"),
            _ => (),
        }
    }
    if inside {
        return Err("a bracket is not closed");
    }
    found.push(&text[begin..]);
    Ok(found)
}

/// Adds all names of a part that begin with what was read already.
fn expand(rest: &str, begun: String, names: &mut Vec<String>) -> Result<(), String> {
    let Some((before, inside)) = rest.split_once('[') else {
        if names.len() >= MOST {
            return Err(format!("it has more than {MOST} names"));
        }
        names.push(begun + rest);
        return Ok(());
    };
    // Brackets were checked before.
    let (numbers, after) = inside.split_once(']').ok_or("a bracket is not closed")?;
    let begun = begun + before;
    for range in numbers.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |digits: &str| match digits.len() {
            1..=LONGEST_NUMBER => digits.parse::<u32>().ok(),
            _ => None,
        };
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let (Some(low), Some(high)) = (number(first), number(last)) else {
            return Err(format!("'{range}' is not a number or a range"));
        };
        if !is_digits(first) || !is_digits(last) || high < low {
            return Err(format!("'{range}' is not a number or a range"));
        }
        if (high - low) as usize >= MOST {
            return Err(format!("it has more than {MOST} names"));
        }
        let width = first.len();
        for value in low..=high {
            expand(after, format!("{begun}{value:0width$}"), names)?;
        }
    }
    Ok(())
}

/// A name as its text and the number at its end, if there is one.
fn split(name: &str) -> (&str, Option<(u32, usize)>) {
    let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
    // Of a very long number only the last digits are counted.
    let at = digits.max(name.len().saturating_sub(LONGEST_NUMBER));
    let (text, number) = name.split_at(at);
    (text, number.parse().ok().map(|value| (value, number.len())))
}

impl fmt::Display for HostList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = &self.0[..];
        let mut first = true;
        while let Some(name) = rest.first() {
            if !first {
                f.write_str(",")?;
            }
            first = false;
            let (text, number) = split(name);
            let Some((_, width)) = number else {
                f.write_str(name)?;
                rest = &rest[1..];
                continue;
            };
            // All that follow with the same text go into one bracket, if they have as many digits or no leading zeros.
            let is_padded =
                |name: &str, width: usize| width > 1 && name[name.len() - width..].starts_with('0');
            let padded = is_padded(name, width);
            let alike = |other: &&String| match split(other) {
                (same, Some((value, digits))) if same == text => {
                    let fits = if padded { digits == width } else { !is_padded(other, digits) };
                    fits.then_some(value)
                }
                _ => None,
            };
            let width = if padded { width } else { 0 };
            let numbers: Vec<u32> = rest.iter().map_while(|other| alike(&other)).collect();
            rest = &rest[numbers.len()..];
            match numbers.as_slice() {
                [only] => write!(f, "{text}{only:0width$}")?,
                _ => write!(f, "{text}[{}]", ranges(&numbers, width))?,
            }
        }
        Ok(())
    }
}

fn ranges(numbers: &[u32], width: usize) -> String {
    let mut text: Vec<String> = Vec::new();
    let mut rest = numbers;
    while let Some(&first) = rest.first() {
        let mut count = 1;
        while rest.get(count).is_some_and(|next| *next == first + count as u32) {
            count += 1;
        }
        let last = rest[count - 1];
        text.push(match count {
            1 => format!("{first:0width$}"),
            _ => format!("{first:0width$}-{last:0width$}"),
        });
        rest = &rest[count..];
    }
    text.join(",")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.parse::<HostList>().unwrap().names().to_vec()
    }

    #[test]
    fn lists_are_read() {
        assert_eq!(names("n[1-3,7],gpu01"), ["n1", "n2", "n3", "n7", "gpu01"]);
        assert_eq!(names("n[08-11]"), ["n08", "n09", "n10", "n11"]);
        assert_eq!(names("r[1-2]n[01,03]"), ["r1n01", "r1n03", "r2n01", "r2n03"]);
        assert_eq!(names("a,a,b[1]-x"), ["a", "b1-x"]);
        assert!(names("").is_empty());
    }

    #[test]
    fn mistakes_are_named() {
        for (text, reason) in [
            ("n[1-3", "not closed"),
            ("n1]", "has no opening one"),
            ("n[[1]]", "within a bracket"),
            ("n[3-1]", "not a number or a range"),
            ("n[]", "not a number or a range"),
            ("n[a]", "not a number or a range"),
            ("n[+1]", "not a number or a range"),
            ("n1,,n2", "beside a comma"),
            ("n 1", "contains a space"),
            ("n[0-999999999]", "more than"),
            ("n[0-9][0-9][0-9][0-9][0-9][0-9][0-9]", "more than"),
            ("n[0-99999999999]", "not a number or a range"),
        ] {
            let error = text.parse::<HostList>().unwrap_err();
            assert!(error.reason.contains(reason), "{error}");
        }
    }

    #[test]
    fn lists_are_written() {
        for (list, expected) in [
            (&["n1", "n2", "n3", "n7", "gpu01"][..], "n[1-3,7],gpu01"),
            (&["n09", "n10", "n11"], "n[09-11]"),
            (&["n9", "n10", "n11"], "n[9-11]"),
            (&["n10", "n08", "n09"], "n10,n[08-09]"),
            (&["head"], "head"),
            (&["n2", "n1"], "n[2,1]"),
            (&[], ""),
        ] {
            assert_eq!(HostList::new(list.iter().copied()).to_string(), expected);
        }
        let list = |text: &str| text.parse::<HostList>().unwrap();
        assert!(list("n[1-2]").is_same_set(&list("n2,n1")));
        assert!(!list("n[1-2]").is_same_set(&list("n[1-3]")));
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(list in prop::collection::vec("[a-c]{1,2}[0-9]{0,12}", 0..20)) {
            let list = HostList::new(list);
            prop_assert_eq!(list.to_string().parse::<HostList>().unwrap(), list);
        }

        #[test]
        fn nothing_panics(text in "[n0-9,\\[\\]-]{0,30}") {
            let _ = text.parse::<HostList>();
        }
    }
}
