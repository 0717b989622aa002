//! Published data sets of jobs and their power, as CSV: PM100 and F-DATA.
//!
//! They are published in Parquet, in which a list is a value; as CSV, a list is a text in brackets. Columns are those
//! of the documentation of each set:
//!
//! - PM100 (Marconi100 at CINECA): `node_power_consumption` is the power of all nodes of a job together, in
//!   watts, every 20 s; `time_limit` is in minutes.
//! - F-DATA (Fugaku at RIKEN): `avgpcon` and `maxpcon` are the mean and the largest power of a job, in watts. The
//!   documentation says 'node power'; that all nodes of a job are meant can be seen from the energy, `econ`, which is
//!   that power times `duration`.

use std::borrow::Cow;

use super::collector::Collector;
use super::entry::{Entry, Measured, State};
use super::error::{Defect, shown};
use super::format::Format;
use super::id::Id;
use super::quantity::{count, whole};
use super::reader::{Read, Reader, Trouble};
use super::run::Ending;
use busbar_core::rows::quoting;
use busbar_core::units::Watts;

/// What is used of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Job,
    User,
    Group,
    Name,
    Queue,
    Partition,
    State,
    Submit,
    Start,
    End,
    Elapsed,
    Limit,
    Processors,
    Nodes,
    Power,
    Mean,
    Peak,
}

/// How many columns there are.
const COLUMNS: usize = Column::Peak as usize + 1;

const PM100: &[(&str, Column)] = &[
    ("job_id", Column::Job),
    ("user_id", Column::User),
    ("group_id", Column::Group),
    ("qos", Column::Queue),
    ("partition", Column::Partition),
    ("job_state", Column::State),
    ("submit_time", Column::Submit),
    ("start_time", Column::Start),
    ("end_time", Column::End),
    ("run_time", Column::Elapsed),
    ("time_limit", Column::Limit),
    ("num_cores_alloc", Column::Processors),
    ("num_nodes_alloc", Column::Nodes),
    ("node_power_consumption", Column::Power),
];

const FDATA: &[(&str, Column)] = &[
    ("jid", Column::Job),
    ("usr", Column::User),
    ("jnam", Column::Name),
    ("exit state", Column::State),
    ("adt", Column::Submit),
    ("sdt", Column::Start),
    ("edt", Column::End),
    ("duration", Column::Elapsed),
    ("elpl", Column::Limit),
    ("cnumat", Column::Processors),
    ("nnuma", Column::Nodes),
    ("avgpcon", Column::Mean),
    ("maxpcon", Column::Peak),
];

/// By which columns a set is recognised, and what there is no doing without.
fn needed(format: Format) -> &'static [&'static str] {
    match format {
        Format::Fdata => &["jid", "adt", "sdt", "edt", "nnuma", "avgpcon"],
        _ => &[
            "job_id",
            "submit_time",
            "start_time",
            "end_time",
            "num_nodes_alloc",
            "node_power_consumption",
        ],
    }
}

/// Which column stands where.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    separator: char,
    places: [Option<usize>; COLUMNS],
    count: usize,
}

impl Columns {
    /// The columns of a heading; an error names what is missing. Nothing if it is no text.
    pub(super) fn read(format: Format, line: &[u8]) -> Option<Result<Self, String>> {
        let line = std::str::from_utf8(line).ok()?.trim_start_matches('\u{feff}');
        let separator = quoting::separator(line);
        let names = quoting::split(line, separator).ok()?;
        let place = |wanted: &str| names.iter().position(|name| name == wanted);
        if let Some(missing) = needed(format).iter().find(|name| place(name).is_none()) {
            let title = format.title();
            return Some(Err(format!(
                "there is no column {missing}, which tables of {title} have"
            )));
        }
        let mut places = [None; COLUMNS];
        let known = if format == Format::Fdata { FDATA } else { PM100 };
        known.iter().for_each(|(name, column)| places[*column as usize] = place(name));
        Some(Ok(Columns { separator, places, count: names.len() }))
    }
}

/// Reads the rows of a data set.
#[derive(Debug)]
pub(super) struct Dataset {
    format: Format,
    columns: Option<Columns>,
}

impl Dataset {
    pub(super) fn new(format: Format) -> Self {
        Dataset { format, columns: None }
    }
}

impl Reader for Dataset {
    fn take(&mut self, line: &[u8], into: &mut Collector) -> Result<Read, Trouble> {
        let Some(columns) = &self.columns else {
            let read = Columns::read(self.format, line);
            let read = read.unwrap_or_else(|| Err("the first line is not a heading".to_owned()));
            self.columns = Some(read.map_err(Trouble::Heading)?);
            return Ok(Read::Heading);
        };
        let line = std::str::from_utf8(line).map_err(|_| Defect::Form("the line is not text"))?;
        let fields = quoting::split(line, columns.separator)
            .map_err(|_| Defect::Form("quotes do not match: the line is cut off"))?;
        let (found, expected) = (fields.len(), columns.count);
        if found != expected {
            return Err(Defect::Fields { found, expected }.into());
        }
        let row = Row { format: self.format, columns, fields: &fields };
        let entry = row.entry(into)?;
        into.take(&entry)?;
        Ok(Read::Record)
    }
}

/// A row of a data set.
struct Row<'a> {
    format: Format,
    columns: &'a Columns,
    fields: &'a [Cow<'a, str>],
}

impl<'a> Row<'a> {
    fn field(&self, column: Column) -> &'a str {
        let place = self.columns.places[column as usize];
        place.and_then(|place| self.fields.get(place)).map_or("", |field| field.as_ref())
    }

    /// A whole number, which tables may write as `17.0`.
    fn number(&self, column: Column) -> Option<u32> {
        let text = self.field(column);
        count(text.strip_suffix(".0").unwrap_or(text).as_bytes())
    }

    fn entry(&self, into: &mut Collector) -> Result<Entry<'a>, Defect> {
        let job = self.field(Column::Job);
        // Jobs without a number of their own are numbered in the log.
        let number = whole(job.as_bytes()).and_then(|number| u32::try_from(number).ok());
        let mut entry = Entry::new(number.map(Id::plain), self.state()?);
        entry.submit = into.time("submit", self.field(Column::Submit).as_bytes())?;
        entry.start = into.time("start", self.field(Column::Start).as_bytes())?;
        entry.end = into.time("end", self.field(Column::End).as_bytes())?;
        let elapsed: Option<f64> = self.field(Column::Elapsed).parse().ok();
        entry.elapsed = elapsed.filter(|elapsed| *elapsed >= 0.0).map(|elapsed| elapsed as u32);
        let limit: Option<f64> = self.field(Column::Limit).parse().ok();
        let unit = if self.format == Format::Pm100 { 60.0 } else { 1.0 };
        let limit = limit.map(|limit| limit * unit);
        let is_limit = |limit: &f64| *limit >= 1.0 && *limit <= f64::from(u32::MAX);
        entry.limit = limit.filter(is_limit).map(|limit| limit as u32);
        entry.processors = self.number(Column::Processors);
        entry.nodes = self.number(Column::Nodes);
        entry.user = self.field(Column::User).as_bytes();
        entry.group = self.field(Column::Group).as_bytes();
        entry.job_name = self.field(Column::Name).as_bytes();
        entry.queue = self.field(Column::Queue).as_bytes();
        entry.partition = self.field(Column::Partition).as_bytes();
        entry.measured = match self.format {
            Format::Pm100 => of_samples(self.field(Column::Power)),
            _ => of_figures(self.field(Column::Mean), self.field(Column::Peak)),
        };
        Ok(entry)
    }

    fn state(&self) -> Result<State, Defect> {
        let text = self.field(Column::State);
        let ending = match text.to_ascii_uppercase().as_str() {
            "COMPLETED" | "" => Ending::Completed,
            "CANCELLED" => Ending::Cancelled,
            "PENDING" => return Ok(State::Waiting),
            "RUNNING" => return Ok(State::Running),
            "FAILED" | "TIMEOUT" | "NODE_FAIL" | "PREEMPTED" | "OUT_OF_MEMORY" => Ending::Failed,
            _ => return Err(Defect::Unreadable { field: "state", text: shown(text.as_bytes()) }),
        };
        Ok(State::Ended(ending))
    }
}

/// The power of samples at equal distances: `[1200, 1300]`, or with blanks instead of commas.
fn of_samples(text: &str) -> Measured {
    let Some(list) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) else {
        return if is_unknown(text) { Measured::Nothing } else { Measured::Unreadable };
    };
    let (mut sum, mut largest, mut samples) = (0.0f64, 0.0f64, 0u32);
    for sample in list.split([',', ' ', '\n']).filter(|sample| !sample.is_empty()) {
        // Long lists may be abbreviated by whoever wrote them, with dots in the middle.
        let Some(watts) = power(sample) else { return Measured::Unreadable };
        (sum, largest, samples) = (sum + watts, largest.max(watts), samples + 1);
    }
    match samples {
        0 => Measured::Nothing,
        samples => measured(sum / f64::from(samples), Some(largest)),
    }
}

fn of_figures(mean: &str, peak: &str) -> Measured {
    if is_unknown(mean) {
        return Measured::Nothing;
    }
    power(mean).map_or(Measured::Unreadable, |mean| measured(mean, power(peak)))
}

fn measured(mean: f64, peak: Option<f64>) -> Measured {
    let watts = |watts: f64| Watts::from_f64_rounded_up(watts).filter(|watts| *watts > Watts::ZERO);
    match watts(mean) {
        Some(mean) => Measured::Power { mean, peak: peak.and_then(watts) },
        // A job that draws nothing was not measured.
        None => Measured::Nothing,
    }
}

fn power(text: &str) -> Option<f64> {
    text.parse().ok().filter(|watts: &f64| watts.is_finite() && *watts >= 0.0)
}

fn is_unknown(text: &str) -> bool {
    text.is_empty() || text.eq_ignore_ascii_case("nan") || text == "None"
}
