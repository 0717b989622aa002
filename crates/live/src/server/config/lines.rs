//! Finds the lines of all keys in a file.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

/// The line of a place in the text, from 1.
pub(super) fn line(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// The lines of all keys and of all entries of lists, by their paths: `limits.jobs`, `daily[0].from`.
pub(super) fn lines(text: &str) -> BTreeMap<String, usize> {
    fn collect(text: &str, path: &str, value: &DeValue<'_>, lines: &mut BTreeMap<String, usize>) {
        match value {
            DeValue::Table(table) => collect_table(text, &format!("{path}."), table, lines),
            DeValue::Array(list) => {
                for (place, entry) in list.iter().enumerate() {
                    let path = format!("{path}[{place}]");
                    lines.insert(path.clone(), line(text, entry.span().start));
                    collect(text, &path, entry.get_ref(), lines);
                }
            }
            _ => (),
        }
    }
    fn collect_table(
        text: &str,
        prefix: &str,
        table: &DeTable<'_>,
        lines: &mut BTreeMap<String, usize>,
    ) {
        for (key, value) in table.iter() {
            let path = format!("{prefix}{}", key.get_ref());
            lines.insert(path.clone(), line(text, key.span().start));
            collect(text, &path, value.get_ref(), lines);
        }
    }
    let mut lines = BTreeMap::new();
    // Text that is not TOML is reported by the caller.
    if let Ok(table) = DeTable::parse(text) {
        collect_table(text, "", table.get_ref(), &mut lines);
    }
    lines
}
