//! Lines that each name a fact and state it, with the names in one column.

use std::fmt::Display;

/// Facts by their names.
#[derive(Default)]
pub struct Facts(String);

impl Facts {
    /// Adds a line.
    pub(crate) fn add(&mut self, name: &str, value: impl Display) {
        self.0 += &format!("{name:>12}  {value}\n");
    }

    /// Adds a line that continues the last one.
    pub(crate) fn go_on(&mut self, value: impl Display) {
        self.add("", value);
    }

    /// All lines.
    pub fn text(self) -> String {
        self.0
    }
}
