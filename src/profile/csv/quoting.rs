//! Fields of a line, with quotes around those that need them.

use std::borrow::Cow;

/// Splits a line at its commas. A field in double quotes may hold commas, and quotes that are
/// written twice; it must end on the line on which it began.
pub(super) fn split(line: &str) -> Result<Vec<Cow<'_, str>>, &'static str> {
    let mut fields = Vec::new();
    let mut rest = Some(line);
    while let Some(text) = rest {
        let (field, after) = match text.trim_start().strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => match text.split_once(',') {
                Some((field, after)) => (Cow::Borrowed(field.trim()), Some(after)),
                None => (Cow::Borrowed(text.trim()), None),
            },
        };
        fields.push(field);
        rest = after;
    }
    Ok(fields)
}

/// The field whose opening quote was just passed, and what comes after its comma.
fn unquote(text: &str) -> Result<(Cow<'_, str>, Option<&str>), &'static str> {
    let mut field = Cow::Borrowed("");
    let mut rest = text;
    loop {
        let (part, after) = rest.split_once('"').ok_or("a quote is opened and not closed")?;
        match field.is_empty() {
            true => field = Cow::Borrowed(part),
            false => field.to_mut().push_str(part),
        }
        let Some(twice) = after.strip_prefix('"') else {
            return match after.trim_start().strip_prefix(',') {
                Some(next) => Ok((field, Some(next))),
                None if after.trim().is_empty() => Ok((field, None)),
                None => Err("a comma must follow the quote that ends a field"),
            };
        };
        field.to_mut().push('"');
        rest = twice;
    }
}

/// The text as a field that [`split`] gives back.
pub(super) fn quote(text: &str) -> Cow<'_, str> {
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
            prop_assert_eq!(split(&line).unwrap(), texts);
        }
    }

    #[test]
    fn quotes_may_be_where_they_are_not_needed() {
        assert_eq!(split(r#" "a" , b,"c, d" ,"#).unwrap(), ["a", "b", "c, d", ""]);
        assert_eq!(split("").unwrap(), [""]);
        assert!(split(r#"a,"b"#).unwrap_err().contains("not closed"));
        assert!(split(r#""a"b,c"#).unwrap_err().contains("comma"));
    }
}
