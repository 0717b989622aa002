//! Fields of a line, with quotes around those that need them.

use std::borrow::Cow;

/// What separates the fields of a file: a comma or, if its heading has none, a semicolon or a tab.
pub fn separator(heading: &str) -> char {
    [',', ';', '\t'].into_iter().find(|separator| heading.contains(*separator)).unwrap_or(',')
}

/// The name of a separator.
pub fn name(separator: char) -> &'static str {
    match separator {
        ';' => "semicolon",
        '\t' => "tab",
        _ => "comma",
    }
}

/// Splits a line at its separators. A field in double quotes may hold them, and quotes that are
/// written twice; it must end on the line on which it began.
pub fn split(line: &str, separator: char) -> Result<Vec<Cow<'_, str>>, String> {
    let mut fields = Vec::new();
    let mut rest = Some(line);
    while let Some(text) = rest {
        let (field, after) = match skip_blanks(text, separator).strip_prefix('"') {
            Some(quoted) => unquote(quoted, separator)?,
            None => match text.split_once(separator) {
                Some((field, after)) => (Cow::Borrowed(field.trim()), Some(after)),
                None => (Cow::Borrowed(text.trim()), None),
            },
        };
        fields.push(field);
        rest = after;
    }
    Ok(fields)
}

/// The text without the blanks before it. A tab is none if it separates fields.
fn skip_blanks(text: &str, separator: char) -> &str {
    text.trim_start_matches(|c: char| c.is_whitespace() && c != separator)
}

/// The field whose opening quote was just passed, and what comes after its separator.
fn unquote(text: &str, separator: char) -> Result<(Cow<'_, str>, Option<&str>), String> {
    let mut field = Cow::Borrowed("");
    let mut rest = text;
    loop {
        let (part, after) = rest.split_once('"').ok_or("a quote is opened and not closed")?;
        match field.is_empty() {
            true => field = Cow::Borrowed(part),
            false => field.to_mut().push_str(part),
        }
        let Some(twice) = after.strip_prefix('"') else {
            return match skip_blanks(after, separator).strip_prefix(separator) {
                Some(next) => Ok((field, Some(next))),
                None if after.trim().is_empty() => Ok((field, None)),
                None => {
                    Err(format!("a {} must follow the quote that ends a field", name(separator)))
                }
            };
        };
        field.to_mut().push('"');
        rest = twice;
    }
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
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_quoted_is_read_again(texts in prop::collection::vec("[a\",# ]{0,6}", 1..5)) {
            let texts: Vec<&str> = texts.iter().map(|text| text.trim()).collect();
            let line = texts.iter().map(|text| quote(text)).collect::<Vec<_>>().join(",");
            prop_assert_eq!(split(&line, ',').unwrap(), texts);
        }
    }

    #[test]
    fn quotes_may_be_where_they_are_not_needed() {
        assert_eq!(split(r#" "a" , b,"c, d" ,"#, ',').unwrap(), ["a", "b", "c, d", ""]);
        assert_eq!(split("", ',').unwrap(), [""]);
        assert!(split(r#"a,"b"#, ',').unwrap_err().contains("not closed"));
        assert!(split(r#""a"b,c"#, ',').unwrap_err().contains("comma"));
    }
}
