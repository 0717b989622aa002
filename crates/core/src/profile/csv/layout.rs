//! How the columns of a file are meant: which holds what, and what holds for all rows.

use std::num::NonZeroU32;

use super::field::{CAP_OF_BOTH_SOCKETS, Field};
use super::said::{CapRange, Constant, LayoutError, Renamed};
use crate::units::Watts;

/// How a file is to be read. The default is how [`write`](super::write) writes it.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Columns under other names.
    pub(super) renamed: Vec<Renamed>,
    /// The values that all rows share.
    pub(super) constants: Vec<Constant>,
    /// How many sockets share the cap of a row; it is divided among them.
    pub sockets_per_cap: NonZeroU32,
    /// How many sockets a node has, if that is known. Draws are compared with their caps, and where no power
    /// was measured, caps stand for it.
    pub sockets: Option<NonZeroU32>,
    /// Whether power and energy are of each node, and not of all nodes together.
    pub power_is_of_node: bool,
    /// The caps that are accepted, after that division; all if there is no range.
    pub cap_range: Option<CapRange>,
    /// The cap of a socket that counts for rows without one [default: the highest of the others].
    pub highest_cap: Option<Watts>,
    /// Whether nothing is said of columns that are passed over.
    pub ignore_other_columns: bool,
}

impl Default for Layout {
    fn default() -> Self {
        Layout {
            renamed: Vec::new(),
            constants: Vec::new(),
            sockets_per_cap: NonZeroU32::MIN,
            sockets: None,
            power_is_of_node: false,
            cap_range: None,
            highest_cap: None,
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
    /// In these columns, by their places from 0; joined or added if there are several.
    Columns(Vec<usize>),
    /// The same in all rows.
    Constant(String),
    /// Nowhere; the field is one that may be left out.
    Nowhere,
}

/// Where every field is found.
#[derive(Debug)]
pub(super) struct Cells {
    /// In the order of [`Field::ALL`].
    cells: Vec<Cell>,
    /// How many sockets share the cap of a row.
    pub(super) sockets_per_cap: NonZeroU32,
    /// How many sockets a node has, if that is known.
    pub(super) sockets: Option<NonZeroU32>,
    /// Columns that hold nothing, by their names.
    pub(super) others: Vec<String>,
}

const TWO: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);

impl Cells {
    pub(super) fn of(&self, field: Field) -> &Cell {
        &self.cells[field as usize]
    }

    /// Whether times are in milliseconds: the column says so by its name.
    pub(super) fn is_in_millis(&self) -> bool {
        self.of(Field::Time).label.to_ascii_lowercase().ends_with("_ms")
    }
}

/// What is wrong with a heading.
#[derive(Debug)]
pub(super) struct HeadingError {
    pub(super) column: String,
    pub(super) why: String,
}

/// A heading, column by column.
struct Heading<'a>(Vec<&'a str>);

impl Heading<'_> {
    fn place_of(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|column| column.eq_ignore_ascii_case(name.trim()))
    }

    /// The places of a label: of the column of this very name, as a joint may be part of it, or else of
    /// several columns.
    fn places_of(&self, field: Field, label: &str) -> Option<Vec<usize>> {
        let whole = self.place_of(label).map(|place| vec![place]);
        whole.or_else(|| label.split(field.joint()?).map(|name| self.place_of(name)).collect())
    }
}

impl Layout {
    /// A layout with columns under other names, and with what all rows have in common. Of a field
    /// one of these is said, once.
    pub fn new(renamed: Vec<Renamed>, constants: Vec<Constant>) -> Result<Self, LayoutError> {
        let said = renamed.iter().map(|renamed| renamed.field);
        let said: Vec<Field> =
            said.chain(constants.iter().map(|constant| constant.field)).collect();
        let twice = (1..said.len()).find(|place| said[..*place].contains(&said[*place]));
        if let Some(place) = twice {
            return Err(LayoutError::Twice(said[place]));
        }
        match said.contains(&Field::Power) && said.contains(&Field::Energy) {
            true => Err(LayoutError::PowerAndEnergy),
            false => Ok(Layout { renamed, constants, ..Layout::default() }),
        }
    }

    /// Whether a heading has the name of any column that is looked for.
    pub(super) fn knows_any(&self, heading: &[impl AsRef<str>]) -> bool {
        let named = self.renamed.iter().flat_map(|renamed| {
            std::iter::once(renamed.column.as_str()).chain(renamed.column.split(['/', '+']))
        });
        let known = Field::ALL.into_iter().flat_map(|field| field.columns().iter().copied());
        let names: Vec<&str> = named.chain(known).collect();
        let is_known = |column: &str| names.iter().any(|name| name.eq_ignore_ascii_case(column));
        heading.iter().any(|column| is_known(column.as_ref()))
    }

    /// Where each field is found in a file with this heading.
    pub(super) fn cells(&self, heading: &[impl AsRef<str>]) -> Result<Cells, HeadingError> {
        let heading = Heading(heading.iter().map(AsRef::as_ref).collect());
        let error = |column: &str, why: String| HeadingError { column: column.to_owned(), why };
        for (place, column) in heading.0.iter().enumerate() {
            if heading.0[..place].iter().any(|before| before.eq_ignore_ascii_case(column)) {
                return Err(error(column, "the heading has it twice; rename one".to_owned()));
            }
        }
        let cells = Field::ALL.into_iter().map(|field| self.cell(field, &heading));
        let mut cells = cells.collect::<Result<Vec<Cell>, HeadingError>>()?;
        // Of power and energy one is enough; that somebody names goes first.
        let is_said = |field| self.renamed.iter().any(|renamed| renamed.field == field);
        let spare = if is_said(Field::Energy) { Field::Power } else { Field::Energy };
        let other = if spare == Field::Power { Field::Energy } else { Field::Power };
        if !matches!(cells[other as usize].place, Place::Nowhere) {
            cells[spare as usize].place = Place::Nowhere;
        }
        let users = |place: usize| -> Vec<Field> {
            let holds = |field: &Field| matches!(&cells[*field as usize].place, Place::Columns(p) if p.contains(&place));
            Field::ALL.into_iter().filter(holds).collect()
        };
        for (place, column) in heading.0.iter().enumerate() {
            if let [one, other, ..] = users(place)[..] {
                let why = format!(
                    "it cannot be both {one} and {other}; name the column of the other one \
                     (--column FIELD=NAME)"
                );
                return Err(error(column, why));
            }
        }
        let unused = (0..heading.0.len()).filter(|place| users(*place).is_empty());
        let others = unused.map(|place| heading.0[place].to_owned()).collect();
        let is_of_both = cells[Field::Cap as usize].label.eq_ignore_ascii_case(CAP_OF_BOTH_SOCKETS);
        let is_shared = self.sockets_per_cap > NonZeroU32::MIN;
        let cells = Cells {
            cells,
            sockets_per_cap: if is_of_both && !is_shared { TWO } else { self.sockets_per_cap },
            sockets: self.sockets.or(is_of_both.then_some(TWO)),
            others,
        };
        self.check_power(&cells, &heading)?;
        Ok(cells)
    }

    /// Without power there must be something to bound it by.
    fn check_power(&self, cells: &Cells, heading: &Heading<'_>) -> Result<(), HeadingError> {
        let is_nowhere = |field| matches!(cells.of(field).place, Place::Nowhere);
        if !is_nowhere(Field::Power) || !is_nowhere(Field::Energy) || cells.sockets.is_some() {
            return Ok(());
        }
        Err(HeadingError {
            column: Field::Power.column().to_owned(),
            why: format!(
                "it is missing; the columns are: {}; name its column (--column power=NAME or energy=NAME). If \
                power was not measured, give the number of sockets per node (--sockets N): then power is bounded by nodes × sockets × cap",
                heading.0.join(", ")
            ),
        })
    }

    fn cell(&self, field: Field, heading: &Heading<'_>) -> Result<Cell, HeadingError> {
        if let Some(constant) = self.constants.iter().find(|constant| constant.field == field) {
            let place = Place::Constant(constant.text.clone());
            return Ok(Cell { label: field.name().to_owned(), place });
        }
        if let Some(renamed) = self.renamed.iter().find(|renamed| renamed.field == field) {
            let label = renamed.column.clone();
            return match heading.places_of(field, &label) {
                Some(places) => Ok(Cell { label, place: Place::Columns(places) }),
                None => Err(missing(field, &label, heading)),
            };
        }
        let names = field.columns().iter();
        let found = names.filter_map(|name| Some((*name, heading.place_of(name)?)));
        // What somebody has given a meaning to is not guessed at.
        let is_taken = |place: usize| {
            let mut taken = self
                .renamed
                .iter()
                .filter_map(|renamed| heading.places_of(renamed.field, &renamed.column));
            field.is_optional() && taken.any(|places| places.contains(&place))
        };
        match found.into_iter().find(|(_, place)| !is_taken(*place)) {
            Some((name, place)) => {
                Ok(Cell { label: name.to_owned(), place: Place::Columns(vec![place]) })
            }
            None if field.is_optional() || field == Field::Power => {
                Ok(Cell { label: field.column().to_owned(), place: Place::Nowhere })
            }
            None => Err(missing(field, field.column(), heading)),
        }
    }
}

fn missing(field: Field, label: &str, heading: &Heading<'_>) -> HeadingError {
    HeadingError {
        column: label.to_owned(),
        why: format!(
            "it is missing; the columns are: {}; name its column (--column {field}=NAME), or its value for all \
            rows (--set {field}=VALUE)",
            heading.0.join(", ")
        ),
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
            assert!(error.ends_with("is given twice; keep one --column or --set"), "{error}");
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
        assert!(error.why.starts_with("it cannot be both time and power; name"), "{}", error.why);
    }

    #[test]
    fn columns_may_be_in_any_order_and_have_other_names() {
        let heading = ["Time_s", "power_w", "class", "app", "watts/socket", "nodes"];
        let layout = said(&["application=class/app", "cap=watts/socket"], &["cores=16"]).unwrap();
        let cells = layout.cells(&heading).unwrap();
        let places: Vec<&[usize]> = Field::WRITTEN.map(|field| columns(cells.of(field))).to_vec();
        assert_eq!(places, [&[2, 3][..], &[5], &[], &[4], &[0], &[1], &[]]);
        assert!(cells.others.is_empty(), "{:?}", cells.others);
        assert!(matches!(&cells.of(Field::Cores).place, Place::Constant(text) if text == "16"));
        assert!(matches!(cells.of(Field::Origin).place, Place::Nowhere));
        assert_eq!(cells.of(Field::Cap).label, "watts/socket");
    }

    #[test]
    fn a_heading_without_a_column_is_refused() {
        let plain = ["application", "nodes", "cores", "cap_w", "time_s", "power_w"];
        let error = |heading: &[&str], layout: &Layout| {
            let error = layout.cells(heading).unwrap_err();
            format!("{}: {}", error.column, error.why)
        };
        let layout = Layout::default();
        assert!(layout.cells(&plain).is_ok());
        assert!(error(&plain[1..], &layout).starts_with("application: it is missing"));
        assert!(error(&[&plain[..], &["NODES"]].concat(), &layout).contains("twice"));
        // A number is in one column, and an origin that was named has to be there.
        let named = |text: &str| said(&[text], &[]).unwrap();
        assert!(
            error(&plain, &named("time=time_s/nodes")).starts_with("time_s/nodes: it is missing")
        );
        assert!(error(&plain, &named("origin=kind")).starts_with("kind: it is missing"));
        // Without power somebody has to say how many sockets share a cap.
        assert!(error(&plain[..5], &layout).contains("(--sockets N)"));
        let layout = Layout { sockets: NonZeroU32::new(2), ..layout };
        assert!(layout.cells(&plain[..5]).is_ok());
    }

    #[test]
    fn what_holds_nothing_is_remembered_by_its_name() {
        let plain = ["application", "nodes", "cores", "cap_w", "time_s", "power_w", "note"];
        assert_eq!(Layout::default().cells(&plain).unwrap().others, ["note"]);
        // A constant leaves the column of that name without a meaning.
        let layout = said(&[], &["nodes=1"]).unwrap();
        assert_eq!(layout.cells(&plain).unwrap().others, ["nodes", "note"]);
    }

    /// Headings of published tables.
    #[test]
    fn published_names_are_known() {
        let layout = said(&["power=mean_pkg_W+mean_dram_W"], &["nodes=1", "cores=24"]).unwrap();
        let heading =
            ["class", "app", "cap_W_both_sockets", "runtime_s", "mean_pkg_W", "mean_dram_W"];
        let cells = layout.cells(&heading).unwrap();
        assert_eq!((cells.sockets_per_cap.get(), cells.sockets), (2, NonZeroU32::new(2)));
        assert_eq!(columns(cells.of(Field::Power)), [4, 5]);
        assert_eq!(columns(cells.of(Field::Size)), [0]);
        // A column that somebody has given a meaning to has no other.
        let layout = said(
            &["application=class/app", "time=t_ms", "energy=joule"],
            &["nodes=1", "cores=24", "cap=80W"],
        );
        let heading = ["class", "app", "t_ms", "joule", "power_w"];
        let cells = layout.unwrap().cells(&heading).unwrap();
        assert!(matches!(cells.of(Field::Size).place, Place::Nowhere));
        assert!(matches!(cells.of(Field::Power).place, Place::Nowhere), "energy was named");
        assert!(cells.is_in_millis());
        assert_eq!(
            said(&["power=a", "energy=b"], &[]).unwrap_err(),
            "both power and energy are given; keep one of them"
        );
    }
}
