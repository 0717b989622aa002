//! Lists of nodes as batch systems write them (`n[01-16,20],gpu1`), read once each and kept as numbers.
//!
//! Most jobs have one of few lists, and only which nodes are the same matters here, not what they are called.

use std::collections::HashMap;

/// All lists together have at most so many nodes: more is a damaged file, which shall not take all memory.
const MOST: usize = 1 << 26;

/// Lists of nodes that were read.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeLists {
    /// By the text: the number of the list, from 1. It is 0 for a text that cannot be used.
    numbers: HashMap<Box<[u8]>, u32>,
    lists: Vec<Box<[u32]>>,
    /// The number of each node.
    nodes: HashMap<Box<[u8]>, u32>,
    /// The nodes of all lists.
    total: usize,
}

impl NodeLists {
    /// The lists, by their numbers less one: each node once, in ascending order.
    pub(super) fn all(&self) -> &[Box<[u32]>] {
        &self.lists
    }

    /// The names of all nodes, by their numbers.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names = vec![String::new(); self.nodes.len()];
        for (name, number) in &self.nodes {
            names[*number as usize] = String::from_utf8_lossy(name).into_owned();
        }
        names
    }

    /// The number of a list that has so many nodes, if that is known; 0 if there is none, or if it makes no sense.
    pub(super) fn number(&mut self, text: &[u8], count: Option<u32>) -> u32 {
        if text.is_empty() || text == b"None assigned" || text == b"(null)" {
            return 0;
        }
        let number = match self.numbers.get(text) {
            Some(number) => *number,
            None => {
                let most = MOST - self.total;
                let most = count.map_or(most, |count| most.min(count as usize));
                let number = match names(text, most) {
                    Some(names) => self.keep(names),
                    None => 0,
                };
                self.numbers.insert(text.into(), number);
                number
            }
        };
        let list = (number as usize).checked_sub(1).map(|place| self.lists[place].len());
        match (list, count) {
            (Some(length), Some(count)) if length != count as usize => 0,
            _ => number,
        }
    }

    fn keep(&mut self, names: Vec<Vec<u8>>) -> u32 {
        let mut numbers: Vec<u32> = Vec::with_capacity(names.len());
        for name in names {
            let next = self.nodes.len() as u32;
            numbers.push(*self.nodes.entry(name.into()).or_insert(next));
        }
        numbers.sort_unstable();
        numbers.dedup();
        self.total += numbers.len();
        self.lists.push(numbers.into());
        self.lists.len() as u32
    }
}

/// The names in a list. Nothing if it cannot be read, or if it has more than so many.
fn names(text: &[u8], most: usize) -> Option<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    let (mut begin, mut is_inside) = (0, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'[' if is_inside => return None,
            b'[' => is_inside = true,
            b']' if !is_inside => return None,
            b']' => is_inside = false,
            b',' if !is_inside => {
                expand(&text[begin..at], Vec::new(), most, &mut found)?;
                begin = at + 1;
            }
            _ => {}
        }
    }
    if is_inside {
        return None;
    }
    expand(&text[begin..], Vec::new(), most, &mut found)?;
    Some(found)
}

/// Adds the names of a part of a list that begin with what was read already.
fn expand(rest: &[u8], begun: Vec<u8>, most: usize, found: &mut Vec<Vec<u8>>) -> Option<()> {
    let Some(open) = memchr::memchr(b'[', rest) else {
        let name = [&begun, rest].concat();
        if name.is_empty() || found.len() >= most {
            return None;
        }
        found.push(name);
        return Some(());
    };
    let close = open + memchr::memchr(b']', &rest[open..])?;
    let begun = [&begun, &rest[..open]].concat();
    for range in rest[open + 1..close].split(|byte| *byte == b',') {
        let dash = memchr::memchr(b'-', range);
        let (first, last) =
            dash.map_or((range, range), |dash| (&range[..dash], &range[dash + 1..]));
        let (low, high) = (super::quantity::whole(first)?, super::quantity::whole(last)?);
        if high < low || high - low >= most as u64 {
            return None;
        }
        let width = first.len();
        for number in low..=high {
            let begun = [&begun[..], format!("{number:0width$}").as_bytes()].concat();
            expand(&rest[close + 1..], begun, most, found)?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Vec<String>> {
        let names = names(text.as_bytes(), 100)?;
        Some(names.into_iter().map(|name| String::from_utf8(name).unwrap()).collect())
    }

    #[test]
    fn lists_are_read() {
        let list = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(read("n[1-3,7],gpu01"), list(&["n1", "n2", "n3", "n7", "gpu01"]));
        assert_eq!(read("n[08-10]"), list(&["n08", "n09", "n10"]));
        assert_eq!(read("r[1-2]n[01,03]"), list(&["r1n01", "r1n03", "r2n01", "r2n03"]));
        for wrong in ["n[1-3", "n1]", "n[[1]]", "n[3-1]", "n[]", "n[a]", "n1,,n2", "n[0-999]", ""] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    /// A list is kept once, and a node has one number in all lists.
    #[test]
    fn nodes_have_one_number() {
        let mut lists = NodeLists::default();
        let numbers = [&b"n[1-2]"[..], b"n2", b"n[1-2]", b"None assigned", b"n["]
            .map(|text| lists.number(text, None));
        assert_eq!(numbers, [1, 2, 1, 0, 0]);
        let all: Vec<&[u32]> = lists.all().iter().map(|list| &**list).collect();
        assert_eq!(all, [&[0, 1][..], &[1]]);
        // Who counts other nodes is not to be relied on.
        assert_eq!((lists.number(b"n[1-2]", Some(3)), lists.number(b"n[1-9]", Some(2))), (0, 0));
        assert_eq!(lists.number(b"n[1-2]", Some(2)), 1);
    }
}
