//! Rows of a small CSV file, as people and spreadsheets write them.

/// The rows of a file with these columns, each with its line number from 1 and its fields without
/// the blanks around them. Blank lines, `#` comments, a byte order mark and a heading are passed
/// over.
pub(crate) fn rows<'a>(
    text: &'a str,
    columns: &'a [&str],
) -> impl Iterator<Item = (usize, Vec<&'a str>)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut heading_may_come = true;
    text.lines().enumerate().filter_map(move |(index, row)| {
        let row = row.trim();
        if row.is_empty() || row.starts_with('#') {
            return None;
        }
        let fields: Vec<&str> = row.split(',').map(str::trim).collect();
        let same = |(field, column): (&&str, &&str)| field.eq_ignore_ascii_case(column);
        let is_heading = std::mem::take(&mut heading_may_come)
            && fields.len() == columns.len()
            && fields.iter().zip(columns).all(same);
        (!is_heading).then_some((index + 1, fields))
    })
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
