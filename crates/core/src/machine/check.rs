//! Everything that is wrong with a machine file, at once.
//!
//! Reading stops at the first mistake. To find the others, what is wrong is taken out of the text, which keeps its
//! lines, and the rest is read again, until it is a machine or nothing more can be taken out.

use std::ops::Range;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::feeds::FeedProblem;
use super::file::PartitionProblem;
use super::{Described, Machine, MachineError};
use crate::text;

/// A mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line it is on, from 1, if it is on one.
    pub line: Option<usize>,
    /// The mistake, and how to correct it.
    pub why: String,
}

/// More mistakes than anybody reads, and more than there are keys.
const MOST: usize = 100;

/// The machine of a file, or everything that is wrong with it. What cannot be read at all is an error.
pub fn check(path: &Path) -> Result<Result<Described, Vec<Problem>>, MachineError> {
    let unreadable = |source| MachineError::Unreadable { path: path.to_owned(), source };
    let text = text::read_whole(path).map_err(unreadable)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let folder = path.parent().unwrap_or(Path::new(""));
    Ok(check_text(&text, &stem, folder))
}

/// The same for the text of a file of this name in a folder.
pub fn check_text(text: &str, stem: &str, folder: &Path) -> Result<Described, Vec<Problem>> {
    let mut left = text.to_owned();
    let mut problems: Vec<Problem> = Vec::new();
    let has_tables = text.lines().any(|line| line.trim_start().starts_with("[["));
    for _ in 0..MOST {
        let error = match Machine::from_toml(&left, stem, folder) {
            Ok(machine) if problems.is_empty() => return Ok(machine),
            Ok(_) => break,
            Err(error) => error,
        };
        // It says where the partition begins.
        if let Some(PartitionProblem { line, name, why }) = error.downcast_ref() {
            let why = format!("partition '{name}': {why}");
            problems.push(Problem { line: Some(*line), why });
            break;
        }
        if let Some(FeedProblem { line, name, why }) = error.downcast_ref() {
            problems.push(Problem { line: Some(*line), why: format!("feed '{name}': {why}") });
            break;
        }
        let (place, why) = match error.downcast_ref::<toml::de::Error>() {
            Some(error) => (error.span(), error.message().trim().to_owned()),
            None => {
                let why = error.to_string();
                (named_key(&left, &why), why)
            }
        };
        // Partitions and feeds have keys of the same names, so nothing is taken out of them: mistakes are told one by one.
        if has_tables {
            let line = place.map(|place| line_of(&left, place.start));
            problems.push(Problem { line, why });
            break;
        }
        let is_toml = DeTable::parse(&left).is_ok();
        // What is not TOML has a place, but nothing can be taken out of it.
        let begin = place.as_ref().filter(|_| !is_toml).map(|place| place.start);
        let place = place.and_then(|place| whole_entry(&left, place));
        let begin = begin.or(place.as_ref().map(|place| place.start));
        let line = begin.map(|begin| line_of(&left, begin));
        // What is missing only because it was taken out is no second mistake.
        if !was_taken_out(text, &left, &why) {
            problems.push(Problem { line, why });
        }
        let Some(place) = place else { break };
        blank(&mut left, place);
    }
    problems.sort_by_key(|problem| problem.line);
    Err(problems)
}

/// Whether a field is said to be missing that was there at first.
fn was_taken_out(before: &str, now: &str, why: &str) -> bool {
    let Some(name) = why.strip_prefix("missing field `") else { return false };
    let name = name.split('`').next().unwrap_or_default();
    let has = |text: &str| text.lines().any(|line| key_of(line) == Some(name));
    has(before) && !has(now)
}

/// The key of a line of the form `key = value`.
fn key_of(line: &str) -> Option<&str> {
    line.split_once('=').map(|(key, _)| key.trim())
}

/// The line of a place in the text, from 1.
fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// Where the key is that a message names first: `'power.idle' is …`, `dvfs.gears entry 2 …`.
fn named_key(text: &str, why: &str) -> Option<Range<usize>> {
    let name = why.trim_start_matches('\'').split(['\'', ' ', ':']).next()?;
    let table = DeTable::parse(text).ok()?;
    let mut inside = table.get_ref();
    let mut found = None;
    for part in name.split('.') {
        let (key, value) = inside.iter().find(|(key, _)| key.get_ref().as_ref() == part)?;
        found = Some(key.span().start..value.span().end);
        if let DeValue::Table(table) = value.get_ref() {
            inside = table;
        }
    }
    found
}

/// The entry that a place belongs to: the innermost key with its value, or a table with its heading. `None` if the
/// place is the whole text.
fn whole_entry(text: &str, place: Range<usize>) -> Option<Range<usize>> {
    let heading = text[..place.start.min(text.len())].rfind('\n').map_or(0, |end| end + 1);
    if text[heading..].trim_start().starts_with('[') && place.start >= heading {
        let rest = &text[heading..];
        let next = rest.match_indices("\n[").map(|(at, _)| heading + at + 1).next();
        return Some(heading..next.unwrap_or(text.len()));
    }
    fn innermost(table: &DeTable<'_>, place: &Range<usize>) -> Option<Range<usize>> {
        table.iter().find_map(|(key, value)| {
            if let DeValue::Table(table) = value.get_ref()
                && let Some(found) = innermost(table, place)
            {
                return Some(found);
            }
            let whole = key.span().start..value.span().end;
            let is_inside = whole.start <= place.start && place.end <= whole.end;
            (is_inside && !place.is_empty()).then_some(whole)
        })
    }
    let table = DeTable::parse(text).ok()?;
    innermost(table.get_ref(), &place)
}

/// Takes a piece out and leaves its lines.
fn blank(text: &mut String, place: Range<usize>) {
    let blanks: String =
        text[place.clone()].chars().map(|each| if each == '\n' { '\n' } else { ' ' }).collect();
    text.replace_range(place, &blanks);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::file::NO_NODES;

    fn problems(text: &str) -> Vec<(Option<usize>, String)> {
        let found = check_text(text, "cab", Path::new("")).unwrap_err();
        found.into_iter().map(|problem| (problem.line, problem.why)).collect()
    }

    #[test]
    fn all_mistakes_are_found_at_once() {
        let found = problems(
            "nodes = 0\nnod = 3\n[power]\nnode = '350'\nidle = '400W'\n[caps]\nlevels = 3\n\
             [dvfs]\ngears = []\n[parts]\nspread = '50%'\n",
        );
        let expected = [
            (1, "at least one node"),
            (2, "unknown field `nod`"),
            (4, "valid units"),
            (7, "invalid type"),
            (8, "dvfs.gears is empty"),
            (11, "at most 10%"),
        ];
        for (line, words) in expected {
            let is_it = |(at, why): &(Option<usize>, String)| {
                at.is_none_or(|at| at == line) && why.contains(words)
            };
            assert!(found.iter().any(is_it), "{words}: {found:?}");
        }
    }

    #[test]
    fn what_does_not_add_up_has_its_line() {
        let found = problems("nodes = 4\n[power]\nnode = '300W'\nidle = '400W'\nrest = '500W'\n");
        assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [Some(4), Some(5)]);
        // What is not TOML is one mistake, and the rest cannot be told.
        let found = problems("nodes = \n[power]\n");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, Some(1));
    }

    #[test]
    fn mistakes_in_partitions_have_their_lines() {
        let text =
            "[[partition]]\nname = 'a'\nnodes = 'many'\n[[partition]]\nname = 'b'\nnodes = 2\n";
        let found = problems(text);
        assert_eq!((found.len(), found[0].0), (1, Some(3)), "{found:?}");
        let text =
            "[power]\nnode = '400W'\n[[partition]]\nname = 'b'\nnodes = 2\npower.idle = '500W'\n";
        let found = problems(text);
        assert_eq!((found.len(), found[0].0), (1, Some(3)));
        assert!(found[0].1.starts_with("partition 'b': 'power.idle' is 500W"), "{found:?}");
    }

    #[test]
    fn what_is_missing_is_said_once() {
        assert_eq!(problems("[power]\nnode = '300W'\n"), [(None, NO_NODES.to_owned())]);
        let found = problems("nodes = 'many'\n");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(check_text("nodes = 4\n", "x", Path::new("")).is_ok());
    }
}
