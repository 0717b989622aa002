//! What people say about the columns of a file: `time=runtime_s`, `nodes=1`, `51W..115W`.

use std::fmt;
use std::str::FromStr;

use super::field::{Field, UnknownField};
use crate::units::{QuantityError, Watts};

/// Why text does not say how columns are meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// There is no such field.
    #[error(transparent)]
    UnknownField(#[from] UnknownField),
    /// The text is not of the form `field=…`.
    #[error("'{0}': write FIELD=VALUE, such as {example}", example = "nodes=1")]
    NoAssignment(String),
    /// The constant cannot be read.
    #[error("field '{field}': {why}")]
    Constant {
        /// The field, by its name.
        field: Field,
        /// The mistake, and what to write instead.
        why: String,
    },
    /// A field is said twice where it is found.
    #[error("where to find '{0}' is given twice; keep one --column or --set")]
    Twice(Field),
    /// Two fields say the same.
    #[error("both power and energy are given; keep one of them")]
    PowerAndEnergy,
    /// The range has no end or no beginning.
    #[error("'{0}': write the lowest and the highest cap, such as 51W..115W")]
    NoRange(String),
    /// The range has nothing in it.
    #[error("the range {0} is empty; its end must not be below its start")]
    EmptyRange(CapRange),
    /// One of its powers is wrong.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
}

/// A column that holds a field under another name: `time=runtime_s`. An application may be made
/// of several, which are joined by a slash: `application=class/app`. Power and energy may be the sum of
/// several: `power=cpu_power_w+gpu_power_w`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// What it holds.
    pub(crate) field: Field,
    /// Its name in the file.
    pub(crate) column: String,
}

/// A value that all rows have in common: `nodes=1`. A power may have its unit: `cap=80W`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    pub(super) field: Field,
    pub(super) text: String,
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
        let text = match field {
            // Caps have their unit everywhere else on the command line.
            Field::Cap | Field::MemoryCap | Field::GpuCap | Field::Power if text.ends_with('W') => {
                super::decimal(text.parse::<Watts>()?.milliwatts())
            }
            _ => text.to_owned(),
        };
        field.check(&text).map_err(|why| LayoutError::Constant { field, why })?;
        Ok(Constant { field, text })
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
    pub(crate) fn contains(&self, cap: Watts) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let constant = |text: &str| text.parse::<Constant>().unwrap_err().to_string();
        assert!(constant("nodes").contains("such as nodes=1"), "{}", constant("nodes"));
        assert!(constant("nodes=").contains("such as nodes=1"));
        assert!(constant("nodes=x").starts_with("field 'nodes': 'x' is not a plain number"));
        assert!(constant("origin=guess").contains("write measured, emulated, bound or predicted"));
        assert!(constant("cap=0W").contains("'0' is not above zero"));
        assert!(constant("cap=80V").contains("'80V' is not a plain number"));
        assert_eq!("cap=80W".parse::<Constant>(), "cap=80".parse());
        assert_eq!("power_w=1.5 kW".parse::<Constant>(), "power=1500".parse());
        assert!(constant("colour=red").contains("valid fields: application, nodes"));
        let range = |text: &str| text.parse::<CapRange>().map_err(|error| error.to_string());
        assert!(range("51W..115W").unwrap().contains(Watts::from_watts(115)));
        assert!(!range("51W..115W").unwrap().contains(Watts::from_watts(50)));
        assert!(range("51W").unwrap_err().contains("such as 51W..115W"));
        assert!(range("51W..").unwrap_err().contains("such as 51W..115W"));
        assert!(range("51..115").unwrap_err().contains("valid units"));
        assert!(range("115W..51W").unwrap_err().contains("115W..51W is empty"));
    }
}
