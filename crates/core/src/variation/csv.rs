//! Curves as a table in text: how measured ones come, and how generated ones go.
//!
//! One row for each processor, application and cap: `processor,application,cap_w,gips,power_w`. All
//! is refused that would make a curve wrong without anybody noticing: a cap that is missing, a
//! processor without a curve, speed that falls as power rises. Power above the cap is what some processors
//! draw; it is taken as measured, and counted. Several runs at one cap are summed up by the median of their speeds
//! and the largest of their powers. `speed` may stand for `gips`: work of any kind done in a second.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use std::path::Path;

use super::{Application, Curve, Ips, Knot, Processors};
use crate::rows::{Cells, Form, Number, TableError, lines, quote};
use crate::units::Watts;

#[cfg(test)]
mod tests;

const FORM: Form = Form {
    what: "the curves",
    columns: &["processor", "application", "cap_w", "gips", "power_w"],
    form: "write processor,application,cap_w,gips,power_w",
};

/// The same with speeds that are not counted in instructions.
const RELATIVE: Form = Form {
    columns: &["processor", "application", "cap_w", "speed", "power_w"],
    form: "write processor,application,cap_w,speed,power_w",
    ..FORM
};

/// By how much a speed may be below one with less power, in thousandths, and pass as noise.
const NOISE_THOUSANDTHS: u64 = 20;

/// A table that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The processors and their curves.
    pub processors: Processors,
    /// Rows that drew more than their cap: how many, and the line of the first.
    pub above_cap: Option<(usize, usize)>,
    /// Rows that are slower than one with no more power, by so little that it is noise: how many, and
    /// the line of the first. They are left out.
    pub noise: Option<(usize, usize)>,
    /// Points of curves that were measured several times.
    pub repeated: Option<Repeated>,
    /// Whether speeds are not counted in instructions: a billion of them stands for one unit of work.
    pub is_relative: bool,
}

/// Points of curves that were measured several times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Repeated {
    /// Their number.
    pub points: usize,
    /// How many runs they have together.
    pub runs: usize,
    /// By how much the fastest run of one is faster than its slowest, at most, in per cent.
    pub percent: f64,
}

/// A row, as far as a curve is concerned.
#[derive(Clone, Copy)]
struct Row {
    line: usize,
    cap: Watts,
    knot: Knot,
}

/// Names with their places, in the order in which they first occur.
#[derive(Default)]
struct Names {
    places: HashMap<String, usize>,
    names: Vec<String>,
}

impl Names {
    fn place(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        self.names.push(name.to_owned());
        self.places.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }
}

/// What is wrong with a line.
struct Wrong {
    line: usize,
    field: &'static str,
    why: String,
}

impl Table {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, TableError> {
        Table::parse(&FORM.read(path)?, path)
    }

    /// Reads the text of a file, which the path names in errors.
    pub fn parse(text: &str, path: &Path) -> Result<Self, TableError> {
        let missing = |why: String| Form::incomplete(path, why);
        let at = |Wrong { line, field, why }: Wrong| TableError::Row {
            path: path.to_owned(),
            line,
            field,
            why,
        };
        let (mut processors, mut applications) = (Names::default(), Names::default());
        let mut found: HashMap<(usize, usize), Vec<Row>> = HashMap::new();
        let first = lines(text).next().map_or("", |(_, first)| first);
        let is_relative = first.replace(' ', "").eq_ignore_ascii_case(&RELATIVE.heading());
        let form = if is_relative { RELATIVE } else { FORM };
        for cells in form.rows(text, path) {
            let cells = cells?;
            if found.is_empty() {
                check_heading(&cells)?;
            }
            let [processor, application, ..] = cells.all::<5>();
            let row = read_row(&cells)?;
            let place = (applications.place(application), processors.place(processor));
            found.entry(place).or_default().push(row);
        }
        let caps: BTreeSet<Watts> = found.values().flatten().map(|row| row.cap).collect();
        let Some(floor) = caps.first().copied() else {
            let heading = FORM.heading();
            return Err(missing(format!(
                "there are no rows; write a heading, {heading}, and rows"
            )));
        };
        let (mut above_cap, mut noise) = (Count::default(), Count::default());
        let mut repeated = Repeated::default();
        let mut curves_of = |(place, application): (usize, &String)| {
            let curve = |(processor, name): (usize, &String)| {
                let mut rows = found.remove(&(place, processor)).ok_or_else(|| {
                    missing(format!(
                        "processor '{name}' has no rows for {application}, which others have; \
                         measure it there, or remove the processor or the application"
                    ))
                })?;
                sum_up(&mut rows, &mut repeated);
                check_caps(&rows, &caps, name, application).map_err(missing)?;
                for row in rows.iter().filter(|row| row.knot.power > row.cap) {
                    above_cap.add(row.line);
                }
                check_rise(&mut rows, &mut noise).map_err(at)?;
                let first = rows.first().map_or(0, |row| row.line);
                let knots = rows.into_iter().map(|row| row.knot).collect();
                Curve::new(floor, knots).map_err(|error| {
                    at(Wrong { line: first, field: "power_w", why: error.to_string() })
                })
            };
            let curves = processors.names.iter().enumerate().map(curve);
            let curves = curves.collect::<Result<Vec<Curve>, TableError>>()?;
            Ok(Application { name: application.clone(), curves })
        };
        let applications = applications.names.iter().enumerate().map(&mut curves_of);
        let applications = applications.collect::<Result<Vec<_>, TableError>>()?;
        let processors = Processors::new(processors.names, floor, applications)
            .ok_or_else(|| missing("there are no processors".to_owned()))?;
        let repeated = (repeated.points > 0).then_some(repeated);
        Ok(Table { processors, above_cap: above_cap.0, noise: noise.0, repeated, is_relative })
    }
}

impl Table {
    /// What people should know of it; the path is that of its file.
    pub fn remarks(&self, path: &Path) -> Vec<String> {
        let name = path.display();
        let above_cap = self.above_cap.map(|(rows, first)| {
            format!(
                "{name}: rows that draw more than their cap: {rows}, the first in line {first}; their real power \
                is used"
            )
        });
        let noise = self.noise.map(|(rows, first)| {
            format!(
                "{name}: rows that are slower than one with no more power, by up to {} %: {rows}, \
                 the first in line {first}; they count as noise and are left out",
                NOISE_THOUSANDTHS / 10
            )
        });
        let repeated = self.repeated.map(|Repeated { points, runs, percent }| {
            let of = if points == 1 { "1 point".to_owned() } else { format!("{points} points") };
            format!(
                "{name}: {runs} runs of {of} are summarised by the median speed and the largest power; speeds of \
                one configuration differ by up to {percent:.1} %"
            )
        });
        let relative = self.is_relative.then(|| {
            format!("{name}: speeds are not in instructions; 1 GIPS stands for one unit of work in a second")
        });
        above_cap.into_iter().chain(noise).chain(repeated).chain(relative).collect()
    }
}

/// How many lines, and the first of them.
#[derive(Default)]
struct Count(Option<(usize, usize)>);

impl Count {
    fn add(&mut self, line: usize) {
        let (count, first) = self.0.unwrap_or((0, line));
        self.0 = Some((count + 1, first.min(line)));
    }
}

/// A first row without a number in it is a heading with other columns.
fn check_heading(cells: &Cells<'_>) -> Result<(), TableError> {
    let fields = cells.all::<5>();
    let is_number = |field: &&str| field.starts_with(|first: char| first.is_ascii_digit());
    if fields[2..].iter().any(is_number) {
        return Ok(());
    }
    let (found, heading) = (fields.join(","), FORM.heading());
    let differs = |(field, column): &(&&str, &&str)| !field.eq_ignore_ascii_case(column);
    let column = fields.iter().zip(FORM.columns).find(differs);
    let field = column.map_or(FORM.columns[0], |(_, column)| *column);
    Err(cells.wrong(field, format!("the heading is {found}; write {heading}")))
}

/// A row but for its names, which are checked, too.
fn read_row(cells: &Cells<'_>) -> Result<Row, TableError> {
    let wrong = |field, why: String| cells.wrong(field, why);
    let [processor, application, cap, gips, power] = cells.all();
    for (field, name) in [("processor", processor), ("application", application)] {
        if name.is_empty() || name.contains(char::is_control) {
            return Err(wrong(
                field,
                format!("{name:?} is not a valid name; write for example p17 or EP"),
            ));
        }
    }
    let watts = |field, text: &str| {
        let number = above_zero(text, "watts, such as 59.99").map_err(|why| wrong(field, why))?;
        // Never less than was measured.
        let power = number.up(3).map(|power| Watts::from_milliwatts(power.max(1)));
        let too_much = || format!("'{text}' is too large; at most {}", Knot::MOST_POWER);
        power.filter(|power| *power <= Knot::MOST_POWER).ok_or_else(|| wrong(field, too_much()))
    };
    let cap = watts("cap_w", cap)?;
    let power = watts("power_w", power)?;
    let ips = above_zero(gips, "billions of instructions per second, such as 46.43")
        .map_err(|why| wrong("gips", why))?;
    let ips = ips.nearest(9).map(|ips| ips.max(1)).filter(|ips| *ips <= Ips::LARGEST.ips());
    let too_fast = || format!("'{gips}' is too large; at most {}", Ips::LARGEST);
    let ips = ips.ok_or_else(|| wrong("gips", too_fast()))?;
    let knot = Knot { power, ips: Ips::from_ips(ips) };
    Ok(Row { line: cells.line(), cap, knot })
}

/// A number above zero.
fn above_zero<'a>(text: &'a str, wanted: &str) -> Result<Number<'a>, String> {
    match Number::read(text) {
        _ if text.is_empty() => Err(format!("the value is missing; write {wanted}")),
        Some(number) if !number.is_zero() => Ok(number),
        None if !text.starts_with('-') => Err(format!("'{text}' is not a number; write {wanted}")),
        _ => Err(format!("'{text}' is not above zero; write {wanted}")),
    }
}

/// Puts several runs at one cap into one row, which has the line of the first. Sorts the rows by cap.
fn sum_up(rows: &mut Vec<Row>, repeated: &mut Repeated) {
    rows.sort_by_key(|row| (row.cap, row.line));
    let summed = rows.chunk_by(|one, other| one.cap == other.cap).map(|runs| {
        let mut speeds: Vec<Ips> = runs.iter().map(|run| run.knot.ips).collect();
        speeds.sort_unstable();
        if let [slowest, .., fastest] = speeds[..] {
            repeated.points += 1;
            repeated.runs += runs.len();
            let percent = 100.0 * (fastest.billions() / slowest.billions() - 1.0);
            repeated.percent = repeated.percent.max(percent);
        }
        // Of an even number the slower one of the two in the middle.
        let ips = speeds[(speeds.len() - 1) / 2];
        let power = runs.iter().map(|run| run.knot.power).fold(Watts::ZERO, Watts::max);
        Row { knot: Knot { power, ips }, ..runs[0] }
    });
    *rows = summed.collect();
}

/// Every cap that occurs in the table is there; if not, what is missing.
fn check_caps(
    rows: &[Row],
    caps: &BTreeSet<Watts>,
    processor: &str,
    application: &str,
) -> Result<(), String> {
    match caps.iter().find(|cap| rows.binary_search_by_key(*cap, |row| row.cap).is_err()) {
        None => Ok(()),
        Some(cap) => Err(format!(
            "processor '{processor}' has no row for {application} at {cap}, a cap that others have; \
             measure it, or remove that cap everywhere"
        )),
    }
}

/// More power is never slower, but for noise. Sorts the rows by power.
fn check_rise(rows: &mut [Row], noise: &mut Count) -> Result<(), Wrong> {
    rows.sort_by_key(|row| (row.knot.power, row.knot.ips, row.line));
    let mut fastest: Option<Row> = None;
    for row in rows.iter() {
        let Some(before) = fastest.filter(|before| before.knot.ips > row.knot.ips) else {
            fastest = Some(*row);
            continue;
        };
        let (fast, slow) = (before.knot.ips.ips(), row.knot.ips.ips());
        // Both are far below what would overflow.
        if slow * 1000 < fast * (1000 - NOISE_THOUSANDTHS) {
            let why = format!(
                "{} at {} is more than {} % slower than {} at {} in line {}; speed cannot fall as \
                 power rises: measure again, or remove that cap everywhere",
                row.knot.ips,
                row.knot.power,
                NOISE_THOUSANDTHS / 10,
                before.knot.ips,
                before.knot.power,
                before.line
            );
            return Err(Wrong { line: row.line, field: "gips", why });
        }
        noise.add(row.line);
    }
    Ok(())
}

/// One row of a table, as it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement<'a> {
    /// The processor, by its name.
    pub(crate) processor: &'a str,
    /// The application, by its name.
    pub(crate) application: &'a str,
    /// Under which cap.
    pub(crate) cap: Watts,
    /// The result.
    pub(crate) knot: Knot,
}

/// Writes a table that [`Table::read`] reads.
pub fn write<'a>(
    out: &mut dyn Write,
    measurements: impl Iterator<Item = Measurement<'a>>,
) -> io::Result<()> {
    write_as(FORM, out, measurements)
}

/// The same with speeds that are not counted in instructions: a billion stands for one unit of work.
pub fn write_relative<'a>(
    out: &mut dyn Write,
    measurements: impl Iterator<Item = Measurement<'a>>,
) -> io::Result<()> {
    write_as(RELATIVE, out, measurements)
}

fn write_as<'a>(
    form: Form,
    out: &mut dyn Write,
    measurements: impl Iterator<Item = Measurement<'a>>,
) -> io::Result<()> {
    writeln!(out, "{}", form.heading())?;
    for Measurement { processor, application, cap, knot } in measurements {
        let (cap, power) = (decimal(cap.milliwatts(), 3), decimal(knot.power.milliwatts(), 3));
        let gips = decimal(knot.ips.ips(), 9);
        let [processor, application] = [processor, application].map(quote);
        writeln!(out, "{processor},{application},{cap},{gips},{power}")?;
    }
    Ok(())
}

/// A number whose last this many digits stand after the point, without zeros that say nothing.
fn decimal(number: u64, places: usize) -> String {
    let digits = format!("{number:0width$}", width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    format!("{whole}.{fraction}").trim_end_matches('0').trim_end_matches('.').to_owned()
}
