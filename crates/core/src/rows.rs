//! Rows of a small CSV file, as people and spreadsheets write them.

use std::borrow::Cow;

/// The lines of a file that say something, each with its number from 1. Blank lines, `#` comments and
/// a byte order mark are passed over.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    numbered.filter(|(_, line)| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with('#')
    })
}

/// The rows of a file with these columns, each with its line number from 1 and its fields without
/// the blanks around them. A heading is passed over, as is all that is no row.
pub fn rows<'a>(text: &'a str, columns: &'a [&str]) -> impl Iterator<Item = (usize, Vec<&'a str>)> {
    let mut heading_may_come = true;
    lines(text).filter_map(move |(number, line)| {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let same = |(field, column): (&&str, &&str)| field.eq_ignore_ascii_case(column);
        let is_heading = std::mem::take(&mut heading_may_come)
            && fields.len() == columns.len()
            && fields.iter().zip(columns).all(same);
        (!is_heading).then_some((number, fields))
    })
}

/// A text as a field: in quotes, if it needs them.
pub fn quote(text: &str) -> Cow<'_, str> {
    // A line that begins with # would be a comment.
    match text.contains([',', '"']) || text.starts_with('#') {
        true => Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rows_are_rows() {
        let text = "\u{feff}# feed\nTime, Budget\r\n\n 0 , 80% \n1\n";
        let found: Vec<_> = rows(text, &["time", "budget"]).collect();
        assert_eq!(found, [(4, vec!["0", "80%"]), (5, vec!["1"])]);
        // A heading comes first or not at all.
        assert_eq!(rows("1,2\na,b", &["a", "b"]).count(), 2);
    }
}
