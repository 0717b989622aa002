//! Small CSV files, as people and spreadsheets write them: one reader and one error for all of them.
//!
//! The crate `csv` is not used, because it would take the place of [`quoting`] alone: it knows quotes and `#`, but a quote that is
//! not closed takes the rest of the file with it, errors name the number of a field and not the file and the column, and what
//! a value may be, which column a misspelt heading means and where commas are decimal would still be found out here.

use std::borrow::Cow;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use crate::spelling::closest;
use crate::text;

mod number;
pub mod quoting;

pub use number::Number;
pub use quoting::quote;

/// Why a table cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The file cannot be read.
    #[error("cannot read {what} {}", path.display())]
    Unreadable {
        /// What the table is.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        source: std::io::Error,
    },
    /// A row is wrong.
    #[error("{}, line {line}, field '{field}': {why}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column.
        field: &'static str,
        /// The mistake, and what to write instead.
        why: String,
    },
    /// The rows are fine one by one, but not together: some are missing, or there are none.
    #[error("{}: {why}", path.display())]
    Whole {
        /// The file.
        path: PathBuf,
        /// The mistake, and how to correct it.
        why: String,
    },
}

/// What the rows of a table look like.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// What the table is, as in 'cannot read the outage file'.
    pub what: &'static str,
    /// The names of its columns.
    pub columns: &'static [&'static str],
    /// How a row is written, as the end of an error: 'write node,down,up'.
    pub form: &'static str,
}

/// A row: as many fields as the table has columns.
#[derive(Debug)]
pub struct Cells<'a> {
    fields: Vec<Cow<'a, str>>,
    line: usize,
    path: &'a Path,
    form: &'a Form,
}

impl Form {
    /// The heading of a file of this form.
    pub fn heading(&self) -> String {
        self.columns.join(",")
    }

    /// The error that the rows of a file do not make up a table.
    pub fn incomplete(path: &Path, why: impl ToString) -> TableError {
        TableError::Whole { path: path.to_owned(), why: why.to_string() }
    }

    /// The text of a file of this form.
    pub fn read(&self, path: &Path) -> Result<String, TableError> {
        let unreadable =
            |source| TableError::Unreadable { what: self.what, path: path.to_owned(), source };
        text::read(path).map_err(unreadable)
    }

    /// The rows of a text. A heading, blank lines and comments are passed over.
    pub fn rows<'a>(
        &'a self,
        text: &'a str,
        path: &'a Path,
    ) -> impl Iterator<Item = Result<Cells<'a>, TableError>> {
        let mut heading_may_come = true;
        lines(text).filter_map(move |(line, text)| {
            let wrong = |place: usize, why| {
                let field = self.columns[place.min(self.columns.len() - 1)];
                let why = format!("{why}; {}", self.form);
                Some(Err(TableError::Row { path: path.to_owned(), line, field, why }))
            };
            let fields = match quoting::split(text, ',') {
                Ok(fields) => fields,
                Err(why) => return wrong(0, why),
            };
            if std::mem::take(&mut heading_may_come) {
                if is_heading(&fields, self.columns) {
                    return None;
                }
                if let Some((place, why)) = heading_mistake(&fields, self.columns) {
                    return wrong(place, why);
                }
            }
            if fields.len() != self.columns.len() {
                let (line, hint) = (text.trim(), separator_hint(text, &fields, self.columns.len()));
                let why = format!("'{line}' is not {} fields{hint}", self.columns.len());
                return wrong(fields.len(), why);
            }
            Some(Ok(Cells { fields, line, path, form: self }))
        })
    }
}

impl Cells<'_> {
    /// The fields, in the order of the columns.
    pub fn all<const COUNT: usize>(&self) -> [&str; COUNT] {
        std::array::from_fn(|place| self.fields.get(place).map_or("", |field| field.as_ref()))
    }

    /// The line they are on, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The error that a field cannot be read; how rows are written is added.
    pub fn unreadable(&self, field: &'static str, why: impl Display) -> TableError {
        self.wrong(field, format!("{why}; {}", self.form.form))
    }

    /// The error that a field cannot be used, for a reason that says what to do.
    pub fn wrong(&self, field: &'static str, why: impl ToString) -> TableError {
        let (path, line) = (self.path.to_owned(), self.line);
        TableError::Row { path, line, field, why: why.to_string() }
    }
}

fn is_heading(fields: &[Cow<'_, str>], columns: &[&str]) -> bool {
    let same = |(field, column): (&Cow<'_, str>, &&str)| field.eq_ignore_ascii_case(column);
    fields.len() == columns.len() && fields.iter().zip(columns).all(same)
}

/// What is wrong with a heading, and with which column. A line is meant as a heading if it has the name of a column, or
/// nothing but names that are like those of the columns.
fn heading_mistake(fields: &[Cow<'_, str>], columns: &[&str]) -> Option<(usize, String)> {
    let is_name =
        |field: &Cow<'_, str>| columns.iter().any(|name| field.eq_ignore_ascii_case(name));
    let is_like_all = fields.iter().all(|field| closest(field, columns.iter().copied()).is_some());
    if !is_like_all && !fields.iter().any(is_name) {
        return None;
    }
    let differs = |place: &usize| match (fields.get(*place), columns.get(*place)) {
        (Some(field), Some(column)) => !field.eq_ignore_ascii_case(column),
        _ => true,
    };
    let place = (0..fields.len().max(columns.len())).find(differs)?;
    let why = match (fields.get(place), columns.get(place)) {
        (Some(field), Some(column)) => format!("the heading says '{field}' instead of '{column}'"),
        (Some(field), None) => format!("the heading has a column '{field}' too many"),
        (None, _) => "the heading has no such column".to_owned(),
    };
    Some((place, why))
}

/// Why a line may have another number of fields: something else separates them, or numbers have decimal commas.
fn separator_hint(line: &str, fields: &[Cow<'_, str>], wanted: usize) -> String {
    let is_digit = |sign: Option<char>| sign.is_some_and(|sign| sign.is_ascii_digit());
    let is_decimal = |pair: &[Cow<'_, str>]| {
        is_digit(pair[0].chars().next_back()) && is_digit(pair[1].chars().next())
    };
    match quoting::separator(line) {
        ',' if fields.len() > wanted && fields.windows(2).any(is_decimal) => {
            ": a comma separates fields, and decimals have a point".to_owned()
        }
        ',' => String::new(),
        other => format!(": a comma separates fields, not a {}", quoting::name(other)),
    }
}

/// The lines of a file that say something, each with its number from 1. Blank lines, `#` comments and
/// a byte order mark are passed over.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    numbered.filter(|(_, line)| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with('#')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rows_are_rows() {
        let form =
            Form { what: "the feed", columns: &["time", "budget"], form: "write time,budget" };
        let text = "\u{feff}# feed\nTime, Budget\r\n\n 0 , 80% \n1\n";
        let mut found = form.rows(text, Path::new("f.csv"));
        let first = found.next().unwrap().unwrap();
        assert_eq!((first.line(), first.all()), (4, ["0", "80%"]));
        assert_eq!(
            found.next().unwrap().unwrap_err().to_string(),
            "f.csv, line 5, field 'budget': '1' is not 2 fields; write time,budget"
        );
        // A heading comes first or not at all.
        assert_eq!(form.rows("1,2\ntime,budget", Path::new("f.csv")).count(), 2);
        let error = |text: &str| {
            let mut rows = form.rows(text, Path::new("f.csv"));
            rows.find_map(Result::err).map_or(String::new(), |error| error.to_string())
        };
        for (text, said) in [
            (
                "time,budgt\n0,1",
                "line 1, field 'budget': the heading says 'budgt' instead of 'budget'",
            ),
            ("tme,budgt\n0,1", "line 1, field 'time': the heading says 'tme' instead of 'time'"),
            ("budget,time\n0,1", "field 'time': the heading says 'budget' instead of 'time'"),
            ("time\n0,1", "field 'budget': the heading has no such column; write time,budget"),
            ("time,budget,note\n0,1", "the heading has a column 'note' too many"),
            (
                "time;budget\n0;1",
                "'time;budget' is not 2 fields: a comma separates fields, not a semicolon",
            ),
            (
                "0,1,5kW",
                "'0,1,5kW' is not 2 fields: a comma separates fields, and decimals have a point",
            ),
        ] {
            assert!(error(text).contains(said), "{}", error(text));
        }
    }
}
