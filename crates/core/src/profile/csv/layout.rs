//! How the columns of a file are meant: which holds what, and what holds for all rows.

use std::num::NonZeroU32;

use super::field::Field;
use super::said::{CapRange, Constant, LayoutError, Renamed};

/// How a file is to be read. The default is how [`write`](super::write) writes it.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Columns under other names.
    pub(super) renamed: Vec<Renamed>,
    /// What all rows have in common.
    pub(super) constants: Vec<Constant>,
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
    /// A layout with columns under other names, and with what all rows have in common. Of a field
    /// one of these is said, once.
    pub fn new(renamed: Vec<Renamed>, constants: Vec<Constant>) -> Result<Self, LayoutError> {
        let said = renamed.iter().map(|renamed| renamed.field);
        let said: Vec<Field> =
            said.chain(constants.iter().map(|constant| constant.field)).collect();
        let twice = (1..said.len()).find(|place| said[..*place].contains(&said[*place]));
        match twice {
            Some(place) => Err(LayoutError::Twice(said[place])),
            None => Ok(Layout { renamed, constants, ..Layout::default() }),
        }
    }

    /// Whether a heading has the name of any column that is looked for.
    pub(super) fn knows_any(&self, heading: &[impl AsRef<str>]) -> bool {
        let named = self.renamed.iter().flat_map(|renamed| {
            std::iter::once(renamed.column.as_str()).chain(renamed.column.split('/'))
        });
        let names: Vec<&str> = named.chain(Field::ALL.map(Field::column)).collect();
        let is_known = |column: &str| names.iter().any(|name| name.eq_ignore_ascii_case(column));
        heading.iter().any(|column| is_known(column.as_ref()))
    }

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
        let users = |place: usize| -> Vec<Field> {
            let holds = |field: &Field| matches!(&cells[*field as usize].place, Place::Columns(p) if p.contains(&place));
            Field::ALL.into_iter().filter(holds).collect()
        };
        for (place, column) in heading.iter().enumerate() {
            if let [one, other, ..] = users(place)[..] {
                let why = format!(
                    "it cannot be both {one} and {other}; say which column the other one is \
                     (--column FIELD=NAME)"
                );
                return Err(error(column, why));
            }
        }
        let other = (0..heading.len()).find(|place| users(*place).is_empty());
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
        if let Some(constant) = self.constants.iter().find(|constant| constant.field == field) {
            let place = Place::Constant(constant.text.clone());
            return Ok(Cell { label: field.name().to_owned(), place });
        }
        let renamed = self.renamed.iter().find(|renamed| renamed.field == field);
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

    fn said(renamed: &[&str], constants: &[&str]) -> Result<Layout, String> {
        let renamed = renamed.iter().map(|text| text.parse().unwrap()).collect();
        let constants = constants.iter().map(|text| text.parse().unwrap()).collect();
        Layout::new(renamed, constants).map_err(|error| error.to_string())
    }

    #[test]
    fn one_thing_is_said_once() {
        let twice = |renamed: &[&str], constants: &[&str]| {
            let error = said(renamed, constants).unwrap_err();
            assert!(error.ends_with("is said twice; keep one --column or --set for it"), "{error}");
            error
        };
        assert!(twice(&["time=a", "power=b", "time=c"], &[]).contains("'time'"));
        assert!(twice(&[], &["nodes=1", "nodes=1"]).contains("'nodes'"));
        assert!(twice(&["cap=c"], &["cap=1"]).contains("'cap'"));
        // One column for two things.
        let layout = said(&["time=power_w"], &[]).unwrap();
        let heading = ["application", "nodes", "cores", "cap_w", "power_w"];
        let error = layout.cells(&heading).unwrap_err();
        assert_eq!(error.column, "power_w");
        assert!(error.why.starts_with("it cannot be both time and power; say"), "{}", error.why);
    }

    #[test]
    fn columns_may_be_in_any_order_and_have_other_names() {
        let heading = ["Time_s", "power_w", "class", "app", "watts/socket", "nodes"];
        let layout = said(&["application=class/app", "cap=watts/socket"], &["cores=16"]).unwrap();
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
        let layout = said(&[], &["nodes=1"]).unwrap();
        assert!(error(&plain, &layout).starts_with("nodes: nothing says"));
        let layout = Layout { ignore_other_columns: true, ..layout };
        assert!(layout.cells(&plain).is_ok());
        // A number is in one column, and an origin that was named has to be there.
        let named = |text: &str| said(&[text], &[]).unwrap();
        assert!(
            error(&plain, &named("time=time_s/nodes")).starts_with("time_s/nodes: it is missing")
        );
        assert!(error(&plain, &named("origin=kind")).starts_with("kind: it is missing"));
    }
}
