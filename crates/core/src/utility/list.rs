//! The utility functions of a site, by name and by number.

use std::num::NonZeroU32;

use super::UtilityFunction;

/// The utility functions that tasks have, by the number tasks know them by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Utilities {
    names: Vec<String>,
    functions: Vec<UtilityFunction>,
}

/// A utility function, by its place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UtilityId(NonZeroU32);

impl UtilityId {
    /// The function at this place, from 0.
    pub fn at(place: u32) -> Self {
        UtilityId(NonZeroU32::MIN.saturating_add(place))
    }

    /// Its place, from 0.
    #[inline]
    pub fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl Utilities {
    /// Adds a function.
    pub fn push(&mut self, name: impl Into<String>, function: UtilityFunction) -> UtilityId {
        self.names.push(name.into());
        self.functions.push(function);
        UtilityId::at(self.functions.len() as u32 - 1)
    }

    /// The function of this number, if there is one.
    #[inline]
    pub fn get(&self, id: UtilityId) -> Option<&UtilityFunction> {
        self.functions.get(id.place())
    }

    /// The function at this place, which is below the number of functions.
    #[inline]
    pub(crate) fn at(&self, place: u32) -> &UtilityFunction {
        &self.functions[place as usize]
    }

    /// Its name.
    pub fn name(&self, id: UtilityId) -> &str {
        self.names.get(id.place()).map_or("?", String::as_str)
    }

    /// The function of this name.
    #[cfg(test)]
    pub(crate) fn named(&self, name: &str) -> Option<UtilityId> {
        let place = self.names.iter().position(|known| known == name)?;
        Some(UtilityId::at(place as u32))
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &UtilityFunction)> {
        self.names.iter().map(String::as_str).zip(&self.functions)
    }

    /// Their number.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }
}
