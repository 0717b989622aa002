//! One row of a table, and what its fields say.

use std::borrow::Cow;

use super::field::Field;
use super::layout::{Cells, Layout, Place};
use super::value;
use crate::profile::{Configuration, Origin, Row};
use crate::units::Watts;

/// The fields of one line, as many as the heading has.
pub(super) struct Record<'a> {
    pub(super) cells: &'a Cells,
    pub(super) fields: &'a [Cow<'a, str>],
}

/// What is wrong with a field.
pub(super) struct FieldError {
    pub(super) field: String,
    pub(super) why: String,
}

impl Record<'_> {
    /// The application, and what is said of it.
    pub(super) fn read(&self, layout: &Layout) -> Result<(String, Row), FieldError> {
        let application =
            self.value(Field::Application, |text| value::name(text).map(str::to_owned))?;
        let row = Row {
            configuration: Configuration {
                nodes: self.value(Field::Nodes, value::count)?,
                cores: self.value(Field::Cores, value::count)?,
                cap: self.value(Field::Cap, |text| cap(text, layout))?,
            },
            time: self.value(Field::Time, value::time)?,
            power: self.value(Field::Power, value::power)?,
            origin: match self.cells.of(Field::Origin).place {
                Place::Nowhere => Origin::Measured,
                _ => self.value(Field::Origin, value::origin)?,
            },
        };
        Ok((application, row))
    }

    fn value<T>(
        &self,
        field: Field,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, FieldError> {
        let cell = self.cells.of(field);
        let at = |place: &usize| self.fields.get(*place).map_or("", |text| text.trim());
        let text = match &cell.place {
            Place::Columns(places) => match &places[..] {
                [place] => Cow::Borrowed(at(place)),
                // Half a name is none.
                several if several.iter().any(|place| at(place).is_empty()) => Cow::Borrowed(""),
                several => Cow::Owned(several.iter().map(at).collect::<Vec<_>>().join("/")),
            },
            Place::Constant(text) => Cow::Borrowed(text.as_str()),
            Place::Nowhere => Cow::Borrowed(""),
        };
        read(&text).map_err(|why| FieldError { field: cell.label.clone(), why })
    }
}

/// The cap of one socket, within its range.
fn cap(text: &str, layout: &Layout) -> Result<Watts, String> {
    let together = value::cap(text)?;
    let sockets = u64::from(layout.sockets_per_cap.get());
    if !together.milliwatts().is_multiple_of(sockets) {
        return Err(format!(
            "{together} cannot be divided among {sockets} sockets to the milliwatt"
        ));
    }
    let cap = Watts::from_milliwatts(together.milliwatts() / sockets);
    match layout.cap_range {
        Some(range) if !range.contains(cap) => {
            Err(format!("a cap of {cap} a socket is outside {range}"))
        }
        _ => Ok(cap),
    }
}
