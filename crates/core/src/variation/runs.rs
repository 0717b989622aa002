//! Runs of processors as sites log them: a table with a column for each thing, from which curves are made.
//!
//! A run has a processor, an application, a cap, how long it took or how fast it was, and what was drawn. All runs
//! become rows of a [table of curves](super::csv), which sums up those of one point.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::csv::Measurement;
use super::{Ips, Knot};
use crate::rows::{Form, Number, TableError, lines, quoting};
use crate::units::Watts;

const FORM: Form = Form { what: "the runs", columns: &["runs"], form: "" };

/// What a run says, piece by piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunField {
    /// The processor, by its name.
    Processor,
    /// The application, by its name.
    Application,
    /// The cap, in watts.
    Cap,
    /// How long it took, in seconds, or in milliseconds if the column ends in `_ms`.
    Time,
    /// How much it did in a second, where there is no time.
    Speed,
    /// What was drawn, in watts.
    Power,
}

impl RunField {
    const ALL: [RunField; 6] = [
        RunField::Processor,
        RunField::Application,
        RunField::Cap,
        RunField::Time,
        RunField::Speed,
        RunField::Power,
    ];

    fn name(self) -> &'static str {
        match self {
            RunField::Processor => "processor",
            RunField::Application => "application",
            RunField::Cap => "cap",
            RunField::Time => "time",
            RunField::Speed => "speed",
            RunField::Power => "power",
        }
    }

    /// The columns it is known by.
    fn columns(self) -> &'static [&'static str] {
        match self {
            RunField::Processor => &["processor", "gpu"],
            RunField::Application => &["application", "app"],
            RunField::Cap => &["cap_w", "socket_cap_w", "gpu_cap_w"],
            RunField::Time => &["time_s", "time_ms", "kernel_time_ms", "iteration_time_ms"],
            RunField::Speed => &["gips", "speed"],
            RunField::Power => &["power_w", "gpu_power_w"],
        }
    }
}

impl fmt::Display for RunField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What somebody says of a field: `power=gpu_power_mean_w`, `cap=300W`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saying {
    field: RunField,
    text: String,
}

impl FromStr for Saying {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let valid = RunField::ALL.map(RunField::name).join(", ");
        let (name, what) = text.split_once('=').unwrap_or((text, ""));
        let field = RunField::ALL.into_iter().find(|field| field.name() == name.trim());
        match (field, what.trim()) {
            (None, _) => Err(format!("there is no field '{}'; valid fields: {valid}", name.trim())),
            (Some(_), "") => Err(format!("'{text}': write FIELD=VALUE, such as cap=300W")),
            (Some(field), what) => Ok(Saying { field, text: what.to_owned() }),
        }
    }
}

/// Where a field is found.
enum Place {
    Column { name: String, place: usize },
    Constant(String),
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
struct OneRun {
    processor: String,
    application: String,
    cap: Watts,
    knot: Knot,
}

/// All runs of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs {
    runs: Vec<OneRun>,
    /// Whether they have times, of which speeds are made.
    pub are_timed: bool,
    /// Columns that hold nothing, by their names.
    pub others: Vec<String>,
}

impl Runs {
    /// Reads a file, with columns under other names and values that all runs have in common.
    pub fn read(path: &Path, columns: &[Saying], constants: &[Saying]) -> Result<Self, TableError> {
        Runs::parse(&FORM.read(path)?, path, columns, constants)
    }

    /// Reads the text of a file, which the path names in errors.
    pub fn parse(
        text: &str,
        path: &Path,
        columns: &[Saying],
        constants: &[Saying],
    ) -> Result<Self, TableError> {
        let whole = |why: String| Form::incomplete(path, why);
        let mut lines = lines(text);
        let (_, heading) = lines.next().ok_or_else(|| whole("there are no rows".to_owned()))?;
        let separator = quoting::separator(heading);
        let heading = quoting::split(heading, separator).map_err(whole)?;
        let place = |field| place_of(field, &heading, columns, constants);
        let needed = |field: RunField| {
            place(field).ok_or_else(|| {
                whole(format!(
                    "the column '{field}' is missing; the columns are: {}; name it (--column {field}=NAME), or \
                    give one value for all runs (--set {field}=VALUE)",
                    heading.join(", ")
                ))
            })
        };
        let time = place(RunField::Time);
        let pace = match time {
            Some(time) => time,
            None => needed(RunField::Speed)?,
        };
        let is_time = place(RunField::Time).is_some();
        let [processor, application, cap, power] =
            [RunField::Processor, RunField::Application, RunField::Cap, RunField::Power]
                .map(needed);
        let places = [processor?, application?, cap?, pace, power?];
        let mut runs = Vec::new();
        for (line, text) in lines {
            let wrong = |field: &'static str, why: String| TableError::Row {
                path: path.to_owned(),
                line,
                field,
                why,
            };
            let fields = quoting::split(text, separator).map_err(|why| wrong("runs", why))?;
            let [processor, application, cap, pace, power] =
                places.each_ref().map(|place| match place {
                    Place::Constant(text) => text.as_str(),
                    Place::Column { place, .. } => {
                        fields.get(*place).map_or("", |field| field.as_ref())
                    }
                });
            for (field, name) in [("processor", processor), ("application", application)] {
                if name.is_empty() || name.contains(char::is_control) {
                    return Err(wrong(
                        field,
                        format!("{name:?} is not a valid name; write for example p17 or EP"),
                    ));
                }
            }
            let cap = watts(cap).map_err(|why| wrong("cap", why))?;
            let power = watts(power).map_err(|why| wrong("power", why))?;
            let ips = match is_time {
                true => speed_of(pace, &places[3]).map_err(|why| wrong("time", why))?,
                false => speed(pace).map_err(|why| wrong("speed", why))?,
            };
            let [processor, application] = [processor, application].map(str::to_owned);
            runs.push(OneRun { processor, application, cap, knot: Knot { power, ips } });
        }
        if runs.is_empty() {
            return Err(whole("there are no rows".to_owned()));
        }
        let is_used = |place: usize| {
            places.iter().any(|used| matches!(used, Place::Column { place: p, .. } if *p == place))
        };
        let others = heading.iter().enumerate().filter(|(place, _)| !is_used(*place));
        let others = others.map(|(_, name)| name.to_string()).collect();
        Ok(Runs { runs, are_timed: is_time, others })
    }

    /// A row for each run, in their order.
    pub fn measurements(&self) -> impl Iterator<Item = Measurement<'_>> {
        self.runs.iter().map(|OneRun { processor, application, cap, knot }| Measurement {
            processor,
            application,
            cap: *cap,
            knot: *knot,
        })
    }
}

fn place_of(
    field: RunField,
    heading: &[impl AsRef<str>],
    columns: &[Saying],
    constants: &[Saying],
) -> Option<Place> {
    if let Some(said) = constants.iter().find(|said| said.field == field) {
        return Some(Place::Constant(said.text.clone()));
    }
    let find = |name: &str| {
        let place = heading.iter().position(|column| column.as_ref().eq_ignore_ascii_case(name))?;
        Some(Place::Column { name: name.to_owned(), place })
    };
    match columns.iter().find(|said| said.field == field) {
        Some(said) => find(&said.text),
        None => field.columns().iter().find_map(|name| find(name)),
    }
}

/// Watts above zero, with or without their unit, rounded up.
fn watts(text: &str) -> Result<Watts, String> {
    let number = Number::read(text.trim_end_matches('W').trim()).filter(|number| !number.is_zero());
    let power = number.and_then(|number| number.up(3)).map(Watts::from_milliwatts);
    let power = power.filter(|power| *power <= Knot::MOST_POWER);
    power.ok_or_else(|| {
        format!(
            "'{text}' is not above zero and at most {}; write watts, such as 297.66",
            Knot::MOST_POWER
        )
    })
}

/// What is done in a second, of work that takes so long.
fn speed_of(text: &str, place: &Place) -> Result<Ips, String> {
    let in_millis =
        matches!(place, Place::Column { name, .. } if name.to_ascii_lowercase().ends_with("_ms"));
    let number = Number::read(text).filter(|number| !number.is_zero());
    let nanos = number.and_then(|number| number.nearest(if in_millis { 6 } else { 9 }));
    // A billion instructions stand for one unit of work.
    let ips = nanos.map(|nanos| 1_000_000_000_000_000_000 / nanos.max(1));
    let ips = ips.filter(|ips| (1..=Ips::LARGEST.ips()).contains(ips)).map(Ips::from_ips);
    ips.ok_or_else(|| format!("'{text}' is not a time above zero; write for example 2438.734"))
}

fn speed(text: &str) -> Result<Ips, String> {
    let ips = Number::read(text).and_then(|number| number.nearest(9));
    let ips = ips.filter(|ips| (1..=Ips::LARGEST.ips()).contains(ips)).map(Ips::from_ips);
    ips.ok_or_else(|| format!("'{text}' is not a speed above zero and at most {}", Ips::LARGEST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variation::csv::{Table, write_relative};

    fn read(text: &str, columns: &[&str], constants: &[&str]) -> Result<Runs, String> {
        let said = |texts: &[&str]| -> Vec<Saying> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        let points = Runs::parse(text, Path::new("r.csv"), &said(columns), &said(constants));
        points.map_err(|error| error.to_string())
    }

    const RUNS: &str = "application,gpu,node,kernel_time_ms,gpu_power_w
SGEMM,g0,,2000,296.89
SGEMM,g0,,2500,297.65999999999997
SGEMM,g0,,2100,290
SGEMM,g1,7,1000,250
";

    #[test]
    fn runs_become_rows_of_curves() {
        let runs = read(RUNS, &[], &["cap=300W"]).unwrap();
        let rows: Vec<Measurement<'_>> = runs.measurements().collect();
        assert_eq!((rows.len(), runs.are_timed), (4, true));
        assert_eq!((rows[0].processor, rows[0].cap), ("g0", Watts::from_watts(300)));
        // Half a unit of work in a second.
        assert_eq!(rows[0].knot.ips, Ips::from_ips(500_000_000));
        assert_eq!(rows[1].knot.power, Watts::from_milliwatts(297_660), "rounded up");
        assert_eq!(runs.others, ["node"]);
        let mut text = Vec::new();
        write_relative(&mut text, runs.measurements()).unwrap();
        let text = String::from_utf8(text).unwrap();
        let table = Table::parse(&text, Path::new("c.csv")).unwrap();
        assert_eq!(table.processors.names(), ["g0", "g1"]);
        assert_eq!(table.repeated.unwrap().runs, 3);
    }

    #[test]
    fn what_is_missing_or_wrong_is_said() {
        let error = |text: &str, columns: &[&str]| read(text, columns, &[]).unwrap_err();
        assert!(error(RUNS, &[]).contains("the column 'cap' is missing"), "{}", error(RUNS, &[]));
        assert!(error(RUNS, &["cap=limit"]).contains("(--set cap=VALUE)"));
        let zero = RUNS.replace("2000", "0");
        assert_eq!(
            read(&zero, &[], &["cap=300"]).unwrap_err(),
            "r.csv, line 2, field 'time': '0' is not a time above zero; write for example 2438.734"
        );
        assert!(error("", &[]).contains("no rows"));
        assert!("watts=3".parse::<Saying>().unwrap_err().contains("valid fields: processor"));
        assert!("cap=".parse::<Saying>().unwrap_err().contains("such as cap=300W"));
    }
}
