//! Profiles as tables in text: how they come and go.
//!
//! The first line names the columns: `application,nodes,cores,cap_w,time_s,power_w`, in any order,
//! and `origin` if some rows are predicted. A [`Layout`] says how the columns of other people's
//! files are meant. Numbers are exact: what was read is written again digit for digit, but for
//! zeros that say nothing.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::profile::{Configuration, Profile};
use crate::rows::lines;

mod layout;
mod quoting;
mod record;
mod value;

pub use layout::{CapRange, Constant, Field, Layout, LayoutError, Renamed};
use record::Record;

/// Why a table could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// The file cannot be read.
    #[error("cannot read the profile {}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file says nothing.
    #[error(
        "{} has no rows; write a heading, {}, and one row for each configuration",
        path.display(), Field::ALL.map(Field::column).join(",")
    )]
    NoRows {
        /// Which file.
        path: PathBuf,
    },
    /// The heading does not have what it should.
    #[error("{}, line {line}, column '{column}': {why}", path.display())]
    Heading {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Which column.
        column: String,
        /// What is wrong and what to do.
        why: String,
    },
    /// A line is not made of fields.
    #[error("{}, line {line}: {why}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong and what to do.
        why: String,
    },
    /// A field of a row is wrong.
    #[error("{}, line {line}, field '{field}': {why}", path.display())]
    Row {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Which column, as the file calls it.
        field: String,
        /// What is wrong and what to write.
        why: String,
    },
    /// Two rows speak of the same.
    #[error(
        "{}, line {line}: {application} on {configuration} is in line {before} already; keep one",
        path.display()
    )]
    Duplicate {
        /// Which file.
        path: PathBuf,
        /// The later line, from 1.
        line: usize,
        /// The earlier one.
        before: usize,
        /// Which application.
        application: String,
        /// In which configuration.
        configuration: Configuration,
    },
}

/// A table that was read.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// The profiles, in the order in which their applications first occur.
    pub profiles: Vec<Profile>,
    /// Where each configuration of each profile stands.
    lines: Vec<HashMap<Configuration, usize>>,
}

impl Sheet {
    /// Reads a file.
    pub fn read(path: &Path, layout: &Layout) -> Result<Self, CsvError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| CsvError::Unreadable { path: path.to_owned(), source })?;
        Sheet::parse(&text, path, layout)
    }

    /// Reads the text of a file, which the path names in errors.
    pub fn parse(text: &str, path: &Path, layout: &Layout) -> Result<Self, CsvError> {
        let no_rows = || CsvError::NoRows { path: path.to_owned() };
        let mut lines = lines(text);
        let (line, heading) = lines.next().ok_or_else(no_rows)?;
        let whole = |line, why: String| CsvError::Line { path: path.to_owned(), line, why };
        let fields = |line, text| {
            quoting::split(text).map_err(|why| whole(line, format!("{why}; mend the quotes")))
        };
        let columns = fields(line, heading)?;
        let cells = layout.cells(&columns).map_err(|error| CsvError::Heading {
            path: path.to_owned(),
            line,
            column: error.column,
            why: error.why,
        })?;
        let mut sheet = Sheet { profiles: Vec::new(), lines: Vec::new() };
        let mut places = HashMap::new();
        for (line, text) in lines {
            let fields = fields(line, text)?;
            if fields.len() != columns.len() {
                let (found, wanted) = (fields.len(), columns.len());
                let why = format!("there are {found} fields, but the heading has {wanted}");
                return Err(whole(line, format!("{why}; quote fields that hold commas")));
            }
            let record = Record { cells: &cells, fields: &fields };
            let (application, row) = record.read(layout).map_err(|error| CsvError::Row {
                path: path.to_owned(),
                line,
                field: error.field,
                why: error.why,
            })?;
            let place = *places.entry(application.clone()).or_insert_with(|| {
                sheet.profiles.push(Profile { application, rows: Vec::new() });
                sheet.lines.push(HashMap::new());
                sheet.profiles.len() - 1
            });
            let profile = &mut sheet.profiles[place];
            if let Some(before) = sheet.lines[place].insert(row.configuration, line) {
                return Err(CsvError::Duplicate {
                    path: path.to_owned(),
                    line,
                    before,
                    application: profile.application.clone(),
                    configuration: row.configuration,
                });
            }
            profile.rows.push(row);
        }
        for profile in &mut sheet.profiles {
            profile.rows.sort_by_key(|row| row.configuration);
        }
        if sheet.profiles.is_empty() { Err(no_rows()) } else { Ok(sheet) }
    }

    /// The line on which a configuration of an application stands.
    pub fn line_of(&self, application: &str, configuration: &Configuration) -> Option<usize> {
        let mut named = self.profiles.iter().zip(&self.lines);
        let (_, lines) = named.find(|(profile, _)| profile.application == application)?;
        lines.get(configuration).copied()
    }
}

/// Writes profiles as a table that [`Sheet::read`] reads.
pub fn write(out: &mut dyn Write, profiles: &[Profile]) -> io::Result<()> {
    writeln!(out, "{}", Field::ALL.map(Field::column).join(","))?;
    for profile in profiles {
        let application = quoting::quote(&profile.application);
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

/// So many thousandths as a decimal number, without zeros that say nothing.
fn decimal(thousandths: u64) -> String {
    let (whole, rest) = (thousandths / 1000, thousandths % 1000);
    match rest {
        0 => whole.to_string(),
        _ => format!("{whole}.{rest:03}").trim_end_matches('0').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Origin, Row};
    use crate::units::{Span, Watts};
    use proptest::prelude::*;
    use std::num::NonZeroU32;

    fn read_as(layout: &Layout, text: &str) -> Result<Sheet, String> {
        Sheet::parse(text, Path::new("sp.csv"), layout).map_err(|error| error.to_string())
    }

    fn read(text: &str) -> Result<Sheet, String> {
        read_as(&Layout::default(), text)
    }

    fn written(profiles: &[Profile]) -> String {
        let mut text = Vec::new();
        write(&mut text, profiles).unwrap();
        String::from_utf8(text).unwrap()
    }

    const HEADING: &str = "application,nodes,cores,cap_w,time_s,power_w";

    #[test]
    fn the_table_of_the_paper() {
        let sheet = read(
            "\u{feff}# SP-MZ\napplication,nodes,cores,cap_w,power_w,time_s\r\n\
             SP-MZ, 8, 12, 65, 783.8, 415.3\n\nSP-MZ,6,16,115,796.4,447.90\nLU-MZ,8,10,80,1,2\n",
        )
        .unwrap();
        let names: Vec<&str> = sheet.profiles.iter().map(|p| p.application.as_str()).collect();
        assert_eq!(names, ["SP-MZ", "LU-MZ"]);
        let rows = &sheet.profiles[0].rows;
        assert_eq!(
            rows[0],
            Row {
                configuration: Configuration { nodes: 6, cores: 16, cap: Watts::from_watts(115) },
                time: Span::from_millis(447_900),
                power: Watts::from_milliwatts(796_400),
                origin: Origin::Measured,
            }
        );
        assert_eq!(sheet.line_of("SP-MZ", &rows[0].configuration), Some(5));
        assert_eq!(sheet.line_of("SP-MZ", &rows[1].configuration), Some(3));
        assert_eq!(sheet.line_of("BT-MZ", &rows[1].configuration), None);
        assert_eq!(
            written(&sheet.profiles),
            "application,nodes,cores,cap_w,time_s,power_w,origin\n\
             SP-MZ,6,16,115,447.9,796.4,measured\n\
             SP-MZ,8,12,65,415.3,783.8,measured\n\
             LU-MZ,8,10,80,2,1,measured\n"
        );
    }

    #[test]
    fn what_is_wrong_is_named_by_line_and_field() {
        let error = |rows: &str| read(&format!("{HEADING}\n{rows}")).unwrap_err();
        assert!(error("").starts_with("sp.csv has no rows; write a heading, application,nodes,"));
        assert_eq!(read("# nothing\n").unwrap_err(), error(""));
        assert_eq!(
            error("SP,8,12,65,1,1\nSP,8,12,65,0,1"),
            "sp.csv, line 3, field 'time_s': '0' is not above zero; \
             write seconds with at most three decimals, such as 415.3"
        );
        assert!(
            error("SP,8,12,65,1,-4").starts_with("sp.csv, line 2, field 'power_w': '-4' is not")
        );
        assert!(error("SP,0,12,65,1,1").starts_with("sp.csv, line 2, field 'nodes'"));
        assert!(error("SP,8,many,65,1,1").starts_with("sp.csv, line 2, field 'cores'"));
        assert!(error(",8,12,65,1,1").starts_with("sp.csv, line 2, field 'application'"));
        assert_eq!(
            error("SP,8,12,65,1"),
            "sp.csv, line 2: there are 5 fields, but the heading has 6; \
             quote fields that hold commas"
        );
        assert!(error("\"SP,8,12,65,1,1").starts_with("sp.csv, line 2: a quote is opened"));
        assert_eq!(
            error("SP,8,12,65,1,1\nLU,8,12,65,1,1\n#\nSP,8,12,65.0,2,2"),
            "sp.csv, line 5: SP on 8 nodes × 12 cores at 65W is in line 2 already; keep one"
        );
        let missing = read("application,nodes,cores,cap_w,runtime,power_w\n").unwrap_err();
        assert!(
            missing.starts_with("sp.csv, line 1, column 'time_s': it is missing; there are: appl"),
            "{missing}"
        );
    }

    #[test]
    fn files_of_others_are_read_as_they_are_meant() {
        let layout = Layout {
            renamed: ["application=class/app", "cap=both_w", "time=run", "power=pkg"]
                .map(|text| text.parse().unwrap())
                .to_vec(),
            constants: ["nodes=1", "cores=24", "origin=predicted"]
                .map(|text| text.parse().unwrap())
                .to_vec(),
            sockets_per_cap: NonZeroU32::new(2).unwrap(),
            cap_range: Some("50W..100W".parse().unwrap()),
            ignore_other_columns: true,
        };
        let read =
            |rows: &str| read_as(&layout, &format!("class,app,both_w,run,pkg,notes\n{rows}"));
        let sheet = read("big,lu,125,54.09,75.14,\"hot, noisy\"\n").unwrap();
        assert_eq!(
            written(&sheet.profiles).lines().last(),
            Some("big/lu,1,24,62.5,54.09,75.14,predicted")
        );
        assert_eq!(
            read("big,lu,80,54.09,75.14,\n").unwrap_err(),
            "sp.csv, line 2, field 'both_w': a cap of 40W a socket is outside 50W..100W"
        );
        assert_eq!(
            read("big,lu,125.001,54.09,75.14,\n").unwrap_err(),
            "sp.csv, line 2, field 'both_w': 125.001W cannot be divided among 2 sockets to the milliwatt"
        );
        assert!(
            read("big,,125,54.09,75.14,\n")
                .unwrap_err()
                .contains("field 'class/app': there is no name")
        );
        assert!(
            read("big,lu,125,54.09,,\n").unwrap_err().contains("field 'pkg': there is no value")
        );
    }

    /// Any profile: some rows, in order, each configuration once.
    fn profile() -> impl Strategy<Value = Profile> {
        let key = (1..4u32, 1..4u32, 1..4000u64);
        let value = (1..4000u64, 1..=Watts::LARGEST.milliwatts(), any::<bool>());
        let rows = prop::collection::btree_map(key, value, 1..9);
        ("[#a\", é/-]{0,5}x", rows).prop_map(|(name, rows)| Profile {
            application: name.trim().to_owned(),
            rows: rows
                .into_iter()
                .map(|((nodes, cores, cap), (time, power, is_measured))| Row {
                    configuration: Configuration { nodes, cores, cap: Watts::from_milliwatts(cap) },
                    time: Span::from_millis(time),
                    power: Watts::from_milliwatts(power),
                    origin: if is_measured { Origin::Measured } else { Origin::Predicted },
                })
                .collect(),
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(profile in profile()) {
            let text = written(std::slice::from_ref(&profile));
            let sheet = read(&text).unwrap();
            prop_assert_eq!(&sheet.profiles, &[profile]);
            prop_assert_eq!(written(&sheet.profiles), text);
        }

        #[test]
        fn no_text_makes_it_panic(text in "([a,\"\n#0-9.-]|nodes|cores|application){0,60}") {
            let _ = read(&text);
            let _ = read(&format!("{HEADING}\n{text}"));
        }
    }
}
