//! One row of a table, and what its fields say.

use std::borrow::Cow;

use super::field::Field;
use super::layout::{Cells, Layout, Place};
use super::value;
use crate::profile::Origin;
use crate::units::{Span, Watts};

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

/// A cap as a line has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cap {
    /// The table says nothing of such caps.
    Untold,
    /// The field is empty: there was no cap.
    Absent,
    /// So much for each socket.
    At(Watts),
}

/// What a line says. What it leaves to the others of the table is still open.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) application: String,
    /// The size of the problem.
    pub(super) size: Option<String>,
    pub(super) nodes: u32,
    pub(super) cores: u32,
    /// That of the processors, of the memory and of the GPUs.
    pub(super) caps: [Cap; 3],
    pub(super) time: Span,
    /// Nothing if it was not measured.
    pub(super) power: Option<Watts>,
    pub(super) origin: Option<Origin>,
}

impl Record<'_> {
    /// What the line says.
    pub(super) fn read(&self, layout: &Layout) -> Result<Reading, FieldError> {
        let time = match self.cells.is_in_millis() {
            true => self.value(Field::Time, value::time_in_millis)?,
            false => self.value(Field::Time, value::time)?,
        };
        let nodes = self.value(Field::Nodes, value::count)?;
        // How often the power counts that the line says.
        let times = if layout.power_is_of_node { nodes } else { 1 };
        let caps = [Field::Cap, Field::MemoryCap, Field::GpuCap];
        let [cap, memory, gpu] = caps.map(|field| self.cap(field, layout));
        let reading = Reading {
            application: self
                .value(Field::Application, |text| value::name(text).map(str::to_owned))?,
            size: self
                .given(Field::Size, |text| Ok(text.to_owned()))?
                .filter(|size| !size.is_empty()),
            nodes,
            cores: self.value(Field::Cores, value::count)?,
            caps: [cap?, memory?, gpu?],
            time,
            power: self.power(time)?.map(|power| {
                power.checked_mul(times).unwrap_or(Watts::LARGEST).min(Watts::LARGEST)
            }),
            origin: self.given(Field::Origin, value::origin)?,
        };
        Ok(reading)
    }

    /// What was drawn, or what the energy makes of it.
    fn power(&self, time: Span) -> Result<Option<Watts>, FieldError> {
        let powers = self.each(Field::Power, value::power)?;
        if !powers.is_empty() {
            let sum = powers.into_iter().fold(Watts::ZERO, Watts::saturating_add);
            return Ok(Some(sum.min(Watts::LARGEST)));
        }
        let energies = self.each(Field::Energy, value::energy)?;
        let sum = energies.iter().fold(0, |sum: u64, energy| sum.saturating_add(*energy));
        Ok((sum > 0).then(|| value::mean_power(sum, time)))
    }

    /// A cap of one socket.
    fn cap(&self, field: Field, layout: &Layout) -> Result<Cap, FieldError> {
        let read = |text: &str| match text {
            "" | "none" => Ok(Cap::Absent),
            text => {
                let cap = divided(text, self.cells.sockets_per_cap.get().into())?;
                match layout.cap_range.filter(|range| field == Field::Cap && !range.contains(cap)) {
                    Some(range) => Err(format!("a cap of {cap} a socket is outside {range}")),
                    None => Ok(Cap::At(cap)),
                }
            }
        };
        Ok(self.given(field, read)?.unwrap_or(Cap::Untold))
    }

    /// A field that may be nowhere.
    fn given<T>(
        &self,
        field: Field,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, FieldError> {
        match self.cells.of(field).place {
            Place::Nowhere => Ok(None),
            _ => self.value(field, read).map(Some),
        }
    }

    /// The values of each of the columns of a field; of none if it is nowhere.
    fn each<T>(
        &self,
        field: Field,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, FieldError> {
        let cell = self.cells.of(field);
        let texts: Vec<&str> = match &cell.place {
            Place::Columns(places) => places.iter().map(|place| self.at(*place)).collect(),
            Place::Constant(text) => vec![text.as_str()],
            Place::Nowhere => Vec::new(),
        };
        let wrong = |why| FieldError { field: cell.label.clone(), why };
        texts.into_iter().map(|text| read(text).map_err(wrong)).collect()
    }

    fn at(&self, place: usize) -> &str {
        self.fields.get(place).map_or("", |text| text.trim())
    }

    fn value<T>(
        &self,
        field: Field,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, FieldError> {
        let cell = self.cells.of(field);
        let text = match &cell.place {
            Place::Columns(places) => match &places[..] {
                [place] => Cow::Borrowed(self.at(*place)),
                // Half a name is none.
                several if several.iter().any(|place| self.at(*place).is_empty()) => {
                    Cow::Borrowed("")
                }
                several => {
                    let parts: Vec<&str> = several.iter().map(|place| self.at(*place)).collect();
                    Cow::Owned(parts.join("/"))
                }
            },
            Place::Constant(text) => Cow::Borrowed(text.as_str()),
            Place::Nowhere => Cow::Borrowed(""),
        };
        read(&text).map_err(|why| FieldError { field: cell.label.clone(), why })
    }
}

/// The cap of one socket of those that share it.
fn divided(text: &str, sockets: u64) -> Result<Watts, String> {
    let together = value::cap(text)?;
    match together.milliwatts().is_multiple_of(sockets) {
        true => Ok(Watts::from_milliwatts(together.milliwatts() / sockets)),
        false => {
            Err(format!("{together} cannot be divided among {sockets} sockets to the milliwatt"))
        }
    }
}
