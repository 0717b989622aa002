//! Records of `KEY=VALUE` pairs, as Slurm prints them and as its configuration has them.

/// A record: the pairs of a line, and of those that it is continued on.
#[derive(Clone, Debug)]
pub(super) struct Line<'a> {
    /// The first line, from 1.
    pub(super) number: usize,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Line<'a> {
    /// Whether this is the first key, in capitals or not.
    pub(super) fn begins_with(&self, key: &str) -> bool {
        self.pairs.first().is_some_and(|(first, _)| first.eq_ignore_ascii_case(key))
    }

    /// The value of a key, in capitals or not.
    pub(super) fn get(&self, key: &str) -> Option<&'a str> {
        let found = self.pairs.iter().find(|(known, _)| known.eq_ignore_ascii_case(key));
        found.map(|(_, value)| *value)
    }
}

/// The records of a text. What `scontrol` prints without `-o` goes on in lines that begin with a blank, and a
/// configuration in the line after a backslash; what follows a hash there is a comment.
pub(super) fn lines(text: &str) -> Vec<Line<'_>> {
    let mut found: Vec<Line<'_>> = Vec::new();
    let mut goes_on = false;
    for (number, line) in (1..).zip(text.lines()) {
        let begins_blank = line.starts_with([' ', '\t']);
        let line = without_comment(line).trim();
        let (line, next_goes_on) = match line.strip_suffix('\\') {
            Some(line) => (line, true),
            None => (line, false),
        };
        let pairs = line.split_whitespace().filter_map(|word| word.split_once('='));
        match found.last_mut() {
            Some(last) if goes_on || (begins_blank && !begins_record(line)) => {
                last.pairs.extend(pairs);
            }
            _ => {
                let pairs: Vec<_> = pairs.collect();
                if !pairs.is_empty() {
                    found.push(Line { number, pairs });
                }
            }
        }
        goes_on = next_goes_on;
    }
    found
}

/// Whether a line, also one behind blanks, is the first of a record.
fn begins_record(line: &str) -> bool {
    let begins = |key: &str| {
        let found = line.get(..key.len()).is_some_and(|start| start.eq_ignore_ascii_case(key));
        found && line[key.len()..].starts_with('=')
    };
    ["NodeName", "PartitionName", "NodeSet", "SwitchName", "BlockName"].into_iter().any(begins)
}

/// A line without the comment at its end. What Slurm prints has none, but hashes: the version of a kernel, and texts of
/// administrators.
fn without_comment(line: &str) -> &str {
    let Some((before, _)) = line.split_once('#') else { return line };
    let is_text = |word: &str| {
        ["OS=", "Reason=", "Comment=", "Extra="].iter().any(|key| word.starts_with(key))
    };
    if before.split_whitespace().any(is_text) { line } else { before }
}
