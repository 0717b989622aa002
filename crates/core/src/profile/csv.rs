//! Profiles as tables in text: how they come and go.
//!
//! The first line names the columns: `application,nodes,cores,cap_w,time_s,power_w`, in any order,
//! and `origin` if some rows are predicted. A [`Layout`] says how the columns of other people's
//! files are meant. A setting may stand there several times, with a run each. Fields are separated by commas or, if the first line has none, by semicolons or
//! tabs. Numbers are exact to a thousandth: what was read is written again digit for digit, but for
//! zeros that say nothing.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use crate::profile::measured::Measured;
use crate::profile::{Configuration, Profile, Row, counted};
use crate::rows::lines;
use crate::rows::{quote, quoting};
use crate::text;

mod error;
mod field;
mod gathering;
mod layout;
mod notes;
mod record;
mod said;
#[cfg(test)]
mod tests;
mod value;

pub use error::CsvError;
pub use field::{Field, UnknownField};
use gathering::{Gathered, Line, gather};
use layout::Cells;
pub use layout::Layout;
use record::Record;
pub use said::{CapRange, Constant, LayoutError, Renamed};

/// More sockets than a node has.
pub const MOST_SOCKETS: u32 = 8;

/// A table that was read.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// What was measured, in the order in which applications first occur.
    pub measured: Vec<Measured>,
    /// What people should know of it, a sentence each.
    pub notes: Vec<String>,
    /// Where each configuration of each application first stands.
    lines: Vec<HashMap<Configuration, usize>>,
}

impl Sheet {
    /// Reads a file.
    pub fn read(path: &Path, layout: &Layout) -> Result<Self, CsvError> {
        let bytes = text::read_bytes(path)
            .map_err(|source| CsvError::Unreadable { path: path.to_owned(), source })?;
        Sheet::decode(&bytes, path, layout)
    }

    /// Reads the bytes of a file, which the path names in errors.
    pub fn decode(bytes: &[u8], path: &Path, layout: &Layout) -> Result<Self, CsvError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Sheet::parse(text, path, layout),
            Err(error) => {
                let good = &bytes[..error.valid_up_to()];
                let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
                Err(CsvError::NotUtf8 { path: path.to_owned(), line })
            }
        }
    }

    /// Reads the text of a file, which the path names in errors.
    pub fn parse(text: &str, path: &Path, layout: &Layout) -> Result<Self, CsvError> {
        let no_rows = || CsvError::NoRows { path: path.to_owned() };
        let mut lines = lines(text);
        let (line, heading) = lines.next().ok_or_else(no_rows)?;
        let whole = |line, why: String| CsvError::Line { path: path.to_owned(), line, why };
        let separator = quoting::separator(heading);
        let fields = |line, text| {
            quoting::split(text, separator)
                .map_err(|why| whole(line, format!("{why}; correct the quotes")))
        };
        let columns = fields(line, heading)?;
        let cells = understand(heading, &columns, line, path, layout)?;
        let mut readings = Vec::new();
        for (line, text) in lines {
            let fields = fields(line, text)?;
            if fields.len() != columns.len() {
                let (found, wanted) = (fields.len(), columns.len());
                let (is, found) = (if found == 1 { "is" } else { "are" }, counted(found, "field"));
                let why = format!("there {is} {found}, but the heading has {wanted}");
                let name = quoting::name(separator);
                return Err(whole(line, format!("{why}; quote fields that hold a {name}")));
            }
            let record = Record { cells: &cells, fields: &fields };
            let reading = record.read(layout).map_err(|error| CsvError::Row {
                path: path.to_owned(),
                line,
                field: error.field,
                why: error.why,
            })?;
            readings.push(Line { number: line, reading });
        }
        if readings.is_empty() {
            return Err(no_rows());
        }
        let gathered = gather(readings, &cells, layout, path)?;
        let notes = notes::notes(&gathered, &cells, layout);
        let Gathered { measured, lines, .. } = gathered;
        Ok(Sheet { measured, notes, lines })
    }

    /// The profiles that policies see, in the same order.
    pub fn profiles(&self) -> Vec<Profile> {
        self.measured.iter().map(Measured::profile).collect()
    }

    /// The rows that draw more than any machine's sockets could under their cap, which is a sign
    /// of another unit: how many, and the line of the first.
    pub fn implausible(&self) -> Option<(usize, usize)> {
        let draws_too_much = |row: &&Row| {
            let Configuration { nodes, cap, .. } = row.configuration;
            let sockets = u128::from(nodes) * u128::from(MOST_SOCKETS);
            u128::from(row.power.milliwatts()) > sockets * u128::from(cap.milliwatts())
        };
        let mut found: Vec<usize> = Vec::new();
        for (profile, lines) in self.profiles().iter().zip(&self.lines) {
            let rows = profile.rows.iter().filter(draws_too_much);
            found.extend(rows.filter_map(|row| lines.get(&row.configuration).copied()));
        }
        found.iter().min().map(|first| (found.len(), *first))
    }

    /// The line on which a configuration of an application first stands.
    pub fn line_of(&self, application: &str, configuration: &Configuration) -> Option<usize> {
        let mut named = self.measured.iter().zip(&self.lines);
        let (_, lines) = named.find(|(measured, _)| measured.application == application)?;
        lines.get(configuration).copied()
    }
}

/// Where the fields of a table are, by its heading.
fn understand(
    heading: &str,
    columns: &[Cow<'_, str>],
    line: usize,
    path: &Path,
    layout: &Layout,
) -> Result<Cells, CsvError> {
    let is_number = |text: &Cow<'_, str>| text.parse::<f64>().is_ok();
    if columns.iter().any(is_number) && !layout.knows_any(columns) {
        let found = heading.trim().to_owned();
        return Err(CsvError::NoHeading { path: path.to_owned(), line, found });
    }
    layout.cells(columns).map_err(|error| CsvError::Heading {
        path: path.to_owned(),
        line,
        column: error.column,
        why: error.why,
    })
}

/// Writes profiles as a table that [`Sheet::read`] reads.
pub fn write(out: &mut dyn Write, profiles: &[Profile]) -> io::Result<()> {
    writeln!(out, "{}", Field::WRITTEN.map(Field::column).join(","))?;
    for profile in profiles {
        let application = quote(&profile.application);
        for row in &profile.rows {
            let Configuration { nodes, cores, cap } = row.configuration;
            writeln!(
                out,
                "{application},{nodes},{cores},{},{},{},{}",
                decimal(cap.milliwatts()),
                decimal(row.time.millis()),
                decimal(row.power.milliwatts()),
                row.origin.name()
            )?;
        }
    }
    Ok(())
}

/// This many thousandths as a decimal number, without zeros that say nothing.
fn decimal(thousandths: u64) -> String {
    let (whole, rest) = (thousandths / 1000, thousandths % 1000);
    match rest {
        0 => whole.to_string(),
        _ => format!("{whole}.{rest:03}").trim_end_matches('0').to_owned(),
    }
}
