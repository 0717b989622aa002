//! What people call a folder.

use std::fmt;

/// What names a folder, such as `'state = …' in the configuration`, for the advice to name another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting(pub &'static str);

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "name a new folder with {}", self.0)
    }
}
