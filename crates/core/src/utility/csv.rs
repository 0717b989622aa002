//! Utility functions as a table in text: one row for each interval of each function.
//!
//! `utility,from_s,value,decay`: from an age in seconds on, worth a value (empty: what it is worth
//! then anyway), falling by a share of what is left in a minute.

use std::io::{self, Write};
use std::path::Path;

use super::{NotAUtility, Piece, Utilities, Utility, UtilityFunction};
use crate::rows::{Form, TableError};
use crate::units::{Span, parse_decimal};

const FORM: Form = Form {
    what: "the utility functions",
    columns: &["utility", "from_s", "value", "decay"],
    form: "write utility,from_s,value,decay, such as gold,600,8,0.05",
};

impl Utilities {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, TableError> {
        Utilities::parse(&FORM.read(path)?, path)
    }

    /// Reads the text of a file, which the path names in errors.
    pub fn parse(text: &str, path: &Path) -> Result<Self, TableError> {
        let mut found: Vec<(String, Vec<Piece>)> = Vec::new();
        for cells in FORM.rows(text, path) {
            let cells = cells?;
            let [name, from, value, decay] = cells.all();
            if name.is_empty() {
                return Err(cells.wrong("utility", "the name is missing"));
            }
            let from = parse_decimal(from, 1000).map_err(|why| cells.wrong("from_s", why))?;
            let from = Span::from_millis(from);
            if decay.starts_with('-') {
                return Err(cells.wrong("decay", format!("{decay} would rise; write 0 or more")));
            }
            let decay = decay.parse().map_err(|why| cells.wrong("decay", why))?;
            let given: Option<Utility> = match value {
                "" => None,
                text => Some(text.parse().map_err(|why| cells.wrong("value", why))?),
            };
            let is_next = found.last().is_some_and(|(last, _)| last == name);
            if !is_next {
                if found.iter().any(|(known, _)| known == name) {
                    let why = format!("the rows of '{name}' do not stand together");
                    return Err(cells.wrong("utility", why));
                }
                found.push((name.to_owned(), Vec::new()));
            }
            let Some((_, pieces)) = found.last_mut() else { continue };
            let level = match (given, pieces.last()) {
                (Some(level), _) => level,
                (None, Some(before)) => before.at(from),
                (None, None) => {
                    let why = "the first interval needs a value: what the task is worth at first";
                    return Err(cells.wrong("value", why));
                }
            };
            pieces.push(Piece { from, level, decay });
            // Said where it is wrong, and not at the end of the file.
            UtilityFunction::new(pieces.iter().copied()).map_err(|error| {
                let field = match error {
                    NotAUtility::Rises { .. } => "value",
                    _ => "from_s",
                };
                cells.wrong(field, error)
            })?;
        }
        let mut utilities = Utilities::default();
        for (name, pieces) in found {
            if let Ok(function) = UtilityFunction::new(pieces) {
                utilities.push(name, function);
            }
        }
        match utilities.is_empty() {
            true => Err(Form::incomplete(path, format!("no utility function; {}", FORM.form))),
            false => Ok(utilities),
        }
    }

    /// Writes them in the form [`Utilities::parse`] reads.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", FORM.heading())?;
        for (name, function) in self.iter() {
            for piece in function.pieces() {
                let from = piece.from.secs_f64();
                writeln!(out, "{name},{from},{},{}", piece.level, piece.decay)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Utilities, String> {
        Utilities::parse(text, Path::new("u.csv")).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_written_is_read() {
        let text =
            "utility,from_s,value,decay\ngold,0,8,0\ngold,600,,0.05\ngold,1800,1,0\nlead,0,1,0.1\n";
        let utilities = read(text).unwrap();
        assert_eq!(utilities.len(), 2);
        let gold = utilities.get(utilities.named("gold").unwrap()).unwrap();
        assert_eq!(gold.at(Span::from_secs(600)), Utility::whole(8));
        assert_eq!(gold.at(Span::from_secs(9000)), Utility::whole(1));
        let mut written = Vec::new();
        utilities.write(&mut written).unwrap();
        assert_eq!(read(&String::from_utf8(written).unwrap()), Ok(utilities));
    }

    #[test]
    fn mistakes_say_where() {
        let error = |text: &str| read(text).unwrap_err();
        let rises = error("gold,0,8,0.1\ngold,60,8,0");
        assert!(
            rises.starts_with("u.csv, line 2, field 'value': utility rises at 60 s"),
            "{rises}"
        );
        assert!(error("gold,0,8,-0.1").contains("line 1, field 'decay': -0.1 would rise"));
        assert!(error("gold,5,8,0").contains("it has to start at 0"));
        assert!(error("gold,0,8,0\ngold,0,8,0").contains("not after the one before it"));
        assert!(error("gold,0,,0").contains("the first interval needs a value"));
        assert!(error("gold,0,8").contains("is not 4 fields"));
        assert!(error("a,0,8,0\nb,0,8,0\na,9,1,0").contains("do not stand together"));
        assert!(error(",0,8,0").contains("the name is missing"));
        assert!(error("gold,x,8,0").contains("field 'from_s'"));
        assert!(error("# nothing").contains("no utility function"));
    }
}
