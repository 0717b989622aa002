//! How the columns of a file are meant: which holds what, and what holds for all rows.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use super::value;
use crate::units::{QuantityError, Watts};

/// What a row says, piece by piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// What the application is called.
    Application,
    /// Nodes.
    Nodes,
    /// Cores used in each node.
    Cores,
    /// The power cap, in watts.
    Cap,
    /// How long it took, in seconds.
    Time,
    /// What all sockets of all its nodes drew, in watts.
    Power,
    /// Whether it was measured or predicted.
    Origin,
}

impl Field {
    /// Every field, in the order in which they are written.
    pub const ALL: [Field; 7] = [
        Field::Application,
        Field::Nodes,
        Field::Cores,
        Field::Cap,
        Field::Time,
        Field::Power,
        Field::Origin,
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        self.column().split('_').next().unwrap_or_default()
    }

    /// The column it stands in unless a layout says otherwise.
    pub fn column(self) -> &'static str {
        match self {
            Field::Application => "application",
            Field::Nodes => "nodes",
            Field::Cores => "cores",
            Field::Cap => "cap_w",
            Field::Time => "time_s",
            Field::Power => "power_w",
            Field::Origin => "origin",
        }
    }

    /// Whether the text can be read as this field; if not, why.
    fn check(self, text: &str) -> Result<(), String> {
        match self {
            Field::Application => value::name(text).map(drop),
            Field::Nodes | Field::Cores => value::count(text).map(drop),
            Field::Cap | Field::Power => value::power(text).map(drop),
            Field::Time => value::time(text).map(drop),
            Field::Origin => value::origin(text).map(drop),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why text does not say how columns are meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// There is no such field.
    #[error(
        "there is no field '{0}'; valid fields: application, nodes, cores, cap, time, power, origin"
    )]
    UnknownField(String),
    /// The text is not of the form `field=…`.
    #[error("'{0}': write a field, =, and what it is, such as {example}", example = "nodes=1")]
    NoAssignment(String),
    /// The constant cannot be read.
    #[error("field '{field}': {why}")]
    Constant {
        /// Which field.
        field: Field,
        /// What is wrong and what to write.
        why: String,
    },
    /// The range has no end or no beginning.
    #[error("'{0}': write the lowest and the highest cap, such as 51W..115W")]
    NoRange(String),
    /// The range has nothing in it.
    #[error("the range {0} has nothing in it; its end must not be below its start")]
    EmptyRange(CapRange),
    /// One of its powers is wrong.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
}

/// Reads `time` or `time_s`.
impl FromStr for Field {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let text = text.trim();
        let named = |field: &Field| {
            [field.name(), field.column()].iter().any(|name| name.eq_ignore_ascii_case(text))
        };
        let found = Field::ALL.into_iter().find(named);
        found.ok_or_else(|| LayoutError::UnknownField(text.to_owned()))
    }
}

/// A column that holds a field under another name: `time=runtime_s`. An application may be made
/// of several, which are joined by a slash: `application=class/app`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// What it holds.
    pub field: Field,
    /// What the file calls it.
    pub column: String,
}

/// A value that all rows have in common: `nodes=1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    field: Field,
    text: String,
}

fn assignment(text: &str) -> Result<(Field, &str), LayoutError> {
    let (field, what) =
        text.split_once('=').ok_or_else(|| LayoutError::NoAssignment(text.to_owned()))?;
    match what.trim() {
        "" => Err(LayoutError::NoAssignment(text.to_owned())),
        what => Ok((field.parse()?, what)),
    }
}

impl FromStr for Renamed {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let (field, column) = assignment(text)?;
        Ok(Renamed { field, column: column.to_owned() })
    }
}

impl FromStr for Constant {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let (field, text) = assignment(text)?;
        field.check(text).map_err(|why| LayoutError::Constant { field, why })?;
        Ok(Constant { field, text: text.to_owned() })
    }
}

/// The caps a machine can hold, both ends included: `51W..115W`, for each socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapRange {
    least: Watts,
    most: Watts,
}

impl CapRange {
    /// Whether a cap is in it.
    pub fn contains(&self, cap: Watts) -> bool {
        (self.least..=self.most).contains(&cap)
    }
}

impl fmt::Display for CapRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.least, self.most)
    }
}

impl FromStr for CapRange {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let ends = text.split_once("..").filter(|(least, most)| {
            let is_said = |text: &str| !text.trim().is_empty();
            is_said(least) && is_said(most)
        });
        let (least, most) = ends.ok_or_else(|| LayoutError::NoRange(text.to_owned()))?;
        let range = CapRange { least: least.parse()?, most: most.parse()? };
        if range.least > range.most { Err(LayoutError::EmptyRange(range)) } else { Ok(range) }
    }
}

/// How a file is to be read. The default is how [`write`](super::write) writes it.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Columns under other names. Of several for one field the last holds.
    pub renamed: Vec<Renamed>,
    /// What all rows have in common. A constant comes before a column.
    pub constants: Vec<Constant>,
    /// How many sockets share the cap of a row; it is divided among them.
    pub sockets_per_cap: NonZeroU32,
    /// The caps that are accepted, after that division; all if there is no range.
    pub cap_range: Option<CapRange>,
    /// Whether columns that nothing was said about are passed over.
    pub ignore_other_columns: bool,
}

impl Default for Layout {
    fn default() -> Self {
        Layout {
            renamed: Vec::new(),
            constants: Vec::new(),
            sockets_per_cap: NonZeroU32::MIN,
            cap_range: None,
            ignore_other_columns: false,
        }
    }
}

/// Where a field of a row is found.
#[derive(Debug)]
pub(super) struct Cell {
    /// What to call the place in an error.
    pub(super) label: String,
    pub(super) place: Place,
}

#[derive(Debug)]
pub(super) enum Place {
    /// In these columns, by their places from 0; joined by a slash if there are several.
    Columns(Vec<usize>),
    /// The same in all rows.
    Constant(String),
    /// Nowhere; the field is one that may be left out.
    Nowhere,
}

/// Where every field is found, in the order of [`Field::ALL`].
#[derive(Debug)]
pub(super) struct Cells(Vec<Cell>);

impl Cells {
    pub(super) fn of(&self, field: Field) -> &Cell {
        &self.0[field as usize]
    }
}

/// What is wrong with a heading.
#[derive(Debug)]
pub(super) struct HeadingError {
    pub(super) column: String,
    pub(super) why: String,
}

impl Layout {
    /// Where each field is found in a file with this heading.
    pub(super) fn cells(&self, heading: &[impl AsRef<str>]) -> Result<Cells, HeadingError> {
        let heading: Vec<&str> = heading.iter().map(AsRef::as_ref).collect();
        let error = |column: &str, why: String| HeadingError { column: column.to_owned(), why };
        for (place, column) in heading.iter().enumerate() {
            if heading[..place].iter().any(|before| before.eq_ignore_ascii_case(column)) {
                return Err(error(column, "the heading names it twice; rename one".to_owned()));
            }
        }
        let cells = Field::ALL.into_iter().map(|field| self.cell(field, &heading));
        let cells = cells.collect::<Result<Vec<Cell>, HeadingError>>()?;
        let is_used = |place: usize| {
            let holds =
                |cell: &Cell| matches!(&cell.place, Place::Columns(p) if p.contains(&place));
            cells.iter().any(holds)
        };
        let other = (0..heading.len()).find(|place| !is_used(*place));
        match other.filter(|_| !self.ignore_other_columns) {
            None => Ok(Cells(cells)),
            Some(place) => Err(error(
                heading[place],
                format!(
                    "nothing says what it holds; columns: {}; give it a meaning (--column \
                     FIELD=NAME), or pass over such columns (--ignore-other-columns)",
                    Field::ALL.map(Field::column).join(", ")
                ),
            )),
        }
    }

    fn cell(&self, field: Field, heading: &[&str]) -> Result<Cell, HeadingError> {
        if let Some(constant) = self.constants.iter().rfind(|constant| constant.field == field) {
            let place = Place::Constant(constant.text.clone());
            return Ok(Cell { label: field.name().to_owned(), place });
        }
        let renamed = self.renamed.iter().rfind(|renamed| renamed.field == field);
        let label = renamed.map_or(field.column(), |renamed| &renamed.column);
        let place_of =
            |name: &str| heading.iter().position(|column| column.eq_ignore_ascii_case(name.trim()));
        let whole = place_of(label).map(|place| vec![place]);
        let joined = || match field {
            // A column of this very name comes first: a slash may be part of it.
            Field::Application => label.split('/').map(place_of).collect(),
            _ => None,
        };
        let place = match whole.or_else(joined) {
            Some(places) => Place::Columns(places),
            None if field == Field::Origin && renamed.is_none() => Place::Nowhere,
            None => {
                return Err(HeadingError {
                    column: label.to_owned(),
                    why: format!(
                        "it is missing; there are: {}; say which column it is (--column \
                         {field}=NAME), or what holds for all rows (--set {field}=VALUE)",
                        heading.join(", ")
                    ),
                });
            }
        };
        Ok(Cell { label: label.to_owned(), place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(cell: &Cell) -> &[usize] {
        match &cell.place {
            Place::Columns(places) => places,
            _ => &[],
        }
    }

    #[test]
    fn columns_may_be_in_any_order_and_have_other_names() {
        let heading = ["Time_s", "power_w", "class", "app", "watts/socket", "nodes"];
        let layout = Layout {
            renamed: vec![
                "application=class/app".parse().unwrap(),
                "cap=watts/socket".parse().unwrap(),
            ],
            constants: vec!["cores=16".parse().unwrap()],
            ..Layout::default()
        };
        let cells = layout.cells(&heading).unwrap();
        let places: Vec<&[usize]> = cells.0.iter().map(columns).collect();
        assert_eq!(places, [&[2, 3][..], &[5], &[], &[4], &[0], &[1], &[]]);
        assert!(matches!(&cells.of(Field::Cores).place, Place::Constant(text) if text == "16"));
        assert!(matches!(cells.of(Field::Origin).place, Place::Nowhere));
        assert_eq!(cells.of(Field::Cap).label, "watts/socket");
    }

    #[test]
    fn a_heading_without_a_column_or_with_one_more_is_refused() {
        let plain = ["application", "nodes", "cores", "cap_w", "time_s", "power_w"];
        let error = |heading: &[&str], layout: &Layout| {
            let error = layout.cells(heading).unwrap_err();
            format!("{}: {}", error.column, error.why)
        };
        let layout = Layout::default();
        assert!(layout.cells(&plain).is_ok());
        assert!(error(&plain[1..], &layout).starts_with("application: it is missing"));
        assert!(
            error(&[&plain[..], &["note"]].concat(), &layout).starts_with("note: nothing says")
        );
        assert!(error(&[&plain[..], &["NODES"]].concat(), &layout).contains("twice"));
        // A constant leaves the column of that name without a meaning.
        let layout = Layout { constants: vec!["nodes=1".parse().unwrap()], ..Layout::default() };
        assert!(error(&plain, &layout).starts_with("nodes: nothing says"));
        let layout = Layout { ignore_other_columns: true, ..layout };
        assert!(layout.cells(&plain).is_ok());
        // A number is in one column, and an origin that was named has to be there.
        let named =
            |text: &str| Layout { renamed: vec![text.parse().unwrap()], ..Layout::default() };
        assert!(
            error(&plain, &named("time=time_s/nodes")).starts_with("time_s/nodes: it is missing")
        );
        assert!(error(&plain, &named("origin=kind")).starts_with("kind: it is missing"));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let constant = |text: &str| text.parse::<Constant>().unwrap_err().to_string();
        assert!(constant("nodes").contains("such as nodes=1"), "{}", constant("nodes"));
        assert!(constant("nodes=").contains("such as nodes=1"));
        assert!(constant("nodes=x").starts_with("field 'nodes': 'x' is not a plain number"));
        assert!(constant("origin=guess").contains("write measured or predicted"));
        assert!(constant("colour=red").contains("valid fields: application, nodes"));
        let range = |text: &str| text.parse::<CapRange>().map_err(|error| error.to_string());
        assert!(range("51W..115W").unwrap().contains(Watts::from_watts(115)));
        assert!(!range("51W..115W").unwrap().contains(Watts::from_watts(50)));
        assert!(range("51W").unwrap_err().contains("such as 51W..115W"));
        assert!(range("51W..").unwrap_err().contains("such as 51W..115W"));
        assert!(range("51..115").unwrap_err().contains("valid units"));
        assert!(range("115W..51W").unwrap_err().contains("115W..51W has nothing in it"));
    }
}
