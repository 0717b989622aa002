//! The names of users, for display.

use std::cell::RefCell;
use std::collections::BTreeMap;

use anyhow::anyhow;

use crate::live::server::users;

/// User names by user ID, each looked up once. Unknown users are shown by ID.
#[derive(Default)]
pub(super) struct Users(RefCell<BTreeMap<u32, String>>);

impl Users {
    /// The name of a user, or the user ID.
    pub(super) fn name(&self, number: u32) -> String {
        let mut known = self.0.borrow_mut();
        let name = || users::name_of(number).unwrap_or_else(|| number.to_string());
        known.entry(number).or_insert_with(name).clone()
    }

    /// The user ID for a name or an ID.
    pub(super) fn number(&self, name: &str) -> anyhow::Result<u32> {
        let number = users::number_of(name).or_else(|| name.parse().ok());
        number
            .ok_or_else(|| anyhow!("there is no user '{name}'; give the name or the number of one"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_names_or_numbers() {
        let users = Users::default();
        assert_eq!((users.name(0), users.name(0)), ("root".to_owned(), "root".to_owned()));
        assert_eq!(users.name(u32::MAX - 7), (u32::MAX - 7).to_string());
        assert_eq!(users.number("root").unwrap(), 0);
        assert_eq!(users.number("7").unwrap(), 7);
        assert!(users.number("no such").unwrap_err().to_string().contains("no user 'no such'"));
    }
}
